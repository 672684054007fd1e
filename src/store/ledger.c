/* ledger.c - see ledger.h. Every change is the same loop: read the head, decide, append; whoever
 * was overtaken reads again.
 */
#include "store/ledger.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

enum {
    TRIES_MAX = 10000, /* each failed one is somebody else's success */
    DAMAGED_MAX = 16,  /* records from the newest on that are passed over: each costs a listing */
};

/* The longest "/<save>/<object>" that a prefix must leave room for in a key. */
enum { NAME_BYTES_MAX = WEIR_KEY_BYTES_MAX - WEIR_SAVE_TEXT_BYTES - 256 };

struct weir_ledger {
    weir_store *store;
    struct weir_log *log;
};

int weir_ledger_open(struct weir_ledger **out, weir_store *store, const char *name)
{
    if (strlen(name) > NAME_BYTES_MAX)
        return weir_fail(ENAMETOOLONG, "the name of a ledger has %zu bytes, the limit is %d",
                         strlen(name), NAME_BYTES_MAX);
    struct weir_ledger *ledger = weir_alloc(sizeof *ledger);
    if (!ledger)
        return weir_fail_memory();
    ledger->store = store;
    int code = weir_log_open(&ledger->log, store, name);
    if (code)
        free(ledger);
    else
        *out = ledger;
    return code;
}

void weir_ledger_close(struct weir_ledger *ledger)
{
    if (!ledger)
        return;
    weir_log_close(ledger->log);
    free(ledger);
}

struct weir_log *weir_ledger_log(struct weir_ledger *ledger)
{
    return ledger->log;
}

weir_store *weir_ledger_store(struct weir_ledger *ledger)
{
    return ledger->store;
}

const char *weir_ledger_name(const struct weir_ledger *ledger)
{
    return weir_log_name(ledger->log);
}

void weir_ledger_prefix(const struct weir_ledger *ledger, const struct weir_save *save,
                        char out[WEIR_KEY_BYTES_MAX + 1])
{
    char text[WEIR_SAVE_TEXT_BYTES];
    weir_save_text(text, save);
    int size = snprintf(out, WEIR_KEY_BYTES_MAX + 1, "%s/%s", weir_ledger_name(ledger), text);
    assert(size <= WEIR_KEY_BYTES_MAX);
}

/* The ledger to which that file below WEIR_DIR_LOG belongs, if it is a record of one. Any of them:
 * a log of which the first is missing is a damaged one. */
static bool ledger_of(char out[WEIR_NAME_BYTES_MAX], const char *name)
{
    char dir[WEIR_NAME_BYTES_MAX];
    uint64_t number;
    const char *slash = strrchr(name, '/');
    if (!slash || !weir_log_record_number(slash + 1, &number))
        return false;
    size_t size = (size_t)(slash - name);
    if (size >= sizeof dir)
        return false;
    memcpy(dir, name, size);
    dir[size] = 0;
    return weir_key_of_name(out, dir) && strlen(out) <= NAME_BYTES_MAX;
}

int weir_ledger_each(weir_store *store, int (*fn)(void *arg, const char *name), void *arg)
{
    char last[WEIR_NAME_BYTES_MAX] = "", ledger[WEIR_NAME_BYTES_MAX];
    struct weir_walk *walk;
    const char *name;
    int code = weir_store_check(store);
    if (!code)
        code = weir_walk_open(&walk, store, WEIR_DIR_LOG, NULL);
    if (code)
        return code;
    while ((code = weir_walk_next(walk, &name)) == 1) {
        /* The records of one come together. */
        if (!ledger_of(ledger, name) || !strcmp(ledger, last))
            continue;
        strcpy(last, ledger);
        code = fn(arg, ledger);
        if (code)
            break;
    }
    weir_walk_close(walk);
    return code;
}

