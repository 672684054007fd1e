/* book.c - the log on the disk, and what the disk may hold afterwards: see saves.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "saves.h"
#include "sim.h"
#include "test.h"

#define LOG_PATH SIM_STORE "/" WEIR_DIR_LOG SIM_LEDGER "~"

static const struct sim_inode *record_at(uint64_t number)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%020llu", LOG_PATH, (unsigned long long)number);
    return sim_fs_at(sim.fs, path);
}

uint64_t sim_book_head(void)
{
    uint64_t head = 0;
    while (record_at(head + 1))
        head++;
    return head;
}

static void illegal(uint64_t number, const char *why)
{
    fprintf(stderr, "record %llu is no legal change: %s\n", (unsigned long long)number, why);
    exit(1);
}

/* What became of the entries that were there before: how many were retired, and forgotten. */
static void compare_old(const struct weir_ledger_state *a, const struct weir_ledger_state *b,
                        unsigned *retired, unsigned *forgotten)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct weir_ledger_entry *old = &a->entries[i],
                                       *now = weir_ledger_find_save(b, &old->save);
        if (!now) {
            if (!old->retired_ns)
                illegal(b->record.number, "a live entry is gone");
            if (old->save.attempt == b->attempt && b->floor < old->save.number)
                illegal(b->record.number, "a forgotten entry is above the floor");
            ++*forgotten;
            continue;
        }
        if (memcmp(now->root, old->root, sizeof now->root) || now->time_ns != old->time_ns ||
            now->save.parts != old->save.parts)
            illegal(b->record.number, "an entry changed");
        if (old->retired_ns && now->retired_ns != old->retired_ns)
            illegal(b->record.number, "a retired entry changed");
        *retired += now->retired_ns != old->retired_ns;
    }
}

/* How many entries are new; each must be allowed to. */
static unsigned compare_new(const struct weir_ledger_state *a, const struct weir_ledger_state *b)
{
    unsigned count = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct weir_save *save = &b->entries[i].save;
        const struct weir_save *last = i ? &b->entries[i - 1].save : NULL;
        if (last && (last->attempt > save->attempt ||
                     (last->attempt == save->attempt && last->number >= save->number)))
            illegal(b->record.number, "the entries are out of order");
        if (weir_ledger_find_save(a, save))
            continue;
        if (save->attempt != a->attempt)
            illegal(b->record.number, "a commit of an attempt that is over");
        if (save->number <= a->floor)
            illegal(b->record.number, "a commit of a save that was given up");
        if (b->entries[i].retired_ns)
            illegal(b->record.number, "an entry was retired before it was live");
        count++;
    }
    return count;
}

static bool join_is_legal(const struct weir_ledger_state *a, const struct weir_ledger_state *b)
{
    size_t past = a->attempt ? a->past_count + 1 : 0;
    if (b->attempt != b->record.number || b->floor || b->past_count != past ||
        (a->attempt && !memcmp(a->token, b->token, WEIR_TOKEN_BYTES)))
        return false;
    if (past && memcmp(b->past[0], a->token, WEIR_TOKEN_BYTES))
        return false;
    for (size_t i = 0; i < a->past_count; i++)
        if (memcmp(b->past[i + 1], a->past[i], WEIR_TOKEN_BYTES) ||
            !memcmp(a->past[i], b->token, WEIR_TOKEN_BYTES))
            return false;
    return true;
}

/* Is b what one change makes of a? */
static void check_step(const struct weir_ledger_state *a, const struct weir_ledger_state *b)
{
    unsigned retired = 0, forgotten = 0;
    bool joined = a->attempt != b->attempt;
    compare_old(a, b, &retired, &forgotten);
    unsigned committed = compare_new(a, b);
    if (joined && (!join_is_legal(a, b) || retired || forgotten || committed))
        illegal(b->record.number, "a join");
    if (!joined && memcmp(a->token, b->token, WEIR_TOKEN_BYTES))
        illegal(b->record.number, "another token without a join");
    if (!joined && b->floor < a->floor)
        illegal(b->record.number, "a lower floor");
    bool raised = !joined && b->floor > a->floor;
    if (joined + (committed > 0) + (retired > 0) + (forgotten > 0 || raised) != 1 || committed > 1)
        illegal(b->record.number, "not just one change");
}

static void read_state(struct weir_ledger_state *out, uint64_t number, const uint8_t *parent)
{
    const struct sim_inode *inode = record_at(number);
    struct weir_log_record record;
    CHECK(inode && number <= SIM_RECORDS_MAX);
    uint8_t *bytes = sim_alloc(inode->live->size);
    sim_image_read(inode->live, bytes, inode->live->size, 0);
    OK(weir_log_record_decode(&record, bytes, inode->live->size));
    CHECK_EQ(record.number, number);
    if (memcmp(record.parent, parent, WEIR_SHA256_BYTES))
        illegal(number, "it does not follow from the one before it");
    OK(weir_state_decode(out, record.state, record.state_size));
    record.state = NULL;
    out->record = record;
    free(bytes);
}

