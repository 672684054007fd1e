/* cmd_get.c - weir get: objects become local files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/content.h"
#include "cli/range.h"
#include "cli/work.h"
#include "util/err.h"

static struct {
    bool recursive, force;
    uint64_t jobs;
    const char *range_text;
    struct range range;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"range", 0, WEIR_OPT_TEXT, AT(range_text), NULL, "A-B",
     "only these bytes, both ends included; A- is from A on, -N the last N", 0, 0},
    {"force", 'f', WEIR_OPT_FLAG, AT(force), "no", NULL, "replace files that exist", 0, 0},
    {"recursive", 'r', WEIR_OPT_FLAG, AT(recursive), "no", NULL,
     "get all objects below KEY into the directory FILE", 0, 0},
    WORK_OPT_JOBS(AT(jobs), "with -r, objects"),
    {0},
};

/* What is asked for of an object of this size. */
static int find_range(uint64_t size, uint64_t *begin, uint64_t *end)
{
    *begin = 0;
    *end = size;
    return opts.range_text ? range_resolve(&opts.range, size, begin, end) : 0;
}

/* The file exists, which this thread's text says. That is no failure if it is just the object, as
 * after an interrupted get. */
static int settle(struct item *item, weir_object *object)
{
    char text[WEIR_TEXT_MAX];
    struct source source;
    bool same = false;
    snprintf(text, sizeof text, "%s", weir_error_text());
    if (opts.range_text || source_open(&source, item->path))
        return weir_fail_text(-EEXIST, text);
    int code = content_compare(&same, object, &source);
    source_close(&source);
    if (!code && !same)
        return weir_fail_text(-EEXIST, text);
    if (!code)
        item->state = ITEM_SAME;
    return code;
}

static int write_file(struct item *item, weir_object *object)
{
    struct target target;
    uint64_t begin, end;
    int code = find_range(weir_object_info(object)->size_bytes, &begin, &end);
    if (code)
        return weir_fail_in(code, "cannot get bytes %s of '%s'", opts.range_text, item->key);
    item->size_bytes = end - begin;
    code = target_open(&target, item->path, opts.force);
    if (code)
        return code;
    code = content_fetch(&target, object, begin, end);
    if (!code)
        code = target_commit(&target);
    target_close(&target);
    return code;
}

static int get_one(struct cli *cli, struct item *item)
{
    weir_object *object;
    int code = weir_object_open(&object, cli->store, item->key);
    if (code)
        return code;
    code = write_file(item, object);
    if (code == -EEXIST)
        code = settle(item, object);
    weir_object_close(object);
    return code;
}

static void show(const struct cli *cli, const struct item *item, int key_width)
{
    if (strcmp(item->path, "-"))
        work_say(cli, item, key_width, item->state == ITEM_SAME ? "unchanged in " : "to ",
                 item->path);
}

/* dir/rest; owned by the caller. */
static char *join(const char *dir, const char *rest)
{
    char *path;
    size_t size = strlen(dir);
    bool slash = size && dir[size - 1] == '/';
    return asprintf(&path, "%s%s%s", dir, slash ? "" : "/", rest) < 0 ? NULL : path;
}

static int collect_one(struct cli *cli, struct items *items, const char *key, const char *file)
{
    struct stat st;
    const char *base = strrchr(key, '/');
    size_t size = strlen(file);
    uint64_t begin, end;
    bool dir = (size && file[size - 1] == '/') || (stat(file, &st) == 0 && S_ISDIR(st.st_mode));
    char *path = dir ? join(file, base ? base + 1 : key) : strdup(file);
    int code = path ? items_add_key(items, cli->store, key, path) : weir_fail_memory();
    if (!code && !find_range(items->item[0].size_bytes, &begin, &end))
        items->item[0].size_bytes = end - begin; /* of the bar */
    free(path);
    return code;
}

static int collect_below(struct cli *cli, struct items *items, const char *prefix, const char *dir)
{
    /* With its '/', the prefix names the directory only, not an object beside it. */
    char *below = *prefix ? join(prefix, "") : strdup("");
    int code = below ? 0 : weir_fail_memory();
    if (!code)
        code = items_add_prefix(items, cli->store, below, WEIR_LIST_DETAIL);
    for (size_t i = 0; !code && i < items->count; i++) {
        items->item[i].path = join(dir, items->item[i].key + strlen(below));
        if (!items->item[i].path)
            code = weir_fail_memory();
    }
    free(below);
    return code;
}

static const char *file_of(const struct cli *cli)
{
    return cli->operand_count > 1 ? cli->operands[1] : ".";
}

static int collect(struct cli *cli, struct items *items)
{
    return (opts.recursive ? collect_below : collect_one)(cli, items, cli->operands[0],
                                                          file_of(cli));
}

static int check_call(struct cli *cli, bool output)
{
    if (output && opts.recursive)
        return cli_usage(cli, "standard output is no directory: -r cannot be used with it");
    if (opts.range_text && opts.recursive)
        return cli_usage(cli, "--range is for one object, not for -r");
    if (opts.range_text && range_parse(&opts.range, opts.range_text))
        return cli_usage(cli, "--range: %s", weir_error_text());
    return 0;
}

static int run(struct cli *cli)
{
    bool output = !strcmp(file_of(cli), "-");
    const struct work work = {
        .doing = "getting",
        .done = "written",
        .access = CLI_READ,
        .jobs = opts.jobs,
        .summary = opts.recursive,
        .raw = output,
        .collect = collect,
        .one = get_one,
        .show = show,
    };
    int code = check_call(cli, output);
    return code ? code : work_run(cli, &work);
}

const struct command cmd_get = {
    .name = "get",
    .operands = "KEY [FILE|-]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Write an object, a part of it, or all below a prefix to files",
    .about =
        "Writes the object KEY to FILE, or to standard output. If FILE is a directory, or is not "
        "given, the file has the last part of KEY as its name. Every block is verified before it "
        "is written, and FILE appears only when it is complete.\n\n"
        "A file that exists is not replaced, unless --force is given; if it is just the object, it "
        "is reported as unchanged. So a get that was interrupted is completed by running it "
        "again.",
    .example = "weir get models/llama/model.safetensors .\n"
               "weir get datasets/c4/00017.tar - --range 0-511 | xxd\n"
               "weir get -r datasets/c4 /local/c4",
    .json = "objects: for each object key, file, status (written, unchanged, failed or skipped), "
            "size_bytes, error; and done, unchanged, failed and size_bytes in all",
    .options = options,
    .fields = &opts,
    .run = run,
};
