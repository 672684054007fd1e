/* ask_device.c - what devices give together, where writes fall off, how long they last. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/device.h"
#include "plan/read.h"
#include "util/err.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value) weir_plan_say(WEIR_PLAN_BYTES, value)
#define TIME(value) weir_plan_say(WEIR_PLAN_S, value)

static const double day_s = 86400;

/* ---- striped devices ---- */

static void tell_stripe_limit(struct weir_plan_answer *a, const struct weir_plan_device *d,
                              const struct weir_plan_link *link)
{
    if (d->read_bytes_per_s > link->bytes_per_s) {
        weir_plan_bottleneck(a, "%s: %s, less than the %s the device reads", link->about,
                             RATE(link->bytes_per_s), RATE(d->read_bytes_per_s));
        weir_plan_change(a, "faster lanes: up to %s a device", RATE(d->read_bytes_per_s));
        return;
    }
    weir_plan_bottleneck(a, "the devices: %s read and %s write each", RATE(d->read_bytes_per_s),
                         RATE(d->write_bytes_per_s));
    weir_plan_change(a, "faster devices, up to %s each: that is %s", RATE(link->bytes_per_s),
                     link->about);
    weir_plan_change(a, "one device more: %s more of read, %s more of write",
                     RATE(d->read_bytes_per_s), RATE(d->write_bytes_per_s));
}

int weir_plan_ask_raid(struct weir_plan_answer *a, const struct weir_plan_in *in,
                       const struct weir_plan_device *d)
{
    const struct weir_plan_link *link = weir_plan_link_find(in->pcie);
    if (!link)
        return -EINVAL;
    double n = (double)in->devices, each = (double)in->device_bytes, lane = link->bytes_per_s;
    snprintf(a->question, sizeof a->question, "What do %s striped devices give (RAID-0, %s)?",
             weir_plan_say(WEIR_PLAN_COUNT, n), d->about);
    weir_plan_figure(a, "read_bytes_per_s", "read", WEIR_PLAN_BYTES_PER_S,
                     weir_plan_stripe_bytes_per_s(n, d->read_bytes_per_s, lane));
    weir_plan_figure(a, "write_bytes_per_s", "write", WEIR_PLAN_BYTES_PER_S,
                     weir_plan_stripe_bytes_per_s(n, d->write_bytes_per_s, lane));
    weir_plan_figure(a, "read_iops_per_s", "random reads", WEIR_PLAN_PER_S, n * d->read_iops);
    weir_plan_figure(a, "write_iops_per_s", "random writes", WEIR_PLAN_PER_S, n * d->write_iops);
    weir_plan_figure(a, "capacity_bytes", "capacity", WEIR_PLAN_BYTES, n * each);
    if (d->usd_per_tb > 0)
        weir_plan_figure(a, "usd", "price", WEIR_PLAN_USD, n * each / 1e12 * d->usd_per_tb);
    if (d->tbw_bytes > 0)
        weir_plan_figure(a, "tbw_bytes", "may be written in all", WEIR_PLAN_BYTES,
                         n * d->tbw_bytes);
    weir_plan_figure(a, "loss_chance_per_year", "all is lost within a year, by chance",
                     WEIR_PLAN_CHANCE, weir_plan_any_fails(n, in->afr));
    if (in->read_rate)
        weir_plan_figure(a, "devices_to_read", "devices to read that fast", WEIR_PLAN_COUNT,
                         weir_plan_servers((double)in->read_rate, fmin(d->read_bytes_per_s, lane)));
    if (in->write_rate)
        weir_plan_figure(
            a, "devices_to_write", "devices to write that fast", WEIR_PLAN_COUNT,
            weir_plan_servers((double)in->write_rate, fmin(d->write_bytes_per_s, lane)));
    weir_plan_assume(a,
                     "each device has four lanes of its own (%s, %s), and one fails within a "
                     "year by a chance of %g",
                     link->about, RATE(lane), in->afr);
    weir_plan_assume(a, "large, even stripes; no parity: one lost device loses everything");
    tell_stripe_limit(a, d, link);
    return 0;
}

/* ---- the write cliff ---- */

