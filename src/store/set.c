/* set.c - see set.h. */
#include "store/set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

enum {
    WAIT_NS_MIN = 1000000,     /* a waiter looks at the log again after this, */
    WAIT_NS_MAX = 500000000,   /* doubling up to this */
    STALL_NS_MIN = 1000000000, /* it takes a set that has not got on for this long for stuck, */
    NAME_NS_MIN = 1000000000,  /* parts that are missing are looked for no more often, */
    MISSING_MAX = 8,           /* and so many of them are named */
};
#define STALL_NS_MAX 60000000000ull /* and looks again after twice the time, up to this */

/* Where a waiter stands. It goes on from call to call: who waits in short slices must not ask more
 * than others. */
struct pace {
    uint64_t begun_ns;
    uint64_t nap_ns;
    uint64_t stall_ns, finish_at_ns;
    uint64_t name_at_ns;
    char why[WEIR_TEXT_MAX]; /* it is not complete; empty: nobody has looked yet */
};

struct weir_set {
    struct weir_ledger *ledger;
    weir_store *store;
    struct weir_save save;
    uint32_t root_level;
    const char *label; /* or NULL */
    weir_set_fn check; /* or NULL */
    void *check_arg;
    struct pace pace; /* stall_ns 0: nobody has waited yet */
    char prefix[WEIR_KEY_BYTES_MAX + 1];
};

/* A node in memory. */
struct held {
    struct weir_node node;
    uint8_t *bytes;
    size_t size;
};

static void held_free(struct held *held)
{
    free(held->bytes);
    *held = (struct held){0};
}

static uint32_t root_level_of(uint32_t parts)
{
    uint32_t level = 0;
    while (((uint32_t)1 << level) < parts)
        level++;
    return level;
}

static void node_name(char out[WEIR_NAME_BYTES_MAX], const char *prefix, uint32_t level,
                      uint64_t index)
{
    snprintf(out, WEIR_NAME_BYTES_MAX, "%s%s~/%u.%" PRIu64, WEIR_DIR_SET, prefix, level, index);
}

/* ---- nodes ---- */

/* -ENOENT if it is not there. */
static int node_load(struct held *out, weir_store *store, const char *name)
{
    struct held held = {0};
    int code = weir_record_load(store, name, WEIR_RECORD_BYTES_MAX, &held.bytes, &held.size, NULL);
    if (code)
        return code;
    code = weir_node_decode(&held.node, held.bytes, held.size);
    if (code) {
        held_free(&held);
        return weir_fail_in(code, "'%s'", name);
    }
    *out = held;
    return 0;
}

static int set_load(struct held *out, const struct weir_set *set, uint32_t level, uint64_t index)
{
    char name[WEIR_NAME_BYTES_MAX];
    node_name(name, set->prefix, level, index);
    int code = node_load(out, set->store, name);
    if (code)
        return code;
    uint32_t total = out->node.parts_total;
    if (total != set->save.parts)
        code = weir_fail(EINVAL,
                         "the writers of '%s' do not agree on its number of parts: here it is %u, "
                         "in '%s' %u",
                         set->prefix, set->save.parts, name, total);
    else if (out->node.level != level || out->node.index != index)
        code = weir_fail(EBADMSG, "'%s' is another node", name);
    if (code)
        held_free(out);
    return code;
}

/* 1 if it is there, 0 if not. */
static int set_has(const struct weir_set *set, uint32_t level, uint64_t index)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_blob_stat stat;
    node_name(name, set->prefix, level, index);
    int code = weir_store_stat(set->store, name, &stat);
    return code == -ENOENT ? 0 : code ? code : 1;
}

/* Publishes. 0: it was us; 1: the same bytes are there already, durably; -EEXIST: others are;
 * -ENOENT: something was, and gc took it. */
static int node_put(const struct weir_set *set, const struct held *held)
{
    char name[WEIR_NAME_BYTES_MAX], why[WEIR_TEXT_MAX];
    enum weir_doubt doubt;
    struct held there;
    node_name(name, set->prefix, held->node.level, held->node.index);
    int code = weir_record_put(set->store, name, held->bytes, held->size, 0, &doubt);
    if (!code || (code != -EEXIST && doubt == WEIR_SURE))
        return code;
    snprintf(why, sizeof why, "%s", weir_fail_last());
    int found =
        doubt == WEIR_DOUBT_SYNC ? code : set_load(&there, set, held->node.level, held->node.index);
    if (found == -EINVAL || found == -EBADMSG || (found == -ENOENT && doubt == WEIR_SURE))
        return found; /* it is known what stands there: no good; or nothing any more */
    if (found) {
        weir_fail(EIO, "the outcome of publishing '%s' is unknown: %s", name, why);
        return -WEIR_EUNKNOWN;
    }
    bool same = there.size == held->size && !memcmp(there.bytes, held->bytes, held->size);
    held_free(&there);
    if (!same)
        return weir_fail(EEXIST, "'%s' was published already, with other content", name);
    if (doubt == WEIR_SURE)
        return 1;
    /* It was us, but whoever read it back only saw it: it must also stay. */
    code = weir_store_settle(set->store, name);
    if (!code)
        return 0;
    weir_fail_in(code, "the outcome of publishing '%s' is unknown", name);
    return -WEIR_EUNKNOWN;
}

