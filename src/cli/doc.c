/* doc.c - see doc.h. */
#include "cli/doc.h"

#include <stdio.h>
#include <string.h>

#include "tier/tier.h"

enum { TERMS_MAX = 64 };

static const char about_weir[] =
    "Weir keeps immutable, named objects in a store: a directory on any file system. Every block "
    "of an object has a fingerprint that is checked whenever it is read, and an object is visible "
    "when it is complete, or not at all, whatever crashes.";
static const char about_keys[] =
    "A KEY is a path like models/llama/model.safetensors: UTF-8, at most 1024 bytes, without empty "
    "parts, '.', '..' and control characters.";
static const char about_values[] =
    "A SIZE is a number of bytes, with K, M, G or T in powers of 1024 (64K, 1.5G) or kB, MB, GB, "
    "TB in powers of 1000. A TIME is a number of seconds, or has a unit: 5ms, 30s, 10min, 6h, 7d, "
    "5y. A COUNT may have K, M, B or T in powers of 1000 (70B); a RATE is a SIZE a second (15GB/s) "
    "or so many bits (400Gbit/s). Options may stand before or after the command and its operands; "
    "-- ends them.";
static const char about_urls[] =
    "A store is named by a path or by a URL, KIND:PATH?OPTION=VALUE&OPTION=VALUE. In a plain path "
    "every character is literal; in a URL %XX stands for a byte.";

static const struct doc_term environment[] = {
    {"WEIR_STORE", "the store to use when --store is not given"},
    {"WEIR_IO", "the I/O engine to use when --io is not given: uring or threads"},
};
static const struct doc_term exit_codes[] = {
    {"0", "it worked"},
    {"1", "it failed, or something in it did: standard error says what"},
    {"2", "it was called in a wrong way"},
    {"130, 143, 129", "it was stopped by Ctrl-C, SIGTERM or SIGHUP, and tidied up"},
    {"141", "the reader of its output went away"},
};
static const char about_json[] =
    "With --json there is one document on standard output and nothing on standard error. If the "
    "command fails, it has the field error with the fields code (a name like ENOENT, EEXIST, "
    "EBADMSG for damage, EUNKNOWN for a write whose outcome is not known) and text.";

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- options ---- */

static void add_text(char *out, size_t size, const char *more)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s", more);
}

/* "-j, --jobs N" or, of a URL, "read_rate=SIZE". */
static void option_term(struct doc_term *term, const struct weir_opt *opt, bool url)
{
    if (url)
        snprintf(term->name, sizeof term->name, "%s=%s", opt->name, opt->arg ? opt->arg : "1");
    else if (opt->letter)
        snprintf(term->name, sizeof term->name, "-%c, --%s", opt->letter, opt->name);
    else
        snprintf(term->name, sizeof term->name, "--%s", opt->name);
    if (!url && opt->arg) {
        add_text(term->name, sizeof term->name, " ");
        add_text(term->name, sizeof term->name, opt->arg);
    }
    snprintf(term->text, sizeof term->text, "%s", opt->help);
    if (opt->def && opt->type != WEIR_OPT_FLAG && strcmp(opt->def, "0")) {
        add_text(term->text, sizeof term->text, " (default: ");
        add_text(term->text, sizeof term->text, opt->def);
        add_text(term->text, sizeof term->text, ")");
    }
}

static void doc_options(const struct doc_format *format, const struct weir_opt *options, bool url)
{
    struct doc_term terms[TERMS_MAX];
    size_t count = 0;
    for (const struct weir_opt *opt = options; opt && opt->name && count < TERMS_MAX; opt++)
        option_term(&terms[count++], opt, url);
    if (count)
        format->terms(terms, count);
}

/* ---- chapters ---- */

static void usage_line(char *out, size_t size, const struct command *c)
{
    snprintf(out, size, "weir %s%s%s", c->name, c->options ? " [OPTION…]" : "",
             *c->operands ? " " : "");
    add_text(out, size, c->operands);
}

void doc_command(const struct doc_format *format, const struct command *c)
{
    char text[1024];
    usage_line(text, sizeof text, c);
    format->heading(DOC_SECTION, text);
    snprintf(text, sizeof text, "%s.", c->summary);
    format->paragraph(text);
    format->paragraph(c->about);
    if (c->options) {
        format->heading(DOC_PART, "Options");
        doc_options(format, c->options, false);
    }
    format->heading(DOC_PART, strchr(c->example, '\n') ? "Examples" : "Example");
    format->code(c->example);
    format->heading(DOC_PART, "With --json");
    snprintf(text, sizeof text, "%s.", c->json);
    format->paragraph(text);
}

