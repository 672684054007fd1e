/* page.h - one HTML page that needs nothing else: no network, no script, no other file. It reads
 * well on a laptop's screen, light or dark, and on paper, and is well-formed XML. Texts may be any
 * bytes. The parts come in the order of the calls; between page_begin() and page_end() the caller
 * may write to page->out, too: an SVG of its own, inside a figure.
 */
#ifndef WEIR_CLI_PAGE_H
#define WEIR_CLI_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/chart.h"

enum { PAGE_COLUMNS_MAX = 16 };

struct page {
    FILE *out;
    bool in_section;
    size_t columns; /* of the table that is open */
    bool is_figure[PAGE_COLUMNS_MAX];
};

/* lead: a sentence or two under the title; may be NULL. */
void page_begin(struct page *page, FILE *out, const char *title, const char *lead);
void page_end(struct page *page);

/* Ends the section before it. */
void page_section(struct page *page, const char *heading);
void page_text(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph that stands out: a warning, a verdict. */
void page_note(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The few figures that matter most, large and beside each other. */
struct page_tile {
    const char *name, *value, *note; /* note may be NULL */
};
void page_tiles(struct page *page, const struct page_tile *tiles, size_t count);

/* Names of columns of figures begin with '>': they are aligned to the right. */
void page_table_begin(struct page *page, const char *const *names, size_t count);
/* As many cells as there are columns; NULL is an empty one. */
void page_table_row(struct page *page, const char *const *cells);
void page_table_end(struct page *page);

/* A chart, and a sentence under it, which may be NULL. */
void page_chart(struct page *page, const struct chart *chart, const char *caption);
void page_figure_begin(struct page *page);
void page_figure_end(struct page *page, const char *caption);

#endif
