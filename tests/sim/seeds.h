/* seeds.h - which cases a simulation runs, and how to run a failing one again.
 *
 *   WEIR_SEED=n        only this one: what a failure prints
 *   WEIR_SIM_SEEDS=n   this many instead of 500 (for slow builds)
 *   WEIR_SIM_STRIDE=n  one case in n of every sweep
 *   WEIR_TEST_LONG     10,000 seeds, and no sweep leaves anything out by itself
 */
#ifndef WEIR_SIM_SEEDS_H
#define WEIR_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

/* Once, first thing in main(): failures will tell the seed and what was being done. */
void sim_seeds_init(void);
/* Seeds run from 1 to this. */
uint64_t sim_seeds(void);
/* Plays every seed that is asked for. */
void sim_each_seed(const char *what, void (*play)(uint64_t seed));
/* Sweeps number their cases and run them all; where there are many, only one in `stride`, unless
 * there is time for all. */
bool sim_case_wanted(uint64_t number, unsigned stride);
/* A program's arguments name the scenarios to play; none: all. */
bool sim_is_asked_for(const char *scenario, int argc, char **argv);
/* What to print when something fails from here on. */
void sim_scene(uint64_t seed, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