/* group NULL: all. */
static void doc_commands(const struct doc_format *format, const char *group)
{
    struct doc_term terms[TERMS_MAX];
    size_t count = 0;
    for (const struct command *const *c = cli_commands; *c && count < TERMS_MAX; c++) {
        if (group && !cli_is_in_group(*c, group))
            continue;
        snprintf(terms[count].name, sizeof terms[count].name, "%s", (*c)->name);
        snprintf(terms[count].text, sizeof terms[count].text, "%s", (*c)->summary);
        count++;
    }
    format->terms(terms, count);
}

void doc_group(const struct doc_format *format, const char *group)
{
    char text[128];
    snprintf(text, sizeof text, "weir %s COMMAND [ARGUMENT…]", group);
    format->heading(DOC_SECTION, text);
    format->heading(DOC_PART, "Commands");
    doc_commands(format, group);
    format->heading(DOC_PART, "More");
    snprintf(text, sizeof text, "weir %s COMMAND --help", group);
    format->paragraph(text);
}

void doc_overview(const struct doc_format *format)
{
    format->heading(DOC_SECTION, "weir [OPTION…] COMMAND [ARGUMENT…]");
    format->paragraph(about_weir);
    format->heading(DOC_PART, "Commands");
    doc_commands(format, NULL);
    format->heading(DOC_PART, "Options of all commands");
    doc_options(format, cli_global_options, false);
    format->heading(DOC_PART, "Examples");
    format->code("weir put model.safetensors models/llama/\n"
                 "weir ls -l models/llama\n"
                 "weir verify");
    format->heading(DOC_PART, "More");
    format->paragraph("weir help COMMAND, weir help urls, man weir");
}

void doc_urls(const struct doc_format *format)
{
    format->paragraph(about_urls);
    for (const struct weir_tier_kind_doc *kind = weir_tier_kinds; kind->kind; kind++) {
        char text[256];
        format->heading(DOC_PART, kind->example);
        snprintf(text, sizeof text, "%s.", kind->help);
        format->paragraph(text);
        doc_options(format, kind->options, true);
    }
}

void doc_reference(const struct doc_format *format)
{
    format->begin();
    format->heading(DOC_CHAPTER, "Synopsis");
    format->code("weir [OPTION…] COMMAND [ARGUMENT…]");
    format->heading(DOC_CHAPTER, "Description");
    format->paragraph(about_weir);
    format->paragraph(about_keys);
    format->paragraph(about_values);
    doc_commands(format, NULL);
    format->heading(DOC_CHAPTER, "Options of all commands");
    doc_options(format, cli_global_options, false);
    format->paragraph(about_json);
    format->heading(DOC_CHAPTER, "Commands");
    for (const struct command *const *c = cli_commands; *c; c++)
        doc_command(format, *c);
    format->heading(DOC_CHAPTER, "Stores");
    doc_urls(format);
    format->heading(DOC_CHAPTER, "Environment");
    format->terms(environment, COUNT(environment));
    format->heading(DOC_CHAPTER, "Exit codes");
    format->terms(exit_codes, COUNT(exit_codes));
}

/* ---- as data ---- */

static json_t *options_json(const struct weir_opt *options)
{
    json_t *array = json_array();
    for (const struct weir_opt *opt = options; opt && opt->name; opt++) {
        char letter[2] = {opt->letter};
        json_array_append_new(
            array, json_pack("{s:s, s:s*, s:s*, s:s*, s:s}", "name", opt->name, "letter",
                             opt->letter ? letter : NULL, "value", opt->arg, "default",
                             opt->type == WEIR_OPT_FLAG ? NULL : opt->def, "help", opt->help));
    }
    return array;
}

json_t *doc_json(void)
{
    json_t *commands = json_array();
    for (const struct command *const *c = cli_commands; *c; c++) {
        char usage[256];
        usage_line(usage, sizeof usage, *c);
        json_array_append_new(commands, json_pack("{s:s, s:s, s:s, s:o}", "name", (*c)->name,
                                                  "usage", usage, "summary", (*c)->summary,
                                                  "options", options_json((*c)->options)));
    }
    return json_pack("{s:o, s:o}", "commands", commands, "options",
                     options_json(cli_global_options));
}
