/* save.c - see save.h. */
#include "plan/save.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "util/err.h"

static const double month_h = 730;

const struct weir_plan_state weir_plan_states[] = {
    {"weights", "BF16 or FP16 weights only", 2, 0},
    {"moments", "16-bit weights and two FP32 moments", 2, 8},
    {"fp32", "FP32 weights and two FP32 moments", 4, 8},
    {"mixed", "16-bit weights, FP32 master weights and two FP32 moments", 2, 12},
    {"gradients", "the same, and 16-bit gradients", 4, 12},
};
const size_t weir_plan_state_count = sizeof weir_plan_states / sizeof weir_plan_states[0];

const struct weir_plan_state *weir_plan_state_find(const char *name)
{
    for (size_t i = 0; i < weir_plan_state_count; i++)
        if (!strcmp(weir_plan_states[i].name, name))
            return &weir_plan_states[i];
    weir_fail(EINVAL, "state: '%s' is not one of weights, moments, fp32, mixed and gradients",
              name);
    return NULL;
}

double weir_plan_save_bytes(double parameters, double weight_bytes, double optimizer_bytes)
{
    return parameters * (weight_bytes + optimizer_bytes);
}

double weir_plan_save_bytes_per_s(double save_bytes, double interval_s)
{
    return save_bytes / interval_s;
}

double weir_plan_save_sync_stall_s(double save_bytes, double bytes_per_s)
{
    return save_bytes / bytes_per_s;
}

double weir_plan_save_async_stall_s(double snapshot_s, double write_s, double interval_s)
{
    return snapshot_s + (write_s > interval_s ? write_s - interval_s : 0);
}

double weir_plan_stall_share(double stall_s, double interval_s)
{
    return stall_s / (interval_s + stall_s);
}

double weir_plan_idle_usd_per_month(double gpus, double usd_per_gpu_hour, double idle_share)
{
    return gpus * usd_per_gpu_hour * idle_share * month_h;
}

double weir_plan_job_mtbf_s(double node_mtbf_s, double nodes)
{
    return node_mtbf_s / nodes;
}

double weir_plan_interval_young_s(double cost_s, double mtbf_s)
{
    return sqrt(2 * cost_s * mtbf_s);
}

double weir_plan_interval_daly_s(double cost_s, double mtbf_s)
{
    double ratio = cost_s / (2 * mtbf_s);
    if (ratio >= 1)
        return mtbf_s;
    return sqrt(2 * cost_s * mtbf_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - cost_s;
}

/* A piece of interval_s and its save are tried until no failure hits them: the expected time is
 * M e^(R/M) (e^((interval+C)/M) - 1). */
double weir_plan_waste_share(double interval_s, double cost_s, double mtbf_s, double restart_s)
{
    double took_s = mtbf_s * exp(restart_s / mtbf_s) * expm1((interval_s + cost_s) / mtbf_s);
    return 1 - interval_s / took_s;
}
