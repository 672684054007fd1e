/* read.c - see read.h. */
#include "plan/read.h"

#include <math.h>
#include <stddef.h>

enum { DEPTH_MAX = 1000000 };

double weir_plan_read_bytes_per_s(double gpus, double units_per_s, double unit_bytes,
                                  double efficiency)
{
    return gpus * units_per_s * unit_bytes * efficiency;
}

double weir_plan_corpus_bytes_per_s(double corpus_bytes, double epochs, double over_s)
{
    return corpus_bytes * epochs / over_s;
}

double weir_plan_read_rule_bytes_per_s(double gpus, double gpu_flops)
{
    return gpus * gpu_flops / 100e12 * 1e9;
}

double weir_plan_read_stall_share(double need_bytes_per_s, double have_bytes_per_s)
{
    return need_bytes_per_s > have_bytes_per_s ? 1 - have_bytes_per_s / need_bytes_per_s : 0;
}

double weir_plan_servers(double need_bytes_per_s, double server_bytes_per_s)
{
    double servers = need_bytes_per_s / server_bytes_per_s;
    return ceil(servers * (1 - 1e-12)); /* 50.000000000000007 servers are 50 */
}

double weir_plan_prefetch_bytes(double depth, double workers, double batch_bytes)
{
    return depth * workers * batch_bytes;
}

/* The recursion B(d) = a B(d-1) / (d + a B(d-1)) adds only positive terms. */
static double blocking_next(double blocking, double load, double depth)
{
    return load * blocking / (depth + load * blocking);
}

double weir_plan_prefetch_share(double depth, double latency_s, double step_s)
{
    double blocking = 1;
    for (double d = 1; d <= depth && d <= DEPTH_MAX; d++)
        blocking = blocking_next(blocking, latency_s / step_s, d);
    return 1 - blocking;
}

double weir_plan_prefetch_depth(double share, double latency_s, double step_s)
{
    double blocking = 1;
    for (double d = 1; d <= DEPTH_MAX; d++) {
        blocking = blocking_next(blocking, latency_s / step_s, d);
        if (1 - blocking >= share)
            return d;
    }
    return INFINITY;
}

double weir_plan_prefetch_published(double depth)
{
    static const struct {
        double depth, share;
    } published[] = {{1, 0.40}, {4, 0.75}, {10, 0.95}, {20, 0.98}};
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        if (published[i].depth == depth)
            return published[i].share;
    return -1;
}

double weir_plan_tokens_per_s(double gpu_flops, double flops_share, double parameters)
{
    return gpu_flops * flops_share / (6 * parameters);
}
