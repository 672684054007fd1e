/* ckpt_kill.c - kill -9 of ranks that save checkpoints, at any moment. Four ranks train; one or all
 * of them die, or sleep; the job is started again with a new token, as a scheduler would, while
 * ranks of the life before may still be asleep, and wake later. After each round a fresh process
 * loads the newest checkpoint: every byte of it must be of one life and one save, and none that
 * anybody was told of may be lost. At the end nothing but the checkpoints that stay is there.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "proc.h"
#include "run.h"
#include "test.h"

enum {
    ROUNDS_SHORT = 100,
    ROUNDS_LONG = 1500,
    ROUND_US_MAX = 300000,
    START_MS_MAX = 300000,
    SLEEPERS_MAX = 8,
    LAST_SAVES = 3,
};

struct slot {
    pid_t pid;
    bool stopped;
    struct rank rank;
};

static struct run *run;
static struct slot slots[RANKS], sleepers[SLEEPERS_MAX];
static unsigned killed, stopped, lives_woken;
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

static void reap(struct slot *slot, int answer)
{
    if (atomic_load(&run->complained))
        printf("COMPLAINT: %s\n", run->complaint);
    else if (answer && answer != 128 + SIGKILL)
        printf("rank %u of life %u ended by itself: %d\n", slot->rank.rank, slot->rank.life,
               answer);
    CHECK(!atomic_load(&run->complained) && (!answer || answer == 128 + SIGKILL));
    *slot = (struct slot){0};
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
    proc_wake(slot->pid, &slot->stopped);
}

static void start(unsigned i, uint64_t saves_max)
{
    slots[i] = (struct slot){.rank = {run, i, atomic_load(&run->life), saves_max}};
    slots[i].pid = proc_start(rank_main, &slots[i].rank);
}

/* ---- rounds ---- */

/* The ranks of the life before are dead, or asleep, some or all of them. */
static void begin_life(struct dice *dice, uint64_t saves_max)
{
    for (unsigned i = 0; i < RANKS; i++) {
        unsigned bed = 0;
        while (bed < SLEEPERS_MAX && sleepers[bed].pid)
            bed++;
        if (slots[i].pid && bed < SLEEPERS_MAX && (slots[i].stopped || dice_one_in(dice, 3))) {
            stop(&slots[i]);
            sleepers[bed] = slots[i];
            slots[i] = (struct slot){0};
        }
        end(&slots[i]);
    }
    atomic_fetch_add(&run->life, 1);
    atomic_store(&run->ready, 0);
    for (unsigned i = 0; i < RANKS; i++)
        start(i, saves_max);
    for (unsigned ms = 0; ms < START_MS_MAX && atomic_load(&run->ready) < RANKS; ms++) {
        CHECK(!atomic_load(&run->complained) || (printf("%s\n", run->complaint), false));
        sleep_ms(1);
    }
    CHECK_EQ(proc_run(run_note_old, run), 0);
}

/* Those of older lives wake now, in the middle of the new one, and learn that they are over. */
static void wake_sleepers(struct dice *dice)
{
    bool all = dice_one_in(dice, 2); /* only all together can complete what they are about */
    for (unsigned i = 0; i < SLEEPERS_MAX; i++) {
        if (!sleepers[i].pid || (!all && !dice_one_in(dice, 2)))
            continue;
        lives_woken++;
        wake(&sleepers[i]);
    }
}

static void reap_woken(void)
{
    for (unsigned i = 0; i < SLEEPERS_MAX; i++)
        if (sleepers[i].pid && !sleepers[i].stopped) {
            int answer = proc_wait_ms(sleepers[i].pid, START_MS_MAX);
            CHECK(answer >= 0); /* it must learn it, and end */
            reap(&sleepers[i], answer);
        }
}

static void act(struct dice *dice)
{
    struct slot *slot = &slots[dice_below(dice, RANKS)];
    switch (dice_below(dice, 5)) {
    case 0:
        stop(slot);
        sleep_us((unsigned)dice_below(dice, ROUND_US_MAX / 4));
        wake(slot);
        break;
    case 1:
        for (unsigned i = 0; i < RANKS; i++)
            end(&slots[i]);
        break;
    case 2: /* the whole job sleeps, until the next life has begun */
        for (unsigned i = 0; i < RANKS; i++)
            stop(&slots[i]);
        break;
    default:
        end(slot);
    }
}

static void round_run(struct dice *dice)
{
    begin_life(dice, 0);
    wake_sleepers(dice);
    sleep_us((unsigned)dice_below(dice, ROUND_US_MAX));
    act(dice);
    if (dice_one_in(dice, 2))
        CHECK_EQ(proc_run(run_check, run), 0); /* beside those that are left */
    reap_woken();
    if (!slots[0].stopped && dice_one_in(dice, 2))
        for (unsigned i = 0; i < RANKS; i++)
            end(&slots[i]);
    CHECK_EQ(proc_run(run_check, run), 0);
}

int main(void)
{
    const char *few = getenv("WEIR_ROUNDS"), *temp = getenv("TMPDIR"), *memory = place_memory();
    unsigned rounds = few                        ? (unsigned)atoi(few)
                      : getenv("WEIR_TEST_LONG") ? ROUNDS_LONG
                                                 : ROUNDS_SHORT;
    uint64_t begin_ns = now_ns();
    run = shared_alloc(sizeof *run);
    struct dice dice = {seed_choose()};
    main_pid = getpid();
    atexit(name_kept);
    snprintf(kept, sizeof kept, "%s/weir-ckpt-XXXXXX", memory ? memory : temp ? temp : "/tmp");
    CHECK(mkdtemp(kept));
    snprintf(run->root, sizeof run->root, "%.*s/store", PLACE_ROOM - 8, kept);
    weir_store_close(store_must_open(run->root, "threads", WEIR_STORE_CREATE, 0));
    for (unsigned i = 0; i < rounds; i++)
        round_run(&dice);
    begin_life(&dice, LAST_SAVES); /* one that nobody disturbs brings all back to order */
    for (unsigned i = 0; i < RANKS; i++)
        reap(&slots[i], proc_wait(slots[i].pid));
    for (unsigned i = 0; i < SLEEPERS_MAX; i++)
        end(&sleepers[i]);
    CHECK_EQ(proc_run(run_check, run), 0);
    CHECK_EQ(proc_run(run_check_end, run), 0);
    printf("%u lives; %u ranks killed, %u stopped, %u of older lives woken, %u refused; step %lu; "
           "told of %u commits; %lu checkpoints checked; %.1f s\n",
           atomic_load(&run->life), killed, stopped, lives_woken, atomic_load(&run->refused),
           (unsigned long)run->checked_step, atomic_load(&run->commits_told),
           (unsigned long)run->checks, (double)(now_ns() - begin_ns) / 1e9);
    CHECK(atomic_load(&run->commits_told) > RANKS * LAST_SAVES); /* some in spite of it all */
    disk_remove(kept);
    kept[0] = 0;
    return TEST_RESULT;
}