/* Takes record over. */
static int state_of(struct weir_ledger_state *out, struct weir_log_record *record)
{
    struct weir_ledger_state s = {0};
    int code = record->number ? weir_state_decode(&s, record->state, record->state_size) : 0;
    if (code) {
        weir_log_record_free(record);
        return code;
    }
    s.record = *record;
    *out = s;
    return 0;
}

int weir_ledger_read(struct weir_ledger *ledger, struct weir_ledger_state *out)
{
    struct weir_log_record record;
    int code = weir_log_head(ledger->log, &record);
    if (code)
        return code;
    uint64_t number = record.number;
    code = state_of(out, &record);
    if (!code)
        return 0;
    weir_fail_in(code, "record %" PRIu64 " of log '%s'", number, weir_ledger_name(ledger));
    return code == -EBADMSG ? weir_log_advise(ledger->log, number, code) : code;
}

int weir_ledger_read_at(struct weir_ledger *ledger, uint64_t number, struct weir_ledger_state *out)
{
    struct weir_log_record record;
    int code = weir_log_read(ledger->log, number, &record);
    if (code == -ENOENT)
        return weir_fail(ENOENT, "log '%s' has no record %" PRIu64, weir_ledger_name(ledger),
                         number);
    if (code)
        return code;
    code = state_of(out, &record);
    return code ? weir_fail_in(code, "record %" PRIu64 " of log '%s'", number,
                               weir_ledger_name(ledger))
                : 0;
}

int weir_ledger_read_newest(struct weir_ledger *ledger, struct weir_ledger_state *out)
{
    uint64_t number = UINT64_MAX;
    for (int tries = 0; tries < DAMAGED_MAX; tries++) {
        int code = weir_log_last(ledger->log, number, &number);
        if (code)
            return code;
        if (!number)
            break;
        code = weir_ledger_read_at(ledger, number, out);
        if (code != -EBADMSG && code != -EPROTO && code != -ENOENT)
            return code;
    }
    return weir_fail(EBADMSG, "log '%s' has no record that can be read", weir_ledger_name(ledger));
}

const struct weir_ledger_entry *weir_ledger_find(const struct weir_ledger_state *s,
                                                 const char *name)
{
    for (size_t i = s->count; i-- > 0;)
        if (!s->entries[i].retired_ns && (!name || !strcmp(s->entries[i].save.name, name)))
            return &s->entries[i];
    return NULL;
}

const struct weir_ledger_entry *weir_ledger_find_save(const struct weir_ledger_state *s,
                                                      const struct weir_save *save)
{
    for (size_t i = s->count; i-- > 0;)
        if (weir_save_same(&s->entries[i].save, save))
            return &s->entries[i];
    return NULL;
}

const struct weir_ledger_entry *weir_ledger_find_label(const struct weir_ledger_state *s,
                                                       const char *label)
{
    for (size_t i = 0; i < s->label_count; i++)
        if (!strcmp(s->labels[i].name, label))
            return weir_ledger_find_save(s, &s->labels[i].save);
    return NULL;
}

bool weir_ledger_is_labelled(const struct weir_ledger_state *s, const struct weir_save *save)
{
    for (size_t i = 0; i < s->label_count; i++)
        if (weir_save_same(&s->labels[i].save, save))
            return true;
    return false;
}

/* ---- changes ---- */

/* Changes *state in place. Returns 1: append it; 0: it is so already; -errno. */
typedef int (*change_fn)(struct weir_ledger *ledger, struct weir_ledger_state *state, void *arg);

static int append(struct weir_ledger *ledger, const struct weir_ledger_state *s)
{
    size_t size;
    uint8_t *bytes = weir_state_encode(s, &size);
    if (!bytes)
        return weir_fail_memory();
    int code = weir_log_append(ledger->log, &s->record, bytes, size);
    free(bytes);
    return code;
}

