/* gc of saves while others commit: what is acknowledged at any moment of a gc stays. Another
 * process is a second handle whose calls run inside one of gc's system calls.
 */
#include <fcntl.h>
#include <sys/file.h>

#include "saves.h"

#include "store/view.h"
#include "util/sys.h"

static const char *dir;
static weir_store *store, *other;
static struct weir_ledger *ledger, *theirs;
static uint64_t attempt;

/* ---- a system call that others overtake ---- */

static struct weir_sys table;
static void (*meanwhile)(void), (*meanwhile_stat)(void);
static unsigned countdown;

static ssize_t overtaken_getdents(int fd, void *buf, size_t size)
{
    void (*fn)(void) = meanwhile;
    if (fn && countdown-- == 0) {
        meanwhile = NULL;
        fn();
    }
    return weir_sys_real.getdents(fd, buf, size);
}

static int overtaken_stat(int dirfd, const char *path, struct weir_sys_stat *st)
{
    int code = weir_sys_real.stat(dirfd, path, st);
    void (*fn)(void) = meanwhile_stat;
    if (fn && countdown-- == 0) {
        meanwhile_stat = NULL;
        fn();
    }
    return code;
}

/* Temporary files that gc sweeps away just before they are linked. */
static unsigned swept_links;

static int swept_link(int olddir, const char *old, int newdir, const char *name)
{
    if (swept_links && swept_links--)
        CHECK(weir_sys_real.unlink(olddir, old, false) == 0);
    return weir_sys_real.link(olddir, old, newdir, name);
}

/* ---- saves ---- */

static struct weir_save save_of(const char *name, uint64_t number, uint32_t parts)
{
    struct weir_save save = {.attempt = attempt, .number = number, .parts = parts};
    snprintf(save.name, sizeof save.name, "%s", name);
    return save;
}

static void reads_well(const char *name)
{
    struct weir_view *view;
    OK(weir_view_open(&view, ledger, name));
    for (uint32_t i = 0; i < weir_view_entry(view)->save.parts; i++) {
        struct weir_part part;
        struct weir_ref ref;
        weir_object *obj;
        char text[32] = "";
        size_t got;
        OK(weir_view_part(view, i, &part));
        const uint8_t *at = part.refs_at;
        weir_part_ref(&ref, &at);
        OK(weir_view_object(view, &ref, &obj));
        OK(weir_object_read(obj, text, sizeof text, 0, &got));
        CHECK(!strcmp(text, ref.name));
        weir_object_close(obj);
    }
    weir_view_close(view);
}

/* ---- a straggler completes a save that gc took for abandoned ---- */

static struct {
    int code;
    bool committed;
} straggled;

static void straggle(void)
{
    struct weir_save save = save_of("late", 7, 2);
    straggled.code = save_part(other, theirs, &save, 1, "", &straggled.committed);
}

static int age_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    (void)st, (void)where;
    if (type == FTW_F)
        CHECK(utimensat(AT_FDCWD, path, old, 0) == 0);
    return 0;
}

static bool is_any(void *arg, const struct weir_ledger_entry *entry)
{
    (void)arg, (void)entry;
    return true;
}

/* A new incarnation, and nothing left of those before. */
static void begin_anew(unsigned number)
{
    uint8_t token[WEIR_TOKEN_BYTES] = {1, (uint8_t)number, (uint8_t)(number >> 8)};
    size_t count;
    OK(weir_ledger_join(ledger, token, &attempt));
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count));
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK_EQ(tree_files(path_in(dir, ".weir/set")), 0);
}

/* At every moment of the gc at which it looks into a directory: either the commit came first and
 * all of the save stays, or the straggler is refused. */
