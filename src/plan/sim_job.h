/* sim_job.h - the parts of sim.c: a job in one of its phases, with what it reads, saves and runs
 * on.
 */
#ifndef WEIR_PLAN_SIM_JOB_H
#define WEIR_PLAN_SIM_JOB_H

#include "plan/sim.h"
#include "plan/sim_burst.h"
#include "plan/sim_cluster.h"
#include "plan/sim_net.h"
#include "plan/sim_prefetch.h"
#include "plan/sim_saves.h"

enum sim_phase {
    SIM_FILL,  /* waits for its first batch */
    SIM_TRAIN, /* computes and reads */
    SIM_QUEUE, /* a save is due, and may not begin */
    SIM_COPY,  /* takes a snapshot */
    SIM_STAGE, /* the rest of it, as memory becomes free */
    SIM_WRITE, /* waits for a synchronous save */
    SIM_DETECT,
    SIM_SPARE,
    SIM_LAUNCH,
    SIM_SEEK, /* the latency of a load */
    SIM_LOAD,
    SIM_END,
};

struct sim_job {
    const struct weir_sim_setup *setup;
    struct weir_sim_result *out;
    struct sim_net net;
    int read_flow, save_flow[WEIR_SIM_TIERS_MAX], load_flow[WEIR_SIM_TIERS_MAX];
    int write_pipe[WEIR_SIM_TIERS_MAX]; /* of a node: what a burst changes */
    struct sim_prefetch prefetch;
    struct sim_saves saves;
    struct sim_cluster cluster;
    struct sim_burst bursts[WEIR_SIM_TIERS_MAX];
    enum sim_phase phase;
    double phase_end_s;              /* SIM_NEVER: something else ends it */
    double copied_at_s;              /* the snapshot, if memory does not bound it */
    double steps;                    /* done, and not lost */
    double trained_s, trained_steps; /* since the last save or start */
    int load_level;
    double load_left_bytes; /* of a node */
};

int weir_sim_job_open(struct sim_job *job, struct weir_sim_result *out,
                      const struct weir_sim_setup *setup);
void weir_sim_job_close(struct sim_job *job);

/* What ends or begins; each leaves the job in the phase that follows. */
void weir_sim_job_save_due(struct sim_job *job);
void weir_sim_job_phase_ends(struct sim_job *job);
void weir_sim_job_save_done(struct sim_job *job, int level);
void weir_sim_job_staged(struct sim_job *job);
void weir_sim_job_load_done(struct sim_job *job);
void weir_sim_job_filled(struct sim_job *job);
void weir_sim_job_fail(struct sim_job *job);
void weir_sim_job_return(struct sim_job *job);
/* Does the snapshot still need memory that saves occupy? So many bytes of a node. */
double weir_sim_job_unstaged(const struct sim_job *job);

#endif
