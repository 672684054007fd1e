/* sim_record.c - see sim_record.h. */
#include "plan/sim_record.h"

#include <string.h>

void weir_sim_record_open(struct weir_sim_result *result, double time_s)
{
    memset(result, 0, sizeof *result);
    result->bin_s = time_s / WEIR_SIM_BINS;
}

static void add_span(struct weir_sim_sum *sum, const struct sim_rates *rates, double dt_s)
{
    for (int i = 0; i < WEIR_SIM_CAUSES; i++)
        sum->time_s[i] += rates->share[i] * dt_s;
    for (int i = 0; i < WEIR_SIM_TIERS_MAX; i++) {
        sum->read_bytes[i] += rates->read[i] * dt_s;
        sum->written_bytes[i] += rates->written[i] * dt_s;
    }
}

static void add_sum(struct weir_sim_sum *sum, const struct weir_sim_sum *other)
{
    for (int i = 0; i < WEIR_SIM_CAUSES; i++)
        sum->time_s[i] += other->time_s[i];
    sum->lost_s += other->lost_s;
    for (int i = 0; i < WEIR_SIM_TIERS_MAX; i++) {
        sum->read_bytes[i] += other->read_bytes[i];
        sum->written_bytes[i] += other->written_bytes[i];
    }
}

static void halve(struct weir_sim_result *result)
{
    for (int i = 0; i < WEIR_SIM_BINS; i++) {
        struct weir_sim_sum sum = {0};
        if (2 * i < WEIR_SIM_BINS)
            sum = result->bins[2 * i];
        if (2 * i + 1 < WEIR_SIM_BINS)
            add_sum(&sum, &result->bins[2 * i + 1]);
        result->bins[i] = sum;
    }
    result->bin_s *= 2;
}

void weir_sim_record_span(struct weir_sim_result *result, const struct sim_rates *rates,
                          double dt_s)
{
    double from = result->time_s, end = from + dt_s;
    add_span(&result->sum, rates, dt_s);
    /* A little beyond is rounding, and belongs to the last bin. */
    while (end > result->bin_s * WEIR_SIM_BINS * (1 + 1e-9))
        halve(result);
    int first = (int)(from / result->bin_s), last = (int)(end / result->bin_s);
    last = last < WEIR_SIM_BINS ? last : WEIR_SIM_BINS - 1;
    first = first < last ? first : last;
    for (int i = first; i <= last; i++) {
        double begin = i > first ? i * result->bin_s : from;
        double until = i < last ? (i + 1) * result->bin_s : end;
        if (until > begin)
            add_span(&result->bins[i], rates, until - begin);
    }
    result->bin_count = last + 1;
    result->time_s = end;
}

void weir_sim_record_lost(struct weir_sim_result *result, double compute_s)
{
    result->sum.lost_s += compute_s;
    for (int i = result->bin_count - 1; i >= 0 && compute_s > 0; i--) {
        struct weir_sim_sum *bin = &result->bins[i];
        double kept = bin->time_s[WEIR_SIM_COMPUTE] - bin->lost_s;
        double part = kept < compute_s ? kept : compute_s;
        bin->lost_s += part > 0 ? part : 0;
        compute_s -= part > 0 ? part : 0;
    }
}