/* The parent of a published node and its sibling. */
static int join(struct held *out, const struct weir_node *node, const struct weir_node *sibling)
{
    struct held held = {0};
    int code = weir_node_join(node, sibling, &held.bytes, &held.size);
    if (!code)
        code = weir_node_decode(&held.node, held.bytes, held.size);
    if (code)
        held_free(&held);
    else
        *out = held;
    return code;
}

/* ---- putting ---- */

int weir_set_open(struct weir_set **out, struct weir_ledger *ledger, const struct weir_save *save)
{
    int code = weir_save_name_check(save->name);
    if (code)
        return code;
    if (!save->parts || save->parts > WEIR_SET_PARTS_MAX)
        return weir_fail(EINVAL, "a set of %u parts: it has 1 to %d", save->parts,
                         WEIR_SET_PARTS_MAX);
    if (!save->attempt || !save->number)
        return weir_fail(EINVAL, "attempts and saves are counted from 1");
    struct weir_set *set = weir_alloc(sizeof *set);
    if (!set)
        return weir_fail_memory();
    set->ledger = ledger;
    set->store = weir_ledger_store(ledger);
    set->save = *save;
    set->root_level = root_level_of(save->parts);
    weir_ledger_prefix(ledger, save, set->prefix);
    *out = set;
    return 0;
}

void weir_set_close(struct weir_set *set)
{
    free(set);
}

void weir_set_check(struct weir_set *set, weir_set_fn check, void *arg)
{
    set->check = check;
    set->check_arg = arg;
}

void weir_set_label(struct weir_set *set, const char *label)
{
    set->label = label;
}

static int commit(struct weir_set *set, const struct held *root)
{
    struct weir_ledger_entry entry = {.save = set->save};
    weir_sha256(entry.root, root->bytes, root->size);
    int code = set->check ? set->check(set->check_arg, set->ledger, &entry, &root->node) : 0;
    return code ? code : weir_ledger_commit(set->ledger, &set->save, entry.root, set->label);
}

/* What the log says of the save: 0: committed, -EAGAIN: not yet, -ESTALE: it never will be. */
static int look(struct weir_set *set)
{
    struct weir_ledger_state state;
    int code = weir_ledger_read(set->ledger, &state);
    if (code)
        return code;
    if (weir_ledger_find_save(&state, &set->save))
        code = weir_log_settle(weir_ledger_log(set->ledger), &state.record);
    else if (state.attempt > set->save.attempt ||
             (state.attempt == set->save.attempt && state.floor >= set->save.number))
        code = weir_fail(ESTALE,
                         "'%s' was overtaken or given up, or retired and deleted: it can be "
                         "committed no more",
                         set->prefix);
    else
        code = weir_fail(EAGAIN, "'%s' is not complete yet", set->prefix);
    weir_state_free(&state);
    return code;
}

/* Is there a sibling at all? The last node of a level may have none. */
static bool has_sibling(const struct weir_set *set, uint32_t level, uint64_t index)
{
    return (index ^ 1) << level < set->save.parts;
}

/* Goes up from *at, a published node, which it replaces. 1: *at is the root; 0: somebody else goes
 * on from here. */
static int climb(const struct weir_set *set, struct held *at)
{
    while (at->node.level < set->root_level) {
        struct held sibling = {0}, parent = {0};
        bool has = has_sibling(set, at->node.level, at->node.index);
        int code = has ? set_load(&sibling, set, at->node.level, at->node.index ^ 1) : 0;
        if (code)
            return code == -ENOENT ? 0 : code;
        code = join(&parent, &at->node, has ? &sibling.node : NULL);
        held_free(&sibling);
        if (!code)
            code = node_put(set, &parent);
        if (code) {
            held_free(&parent);
            return code == 1 ? 0 : code; /* who put it goes on */
        }
        held_free(at);
        *at = parent;
    }
    return 1;
}

/* Takes a published part further. again: it was put before, and nobody but us may be left to take
 * what came of that further. */
static int merge(struct weir_set *set, struct held *at, bool again, bool *committed)
{
    int code;
    if (again) {
        code = weir_set_finish(set);
        if (code == -EAGAIN)
            return 0;
    } else {
        code = climb(set, at);
        if (code != 1)
            return code;
        code = commit(set, at);
    }
    *committed = !code;
    return code;
}