static int change_once(struct weir_ledger *ledger, change_fn fn, void *arg)
{
    struct weir_ledger_state s;
    int code = weir_ledger_read(ledger, &s);
    if (code)
        return code;
    code = fn(ledger, &s, arg);
    if (code == 1)
        code = append(ledger, &s);
    else if (code == 0)
        code = weir_log_settle(ledger->log, &s.record);
    weir_state_free(&s);
    return code;
}

static int change(struct weir_ledger *ledger, change_fn fn, void *arg)
{
    int code = weir_store_check_writable(ledger->store);
    if (code)
        return code;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        code = change_once(ledger, fn, arg);
        if (code != -EAGAIN) /* else somebody else's record came first: look again */
            return code;
    }
    return weir_fail(EBUSY, "log '%s' is appended to faster than this can follow",
                     weir_ledger_name(ledger));
}

static int fenced(struct weir_ledger *ledger, const struct weir_ledger_state *s, uint64_t attempt)
{
    if (s->attempt == attempt)
        return 0;
    if (attempt > s->attempt)
        return weir_fail(ESTALE,
                         "there is no attempt %" PRIu64 " of '%s': the newest is attempt %" PRIu64,
                         attempt, weir_ledger_name(ledger), s->attempt);
    return weir_fail(ESTALE,
                     "attempt %" PRIu64 " of '%s' is over: attempt %" PRIu64 " has taken its place",
                     attempt, weir_ledger_name(ledger), s->attempt);
}

/* ---- joining ---- */

struct join {
    const uint8_t *token;
    uint64_t attempt;
};

static bool is_past(const struct weir_ledger_state *s, const uint8_t *token)
{
    for (size_t i = 0; i < s->past_count; i++)
        if (!memcmp(s->past[i], token, WEIR_TOKEN_BYTES))
            return true;
    return false;
}

static int remember_token(struct weir_ledger_state *s)
{
    size_t keep = s->past_count < WEIR_TOKENS_MAX ? s->past_count : WEIR_TOKENS_MAX - 1;
    uint8_t(*past)[WEIR_TOKEN_BYTES] = weir_realloc(s->past, (keep + 1) * WEIR_TOKEN_BYTES);
    if (!past)
        return weir_fail_memory();
    memmove(past + 1, past, keep * WEIR_TOKEN_BYTES);
    memcpy(past[0], s->token, WEIR_TOKEN_BYTES);
    s->past = past;
    s->past_count = keep + 1;
    return 0;
}

static int do_join(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    struct join *join = arg;
    if (s->attempt && !memcmp(s->token, join->token, WEIR_TOKEN_BYTES)) {
        join->attempt = s->attempt;
        return 0;
    }
    if (is_past(s, join->token))
        return weir_fail(
            ESTALE, "this incarnation of '%s' is over: attempt %" PRIu64 " has taken its place",
            weir_ledger_name(ledger), s->attempt);
    int code = s->attempt ? remember_token(s) : 0;
    if (code)
        return code;
    s->attempt = join->attempt = s->record.number + 1;
    s->floor = 0;
    memcpy(s->token, join->token, WEIR_TOKEN_BYTES);
    return 1;
}

int weir_ledger_join(struct weir_ledger *ledger, const uint8_t token[WEIR_TOKEN_BYTES],
                     uint64_t *attempt)
{
    struct join join = {.token = token};
    int code = change(ledger, do_join, &join);
    if (!code)
        *attempt = join.attempt;
    return code;
}

/* ---- committing ---- */

struct labelling {
    const char *label;
    const struct weir_save *save; /* NULL: of none any more */
    struct weir_save was;
};

/* Takes it off, and answers whether it was there. */
static bool drop_label(struct weir_ledger_state *s, struct labelling *l)
{
    for (size_t i = 0; i < s->label_count; i++) {
        if (strcmp(s->labels[i].name, l->label))
            continue;
        l->was = s->labels[i].save;
        s->label_count--;
        memmove(&s->labels[i], &s->labels[i + 1], (s->label_count - i) * sizeof *s->labels);
        return true;
    }
    return false;
}

