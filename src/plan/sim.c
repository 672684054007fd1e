/* sim.c - see sim.h: the clock. Finds the next event, lets everything go on until then at the rates
 * of now, and tells the job what happened.
 */
#include "plan/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/sim_job.h"
#include "plan/sim_record.h"
#include "util/err.h"

/* What may be next, and in how many seconds; in this order if several are. */
enum {
    NEXT_SAVED, /* one of each level */
    NEXT_LOADED = NEXT_SAVED + WEIR_SIM_TIERS_MAX,
    NEXT_TURN, /* queue or burst cache, empty or full: rates change */
    NEXT_FILLED,
    NEXT_STAGED,
    NEXT_PHASE,
    NEXT_SAVE,
    NEXT_BACK,
    NEXT_FAILURE,
    NEXT_END,
    NEXT_COUNT,
};
enum { ASK_EVERY = 1024 };

static const enum weir_sim_cause causes[] = {
    [SIM_FILL] = WEIR_SIM_READ,     [SIM_TRAIN] = WEIR_SIM_COMPUTE, [SIM_QUEUE] = WEIR_SIM_QUEUE,
    [SIM_COPY] = WEIR_SIM_COPY,     [SIM_STAGE] = WEIR_SIM_STAGE,   [SIM_WRITE] = WEIR_SIM_WRITE,
    [SIM_DETECT] = WEIR_SIM_DETECT, [SIM_SPARE] = WEIR_SIM_SPARE,   [SIM_LAUNCH] = WEIR_SIM_LAUNCH,
    [SIM_SEEK] = WEIR_SIM_LOAD,     [SIM_LOAD] = WEIR_SIM_LOAD,
};

/* ---- the rates of now ---- */

static bool is_up(const struct sim_job *job)
{
    return job->phase <= SIM_WRITE;
}

static void set_flows(struct sim_job *job)
{
    struct sim_flow *flows = job->net.flows;
    struct sim_flow *read = &flows[job->read_flow];
    read->limit = job->prefetch.node_bytes > 0
                      ? weir_sim_prefetch_limit(&job->prefetch, job->phase == SIM_TRAIN)
                      : 0;
    read->is_active = is_up(job) && read->limit > 0;
    for (int i = 0; i < job->saves.levels; i++) {
        const struct sim_save *save = weir_sim_saves_at(&job->saves, i);
        flows[job->save_flow[i]].is_active = save && save->wait_s <= 0;
        flows[job->load_flow[i]].is_active = job->phase == SIM_LOAD && job->load_level == i;
    }
    for (int i = 0; i < job->setup->tier_count; i++)
        if (job->bursts[i].room_bytes > 0)
            job->net.pipes[job->write_pipe[i]].rate = weir_sim_burst_rate(&job->bursts[i]);
    weir_sim_net_share(&job->net);
}

static double steps_rate(const struct sim_job *job)
{
    return job->phase == SIM_TRAIN
               ? weir_sim_prefetch_steps(&job->prefetch, job->net.flows[job->read_flow].rate)
               : 0;
}

static double written_to(const struct sim_job *job, int tier)
{
    double rate = 0;
    for (int i = 0; i < job->saves.levels; i++)
        if (job->setup->save_tiers[i] == tier)
            rate += job->net.flows[job->save_flow[i]].rate;
    return rate;
}

static void get_rates(const struct sim_job *job, double steps, struct sim_rates *rates)
{
    const struct weir_sim_setup *setup = job->setup;
    const struct sim_flow *flows = job->net.flows;
    *rates = (struct sim_rates){0};
    if (job->phase == SIM_TRAIN) {
        double computing = steps * setup->step_s;
        rates->share[WEIR_SIM_COMPUTE] = computing;
        rates->share[WEIR_SIM_READ] = 1 - computing;
    } else {
        rates->share[causes[job->phase]] = 1;
    }
    if (setup->batch_bytes > 0)
        rates->read[setup->data_tier] += flows[job->read_flow].rate * setup->nodes;
    for (int i = 0; i < job->saves.levels; i++) {
        double rate = flows[job->save_flow[i]].rate * setup->nodes;
        rates->written[setup->save_tiers[i]] += rate;
        if (i)
            rates->read[setup->save_tiers[i - 1]] += rate;
        rates->read[setup->save_tiers[i]] += flows[job->load_flow[i]].rate * setup->nodes;
    }
}