/* A part that is published may become visible whatever went wrong behind it: unless the code is a
 * verdict, what becomes of it is unknown. */
static int published(const struct weir_set *set, uint32_t part, int code)
{
    static const int verdicts[] = {0, EEXIST, EINVAL, ESTALE, EBADMSG, EPROTO, E2BIG};
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++)
        if (code == -verdicts[i])
            return code;
    weir_fail_in(code, "part %u of '%s' is published, but whether all is committed is unknown",
                 part, set->prefix);
    return -WEIR_EUNKNOWN;
}

int weir_set_put(struct weir_set *set, uint32_t part, const struct weir_ref *refs, uint32_t count,
                 const void *note, size_t note_size, bool *committed)
{
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX];
    size_t size;
    struct held at = {0};
    *committed = false;
    int code = weir_store_check_writable(set->store);
    if (!code && part >= set->save.parts)
        code = weir_fail(EINVAL, "part %u of %u", part, set->save.parts);
    if (!code)
        code = weir_part_encode(payload, &size, refs, count, note, note_size);
    if (!code)
        code = weir_node_leaf(set->save.parts, part, payload, size, &at.bytes, &at.size);
    if (!code)
        code = weir_node_decode(&at.node, at.bytes, at.size);
    if (!code)
        code = node_put(set, &at);
    bool there = code >= 0 || code == -ENOENT;
    if (code >= 0)
        code = merge(set, &at, code == 1, committed);
    if (code == -ENOENT) { /* gc took what stood there: the log knows why */
        code = look(set);
        *committed = !code;
    }
    held_free(&at);
    return there ? published(set, part, code) : code;
}

/* ---- finishing ---- */

static int missing(const struct weir_set *set, uint64_t part)
{
    return weir_fail(EAGAIN, "part %" PRIu64 " of '%s' is missing", part, set->prefix);
}

/* Makes sure that the node is there, from what is below it: 0, or -EAGAIN at the first part that is
 * missing. A level deeper each time: this may call itself. */
static int complete(const struct weir_set *set, uint32_t level, uint64_t index)
{
    int code = set_has(set, level, index);
    if (code)
        return code == 1 ? 0 : code;
    if (!level)
        return missing(set, index);
    struct held child[2] = {0}, parent = {0};
    bool both = (2 * index + 1) << (level - 1) < set->save.parts;
    for (unsigned i = 0; !code && i < 1u + both; i++)
        code = complete(set, level - 1, 2 * index + i);
    for (unsigned i = 0; !code && i < 1u + both; i++)
        code = set_load(&child[i], set, level - 1, 2 * index + i);
    if (!code)
        code = join(&parent, &child[0].node, both ? &child[1].node : NULL);
    if (!code && (code = node_put(set, &parent)) == 1)
        code = 0;
    held_free(&parent);
    held_free(&child[0]);
    held_free(&child[1]);
    return code;
}

/* Completes the root and commits it: -EAGAIN, -ENOENT if something is missing or goes meanwhile. */
static int finish(struct weir_set *set)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct held root = {0};
    int code = complete(set, set->root_level, 0);
    if (!code)
        code = set_load(&root, set, set->root_level, 0);
    /* Whoever put it may not have lived to make it durable; what a commit names must be. */
    node_name(name, set->prefix, set->root_level, 0);
    if (!code)
        code = weir_store_settle(set->store, name);
    if (!code)
        code = commit(set, &root);
    held_free(&root);
    return code;
}

int weir_set_finish(struct weir_set *set)
{
    char why[WEIR_TEXT_MAX];
    int code = weir_store_check_writable(set->store);
    if (!code)
        code = finish(set);
    if (code != -EAGAIN && code != -ENOENT && code != -EEXIST)
        return code;
    /* A node may also be missing, or another one, because gc took it: then the log knows what
     * became of the save. */
    snprintf(why, sizeof why, "%s", weir_fail_last());
    int says = look(set);
    return says == -EAGAIN ? weir_fail_text(code, why) : says;
}

/* The missing parts below a node, from the first; one more than are named says that there are. */
struct absent {
    uint64_t parts[MISSING_MAX + 1];
    unsigned count;
};

/* A level deeper each time: this may call itself. */
static int find_absent(const struct weir_set *set, uint32_t level, uint64_t index,
                       struct absent *absent)
{
    if (index << level >= set->save.parts || absent->count > MISSING_MAX)
        return 0;
    int code = set_has(set, level, index);
    if (code)
        return code == 1 ? 0 : code;
    if (!level) {
        absent->parts[absent->count++] = index;
        return 0;
    }
    code = find_absent(set, level - 1, 2 * index, absent);
    return code ? code : find_absent(set, level - 1, 2 * index + 1, absent);
}

