/* simulate_page.c - a simulation as charts and as a page. See simulate.h. */
#include <stdlib.h>

#include "cli/page.h"
#include "cli/simulate.h"
#include "plan/answer.h"

enum { WIDTH = 960 };

/* What the charts of a case point to. */
struct curves {
    double x[WEIR_SIM_BINS];
    double part[SIMULATE_PARTS][WEIR_SIM_BINS];
    double read[WEIR_SIM_PLAN_TIERS][WEIR_SIM_BINS], written[WEIR_SIM_PLAN_TIERS][WEIR_SIM_BINS];
    double interval[WEIR_SIM_INTERVALS_MAX], by[SIMULATE_PARTS][WEIR_SIM_INTERVALS_MAX];
    char bins[64]; /* how long one is */
    struct chart_series parts[SIMULATE_PARTS], reads[WEIR_SIM_PLAN_TIERS],
        writes[WEIR_SIM_PLAN_TIERS], over[SIMULATE_PARTS];
    size_t read_count, write_count;
};

static struct curves curves; /* too large for a stack */

static const char *say(enum weir_plan_unit unit, double value)
{
    return weir_plan_say(unit, value);
}

static void plot_time(const struct simulate *sim)
{
    const struct weir_sim_result *first = &sim->cases[sim->best].first;
    size_t count = (size_t)first->bin_count;
    snprintf(curves.bins, sizeof curves.bins, "means of %s", say(WEIR_PLAN_S, first->bin_s));
    for (size_t i = 0; i < count; i++) {
        double part[SIMULATE_PARTS], end = (double)(i + 1) * first->bin_s;
        double width = (end < first->time_s ? end : first->time_s) - (double)i * first->bin_s;
        simulate_bin(part, &first->bins[i]);
        curves.x[i] = ((double)i + 0.5) * first->bin_s;
        for (int p = 0; p < SIMULATE_PARTS; p++)
            curves.part[p][i] = part[p];
        for (int t = 0; t < WEIR_SIM_PLAN_TIERS; t++) {
            curves.read[t][i] = width > 0 ? first->bins[i].read_bytes[t] / width : 0;
            curves.written[t][i] = width > 0 ? first->bins[i].written_bytes[t] / width : 0;
        }
    }
    for (int p = 0; p < SIMULATE_PARTS; p++)
        curves.parts[p] = (struct chart_series){.name = simulate_part_names[p],
                                                .x = curves.x,
                                                .y = curves.part[p],
                                                .count = count,
                                                .best = -1};
    curves.read_count = curves.write_count = 0;
    for (int t = 0; t < WEIR_SIM_PLAN_TIERS; t++) {
        struct chart_series series = {.name = sim->setup.tiers[t].name,
                                      .x = curves.x,
                                      .y = curves.read[t],
                                      .count = count,
                                      .best = -1};
        if (first->sum.read_bytes[t] > 0)
            curves.reads[curves.read_count++] = series;
        series.y = curves.written[t];
        if (first->sum.written_bytes[t] > 0)
            curves.writes[curves.write_count++] = series;
    }
}

static void plot_intervals(const struct simulate *sim)
{
    static const char *const names[SIMULATE_PARTS] = {"all waste", "lost work", "reading",
                                                      "checkpoints", "restarts"};
    for (int i = 0; i < sim->count; i++) {
        const struct simulate_case *one = &sim->cases[i];
        curves.interval[i] = one->interval_s;
        curves.by[0][i] = 1 - one->part[SIMULATE_GOOD];
        for (int p = 1; p < SIMULATE_PARTS; p++)
            curves.by[p][i] = one->part[p];
    }
    for (int p = 0; p < SIMULATE_PARTS; p++)
        curves.over[p] = (struct chart_series){.name = names[p],
                                               .x = curves.interval,
                                               .y = curves.by[p],
                                               .count = (size_t)sim->count,
                                               .best = p ? -1 : sim->best};
}

