/* protocol.c - the commit protocol, every interleaving of it. Each configuration is explored until
 * no new state is left, and every property of properties.c holds in all of them; then each
 * deliberate flaw is let in, one at a time, and must break the property it is there for: a checker
 * that could not fail would show nothing.
 *
 * WEIR_TEST_LONG=1 explores larger configurations. WEIR_MODEL=text explores only those that have it
 * in their name, and no flaws.
 */
#include <time.h>

#include "model.h"
#include "test.h"

enum { STATES_MAX = 1 << 24 }; /* about a GiB */

#define RANK_OF(letter, number)                                                                    \
    {                                                                                              \
        .kind = RANK, .token = (letter) - '@', .part = (number)                                    \
    }
#define WAITER_OF(letter, number)                                                                  \
    {                                                                                              \
        .kind = RANK, .token = (letter) - '@', .part = (number), .finishes = true                  \
    }
#define LATER_RANK_OF(letter, number)                                                              \
    {                                                                                              \
        .kind = RANK, .token = (letter) - '@', .part = (number), .after_loss = true                \
    }
#define GC_OF(count)                                                                               \
    {                                                                                              \
        .kind = GC, .passes = (count)                                                              \
    }
#define LATER_GC                                                                                   \
    {                                                                                              \
        .kind = GC, .passes = 1, .after_loss = true                                                \
    }
#define LATER(what)                                                                                \
    {                                                                                              \
        .kind = (what), .after_loss = true                                                         \
    }

/* clang-format off */
static const struct config configs[] = {
    {.name = "tree", .parts = 3, .saves = 1, .lost = 2, .flight = true, .wakes = true,
     .gc_check = true, .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('A', 2)}},
    {.name = "saves", .parts = 2, .saves = 2, .lost = 2, .flight = true, .wakes = true,
     .gc_check = true, .procs = {RANK_OF('A', 0), RANK_OF('A', 1)}},
    {.name = "old saves", .parts = 2, .saves = 2, .gc_check = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0)}},
    {.name = "waiters", .parts = 3, .saves = 1, .lost = 1, .gc_check = true,
     .procs = {WAITER_OF('A', 0), WAITER_OF('A', 1), WAITER_OF('A', 2)}},
    {.name = "zombie", .parts = 2, .saves = 1, .lost = 1, .flight = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), RANK_OF('B', 1)}},
    {.name = "zombie with gc", .parts = 2, .saves = 1,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), GC_OF(1), {.kind = FINISHER}}},
    {.name = "tree with gc", .parts = 3, .saves = 1,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('A', 2), GC_OF(1), {.kind = RETIRER},
               {.kind = FINISHER}}},
    {.name = "saves with gc", .parts = 2, .saves = 2,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), GC_OF(2), {.kind = RETIRER}}},
    {.name = "gc with lost answers", .parts = 2, .saves = 1, .lost = 2, .flight = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), GC_OF(1), {.kind = RETIRER}}},
    {.name = "two gcs", .parts = 2, .saves = 1, .prepared = true,
     .procs = {{.kind = FINISHER}, RANK_OF('B', 0), GC_OF(2), GC_OF(1), {.kind = RETIRER}}},
    {.name = "readers", .parts = 2, .saves = 1, .prepared = true,
     .procs = {{.kind = READER}, {.kind = READER, .leases = true}, GC_OF(2), {.kind = RETIRER},
               RANK_OF('B', 0), {.kind = FINISHER}}},
    {.name = "next attempt", .parts = 2, .saves = 1, .prepared = true,
     .procs = {RANK_OF('B', 0), RANK_OF('B', 1), GC_OF(1), {.kind = RETIRER}}},
    {.name = "power, waiters", .parts = 2, .saves = 1, .power = true,
     .procs = {WAITER_OF('A', 0), WAITER_OF('A', 1), LATER(FINISHER), LATER_GC}},
    {.name = "power, tree", .parts = 3, .saves = 1, .power = true, .lost = 1, .gc_check = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('A', 2), LATER(FINISHER),
               LATER_RANK_OF('B', 0)}},
    {.name = "power, lost answers", .parts = 2, .saves = 1, .power = true, .lost = 2,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), {.kind = FINISHER}, LATER(FINISHER),
               LATER_RANK_OF('B', 0)}},
    {.name = "power, zombie", .parts = 2, .saves = 1, .power = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), RANK_OF('B', 1),
               LATER_RANK_OF('C', 0), LATER_RANK_OF('C', 1)}},
    {.name = "power, gc", .parts = 2, .saves = 1, .power = true, .prepared = true,
     .procs = {{.kind = RETIRER}, GC_OF(1), {.kind = READER}, RANK_OF('B', 0), LATER(READER),
               LATER_GC, LATER(FINISHER), LATER_RANK_OF('C', 0)}},
    {.name = "power, gc of the current attempt", .parts = 2, .saves = 1, .power = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), {.kind = RETIRER}, GC_OF(1), LATER(FINISHER),
               LATER_GC, LATER_RANK_OF('B', 0)}},

    {.name = "long: tree", .parts = 3, .saves = 1, .lost = 3, .flight = true, .wakes = true,
     .gc_check = true, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('A', 2)}},
    {.name = "long: waiters with gc", .parts = 3, .saves = 1, .is_long = true,
     .procs = {WAITER_OF('A', 0), WAITER_OF('A', 1), WAITER_OF('A', 2), GC_OF(1),
               {.kind = RETIRER}}},
    {.name = "long: zombie", .parts = 2, .saves = 1, .lost = 2, .flight = true, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), RANK_OF('B', 1)}},
    {.name = "long: zombie, gc twice", .parts = 2, .saves = 1, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), GC_OF(2), {.kind = FINISHER}}},
    {.name = "long: zombie with gc", .parts = 2, .saves = 1, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), RANK_OF('B', 1), GC_OF(1)}},
    {.name = "long: saves with gc", .parts = 2, .saves = 2, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), GC_OF(2), {.kind = RETIRER}, {.kind = FINISHER}}},
    {.name = "long: two gcs", .parts = 2, .saves = 1, .prepared = true, .lost = 1, .flight = true,
     .is_long = true,
     .procs = {{.kind = FINISHER}, RANK_OF('B', 0), GC_OF(1), GC_OF(1), {.kind = RETIRER}}},
    {.name = "long: power, lost answers", .parts = 2, .saves = 1, .power = true, .lost = 2,
     .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), {.kind = FINISHER}, LATER(FINISHER),
               LATER_RANK_OF('B', 0), LATER_RANK_OF('B', 1)}},
    {.name = "long: power, zombie with gc", .parts = 2, .saves = 1, .power = true, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), RANK_OF('B', 0), GC_OF(1), LATER_RANK_OF('C', 0),
               LATER(FINISHER), LATER_GC}},
    {.name = "long: power, two gcs", .parts = 2, .saves = 1, .power = true, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), {.kind = RETIRER}, GC_OF(1), GC_OF(1),
               LATER(FINISHER), LATER_GC}},
    {.name = "long: power, saves with gc", .parts = 2, .saves = 2, .power = true, .is_long = true,
     .procs = {RANK_OF('A', 0), RANK_OF('A', 1), GC_OF(1), {.kind = RETIRER}, LATER(FINISHER),
               LATER_GC, LATER(READER)}},
};