/* Looks for the parts that are missing, and remembers what there is to say. */
static void name_missing(struct weir_set *set)
{
    struct absent absent = {.count = 0};
    char list[32 * MISSING_MAX] = "";
    size_t used = 0;
    if (find_absent(set, set->root_level, 0, &absent))
        return; /* what was found before is all that can be told */
    for (unsigned i = 0; i < absent.count && i < MISSING_MAX; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64, i ? ", " : "",
                                 absent.parts[i]);
    if (!absent.count)
        weir_fail(ETIMEDOUT, "'%s' is complete, but not committed yet", set->prefix);
    else if (absent.count == 1)
        missing(set, absent.parts[0]);
    else
        weir_fail(ETIMEDOUT, "parts %s%s of '%s' are missing", list,
                  absent.count > MISSING_MAX ? " and more" : "", set->prefix);
    snprintf(set->pace.why, sizeof set->pace.why, "%s", weir_fail_last());
}

/* A waiter gives up, for now. */
static int timed_out(struct weir_set *set, uint64_t now_ns)
{
    struct pace *pace = &set->pace;
    if (now_ns >= pace->name_at_ns) {
        name_missing(set);
        pace->name_at_ns = now_ns + NAME_NS_MIN;
    }
    weir_fail_text(-ETIMEDOUT, pace->why);
    return weir_fail_in(-ETIMEDOUT, "waited %.1f s", (double)(now_ns - pace->begun_ns) / 1e9);
}

/* Waiters that began together must not look together for ever. */
static uint64_t jitter(uint64_t ns)
{
    uint32_t random = 0;
    weir_sys->random(&random, sizeof random);
    return ns / 2 + ns / 2 * (random % 1024) / 1024;
}

/* Finishes what somebody may have left undone, and looks again after twice the time. */
static int finish_stalled(struct weir_set *set, uint64_t now_ns, bool *committed)
{
    struct pace *pace = &set->pace;
    int code = weir_set_finish(set);
    *committed = !code;
    snprintf(pace->why, sizeof pace->why, "%s", weir_fail_last());
    pace->stall_ns = 2 * pace->stall_ns < STALL_NS_MAX ? 2 * pace->stall_ns : STALL_NS_MAX;
    pace->finish_at_ns = now_ns + jitter(pace->stall_ns);
    return code;
}

/* What the log says, if it says more than before. */
static int look_again(struct weir_set *set)
{
    int moved = weir_log_moved(weir_ledger_log(set->ledger));
    return moved == 1 ? look(set) : moved ? moved : -EAGAIN;
}

static int begin_waiting(struct weir_set *set, uint64_t now_ns)
{
    set->pace = (struct pace){.begun_ns = now_ns,
                              .nap_ns = WAIT_NS_MIN,
                              .stall_ns = STALL_NS_MIN,
                              .finish_at_ns = now_ns + jitter(STALL_NS_MIN)};
    return look(set);
}

int weir_set_wait(struct weir_set *set, uint64_t timeout_ns, bool *committed)
{
    struct pace *pace = &set->pace;
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    *committed = false;
    int code = pace->stall_ns ? look_again(set) : begin_waiting(set, start_ns);
    while (code == -EAGAIN) {
        uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO), waited_ns = now_ns - start_ns;
        bool late = waited_ns >= timeout_ns;
        if (now_ns >= pace->finish_at_ns || (late && !*pace->why)) {
            code = finish_stalled(set, now_ns, committed);
            if (code != -EAGAIN)
                break;
        }
        if (late)
            return timed_out(set, now_ns);
        uint64_t left_ns = timeout_ns - waited_ns, nap_ns = jitter(pace->nap_ns);
        weir_sys->sleep_ns(nap_ns < left_ns ? nap_ns : left_ns);
        pace->nap_ns = 2 * pace->nap_ns < WAIT_NS_MAX ? 2 * pace->nap_ns : WAIT_NS_MAX;
        code = look_again(set);
    }
    return code;
}

int weir_set_root(struct weir_ledger *ledger, const struct weir_ledger_entry *entry,
                  struct weir_node *node, uint8_t **bytes)
{
    char prefix[WEIR_KEY_BYTES_MAX + 1], name[WEIR_NAME_BYTES_MAX];
    uint8_t digest[WEIR_SHA256_BYTES];
    struct held root = {0};
    weir_ledger_prefix(ledger, &entry->save, prefix);
    node_name(name, prefix, root_level_of(entry->save.parts), 0);
    int code = node_load(&root, weir_ledger_store(ledger), name);
    if (code)
        return code;
    weir_sha256(digest, root.bytes, root.size);
    if (memcmp(digest, entry->root, sizeof digest) || root.node.parts != entry->save.parts) {
        held_free(&root);
        return weir_fail(EBADMSG, "'%s' is not what log '%s' committed", name,
                         weir_ledger_name(ledger));
    }
    *node = root.node;
    *bytes = root.bytes;
    return 0;
}
