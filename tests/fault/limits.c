/* limits.c - a process that may have few descriptors, no threads, no locked memory, only small
 * files or little memory: it works more slowly or fails with a clear text, it does not crash, and
 * the store stays whole. Each case runs in a process of its own, the limits are its own.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "content.h"
#include "disk.h"
#include "history.h"
#include "io/io.h"
#include "place.h"
#include "proc.h"
#include "test.h"

enum {
    HANG_MS = 300000,
    DESCRIPTORS = 20, /* with this many more than it has, a process can do everything */
    SMALL = 5000,
    MIDDLE = (3 << 20) + 777,
    LARGE = 24 << 20,
};

static struct {
    char root[PLACE_ROOM];
    struct history history;
    unsigned failed, done;
    char text[512]; /* of the last failure */
} *t;

struct limit {
    const char *engine;
    int resource;
    uint64_t value;
    bool as_nobody, all_must_work;
    int allowed[3]; /* what a failure may be */
};

/* ---- in the limited process ---- */

static const struct limit *limit;

/* Notes an answer, which must be 0 or one of those that the limit explains. */
static int note(const char *what, int code)
{
    bool ok = code == 0 || code == -WEIR_EUNKNOWN;
    for (int i = 0; i < 3 && limit->allowed[i]; i++)
        ok |= code == -limit->allowed[i];
    if (!ok || (code && limit->all_must_work) || (code && !*weir_error_text()))
        printf("%s, limit %llu: %s: %d (%s): %s\n", limit->engine ? limit->engine : "default",
               (unsigned long long)limit->value, what, code, code ? strerrorname_np(-code) : "",
               weir_error_text());
    CHECK(ok && (!code || (!limit->all_must_work && *weir_error_text())));
    t->done += !code;
    t->failed += code != 0;
    if (code)
        snprintf(t->text, sizeof t->text, "%s", weir_error_text());
    return code;
}

static void put(weir_store *store, const char *key, uint64_t size, unsigned how)
{
    struct content what = {mix(size, limit->value) ^ how, size};
    note(key, history_put(&t->history, 0, store, key, what, how));
}

static int list(weir_store *store)
{
    weir_list *list;
    const weir_entry *entry;
    int code = weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE);
    if (code)
        return code;
    while ((code = weir_list_next(list, &entry)) == 1)
        ;
    weir_list_close(list);
    return code;
}

static void work(weir_store *store)
{
    put(store, "new/small", SMALL, 0);
    put(store, "new/middle", MIDDLE, CONTENT_HINT);
    put(store, "new/large", LARGE, CONTENT_IN_PLACE);
    note("get", history_get(&t->history, 0, store, "old/middle"));
    note("get", history_get(&t->history, 0, store, "old/large"));
    note("remove", history_remove(&t->history, 0, store, "old/gone"));
    note("list", list(store));
    note("gc", weir_gc(store, 0, NULL, NULL, NULL));
}

static int limited_main(void *arg)
{
    struct rlimit rlimit;
    weir_store_options opts;
    weir_store *store = NULL;
    limit = arg;
    if (limit->as_nobody)
        CHECK(proc_drop_root());
    signal(SIGXFSZ, SIG_IGN);
    rlimit.rlim_cur = rlimit.rlim_max = limit->value;
    CHECK(setrlimit(limit->resource, &rlimit) == 0);
    weir_store_options_init(&opts);
    opts.io = limit->engine;
    if (note("open", weir_store_open(&store, t->root, &opts)) == 0)
        work(store);
    weir_store_close(store);
    fflush(stdout);
    _exit(0); /* a leak checker would start threads now */
}

/* ---- around it ---- */

static const struct content old_middle = {1, MIDDLE}, old_large = {2, LARGE}, old_gone = {3, SMALL};

static int prepare_main(void *arg)
{
    (void)arg;
    weir_store *store = store_must_open(t->root, NULL, WEIR_STORE_CREATE, 0);
    OK(content_put(store, "old/middle", old_middle, 0));
    OK(content_put(store, "old/large", old_large, CONTENT_HINT));
    OK(content_put(store, "old/gone", old_gone, 0));
    weir_store_close(store);
    return 0;
}

static void check_key(const char *key, void *arg)
{
    struct content what;
    int code = content_get(&what, arg, key);
    CHECK(code == 0 || code == -ENOENT);
    CHECK(history_allows(&t->history, key, code ? NULL : &what));
}

/* The store as a process without limits finds it: whole, and free of debris after a gc. */
static int check_main(void *arg)
{
    (void)arg;
    weir_store *store = store_must_open(t->root, NULL, 0, 0);
    OK(content_expect(store, "old/middle", old_middle));
    OK(content_expect(store, "old/large", old_large));
    history_keys(&t->history, check_key, store);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK_EQ(disk_debris(store, t->root), 0);
    weir_store_close(store);
    return 0;
}

