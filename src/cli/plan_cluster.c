/* plan_cluster.c - the tables of weir plan cluster, for people and for scripts. */
#include "cli/plan_cluster.h"

#include "cli/format.h"
#include "cli/plan.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value) weir_plan_say(WEIR_PLAN_BYTES, value)

void plan_cluster_show(const struct weir_plan_cluster *c)
{
    printf("%-18s%9s  %10s %10s %9s  %s\n", "Tiers", "", "needed", "there", "used", "for");
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++) {
        const struct weir_plan_level_use *l = &c->levels[i];
        char units[32];
        snprintf(units, sizeof units, "%.0f %s", l->units, l->units > 1 ? l->unit : "");
        printf("  %-16s%9s  %10s %10s %9s  %s\n", l->name, units, SIZE(l->need_bytes),
               SIZE(l->have_bytes), weir_plan_say(WEIR_PLAN_SHARE, l->need_bytes / l->have_bytes),
               l->holds);
    }
    printf("\n%-55s %12s %12s %9s\n", "Flows, all nodes together", "needed", "there", "used");
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++) {
        const struct weir_plan_flow *f = &c->flows[i];
        char path[64];
        snprintf(path, sizeof path, "%s to %s", c->levels[f->from].name, c->levels[f->to].name);
        printf("  %-22s %-30s %12s %12s %9s\n", f->name, path, RATE(f->need_bytes_per_s),
               RATE(f->have_bytes_per_s),
               weir_plan_say(WEIR_PLAN_SHARE, f->need_bytes_per_s / f->have_bytes_per_s));
    }
    printf("\nWhat breaks first%49stimes this load\n", "");
    for (unsigned i = 0; i < c->limit_count && i < 5; i++)
        printf("  %-64s%s\n", c->limits[i].name,
               weir_plan_say(WEIR_PLAN_NUMBER, c->limits[i].headroom));
    printf("\n");
}

static json_t *levels_json(const struct weir_plan_cluster *c)
{
    json_t *array = json_array();
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++) {
        const struct weir_plan_level_use *l = &c->levels[i];
        json_array_append_new(array,
                              json_pack("{s:s, s:f, s:f, s:o, s:f, s:s}", "name", l->name, "units",
                                        l->units, "need_bytes", l->need_bytes, "have_bytes",
                                        plan_number_json(l->have_bytes), "usd_per_month",
                                        l->usd_per_month, "holds", l->holds));
    }
    return array;
}

void plan_cluster_json(json_t *doc, const struct weir_plan_cluster *c)
{
    json_t *flows = json_array(), *limits = json_array();
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++) {
        const struct weir_plan_flow *f = &c->flows[i];
        json_array_append_new(flows, json_pack("{s:s, s:s, s:s, s:f, s:f}", "name", f->key, "from",
                                               c->levels[f->from].name, "to", c->levels[f->to].name,
                                               "need_bytes_per_s", f->need_bytes_per_s,
                                               "have_bytes_per_s", f->have_bytes_per_s));
    }
    for (unsigned i = 0; i < c->limit_count; i++)
        json_array_append_new(limits, json_pack("{s:s, s:f}", "name", c->limits[i].name, "headroom",
                                                c->limits[i].headroom));
    json_object_set_new(doc, "tiers", levels_json(c));
    json_object_set_new(doc, "flows", flows);
    json_object_set_new(doc, "limits", limits);
}