static void a_commit_during_gc_stays(void)
{
    unsigned moments = 0, stayed = 0;
    for (;; moments++) {
        begin_anew(moments);
        struct weir_save save = save_of("late", 7, 2);
        OK(save_part(store, ledger, &save, 0, "", &straggled.committed));
        CHECK(!straggled.committed);
        nftw(dir, age_one, 16, FTW_PHYS);
        countdown = moments;
        meanwhile = straggle;
        OK(weir_gc(store, 0, NULL, NULL, NULL));
        if (meanwhile)
            break; /* gc was done before */
        struct weir_set *set;
        OK(weir_set_open(&set, ledger, &save));
        int code = weir_set_finish(set);
        weir_set_close(set);
        if (straggled.committed) {
            OK(straggled.code);
            OK(code);
            reads_well("late");
            stayed++;
        } else {
            CHECK(code == -ESTALE || code == -EAGAIN); /* given up, or part 0 is gone */
        }
    }
    meanwhile = NULL;
    printf("at %u of %u moments the commit came first\n", stayed, moments);
    CHECK(stayed > 3 && stayed < moments);
}

/* ---- gc gives a save up that somebody is about to finish ---- */

static void collect_now(void)
{
    OK(weir_gc(other, WEIR_GC_NOW, NULL, NULL, NULL));
}

/* All parts of four are there, and nobody has joined the last two. */
static void make_stuck(const struct weir_save *save)
{
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX], *bytes;
    char name[WEIR_NAME_BYTES_MAX], text[WEIR_SAVE_TEXT_BYTES];
    enum weir_doubt doubt;
    size_t size, bytes_size;
    bool committed;
    for (uint32_t i = 0; i < 3; i++)
        OK(save_part(store, ledger, save, i, "", &committed));
    OK(weir_part_encode(payload, &size, NULL, 0, NULL, 0));
    OK(weir_node_leaf(4, 3, payload, size, &bytes, &bytes_size));
    weir_save_text(text, save);
    snprintf(name, sizeof name, "%srun/%s~/0.3", WEIR_DIR_SET, text);
    OK(weir_record_put(store, name, bytes, bytes_size, 0, &doubt));
    free(bytes);
}

/* At every moment at which it looks for something: it is refused, or committed before. */
static void a_finish_during_gc_is_told(void)
{
    unsigned moments = 0, refused = 0;
    for (;; moments++) {
        begin_anew(1000 + moments);
        struct weir_save save = save_of("stuck", 3, 4);
        struct weir_set *set;
        make_stuck(&save);
        OK(weir_set_open(&set, ledger, &save));
        countdown = moments;
        meanwhile_stat = collect_now;
        int code = weir_set_finish(set);
        weir_set_close(set);
        if (meanwhile_stat)
            break;
        CHECK(code == 0 || code == -ESTALE || code == -EAGAIN);
        refused += code != 0;
    }
    meanwhile_stat = NULL;
    printf("at %u of %u moments it was refused\n", refused, moments);
    CHECK(refused > 2);
}

/* Directories that crashed writers left go with their saves. */
static void no_directories_stay(void)
{
    begin_anew(3000);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    OK(mkdir(path_in(dir, ".weir/set/run"), 0777) && errno != EEXIST);
    OK(mkdir(path_in(dir, ".weir/set/run/dead-1.1~"), 0777));
    OK(mkdir(path_in(dir, ".weir/lease/run"), 0777) && errno != EEXIST);
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    OK(utimensat(AT_FDCWD, path_in(dir, ".weir/set/run/dead-1.1~"), old, 0));
    OK(utimensat(AT_FDCWD, path_in(dir, ".weir/lease/run"), old, 0));
    weir_gc_result result;
    OK(weir_gc(store, 0, &result, NULL, NULL));
    CHECK_EQ(result.saves, 0); /* it was none */
    CHECK(!path_there(path_in(dir, ".weir/set/run/dead-1.1~")));
    CHECK(!path_there(path_in(dir, ".weir/lease/run")));
}

/* Whoever slept while gc swept his temporary file away does it again: -ESTALE would tell him that
 * his attempt is over. */
static void a_swept_record_is_put_again(void)
{
    struct weir_save save = save_of("swept", 1, 1);
    bool committed;
    begin_anew(4000);
    save.attempt = attempt;
    struct weir_set *set;
    OK(weir_set_open(&set, ledger, &save));
    swept_links = 1;
    OK(weir_set_put(set, 0, NULL, 0, NULL, 0, &committed)); /* a node */
    CHECK(committed && !swept_links);
    weir_set_close(set);
    swept_links = 1;
    OK(weir_ledger_give_up(ledger, attempt, 5)); /* a record of the log */
    CHECK(!swept_links);
    swept_links = 1000; /* but not for ever */
    CHECK_EQ(weir_ledger_give_up(ledger, attempt, 6), -EBUSY);
    swept_links = 0;
}