static int add_label(struct weir_ledger_state *s, const struct labelling *l)
{
    struct weir_label *more = weir_realloc(s->labels, (s->label_count + 1) * sizeof *more);
    if (!more)
        return weir_fail_memory();
    s->labels = more;
    size_t at = s->label_count++;
    for (; at && strcmp(more[at - 1].name, l->label) > 0; at--)
        more[at] = more[at - 1];
    more[at] = (struct weir_label){.save = *l->save};
    strcpy(more[at].name, l->label); /* which was checked */
    return 0;
}

/* A commit, and the label it comes with, or NULL. */
struct committing {
    struct weir_ledger_entry entry;
    const char *label;
};

/* Labels an entry that was just added, unless a save begun later has the label, or there are too
 * many: what was saved is worth more than its name. */
static int label_committed(struct weir_ledger_state *s, const struct committing *c)
{
    struct labelling l = {.label = c->label, .save = &c->entry.save};
    const struct weir_ledger_entry *has = weir_ledger_find_label(s, c->label);
    if (has &&
        (has->save.attempt > c->entry.save.attempt ||
         (has->save.attempt == c->entry.save.attempt && has->save.number > c->entry.save.number)))
        return 0;
    bool had = drop_label(s, &l);
    return had || s->label_count < WEIR_LABELS_MAX ? add_label(s, &l) : 0;
}

static int do_commit(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    const struct committing *c = arg;
    const struct weir_ledger_entry *entry = &c->entry;
    const struct weir_ledger_entry *there = weir_ledger_find_save(s, &entry->save);
    if (there && !memcmp(there->root, entry->root, WEIR_SHA256_BYTES))
        return 0;
    if (there)
        return weir_fail(EEXIST, "'%s' of '%s' was committed already, with other parts",
                         entry->save.name, weir_ledger_name(ledger));
    int code = fenced(ledger, s, entry->save.attempt);
    if (!code && entry->save.number <= s->floor)
        code = weir_fail(ESTALE,
                         "save %" PRIu64 " of attempt %" PRIu64 " of '%s' was given up, or retired "
                         "and deleted: it can be committed no more",
                         entry->save.number, s->attempt, weir_ledger_name(ledger));
    if (!code && s->count == WEIR_ENTRIES_MAX)
        code = weir_fail(E2BIG, "'%s' has %d entries, the limit: retire some, and run gc",
                         weir_ledger_name(ledger), WEIR_ENTRIES_MAX);
    if (code)
        return code;
    struct weir_ledger_entry *more = weir_realloc(s->entries, (s->count + 1) * sizeof *more);
    if (!more)
        return weir_fail_memory();
    s->entries = more;
    /* In the order they were begun: one that was finished late, for somebody who died, does not
     * become the newest. */
    size_t at = s->count++;
    for (; at && more[at - 1].save.attempt == entry->save.attempt &&
           more[at - 1].save.number > entry->save.number;
         at--)
        more[at] = more[at - 1];
    more[at] = *entry;
    code = c->label ? label_committed(s, c) : 0;
    return code ? code : 1;
}

int weir_ledger_commit(struct weir_ledger *ledger, const struct weir_save *save,
                       const uint8_t root[WEIR_SHA256_BYTES], const char *label)
{
    struct committing c = {.entry = {.save = *save, .time_ns = weir_sys->now_ns(WEIR_CLOCK_REAL)},
                           .label = label};
    memcpy(c.entry.root, root, WEIR_SHA256_BYTES);
    int code = label ? weir_label_check(label) : 0;
    return code ? code : change(ledger, do_commit, &c);
}

/* ---- labels ---- */