void sim_book_open(struct sim_book *book)
{
    const struct sim_inode *dir = sim_fs_at(sim.fs, LOG_PATH);
    *book = (struct sim_book){.head = sim_book_head()};
    if (dir && dir->names.count != book->head)
        illegal(book->head + 1, "it is missing, and there are more behind it");
    for (uint64_t i = 1; i <= book->head; i++) {
        read_state(&book->states[i], i, book->states[i - 1].record.digest);
        check_step(&book->states[i - 1], &book->states[i]);
    }
}

void sim_book_close(struct sim_book *book)
{
    for (uint64_t i = 1; i <= book->head; i++)
        weir_state_free(&book->states[i]);
    book->head = 0;
}

void sim_book_check_prefix(const struct sim_book *now, const struct sim_book *before)
{
    CHECK(now->head <= before->head);
    for (uint64_t i = 1; i <= now->head; i++)
        CHECK(!memcmp(now->states[i].record.digest, before->states[i].record.digest,
                      WEIR_SHA256_BYTES));
}

/* ---- afterwards ---- */

void sim_saves_check(weir_store *store, struct weir_ledger_state *head)
{
    static struct sim_book book;
    struct weir_ledger *ledger;
    uint64_t records;
    sim_files_check();
    sim_book_open(&book);
    OK(weir_ledger_open(&ledger, store, SIM_LEDGER));
    OK(weir_log_verify(weir_ledger_log(ledger), &records));
    CHECK_EQ(records, book.head);
    OK(weir_ledger_read(ledger, head));
    CHECK_EQ(head->record.number, book.head);
    for (size_t i = 0; i < head->count; i++)
        if (!head->entries[i].retired_ns)
            OK(sim_entry_read(ledger, &head->entries[i]));
    weir_ledger_close(ledger);
    sim_book_close(&book);
}

struct audit {
    const struct weir_ledger_state *head;
    const char *const *others;
};

static bool is_other(const struct audit *audit, const char *name)
{
    size_t size = strlen(name);
    for (const char *const *other = audit->others; *other; other++)
        if (strlen(*other) == size - 1 && !strncmp(*other, name, size - 1) && name[size - 1] == '~')
            return true;
    return false;
}

/* Of which save is "run/<save>/…" or "run/<save>~/…"? */
static bool save_of_name(struct weir_save *out, const char *name)
{
    static const char top[] = SIM_LEDGER "/";
    if (strncmp(name, top, strlen(top)))
        return false;
    const char *text = name + strlen(top);
    size_t size = strcspn(text, "/");
    return size && text[size] && weir_save_of_text(out, text, size - (text[size - 1] == '~'));
}

/* A name below .weir/seal/ or .weir/set/. */
static void audit_name(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    const struct audit *audit = arg;
    struct weir_save save;
    (void)ino;
    if (inode->type == SIM_DIR || is_other(audit, name))
        return;
    const struct weir_ledger_entry *entry =
        save_of_name(&save, name) ? weir_ledger_find_save(audit->head, &save) : NULL;
    if (entry && !entry->retired_ns)
        return;
    fprintf(stderr, "after gc, '%s' is left of a save that is not live\n", name);
    exit(1);
}

static void nothing_here(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    (void)ino, (void)inode;
    fprintf(stderr, "after gc, there still is '%s%s'\n", (const char *)arg, name);
    exit(1);
}

void sim_saves_collect(weir_store *store, const char *const *others)
{
    static struct sim_model none;
    struct weir_ledger *ledger;
    struct weir_ledger_state head;
    struct audit audit = {&head, others};
    none = (struct sim_model){.saves = true};
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    OK(weir_ledger_open(&ledger, store, SIM_LEDGER));
    OK(weir_ledger_read(ledger, &head));
    for (size_t i = 0; i < head.count; i++)
        CHECK(!head.entries[i].retired_ns);
    sim_fs_each(sim.fs, SIM_STORE "/" WEIR_DIR_SEAL, audit_name, &audit);
    sim_fs_each(sim.fs, SIM_STORE "/" WEIR_DIR_SET, audit_name, &audit);
    sim_fs_each(sim.fs, SIM_STORE "/" WEIR_DIR_LEASE, nothing_here, WEIR_DIR_LEASE);
    sim_model_audit(&none);
    weir_state_free(&head);
    weir_ledger_close(ledger);
}
