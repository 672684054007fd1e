/* makepage.c - a page with everything that page.h and chart.h can draw, for test_page.py.
 *
 *     makepage TEXT       a page; TEXT is wherever a text may be
 *     makepage --values   numbers, as charts write them
 */
#include <math.h>
#include <string.h>

#include "cli/page.h"

static void draw(FILE *out, const char *text)
{
    static const double x[] = {4096, 65536, 1048576, NAN, 16777216};
    static const double y[] = {1e6, 3e7, 5e9, 6e9, INFINITY}, z[] = {-1, 0, 2e9, 1e9, 5e8};
    const char *labels[] = {text, "b", "a long one that will not fit", text, "e"};
    const struct chart_series series[] = {
        {.name = text, .x = x, .y = y, .count = 5, .best = 2},
        {.name = "other", .x = x, .y = z, .count = 5, .best = -1}};
    const struct chart_series bars[] = {{.name = text, .y = y, .count = 5, .best = -1},
                                        {.name = "other", .y = z, .count = 5, .best = -1}};
    const struct chart_mark mark = {.x = 1e6, .text = text};
    const struct chart lines = {
        .title = text,
        .x = {.title = text, .unit = CHART_BYTES, .is_log = true},
        .y = {.title = text, .unit = CHART_BYTES_PER_S, .is_log = true},
        .series = series,
        .series_count = 2,
        .marks = &mark,
        .mark_count = 1,
    };
    struct chart beside = {.kind = CHART_BARS,
                           .x = {.labels = labels, .label_count = 5},
                           .series = bars,
                           .series_count = 2};
    const struct chart empty = {.title = "nothing"};
    const char *columns[] = {text, ">figure"}, *cells[] = {text, NULL};
    const struct page_tile tiles[] = {{text, text, text}, {"a", "b", NULL}};
    struct page page;
    page_begin(&page, out, text, text);
    page_text(&page, "%s", text);
    page_section(&page, text);
    page_note(&page, "%s", text);
    page_tiles(&page, tiles, 2);
    page_table_begin(&page, columns, 2);
    page_table_row(&page, cells);
    page_table_end(&page);
    page_section(&page, "charts");
    page_chart(&page, &lines, text);
    page_chart(&page, &beside, NULL);
    beside.kind = CHART_STACKED;
    page_chart(&page, &beside, NULL);
    beside.kind = CHART_AREAS;
    beside.x = (struct chart_axis){.title = text};
    page_chart(&page, &beside, NULL);
    page_chart(&page, &empty, NULL);
    page_figure_begin(&page);
    chart_sheet(out, text, text, &lines, 1);
    page_figure_end(&page, text);
    page_end(&page);
}

static void show_values(void)
{
    static const double values[] = {0,    0.00025, 0.35,  1,       999,
                                    1536, 20000,   90000, 1400000, -1048576};
    char text[CHART_VALUE_BYTES];
    for (int unit = CHART_NUMBER; unit <= CHART_DOLLARS; unit++)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            puts(chart_value(text, (enum chart_unit)unit, values[i]));
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "--values"))
        draw(stdout, argv[1]);
    else
        show_values();
    return 0;
}
