/* sim_job.c - see sim_job.h: from one phase to the next. */
#include "plan/sim_job.h"

#include "plan/sim_record.h"

/* What rounding may leave of a node's bytes. */
static const double crumbs = 1e-9;

static void begin(struct sim_job *job, enum sim_phase phase)
{
    job->phase = phase;
    job->phase_end_s = SIM_NEVER;
}

static void begin_for(struct sim_job *job, enum sim_phase phase, double time_s)
{
    begin(job, phase);
    job->phase_end_s = job->out->time_s + time_s;
}

/* From nothing, or from what was loaded. */
static void start(struct sim_job *job)
{
    bool is_filled = job->prefetch.node_bytes <= 0 || job->prefetch.depth <= 0;
    job->trained_s = job->trained_steps = 0;
    begin(job, is_filled || job->prefetch.ready > 0 ? SIM_TRAIN : SIM_FILL);
}

/* ---- its parts ---- */

static void cross_tier(struct sim_job *job, int flow, int pipe_node, int pipe_all, int pipe_net,
                       int tier)
{
    weir_sim_net_cross(&job->net, flow, pipe_node);
    weir_sim_net_cross(&job->net, flow, pipe_all);
    if (job->setup->tiers[tier].is_remote)
        weir_sim_net_cross(&job->net, flow, pipe_net);
}

static void open_net(struct sim_job *job)
{
    const struct weir_sim_setup *setup = job->setup;
    int read_node[WEIR_SIM_TIERS_MAX], read_all[WEIR_SIM_TIERS_MAX], write_all[WEIR_SIM_TIERS_MAX];
    int in = weir_sim_net_pipe(&job->net, setup->network, false);
    int out = weir_sim_net_pipe(&job->net, setup->network, false);
    for (int i = 0; i < setup->tier_count; i++) {
        const struct weir_sim_tier *tier = &setup->tiers[i];
        read_node[i] = weir_sim_net_pipe(&job->net, tier->read_node, false);
        job->write_pipe[i] = weir_sim_net_pipe(&job->net, tier->write_node, false);
        read_all[i] = weir_sim_net_pipe(&job->net, tier->read_all, true);
        write_all[i] = weir_sim_net_pipe(&job->net, tier->write_all, true);
    }
    int data = setup->data_tier;
    job->read_flow = weir_sim_net_flow(&job->net, setup->nodes);
    if (setup->batch_bytes > 0)
        cross_tier(job, job->read_flow, read_node[data], read_all[data], in, data);
    for (int i = 0; i < setup->save_tier_count; i++) {
        int tier = setup->save_tiers[i], from = i ? setup->save_tiers[i - 1] : -1;
        job->save_flow[i] = weir_sim_net_flow(&job->net, setup->nodes);
        job->load_flow[i] = weir_sim_net_flow(&job->net, setup->nodes);
        cross_tier(job, job->load_flow[i], read_node[tier], read_all[tier], in, tier);
        cross_tier(job, job->save_flow[i], job->write_pipe[tier], write_all[tier], out, tier);
        if (from >= 0) /* a copy is read where the one before it is */
            cross_tier(job, job->save_flow[i], read_node[from], read_all[from], in, from);
    }
    if (setup->save_tier_count && setup->save_rate > 0)
        job->net.flows[job->save_flow[0]].limit = setup->save_rate;
}

/* A reader waits for the first byte of each batch, then shares the rate with the others: so many of
 * them never get more than one each such time, however fast the storage is. */
static void open_prefetch(struct sim_job *job)
{
    const struct weir_sim_setup *setup = job->setup;
    double node_bytes = setup->batch_bytes * setup->ranks;
    job->prefetch = (struct sim_prefetch){
        .depth = setup->prefetch, .node_bytes = node_bytes, .step_s = setup->step_s};
    if (node_bytes <= 0)
        return;
    double latency_s = setup->tiers[setup->data_tier].latency_s;
    double readers = setup->readers < setup->prefetch ? setup->readers : setup->prefetch;
    double one_s = setup->batch_bytes / weir_sim_net_alone(&job->net, job->read_flow, 1);
    double all_s = node_bytes / weir_sim_net_alone(&job->net, job->read_flow, setup->nodes);
    job->prefetch.rate_max = readers * node_bytes / (latency_s + one_s);
    job->prefetch.rate_in_turn = node_bytes / (setup->step_s + latency_s + all_s);
}

int weir_sim_job_open(struct sim_job *job, struct weir_sim_result *out,
                      const struct weir_sim_setup *setup)
{
    *job = (struct sim_job){.setup = setup, .out = out};
    open_net(job);
    open_prefetch(job);
    weir_sim_saves_open(&job->saves, setup);
    for (int i = 0; i < setup->tier_count; i++)
        job->bursts[i] = (struct sim_burst){.room_bytes = setup->tiers[i].burst_bytes,
                                            .fast = setup->tiers[i].burst_write,
                                            .native = setup->tiers[i].write_node};
    weir_sim_record_open(out, setup->time_s > 0 ? setup->time_s : setup->steps * setup->step_s);
    int code = weir_sim_cluster_open(&job->cluster, setup->seed, setup->nodes, setup->spares);
    if (code)
        return code;
    job->cluster.mtbf_s = setup->mtbf_s;
    job->cluster.loss_share = setup->loss_share;
    job->cluster.repair_s = setup->repair_s;
    weir_sim_cluster_work(&job->cluster, 0);
    start(job);
    return 0;
}

