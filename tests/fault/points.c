/* points.c - a process is killed, or stopped for longer than the grace while others go on, just
 * before each system call in turn that changes something, on a real file system: every point of
 * every operation, where kill.c meets some by chance.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "content.h"
#include "disk.h"
#include "place.h"
#include "proc.h"
#include "test.h"
#include "util/sys.h"

enum {
    POINTS_MAX = 120, /* no operation makes more such calls */
    GRACE_S = 1,
    STOP_MS = 1300,
    HANG_MS = 300000,
    TRIES_MAX = 20,
    MIB = 1 << 20,
};

struct operation {
    const char *name, *key;
    int (*run)(weir_store *store);
    struct content before, after; /* what is at key; a seed of 0: nothing */
};

/* One process, and what came of it. */
struct point {
    const struct operation *op;
    unsigned number;
    int signal;
    char root[PLACE_ROOM];
    pid_t pid;
    atomic_int reached, done;
    int code;
    char text[256];
};

static struct point *points;

/* ---- the point, before a system call that changes something ---- */

static struct point *current;
static atomic_uint left; /* 0: not armed */

static int pass(void)
{
    unsigned had = atomic_load(&left);
    if (!had || atomic_fetch_sub(&left, 1) != 1)
        return 0;
    atomic_store(&current->reached, 1);
    kill(getpid(), current->signal);
    return 0;
}

/* ---- the operations ---- */

#define NOTHING                                                                                    \
    {                                                                                              \
        0, 0                                                                                       \
    }
#define OLD                                                                                        \
    {                                                                                              \
        1, 300000                                                                                  \
    }
#define SMALL                                                                                      \
    {                                                                                              \
        2, 5000                                                                                    \
    }
#define LARGE                                                                                      \
    {                                                                                              \
        3, 3 * MIB + 77                                                                            \
    }
static const struct content small = SMALL, large = LARGE, keep = {9, 140000};

static int put_small(weir_store *store)
{
    return content_put(store, "new/dir/x", small, 0);
}

static int put_large(weir_store *store)
{
    return content_put(store, "new/dir/x", large, 0);
}

static int remove_old(weir_store *store)
{
    return weir_remove(store, "old/dir/x");
}

static int replace_old(weir_store *store)
{
    int code = weir_remove(store, "old/dir/x");
    return code ? code : content_put(store, "old/dir/x", small, 0);
}

static int collect(weir_store *store)
{
    return weir_gc(store, 0, NULL, NULL, NULL);
}

static int collect_now(weir_store *store)
{
    return weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL);
}

