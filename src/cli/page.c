/* page.c - see page.h. */
#include "cli/page.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/markup.h"

static const char style[] =
    ":root{--ink:#1d2126;--soft:#5d6670;--line:#d9dde2;--back:#fff;--tint:#f4f6f8;--mark:#0072b2}"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e4e6e9;--soft:#a3abb5;"
    "--line:#3a3d42;--back:#191b1f;--tint:#23262b;--mark:#56a8e0}}"
    "body{margin:0 auto;padding:28px 32px 60px;max-width:1100px;background:var(--back);"
    "color:var(--ink);font:15px/1.5 system-ui,sans-serif}"
    "h1{font-size:26px;line-height:1.25;margin:0 0 6px;overflow-wrap:anywhere}"
    "h2{font-size:19px;margin:34px 0 8px;padding-top:12px;border-top:1px solid var(--line)}"
    "p{margin:8px 0;max-width:80ch;overflow-wrap:anywhere}.lead{color:var(--soft);font-size:17px}"
    ".note{border-left:4px solid var(--mark);background:var(--tint);padding:8px 14px}"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}"
    ".tile{flex:1 1 150px;background:var(--tint);border-radius:8px;padding:12px 16px}"
    ".tile b{display:block;font-size:24px;font-weight:600;line-height:1.3}"
    ".tile span{color:var(--soft);font-size:13px}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:5px 18px 5px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:600;color:var(--soft);font-size:13px}"
    ".figure{text-align:right}"
    "figure{margin:16px 0}figure svg{max-width:100%;height:auto}"
    "figcaption{color:var(--soft);font-size:13px;max-width:80ch}"
    "@media print{body{padding:0;font-size:12px}h2{break-after:avoid}"
    "figure,table,.tiles{break-inside:avoid}}";

void page_begin(struct page *page, FILE *out, const char *title, const char *lead)
{
    *page = (struct page){.out = out};
    fputs("<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'>\n<head>\n"
          "<meta charset='utf-8'/>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'/>\n<title>",
          out);
    markup_text(out, title);
    fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    markup_text(out, title);
    fputs("</h1>\n", out);
    if (lead) {
        fputs("<p class='lead'>", out);
        markup_text(out, lead);
        fputs("</p>\n", out);
    }
}

static void end_section(struct page *page)
{
    assert(!page->columns);
    if (page->in_section)
        fputs("</section>\n", page->out);
    page->in_section = false;
}

void page_end(struct page *page)
{
    end_section(page);
    fputs("</body>\n</html>\n", page->out);
}

void page_section(struct page *page, const char *heading)
{
    end_section(page);
    fputs("<section>\n<h2>", page->out);
    markup_text(page->out, heading);
    fputs("</h2>\n", page->out);
    page->in_section = true;
}

static void put_paragraph(struct page *page, const char *open, const char *fmt, va_list args)
{
    char *text;
    fputs(open, page->out);
    if (vasprintf(&text, fmt, args) >= 0) {
        markup_text(page->out, text);
        free(text);
    }
    fputs("</p>\n", page->out);
}

void page_text(struct page *page, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_paragraph(page, "<p>", fmt, args);
    va_end(args);
}

void page_note(struct page *page, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_paragraph(page, "<p class='note'>", fmt, args);
    va_end(args);
}

void page_tiles(struct page *page, const struct page_tile *tiles, size_t count)
{
    fputs("<div class='tiles'>\n", page->out);
    for (size_t i = 0; i < count; i++) {
        fputs("<div class='tile'><span>", page->out);
        markup_text(page->out, tiles[i].name);
        fputs("</span><b>", page->out);
        markup_text(page->out, tiles[i].value);
        fputs("</b><span>", page->out);
        markup_text(page->out, tiles[i].note ? tiles[i].note : "");
        fputs("</span></div>\n", page->out);
    }
    fputs("</div>\n", page->out);
}

void page_table_begin(struct page *page, const char *const *names, size_t count)
{
    assert(!page->columns && count && count <= PAGE_COLUMNS_MAX);
    page->columns = count;
    fputs("<div class='wide'><table>\n<thead><tr>", page->out);
    for (size_t i = 0; i < count; i++) {
        page->is_figure[i] = names[i][0] == '>';
        fputs(page->is_figure[i] ? "<th class='figure'>" : "<th>", page->out);
        markup_text(page->out, names[i] + page->is_figure[i]);
        fputs("</th>", page->out);
    }
    fputs("</tr></thead>\n<tbody>\n", page->out);
}

void page_table_row(struct page *page, const char *const *cells)
{
    fputs("<tr>", page->out);
    for (size_t i = 0; i < page->columns; i++) {
        fputs(page->is_figure[i] ? "<td class='figure'>" : "<td>", page->out);
        markup_text(page->out, cells[i] ? cells[i] : "");
        fputs("</td>", page->out);
    }
    fputs("</tr>\n", page->out);
}

void page_table_end(struct page *page)
{
    fputs("</tbody>\n</table></div>\n", page->out);
    page->columns = 0;
}

void page_figure_begin(struct page *page)
{
    fputs("<figure>\n", page->out);
}

void page_figure_end(struct page *page, const char *caption)
{
    if (caption) {
        fputs("<figcaption>", page->out);
        markup_text(page->out, caption);
        fputs("</figcaption>\n", page->out);
    }
    fputs("</figure>\n", page->out);
}

void page_chart(struct page *page, const struct chart *chart, const char *caption)
{
    page_figure_begin(page);
    chart_svg(page->out, chart);
    page_figure_end(page, caption);
}
