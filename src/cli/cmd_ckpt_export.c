/* cmd_ckpt_export.c - weir ckpt export: a checkpoint becomes safetensors files.
 *
 * One file is written as weir get writes one (target.h). A directory is written under another name
 * and renamed when all of it is there; if dest has files already, those of an earlier export go and
 * the new ones are moved there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "util/err.h"

static struct {
    uint64_t shard_bytes;
    bool force;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"shard-size", 0, WEIR_OPT_SIZE, AT(shard_bytes), "0", "SIZE",
     "of a directory: bytes of tensors in a file (5GB if it is not given)", 0, 0},
    {"force", 'f', WEIR_OPT_FLAG, AT(force), "no", NULL, "replace files that exist", 0, 0},
    {0},
};

#define SHARD_BYTES_DEFAULT 5000000000u

struct export
{
    struct cli *cli;
    const char *dest;
    char *dir;   /* that the files are written to; NULL: dest is a file */
    bool merges; /* dest has files that stay */
    struct target target;
    char *path;         /* of the file that is being written, or NULL */
    struct names files; /* in dir */
    uint64_t bytes;
};

static int fail(const char *what, const char *path)
{
    return weir_fail(errno, "cannot %s '%s': %s", what, path, weir_errno_text(errno));
}

/* ---- the files ---- */

static int on_begin(void *arg, const char *name, uint64_t size)
{
    struct export *e = arg;
    (void)size;
    if (!e->dir)
        e->path = strdup(e->dest);
    else if (asprintf(&e->path, "%s/%s", e->dir, name) < 0)
        e->path = NULL;
    if (!e->path)
        return weir_fail_memory();
    int code = target_open(&e->target, e->path, opts.force);
    if (!code)
        code = names_add(&e->files, name);
    if (code) {
        free(e->path);
        e->path = NULL;
    }
    return code;
}

static int on_write(void *arg, const void *data, size_t size)
{
    struct export *e = arg;
    int code = stop_asked() ? stop_fail() : target_write(&e->target, data, size);
    if (!code) {
        progress_bytes(size);
        e->bytes += size;
    }
    return code;
}

static void close_file(struct export *e)
{
    if (!e->path)
        return;
    target_close(&e->target);
    free(e->path);
    e->path = NULL;
}

static int on_end(void *arg)
{
    struct export *e = arg;
    int code = target_commit(&e->target);
    close_file(e);
    return code;
}

/* ---- the directory ---- */

static bool is_of_export(const char *name)
{
    return !strcmp(name, "model.safetensors") || !strcmp(name, "model.safetensors.index.json") ||
           !fnmatch("model-[0-9]*-of-[0-9]*.safetensors", name, 0);
}

/* Looks through dest; with `remove` what an earlier export left goes. Answers whether there is
 * anything. */
static int look_into(const struct export *e, bool remove)
{
    DIR *dir = opendir(e->dest);
    int code = 0;
    if (!dir)
        return fail("read", e->dest);
    for (const struct dirent *entry; code >= 0 && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        code = 1;
        if (remove && is_of_export(entry->d_name) && unlinkat(dirfd(dir), entry->d_name, 0))
            code = fail("replace", entry->d_name);
    }
    closedir(dir);
    return code;
}

static int make_dir(struct export *e)
{
    struct stat st;
    if (stat(e->dest, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return weir_fail(ENOTDIR, "'%s' is a file: end its name in .safetensors to replace it",
                             e->dest);
        int full = look_into(e, false);
        if (full < 0)
            return full;
        if (full && !opts.force)
            return weir_fail(EEXIST, "'%s' is not empty: --force replaces the weights in it",
                             e->dest);
        e->merges = full;
    }
    size_t size = strlen(e->dest);
    while (size > 1 && e->dest[size - 1] == '/')
        size--;
    if (asprintf(&e->dir, "%.*s.weir-export-%d", (int)size, e->dest, getpid()) < 0) {
        e->dir = NULL;
        return weir_fail_memory();
    }
    return 0; /* the first file makes it */
}

static int sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail("open", path);
    int code = fsync(fd) ? fail("sync", path) : 0;
    close(fd);
    return code;
}

