/* plan_page.c - the plan of a cluster as one HTML page. */
#include <math.h>

#include "cli/page.h"
#include "cli/plan_cluster.h"
#include "plan/save.h"

#define RATE(value)  weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value)  weir_plan_say(WEIR_PLAN_BYTES, value)
#define SHARE(value) weir_plan_say(WEIR_PLAN_SHARE, value)
#define TIMES(value) weir_plan_say(WEIR_PLAN_NUMBER, value)

enum { LIMITS_SHOWN = 8 };

static void put_tiles(struct page *page, const struct weir_plan_cluster *c)
{
    char run[WEIR_PLAN_TEXT_MAX], lost[WEIR_PLAN_TEXT_MAX], cost[WEIR_PLAN_TEXT_MAX];
    char idle[96], first[WEIR_PLAN_TEXT_MAX + 8];
    weir_plan_text(run, WEIR_PLAN_S, c->run_s);
    weir_plan_text(lost, WEIR_PLAN_SHARE, c->lost_share);
    weir_plan_text(cost, WEIR_PLAN_USD, c->gpu_usd_per_month + c->storage_usd_per_month);
    snprintf(idle, sizeof idle, "%s of it",
             weir_plan_say(WEIR_PLAN_USD_PER_MONTH, c->lost_usd_per_month));
    snprintf(first, sizeof first, "%sx", TIMES(c->limits[0].headroom));
    const struct page_tile tiles[] = {
        {"training takes", run, "without losses"},
        {"time lost", lost, idle},
        {"a month costs", cost, "GPUs and storage"},
        {"room to the first limit", first, c->limits[0].name},
    };
    page_tiles(page, tiles, sizeof tiles / sizeof tiles[0]);
}

static void put_tiers(struct page *page, const struct weir_plan_cluster *c)
{
    static const char *const names[] = {"tier",  ">needed",  ">there",
                                        ">used", ">a month", "what it holds"};
    page_section(page, "Tiers");
    page_table_begin(page, names, sizeof names / sizeof names[0]);
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++) {
        const struct weir_plan_level_use *l = &c->levels[i];
        const char *cells[] = {l->name,
                               SIZE(l->need_bytes),
                               SIZE(l->have_bytes),
                               SHARE(l->need_bytes / l->have_bytes),
                               l->usd_per_month > 0 ? weir_plan_say(WEIR_PLAN_USD, l->usd_per_month)
                                                    : "with the nodes",
                               l->holds};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_flows(struct page *page, const struct weir_plan_cluster *c)
{
    static const char *const names[] = {"flow", "from", "to", ">needed", ">there", ">used"};
    page_section(page, "Flows, of all nodes together");
    page_table_begin(page, names, sizeof names / sizeof names[0]);
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++) {
        const struct weir_plan_flow *f = &c->flows[i];
        const char *cells[] = {f->name,
                               c->levels[f->from].name,
                               c->levels[f->to].name,
                               RATE(f->need_bytes_per_s),
                               RATE(f->have_bytes_per_s),
                               SHARE(f->need_bytes_per_s / f->have_bytes_per_s)};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_limits(struct page *page, const struct weir_plan_cluster *c)
{
    static const char *const names[] = {"limit", ">times this load"};
    page_section(page, "What breaks first");
    page_table_begin(page, names, 2);
    for (unsigned i = 0; i < c->limit_count && i < LIMITS_SHOWN; i++) {
        const char *cells[] = {c->limits[i].name, TIMES(c->limits[i].headroom)};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

/* What would be lost at other intervals, a decade and more to both sides. */
static void put_intervals(struct page *page, const struct weir_plan_cluster *c)
{
    enum { POINTS = 61 };
    double interval_s[POINTS], lost[POINTS];
    for (int i = 0; i < POINTS; i++) {
        interval_s[i] = c->interval_s * pow(10, (i - POINTS / 2) / 20.0);
        double stall_s = weir_plan_save_async_stall_s(c->snapshot_s, c->write_s, interval_s[i]);
        lost[i] =
            weir_plan_waste_share(interval_s[i], stall_s, c->mtbf_s, weir_plan_lost_a_failure_s(c));
    }
    const struct chart_series series = {
        .x = interval_s, .y = lost, .count = POINTS, .best = CHART_NO_BEST};
    const struct chart_mark mark = {c->interval_s, "planned"};
    const struct chart chart = {
        .kind = CHART_LINES,
        .x = {.title = "between two checkpoints", .unit = CHART_SECONDS, .is_log = true},
        .y = {.title = "of the time is lost", .unit = CHART_SHARE},
        .series = &series,
        .series_count = 1,
        .marks = &mark,
        .mark_count = 1,
    };
    page_section(page, "How often to save");
    page_chart(page, &chart,
               "Time lost in saves, in work done again after failures, and in "
               "restarts.");
}

static void put_answer(struct page *page, const struct weir_plan_answer *a)
{
    static const char *const names[] = {"", ">figure"};
    page_section(page, "All figures");
    page_table_begin(page, names, 2);
    for (unsigned i = 0; i < a->figure_count; i++) {
        const char *cells[] = {a->figures[i].name,
                               weir_plan_say(a->figures[i].unit, a->figures[i].value)};
        page_table_row(page, cells);
    }
    page_table_end(page);
    page_section(page, "What would change it");
    for (unsigned i = 0; i < a->changes.count; i++)
        page_text(page, "%s.", a->changes.at[i]);
    page_section(page, "Assumed");
    for (unsigned i = 0; i < a->assumptions.count; i++)
        page_text(page, "%s.", a->assumptions.at[i]);
    page_section(page, "Published, and what it is here");
    for (unsigned i = 0; i < a->published_count; i++) {
        const struct weir_plan_published *p = &a->published[i];
        page_text(page, "%s: %s; it is %s (%s).", p->what, weir_plan_say(p->unit, p->said),
                  weir_plan_say(p->unit, p->is), p->why);
    }
}

void plan_cluster_page(FILE *out, const struct weir_plan_cluster *c,
                       const struct weir_plan_answer *a)
{
    struct page page;
    char lead[WEIR_PLAN_LINE_MAX + 32];
    snprintf(lead, sizeof lead, "The bottleneck: %s.", a->bottleneck);
    page_begin(&page, out, a->question, lead);
    put_tiles(&page, c);
    page_figure_begin(&page);
    plan_cluster_picture(out, c);
    page_figure_end(&page, "What each tier holds, of what it could, and what flows between them on "
                           "average, of what could. Arrows are as wide as their flow, by powers of "
                           "ten; red: there is less than is needed.");
    put_limits(&page, c);
    put_intervals(&page, c);
    put_tiers(&page, c);
    put_flows(&page, c);
    put_answer(&page, a);
    page_end(&page);
}
