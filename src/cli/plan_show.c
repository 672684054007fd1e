/* plan_show.c - an answer of the planner, for people and for scripts. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/format.h"
#include "cli/plan.h"
#include "util/err.h"

enum { INDENT = 2, ITEM_INDENT = 4 };

static int name_width(const struct weir_plan_answer *a)
{
    int most = 0;
    for (unsigned i = 0; i < a->figure_count; i++) {
        int width = format_width(a->figures[i].name);
        most = width > most ? width : most;
    }
    return most;
}

static void show_lines(const char *heading, const struct weir_plan_lines *lines)
{
    if (lines->count)
        printf("\n%s\n", heading);
    for (unsigned i = 0; i < lines->count; i++) {
        printf("%*s- ", INDENT, "");
        format_wrap(lines->at[i], ITEM_INDENT, ITEM_INDENT);
    }
}

static void show_published(const struct weir_plan_answer *a)
{
    if (a->published_count)
        printf("\nPublished, and what it is here\n");
    for (unsigned i = 0; i < a->published_count; i++) {
        const struct weir_plan_published *p = &a->published[i];
        char text[WEIR_PLAN_LINE_MAX + 256];
        snprintf(text, sizeof text, "%s: %s; it is %s (%s)", p->what,
                 weir_plan_say(p->unit, p->said), weir_plan_say(p->unit, p->is), p->why);
        printf("%*s- ", INDENT, "");
        format_wrap(text, ITEM_INDENT, ITEM_INDENT);
    }
}

void plan_show_question(const struct cli *cli, const struct weir_plan_answer *a)
{
    if (cli->quiet || cli->json)
        return;
    printf("%s\n", a->question);
    if (a->choice)
        printf("%*s%s\n", INDENT, "", a->choice);
    printf("\n");
}

void plan_show_figures(const struct cli *cli, const struct weir_plan_answer *a)
{
    int width = name_width(a);
    if (cli->quiet || cli->json)
        return;
    for (unsigned i = 0; i < a->figure_count; i++) {
        const struct weir_plan_figure *f = &a->figures[i];
        printf("%*s%s%*s  %s\n", INDENT, "", f->name, format_padding(f->name, width), "",
               weir_plan_say(f->unit, f->value));
    }
    printf("\nBottleneck\n");
    format_wrap(a->bottleneck, 0, INDENT);
    show_lines("What would change it", &a->changes);
    show_lines("Assumed", &a->assumptions);
    show_published(a);
}

json_t *plan_number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *lines_json(const struct weir_plan_lines *lines)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < lines->count; i++)
        json_array_append_new(array, cli_text_json(lines->at[i]));
    return array;
}

static const char *unit_name(enum weir_plan_unit unit)
{
    static const char *const names[] = {
        [WEIR_PLAN_BYTES] = "bytes",
        [WEIR_PLAN_BYTES_PER_S] = "bytes_per_s",
        [WEIR_PLAN_S] = "s",
        [WEIR_PLAN_USD] = "usd",
        [WEIR_PLAN_USD_PER_MONTH] = "usd_per_month",
        [WEIR_PLAN_PER_S] = "per_s",
        [WEIR_PLAN_COUNT] = "count",
        [WEIR_PLAN_MANY] = "count",
        [WEIR_PLAN_NUMBER] = "number",
        [WEIR_PLAN_SHARE] = "share",
        [WEIR_PLAN_CHANCE] = "chance",
    };
    return names[unit];
}

json_t *plan_json(const struct weir_plan_answer *a)
{
    json_t *figures = json_object(), *published = json_array();
    for (unsigned i = 0; i < a->figure_count; i++)
        json_object_set_new(figures, a->figures[i].key, plan_number_json(a->figures[i].value));
    for (unsigned i = 0; i < a->published_count; i++) {
        const struct weir_plan_published *p = &a->published[i];
        json_array_append_new(published,
                              json_pack("{s:s, s:s, s:o, s:o, s:s}", "what", p->what, "unit",
                                        unit_name(p->unit), "said", plan_number_json(p->said), "is",
                                        plan_number_json(p->is), "why", p->why));
    }
    return json_pack("{s:s, s:s*, s:o, s:o, s:o, s:o, s:o}", "question", a->question, "choice",
                     a->choice, "figures", figures, "bottleneck", cli_text_json(a->bottleneck),
                     "changes", lines_json(&a->changes), "assumptions", lines_json(&a->assumptions),
                     "published", published);
}

int plan_answer(struct cli *cli, const struct weir_plan_answer *answer, int code)
{
    if (code == -EINVAL)
        return cli_usage(cli, "%s", weir_error_text());
    if (code)
        return code;
    plan_show_question(cli, answer);
    plan_show_figures(cli, answer);
    if (cli->json)
        cli->doc = plan_json(answer);
    return 0;
}