/* The directory that path is in; owned by the caller. */
static char *parent_of(const char *path)
{
    size_t size = strlen(path);
    while (size && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    return size ? strndup(path, size) : strdup(".");
}

/* The files go to a directory that has others, the index last. */
static int merge(struct export *e)
{
    int code = look_into(e, true);
    for (size_t i = 0; code >= 0 && i < e->files.count; i++) {
        char *from, *to;
        if (asprintf(&from, "%s/%s", e->dir, e->files.name[i]) < 0)
            return weir_fail_memory();
        if (asprintf(&to, "%s/%s", e->dest, e->files.name[i]) < 0) {
            free(from);
            return weir_fail_memory();
        }
        code = rename(from, to) ? fail("write", to) : 0;
        free(from);
        free(to);
    }
    return code < 0 ? code : sync_dir(e->dest);
}

static int finish(struct export *e)
{
    char *parent = parent_of(e->dest);
    int code = parent ? 0 : weir_fail_memory();
    if (!code && e->dir)
        code = sync_dir(e->dir);
    if (!code && e->dir && e->merges)
        code = merge(e);
    else if (!code && e->dir && rename(e->dir, e->dest))
        code = fail("write", e->dest);
    if (!code)
        code = sync_dir(parent);
    free(parent);
    return code;
}

/* Nothing is left of what was not finished. */
static void tidy(struct export *e)
{
    close_file(e);
    for (size_t i = 0; e->dir && i < e->files.count; i++) {
        char *path;
        if (asprintf(&path, "%s/%s", e->dir, e->files.name[i]) < 0)
            continue;
        unlink(path);
        free(path);
    }
    if (e->dir)
        rmdir(e->dir);
    free(e->dir);
}

/* ---- all of it ---- */

static bool is_file(const char *path)
{
    static const char end[] = ".safetensors";
    size_t size = strlen(path), tail = sizeof end - 1;
    return size >= tail && !strcmp(path + size - tail, end);
}

static int write_all(struct export *e, weir_restore *restore)
{
    static const weir_export_sink sink = {on_begin, on_write, on_end};
    uint64_t shard_bytes = opts.shard_bytes ? opts.shard_bytes : SHARD_BYTES_DEFAULT;
    stop_politely();
    int code = is_file(e->dest) ? 0 : make_dir(e);
    if (code)
        return code;
    progress_start(e->cli, "exporting", weir_restore_info_get(restore)->size_bytes, 1, false);
    code = weir_restore_export(restore, e->dir ? shard_bytes : 0, &sink, e);
    progress_end();
    return code ? code : finish(e);
}

static void report(struct export *e, const weir_restore_info *info)
{
    char size[32];
    cli_say(e->cli, "exported %s: %zu tensors in %zu file%s (%s) to %s", info->prefix,
            info->tensors, e->files.count, e->files.count == 1 ? "" : "s",
            weir_format_size(size, sizeof size, e->bytes), e->dest);
    if (!e->cli->json)
        return;
    json_t *files = json_array();
    for (size_t i = 0; e->dir && i < e->files.count; i++)
        json_array_append_new(files, cli_text_json(e->files.name[i]));
    e->cli->doc =
        json_pack("{s:o, s:I, s:o, s:I, s:I, s:o}", "prefix", cli_text_json(info->prefix), "step",
                  (json_int_t)info->step, "dest", cli_text_json(e->dest), "tensors",
                  (json_int_t)info->tensors, "size_bytes", (json_int_t)e->bytes, "files", files);
}

static int run(struct cli *cli)
{
    const char *which = cli->operand_count > 2 ? cli->operands[1] : NULL;
    struct export e = {.cli = cli, .dest = cli->operands[cli->operand_count - 1]};
    weir_restore *restore;
    if (opts.shard_bytes && is_file(e.dest))
        return cli_usage(cli, "--shard-size is for a directory, '%s' is one file", e.dest);
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = ckpt_open(cli, &restore, cli->operands[0], which);
    if (code)
        return code;
    code = write_all(&e, restore);
    if (!code)
        report(&e, weir_restore_info_get(restore));
    tidy(&e);
    names_free(&e.files);
    weir_restore_close(restore);
    return code;
}

const struct command cmd_ckpt_export = {
    .name = "ckpt export",
    .operands = "RUN [STEP|NAME] DEST",
    .operands_min = 2,
    .operands_max = 3,
    .summary = "Write a checkpoint as safetensors files for other tools",
    .about =
        "Puts the tensors of the newest checkpoint of RUN, the newest of STEP, or the one with "
        "that NAME together from the pieces that the ranks saved. If DEST ends in .safetensors it "
        "is one file; else it is a directory as Hugging Face's libraries read it: "
        "model-00001-of-00004.safetensors and so on, and model.safetensors.index.json. Every block "
        "is verified on the way, memory is bounded, and DEST appears when it is complete. "
        "Directories on the way to it are made if they are missing. What exists is not replaced, "
        "unless --force is given; of a directory that has other files, too, only the weights are.",
    .example = "weir ckpt export llama/pretrain best llama.safetensors\n"
               "weir ckpt export llama/pretrain 120000 out/llama --shard-size 2GB",
    .json = "prefix, step, dest, tensors, size_bytes, files (of a directory)",
    .options = options,
    .fields = &opts,
    .run = run,
};
