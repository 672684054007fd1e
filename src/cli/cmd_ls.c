/* cmd_ls.c - weir ls: what there is. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/format.h"

static struct {
    bool details, recursive;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"long", 'l', WEIR_OPT_FLAG, AT(details), "no", NULL, "show sizes, times and kinds", 0, 0},
    {"recursive", 'r', WEIR_OPT_FLAG, AT(recursive), "no", NULL,
     "all objects below PREFIX, not one level", 0, 0},
    {0},
};

static const char *kind_name(const weir_entry *entry)
{
    return entry->error ? "damaged" : format_kind(entry->kind);
}

static json_t *entry_json(const weir_entry *entry)
{
    char when[FORMAT_TIME_BYTES];
    json_t *object = json_pack("{s:o, s:s}", "key", cli_text_json(entry->key), "type",
                               entry->is_dir ? "directory" : "object");
    if (entry->is_dir)
        return object;
    json_object_set_new(object, "kind", json_string(kind_name(entry)));
    if (opts.details && !entry->error) {
        json_object_set_new(object, "size_bytes", json_integer((json_int_t)entry->size_bytes));
        json_object_set_new(object, "time", json_string(format_time_json(when, entry->time_ns)));
    }
    if (entry->error)
        json_object_set_new(object, "error", cli_error_json(entry->error, weir_error_text()));
    return object;
}

static void print_long(const weir_entry *entry)
{
    char size[32] = "-", when[FORMAT_TIME_BYTES] = "-";
    if (!entry->is_dir && !entry->error) {
        weir_format_size(size, sizeof size, entry->size_bytes);
        format_time(when, entry->time_ns);
    }
    printf("%9s  %-19s  %-9s  %s\n", size, when, entry->is_dir ? "directory" : kind_name(entry),
           entry->key);
}

static int show(struct cli *cli, const weir_entry *entry)
{
    if (cli->json)
        json_array_append_new(cli->doc, entry_json(entry));
    else if (opts.details)
        print_long(entry);
    else
        puts(entry->key);
    if (entry->error)
        cli_error(cli, weir_error_text());
    return entry->error ? CLI_FAILED : 0;
}

static int run(struct cli *cli)
{
    weir_list *list;
    const weir_entry *entry;
    const char *prefix = cli->operand_count ? cli->operands[0] : "";
    uint32_t flags = opts.recursive ? WEIR_LIST_RECURSIVE : 0;
    int shown = 0, code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = weir_list_open(&list, cli->store, prefix,
                              flags | (opts.details ? WEIR_LIST_DETAIL : 0));
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    while ((code = weir_list_next(list, &entry)) == 1)
        shown |= show(cli, entry);
    weir_list_close(list);
    return code ? code : shown;
}

const struct command cmd_ls = {
    .name = "ls",
    .operands = "[PREFIX]",
    .operands_min = 0,
    .operands_max = 1,
    .summary = "List objects and directories",
    .about =
        "Lists one level of the store, or of PREFIX, which is an object, a directory, or both. "
        "Names of directories end in '/'.\n\n"
        "With -l there are the size, when the object was sealed, and its kind: sealed (written by "
        "Weir), foreign (a plain file that others put there) or damaged.",
    .example = "weir ls\n"
               "weir ls -l models/\n"
               "weir ls -r --json | jq -r '.[].key'",
    .json = "an array: for each entry key, type (object or directory), kind; with -l also "
            "size_bytes and time, or error",
    .options = options,
    .fields = &opts,
    .run = run,
};
