/* doc_text.c - the manual on a terminal, 80 columns wide. */
#include <stdio.h>
#include <string.h>

#include "cli/doc.h"
#include "cli/format.h"

enum { INDENT = 2, NAME_WIDTH_MAX = 24 };

static bool in_part; /* what is below such a heading is indented, without a blank line between */

static void begin(void)
{
}

static void heading(enum doc_level level, const char *text)
{
    in_part = level == DOC_PART;
    printf(level == DOC_SECTION ? "usage: %s\n" : "\n%s\n", text);
}

static void paragraph(const char *text)
{
    if (!in_part)
        printf("\n");
    format_wrap(text, 0, in_part ? INDENT : 0);
}

static void terms(const struct doc_term *term, size_t count)
{
    int name_width = 0;
    for (size_t i = 0; i < count; i++) {
        int width = format_width(term[i].name);
        if (width > name_width && width <= NAME_WIDTH_MAX)
            name_width = width;
    }
    for (size_t i = 0; i < count; i++) {
        int at = INDENT + format_width(term[i].name), indent = 2 * INDENT + name_width;
        printf("%*s%s", INDENT, "", term[i].name);
        if (at + INDENT > indent) {
            printf("\n");
            at = 0;
        }
        printf("%*s", indent - at, "");
        format_wrap(term[i].text, indent, indent);
    }
}

static void code(const char *lines)
{
    while (*lines) {
        int size = (int)strcspn(lines, "\n");
        printf("%*s%.*s\n", INDENT, "", size, lines);
        lines += size + (lines[size] == '\n');
    }
}

const struct doc_format doc_text = {begin, heading, paragraph, terms, code};
