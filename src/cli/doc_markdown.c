/* doc_markdown.c - the manual as Markdown. */
#include <stdio.h>
#include <string.h>

#include "cli/doc.h"

/* Text with what Markdown would take for markup written as itself. */
static void put(const char *text)
{
    for (; *text; text++) {
        if (strchr("|<>*_\\`[]", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void begin(void)
{
    printf("# The weir command\n\n"
           "Made by `weir help --markdown`. `weir help`, `weir COMMAND --help` and `man weir` say "
           "the same.\n");
}

static void heading(enum doc_level level, const char *text)
{
    static const char *const marks[] = {"\n## %s\n", "\n### `%s`\n", "\n**%s**\n"};
    printf(marks[level], text);
}

static void paragraph(const char *text)
{
    printf("\n");
    put(text);
    printf("\n");
}

static void terms(const struct doc_term *term, size_t count)
{
    printf("\n| | |\n| --- | --- |\n");
    for (size_t i = 0; i < count; i++) {
        printf("| `%s` | ", term[i].name);
        put(term[i].text);
        printf(" |\n");
    }
}

static void code(const char *lines)
{
    printf("\n```\n%s\n```\n", lines);
}

const struct doc_format doc_markdown = {begin, heading, paragraph, terms, code};
