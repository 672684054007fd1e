/* cmd_put.c - weir put: local files become objects. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/content.h"
#include "cli/tree.h"
#include "cli/work.h"
#include "util/err.h"

static struct {
    bool recursive, follow;
    uint64_t jobs, block_bytes;
    struct weir_texts meta;
    char *meta_text; /* as it is stored; NULL: none */
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"recursive", 'r', WEIR_OPT_FLAG, AT(recursive), "no", NULL,
     "store a directory: each file below it becomes KEY/relative/path", 0, 0},
    {"follow", 0, WEIR_OPT_FLAG, AT(follow), "no", NULL,
     "with -r, store the files that symbolic links point to", 0, 0},
    WORK_OPT_JOBS(AT(jobs), "with -r, files"),
    {"meta", 0, WEIR_OPT_TEXTS, AT(meta), NULL, "NAME=VALUE",
     "keep this with the object; may be given several times", 0, 0},
    {"block", 0, WEIR_OPT_SIZE, AT(block_bytes), "1M", "SIZE",
     "bytes that one fingerprint stands for, a power of two: small ones make small reads cheap",
     WEIR_BLOCK_BYTES_MIN, WEIR_BLOCK_BYTES_MAX},
    {0},
};

/* ---- what the command line means ---- */

/* The last part of a path; "." and ".." are called what they are. Owned by the caller. */
static char *base_of(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    size_t begin = size;
    while (begin && path[begin - 1] != '/')
        begin--;
    char *base = strndup(path + begin, size - begin);
    if (!base || (strcmp(base, ".") && strcmp(base, "..")))
        return base;
    char whole[PATH_MAX];
    free(base);
    return strdup(realpath(path, whole) ? strrchr(whole, '/') + 1 : ".");
}

/* The key a path is stored under; owned by the caller. */
static char *key_of(const char *path, const char *key)
{
    size_t size = key ? strlen(key) : 0;
    char *base, *out;
    if (key && (!size || key[size - 1] != '/'))
        return strdup(key);
    base = base_of(path);
    if (!base || asprintf(&out, "%s%s", key ? key : "", base) < 0)
        out = NULL;
    free(base);
    return out;
}

