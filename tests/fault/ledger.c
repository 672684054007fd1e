/* ledger.c - kill -9, stop and wake at any moment, with group commits. Eight ranks save under
 * incarnations that follow each other, in one store with a retirer, a reader and a gc; any of them
 * is killed or stopped, and a stopped one may wake when the next incarnation has long begun. After
 * each round a fresh process checks the log, every answer that anybody got, and every live save.
 * One store of four is on a disk, the others are in memory, where more happens in a round.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "ledger.h"
#include "proc.h"
#include "test.h"

enum {
    ROUNDS_SHORT = 200,
    ROUNDS_LONG = 2000,
    WORLD_ROUNDS_MAX = 100, /* then another store */
    ROUND_US_MAX = 250000,
    ACTIONS_MAX = 4,
    SLEEPERS_MAX = 16,
    LONG_SLEEP_EVERY = 20, /* rounds in which somebody sleeps longer than the grace */
};

struct slot {
    pid_t pid;
    bool stopped;
    struct start start;
};

static struct ledger_test *t;
static struct slot slots[ROLES];
static struct slot sleepers[SLEEPERS_MAX]; /* of incarnations before */
static unsigned killed, stopped, woken, incarnations;
static char kept[PLACE_ROOM]; /* a directory that stays if this ends now */
static pid_t main_pid;

static void name_kept(void)
{
    if (getpid() != main_pid || !kept[0])
        return;
    proc_end_all();
    printf("kept for a look: %s\n", kept);
}

/* ---- processes ---- */

static int start_main(void *arg)
{
    return role_main(arg);
}

static void reap(struct slot *slot, int answer)
{
    if (answer != 0 && answer != 128 + SIGKILL && !atomic_load(&t->complained))
        printf("process %u of round %u ended by itself: %d\n", slot->start.role, t->round, answer);
    CHECK(answer == 0 || answer == 128 + SIGKILL || atomic_load(&t->complained));
    slot->pid = 0;
    slot->stopped = false;
}

static void end(struct slot *slot)
{
    if (!slot->pid)
        return;
    reap(slot, proc_kill(slot->pid));
    killed++;
}

static void stop(struct slot *slot)
{
    stopped += proc_stop(slot->pid, &slot->stopped);
}

static void wake(struct slot *slot)
{
    woken += proc_wake(slot->pid, &slot->stopped);
}

/* Those that ended: a rank that learned that its time is over. */
static void reap_ended(struct slot *slot)
{
    int answer = slot->pid && !slot->stopped ? proc_wait_ms(slot->pid, 0) : -1;
    if (answer >= 0) {
        t->tally.zombies_refused += slot->start.role < RANKS && answer == 0;
        reap(slot, answer);
    }
}

static void start(unsigned role)
{
    slots[role] = (struct slot){.start = {t, role, atomic_load(&t->incarnation)}};
    slots[role].pid = proc_start(start_main, &slots[role].start);
}

/* ---- rounds ---- */

/* A new incarnation: the ranks of the one before are dead or asleep, some or all of them: only all
 * together can complete what they are about. */
static void begin_incarnation(struct dice *dice)
{
    unsigned asleep_one_in = dice_one_in(dice, 3) ? 1 : 6;
    for (unsigned i = 0; i < RANKS; i++) {
        unsigned bed = 0;
        while (bed < SLEEPERS_MAX && sleepers[bed].pid)
            bed++;
        if (slots[i].pid && bed < SLEEPERS_MAX &&
            (slots[i].stopped || dice_one_in(dice, asleep_one_in))) {
            stop(&slots[i]);
            sleepers[bed] = slots[i];
            slots[i] = (struct slot){0};
        }
        end(&slots[i]);
        atomic_store(&t->began[i], 0);
    }
    atomic_fetch_add(&t->incarnation, 1);
    incarnations++;
}

static void start_missing(struct dice *dice)
{
    unsigned want = 0;
    atomic_store(&t->ready, 0);
    for (unsigned i = 0; i < ROLES; i++) {
        reap_ended(&slots[i]);
        if (slots[i].pid || (i >= RANKS && dice_one_in(dice, 3)))
            continue;
        start(i);
        want++;
    }
    for (unsigned ms = 0; ms < 20000 && atomic_load(&t->ready) < want; ms++) {
        if (atomic_load(&t->complained))
            return;
        sleep_ms(1);
    }
}

static void act(struct dice *dice)
{
    struct slot *slot = &slots[dice_below(dice, ROLES)];
    switch (dice_below(dice, 8)) {
    case 0:
    case 1:
        end(slot);
        break;
    case 2: /* several */
        for (unsigned i = 0; i < RANKS; i++)
            if (dice_one_in(dice, 3))
                end(&slots[i]);
        break;
    case 3:
    case 4:
        stop(slot);
        break;
    case 5:
        wake(slot);
        break;
    default:
        for (unsigned i = 0; i < SLEEPERS_MAX; i++)
            wake(&sleepers[i]);
    }
}