/* A record that is missing hides those behind it from the search for the head: what they commit
 * must not be taken for abandoned. */
static void a_hole_in_the_log_protects(void)
{
    struct weir_ledger *damaged;
    bool committed;
    char path[2 * PATH_MAX], aside[2 * PATH_MAX + 8];
    begin_anew(5000);
    OK(weir_ledger_open(&damaged, store, "holes"));
    uint8_t token[WEIR_TOKEN_BYTES] = {9};
    OK(weir_ledger_join(damaged, token, &attempt));
    for (uint64_t i = 1; i <= 4; i++) {
        struct weir_save save = save_of("s", i, 1);
        OK(save_part(store, damaged, &save, 0, "", &committed));
        CHECK(committed);
    }
    unsigned files = tree_files(dir);
    snprintf(path, sizeof path, "%s", path_in(dir, ".weir/log/holes~/00000000000000000003"));
    snprintf(aside, sizeof aside, "%s.aside", dir);
    CHECK(rename(path, aside) == 0);
    CHECK_EQ(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL), -EBADMSG);
    CHECK(strstr(weir_error_text(), "record 3"));
    CHECK_EQ(tree_files(dir), files - 1);
    CHECK(rename(aside, path) == 0);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK_EQ(tree_files(dir), files);
    weir_ledger_close(damaged);
}

/* ---- somebody stands still with the store's lock ---- */

static unsigned sleeps;

static void count_sleeps(uint64_t ns)
{
    (void)ns;
    sleeps++;
}

/* So many saves are to go, and none can: how often that was waited for. */
static unsigned waits_of(unsigned saves)
{
    size_t count;
    for (unsigned i = 0; i < saves; i++) {
        struct weir_save save = save_of("retired", i + 1, 1);
        bool committed;
        OK(save_part(store, ledger, &save, 0, "", &committed));
        CHECK(committed);
    }
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count));
    CHECK_EQ(count, saves);
    int lock = open(path_in(dir, ".weir/lock"), O_RDWR);
    CHECK(lock >= 0 && !flock(lock, LOCK_EX));
    sleeps = 0;
    table.sleep_ns = count_sleeps;
    OK(weir_ledger_collect(store, "run", 0, NULL));
    table.sleep_ns = weir_sys_real.sleep_ns;
    close(lock);
    unsigned files = tree_files(path_in(dir, ".weir/seal"));
    CHECK(files >= saves);
    OK(weir_ledger_collect(store, "run", 0, NULL));
    CHECK(tree_files(path_in(dir, ".weir/seal")) <= files - saves);
    return sleeps;
}

/* A trainer that saves would wait for each of them, each time. */
static void a_lock_that_is_held_is_waited_for_once(void)
{
    begin_anew(7000);
    unsigned one = waits_of(1);
    begin_anew(7001);
    unsigned three = waits_of(3);
    CHECK(one > 0 && three < 2 * one);
}

int main(void)
{
    dir = tmp_path("store");
    table = weir_sys_real;
    table.getdents = overtaken_getdents;
    table.stat = overtaken_stat;
    table.link = swept_link;
    weir_sys = &table;
    store = store_at(dir, "inline");
    other = store_at(dir, "inline");
    OK(weir_ledger_open(&ledger, store, "run"));
    OK(weir_ledger_open(&theirs, other, "run"));
    RUN(a_commit_during_gc_stays);
    RUN(a_finish_during_gc_is_told);
    RUN(no_directories_stay);
    RUN(a_swept_record_is_put_again);
    RUN(a_lock_that_is_held_is_waited_for_once);
    RUN(a_hole_in_the_log_protects);
    weir_ledger_close(ledger);
    weir_ledger_close(theirs);
    weir_store_close(store);
    weir_store_close(other);
    return TEST_RESULT;
}
