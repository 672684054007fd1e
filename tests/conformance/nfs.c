/* nfs.c - the file tier on a file system that other machines change: what is remembered here is
 * old, answers get lost, files get silly names. The client is played by nfs_client.c; the other
 * machine is this program, going around it.
 */
#include "nfs_client.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tier_calls.h"
#include "tmpdir.h"
#include "util/sys.h"

static struct weir_io *io;
static char root[PATH_MAX];

static int try_open(void)
{
    char text[PATH_MAX + 16];
    struct weir_url url;
    snprintf(root, sizeof root, "%s", tmp_path("store"));
    snprintf(text, sizeof text, "file:%s", root);
    OK(weir_url_parse(&url, text));
    int code = weir_tier_open(&tier, &url, io, true);
    weir_url_free(&url);
    return code;
}

static void begin(void)
{
    nfs_client = (struct nfs_client){0};
    OK(try_open());
}

static void end(void)
{
    weir_tier_close(tier);
    tier = NULL;
}

/* ---- the other machine ---- */

static const char *there(const char *name)
{
    static char paths[4][2 * PATH_MAX];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void other_writes(const char *name, const char *text)
{
    FILE *file = fopen(there(name), "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool is_there(const char *name)
{
    return access(there(name), F_OK) == 0;
}

/* ---- what is remembered ---- */

/* Somebody on this machine, who is not us, looks for a name. */
static void remember_missing(const char *dir, const char *base)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(AT_FDCWD, there(dir), O_RDONLY | O_DIRECTORY, 0);
    CHECK(fd >= 0);
    CHECK_EQ(weir_sys->stat(fd, base, &st), -ENOENT);
    weir_sys->close(fd);
}

static void new_names(void)
{
    struct weir_handle *handle;
    struct weir_blob_stat stat;
    void *data;
    size_t size;
    begin();
    OK(t_put(".weir/seal/near~", "1", 1));
    CHECK_EQ(t_load(".weir/seal/a~", 100, &data, &size), -ENOENT);
    remember_missing(".weir/seal", "a~");
    other_writes(".weir/seal/a~", "theirs");
    record_is(".weir/seal/a~", "theirs");
    CHECK_EQ(t_stat(".weir/seal/b~", NULL, &stat), -ENOENT);
    remember_missing(".weir/seal", "b~");
    other_writes(".weir/seal/b~", "theirs");
    OK(t_stat(".weir/seal/b~", NULL, &stat));
    CHECK_EQ(stat.size, 6);
    CHECK_EQ(t_open(".weir/seal/c~", &handle, &stat), -ENOENT);
    remember_missing(".weir/seal", "c~");
    other_writes(".weir/seal/c~", "theirs");
    OK(t_open(".weir/seal/c~", &handle, &stat));
    weir_handle_close(handle);
    CHECK_EQ(t_put(".weir/seal/c~", "mine", 4), -EEXIST);
    end();
}

static void new_directories(void)
{
    void *data;
    size_t size;
    begin();
    CHECK_EQ(t_load(".weir/seal/d/e/f~", 100, &data, &size), -ENOENT);
    CHECK(!mkdir(there(".weir/seal"), 0777) || errno == EEXIST);
    CHECK(!mkdir(there(".weir/seal/d"), 0777) && !mkdir(there(".weir/seal/d/e"), 0777));
    other_writes(".weir/seal/d/e/f~", "theirs");
    record_is(".weir/seal/d/e/f~", "theirs");
    end();
}

/* A directory that is kept open here was removed there, and made again. */
static void stale_directories(void)
{
    void *data;
    size_t size;
    begin();
    OK(t_put(".weir/seal/d/x~", "1", 1));
    record_is(".weir/seal/d/x~", "1");
    CHECK(!unlink(there(".weir/seal/d/x~")) && !rmdir(there(".weir/seal/d")));
    CHECK_EQ(t_load(".weir/seal/d/x~", 100, &data, &size), -ENOENT);
    CHECK(!mkdir(there(".weir/seal/d"), 0777));
    other_writes(".weir/seal/d/x~", "2");
    record_is(".weir/seal/d/x~", "2");
    CHECK(!unlink(there(".weir/seal/d/x~")) && !rmdir(there(".weir/seal/d")));
    OK(t_put(".weir/seal/d/y~", "3", 1)); /* it is made again */
    CHECK(is_there(".weir/seal/d/y~"));
    CHECK(!unlink(there(".weir/seal/d/y~")) && !rmdir(there(".weir/seal/d")) &&
          !mkdir(there(".weir/seal/d"), 0777));
    OK(t_put(".weir/seal/d/z~", "4", 1)); /* or found */
    CHECK(is_there(".weir/seal/d/z~"));
    end();
}

static void removed_while_open(void)
{
    struct weir_handle *handle;
    char buf[10];
    size_t got;
    begin();
    blob_make(".weir/data/b~x", 10, 1);
    OK(t_open(".weir/data/b~x", &handle, NULL));
    CHECK(!unlink(there(".weir/data/b~x")));
    CHECK_EQ(t_read(handle, buf, 10, 0, &got), -ESTALE);
    CHECK(strstr(weir_fail_last(), "another machine"));
    weir_handle_close(handle);
    /* Mapped, it would have killed us. */
    struct weir_req req;
    blob_make(".weir/data/c~x", 10, 1);
    OK(t_open(".weir/data/c~x", &handle, NULL));
    weir_req_init(&req, WEIR_OP_MAP);
    req.handle = handle;
    req.len = 10;
    CHECK_EQ(call(&req), -ENOTSUP);
    weir_handle_close(handle);
    end();
}

static void a_store_that_went(void)
{
    void *data;
    size_t size;
    begin();
    tree_remove(root);
    CHECK_EQ(t_load(".weir/seal/a~", 100, &data, &size), -ESTALE);
    CHECK(strstr(weir_fail_last(), "open the store again"));
    end();
}

/* ---- lost answers ---- */

static void lost_links(void)
{
    begin();
    nfs_client.lose_links = 1;
    OK(t_put(".weir/seal/a~", "mine", 4));
    CHECK_EQ(t_put(".weir/seal/a~", "other", 5), -EEXIST);
    record_is(".weir/seal/a~", "mine");
    blob_make(".weir/data/a~x", 100000, 1);
    blob_is(".weir/data/a~x", 100000, 1);
    OK(t_alias("a", ".weir/data/a~x", NULL, NULL, 0));
    blob_is("a", 100000, 1);
    end();
}

static void lost_removals(void)
{
    begin();
    OK(t_put(".weir/seal/a~", "mine", 4));
    nfs_client.lose_unlinks = 1;
    OK(t_remove_if(".weir/seal/a~", "mine", 4));
    CHECK(!is_there(".weir/seal/a~"));
    CHECK_EQ(t_remove_if(".weir/seal/a~", "mine", 4), -ENOENT);
    nfs_client.lose_unlinks = 0;
    /* One that others replaced is not what was compared. */
    OK(t_put(".weir/seal/a~", "mine", 4));
    CHECK(!unlink(there(".weir/seal/a~")));
    other_writes(".weir/seal/a~", "theirs");
    CHECK_EQ(t_remove_if(".weir/seal/a~", "mine", 4), -ESTALE);
    record_is(".weir/seal/a~", "theirs");
    end();
}

static void lost_creates(void)
{
    begin();
    nfs_client.lose_creates = 2;
    for (int i = 0; i < 8; i++)
        OK(t_put(fresh(".weir/seal/", "~"), "1", 1));
    end();
}

/* ---- silly names ---- */

#define SILLY ".nfs0123456789abcdef01234567"

static void note_silly(void *arg, char type, const char *name)
{
    (void)type;
    *(bool *)arg |= !strncmp(name, ".nfs", 4);
}

static void silly_names(void)
{
    struct weir_handle *handle;
    struct weir_req req;
    bool shown = false;
    char buf[10];
    size_t got;
    begin();
    blob_make(".weir/data/d/b~x", 10, 1);
    blob_make("plain/b", 10, 1);
    OK(t_open(".weir/data/d/b~x", &handle, NULL));
    OK(t_remove(".weir/data/d/b~x", NULL, false));
    CHECK_EQ(nfs_client.silly, 1);
    OK(t_read(handle, buf, 10, 0, &got)); /* the client keeps it */
    CHECK_EQ(got, 10);
    other_writes("plain/" SILLY, "");
    OK(t_list(".weir/data/d/", 100, note_silly, &shown));
    OK(t_list("plain/", 100, note_silly, &shown));
    CHECK(!shown);
    /* The machine that had one open died. */
    other_writes(".weir/data/d/" SILLY, "");
    weir_handle_close(handle);
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = ".weir/data/d/";
    req.stat.time_ns = INT64_MAX;
    OK(call(&req));
    CHECK(!is_there(".weir/data/d"));
    CHECK(is_there("plain/" SILLY)); /* what is people's is not ours to remove */
    end();
}

/* One of ours that is still open cannot go; that stops nothing. */
static void silly_temporaries(void)
{
    struct weir_handle *sink;
    struct weir_req req;
    begin();
    OK(t_create(".weir/data/x~x", 0, true, &sink));
    OK(t_write(sink, "x", 1, 0, false));
    for (int i = 0; i < 2; i++) {
        weir_req_init(&req, WEIR_OP_SWEEP);
        OK(call(&req));
        CHECK_EQ(req.result, i == 0);
        CHECK_EQ(req.len, i == 1);
    }
    CHECK_EQ(t_commit(sink, 1, NULL), -ESTALE);
    CHECK(strstr(weir_fail_last(), "collected"));
    weir_handle_close(sink);
    weir_req_init(&req, WEIR_OP_SWEEP);
    OK(call(&req));
    CHECK_EQ(req.result + req.len, 0);
    end();
}

/* What was published leaves nothing silly on its way. */
static void no_silly_names(void)
{
    begin();
    OK(t_put(".weir/seal/a~", "1", 1));
    blob_make(".weir/data/a~x", 1000000, 1);
    OK(t_remove_if(".weir/seal/a~", "1", 1));
    OK(t_remove(".weir/data/a~x", NULL, false));
    CHECK_EQ(nfs_client.silly, 0);
    end();
}

/* ---- what is not there ---- */

static void no_locks(void)
{
    struct weir_req req;
    begin();
    OK(t_put(".weir/seal/a~", "1", 1));
    nfs_client.no_locks = true;
    CHECK_EQ(t_remove_if(".weir/seal/a~", "1", 1), -ENOLCK);
    CHECK(strstr(weir_fail_last(), "rpc.statd"));
    record_is(".weir/seal/a~", "1");
    weir_req_init(&req, WEIR_OP_LEASE);
    req.name = ".weir/lease/a~";
    CHECK_EQ(call(&req), -ENOTSUP);
    end();
}

static void no_links(void)
{
    nfs_client = (struct nfs_client){.no_links = true};
    CHECK_EQ(try_open(), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "hard links"));
    nfs_client = (struct nfs_client){.soft_links = true};
    CHECK_EQ(try_open(), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "hard links"));
}