/* A set of flaws, the configuration that shows it, and the property it must break; NULL: none. */
struct mutation {
    const char *name;
    uint32_t flaws;
    const char *config, *property;
};

static const struct mutation mutations[] = {
    {"gc deletes by the head it read before it gave up", FLAW_GIVE_UP_BY_OLD_HEAD, "saves with gc",
     "GC SAFE"},
    {"gc deletes before it gives up", FLAW_DELETE_BEFORE_FLOOR, "saves with gc", "GC SAFE"},
    {"a commit ignores the floor", FLAW_FLOOR_IGNORED, "saves with gc", "GC SAFE"},
    {"forgetting does not raise the floor: a commit is tried again", FLAW_FORGET_KEEPS_FLOOR,
     "gc with lost answers", "NO LOST COMMIT"},
    {"forgetting does not raise the floor: a finisher is late", FLAW_FORGET_KEEPS_FLOOR,
     "readers", "NO LOST COMMIT"},
    {"joining does not reset the floor", FLAW_JOIN_KEEPS_FLOOR, "next attempt", "NO STUCK SET"},
    {"the floor is raised past a young save", FLAW_FLOOR_PAST_YOUNG, "saves with gc",
     "YOUNG SAVES STAY"},
    {"the floor is raised past a young save: nothing else breaks",
     FLAW_FLOOR_PAST_YOUNG | YOUNG_UNCHECKED, "saves with gc", NULL},

    {"a record is put behind one that is not durable", FLAW_APPEND_BEFORE_SYNC, "power, zombie",
     "LINEARIZABLE"},
    {"success is answered by a head that is not durable", FLAW_ANSWER_BEFORE_SYNC,
     "power, lost answers", "NO LOST COMMIT"},
    {"an attempt is joined by a head that is not durable", FLAW_JOIN_BEFORE_SYNC, "power, zombie",
     "NO MIXTURE"},
    {"a waiter reports by a head that is not durable", FLAW_WAIT_BEFORE_SYNC, "power, waiters",
     "NO LOST COMMIT"},
    {"a record that is found to be one's own is not synced", FLAW_SETTLE_BEFORE_SYNC,
     "power, lost answers", "NO LOST COMMIT"},
    {"a node that is found to be one's own is not synced", FLAW_NODE_BEFORE_SYNC,
     "power, lost answers", "GC SAFE"},
    {"a root that is found is not synced", FLAW_ROOT_BEFORE_SYNC, "power, lost answers",
     "GC SAFE"},
    {"gc deletes by a head that is not durable", FLAW_GC_BEFORE_SYNC, "power, gc", "GC SAFE"},

    {"no fence", FLAW_NO_FENCE, "zombie", "FENCING"},
    {"a superseded token joins again", FLAW_PAST_REJOINS, "zombie", "FENCING"},
    {"the sibling is looked up before the own leaf is put", FLAW_LOOK_FIRST, "tree",
     "NO SLEEPING SET"},
    {"a lost answer to a parent's put counts as another's", FLAW_LOST_PARENT_STOPS, "tree",
     "NO SLEEPING SET"},
    {"a join is settled by existence, not by nonce", FLAW_SETTLE_EXISTENCE, "zombie",
     "NO MIXTURE"},
    {"a commit is settled by existence, not by nonce", FLAW_SETTLE_EXISTENCE,
     "gc with lost answers", "NO LOST COMMIT"},
    {"a put overwrites", FLAW_OVERWRITE, "zombie", "LINEARIZABLE"},
    {"a refused change is put again as it was", FLAW_KEEPS_DECISION, "saves with gc", ""},
    {"gc takes every attempt but the current one for dead", FLAW_GC_NOT_EQUAL, "saves with gc",
     "GC SAFE"},
    {"gc spares the other saves of an old attempt that has an entry", FLAW_GC_SKIPS_OLD_SETS,
     "old saves", "GC CLEAN"},
    {"a lease is taken without reading the head again", FLAW_LEASE_UNCHECKED, "readers",
     "READERS"},
    {"gc ignores leases", FLAW_DELETE_LEASED, "readers", "READERS"},
};
/* clang-format on */

