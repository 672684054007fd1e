/* tune_plot.c - see tune.h. */
#include <inttypes.h>

#include "cli/format.h"
#include "cli/tune.h"

enum { WIDTH = 720, PANEL = 260, LEFT = 90, RIGHT = 150, TOP = 64, BOTTOM = 50, TICKS = 4 };

static double most_of(const struct tune *tune)
{
    double most = 0;
    for (uint32_t i = 0; i < tune->count; i++)
        if (tune->tries[i].samples_per_s > most)
            most = tune->tries[i].samples_per_s;
    return most;
}

void tune_plot_text(const struct tune *tune)
{
    double most = most_of(tune);
    printf("samples/s\n");
    for (uint32_t i = 0; i < tune->count; i++) {
        const struct tune_try *one = &tune->tries[i];
        if (one->error)
            continue;
        printf("  batch %4" PRIu64 ", threads %2" PRIu64 ", prefetch %2" PRIu64 "  ", one->batch,
               one->threads, one->prefetch);
        int left = format_bar(one->samples_per_s, most);
        printf("%*s  %.0f%s\n", left, "", one->samples_per_s,
               (int)i == tune->best ? "  <- best" : "");
    }
}

/* ---- SVG ---- */

/* The end of the axis: 1, 2 or 5 times a power of ten, with room for the largest. */
static double axis_end(double most)
{
    static const double steps[] = {1, 2, 4, 5, 8, 10};
    double unit = 1;
    while (unit * 10 < most)
        unit *= 10;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (unit * steps[i] >= most)
            return unit * steps[i];
    return unit * 10;
}

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            fputc(*text, out);
        }
}

static double x_of(const struct tune *tune, uint32_t thread)
{
    double room = WIDTH - LEFT - RIGHT;
    return LEFT + room * (thread + 0.5) / tune->threads.count;
}

struct panel {
    double top, bottom, end; /* of the axis: a number of samples */
};

static double y_of(const struct panel *panel, double value)
{
    return panel->bottom - (panel->bottom - panel->top) * value / panel->end;
}

static void put_axes(FILE *out, const struct tune *tune, const struct panel *panel, uint64_t batch)
{
    fprintf(out, "<text x='%d' y='%.1f' font-weight='bold'>batches of %" PRIu64 "</text>\n", LEFT,
            panel->top - 12, batch);
    for (int i = 0; i <= TICKS; i++) {
        double value = panel->end * i / TICKS, y = y_of(panel, value);
        fprintf(out, "<path d='M%d %.1fH%d' stroke='#ddd'/>\n", LEFT, y, WIDTH - RIGHT);
        fprintf(out, "<text x='%d' y='%.1f' text-anchor='end'>%.0f</text>\n", LEFT - 8, y + 4,
                value);
    }
    for (uint32_t i = 0; i < tune->threads.count; i++)
        fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%" PRIu64 "</text>\n",
                x_of(tune, i), panel->bottom + 18, tune->threads.at[i]);
    fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>threads</text>\n",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0, panel->bottom + 36);
}

static const char *color_of(uint32_t line)
{
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555"};
    return colors[line % (sizeof colors / sizeof colors[0])];
}

/* The tries with one batch size and prefetch: a line over threads, and its name. */
static void put_line(FILE *out, const struct tune *tune, const struct panel *panel, uint32_t batch,
                     uint32_t line)
{
    bool begun = false;
    fprintf(out, "<g stroke='%s' fill='%s'><path fill='none' stroke-width='2' d='", color_of(line),
            color_of(line));
    for (int dots = 0; dots < 2; dots++) {
        for (uint32_t t = 0; t < tune->threads.count; t++) {
            uint32_t i = (batch * tune->threads.count + t) * tune->prefetches.count + line;
            if (i >= tune->count || tune->tries[i].error)
                continue;
            double x = x_of(tune, t), y = y_of(panel, tune->tries[i].samples_per_s);
            if (!dots)
                fprintf(out, "%c%.1f %.1f", begun ? 'L' : 'M', x, y);
            else
                fprintf(out, "<circle cx='%.1f' cy='%.1f' r='%d'/>", x, y,
                        (int)i == tune->best ? 7 : 3);
            begun = true;
        }
        fputs(dots ? "</g>\n" : "'/>", out);
    }
    double y = panel->top + 18 * line;
    fprintf(out, "<circle cx='%d' cy='%.1f' r='4' fill='%s'/>", WIDTH - RIGHT + 16, y,
            color_of(line));
    fprintf(out, "<text x='%d' y='%.1f'>prefetch %" PRIu64 "</text>\n", WIDTH - RIGHT + 26, y + 4,
            tune->prefetches.at[line]);
}

void tune_plot_svg(FILE *out, const struct tune *tune, const char *title)
{
    int height = TOP + PANEL * (int)tune->batches.count;
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='13' fill='#222'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='24' font-size='16'>",
            WIDTH, height, WIDTH, height, LEFT);
    put_text(out, title);
    fprintf(out, "</text>\n<text x='%d' y='42'>samples/s; the largest dot is the best</text>\n",
            LEFT);
    for (uint32_t b = 0; b < tune->batches.count; b++) {
        struct panel panel = {.top = TOP + PANEL * (int)b + 24,
                              .bottom = TOP + PANEL * ((int)b + 1) - BOTTOM,
                              .end = axis_end(most_of(tune))};
        put_axes(out, tune, &panel, tune->batches.at[b]);
        for (uint32_t line = 0; line < tune->prefetches.count; line++)
            put_line(out, tune, &panel, b, line);
    }
    fputs("</svg>\n", out);
}
