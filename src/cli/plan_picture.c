/* plan_picture.c - the tiers of a cluster as boxes, the nearest to the GPUs on top, with what each
 * holds of what it could; data flow up on their left side, checkpoints down on their right. An
 * arrow is as wide as its flow, by powers of ten, and red if there is less than is needed.
 */
#include <math.h>

#include "cli/plan_cluster.h"

enum {
    WIDTH = 1000,
    BOX_LEFT = 275,
    BOX_WIDTH = 450,
    BOX_HEIGHT = 70,
    GAP = 46,
    TOP = 30,
    BAR_HEIGHT = 8,
    SIDE = 26, /* of an arrow, from the box's edge */
    HEAD = 11,
    HEIGHT = TOP + WEIR_PLAN_LEVELS * (BOX_HEIGHT + GAP) - GAP + 16,
};

static const char style[] =
    "<style>.wp{font:13px system-ui,sans-serif}.wp text{fill:#222}.wp .soft{fill:#666}"
    ".wp .name{font-size:17px;font-weight:600}.wp .box{fill:#f4f6f8;stroke:#b8c0c8}"
    ".wp .room{fill:#dfe4e9}.wp .full{fill:#0072b2}.wp .over,.wp .less{fill:#c0392b}"
    ".wp .data{fill:#0072b2}.wp .save{fill:#d55e00}"
    ".wp .strong{font-weight:600}.wp .back{fill:#fff}"
    "@media(prefers-color-scheme:dark){.wp text{fill:#e6e6e6}.wp .soft{fill:#a8a8a8}"
    ".wp .box{fill:#23282d;stroke:#59636d}.wp .room{fill:#3a434c}.wp .full,.wp .data{fill:#5ab4e5}"
    ".wp .save{fill:#f2935c}.wp .over,.wp .less{fill:#ff7b6b}.wp .back{fill:#191b1f}}"
    "</style>\n";

static double top_of(int level)
{
    return TOP + level * (BOX_HEIGHT + GAP);
}

static void put_box(FILE *out, const struct weir_plan_cluster *c, int level)
{
    const struct weir_plan_level_use *l = &c->levels[level];
    double y = top_of(level), used = l->need_bytes / l->have_bytes;
    double room = BOX_WIDTH - 32, full = room * fmin(used, 1);
    fprintf(out, "<rect class='box' x='%d' y='%.0f' width='%d' height='%d' rx='8'/>\n", BOX_LEFT, y,
            BOX_WIDTH, BOX_HEIGHT);
    fprintf(out, "<text class='name' x='%d' y='%.0f'>%s</text>\n", BOX_LEFT + 16, y + 25, l->name);
    fprintf(out, "<text x='%d' y='%.0f' text-anchor='end'>", BOX_LEFT + BOX_WIDTH - 16, y + 25);
    if (l->units > 1)
        fprintf(out, "%.0f %s, ", l->units, l->unit);
    if (isfinite(l->have_bytes))
        fprintf(out, "%s of %s", weir_plan_say(WEIR_PLAN_BYTES, l->need_bytes),
                weir_plan_say(WEIR_PLAN_BYTES, l->have_bytes));
    else
        fprintf(out, "%s", weir_plan_say(WEIR_PLAN_BYTES, l->need_bytes));
    fprintf(out, "</text>\n<text class='soft' x='%d' y='%.0f'>%s</text>\n", BOX_LEFT + 16, y + 43,
            l->holds);
    if (!isfinite(l->have_bytes))
        return;
    fprintf(out, "<rect class='room' x='%d' y='%.0f' width='%.0f' height='%d' rx='4'/>\n",
            BOX_LEFT + 16, y + 53, room, BAR_HEIGHT);
    fprintf(out, "<rect class='%s' x='%d' y='%.0f' width='%.1f' height='%d' rx='4'/>\n",
            used > 1 ? "over" : "full", BOX_LEFT + 16, y + 53, fmax(full, 3), BAR_HEIGHT);
}

