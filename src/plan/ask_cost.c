/* ask_cost.c - what data cost a month, on one tier or on several. */
#include <errno.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/cost.h"
#include "util/err.h"

#define USD(value)  weir_plan_say(WEIR_PLAN_USD_PER_MONTH, value)
#define SIZE(value) weir_plan_say(WEIR_PLAN_BYTES, value)

struct place {
    const struct weir_plan_price *price;
    double bytes;
    const char *key, *name, *all_key, *all_name;
};

enum { PLACES = 4 };

static void find_places(struct place places[PLACES], const struct weir_plan_in *in)
{
    const struct weir_plan_price *p = weir_plan_prices; /* in this order */
    places[0] = (struct place){&p[0],        (double)in->glacier_bytes,   "glacier_usd_per_month",
                               "S3 Glacier", "all_glacier_usd_per_month", "all on S3 Glacier"};
    places[1] = (struct place){&p[1],         (double)in->s3_bytes,   "s3_usd_per_month",
                               "S3 Standard", "all_s3_usd_per_month", "all on S3 Standard"};
    places[2] = (struct place){&p[2],     (double)in->ebs_bytes,   "ebs_usd_per_month",
                               "EBS gp3", "all_ebs_usd_per_month", "all on EBS gp3"};
    places[3] = (struct place){&p[3],
                               (double)in->lustre_bytes,
                               "lustre_usd_per_month",
                               "FSx for Lustre",
                               "all_lustre_usd_per_month",
                               "all on FSx for Lustre"};
}

/* Of the layout, what each tier and the whole costs, and which part is the largest. */
static void tell_layout(struct weir_plan_answer *a, const struct weir_plan_in *in,
                        const struct place *places, double bytes)
{
    double sum = 0, most = 0;
    const char *name = NULL;
    for (int i = 0; i < PLACES; i++) {
        if (places[i].bytes == 0)
            continue;
        double usd = weir_plan_storage_usd(places[i].bytes, places[i].price->usd_per_gb_month);
        weir_plan_figure(a, places[i].key, places[i].name, WEIR_PLAN_USD_PER_MONTH, usd);
        sum += usd;
        name = usd > most ? places[i].name : name;
        most = usd > most ? usd : most;
    }
    if (in->egress_bytes) {
        double usd = weir_plan_storage_usd((double)in->egress_bytes, in->egress_usd);
        weir_plan_figure(a, "egress_usd_per_month", "egress", WEIR_PLAN_USD_PER_MONTH, usd);
        sum += usd;
        name = usd > most ? "egress" : name;
        most = usd > most ? usd : most;
        weir_plan_assume(a, "%s leave the cloud in a month, at $%g a GB",
                         SIZE((double)in->egress_bytes), in->egress_usd);
    }
    weir_plan_figure(a, "usd_per_month", "in all", WEIR_PLAN_USD_PER_MONTH, sum);
    if (bytes > 0)
        weir_plan_figure(a, "usd_per_gb_month", "a GB, for a month", WEIR_PLAN_USD,
                         sum / (bytes / 1e9));
    if (name)
        weir_plan_bottleneck(a, "%s: %s of it", name, weir_plan_say(WEIR_PLAN_SHARE, most / sum));
    else
        weir_plan_bottleneck(a, "nothing: at that price it is free");
}

int weir_plan_ask_cost(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct place places[PLACES];
    double bytes = 0, size = (double)in->size_bytes;
    find_places(places, in);
    for (int i = 0; i < PLACES; i++)
        bytes += places[i].bytes;
    if (size == 0 && bytes == 0 && !in->egress_bytes)
        return weir_plan_missing("size", "or a layout: --s3, --lustre, --ebs, --glacier, --egress");
    snprintf(a->question, sizeof a->question, "What does it cost a month?");
    if (bytes > 0 || in->egress_bytes)
        tell_layout(a, in, places, bytes);
    double all = size > 0 ? size : bytes;
    double least = 0, most = 0;
    for (int i = 0; i < PLACES && all > 0; i++) {
        double usd = weir_plan_storage_usd(all, places[i].price->usd_per_gb_month);
        weir_plan_figure(a, places[i].all_key, places[i].all_name, WEIR_PLAN_USD_PER_MONTH, usd);
        least = i ? least : usd;
        most = usd;
    }
    if (bytes == 0 && !in->egress_bytes)
        weir_plan_bottleneck(a, "the tier: the dearest costs %s times the cheapest",
                             weir_plan_say(WEIR_PLAN_NUMBER, most / least));
    if (bytes > 0)
        weir_plan_change(a, "all of it on FSx for Lustre instead: %s", USD(most));
    if (all > 0)
        weir_plan_change(
            a, "a tenth of %s moved from FSx for Lustre to S3 saves %s", SIZE(all),
            USD(weir_plan_storage_usd(all / 10, weir_plan_prices[3].usd_per_gb_month -
                                                    weir_plan_prices[1].usd_per_gb_month)));
    weir_plan_assume(a,
                     "list prices a GB and month: S3 Glacier $0.004, S3 Standard $0.023, EBS gp3 "
                     "$0.08, FSx for Lustre $0.14; no requests, no retrieval");
    if (in->size_bytes && bytes > 0 && bytes != size)
        weir_plan_assume(a, "the layout holds %s, --size compares %s", SIZE(bytes), SIZE(size));
    return 0;
}