enum { CONFIGS = sizeof configs / sizeof configs[0] };
enum { MUTATIONS = sizeof mutations / sizeof mutations[0] };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Explores the configuration with the flaws; prints the numbers, and a trace if a property breaks.
 * Returns that property. */
static const char *explore(const struct config *config, uint32_t flaws)
{
    struct explore x = {.state_bytes = sizeof(struct state), .states_max = STATES_MAX};
    struct state initial;
    x.expand = model_expand;
    x.check = model_check;
    x.at_end = model_check_end;
    model_config = config;
    model_flaws = flaws;
    model_start(&initial);
    double began_s = now_s();
    bool holds = explore_run(&x, &initial);
    printf("  %s: %zu states, %zu transitions, depth %u, %zu ends, %.1f s: %s\n", config->name,
           x.states, x.transitions, x.depth, x.ends, now_s() - began_s,
           holds ? "every state visited, all properties hold" : "a property breaks");
    if (!holds)
        explore_trace(&x, &initial, stdout);
    fflush(stdout);
    explore_free(&x);
    return x.failed;
}

static void holds_in_every_state(void)
{
    const char *only = getenv("WEIR_MODEL");
    for (unsigned i = 0; i < CONFIGS; i++) {
        if (only ? !strstr(configs[i].name, only) : configs[i].is_long && !getenv("WEIR_TEST_LONG"))
            continue;
        CHECK(!explore(&configs[i], 0));
    }
}

static const struct config *config_named(const char *name)
{
    for (unsigned i = 0; i < CONFIGS; i++)
        if (!strcmp(configs[i].name, name))
            return &configs[i];
    return NULL;
}

static void every_flaw_is_found(void)
{
    for (unsigned i = 0; i < MUTATIONS; i++) {
        const struct mutation *mutation = &mutations[i];
        const struct config *config = config_named(mutation->config);
        CHECK(config);
        printf("%s\n", mutation->name);
        const char *broken = explore(config, mutation->flaws);
        CHECK(!broken == !mutation->property);
        CHECK(!broken || !strncmp(broken, mutation->property, strlen(mutation->property)));
    }
}

int main(void)
{
    RUN(holds_in_every_state);
    if (!getenv("WEIR_MODEL"))
        RUN(every_flaw_is_found);
    return TEST_RESULT;
}
