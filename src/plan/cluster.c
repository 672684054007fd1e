/* cluster.c - see cluster.h. Data come from the object store, are staged on the nodes' NVMe some
 * minutes ahead, and go on to DRAM and GPU memory. Checkpoints are copied to DRAM, which is all
 * that training waits for, written to NVMe, from there to the shared storage, and now and then
 * archived.
 */
#include "plan/cluster.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/cost.h"
#include "plan/device.h"
#include "plan/read.h"
#include "plan/save.h"
#include "util/err.h"

enum { LOCAL_SAVES = 2 };          /* on NVMe: the last, and the one being written */
static const double stage_s = 600; /* shards are staged so long before they are needed */
/* Of a parameter in GPU memory, in mixed precision: weights, optimizer, gradients; however little
 * of it is saved. */
static const double resident_bytes = 2 + 12 + 2;
static const double peak_flops = 989e12,
                    shared_rate = WEIR_PLAN_SHARED_RATE; /* if nothing is told */
static const double day_s = 86400;

/* ---- demand ---- */

static int find_demand(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    struct weir_plan_save save;
    if (!in->gpus)
        return weir_plan_missing("gpus", NULL);
    if (!in->parameters)
        return weir_plan_missing("parameters", NULL);
    if (!in->corpus_bytes)
        return weir_plan_missing("corpus", NULL);
    int code = weir_plan_save_of(&save, in);
    if (code)
        return code;
    double flops = in->tflops > 0 ? in->tflops * 1e12 : peak_flops;
    c->gpus = (double)in->gpus;
    c->nodes = weir_plan_nodes(in);
    c->save_bytes = save.bytes;
    c->tokens_per_s = in->tokens_per_s
                          ? (double)in->tokens_per_s
                          : weir_plan_tokens_per_s(flops, in->flops_share, (double)in->parameters);
    c->read_bytes_per_s = weir_plan_read_bytes_per_s(c->gpus, c->tokens_per_s, in->token_bytes, 1);
    c->run_s = (double)in->corpus_bytes * in->epochs / c->read_bytes_per_s;
    return weir_plan_mtbf_of(&c->mtbf_s, in);
}

/* ---- flows ---- */

static void find_flows(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    double network = c->nodes * (double)in->network_rate;
    double copies = c->gpus * (double)in->snapshot_rate;
    double nvme_write = c->nodes * (double)in->nvme_write_rate;
    double shared = in->write_rate ? (double)in->write_rate : shared_rate;
    double mean = c->save_bytes / c->interval_s, read = c->read_bytes_per_s;
    double archive = c->save_bytes / weir_plan_seconds(in->archive_ns);
    double object = (double)in->object_rate;
    struct weir_plan_flow flows[WEIR_PLAN_FLOWS] = {
        {"shards, staged", "stage", WEIR_PLAN_OBJECT, WEIR_PLAN_NVME, true, read,
         fmin(object, network)},
        {"shards, read", "read", WEIR_PLAN_NVME, WEIR_PLAN_DRAM, true, read,
         c->nodes * (double)in->nvme_read_rate},
        {"batches", "batch", WEIR_PLAN_DRAM, WEIR_PLAN_HBM, true, read, copies},
        {"snapshots", "snapshot", WEIR_PLAN_HBM, WEIR_PLAN_DRAM, false, mean, copies},
        {"checkpoints, local", "local", WEIR_PLAN_DRAM, WEIR_PLAN_NVME, false, mean, nvme_write},
        {"checkpoints, shared", "shared", WEIR_PLAN_NVME, WEIR_PLAN_SHARED, false, mean,
         fmin(shared, network)},
        {"checkpoints, archived", "archive", WEIR_PLAN_SHARED, WEIR_PLAN_OBJECT, false, archive,
         object},
    };
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++)
        c->flows[i] = flows[i];
}

/* ---- stalls ---- */

static double slowest_write(const struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    double shared = in->write_rate ? (double)in->write_rate : shared_rate;
    double network = c->nodes * (double)in->network_rate;
    return fmin(fmin(shared, network), c->nodes * (double)in->nvme_write_rate);
}

/* The interval: as told, or Daly's for the stall of the snapshot, but never shorter than a write.
 */
static void find_interval(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    double read = in->read_rate ? (double)in->read_rate : shared_rate;
    c->restart_s = weir_plan_seconds(in->restart_ns);
    c->snapshot_s = c->save_bytes / (c->gpus * (double)in->snapshot_rate);
    c->write_s = c->save_bytes / slowest_write(c, in);
    c->restore_s = c->save_bytes / fmin(read, c->nodes * (double)in->network_rate);
    c->interval_s = in->interval_ns
                        ? weir_plan_seconds(in->interval_ns)
                        : fmax(weir_plan_interval_daly_s(c->snapshot_s, c->mtbf_s), c->write_s);
    c->save_stall_s = weir_plan_save_async_stall_s(c->snapshot_s, c->write_s, c->interval_s);
    c->save_stall_share = weir_plan_stall_share(c->save_stall_s, c->interval_s);
}

