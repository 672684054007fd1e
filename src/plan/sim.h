/* sim.h - a training job simulated: ranks that compute, read and save over tiers, with failures and
 * repairs, from a seed. Pure: no files, no clock, no chance but its own; any thread, one run each.
 *
 * All nodes do the same at the same time, since a step waits for the slowest: so they are one
 * class, and cost the same however many they are. Between two events all rates are constant, and
 * what happens meanwhile is a product, not a loop over steps. An event is whatever changes a rate:
 * a transfer begins or ends, a queue runs empty or full, a save is due, a node fails or returns.
 *
 * Rates are bytes a second, times are seconds, sizes are bytes; all are finite and not negative.
 */
#ifndef WEIR_PLAN_SIM_H
#define WEIR_PLAN_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_SIM_TIERS_MAX = 4,
    WEIR_SIM_QUEUE_MAX = 64,
    WEIR_SIM_BINS = 240, /* of a record over time: as many as a plot can show */
    WEIR_SIM_NODES_MAX = 10000000,
};
/* Events of one run, if nothing else is said: some ten seconds. */
#define WEIR_SIM_EVENTS_MAX UINT64_C(30000000)

struct weir_sim_tier {
    const char *name;             /* borrowed */
    double read_node, write_node; /* what one node gets at most; 0: no bound of its own */
    double read_all, write_all;   /* what all nodes get together; 0: no common bound */
    double latency_s;             /* before the first byte of a batch, a save or a load */
    double burst_bytes;           /* of each node's cache for writes (SLC); 0: none */
    double burst_write;           /* while that has room; then write_node. It empties at write_node
                                     while less is written than it takes */
    bool is_remote;               /* it goes over the node's network */
    bool is_safe;                 /* what it holds outlives a node */
};

struct weir_sim_setup {
    uint64_t seed;
    double nodes, ranks; /* ranks of each node */
    double time_s;       /* how long to simulate; or 0: */
    double steps;        /* until so many are done for good (0: until time_s) */
    double network;      /* a node's, each way; 0: no bound */
    struct weir_sim_tier tiers[WEIR_SIM_TIERS_MAX];
    int tier_count;
    /* A step computes for step_s with one batch of batch_bytes for each rank. */
    double step_s, batch_bytes;
    int data_tier;
    double prefetch; /* batches that may be ready; 0: read when they are wanted */
    double readers;  /* batches that a rank reads at once */
    /* A save is written to the first of these, and from there to the next. */
    int save_tiers[WEIR_SIM_TIERS_MAX], save_tier_count; /* none: nothing is saved */
    double save_bytes;                                   /* of all ranks together */
    double interval_s;  /* of training between saves, stalls of saves not counted; or 0: */
    double save_steps;  /* of training between saves */
    bool is_sync;       /* training waits until the first tier has it */
    double copy_rate;   /* of a node's snapshot; 0: it takes no time */
    double stage_bytes; /* a node's memory for snapshots; 0: as much as it takes */
    double save_rate;   /* a node's save is written no faster; 0: no bound */
    int queue;          /* saves that may be under way */
    /* Failures: of each node, exponential. */
    double mtbf_s;             /* 0: none */
    double loss_share;         /* of failures that take the node and its disks with it */
    double detect_s, launch_s; /* until it is known; until processes run again */
    double spares, repair_s;
    uint64_t events_max;           /* 0: WEIR_SIM_EVENTS_MAX */
    bool (*is_stopped)(void *arg); /* asked now and then; may be NULL */
    void *arg;
};

/* What the time went to. */
enum weir_sim_cause {
    WEIR_SIM_COMPUTE,
    WEIR_SIM_READ,   /* waited for a batch */
    WEIR_SIM_QUEUE,  /* too many saves under way */
    WEIR_SIM_STAGE,  /* no room for the snapshot */
    WEIR_SIM_COPY,   /* the snapshot */
    WEIR_SIM_WRITE,  /* a synchronous save */
    WEIR_SIM_DETECT, /* after a failure */
    WEIR_SIM_SPARE,  /* no node to go on with */
    WEIR_SIM_LAUNCH,
    WEIR_SIM_LOAD,
    WEIR_SIM_CAUSES,
    /* Where those of saves begin, and those of restarts, which are the last. */
    WEIR_SIM_SAVE_FIRST = WEIR_SIM_QUEUE,
    WEIR_SIM_RESTART_FIRST = WEIR_SIM_DETECT,
};

struct weir_sim_sum {
    double time_s[WEIR_SIM_CAUSES];
    double lost_s; /* part of what was computed, and done again */
    double read_bytes[WEIR_SIM_TIERS_MAX], written_bytes[WEIR_SIM_TIERS_MAX];
};

struct weir_sim_level {
    double saves;    /* that were complete there */
    double restarts; /* from there */
};

struct weir_sim_result {
    double time_s, steps; /* steps: done for good, or not lost so far */
    struct weir_sim_sum sum;
    double saves, failures, losses; /* saves begun; losses: failures that took a node */
    double scratch;                 /* restarts from nothing */
    struct weir_sim_level levels[WEIR_SIM_TIERS_MAX];
    double cliff_s; /* time of writing beyond the burst cache */
    uint64_t events;
    /* Over time: the sum of each bin_s. */
    double bin_s;
    int bin_count;
    struct weir_sim_sum bins[WEIR_SIM_BINS];
};

/* Everything off: one node of one rank. */
void weir_sim_setup_init(struct weir_sim_setup *setup);
/* -EINVAL names what is wrong. */
int weir_sim_setup_check(const struct weir_sim_setup *setup);
/* Runs it. -EINVAL names what is wrong with the setup; -E2BIG: too many events; -EINTR: is_stopped
 * said so (*out is what there is by then). */
int weir_sim_run(struct weir_sim_result *out, const struct weir_sim_setup *setup);

/* For all causes from the first to the one before the end. */
double weir_sim_time_of(const struct weir_sim_sum *sum, enum weir_sim_cause first,
                        enum weir_sim_cause end);

#endif