static int cliff_of(struct weir_plan_cliff *out, const struct weir_plan_in *in)
{
    if (!in->cache_bytes)
        return weir_plan_missing("slc-cache", "weir bench finds it");
    if (!in->fast_rate)
        return weir_plan_missing("fast-rate", NULL);
    if (!in->native_rate)
        return weir_plan_missing("native-rate", NULL);
    if (in->native_rate > in->fast_rate)
        return weir_fail(EINVAL, "--native-rate is more than --fast-rate: then there is no cliff");
    double n = (double)in->devices;
    *out = (struct weir_plan_cliff){n * (double)in->cache_bytes, n * (double)in->fast_rate,
                                    n * (double)in->native_rate};
    return 0;
}

static void tell_saves(struct weir_plan_answer *a, const struct weir_plan_in *in,
                       const struct weir_plan_cliff *c, double bytes)
{
    double interval_s = weir_plan_seconds(in->interval_ns);
    if (!in->interval_ns)
        return;
    double free_bytes = weir_plan_cliff_free_bytes(c, bytes, interval_s);
    double write_s = weir_plan_cliff_s(c, free_bytes, bytes);
    weir_plan_figure(a, "later_free_bytes", "cache free for later saves", WEIR_PLAN_BYTES,
                     free_bytes);
    weir_plan_figure(a, "later_write_s", "later saves take", WEIR_PLAN_S, write_s);
    weir_plan_assume(a,
                     "a save begins every %s; between saves the cache empties at the native "
                     "rate",
                     TIME(interval_s));
    weir_plan_change(a, "every save finds the cache empty if one begins every %s or less often",
                     TIME(weir_plan_cliff_s(c, c->cache_bytes, bytes) +
                          fmin(bytes, c->cache_bytes) / c->native_bytes_per_s));
    if (write_s > interval_s)
        weir_plan_bottleneck(a, "the native rate, %s: saves take longer than the interval",
                             RATE(c->native_bytes_per_s));
}

int weir_plan_ask_cliff(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct weir_plan_cliff c;
    struct weir_plan_save save;
    int code = cliff_of(&c, in);
    if (!code)
        code = weir_plan_save_of(&save, in);
    if (code)
        return code;
    double x = save.bytes, write_s = weir_plan_cliff_s(&c, c.cache_bytes, x);
    bool falls = x > c.cache_bytes;
    snprintf(a->question, sizeof a->question, "Does a checkpoint fall off the write cliff?");
    weir_plan_figure(a, "write_bytes", "the checkpoint", WEIR_PLAN_BYTES, x);
    weir_plan_figure(a, "cache_bytes", "the cache, when it is empty", WEIR_PLAN_BYTES,
                     c.cache_bytes);
    weir_plan_figure(a, "falls_after_s", "falls off after", WEIR_PLAN_S,
                     falls ? c.cache_bytes / c.fast_bytes_per_s : INFINITY);
    weir_plan_figure(a, "write_s", "it takes", WEIR_PLAN_S, write_s);
    weir_plan_figure(a, "average_bytes_per_s", "which is on average", WEIR_PLAN_BYTES_PER_S,
                     x / write_s);
    weir_plan_figure(a, "limit_bytes_per_s", "a rate limit that avoids it", WEIR_PLAN_BYTES_PER_S,
                     weir_plan_cliff_limit_bytes_per_s(&c, x));
    weir_plan_figure(a, "safe_bytes_per_s", "one that holds for any size", WEIR_PLAN_BYTES_PER_S,
                     c.native_bytes_per_s);
    weir_plan_figure(a, "burst_pause_s", "burst then pause: pause", WEIR_PLAN_S,
                     c.cache_bytes / c.native_bytes_per_s);
    weir_plan_figure(a, "burst_bytes_per_s", "burst then pause: average", WEIR_PLAN_BYTES_PER_S,
                     weir_plan_cliff_burst_bytes_per_s(&c));
    weir_plan_assume(a,
                     "writes go to the cache at %s until it is full, then at %s; under a rate "
                     "limit the cache empties meanwhile",
                     RATE(c.fast_bytes_per_s), RATE(c.native_bytes_per_s));
    if (falls)
        weir_plan_bottleneck(a, "the native rate, %s: %s of %s are written with it",
                             RATE(c.native_bytes_per_s), SIZE(x - c.cache_bytes), SIZE(x));
    else
        weir_plan_bottleneck(a, "the fast rate, %s: the cache holds all of it",
                             RATE(c.fast_bytes_per_s));
    if (falls)
        weir_plan_change(
            a, "%s devices share it without falling off",
            weir_plan_say(WEIR_PLAN_COUNT, (double)in->devices * ceil(x / c.cache_bytes)));
    weir_plan_change(a, "burst then pause is slower than writing at the native rate all the time; "
                        "it pays only if the pause is there anyway");
    tell_saves(a, in, &c, x);
    return 0;
}

