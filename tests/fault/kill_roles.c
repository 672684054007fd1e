/* kill_roles.c - the processes that are killed. Each notes what it begins and what came of it in
 * the history; an answer that no race explains is a complaint, and fails the test.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kill.h"
#include "proc.h"
#include "test.h"

/* Keys that all processes fight for: keys beside directories of their name, and deep ones. */
static const char *const shared_keys[] = {
    "a",           "a/b",         "a/b/c",    "s0",    "s1",      "s2",
    "deep/x/y/z0", "deep/x/y/z1", "deep/x/q", "d1/k0", "d1/d2/k", "d1",
};
enum { SHARED_KEYS = sizeof shared_keys / sizeof shared_keys[0] };

struct actor {
    struct kill_test *t;
    unsigned role;
    struct dice dice;
    weir_store *store;
    uint64_t number; /* of its objects */
};

static int complain(struct actor *a, const char *what, const char *key, int code)
{
    if (atomic_fetch_add(&a->t->complained, 1) == 0)
        snprintf(a->t->complaint, sizeof a->t->complaint, "process %u: %s '%s': %d (%s): %s",
                 a->role, what, key, code, strerrorname_np(-code), weir_error_text());
    return 1;
}

static bool is_among(int code, const int *codes)
{
    while (*codes && *codes != -code)
        codes++;
    return code == 0 || *codes;
}

static uint64_t size_pick(struct dice *dice)
{
    static const uint64_t sizes[] = {
        0,
        1,
        17,
        4095,
        4096,
        4097,
        20000,
        65536,
        131071,
        131072,
        131073,
        300000,
        700001,
        1 << 20,
        (1 << 20) + 1,
        (2 << 20) + 4096,
        3 << 20,
        (3 << 20) + 777,
    };
    /* Small ones are more frequent: more of them fit into a round. */
    uint64_t limit = dice_one_in(dice, 4) ? sizeof sizes / sizeof sizes[0] : 8;
    return sizes[dice_below(dice, limit)];
}

static void key_pick(struct actor *a, char key[KEY_ROOM])
{
    uint64_t n = a->number;
    unsigned r = a->t->round, w = a->role;
    switch (dice_below(&a->dice, 10)) {
    case 0:
    case 1:
    case 2:
        snprintf(key, KEY_ROOM, "p/w%u/r%u/n%llu/x/y", w, r, (unsigned long long)n);
        break;
    case 3:
    case 4:
        snprintf(key, KEY_ROOM, "p/r%u/n%llu", r, (unsigned long long)(n * 16 + w));
        break;
    default:
        snprintf(key, KEY_ROOM, "%s", shared_keys[dice_below(&a->dice, SHARED_KEYS)]);
    }
}

static int write_one(struct actor *a)
{
    static const int expected[] = {EEXIST, EAGAIN, ESTALE, EOVERFLOW, 0};
    char key[KEY_ROOM];
    unsigned how = dice_one_in(&a->dice, 2) ? CONTENT_HINT : 0;
    struct content what = {mix(a->dice.state, a->number), size_pick(&a->dice)};
    key_pick(a, key);
    if (a->t->big && a->role == 0 && a->number == 0) {
        what.size = BIG_BYTES + (what.seed % 3) * 1000;
        how |= CONTENT_IN_PLACE;
    }
    a->number++;
    int code = history_put(&a->t->history, a->role, a->store, key, what, how);
    if (!is_among(code, expected))
        return complain(a, "put of", key, code);
    return code == -EOVERFLOW;
}

/* A key that somebody has written, or a shared one. */
static void key_known(struct actor *a, char key[KEY_ROOM])
{
    struct history *h = &a->t->history;
    unsigned who = (unsigned)dice_below(&a->dice, WRITERS + 1);
    who = who == WRITERS ? ROLE_GIVEN : who;
    unsigned count = atomic_load(&h->count[who]);
    if (count && dice_one_in(&a->dice, 3))
        snprintf(key, KEY_ROOM, "%s", h->ops[who][dice_below(&a->dice, count)].key);
    else
        snprintf(key, KEY_ROOM, "%s", shared_keys[dice_below(&a->dice, SHARED_KEYS)]);
}

static int remove_one(struct actor *a)
{
    static const int expected[] = {ENOENT, EOVERFLOW, 0};
    char key[KEY_ROOM];
    key_known(a, key);
    int code = history_remove(&a->t->history, a->role, a->store, key);
    if (!is_among(code, expected))
        return complain(a, "removing", key, code);
    if (dice_one_in(&a->dice, 2))
        sleep_us((unsigned)dice_below(&a->dice, 300));
    return code == -EOVERFLOW;
}

static int read_one(struct actor *a)
{
    static const int expected[] = {ENOENT, EAGAIN, ESTALE, EOVERFLOW, 0};
    char key[KEY_ROOM];
    key_known(a, key);
    int code = history_get(&a->t->history, a->role, a->store, key);
    if (!is_among(code, expected))
        return complain(a, "reading", key, code);
    return code == -EOVERFLOW;
}

static int collect_one(struct actor *a)
{
    weir_gc_result result;
    int code = weir_gc(a->store, 0, &result, NULL, NULL);
    if (code)
        return complain(a, "gc of", a->t->world->root, code);
    sleep_us((unsigned)dice_below(&a->dice, 2000));
    return 0;
}

int role_main(struct kill_test *t, unsigned role)
{
    static int (*const acts[])(struct actor *) = {remove_one, read_one, collect_one};
    struct actor a = {.t = t, .role = role};
    a.dice.state = mix(mix(t->seed, t->round), role);
    int (*act)(struct actor *) = role < WRITERS ? write_one : acts[role - WRITERS];
    const char *engine = engine_pick(dice_next(&a.dice));
    int stop = 0;
    while (!stop) {
        a.store = store_must_open(t->world->root, engine, WEIR_STORE_CREATE, GRACE_S);
        atomic_fetch_add(&t->ready, 1);
        do
            stop = act(&a);
        while (!stop && !dice_one_in(&a.dice, 30));
        weir_store_close(a.store);
    }
    while (!atomic_load(&t->complained))
        pause(); /* its page is full: it waits to be killed */
    return 1;
}