double weir_plan_lost_a_failure_s(const struct weir_plan_cluster *c)
{
    return c->restart_s + c->restore_s + c->write_s;
}

static void find_losses(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    double supply = INFINITY;
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++)
        if (c->flows[i].is_data)
            supply = fmin(supply, c->flows[i].have_bytes_per_s);
    c->read_stall_share = weir_plan_read_stall_share(c->read_bytes_per_s, supply);
    c->waste_share = weir_plan_waste_share(c->interval_s, c->save_stall_s, c->mtbf_s,
                                           weir_plan_lost_a_failure_s(c));
    c->lost_share = 1 - (1 - c->read_stall_share) * (1 - c->waste_share);
    c->gpu_usd_per_month = weir_plan_idle_usd_per_month(c->gpus, in->usd_per_gpu_hour, 1);
    c->lost_usd_per_month =
        weir_plan_idle_usd_per_month(c->gpus, in->usd_per_gpu_hour, c->lost_share);
}

/* ---- sizes ---- */

static void find_sizes(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    double state = resident_bytes * (double)in->parameters;
    double ahead = in->batch_bytes
                       ? c->nodes * weir_plan_prefetch_bytes((double)in->depth, (double)in->workers,
                                                             (double)in->batch_bytes)
                       : 0;
    double archived = fmax(1, c->run_s / weir_plan_seconds(in->archive_ns)) * c->save_bytes;
    double kept = (double)in->keep * c->save_bytes, object = (double)in->corpus_bytes + archived;
    struct weir_plan_level_use levels[WEIR_PLAN_LEVELS] = {
        {"HBM", "GPUs", "weights, optimizer, gradients", c->gpus, state,
         c->gpus * (double)in->gpu_memory_bytes, 0},
        {"DRAM", "nodes", "a snapshot, batches ahead", c->nodes, c->save_bytes + ahead,
         c->nodes * (double)in->node_memory_bytes, 0},
        {"NVMe", "nodes", "two checkpoints, shards staged 10 min ahead", c->nodes,
         LOCAL_SAVES * c->save_bytes + stage_s * c->read_bytes_per_s,
         c->nodes * (double)in->nvme_bytes, 0},
        {"shared storage", "site", "the checkpoints that are kept", 1, kept,
         (double)in->capacity_bytes,
         weir_plan_storage_usd(kept, weir_plan_prices[3].usd_per_gb_month)},
        {"object store", "site", "the corpus, archived checkpoints", 1, object, INFINITY,
         weir_plan_storage_usd(object, weir_plan_prices[1].usd_per_gb_month)},
    };
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++) {
        c->levels[i] = levels[i];
        c->storage_usd_per_month += levels[i].usd_per_month;
    }
}

static int find_wear(struct weir_plan_cluster *c, const struct weir_plan_in *in)
{
    const struct weir_plan_device *d = weir_plan_device_find(in->device);
    if (!d)
        return -EINVAL;
    double tbw = in->tbw_bytes ? (double)in->tbw_bytes : d->tbw_bytes;
    double devices = c->nodes * (double)in->nvme_devices;
    double written = c->save_bytes / c->interval_s + c->read_bytes_per_s;
    c->wear_bytes_per_day = written * in->amplification * day_s / devices;
    c->life_s = tbw > 0 ? weir_plan_life_s(tbw, c->wear_bytes_per_day / day_s) : INFINITY;
    return 0;
}

/* ---- limits ---- */

static void add_limit(struct weir_plan_cluster *c, double headroom, const char *name,
                      const char *what)
{
    unsigned at = c->limit_count++;
    for (; at > 0 && c->limits[at - 1].headroom > headroom; at--)
        c->limits[at] = c->limits[at - 1];
    c->limits[at].headroom = headroom;
    snprintf(c->limits[at].name, sizeof c->limits[at].name, "%s: %s", name, what);
}

static void find_limits(struct weir_plan_cluster *c)
{
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++)
        if (isfinite(c->levels[i].have_bytes))
            add_limit(c, c->levels[i].have_bytes / c->levels[i].need_bytes, c->levels[i].name,
                      "capacity");
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++) {
        const struct weir_plan_flow *f = &c->flows[i];
        char path[64];
        snprintf(path, sizeof path, "%s to %s", c->levels[f->from].name, c->levels[f->to].name);
        add_limit(c, f->have_bytes_per_s / f->need_bytes_per_s, path, f->name);
    }
    if (isfinite(c->life_s))
        add_limit(c, c->life_s / c->run_s, "NVMe", "endurance over the run");
}

int weir_plan_cluster(struct weir_plan_cluster *out, const struct weir_plan_in *in)
{
    *out = (struct weir_plan_cluster){0};
    int code = find_demand(out, in);
    if (code)
        return code;
    find_interval(out, in);
    find_flows(out, in);
    find_losses(out, in);
    find_sizes(out, in);
    code = find_wear(out, in);
    if (!code)
        find_limits(out);
    return code;
}