/* ---- the next event ---- */

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double in_s(double amount, double rate)
{
    if (amount <= 0)
        return 0;
    return rate > 0 ? amount / rate : SIM_NEVER;
}

static double until(const struct sim_job *job, double at_s)
{
    double left = at_s - job->out->time_s;
    return at_s >= SIM_NEVER ? SIM_NEVER : left > 0 ? left : 0;
}

static double save_in_s(const struct sim_job *job, double steps)
{
    const struct weir_sim_setup *setup = job->setup;
    if (job->phase != SIM_TRAIN || !job->saves.levels)
        return SIM_NEVER;
    return setup->interval_s > 0 ? in_s(setup->interval_s - job->trained_s, 1)
                                 : in_s(setup->save_steps - job->trained_steps, steps);
}

static double end_in_s(const struct sim_job *job, double steps)
{
    const struct weir_sim_setup *setup = job->setup;
    double end = setup->time_s > 0 ? until(job, setup->time_s) : SIM_NEVER;
    return setup->steps > 0 && steps > 0 ? least(end, in_s(setup->steps - job->steps, steps)) : end;
}

static double staged_in_s(const struct sim_job *job)
{
    double bytes = weir_sim_job_unstaged(job);
    return bytes > 0 ? in_s(bytes, job->net.flows[job->save_flow[0]].rate) : 0;
}

/* In how many seconds each of them is. */
static void look_ahead(struct sim_job *job, double steps, double *next)
{
    const struct sim_flow *flows = job->net.flows;
    double read = flows[job->read_flow].rate;
    for (int i = 0; i < NEXT_COUNT; i++)
        next[i] = SIM_NEVER;
    for (int i = 0; i < job->saves.levels; i++) {
        const struct sim_save *save = weir_sim_saves_at(&job->saves, i);
        if (save && save->wait_s > 0)
            next[NEXT_TURN] = least(next[NEXT_TURN], save->wait_s);
        else if (save)
            next[NEXT_SAVED + i] = in_s(save->left_bytes, flows[job->save_flow[i]].rate);
    }
    if (job->phase == SIM_LOAD)
        next[NEXT_LOADED] = in_s(job->load_left_bytes, flows[job->load_flow[job->load_level]].rate);
    if (is_up(job))
        next[NEXT_TURN] =
            least(next[NEXT_TURN], weir_sim_prefetch_turn_s(&job->prefetch, read, steps));
    for (int i = 0; i < job->setup->tier_count; i++)
        next[NEXT_TURN] =
            least(next[NEXT_TURN], weir_sim_burst_turn_s(&job->bursts[i], written_to(job, i)));
    if (job->phase == SIM_FILL)
        next[NEXT_FILLED] = in_s((1 - job->prefetch.ready) * job->prefetch.node_bytes, read);
    if (job->phase == SIM_STAGE && job->phase_end_s >= SIM_NEVER)
        next[NEXT_STAGED] = staged_in_s(job);
    next[NEXT_PHASE] = until(job, job->phase_end_s);
    next[NEXT_SAVE] = save_in_s(job, steps);
    next[NEXT_BACK] = until(job, weir_sim_cluster_back_s(&job->cluster));
    next[NEXT_FAILURE] = until(job, job->cluster.fails_at_s);
    next[NEXT_END] = end_in_s(job, steps);
}

