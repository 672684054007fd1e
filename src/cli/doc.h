/* doc.h - the manual, made from the tables of commands, options and URLs. doc.c knows what there is
 * to say, a format knows how it looks: as help on a terminal, as a man page, as Markdown.
 */
#ifndef WEIR_CLI_DOC_H
#define WEIR_CLI_DOC_H

#include <stddef.h>

#include "cli/cli.h"

/* A name and what it means: an option, a command, a variable. */
struct doc_term {
    char name[64];
    char text[256];
};

enum doc_level {
    DOC_CHAPTER, /* COMMANDS */
    DOC_SECTION, /* one command */
    DOC_PART,    /* its options, its example */
};

struct doc_format {
    void (*begin)(void);
    void (*heading)(enum doc_level level, const char *text);
    void (*paragraph)(const char *text);
    void (*terms)(const struct doc_term *terms, size_t count);
    void (*code)(const char *lines);
};
extern const struct doc_format doc_text, doc_man, doc_markdown;

/* One command. */
void doc_command(const struct doc_format *format, const struct command *command);
/* The commands of a group, in a line each. */
void doc_group(const struct doc_format *format, const char *group);
/* What `weir help` shows: the commands, in a line each, and the global options. */
void doc_overview(const struct doc_format *format);
/* The kinds of stores and their options. */
void doc_urls(const struct doc_format *format);
/* All of it. */
void doc_reference(const struct doc_format *format);
/* The same tables as data. */
json_t *doc_json(void);

#endif