static struct chart time_chart(void)
{
    return (struct chart){.kind = CHART_AREAS,
                          .title = "Where the time goes",
                          .x = {.title = "time", .unit = CHART_SECONDS},
                          .y = {.title = curves.bins, .unit = CHART_SHARE, .max = 1},
                          .series = curves.parts,
                          .series_count = SIMULATE_PARTS,
                          .width = WIDTH};
}

static struct chart bytes_chart(const char *title, const struct chart_series *series, size_t count)
{
    return (struct chart){.title = title,
                          .x = {.title = "time", .unit = CHART_SECONDS},
                          .y = {.title = curves.bins, .unit = CHART_BYTES_PER_S},
                          .series = series,
                          .series_count = count,
                          .width = WIDTH,
                          .height = 220};
}

static struct chart interval_chart(void)
{
    return (struct chart){.title = "Waste by interval",
                          .x = {.title = "interval", .unit = CHART_SECONDS, .is_log = true},
                          .y = {.unit = CHART_SHARE},
                          .series = curves.over,
                          .series_count = SIMULATE_PARTS,
                          .width = WIDTH};
}

void simulate_svg(FILE *out, const struct simulate *sim)
{
    struct chart charts[4];
    size_t count = 0;
    char job[SIMULATE_TEXT_BYTES];
    plot_time(sim);
    plot_intervals(sim);
    charts[count++] = time_chart();
    if (curves.write_count)
        charts[count++] = bytes_chart("Written", curves.writes, curves.write_count);
    if (curves.read_count)
        charts[count++] = bytes_chart("Read", curves.reads, curves.read_count);
    if (sim->count > 1)
        charts[count++] = interval_chart();
    chart_sheet(out, "Simulated training", simulate_job(job, sim), charts, count);
}

/* ---- the page ---- */

static void put_tiles(struct page *page, const struct simulate_case *best)
{
    double waited = best->part[SIMULATE_READ] + best->part[SIMULATE_SAVE];
    char days[64], parts[128];
    const struct page_tile tiles[] = {
        {"goodput", say(WEIR_PLAN_SHARE, best->part[SIMULATE_GOOD]), days},
        {"lost work", say(WEIR_PLAN_SHARE, best->part[SIMULATE_LOST]), "computed again"},
        {"waited for storage", say(WEIR_PLAN_SHARE, waited), parts},
        {"restarts", say(WEIR_PLAN_SHARE, best->part[SIMULATE_RESTART]), "until training went on"},
    };
    snprintf(days, sizeof days, "of %s", say(WEIR_PLAN_S, best->time_s));
    snprintf(parts, sizeof parts, "%s for batches, %s for saves",
             say(WEIR_PLAN_SHARE, best->part[SIMULATE_READ]),
             say(WEIR_PLAN_SHARE, best->part[SIMULATE_SAVE]));
    page_tiles(page, tiles, sizeof tiles / sizeof *tiles);
}

static void put_causes(struct page *page, const struct simulate_case *best)
{
    static const char *const names[] = {"cause", ">share", ">time"};
    page_table_begin(page, names, 3);
    for (int i = WEIR_SIM_READ; i < WEIR_SIM_CAUSES; i++) {
        const char *cells[] = {i == WEIR_SIM_READ ? "waiting for batches"
                                                  : simulate_cause_name((enum weir_sim_cause)i),
                               say(WEIR_PLAN_SHARE, best->cause[i]),
                               say(WEIR_PLAN_S, best->cause[i] * best->time_s)};
        if (best->cause[i] > 0)
            page_table_row(page, cells);
    }
    const char *cells[] = {"work that failures undid",
                           say(WEIR_PLAN_SHARE, best->part[SIMULATE_LOST]),
                           say(WEIR_PLAN_S, best->part[SIMULATE_LOST] * best->time_s)};
    page_table_row(page, cells);
    page_table_end(page);
}

