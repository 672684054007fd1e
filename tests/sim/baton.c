/* baton.c - see baton.h. */
#include "baton.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t all_done;

static void release(struct sim_proc *proc)
{
    proc->held = false;
    if (proc->hold_paused)
        proc->boot_lag_ns += sim.clock_ns - proc->held_since_ns;
}

static bool can_run(struct sim_proc *proc)
{
    if (proc->done)
        return false;
    if (proc->dead || sim.off)
        return true; /* to unwind */
    if (proc->held && sim.clock_ns - proc->held_since_ns >= proc->held_ns)
        release(proc);
    return !proc->held && (!proc->waiting || proc->waits_for != sim.fs->unlocks);
}

static unsigned find_ready(struct sim_proc **ready)
{
    unsigned count = 0;
    for (unsigned i = 0; i < sim.procs_count; i++)
        if (can_run(&sim.procs[i]))
            ready[count++] = &sim.procs[i];
    return count;
}

/* Who goes on; NULL: all have ended. */
static struct sim_proc *pick(void)
{
    struct sim_proc *ready[SIM_PROCS_MAX], *self = sim_self;
    unsigned count = find_ready(ready);
    if (!count) {
        for (unsigned i = 0; i < sim.procs_count; i++)
            if (sim.procs[i].held)
                release(&sim.procs[i]);
        count = find_ready(ready);
    }
    for (unsigned i = 0; !count && i < sim.procs_count; i++)
        if (!sim.procs[i].done) {
            fprintf(stderr, "deadlock: '%s' waits for a lock that nobody will give up\n",
                    sim.procs[i].name);
            abort();
        }
    for (unsigned i = 0; i < count; i++)
        if (ready[i] == self && weir_rng_percent(&sim.chance, sim.stay_percent))
            return self;
    return count ? ready[weir_rng_below(&sim.chance, count)] : NULL;
}

static void hold(struct sim_proc *proc, uint64_t ns)
{
    proc->held = true;
    proc->held_since_ns = sim.clock_ns;
    proc->held_ns = ns;
}

void sim_baton_pass(void)
{
    struct sim_proc *self = sim_self;
    if (self->hold_call && self->calls + 1 == self->hold_call && !self->waiting && !self->held) {
        self->hold_call = 0;
        hold(self, self->hold_call_ns);
    }
    struct sim_proc *next = pick();
    if (next == self)
        return;
    sem_post(&next->turn);
    sem_wait(&self->turn);
}

bool sim_baton_wait(void)
{
    struct sim_proc *self = sim_self;
    assert(sim.procs && "one process alone waits for its own lock");
    self->waiting = true;
    self->waits_for = sim.fs->unlocks;
    sim_baton_pass();
    self->waiting = false;
    return !sim.off;
}

void sim_baton_hold(uint64_t ns)
{
    hold(sim_self, ns);
    sim_baton_pass();
}

static void *run(void *arg)
{
    struct sim_proc *self = sim_self = arg;
    sem_wait(&self->turn);
    self->body(self);
    self->done = true;
    struct sim_proc *next = pick();
    sem_post(next ? &next->turn : &all_done);
    return NULL;
}

void sim_run(struct sim_proc *procs, unsigned count)
{
    static const unsigned stays[] = {0, 40, 80, 95, 99};
    assert(count && count <= SIM_PROCS_MAX);
    sim.procs = procs;
    sim.procs_count = count;
    sim.stay_percent = stays[weir_rng_below(&sim.chance, sizeof stays / sizeof stays[0])];
    sem_init(&all_done, 0, 0);
    for (unsigned i = 0; i < count; i++) {
        procs[i].id = (int)i + 1;
        sem_init(&procs[i].turn, 0, 0);
        int code = pthread_create(&procs[i].thread, NULL, run, &procs[i]);
        assert(!code);
    }
    struct sim_proc *first = &procs[weir_rng_below(&sim.chance, count)];
    sem_post(&first->turn);
    sem_wait(&all_done);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(procs[i].thread, NULL);
        sem_destroy(&procs[i].turn);
    }
    sem_destroy(&all_done);
    sim.procs = NULL;
}