static void advance(struct sim_job *job, double steps, double dt_s)
{
    const struct sim_flow *flows = job->net.flows;
    struct sim_rates rates;
    get_rates(job, steps, &rates);
    weir_sim_record_span(job->out, &rates, dt_s);
    if (is_up(job))
        weir_sim_prefetch_advance(&job->prefetch, flows[job->read_flow].rate, steps, dt_s);
    for (int i = 0; i < job->saves.levels; i++) {
        struct sim_save *save = weir_sim_saves_at(&job->saves, i);
        if (save && save->wait_s > 0)
            save->wait_s = save->wait_s > dt_s * (1 + 1e-12) ? save->wait_s - dt_s : 0;
        else if (save)
            save->left_bytes -= flows[job->save_flow[i]].rate * dt_s;
    }
    for (int i = 0; i < job->setup->tier_count; i++) {
        double written = written_to(job, i);
        bool is_over = job->bursts[i].room_bytes > 0 && written > 0 &&
                       job->bursts[i].used_bytes >= job->bursts[i].room_bytes;
        job->out->cliff_s += is_over ? dt_s : 0;
        weir_sim_burst_advance(&job->bursts[i], written, dt_s);
    }
    if (job->phase == SIM_LOAD)
        job->load_left_bytes -= flows[job->load_flow[job->load_level]].rate * dt_s;
    job->steps += steps * dt_s;
    job->trained_steps += steps * dt_s;
    job->trained_s += job->phase == SIM_TRAIN ? dt_s : 0;
}

/* One event: what the others say of now is asked again at the next. */
static void happen(struct sim_job *job, int event)
{
    if (event < NEXT_LOADED)
        weir_sim_job_save_done(job, event - NEXT_SAVED);
    else if (event == NEXT_LOADED)
        weir_sim_job_load_done(job);
    else if (event == NEXT_FILLED)
        weir_sim_job_filled(job);
    else if (event == NEXT_STAGED)
        weir_sim_job_staged(job);
    else if (event == NEXT_PHASE)
        weir_sim_job_phase_ends(job);
    else if (event == NEXT_SAVE)
        weir_sim_job_save_due(job);
    else if (event == NEXT_BACK)
        weir_sim_job_return(job);
    else if (event == NEXT_FAILURE)
        weir_sim_job_fail(job);
    else if (event == NEXT_END)
        job->phase = SIM_END;
}

static int run(struct sim_job *job)
{
    const struct weir_sim_setup *setup = job->setup;
    uint64_t most = setup->events_max ? setup->events_max : WEIR_SIM_EVENTS_MAX;
    while (job->phase != SIM_END) {
        double next[NEXT_COUNT];
        if (job->out->events++ >= most)
            return weir_fail(E2BIG,
                             "after %" PRIu64
                             " events only %.3g days and %.3g steps are simulated: "
                             "ask for a shorter time, fewer failures, or a longer interval",
                             most, job->out->time_s / 86400, job->steps);
        if (job->out->events % ASK_EVERY == 0 && setup->is_stopped && setup->is_stopped(setup->arg))
            return weir_fail(EINTR, "stopped after %.3g simulated days", job->out->time_s / 86400);
        set_flows(job);
        double steps = steps_rate(job);
        look_ahead(job, steps, next);
        int first = 0;
        for (int i = 1; i < NEXT_COUNT; i++)
            first = next[i] < next[first] ? i : first;
        if (next[first] >= SIM_NEVER)
            return weir_fail(EDEADLK, "nothing more would happen after %.3g simulated days",
                             job->out->time_s / 86400);
        advance(job, steps, next[first]);
        happen(job, first);
    }
    return 0;
}

/* ---- from outside ---- */

int weir_sim_run(struct weir_sim_result *out, const struct weir_sim_setup *setup)
{
    struct sim_job job;
    int code = weir_sim_setup_check(setup);
    if (code)
        return code;
    code = weir_sim_job_open(&job, out, setup);
    if (!code)
        code = run(&job);
    out->steps = job.steps;
    for (int i = 0; i < job.saves.levels; i++)
        out->levels[i].saves = job.saves.done[i];
    weir_sim_job_close(&job);
    return code;
}

double weir_sim_time_of(const struct weir_sim_sum *sum, enum weir_sim_cause first,
                        enum weir_sim_cause end)
{
    double time_s = 0;
    for (int i = (int)first; i < (int)end; i++)
        time_s += sum->time_s[i];
    return time_s;
}