static const struct operation operations[] = {
    {"put of a small object", "new/dir/x", put_small, NOTHING, SMALL},
    {"put of a larger object", "new/dir/x", put_large, NOTHING, LARGE},
    {"remove", "old/dir/x", remove_old, OLD, NOTHING},
    {"remove and put", "old/dir/x", replace_old, OLD, SMALL},
    {"gc", "old/dir/x", collect, OLD, OLD},
    {"gc now", "old/dir/x", collect_now, OLD, OLD},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- before ---- */

/* The grace is short here: on a busy machine any writer may be taken for dead, and writes again. */
static void put_patiently(weir_store *store, const char *key, struct content what)
{
    int code = -ESTALE;
    for (int tries = 0; tries < TRIES_MAX && code == -ESTALE; tries++)
        code = content_put(store, key, what, 0);
    CHECK_EQ(code, 0);
}

static void old_file(const char *root, const char *name)
{
    char path[2 * PLACE_ROOM];
    struct timespec times[2] = {{time(NULL) - 100, 0}, {time(NULL) - 100, 0}};
    snprintf(path, sizeof path, "%s/.weir/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    CHECK(fd >= 0 && write(fd, "debris", 6) == 6 && futimens(fd, times) == 0);
    close(fd);
}

static int prepare_main(void *arg)
{
    struct point *point = arg;
    char path[2 * PLACE_ROOM];
    weir_store *store = store_must_open(point->root, "threads", WEIR_STORE_CREATE, GRACE_S);
    put_patiently(store, "keep", keep);
    if (point->op->before.seed)
        put_patiently(store, point->op->key, point->op->before);
    weir_store_close(store);
    if (point->op->run != collect && point->op->run != collect_now)
        return 0;
    old_file(point->root, "data/lost~00112233445566778899aabbccddeeff");
    old_file(point->root, "data/keep~00112233445566778899aabbccddeeff");
    old_file(point->root, "tmp/00112233445566778899aabbccddeeff");
    snprintf(path, sizeof path, "%s/.weir/data/empty", point->root);
    CHECK(mkdir(path, 0777) == 0);
    snprintf(path, sizeof path, "%s/keep", point->root); /* a plain name to restore */
    CHECK(unlink(path) == 0);
    return 0;
}

static int point_main(void *arg)
{
    current = arg;
    calls_arm(pass);
    weir_store *store = store_must_open(current->root, "threads", 0, 0);
    atomic_store(&left, current->number);
    current->code = current->op->run(store);
    atomic_store(&left, 0);
    if (current->code)
        snprintf(current->text, sizeof current->text, "%s", weir_error_text());
    atomic_store(&current->done, 1);
    weir_store_close(store);
    return 0;
}

/* ---- after ---- */

static bool is(const struct content *expected, int code, struct content found)
{
    return expected->seed ? code == 0 && content_same(found, *expected) : code == -ENOENT;
}

/* What was answered holds; what was not may be either. */
static void check_state(struct point *point, weir_store *store)
{
    const struct operation *op = point->op;
    struct content found = NOTHING;
    int code = content_get(&found, store, op->key);
    bool before = is(&op->before, code, found);
    bool after = is(&op->after, code, found), between = op->run == replace_old && code == -ENOENT;
    bool done = atomic_load(&point->done);
    bool doubt = !done || point->code == -WEIR_EUNKNOWN;
    bool right = doubt ? before || after || between : point->code ? before || between : after;
    if (!right)
        printf("%s, stopped before call %u by signal %d: it answered %d; now get says %d, seed "
               "%llu\n",
               op->name, point->number, point->signal, done ? point->code : 1, code,
               (unsigned long long)found.seed);
    CHECK(right);
    OK(content_expect(store, "keep", keep));
}

static int check_main(void *arg)
{
    struct point *point = arg;
    struct content found;
    weir_store *store = store_must_open(point->root, NULL, WEIR_STORE_CREATE, GRACE_S);
    check_state(point, store);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    check_state(point, store);
    CHECK_EQ(disk_debris(store, point->root), 0);
    CHECK_EQ(disk_plain_missing(store, point->root), 0);
    /* And the key can be used. */
    if (content_get(&found, store, point->op->key) == 0)
        OK(weir_remove(store, point->op->key));
    put_patiently(store, point->op->key, large);
    OK(content_expect(store, point->op->key, large));
    weir_store_close(store);
    return 0;
}

/* ---- the points ---- */

static struct point *point_new(const struct operation *op, unsigned number, int signal)
{
    struct point *point = &points[number];
    *point = (struct point){.op = op, .number = number, .signal = signal};
    snprintf(point->root, sizeof point->root, "%s/%u", place_last(), number);
    CHECK_EQ(proc_run_ms(prepare_main, point, HANG_MS), 0);
    return point;
}

static void point_check(struct point *point)
{
    CHECK_EQ(proc_run_ms(check_main, point, HANG_MS), 0);
    disk_remove(point->root);
}

static void killed_at_each_call(void)
{
    place_temp(place_memory());
    for (unsigned i = 0; i < OPERATIONS; i++) {
        unsigned number = 0;
        bool more = true;
        while (more) {
            CHECK(++number < POINTS_MAX);
            struct point *point = point_new(&operations[i], number, SIGKILL);
            int answer = proc_run_ms(point_main, point, HANG_MS);
            more = atomic_load(&point->reached);
            CHECK_EQ(answer, more ? 128 + SIGKILL : 0);
            point_check(point);
        }
        printf("  %s: killed before each of %u calls\n", operations[i].name, number - 1);
    }
    place_drop_last();
}

/* Waits until it stops or ends; true if it stopped. */
static bool has_stopped(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK(WIFSTOPPED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)));
    return WIFSTOPPED(status);
}

/* While one stands still, others write, and collect what they take for debris. */
static int others_main(void *arg)
{
    struct point *point = arg;
    weir_store *store = store_must_open(point->root, "threads", 0, 0);
    OK(weir_gc(store, 0, NULL, NULL, NULL));
    put_patiently(store, "others/x", small);
    OK(content_expect(store, "others/x", small));
    OK(content_expect(store, "keep", keep));
    OK(weir_gc(store, 0, NULL, NULL, NULL));
    weir_store_close(store);
    return 0;
}

static unsigned stop_at_each_call(const struct operation *op)
{
    unsigned number = 0, failed = 0;
    bool more = true;
    while (more) { /* all of them stand still at the same time */
        CHECK(++number < POINTS_MAX);
        struct point *point = point_new(op, number, SIGSTOP);
        point->pid = proc_start(point_main, point);
        more = has_stopped(point->pid);
    }
    sleep_ms(STOP_MS);
    for (unsigned i = 1; i < number; i++) {
        CHECK_EQ(proc_run_ms(others_main, &points[i], HANG_MS), 0);
        kill(points[i].pid, SIGCONT);
        CHECK_EQ(proc_wait_ms(points[i].pid, HANG_MS), 0);
        int code = points[i].code;
        if (code && code != -ESTALE && code != -EAGAIN)
            printf("%s, call %u: %d: %s\n", op->name, i, code, points[i].text);
        CHECK(!code || code == -ESTALE || code == -EAGAIN);
        failed += code != 0;
    }
    for (unsigned i = 1; i <= number; i++)
        point_check(&points[i]);
    printf("  %s: stopped before each of %u calls; %u were refused afterwards\n", op->name,
           number - 1, failed);
    return failed;
}

static void stopped_at_each_call(void)
{
    unsigned failed = 0;
    place_temp(place_memory());
    for (unsigned i = 0; i < OPERATIONS; i++)
        if (operations[i].run != collect_now) /* who says "now" says that nobody writes */
            failed += stop_at_each_call(&operations[i]);
    CHECK(failed); /* the writers that gc took for dead */
    place_drop_last();
}

int main(void)
{
    points = shared_alloc(POINTS_MAX * sizeof *points);
    RUN(killed_at_each_call);
    RUN(stopped_at_each_call);
    return TEST_RESULT;
}