static int full_fdatasync(int fd)
{
    (void)fd;
    return -EDQUOT;
}

/* A server that is full says so only when it is asked to keep what was written. */
static void late_errors(void)
{
    static struct weir_sys table;
    struct weir_handle *sink;
    begin();
    const struct weir_sys *was = weir_sys;
    table = *was;
    table.fdatasync = full_fdatasync;
    weir_sys = &table;
    CHECK_EQ(t_put(".weir/seal/a~", "1", 1), -EDQUOT);
    OK(t_create(".weir/data/a~x", 0, true, &sink));
    OK(t_write(sink, "x", 1, 0, false));
    CHECK_EQ(t_commit(sink, 1, NULL), -EDQUOT);
    weir_handle_close(sink);
    CHECK(!is_there(".weir/seal/a~") && !is_there(".weir/data/a~x"));
    weir_sys = was;
    end();
}

int main(void)
{
    struct weir_io_options opts = {"threads", 4, 16 << 20};
    nfs_client_arm();
    OK(weir_io_open(&io, &opts));
    RUN(new_names);
    RUN(new_directories);
    RUN(stale_directories);
    RUN(removed_while_open);
    RUN(a_store_that_went);
    RUN(lost_links);
    RUN(lost_removals);
    RUN(lost_creates);
    RUN(silly_names);
    RUN(silly_temporaries);
    RUN(no_silly_names);
    RUN(no_locks);
    RUN(no_links);
    RUN(late_errors);
    weir_io_close(io);
    return TEST_RESULT;
}