/* ---- endurance ---- */

static void tell_life(struct weir_plan_answer *a, const struct weir_plan_in *in, double tbw,
                      double wear_per_s)
{
    double life_s = weir_plan_life_s(tbw, wear_per_s), over_s = weir_plan_seconds(in->over_ns);
    weir_plan_figure(a, "tbw_bytes", "the devices may take", WEIR_PLAN_BYTES, tbw);
    if (in->over_ns)
        weir_plan_figure(a, "used_share", "of their life", WEIR_PLAN_SHARE,
                         wear_per_s * over_s / tbw);
    weir_plan_figure(a, "life_s", "they last", WEIR_PLAN_S, life_s);
    if (in->over_ns && life_s < over_s)
        weir_plan_bottleneck(a, "endurance: the devices are worn out after %s of %s", TIME(life_s),
                             TIME(over_s));
    else
        weir_plan_bottleneck(a, "not endurance: the devices last %s", TIME(life_s));
    weir_plan_change(a, "random instead of sequential writes (amplification 10): %s",
                     TIME(life_s * in->amplification / 10));
    weir_plan_change(a, "half as often, or twice the devices: %s", TIME(2 * life_s));
    const struct weir_plan_device *best = weir_plan_device_find("nvme-enterprise");
    if (tbw < (double)in->devices * best->tbw_bytes)
        weir_plan_change(a, "%s (%s each): %s", best->about, SIZE(best->tbw_bytes),
                         TIME(life_s * (double)in->devices * best->tbw_bytes / tbw));
}

int weir_plan_ask_endurance(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct weir_plan_save save;
    const struct weir_plan_device *d = weir_plan_device_find(in->device);
    int code = d ? weir_plan_save_of(&save, in) : -EINVAL;
    if (code)
        return code;
    if (!in->interval_ns)
        return weir_plan_missing("interval", NULL);
    double each = in->tbw_bytes ? (double)in->tbw_bytes : d->tbw_bytes;
    if (each == 0)
        return weir_plan_missing("tbw", "the catalog has none for that device");
    double interval_s = weir_plan_seconds(in->interval_ns);
    double per_s = weir_plan_wear_bytes(save.bytes, in->amplification, interval_s, 1);
    snprintf(a->question, sizeof a->question, "How long do the devices last?");
    weir_plan_figure(a, "checkpoint_bytes", "a checkpoint", WEIR_PLAN_BYTES, save.bytes);
    weir_plan_figure(a, "day_bytes", "worn in a day", WEIR_PLAN_BYTES, per_s * day_s);
    if (in->over_ns)
        weir_plan_figure(a, "wear_bytes", "worn in that time", WEIR_PLAN_BYTES,
                         weir_plan_wear_bytes(save.bytes, in->amplification, interval_s,
                                              weir_plan_seconds(in->over_ns)));
    weir_plan_figure(a, "drive_writes_per_day", "drive writes a day, of the host", WEIR_PLAN_NUMBER,
                     save.bytes * day_s / interval_s /
                         ((double)in->devices * (double)in->device_bytes));
    weir_plan_assume(a,
                     "one checkpoint every %s, evenly over %s; amplification %g: 1.5 to 3 for "
                     "sequential writes, 5 to 20 for random ones",
                     TIME(interval_s), in->devices == 1 ? "one device" : "the devices",
                     in->amplification);
    tell_life(a, in, (double)in->devices * each, per_s);
    return 0;
}