static void put_tiers(struct page *page, const struct simulate *sim)
{
    static const char *const names[] = {"tier", ">read", ">written", ">restarts from it"};
    const struct simulate_case *best = &sim->cases[sim->best];
    page_table_begin(page, names, 4);
    for (int t = 0; t < sim->setup.tier_count; t++) {
        char restarts[32] = "";
        for (int i = 0; i < sim->setup.save_tier_count; i++)
            if (sim->setup.save_tiers[i] == t)
                snprintf(restarts, sizeof restarts, "%.*f", sim->runs > 1, best->restarts[i]);
        const char *cells[] = {sim->setup.tiers[t].name, say(WEIR_PLAN_BYTES, best->read_bytes[t]),
                               say(WEIR_PLAN_BYTES, best->written_bytes[t]), restarts};
        if (best->read_bytes[t] > 0 || best->written_bytes[t] > 0)
            page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_intervals(struct page *page, const struct simulate *sim)
{
    static const char *const names[] = {"interval", ">goodput", ">lost work", ">checkpoints",
                                        ">restarts"};
    const struct chart chart = interval_chart();
    page_section(page, "How often to save");
    page_chart(page, &chart, "All waste is one minus the goodput; the largest dot is the best.");
    page_table_begin(page, names, 5);
    for (int i = 0; i < sim->count; i++) {
        const struct simulate_case *one = &sim->cases[i];
        const char *cells[] = {say(WEIR_PLAN_S, one->interval_s),
                               say(WEIR_PLAN_SHARE, one->part[SIMULATE_GOOD]),
                               say(WEIR_PLAN_SHARE, one->part[SIMULATE_LOST]),
                               say(WEIR_PLAN_SHARE, one->part[SIMULATE_SAVE]),
                               say(WEIR_PLAN_SHARE, one->part[SIMULATE_RESTART])};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

void simulate_page(FILE *out, const struct simulate *sim)
{
    const struct simulate_case *best = &sim->cases[sim->best];
    char text[SIMULATE_TEXT_BYTES];
    struct page page;
    plot_time(sim);
    plot_intervals(sim);
    page_begin(&page, out, "Simulated training", simulate_job(text, sim));
    put_tiles(&page, best);
    page_note(&page, "What costs the most: %s.", simulate_advice(text, sim));
    page_section(&page, "Over time");
    const struct chart over_time = time_chart();
    page_chart(&page, &over_time,
               sim->runs > 1 ? "The first of the runs; the figures are means of all." : NULL);
    if (curves.write_count) {
        const struct chart chart = bytes_chart("Written", curves.writes, curves.write_count);
        page_chart(&page, &chart, "One of these means may hold a save more than the next.");
    }
    if (curves.read_count) {
        const struct chart chart = bytes_chart("Read", curves.reads, curves.read_count);
        page_chart(&page, &chart, "Data, copies from tier to tier, and loads after failures.");
    }
    if (sim->count > 1)
        put_intervals(&page, sim);
    page_section(&page, "Causes");
    put_causes(&page, best);
    page_section(&page, "Tiers");
    put_tiers(&page, sim);
    page_section(&page, "What was simulated");
    page_text(&page, "Checkpoints: %s.", simulate_saves(text, sim));
    page_text(&page, "Failures: %s; %s spare nodes, %s to repair one.",
              simulate_failures(text, sim), say(WEIR_PLAN_COUNT, sim->setup.spares),
              say(WEIR_PLAN_S, sim->setup.repair_s));
    if (simulate_assumed(text, sim))
        page_text(&page, "Assumed: %s.", text);
    page_text(&page, "%s steps in %s; seed %llu, %d run%s, %llu events.",
              say(WEIR_PLAN_COUNT, best->steps), say(WEIR_PLAN_S, best->time_s),
              (unsigned long long)sim->setup.seed, sim->runs, sim->runs == 1 ? "" : "s",
              (unsigned long long)best->events);
    page_end(&page);
}
