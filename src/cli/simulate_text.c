/* simulate_text.c - a simulation for people and for scripts. See simulate.h. */
#include <inttypes.h>

#include "cli/format.h"
#include "cli/plan.h"
#include "cli/simulate.h"
#include "plan/save.h"

static const char *say(enum weir_plan_unit unit, double value)
{
    return weir_plan_say(unit, value);
}

static void show_share(const char *name, double share, double time_s, bool is_part)
{
    printf("%s%-*s %9s %11s", is_part ? "  " : "", is_part ? 28 : 30, name,
           say(WEIR_PLAN_SHARE, share), say(WEIR_PLAN_S, share * time_s));
    if (!is_part && share * FORMAT_BAR_COLUMNS >= 1) {
        fputs("  ", stdout);
        format_bar(share, 1);
    }
    putchar('\n');
}

static void show_time(const struct simulate_case *one)
{
    static const int ends[SIMULATE_PARTS + 1] = {
        [SIMULATE_SAVE] = WEIR_SIM_SAVE_FIRST,
        [SIMULATE_RESTART] = WEIR_SIM_RESTART_FIRST,
        [SIMULATE_PARTS] = WEIR_SIM_CAUSES,
    };
    for (int part = 0; part < SIMULATE_PARTS; part++) {
        show_share(simulate_part_names[part], one->part[part], one->time_s, false);
        for (int i = ends[part]; ends[part] && i < ends[part + 1]; i++)
            if (one->cause[i] > 0)
                show_share(simulate_cause_name((enum weir_sim_cause)i), one->cause[i], one->time_s,
                           true);
    }
}

static void show_events(const struct simulate *sim, const struct simulate_case *one)
{
    const struct weir_sim_setup *setup = &sim->setup;
    bool is_mean = sim->runs > 1;
    printf("\nfailures      %.*f%s, %.*f of which took a node\n", is_mean, one->failures,
           is_mean ? " on average" : "", is_mean, one->losses);
    if (one->failures > 0) {
        printf("restarts      ");
        for (int i = 0; i < setup->save_tier_count; i++)
            printf("%.*f from %s, ", is_mean, one->restarts[i],
                   setup->tiers[setup->save_tiers[i]].name);
        printf("%.*f from nothing\n", is_mean, one->scratch);
    }
    if (setup->save_tier_count)
        printf("checkpoints   %.*f begun, %.*f complete on %s\n", is_mean, one->saves, is_mean,
               one->complete[setup->save_tier_count - 1],
               setup->tiers[setup->save_tiers[setup->save_tier_count - 1]].name);
    if (one->cliff_s > 0)
        printf("write cliff   %s of writing beyond the nvme's fast cache\n",
               say(WEIR_PLAN_S, one->cliff_s));
    printf("\ntier              read      written\n");
    for (int i = 0; i < setup->tier_count; i++)
        if (one->read_bytes[i] > 0 || one->written_bytes[i] > 0)
            printf("%-8s %13s %12s\n", setup->tiers[i].name,
                   say(WEIR_PLAN_BYTES, one->read_bytes[i]),
                   say(WEIR_PLAN_BYTES, one->written_bytes[i]));
}

static void show_intervals(const struct simulate *sim)
{
    printf("\ninterval       goodput       lost   checkpoints    restarts\n");
    for (int i = 0; i < sim->count; i++) {
        const struct simulate_case *one = &sim->cases[i];
        printf("%-12s %9s  %9s     %9s   %9s%s\n", say(WEIR_PLAN_S, one->interval_s),
               say(WEIR_PLAN_SHARE, one->part[SIMULATE_GOOD]),
               say(WEIR_PLAN_SHARE, one->part[SIMULATE_LOST]),
               say(WEIR_PLAN_SHARE, one->part[SIMULATE_SAVE]),
               say(WEIR_PLAN_SHARE, one->part[SIMULATE_RESTART]),
               i == sim->best ? "  <- best" : "");
    }
}

static void show_young(const struct weir_sim_setup *setup)
{
    double best_s = weir_sim_best_interval_s(setup);
    if (best_s <= 0)
        return;
    printf("\nby formula    a save stalls for %s and takes %s to write: the best interval is %s\n",
           say(WEIR_PLAN_S, weir_sim_save_cost_s(setup)),
           say(WEIR_PLAN_S, weir_sim_save_write_s(setup)), say(WEIR_PLAN_S, best_s));
}

void simulate_show(const struct simulate *sim)
{
    const struct simulate_case *best = &sim->cases[sim->best];
    char text[SIMULATE_TEXT_BYTES];
    printf("job           %s\n", simulate_job(text, sim));
    printf("checkpoints   %s\n", simulate_saves(text, sim));
    printf("failures      %s\n", simulate_failures(text, sim));
    if (sim->setup.mtbf_s > 0)
        printf("spare nodes   %s, %s to repair a lost one\n",
               say(WEIR_PLAN_COUNT, sim->setup.spares), say(WEIR_PLAN_S, sim->setup.repair_s));
    if (simulate_assumed(text, sim))
        printf("assumed       %s\n", text);
    printf("simulated     %s, %s steps, seed %" PRIu64, say(WEIR_PLAN_S, best->time_s),
           say(WEIR_PLAN_COUNT, best->steps), sim->setup.seed);
    if (sim->runs > 1)
        printf(" and %d more: means; goodput from %s to %s", sim->runs - 1,
               say(WEIR_PLAN_SHARE, best->good_min), say(WEIR_PLAN_SHARE, best->good_max));
    printf("\n\n");
    show_time(best);
    show_events(sim, best);
    if (sim->count > 1)
        show_intervals(sim);
    show_young(&sim->setup);
    printf("\nWhat costs the most: %s.\n", simulate_advice(text, sim));
}

