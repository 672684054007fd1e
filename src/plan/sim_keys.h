/* sim_keys.h - what only a simulation is told, declared as keys.h declares the rest: the section
 * "simulate" of a plan. Some keys of other sections have another default or range here.
 */
#ifndef WEIR_PLAN_SIM_KEYS_H
#define WEIR_PLAN_SIM_KEYS_H

#include "plan/keys.h"

#define PLAN_SIM_TIME_OPT(name, field, def, help)                                                  \
    {                                                                                              \
        name, 0, WEIR_OPT_DURATION, WEIR_PLAN_AT(field), def, "TIME", help, 0, 9.2e9               \
    }
#define PLAN_SIM_FLAG_OPT(name, field, help)                                                       \
    {                                                                                              \
        name, 0, WEIR_OPT_FLAG, WEIR_PLAN_AT(field), "no", NULL, help, 0, 0                        \
    }

/* Of other sections. */
#define PLAN_SIM_STEP WEIR_PLAN_TIME_OPT("step", step_ns, "1s", "that a step computes")
#define PLAN_SIM_DEPTH                                                                             \
    WEIR_PLAN_COUNT_OPT("depth", depth, "4",                                                       \
                        "batches of a GPU that may be ready; 0: read when they are wanted", 0,     \
                        1e5)
#define PLAN_SIM_WORKERS                                                                           \
    WEIR_PLAN_COUNT_OPT("workers", workers, "8", "batches of a GPU that are read at once", 1, 1e6)
#define PLAN_SIM_LATENCY                                                                           \
    WEIR_PLAN_TIME_OPT("latency", latency_ns, NULL,                                                \
                       "of a read of data, to its first byte (default: 100us, 1ms, 30ms by tier)")
#define PLAN_SIM_RESTART                                                                           \
    PLAN_SIM_TIME_OPT("restart", restart_ns, "5min", "until processes run again, before they load")
#define PLAN_SIM_OVER                                                                              \
    WEIR_PLAN_TIME_OPT("over", over_ns, NULL, "how long it goes on (default: 14d, or --steps)")
#define PLAN_SIM_INTERVAL                                                                          \
    WEIR_PLAN_TIME_OPT("interval", interval_ns, NULL,                                              \
                       "of training between two checkpoints (default: 30min)")

/* Its own. */
#define PLAN_SIM_STEPS WEIR_PLAN_COUNT_OPT("steps", steps, NULL, "after which it ends", 1, 1e15)
#define PLAN_SIM_DATA_ON                                                                           \
    WEIR_PLAN_TEXT_OPT("data-on", data_on, "shared", "where batches are: nvme, shared or object")
#define PLAN_SIM_SAVE_TO                                                                           \
    WEIR_PLAN_TEXT_OPT("save-to", save_to, "nvme,shared",                                          \
                       "where checkpoints go, one after the other; none: nowhere")
#define PLAN_SIM_INTERVALS                                                                         \
    WEIR_PLAN_TEXT_OPT("intervals", intervals, NULL,                                               \
                       "to compare: 10min,30min,1h; auto: around the best by Young's formula")
#define PLAN_SIM_EVERY                                                                             \
    WEIR_PLAN_COUNT_OPT("every", save_every, NULL, "steps between two checkpoints", 1, 1e15)
#define PLAN_SIM_SYNC                                                                              \
    PLAN_SIM_FLAG_OPT("sync", sync, "training waits until a checkpoint is on its first tier")
#define PLAN_SIM_QUEUE                                                                             \
    WEIR_PLAN_COUNT_OPT("queue", queue, "2", "checkpoints that may be under way", 1, 64)
#define PLAN_SIM_STAGING                                                                           \
    WEIR_PLAN_SIZE_OPT("staging", staging_bytes, NULL,                                             \
                       "of memory for each GPU's snapshots (default: as much as they take)")
#define PLAN_SIM_SAVE_RATE                                                                         \
    WEIR_PLAN_RATE_OPT("save-rate", save_rate, NULL, "at which a node writes checkpoints, at most")
#define PLAN_SIM_NO_FAILURES PLAN_SIM_FLAG_OPT("no-failures", no_failures, "nothing fails")
#define PLAN_SIM_LOSS_SHARE                                                                        \
    WEIR_PLAN_RATIO_OPT("loss-share", loss_share, "0.3",                                           \
                        "of failures that take a node and its NVMe with them", 0, 1)
#define PLAN_SIM_DETECT PLAN_SIM_TIME_OPT("detect", detect_ns, "30s", "until a failure is noticed")
#define PLAN_SIM_SPARES                                                                            \
    WEIR_PLAN_COUNT_OPT("spares", spares, "1", "nodes that wait for one to be lost", 0, 1e6)
#define PLAN_SIM_NODE_REPAIR                                                                       \
    PLAN_SIM_TIME_OPT("node-repair", node_repair_ns, "24h", "until a lost node is back, on average")
#define PLAN_SIM_SEED                                                                              \
    {                                                                                              \
        "seed", 0, WEIR_OPT_NUMBER, WEIR_PLAN_AT(seed), "1", "N", "of the failures", 0, 9e18       \
    }
#define PLAN_SIM_RUNS                                                                              \
    WEIR_PLAN_COUNT_OPT("runs", runs, "1", "with seeds from --seed on, of which means are told",   \
                        1, 10000)

#define PLAN_SIM_EVENTS_MAX                                                                        \
    WEIR_PLAN_COUNT_OPT("events-max", events_max, "100M",                                          \
                        "that may be simulated, in all: 100M take about half a minute", 1, 1e15)

#endif
