/* cmd_plan_catalog.c - weir plan catalog: the figures the planner knows. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/plan.h"
#include "plan/save.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value) weir_plan_say(WEIR_PLAN_BYTES, value)
#define TIME(value) weir_plan_say(WEIR_PLAN_S, value)

static void cell(const char *text, int width)
{
    printf("%s%*s  ", text, format_padding(text, width), "");
}

static void figure(const char *text, int width)
{
    printf("%*s%s  ", format_padding(text, width), "", text);
}

static void show_devices(void)
{
    printf("%-42s%9s %9s %9s %9s %10s %9s\n", "Devices", "read", "write", "reads", "writes", "a TB",
           "TBW");
    for (size_t i = 0; i < weir_plan_device_count; i++) {
        const struct weir_plan_device *d = &weir_plan_devices[i];
        cell("", 0);
        cell(d->name, 15);
        cell(d->about, 21);
        printf("%9s %9s %9s %9s %10s %9s\n", RATE(d->read_bytes_per_s), RATE(d->write_bytes_per_s),
               weir_plan_say(WEIR_PLAN_PER_S, d->read_iops),
               weir_plan_say(WEIR_PLAN_PER_S, d->write_iops),
               weir_plan_say(WEIR_PLAN_USD, d->usd_per_tb),
               d->tbw_bytes > 0 ? SIZE(d->tbw_bytes) : "-");
    }
}

static void show_links_and_prices(void)
{
    printf("\nLinks of a device\n");
    for (size_t i = 0; i < weir_plan_link_count; i++) {
        cell("", 0);
        cell(weir_plan_links[i].name, 15);
        cell(weir_plan_links[i].about, 21);
        printf("%9s\n", RATE(weir_plan_links[i].bytes_per_s));
    }
    printf("\nPrices of a GB for a month\n");
    for (size_t i = 0; i < weir_plan_price_count; i++) {
        cell("", 0);
        cell(weir_plan_prices[i].name, 15);
        cell(weir_plan_prices[i].about, 21);
        printf("%9s$%.3f\n", "", weir_plan_prices[i].usd_per_gb_month);
    }
}

static void show_tiers(void)
{
    printf("\n%-32s%8s  %10s  %s\n", "The hierarchy", "size", "rate", "latency");
    for (size_t i = 0; i < weir_plan_tier_count; i++) {
        const struct weir_plan_tier *t = &weir_plan_tiers[i];
        cell("", 0);
        cell(t->name, 19);
        cell(t->of, 7);
        figure(t->bytes > 0 ? SIZE(t->bytes) : "-", 8);
        figure(t->bytes_per_s > 0 ? RATE(t->bytes_per_s) : "-", 10);
        if (t->latency_s_max == 0)
            printf("-\n");
        else if (t->latency_s_min == 0)
            printf("< %s\n", TIME(t->latency_s_max));
        else if (t->latency_s_min < t->latency_s_max)
            printf("%s to %s\n", TIME(t->latency_s_min), TIME(t->latency_s_max));
        else
            printf("%s\n", TIME(t->latency_s_min));
    }
    printf("\nShared file systems, whole installations\n");
    for (size_t i = 0; i < weir_plan_share_count; i++) {
        const struct weir_plan_shared *s = &weir_plan_shares[i];
        cell("", 0);
        cell(s->name, 15);
        printf("%s", RATE(s->bytes_per_s_min));
        if (s->bytes_per_s_max > s->bytes_per_s_min)
            printf(" to %s", RATE(s->bytes_per_s_max));
        printf("\n");
    }
}

static void show_rest(void)
{
    printf("\nWhat a checkpoint holds of a parameter, in bytes\n");
    for (size_t i = 0; i < weir_plan_state_count; i++) {
        const struct weir_plan_state *s = &weir_plan_states[i];
        cell("", 0);
        cell(s->name, 15);
        printf("%3g = %g + %2g  %s\n", s->weight_bytes + s->optimizer_bytes, s->weight_bytes,
               s->optimizer_bytes, s->about);
    }
    printf("\nWhat trackers take in\n");
    for (size_t i = 0; i < weir_plan_volume_count; i++) {
        cell("", 0);
        cell(weir_plan_volumes[i].what, 38);
        printf("%s %s\n", SIZE(weir_plan_volumes[i].value), weir_plan_volumes[i].of);
    }
    printf("\nHow long a lookup of features may take\n");
    for (size_t i = 0; i < weir_plan_budget_count; i++) {
        cell("", 0);
        cell(weir_plan_budgets[i].what, 38);
        printf("%s\n", TIME(weir_plan_budgets[i].value));
    }
}

/* ---- as data ---- */

