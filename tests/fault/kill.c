/* kill.c - kill -9 at any moment. Writers, a remover, a reader and a gc work on one store and are
 * killed, all at once or one by one, some of them stopped for a while before; then a fresh process
 * checks everything. Two stores take turns: one on a disk, one in memory, where the same steps
 * take other times.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk.h"
#include "kill.h"
#include "proc.h"
#include "test.h"

enum {
    ROUNDS_SHORT = 200,
    ROUNDS_LONG = 2000,
    ROUND_US_MAX = 150000,
    FRESH_EVERY = 20,  /* rounds that begin with no store: its making is interrupted, too */
    ZOMBIE_EVERY = 40, /* rounds in which a writer sleeps longer than the grace */
};

struct start {
    struct kill_test *t;
    unsigned role;
};

static int start_main(void *arg)
{
    struct start *start = arg;
    return role_main(start->t, start->role);
}

/* An old file, as a writer that died long ago left it. */
static void plant(const char *root, const char *dir, const char *name)
{
    char path[2 * PLACE_ROOM];
    snprintf(path, sizeof path, "%s/.weir/%s/", root, dir);
    for (char *at = path + strlen(root) + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(path, 0777);
            *at = '/';
        }
    strncat(path, name, sizeof path - strlen(path) - 1);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "left behind", 11), 11);
    struct timespec old[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
    CHECK(futimens(fd, old) == 0);
    close(fd);
}

/* Debris at keys the writers are about to use: gc and they meet there. */
static void plant_debris(const char *root, struct dice *dice)
{
    static const char *const at[][2] = {{"data", "s0"}, {"data/a", "b"}, {"data/deep/x/y", "z0"}};
    char name[KEY_ROOM];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s~%016llx%016llx", at[i][1],
                 (unsigned long long)dice_next(dice), (unsigned long long)dice_next(dice));
        if (dice_one_in(dice, 2))
            plant(root, at[i][0], name);
    }
    snprintf(name, sizeof name, "%016llx", (unsigned long long)dice_next(dice));
    plant(root, "tmp", name);
}

static void wait_ready(struct kill_test *t, unsigned want)
{
    for (unsigned ms = 0; ms < 20000 && atomic_load(&t->ready) < want; ms++) {
        if (atomic_load(&t->complained))
            return;
        sleep_ms(1);
    }
}

/* Lets them run, stops some for a while, and kills all. */
static void run_and_kill(struct kill_test *t, pid_t pids[ROLES], struct dice *dice, bool zombie)
{
    unsigned rest_us = 500 + (unsigned)dice_below(dice, ROUND_US_MAX);
    if (zombie || dice_one_in(dice, 5)) {
        unsigned who = (unsigned)dice_below(dice, zombie ? WRITERS : ROLES);
        unsigned first_us = (unsigned)dice_below(dice, rest_us);
        sleep_us(first_us);
        rest_us -= first_us;
        if (pids[who])
            kill(pids[who], SIGSTOP);
        sleep_us(zombie ? GRACE_S * 1200000 : rest_us / 2);
        if (pids[who] && dice_one_in(dice, zombie ? 1000 : 2)) /* or it is killed as it stands */
            rest_us = 0;
        else if (pids[who])
            kill(pids[who], SIGCONT);
    }
    sleep_us(rest_us);
    bool staggered = dice_one_in(dice, 3);
    for (unsigned i = 0; i < ROLES; i++) {
        if (pids[i])
            kill(pids[i], SIGKILL);
        if (staggered)
            sleep_us((unsigned)dice_below(dice, 5000));
    }
    for (unsigned i = 0; i < ROLES; i++)
        if (pids[i]) {
            int answer = proc_wait(pids[i]);
            if (answer != 128 + SIGKILL && !atomic_load(&t->complained))
                printf("round %u: process %u ended by itself: %d\n", t->round, i, answer);
            CHECK(answer == 128 + SIGKILL || atomic_load(&t->complained));
        }
}

static void round_run(struct kill_test *t, unsigned round)
{
    struct dice dice = {mix(t->seed, round)};
    bool fresh = round % FRESH_EVERY < 2, zombie = round % ZOMBIE_EVERY >= ZOMBIE_EVERY - 2;
    bool with_gc = zombie || dice_one_in(&dice, 3);
    pid_t pids[ROLES] = {0};
    struct start starts[ROLES];
    t->round = round;
    t->world = &t->worlds[round % 2];
    t->big = dice_one_in(&dice, 12);
    atomic_store(&t->ready, 0);
    history_reset(&t->history);
    if (fresh) {
        disk_remove(t->world->root);
        t->world->count = 0;
    } else if (with_gc) {
        plant_debris(t->world->root, &dice);
    }
    for (unsigned i = 0; i < t->world->count; i++)
        history_given(&t->history, ROLE_GIVEN, t->world->objects[i].key, t->world->objects[i].what);
    unsigned started = 0;
    for (unsigned i = 0; i < ROLES; i++) {
        starts[i] = (struct start){t, i};
        if (i < WRITERS || (i == ROLE_GC ? with_gc : dice_one_in(&dice, 2))) {
            pids[i] = proc_start(start_main, &starts[i]);
            started++;
        }
    }
    if (!fresh)
        wait_ready(t, started);
    run_and_kill(t, pids, &dice, zombie);
    if (atomic_load(&t->complained))
        printf("COMPLAINT in round %u: %s\n", round, t->complaint);
    CHECK(!atomic_load(&t->complained));
    CHECK_EQ(proc_run(check_main, t), 0);
}

int main(void)
{
    struct kill_test *t = shared_alloc(sizeof *t);
    unsigned rounds = getenv("WEIR_TEST_LONG") ? ROUNDS_LONG : ROUNDS_SHORT;
    const char *few = getenv("WEIR_ROUNDS");
    struct history_totals sum = {0};
    uint64_t begin_ns = now_ns();
    if (few)
        rounds = (unsigned)atoi(few);
    t->seed = seed_choose();
    snprintf(t->worlds[0].root, PLACE_ROOM, "%s/store", place_temp(NULL));
    snprintf(t->worlds[1].root, PLACE_ROOM, "%s/store", place_temp(place_memory()));
    printf("%u rounds in %s and %s\n", rounds, t->worlds[0].root, t->worlds[1].root);
    for (unsigned round = 0; round < rounds; round++) {
        round_run(t, round);
        struct history_totals n = history_count(&t->history);
        sum.puts += n.puts, sum.puts_ok += n.puts_ok, sum.puts_open += n.puts_open;
        sum.removes += n.removes, sum.removes_ok += n.removes_ok;
        sum.removes_open += n.removes_open, sum.gets += n.gets;
        if (round % 50 == 49)
            printf("round %u, %.1f s\n", round + 1, (double)(now_ns() - begin_ns) / 1e9);
        fflush(stdout);
    }
    const struct tally *y = &t->tally;
    printf("%u puts: %u acknowledged, %u in doubt (%lu were there, %lu not); "
           "%u removes: %u acknowledged, %u in doubt; %u reads\n",
           sum.puts, sum.puts_ok, sum.puts_open, y->doubt_there, y->doubt_gone, sum.removes,
           sum.removes_ok, sum.removes_open, sum.gets);
    printf("%lu objects verified; gc took %lu data files, %lu temporaries, placed %lu voids, "
           "restored %lu plain names\n",
           y->listed, y->collected, y->temporaries, y->voids, y->links);
    return TEST_RESULT;
}
