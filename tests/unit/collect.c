/* gc of saves while others commit: what is acknowledged at any moment of a gc stays. Another
 * process is a second handle whose calls run inside one of gc's system calls.
 */
#include "stores.h"

#include "store/view.h"
#include "util/sys.h"

static const char *dir;
static weir_store *store, *other;
static struct weir_ledger *ledger, *theirs;
static uint64_t attempt;

/* ---- a system call that others overtake ---- */

static struct weir_sys table;
static void (*meanwhile)(void);
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

/* ---- saves ---- */

static struct weir_save save_of(const char *name, uint64_t number, uint32_t parts)
{
    struct weir_save save = {.attempt = attempt, .number = number, .parts = parts};
    snprintf(save.name, sizeof save.name, "%s", name);
    return save;
}

static int put_part(weir_store *in, struct weir_ledger *to, const struct weir_save *save,
                    uint32_t part, bool *committed)
{
    struct weir_ref ref = {.kind = WEIR_REF_OBJECT};
    char prefix[WEIR_KEY_BYTES_MAX + 1], key[2 * WEIR_KEY_BYTES_MAX];
    struct weir_set *set;
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.flags = WEIR_PUT_OF_SAVE;
    weir_ledger_prefix(to, save, prefix);
    snprintf(ref.name, sizeof ref.name, "rank-%u", part);
    snprintf(key, sizeof key, "%s/%s", prefix, ref.name);
    OK(weir_put_open(&put, in, key, &opts));
    OK(weir_put_write(put, ref.name, strlen(ref.name)));
    OK(weir_put_commit(put, NULL));
    weir_put_digest(put, ref.digest);
    weir_put_close(put);
    OK(weir_set_open(&set, to, save));
    int code = weir_set_put(set, part, &ref, 1, NULL, 0, committed);
    weir_set_close(set);
    return code;
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
    straggled.code = put_part(other, theirs, &save, 1, &straggled.committed);
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
        OK(put_part(store, ledger, &save, 0, &straggled.committed));
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

int main(void)
{
    dir = tmp_path("store");
    table = weir_sys_real;
    table.getdents = overtaken_getdents;
    weir_sys = &table;
    store = store_at(dir, "inline");
    other = store_at(dir, "inline");
    OK(weir_ledger_open(&ledger, store, "run"));
    OK(weir_ledger_open(&theirs, other, "run"));
    RUN(a_commit_during_gc_stays);
    weir_ledger_close(ledger);
    weir_ledger_close(theirs);
    weir_store_close(store);
    weir_store_close(other);
    return TEST_RESULT;
}
