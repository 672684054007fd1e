/* stripe.c - the layout of large files on Lustre, with a stand-in for its tool (a script named lfs)
 * and a table of system calls that says that everything is on Lustre. That the real tool does what
 * it is told is not tested.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tier_calls.h"
#include "tmpdir.h"
#include "util/sys.h"

static struct weir_io *io;
static char bin[PATH_MAX], noted[PATH_MAX];

static int lustre_space(int fd, struct weir_sys_space *space)
{
    int code = weir_sys_real.space(fd, space);
    space->magic = 0x0bd00bd0;
    return code;
}

static void tool_is(const char *script)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/lfs", bin);
    unlink(path);
    unlink(noted);
    if (!script)
        return;
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "#!/bin/sh\necho \"$@\" >>'%s'\n%s\n", noted, script) > 0);
    CHECK(!fchmod(fileno(file), 0755) && !fclose(file));
}

/* What the tool was told, all in one; "" if nothing. */
static const char *told(void)
{
    static char text[4096];
    FILE *file = fopen(noted, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = 0;
    if (file)
        fclose(file);
    unlink(noted);
    return text;
}

static void open_with(const char *options)
{
    char text[PATH_MAX + 64];
    struct weir_url url;
    snprintf(text, sizeof text, "file:%s%s", tmp_path("store"), options);
    OK(weir_url_parse(&url, text));
    OK(weir_tier_open(&tier, &url, io, true));
    weir_url_free(&url);
}

/* Writes a small file that says that it will have so many bytes; its mode is any file's. */
static void make(const char *name, uint64_t hint)
{
    struct weir_handle *sink;
    OK(t_create(name, hint, false, &sink));
    OK(t_write(sink, "x", 1, 0, false));
    OK(t_commit(sink, 1, NULL));
    weir_handle_close(sink);
    void *data;
    size_t size;
    OK(t_load(name, 10, &data, &size));
    CHECK(size == 1 && *(char *)data == 'x');
    free(data);
}

/* No space is taken ahead: these files only say that they are large. */
static int no_fallocate(int fd, uint64_t off, uint64_t len)
{
    (void)fd, (void)off, (void)len;
    return -EOPNOTSUPP;
}

#define GIB   (1ull << 30)
#define MAKES "case $1 in setstripe) for last; do :; done; : >\"$last\";; esac"

static void by_size(void)
{
    tool_is(MAKES);
    open_with("");
    make(".weir/data/a~x", 100 << 20);
    CHECK(!*told()); /* as the directory says */
    make(".weir/data/b~x", 5 * GIB);
    CHECK(strstr(told(), "setstripe -c 5 -S 4194304 /"));
    make(".weir/data/c~x", 500 * GIB);
    CHECK(strstr(told(), "setstripe -c 32 -S 4194304 /"));
    make(".weir/data/d~x", 0); /* nobody knows */
    CHECK(!*told());
    OK(t_put(".weir/seal/a~", "1", 1));
    CHECK(!*told());
    weir_tier_close(tier);
}

static void as_told(void)
{
    tool_is(MAKES);
    open_with("?stripe_count=3&stripe_size=1M");
    make(".weir/data/a~x", 0);
    CHECK(strstr(told(), "setstripe -c 3 -S 1048576 /"));
    make(".weir/data/b~x", 64 << 20);
    CHECK(strstr(told(), "setstripe -c 3 -S 1048576 /"));
    make(".weir/data/c~x", 1 << 20);
    CHECK(!*told());
    weir_tier_close(tier);
    open_with("?stripe_count=3&stripe_size=0");
    make(".weir/data/a~x", 5 * GIB);
    CHECK(!*told());
    weir_tier_close(tier);
}

static uint64_t temporaries(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SWEEP);
    req.dry = true;
    OK(call(&req));
    return req.result + req.len;
}

/* Whatever the tool does, the file is written. */
static void bad_tools(void)
{
    static const char *const scripts[] = {
        "exit 1",
        "kill -9 $$",
        "exit 0",
        "for last; do :; done; mkdir \"$last\"",
        "for last; do :; done; echo stuff >\"$last\"",
        MAKES "; exit 1",
        NULL,
    };
    for (int i = 0; i < 7; i++) {
        tool_is(scripts[i]);
        open_with("");
        make(".weir/data/a~x", 5 * GIB);
        CHECK(i == 3 || temporaries() == 0);
        weir_tier_close(tier);
    }
}

/* One that is missing is not looked for at every file. */
static void missing_once(void)
{
    tool_is(NULL);
    open_with("");
    make(".weir/data/a~x", 5 * GIB);
    tool_is(MAKES);
    make(".weir/data/b~x", 5 * GIB);
    CHECK(!*told());
    weir_tier_close(tier);
}

static void shown(void)
{
    char text[100];
    tool_is("printf 'lmm_stripe_count:  8\\nlmm_stripe_size:   4194304\\n'");
    open_with("");
    make(".weir/data/a~x", 1);
    OK(weir_tier_layout(tier, ".weir/data/a~x", text, sizeof text));
    CHECK(!strcmp(text, "8 stripes of 4194304 bytes"));
    CHECK(strstr(told(), "getstripe -c -S /") != NULL);
    tool_is("printf '  stripe_count: 1\\n stripe_size: 65536\\n stripe_count: -1\\n'");
    OK(weir_tier_layout(tier, ".weir/data/a~x", text, sizeof text));
    CHECK(!strcmp(text, "1 stripe of 65536 bytes"));
    static const char *const bad[] = {"exit 1", "echo nothing", "yes stripe_count: | head -c 1M",
                                      NULL};
    for (int i = 0; i < 4; i++) {
        tool_is(bad[i]);
        CHECK_EQ(weir_tier_layout(tier, ".weir/data/a~x", text, sizeof text), -ENOTSUP);
    }
    weir_tier_close(tier);
}

int main(void)
{
    static struct weir_sys table;
    char path[PATH_MAX + 1024];
    snprintf(bin, sizeof bin, "%s", tmp_path("bin"));
    snprintf(noted, sizeof noted, "%s", tmp_path("noted"));
    CHECK(!mkdir(bin, 0755));
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", bin);
    CHECK(!setenv("PATH", path, 1));
    table = weir_sys_real;
    table.space = lustre_space;
    table.fallocate = no_fallocate;
    weir_sys = &table;
    struct weir_io_options opts = {"inline", 4, 16 << 20};
    OK(weir_io_open(&io, &opts));
    RUN(by_size);
    RUN(as_told);
    RUN(bad_tools);
    RUN(missing_once);
    RUN(shown);
    weir_io_close(io);
    return TEST_RESULT;
}