static void run_limited(const struct limit *limit)
{
    static unsigned number;
    snprintf(t->root, sizeof t->root, "%s/%u", place_temp(NULL), number++);
    history_reset(&t->history);
    t->failed = t->done = 0;
    t->text[0] = 0;
    CHECK_EQ(proc_run_ms(prepare_main, NULL, HANG_MS), 0);
    history_given(&t->history, HISTORY_PROCS - 1, "old/middle", old_middle);
    history_given(&t->history, HISTORY_PROCS - 1, "old/large", old_large);
    history_given(&t->history, HISTORY_PROCS - 1, "old/gone", old_gone);
    if (limit->as_nobody && !geteuid()) {
        const char *chown[] = {"chown", "-R", "65534:65534", place_last(), NULL};
        CHECK_EQ(tool_run(chown), 0);
    }
    CHECK_EQ(proc_run_ms(limited_main, (void *)limit, HANG_MS), 0);
    CHECK_EQ(proc_run_ms(check_main, NULL, HANG_MS), 0);
    place_drop_last();
}

static void run_and_print(const struct limit *limit)
{
    run_limited(limit);
    printf("  %s: %u worked, %u did not%s%s\n", limit->engine ? limit->engine : "by default",
           t->done, t->failed, *t->text ? "; the last: " : "", t->text);
}

static void each_engine(struct limit limit)
{
    for (uint64_t i = weir_io_uring_fault() ? 1 : 0; i < 2; i++) {
        limit.engine = engine_pick(i);
        run_and_print(&limit);
    }
}

static unsigned descriptors_open(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += dup2(fd, fd) == fd;
    return count;
}

static void few_descriptors(void)
{
    unsigned have = descriptors_open(), enough[2] = {0, 0};
    for (uint64_t engine = weir_io_uring_fault() ? 1 : 0; engine < 2; engine++)
        for (unsigned more = 0; more <= DESCRIPTORS; more++) {
            struct limit limit = {engine_pick(engine), RLIMIT_NOFILE, have + more, false,
                                  more == DESCRIPTORS, {EMFILE, ENOTSUP, 0}};
            run_limited(&limit);
            if (t->failed)
                enough[engine] = more + 1;
        }
    printf("  descriptors that are enough for everything: %u with uring, %u with threads\n",
           enough[0], enough[1]);
}

static void no_threads(void)
{
    each_engine((struct limit){NULL, RLIMIT_NPROC, 1, true, true, {0}});
}

/* A kernel may count rings as locked memory: who insists on one is told, others get threads. */
static void no_locked_memory(void)
{
    each_engine((struct limit){NULL, RLIMIT_MEMLOCK, 0, true, false, {ENOTSUP, 0}});
    run_and_print(&(struct limit){NULL, RLIMIT_MEMLOCK, 0, true, true, {0}});
}

static void small_files(void)
{
    each_engine((struct limit){NULL, RLIMIT_FSIZE, 4 << 20, false, false, {EFBIG, 0}});
    CHECK_EQ(t->failed, 1);
    CHECK(strstr(t->text, "new/large") && strstr(t->text, "too large"));
}

static int fits_main(void *arg)
{
    struct rlimit rlimit = {4 << 20, 4 << 20};
    weir_store *store = store_must_open(t->root, arg, WEIR_STORE_CREATE, 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &rlimit) == 0);
    OK(content_put(store, "fits", (struct content){9, MIDDLE}, 0));
    OK(content_expect(store, "fits", (struct content){9, MIDDLE}));
    weir_store_close(store);
    return 0;
}

/* SIGXFSZ kills: space taken ahead must not reach beyond the limit when the object does not. */
static void small_files_that_fit(void)
{
    snprintf(t->root, sizeof t->root, "%s/fits", place_temp(NULL));
    CHECK_EQ(proc_run_ms(fits_main, "threads", HANG_MS), 0);
}

static void little_memory(void)
{
#if defined(__SANITIZE_ADDRESS__)
    printf("  not with AddressSanitizer, whose own memory is not little\n");
#else
    for (uint64_t mib = 8; mib <= 128; mib *= 2)
        each_engine(
            (struct limit){NULL, RLIMIT_AS, mib << 20, false, false, {ENOMEM, ENOTSUP, 0}});
#endif
}

int main(void)
{
    t = shared_alloc(sizeof *t);
    RUN(few_descriptors);
    RUN(no_threads);
    RUN(no_locked_memory);
    RUN(small_files);
    RUN(small_files_that_fit);
    RUN(little_memory);
    return TEST_RESULT;
}
