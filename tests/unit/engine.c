/* Which engine is chosen, and that Weir works where io_uring is refused: by a replaced table, by
 * seccomp (as in containers), or for want of lockable memory.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/io.h"
#include "stores.h"
#include "util/sys.h"

static int opened(const char *engine, const char *want)
{
    struct weir_io *io = NULL;
    struct weir_io_options opts = {engine, 64, 64 << 20};
    int code = weir_io_open(&io, &opts);
    if (!code) {
        CHECK(!strcmp(weir_io_engine(io), want));
        weir_io_close(io);
    }
    return code;
}

static const char *child_dir;

/* Runs fn in a child of its own, whose limits and filters end with it. */
static void in_child(void (*fn)(void))
{
    child_dir = tmp_path("store");
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        fn();
        fflush(NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

static void engine_by_name(void)
{
    const char *best = weir_io_uring_fault() ? "threads" : "uring";
    unsetenv("WEIR_IO");
    OK(opened(NULL, best));
    OK(opened("threads", "threads"));
    OK(opened("inline", "inline"));
    setenv("WEIR_IO", "inline", 1);
    OK(opened(NULL, "inline"));
    OK(opened("threads", "threads")); /* what the caller asks for comes first */
    setenv("WEIR_IO", "", 1);
    OK(opened(NULL, best));
    setenv("WEIR_IO", "bogus", 1);
    CHECK_EQ(opened(NULL, ""), -EINVAL);
    CHECK(strstr(weir_fail_last(), "bogus"));
    CHECK(strstr(weir_fail_last(), "uring, threads or inline"));
    unsetenv("WEIR_IO");
    CHECK_EQ(opened("bogus", ""), -EINVAL);
}

static void bad_options(void)
{
    struct weir_io *io = NULL;
    struct weir_io_options opts = {"threads", 0, 64 << 20};
    CHECK_EQ(weir_io_open(&io, &opts), -EINVAL);
    opts.depth = 257;
    CHECK_EQ(weir_io_open(&io, &opts), -EINVAL);
    opts.depth = 1;
    opts.pool_bytes_max = 1;
    CHECK_EQ(weir_io_open(&io, &opts), -EINVAL);
    CHECK(!io);
}

/* Transfers of the ring would go past another table: under one, the ring is not offered. */
static void replaced_table(void)
{
    struct weir_sys table = weir_sys_real;
    weir_sys = &table;
    CHECK(weir_io_uring_fault() && strstr(weir_io_uring_fault(), "replaced"));
    OK(opened(NULL, "threads"));
    CHECK_EQ(opened("uring", ""), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "WEIR_IO=threads"));
    weir_sys = &weir_sys_real;
}

static int io_line(void *arg, const char *name, const char *value)
{
    if (!strcmp(name, "io"))
        snprintf(arg, 256, "%s", value);
    return 0;
}

/* The store works with this engine, large objects included. */
static void store_works(const char *engine)
{
    weir_store_info info;
    weir_store *store = store_at(child_dir, NULL);
    OK(weir_store_info_get(store, &info));
    CHECK(!strcmp(info.io, engine));
    put_seed(store, "large", 20 << 20, 1);
    char *path = data_path(store, child_dir, "large");
    file_drop_cache(path);
    free(path);
    get_seed(store, "large", 20 << 20, 1);
    put_seed(store, "small", 100, 2);
    get_seed(store, "small", 100, 2);
    weir_store_close(store);
}

/* io_uring_setup with at least `entries` entries answers `code`. */
static void refuse_rings(unsigned entries, unsigned code)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, entries, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void under_seccomp(void)
{
    char text[256] = "";
    refuse_rings(0, EPERM);
    CHECK(weir_io_uring_fault() && strstr(weir_io_uring_fault(), "not permitted"));
    OK(weir_describe(io_line, text));
    CHECK(strstr(text, "threads") && strstr(text, "not permitted"));
    CHECK_EQ(opened("uring", ""), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "not permitted"));
    store_works("threads");
}

static void refused_by_seccomp(void)
{
    in_child(under_seccomp);
}

/* A ring of two entries can be had, one of the size that is needed cannot. */
static void under_seccomp_large(void)
{
    refuse_rings(16, ENOMEM);
    CHECK_EQ(opened("uring", ""), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "memory"));
    store_works("threads");
}

static void large_ring_refused(void)
{
    in_child(under_seccomp_large);
}

/* The ring works although neither buffers nor files can be registered. */
static void without_lockable_memory(void)
{
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    if (geteuid() == 0) /* who may lock all memory has no limit */
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    store_works(weir_io_uring_fault() ? "threads" : "uring");
}

static void little_lockable_memory(void)
{
    CHECK(chmod(tmpdir(), 0777) == 0);
    in_child(without_lockable_memory);
}

int main(void)
{
    unsetenv("WEIR_IO");
    tmpdir();
    RUN(engine_by_name);
    RUN(bad_options);
    RUN(replaced_table);
    RUN(refused_by_seccomp);
    RUN(large_ring_refused);
    RUN(little_lockable_memory);
    return TEST_RESULT;
}
