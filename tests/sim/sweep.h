/* sweep.h - an operation, with every one of its system calls and allocations failing in turn, in
 * every way. Cases are numbered through all sweeps of a program: WEIR_SEED=n runs case n alone.
 */
#ifndef WEIR_SIM_SWEEP_H
#define WEIR_SIM_SWEEP_H

#include "sim.h"

/* How many calls and allocations an operation makes when nothing fails, and which calls. */
struct sim_census {
    uint64_t calls, allocs;
    uint8_t trace[SIM_TRACE_MAX];
};

/* What was counted since sim.calls and sim.allocs were last set to zero; nothing if NULL. */
void sim_census_take(struct sim_census *census);

struct sim_sweep {
    const char *name;
    /* One case, from the start of the machine to its stop. */
    void (*run)(const void *op, const struct sim_fault *fault, bool power_loss,
                struct sim_census *census);
    const void *op;
    bool reads;      /* changes nothing that a power loss could take */
    bool twice;      /* failures that come twice, too, not just once and for ever */
    unsigned stride; /* one case in so many, unless there is time (WEIR_TEST_LONG); 0: all */
};

void sim_sweep(const struct sim_sweep *sweep);
/* A story, with the power gone after every one of its calls, and several draws of what survives.
 * `cut` tells the story, cut after so many calls, and returns how many there were. */
void sim_every_cut(uint64_t draws, uint64_t (*cut)(uint64_t calls, uint64_t seed));
/* The number of the next case, for those that a program runs itself. */
uint64_t sim_case_next(void);
uint64_t sim_cases(void);

#endif