/* --meta NAME=VALUE … as the JSON object that is stored. */
static int read_meta(struct cli *cli)
{
    json_t *meta = json_object();
    int code = 0;
    for (size_t i = 0; i < opts.meta.count && !code; i++) {
        const char *text = opts.meta.text[i], *equals = strchr(text, '=');
        char *name = strndup(text, equals ? (size_t)(equals - text) : 0);
        if (!name || !*name)
            code = cli_usage(cli, "--meta: '%s' is not NAME=VALUE", text);
        else if (json_object_get(meta, name))
            code = cli_usage(cli, "--meta: '%s' is given twice", name);
        else if (json_object_set_new(meta, name, json_string(equals + 1)))
            code = cli_usage(cli, "--meta: '%s' is not UTF-8", text);
        free(name);
    }
    if (!code && opts.meta.count)
        opts.meta_text = json_dumps(meta, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(meta);
    return code;
}

/* ---- one file ---- */

static bool meta_differs(const weir_info *info)
{
    size_t size = opts.meta_text ? strlen(opts.meta_text) : 0;
    return size && (size != info->meta_bytes || memcmp(opts.meta_text, info->meta, size));
}

/* The key is taken. That is no failure if it holds just what was to be stored: so an interrupted
 * command can simply be run again. */
static int settle(struct cli *cli, struct item *item, struct source *source)
{
    weir_object *object;
    bool same = false;
    int code = weir_object_open(&object, cli->store, item->key);
    if (code)
        return code;
    const weir_info *info = weir_object_info(object);
    if (info->kind == WEIR_KIND_FOREIGN)
        code = weir_fail(EEXIST, "'%s' exists already, as a plain file that Weir did not write",
                         item->key);
    else
        code = content_compare(&same, object, source);
    if (!code && !same)
        code = weir_fail(EEXIST,
                         "'%s' exists already, with other content (objects are immutable: "
                         "remove it first, or choose another key)",
                         item->key);
    if (!code && meta_differs(info))
        code = weir_fail(EEXIST, "'%s' exists already, with the same content but other metadata",
                         item->key);
    if (!code) {
        item->state = ITEM_SAME;
        item->size_bytes = info->size_bytes;
        item->level = weir_level_name(info->level);
    }
    weir_object_close(object);
    return code;
}

/* *begun: whether any of the source may have been read. */
static int store_source(struct cli *cli, struct item *item, struct source *source, bool *begun)
{
    weir_put *put;
    weir_put_result result;
    weir_put_options put_opts;
    weir_put_options_init(&put_opts);
    put_opts.block_bytes = (uint32_t)opts.block_bytes;
    put_opts.size_bytes = source->plain ? (uint64_t)source->st.st_size : 0;
    put_opts.meta = opts.meta_text;
    put_opts.meta_bytes = opts.meta_text ? strlen(opts.meta_text) : 0;
    int code = weir_put_open(&put, cli->store, item->key, &put_opts);
    if (code)
        return code;
    *begun = true;
    code = content_store(put, source);
    if (!code)
        code = source_check(source);
    if (!code)
        code = weir_put_commit(put, &result);
    weir_put_close(put);
    if (!code) {
        item->size_bytes = result.size_bytes;
        item->level = weir_level_name(result.level);
    }
    return code;
}

static int put_one(struct cli *cli, struct item *item)
{
    struct source source;
    bool begun = false;
    int code = source_open(&source, item->path);
    if (code)
        return code;
    code = store_source(cli, item, &source, &begun);
    /* A stream that was read before another writer won cannot be compared: then that is that. */
    if (code == -EEXIST && (source.plain || !begun)) {
        code = begun ? source_rewind(&source) : 0;
        if (!code)
            code = settle(cli, item, &source);
    }
    source_close(&source);
    return code;
}

static void show(const struct cli *cli, const struct item *item, int key_width)
{
    if (item->state == ITEM_SAME)
        work_say(cli, item, key_width, "unchanged", "");
    else
        work_say(cli, item, key_width, "level ", item->level);
}

static const char *given_key(const struct cli *cli)
{
    return cli->operand_count > 1 ? cli->operands[1] : NULL;
}

static int collect(struct cli *cli, struct items *items)
{
    const char *path = cli->operands[0];
    struct stat st = {0};
    if (strcmp(path, "-") && stat(path, &st))
        return weir_fail(errno, "cannot open '%s': %s", path, weir_errno_text(errno));
    if (S_ISDIR(st.st_mode) && !opts.recursive)
        return weir_fail(EISDIR, "'%s' is a directory: -r stores all that is in it", path);
    char *key = key_of(path, given_key(cli));
    if (!key)
        return weir_fail_memory();
    int code = opts.recursive
                   ? tree_add(cli, items, path, key, opts.follow)
                   : items_add(items, key, path, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
    free(key);
    return code;
}

static int check_call(struct cli *cli)
{
    const char *key = given_key(cli);
    bool input = !strcmp(cli->operands[0], "-");
    if (input && opts.recursive)
        return cli_usage(cli, "standard input is no directory: -r cannot be used with it");
    if (input && (!key || !*key || key[strlen(key) - 1] == '/'))
        return cli_usage(cli, "standard input has no name: give the whole KEY");
    if (opts.block_bytes & (opts.block_bytes - 1))
        return cli_usage(cli, "--block: %llu is not a power of two",
                         (unsigned long long)opts.block_bytes);
    return read_meta(cli);
}

static int run(struct cli *cli)
{
    const struct work work = {
        .doing = "storing",
        .done = "stored",
        .access = CLI_MAKE,
        .jobs = opts.jobs,
        .summary = opts.recursive,
        .collect = collect,
        .one = put_one,
        .show = show,
    };
    int code = check_call(cli);
    if (!code)
        code = work_run(cli, &work);
    free(opts.meta_text);
    return code;
}

const struct command cmd_put = {
    .name = "put",
    .operands = "FILE|- [KEY]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Store a file, standard input, or a directory",
    .about =
        "Stores FILE as the object KEY and says how far it got: at level home it is safe. Without "
        "KEY, or where KEY ends in '/', the file's own name is used (after KEY). The store is made "
        "if there is none. An object is visible when it is complete, and never changes after "
        "that.\n\n"
        "If KEY exists already with the same content, that is not an error: it is read, verified "
        "and reported as unchanged. So a put that was interrupted is completed by running it "
        "again. With other content it fails.\n\n"
        "Only bytes and names are kept: no owners, modes or times, and no empty directories.",
    .example = "weir put model.safetensors models/llama/ --meta step=1000\n"
               "weir put -r ./shards datasets/c4\n"
               "tar c run-7 | weir put - runs/run-7.tar",
    .json = "objects: for each file key, file, status (stored, unchanged, failed or skipped), "
            "size_bytes, level, error; and done, unchanged, failed and size_bytes in all",
    .options = options,
    .fields = &opts,
    .run = run,
};
