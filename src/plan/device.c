/* device.c - see device.h. */
#include "plan/device.h"

#include <math.h>

static const double year_s = 365 * 86400.0;

double weir_plan_stripe_bytes_per_s(double devices, double device_bytes_per_s,
                                    double link_bytes_per_s)
{
    return devices * fmin(device_bytes_per_s, link_bytes_per_s);
}

double weir_plan_any_fails(double devices, double chance)
{
    return -expm1(devices * log1p(-chance));
}

double weir_plan_cliff_s(const struct weir_plan_cliff *c, double free_bytes, double write_bytes)
{
    double fast_bytes = fmin(write_bytes, free_bytes);
    return fast_bytes / c->fast_bytes_per_s + (write_bytes - fast_bytes) / c->native_bytes_per_s;
}

/* In the long run the cache is full when a save ends, unless pauses empty it. Then what is free is
 * what the pause before it freed: free = N (I - free/F - (X - free)/N), so free = F (I - X/N). */
double weir_plan_cliff_free_bytes(const struct weir_plan_cliff *c, double write_bytes,
                                  double interval_s)
{
    double used_bytes = fmin(write_bytes, c->cache_bytes);
    double first_s = weir_plan_cliff_s(c, c->cache_bytes, write_bytes);
    if ((interval_s - first_s) * c->native_bytes_per_s >= used_bytes)
        return c->cache_bytes;
    double free_bytes = (interval_s - write_bytes / c->native_bytes_per_s) * c->fast_bytes_per_s;
    return fmax(0, fmin(free_bytes, used_bytes));
}

double weir_plan_cliff_limit_bytes_per_s(const struct weir_plan_cliff *c, double write_bytes)
{
    if (write_bytes <= c->cache_bytes)
        return c->fast_bytes_per_s;
    return fmin(c->fast_bytes_per_s,
                c->native_bytes_per_s * write_bytes / (write_bytes - c->cache_bytes));
}

double weir_plan_cliff_burst_bytes_per_s(const struct weir_plan_cliff *c)
{
    return 1 / (1 / c->fast_bytes_per_s + 1 / c->native_bytes_per_s);
}

double weir_plan_wear_bytes(double save_bytes, double amplification, double interval_s,
                            double over_s)
{
    return save_bytes * amplification * (over_s / interval_s);
}

double weir_plan_life_s(double tbw_bytes, double wear_bytes_per_s)
{
    return wear_bytes_per_s > 0 ? tbw_bytes / wear_bytes_per_s : INFINITY;
}

double weir_plan_loss_textbook(double chance, double copies)
{
    return pow(chance, copies);
}

double weir_plan_loss_unrepaired(double chance, unsigned data, unsigned parity)
{
    unsigned devices = data + parity;
    double sum = 0;
    for (unsigned failed = parity + 1; failed <= devices; failed++)
        sum += exp(lgamma(devices + 1.0) - lgamma(failed + 1.0) - lgamma(devices - failed + 1.0) +
                   failed * log(chance) + (devices - failed) * log1p(-chance));
    return fmin(sum, 1);
}

double weir_plan_failures_a_year(double chance)
{
    return -log1p(-chance);
}

/* The mean time from i failed to i + 1 is 1/l_i + (m_i/l_i) times that from i - 1 to i: only
 * positive terms, so nothing cancels. */
double weir_plan_mttdl_s(double chance, unsigned data, unsigned parity, double repair_s)
{
    double rate_per_s = weir_plan_failures_a_year(chance) / year_s, step_s = 0, sum_s = 0;
    for (unsigned failed = 0; failed <= parity; failed++) {
        double fail_per_s = (data + parity - failed) * rate_per_s;
        step_s = 1 / fail_per_s + (failed / repair_s / fail_per_s) * step_s;
        sum_s += step_s;
    }
    return sum_s;
}

double weir_plan_loss_a_year(double mttdl_s, double groups)
{
    return -expm1(-groups * year_s / mttdl_s);
}
