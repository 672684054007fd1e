/* simulate.h - what weir plan simulate found, and how it is shown: as text, JSON, charts. */
#ifndef WEIR_CLI_SIMULATE_H
#define WEIR_CLI_SIMULATE_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "plan/sim_plan.h"

/* Where the time goes: shares of it, which add up to 1. */
enum simulate_part {
    SIMULATE_GOOD, /* computed, and kept */
    SIMULATE_LOST, /* computed again */
    SIMULATE_READ,
    SIMULATE_SAVE,
    SIMULATE_RESTART,
    SIMULATE_PARTS,
};
extern const char *const simulate_part_names[SIMULATE_PARTS];

/* All runs with one interval. */
struct simulate_case {
    double interval_s;           /* 0: by steps, or none */
    double part[SIMULATE_PARTS]; /* means */
    double good_min, good_max, good_sd;
    double cause[WEIR_SIM_CAUSES];                                   /* shares: means */
    double saves, failures, losses, scratch, steps, time_s, cliff_s; /* means */
    double restarts[WEIR_SIM_TIERS_MAX], complete[WEIR_SIM_TIERS_MAX];
    double read_bytes[WEIR_SIM_TIERS_MAX], written_bytes[WEIR_SIM_TIERS_MAX];
    uint64_t events;
    struct weir_sim_result first; /* of the first seed, over time */
};

struct simulate {
    const struct weir_plan_in *in;
    struct weir_sim_setup setup;
    int runs, count, best; /* best: with the most goodput */
    struct simulate_case *cases;
};

void simulate_add(struct simulate_case *one, const struct weir_sim_result *result, int run);
/* Means of what was added. */
void simulate_end(struct simulate_case *one, int runs);
void simulate_bin(double part[SIMULATE_PARTS], const struct weir_sim_sum *sum);

/* A few sentences on what costs the most, and what would change it; NULL when there are no more. */
enum { SIMULATE_TEXT_BYTES = 400 };
const char *simulate_advice(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim);
/* "512 GPUs on 64 nodes, …" and "checkpoints of …". */
const char *simulate_job(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim);
const char *simulate_saves(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim);
const char *simulate_failures(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim);
/* What was not told and counts; NULL: nothing. */
const char *simulate_assumed(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim);
const char *simulate_cause_name(enum weir_sim_cause cause);

void simulate_show(const struct simulate *sim);
json_t *simulate_json(const struct simulate *sim);
void simulate_page(FILE *out, const struct simulate *sim);
void simulate_svg(FILE *out, const struct simulate *sim);

#endif
