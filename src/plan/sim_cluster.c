/* sim_cluster.c - see sim_cluster.h. */
#include "plan/sim_cluster.h"

#include <assert.h>
#include <stdlib.h>

#include "util/err.h"
#include "util/sys.h"

/* ---- chance ---- */

/* u = m 2^-k with m in [1/sqrt 2, sqrt 2); ln m = 2 artanh z = 2 (z + z^3/3 + …), z = (m-1)/(m+1).
 * |z| < 0.172, so the last term here is below a double's precision. */
double weir_sim_minus_ln(double u)
{
    static const double ln2 = 0.693147180559945309417, root_half = 0.707106781186547524401;
    assert(u > 0 && u <= 1);
    int halvings = 0;
    for (; u < root_half; u *= 2)
        halvings++;
    double z = (u - 1) / (u + 1), square = z * z, sum = 0;
    for (int power = 21; power >= 1; power -= 2)
        sum = sum * square + 1.0 / power;
    return halvings * ln2 - 2 * z * sum;
}

double weir_sim_exponential(struct weir_rng *rng, double mean)
{
    double u = (double)((weir_rng_next(rng) >> 11) + 1) * 0x1p-53;
    return mean * weir_sim_minus_ln(u);
}

/* ---- nodes ---- */

int weir_sim_cluster_open(struct sim_cluster *cluster, uint64_t seed, double nodes, double spares)
{
    /* As many are away as there were spares, and the one that the job waits for. */
    size_t room = (size_t)spares + 1;
    *cluster = (struct sim_cluster){.failures = weir_rng_fork(seed, 1),
                                    .losses = weir_rng_fork(seed, 2),
                                    .repairs = weir_rng_fork(seed, 3),
                                    .nodes = nodes,
                                    .spares = spares,
                                    .fails_at_s = SIM_NEVER,
                                    .back_room = room,
                                    .back_at_s = weir_alloc(room * sizeof(double))};
    return cluster->back_at_s ? 0 : weir_fail_memory();
}

void weir_sim_cluster_close(struct sim_cluster *cluster)
{
    free(cluster->back_at_s);
    cluster->back_at_s = NULL;
}

void weir_sim_cluster_work(struct sim_cluster *cluster, double now_s)
{
    assert(!cluster->is_short);
    cluster->fails_at_s =
        cluster->mtbf_s > 0
            ? now_s + weir_sim_exponential(&cluster->failures, cluster->mtbf_s / cluster->nodes)
            : SIM_NEVER;
}

static void push(struct sim_cluster *cluster, double at_s)
{
    double *heap = cluster->back_at_s;
    assert(cluster->back_count < cluster->back_room);
    size_t i = cluster->back_count++;
    for (; i && at_s < heap[(i - 1) / 2]; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = at_s;
}

static void pop(struct sim_cluster *cluster)
{
    double *heap = cluster->back_at_s;
    assert(cluster->back_count);
    double last = heap[--cluster->back_count];
    size_t i = 0;
    for (size_t child = 1; child < cluster->back_count; child = 2 * i + 1) {
        if (child + 1 < cluster->back_count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
}

bool weir_sim_cluster_fail(struct sim_cluster *cluster, double now_s)
{
    double u = (double)(weir_rng_next(&cluster->losses) >> 11) * 0x1p-53;
    if (u >= cluster->loss_share) {
        weir_sim_cluster_work(cluster, now_s);
        return false;
    }
    push(cluster, now_s + weir_sim_exponential(&cluster->repairs, cluster->repair_s));
    cluster->is_short = cluster->spares < 1;
    if (cluster->is_short) {
        cluster->fails_at_s = SIM_NEVER;
    } else {
        cluster->spares--;
        weir_sim_cluster_work(cluster, now_s);
    }
    return true;
}

double weir_sim_cluster_back_s(const struct sim_cluster *cluster)
{
    return cluster->back_count ? cluster->back_at_s[0] : SIM_NEVER;
}

void weir_sim_cluster_return(struct sim_cluster *cluster, double now_s)
{
    pop(cluster);
    if (!cluster->is_short) {
        cluster->spares++;
        return;
    }
    cluster->is_short = false;
    weir_sim_cluster_work(cluster, now_s);
}
