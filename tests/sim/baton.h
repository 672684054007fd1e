/* baton.h - simulated processes: real threads of which exactly one holds the baton. At every
 * system call the holder asks who goes on, and the answer is a function of the seed.
 *
 * A process that is killed has no effect from then on: its descriptors are closed, its calls
 * answer -EIO, and its thread unwinds through the library's own error paths.
 */
#ifndef WEIR_SIM_BATON_H
#define WEIR_SIM_BATON_H

#include "sim.h"

enum { SIM_PROCS_MAX = 8 };

/* Runs the processes until all have ended. */
void sim_run(struct sim_proc *procs, unsigned count);
/* Hands the baton on, perhaps to the caller itself. */
void sim_baton_pass(void);
/* The caller waits for a lock: others go on until one was given up. False: the caller is dead. */
bool sim_baton_wait(void);
/* Holds the caller back. */
void sim_baton_hold(uint64_t ns);

#endif