void weir_sim_job_close(struct sim_job *job)
{
    weir_sim_cluster_close(&job->cluster);
}

/* ---- training and saving ---- */

void weir_sim_job_filled(struct sim_job *job)
{
    begin(job, SIM_TRAIN);
}

static void go_on(struct sim_job *job)
{
    job->trained_s = job->trained_steps = 0;
    begin(job, SIM_TRAIN);
}

static double copy_s(const struct sim_job *job, double bytes)
{
    return job->setup->copy_rate > 0 ? bytes / job->setup->copy_rate : 0;
}

static void start_save(struct sim_job *job)
{
    double room = job->setup->stage_bytes, bytes = job->saves.node_bytes;
    job->out->saves++;
    if (job->setup->is_sync) {
        weir_sim_saves_begin(&job->saves, job->steps);
        begin(job, SIM_WRITE);
        return;
    }
    double left = room > 0 ? room - weir_sim_saves_staged(&job->saves) : bytes;
    double now = left < bytes ? (left > 0 ? left : 0) : bytes;
    job->copied_at_s = job->out->time_s + copy_s(job, bytes);
    begin_for(job, SIM_COPY, copy_s(job, now));
}

void weir_sim_job_save_due(struct sim_job *job)
{
    if (weir_sim_saves_is_full(&job->saves))
        begin(job, SIM_QUEUE);
    else
        start_save(job);
}

double weir_sim_job_unstaged(const struct sim_job *job)
{
    double room = job->setup->stage_bytes;
    double over = room > 0 ? weir_sim_saves_staged(&job->saves) - room : 0;
    return over > crumbs * job->saves.node_bytes ? over : 0;
}

void weir_sim_job_staged(struct sim_job *job)
{
    if (weir_sim_job_unstaged(job) > 0)
        return;
    if (job->out->time_s < job->copied_at_s)
        job->phase_end_s = job->copied_at_s;
    else
        go_on(job);
}

void weir_sim_job_save_done(struct sim_job *job, int level)
{
    weir_sim_saves_done(&job->saves, level);
    if (job->phase == SIM_WRITE && level == 0)
        go_on(job);
    else if (job->phase == SIM_QUEUE && !weir_sim_saves_is_full(&job->saves))
        start_save(job);
}

/* ---- failing and starting again ---- */

void weir_sim_job_fail(struct sim_job *job)
{
    bool is_lost = weir_sim_cluster_fail(&job->cluster, job->out->time_s);
    job->out->failures++;
    job->out->losses += is_lost;
    weir_sim_saves_drop(&job->saves);
    for (int i = 0; i < job->saves.levels; i++)
        if (is_lost && !job->setup->tiers[job->setup->save_tiers[i]].is_safe)
            weir_sim_saves_lose(&job->saves, i);
    int level = weir_sim_saves_newest(&job->saves);
    double kept = level < 0 ? 0 : job->saves.held[level];
    weir_sim_record_lost(job->out, (job->steps - kept) * job->setup->step_s);
    job->steps = kept;
    job->prefetch.ready = 0;
    begin_for(job, SIM_DETECT, job->setup->detect_s);
}

void weir_sim_job_return(struct sim_job *job)
{
    weir_sim_cluster_return(&job->cluster, job->out->time_s);
    if (job->phase == SIM_SPARE)
        begin_for(job, SIM_LAUNCH, job->setup->launch_s);
}

static void load(struct sim_job *job)
{
    job->load_level = weir_sim_saves_newest(&job->saves);
    if (job->load_level < 0) {
        job->out->scratch++;
        start(job);
        return;
    }
    job->load_left_bytes = job->saves.node_bytes;
    begin_for(job, SIM_SEEK, job->saves.latency_s[job->load_level]);
}

void weir_sim_job_load_done(struct sim_job *job)
{
    job->out->levels[job->load_level].restarts++;
    start(job);
}

void weir_sim_job_phase_ends(struct sim_job *job)
{
    switch (job->phase) {
    case SIM_COPY:
        weir_sim_saves_begin(&job->saves, job->steps);
        begin(job, SIM_STAGE);
        weir_sim_job_staged(job);
        break;
    case SIM_STAGE:
        go_on(job);
        break;
    case SIM_DETECT:
        if (job->cluster.is_short)
            begin(job, SIM_SPARE);
        else
            begin_for(job, SIM_LAUNCH, job->setup->launch_s);
        break;
    case SIM_LAUNCH:
        load(job);
        break;
    case SIM_SEEK:
        begin(job, SIM_LOAD);
        break;
    default:
        break;
    }
}