static int do_label(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    struct labelling *l = arg;
    l->was = (struct weir_save){0};
    const struct weir_ledger_entry *entry = l->save ? weir_ledger_find_save(s, l->save) : NULL;
    if (l->save && (!entry || entry->retired_ns))
        return weir_fail(ESTALE, "'%s' of '%s' was retired meanwhile", l->save->name,
                         weir_ledger_name(ledger));
    bool had = drop_label(s, l);
    if (!l->save)
        return had ? 1
                   : weir_fail(ENOENT, "nothing in '%s' is named '%s'", weir_ledger_name(ledger),
                               l->label);
    if (s->label_count == WEIR_LABELS_MAX)
        return weir_fail(E2BIG, "'%s' has %d names, the limit: take some off",
                         weir_ledger_name(ledger), WEIR_LABELS_MAX);
    int code = add_label(s, l);
    bool same = had && weir_save_same(&l->was, l->save);
    return code ? code : !same;
}

static int change_label(struct weir_ledger *ledger, const char *label, const struct weir_save *save,
                        struct weir_save *was)
{
    struct labelling l = {.label = label, .save = save};
    int code = weir_label_check(label);
    if (!code)
        code = change(ledger, do_label, &l);
    if (!code && was)
        *was = l.was;
    return code;
}

int weir_ledger_label(struct weir_ledger *ledger, const char *label, const struct weir_save *save,
                      struct weir_save *was)
{
    return change_label(ledger, label, save, was);
}

int weir_ledger_unlabel(struct weir_ledger *ledger, const char *label, struct weir_save *was)
{
    return change_label(ledger, label, NULL, was);
}

/* ---- retiring ---- */

struct chosen {
    uint64_t attempt;
    weir_ledger_fn fn;
    void *arg;
    int64_t now_ns;
    size_t count;
};

static int do_retire(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    struct chosen *chosen = arg;
    int code = chosen->attempt ? fenced(ledger, s, chosen->attempt) : 0;
    if (code)
        return code;
    chosen->count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->entries[i].retired_ns || weir_ledger_is_labelled(s, &s->entries[i].save) ||
            !chosen->fn(chosen->arg, &s->entries[i]))
            continue;
        s->entries[i].retired_ns = (uint64_t)chosen->now_ns;
        chosen->count++;
    }
    return chosen->count > 0;
}

int weir_ledger_retire(struct weir_ledger *ledger, uint64_t attempt, weir_ledger_fn retire,
                       void *arg, size_t *count)
{
    struct chosen chosen = {.attempt = attempt, .fn = retire, .arg = arg};
    int code = weir_store_now(ledger->store, &chosen.now_ns);
    if (!code)
        code = change(ledger, do_retire, &chosen);
    if (!code)
        *count = chosen.count;
    return code;
}

static int do_forget(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    struct chosen *chosen = arg;
    size_t kept = 0;
    (void)ledger;
    for (size_t i = 0; i < s->count; i++) {
        const struct weir_ledger_entry e = s->entries[i];
        if (!e.retired_ns || !chosen->fn(chosen->arg, &e))
            s->entries[kept++] = e;
        else if (e.save.attempt == s->attempt && e.save.number > s->floor)
            s->floor = e.save.number;
    }
    bool any = kept < s->count;
    s->count = kept;
    return any;
}

int weir_ledger_forget(struct weir_ledger *ledger, weir_ledger_fn deleted, void *arg)
{
    struct chosen chosen = {.fn = deleted, .arg = arg};
    return change(ledger, do_forget, &chosen);
}

struct give_up {
    uint64_t attempt, floor;
};

static int do_give_up(struct weir_ledger *ledger, struct weir_ledger_state *s, void *arg)
{
    const struct give_up *g = arg;
    (void)ledger;
    if (s->attempt != g->attempt || s->floor >= g->floor)
        return 0; /* an attempt that is over commits nothing */
    s->floor = g->floor;
    return 1;
}

int weir_ledger_give_up(struct weir_ledger *ledger, uint64_t attempt, uint64_t floor)
{
    struct give_up g = {attempt, floor};
    return change(ledger, do_give_up, &g);
}
