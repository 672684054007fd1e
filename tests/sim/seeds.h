/* seeds.h - which cases a simulation runs, and how to run a failing one again.
 *
 *   WEIR_SEED=n        only this one: what a failure prints
 *   WEIR_SIM_SEEDS=n   this many instead of 500 (for slow builds)
 *   WEIR_TEST_LONG     10,000 of them
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
/* Sweeps number their cases and run them all. false: WEIR_SEED asks for another one. */
bool sim_wanted(uint64_t seed);
/* Where there are many, only one case in `stride` is run, unless there is time for all. */
bool sim_left_out(uint64_t number, unsigned stride);
/* A program's arguments name the scenarios to play; none: all. */
bool sim_is_asked_for(const char *scenario, int argc, char **argv);
/* What to print when something fails from here on. */
void sim_scene(uint64_t seed, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