/* ---- JSON ---- */

static json_t *tiers_json(const struct simulate *sim, const struct simulate_case *one)
{
    json_t *tiers = json_array();
    for (int i = 0; i < sim->setup.tier_count; i++)
        json_array_append_new(tiers, json_pack("{s:s, s:f, s:f}", "name", sim->setup.tiers[i].name,
                                               "read_bytes", one->read_bytes[i], "written_bytes",
                                               one->written_bytes[i]));
    return tiers;
}

static json_t *levels_json(const struct simulate *sim, const struct simulate_case *one)
{
    json_t *levels = json_array();
    for (int i = 0; i < sim->setup.save_tier_count; i++)
        json_array_append_new(levels,
                              json_pack("{s:s, s:f, s:f}", "tier",
                                        sim->setup.tiers[sim->setup.save_tiers[i]].name, "complete",
                                        one->complete[i], "restarts", one->restarts[i]));
    return levels;
}

static json_t *causes_json(const struct simulate_case *one)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "compute",
                     one->cause[WEIR_SIM_COMPUTE], "read", one->cause[WEIR_SIM_READ], "save_queue",
                     one->cause[WEIR_SIM_QUEUE], "save_stage", one->cause[WEIR_SIM_STAGE],
                     "save_copy", one->cause[WEIR_SIM_COPY], "save_write",
                     one->cause[WEIR_SIM_WRITE], "detect", one->cause[WEIR_SIM_DETECT], "spare",
                     one->cause[WEIR_SIM_SPARE], "launch", one->cause[WEIR_SIM_LAUNCH], "load",
                     one->cause[WEIR_SIM_LOAD]);
}

static json_t *case_json(const struct simulate *sim, const struct simulate_case *one)
{
    json_t *doc = json_pack(
        "{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "interval_s",
        one->interval_s > 0 ? json_real(one->interval_s) : json_null(), "goodput",
        one->part[SIMULATE_GOOD], "lost_share", one->part[SIMULATE_LOST], "read_share",
        one->part[SIMULATE_READ], "checkpoint_share", one->part[SIMULATE_SAVE], "restart_share",
        one->part[SIMULATE_RESTART], "goodput_min", one->good_min, "goodput_max", one->good_max,
        "goodput_sd", one->good_sd, "shares", causes_json(one));
    json_t *more = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:I}", "simulated_s",
                             one->time_s, "steps", one->steps, "saves", one->saves, "failures",
                             one->failures, "nodes_lost", one->losses, "restarts_from_nothing",
                             one->scratch, "cliff_s", one->cliff_s, "levels", levels_json(sim, one),
                             "tiers", tiers_json(sim, one), "events", (json_int_t)one->events);
    json_object_update(doc, more);
    json_decref(more);
    return doc;
}

static json_t *bin_json(const struct weir_sim_sum *sum, double begin_s)
{
    double part[SIMULATE_PARTS];
    simulate_bin(part, sum);
    json_t *read = json_array(), *written = json_array();
    for (int i = 0; i < WEIR_SIM_PLAN_TIERS; i++) {
        json_array_append_new(read, json_real(sum->read_bytes[i]));
        json_array_append_new(written, json_real(sum->written_bytes[i]));
    }
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "begin_s", begin_s, "goodput",
                     part[SIMULATE_GOOD], "lost_share", part[SIMULATE_LOST], "read_share",
                     part[SIMULATE_READ], "checkpoint_share", part[SIMULATE_SAVE], "restart_share",
                     part[SIMULATE_RESTART], "read_bytes", read, "written_bytes", written);
}

json_t *simulate_json(const struct simulate *sim)
{
    const struct simulate_case *best = &sim->cases[sim->best];
    double formula_s = weir_sim_best_interval_s(&sim->setup);
    json_t *doc =
        json_pack("{s:f, s:f, s:I, s:i, s:o}", "gpus", (double)sim->in->gpus, "nodes",
                  sim->setup.nodes, "seed", (json_int_t)sim->setup.seed, "runs", sim->runs,
                  "formula_interval_s", formula_s > 0 ? json_real(formula_s) : json_null());
    json_t *own = case_json(sim, best), *bins = json_array(), *cases = json_array();
    json_t *assumed = json_array();
    char text[SIMULATE_TEXT_BYTES];
    if (simulate_assumed(text, sim))
        json_array_append_new(assumed, json_string(text));
    json_object_update(doc, own);
    json_decref(own);
    for (int i = 0; sim->count > 1 && i < sim->count; i++)
        json_array_append_new(cases, case_json(sim, &sim->cases[i]));
    json_object_set_new(doc, "assumptions", assumed);
    json_object_set_new(doc, "intervals", cases);
    for (int i = 0; i < best->first.bin_count; i++)
        json_array_append_new(bins, bin_json(&best->first.bins[i], i * best->first.bin_s));
    json_object_set_new(doc, "bin_s", json_real(best->first.bin_s));
    json_object_set_new(doc, "over_time", bins);
    return doc;
}