static json_t *devices_json(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < weir_plan_device_count; i++) {
        const struct weir_plan_device *d = &weir_plan_devices[i];
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:o}", "name", d->name, "about",
                             d->about, "read_bytes_per_s", d->read_bytes_per_s, "write_bytes_per_s",
                             d->write_bytes_per_s, "read_iops", d->read_iops, "write_iops",
                             d->write_iops, "usd_per_tb", d->usd_per_tb, "tbw_bytes",
                             d->tbw_bytes > 0 ? json_real(d->tbw_bytes) : json_null()));
    }
    return array;
}

static json_t *tiers_json(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < weir_plan_tier_count; i++) {
        const struct weir_plan_tier *t = &weir_plan_tiers[i];
        json_array_append_new(array, json_pack("{s:s, s:s, s:f, s:f, s:f}", "name", t->name, "of",
                                               t->of, "bytes", t->bytes, "bytes_per_s",
                                               t->bytes_per_s, "latency_s_max", t->latency_s_max));
    }
    return array;
}

static json_t *notes_json(const struct weir_plan_note *notes, size_t count, const char *unit)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_pack("{s:s, s:f, s:s}", "what", notes[i].what, unit,
                                               notes[i].value, "of", notes[i].of));
    return array;
}

static json_t *catalog_json(void)
{
    json_t *links = json_object(), *prices = json_object(), *shared = json_object();
    json_t *states = json_object();
    for (size_t i = 0; i < weir_plan_state_count; i++)
        json_object_set_new(states, weir_plan_states[i].name,
                            json_pack("[f, f]", weir_plan_states[i].weight_bytes,
                                      weir_plan_states[i].optimizer_bytes));
    for (size_t i = 0; i < weir_plan_link_count; i++)
        json_object_set_new(links, weir_plan_links[i].name,
                            json_real(weir_plan_links[i].bytes_per_s));
    for (size_t i = 0; i < weir_plan_price_count; i++)
        json_object_set_new(prices, weir_plan_prices[i].name,
                            json_real(weir_plan_prices[i].usd_per_gb_month));
    for (size_t i = 0; i < weir_plan_share_count; i++)
        json_object_set_new(shared, weir_plan_shares[i].name,
                            json_pack("[f, f]", weir_plan_shares[i].bytes_per_s_min,
                                      weir_plan_shares[i].bytes_per_s_max));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "devices", devices_json(), "links",
                     links, "usd_per_gb_month", prices, "tiers", tiers_json(), "shared_bytes_per_s",
                     shared, "states", states, "volumes",
                     notes_json(weir_plan_volumes, weir_plan_volume_count, "bytes"), "budgets",
                     notes_json(weir_plan_budgets, weir_plan_budget_count, "s"));
}

static int run(struct cli *cli)
{
    if (cli->json) {
        cli->doc = catalog_json();
        return 0;
    }
    if (cli->quiet)
        return 0;
    show_devices();
    show_links_and_prices();
    show_tiers();
    show_rest();
    return 0;
}

const struct command cmd_plan_catalog = {
    .name = "plan catalog",
    .operands = "",
    .summary = "Show the figures that plans are made with",
    .about = "Devices, links, prices, tiers and file systems, as published. What weir bench "
             "measures is better: give it with --profile.",
    .example = "weir plan catalog",
    .json =
        "devices: an array of name, about, read_bytes_per_s, write_bytes_per_s, read_iops, "
        "write_iops, usd_per_tb, tbw_bytes; links: bytes a second by name; usd_per_gb_month: by "
        "name; tiers: an array of name, of, bytes, bytes_per_s, latency_s_max (0: not stated); "
        "shared_bytes_per_s: the least and the most by name; states: bytes of weights and of the "
        "optimizer by name; volumes and budgets: arrays of what, bytes or s, of",
    .run = run,
};