/* From y to y with a head at its end. */
static void put_arrow(FILE *out, const char *class, double x, double from, double to, double width)
{
    double way = to > from ? 1 : -1, half = width / 2, wing = half + 5, neck = to - way * HEAD;
    fprintf(out, "<path class='%s' d='M%.1f %.1fV%.1fh-5L%.1f %.1fL%.1f %.1fh-5V%.1fZ'/>\n", class,
            x - half, from, neck, x, to, x + wing, neck, from);
}

/* Out of the lower box, past those between, into the upper one. */
static void put_way_past(FILE *out, const char *class, double x, double above, double below,
                         double width)
{
    double half = width / 2, neck = BOX_LEFT - HEAD;
    fprintf(out,
            "<path class='%s' d='M%d %.1fH%.1fV%.1fH%.1fv-5L%d %.1fL%.1f %.1fv-5H%.1fV%.1f"
            "H%dZ'/>\n",
            class, BOX_LEFT, below + half, x - half, above - half, neck, BOX_LEFT, above, neck,
            above + half + 5, x + half, below - half, BOX_LEFT);
}

static double width_of(double bytes_per_s)
{
    double width = bytes_per_s > 0 ? 2 + 1.3 * (log10(bytes_per_s) - 5) : 2;
    return fmax(2, fmin(width, 14));
}

static void put_flow(FILE *out, const struct weir_plan_flow *f)
{
    int upper = (int)(f->from < f->to ? f->from : f->to);
    int lower = (int)(f->from < f->to ? f->to : f->from);
    bool is_short = f->need_bytes_per_s > f->have_bytes_per_s, is_past = lower - upper > 1;
    double above = top_of(upper) + BOX_HEIGHT, below = top_of(lower), middle = (above + below) / 2;
    double x = f->is_data ? BOX_LEFT + SIDE : BOX_LEFT + BOX_WIDTH - SIDE;
    double text_x = f->is_data ? BOX_LEFT - 8 : BOX_LEFT + BOX_WIDTH + 8;
    double width = width_of(f->need_bytes_per_s);
    const char *class = is_short ? "less" : f->is_data ? "data" : "save";
    if (is_past) {
        text_x = BOX_LEFT - 2 * SIDE - 10;
        put_way_past(out, class, BOX_LEFT - 2 * SIDE, above - BOX_HEIGHT / 2.0,
                     below + BOX_HEIGHT / 2.0, width);
    } else if (f->from < f->to)
        put_arrow(out, class, x, above, below, width);
    else
        put_arrow(out, class, x, below, above, width);
    fprintf(out, "<text class='strong' x='%.0f' y='%.0f' text-anchor='%s'>%s</text>\n", text_x,
            middle - 3, f->is_data ? "end" : "start", f->name);
    fprintf(out, "<text class='soft' x='%.0f' y='%.0f' text-anchor='%s'>%s of %s</text>\n", text_x,
            middle + 14, f->is_data ? "end" : "start",
            weir_plan_say(WEIR_PLAN_BYTES_PER_S, f->need_bytes_per_s),
            weir_plan_say(WEIR_PLAN_BYTES_PER_S, f->have_bytes_per_s));
}

void plan_cluster_picture(FILE *out, const struct weir_plan_cluster *c)
{
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' class='wp' role='img' width='%d' height='%d' "
            "viewBox='0 0 %d %d'>\n%s<rect class='back' width='100%%' height='100%%'/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, style);
    fprintf(out,
            "<text class='strong' x='%d' y='20' text-anchor='end'>data, up</text>\n"
            "<text class='strong' x='%d' y='20'>checkpoints, down</text>\n",
            BOX_LEFT - 8, BOX_LEFT + BOX_WIDTH + 8);
    for (int i = 0; i < WEIR_PLAN_LEVELS; i++)
        put_box(out, c, i);
    for (int i = 0; i < WEIR_PLAN_FLOWS; i++)
        put_flow(out, &c->flows[i]);
    fputs("</svg>\n", out);
}