static void run_round(struct dice *dice, bool long_sleep)
{
    unsigned actions = (unsigned)dice_below(dice, ACTIONS_MAX + 1);
    for (unsigned i = 0; i <= actions; i++) {
        sleep_us((unsigned)dice_below(dice, ROUND_US_MAX / (actions + 1)));
        if (i < actions)
            act(dice);
    }
    if (long_sleep) { /* half the grace is long for a writer, all of it for what it left */
        stop(&slots[dice_below(dice, ROLES)]);
        sleep_us(GRACE_S * 1300000);
    }
    for (unsigned i = 0; i < SLEEPERS_MAX; i++)
        if (dice_one_in(dice, 2))
            wake(&sleepers[i]);
    if (dice_one_in(dice, 3))
        sleep_us(ROUND_US_MAX / 10);
}

/* All stand still while a fresh process looks. */
static void check(void)
{
    bool ran[ROLES] = {0}, ran_old[SLEEPERS_MAX] = {0};
    for (unsigned i = 0; i < ROLES; i++) {
        reap_ended(&slots[i]);
        ran[i] = slots[i].pid && !slots[i].stopped;
        stop(&slots[i]);
    }
    for (unsigned i = 0; i < SLEEPERS_MAX; i++) {
        reap_ended(&sleepers[i]);
        ran_old[i] = sleepers[i].pid && !sleepers[i].stopped;
        stop(&sleepers[i]);
    }
    if (atomic_load(&t->complained))
        printf("COMPLAINT in round %u: %s\n", t->round, t->complaint);
    CHECK(!atomic_load(&t->complained));
    CHECK_EQ(proc_run(check_round, t), 0);
    for (unsigned i = 0; i < ROLES; i++)
        if (ran[i])
            wake(&slots[i]);
    for (unsigned i = 0; i < SLEEPERS_MAX; i++) {
        if (ran_old[i]) /* it had its time */
            end(&sleepers[i]);
    }
}

static void round_run(unsigned round)
{
    struct dice dice = {mix(t->seed, round)};
    t->round = round;
    if (!atomic_load(&t->incarnation) || !dice_one_in(&dice, 4))
        begin_incarnation(&dice);
    start_missing(&dice);
    run_round(&dice, round % LONG_SLEEP_EVERY == LONG_SLEEP_EVERY - 1);
    if (dice_one_in(&dice, 3)) /* all ranks at once */
        for (unsigned i = 0; i < RANKS; i++)
            end(&slots[i]);
    check();
}

/* ---- stores ---- */

static void world_begin(const char *base)
{
    memset(&t->calls, 0, sizeof t->calls);
    memset(&t->steps, 0, sizeof t->steps);
    atomic_store(&t->incarnation, 0);
    snprintf(kept, sizeof kept, "%s/weir-ledger-XXXXXX", base);
    CHECK(mkdtemp(kept));
    snprintf(t->root, sizeof t->root, "%.*s/store", PLACE_ROOM - 8, kept);
    weir_store_close(store_must_open(t->root, "threads", WEIR_STORE_CREATE, GRACE_S));
}

static void world_end(void)
{
    for (unsigned i = 0; i < ROLES; i++)
        end(&slots[i]);
    for (unsigned i = 0; i < SLEEPERS_MAX; i++)
        end(&sleepers[i]);
    CHECK_EQ(proc_run(check_end, t), 0);
    unsigned calls = atomic_load(&t->calls.count), told = 0, refused = 0, joins = 0;
    for (unsigned i = 0; i < calls; i++) {
        const struct call *c = &t->calls.calls[i];
        bool commit = c->kind == CALL_PUT || c->kind == CALL_WAIT;
        told += atomic_load(&c->done) && !c->code && (c->committed || c->kind == CALL_WAIT);
        refused += atomic_load(&c->done) && c->code == -ESTALE && commit;
        joins += c->kind == CALL_JOIN;
    }
    printf("%s: %u calls in one order; %llu records, %u saves committed (%u told so, %u refused), "
           "%u joins of %u incarnations\n",
           t->root, calls, (unsigned long long)t->steps.head, t->steps.saves, told, refused, joins,
           atomic_load(&t->incarnation));
    fflush(stdout);
    disk_remove(kept);
    kept[0] = 0;
}

int main(void)
{
    const char *few = getenv("WEIR_ROUNDS"), *temp = getenv("TMPDIR");
    unsigned rounds = few                        ? (unsigned)atoi(few)
                      : getenv("WEIR_TEST_LONG") ? ROUNDS_LONG
                                                 : ROUNDS_SHORT;
    const char *disk = temp && *temp ? temp : "/tmp", *memory = place_memory();
    uint64_t begin_ns = now_ns();
    t = shared_alloc(sizeof *t);
    t->seed = seed_choose();
    main_pid = getpid();
    atexit(name_kept);
    unsigned each = rounds / 4 < WORLD_ROUNDS_MAX ? (rounds + 3) / 4 : WORLD_ROUNDS_MAX;
    for (unsigned round = 0, world = 0; round < rounds; world++) {
        world_begin(world % 4 && memory ? memory : disk);
        for (unsigned i = 0; i < each && round < rounds; i++)
            round_run(round++);
        world_end();
        printf("round %u, %.1f s\n", round, (double)(now_ns() - begin_ns) / 1e9);
    }
    const struct tally *y = &t->tally;
    printf("%u incarnations; %u processes killed, %u stopped, %u woken; %lu zombies learned that "
           "their time is over\n",
           incarnations, killed, stopped, woken, y->zombies_refused);
    printf("%lu saves verified after rounds, %lu views with %lu objects beside them; gc took %lu "
           "saves\n",
           y->verified, y->views, y->objects_read, y->collections + y->saves_collected);
    return TEST_RESULT;
}
