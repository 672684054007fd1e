/* cmd_ckpt_verify.c - weir ckpt verify: every byte of checkpoints is read and checked. */
#include <errno.h>
#include <inttypes.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"

static struct {
    bool all;
} opts;

static const struct weir_opt options[] = {
    {"all", 'a', WEIR_OPT_FLAG, offsetof(typeof(opts), all), "no", NULL,
     "every live checkpoint of the run", 0, 0},
    {0},
};

struct check {
    struct cli *cli;
    json_t *errors; /* of the one that is being read */
    size_t bad;
    bool failed;
};

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    progress_bytes(more);
    return stop_asked();
}

static void note(struct check *c, json_t *error)
{
    progress_pause();
    cli_error(c->cli, weir_error_text());
    progress_resume();
    if (c->cli->json)
        json_array_append_new(c->errors, error);
    else
        json_decref(error);
    c->bad++;
    c->failed = true;
}

static int on_damage(void *arg, const weir_damage *damage)
{
    struct check *c = arg;
    json_t *error = cli_error_json(damage->code, damage->text);
    json_object_set_new(error, "key", cli_text_json(damage->key));
    if (damage->tensor)
        json_object_set_new(error, "tensor", cli_text_json(damage->tensor));
    if (damage->end) {
        json_object_set_new(error, "begin", json_integer((json_int_t)damage->begin));
        json_object_set_new(error, "end", json_integer((json_int_t)damage->end));
    }
    note(c, error);
    return stop_asked();
}

/* One that is open. */
static int verify_open(struct check *c, weir_restore *restore)
{
    const weir_restore_info *info = weir_restore_info_get(restore);
    char size[32];
    int code = weir_restore_verify(restore, on_damage, on_progress, c);
    if (code == -ECANCELED)
        return stop_fail();
    if (code && !c->bad)
        return code;
    progress_pause();
    if (c->bad)
        cli_say(c->cli, "damaged %s: %zu error%s", info->prefix, c->bad, c->bad == 1 ? "" : "s");
    else
        cli_say(c->cli, "verified %s: %zu tensors of %u rank%s (%s)", info->prefix, info->tensors,
                info->ranks, info->ranks == 1 ? "" : "s",
                weir_format_size(size, sizeof size, info->size_bytes));
    progress_resume();
    return 0;
}

static json_t *result_json(struct check *c, const char *prefix, int64_t step, uint64_t bytes)
{
    return json_pack("{s:o, s:I, s:I, s:b, s:o}", "prefix", cli_text_json(prefix), "step",
                     (json_int_t)step, "size_bytes", (json_int_t)bytes, "ok", !c->bad, "errors",
                     c->errors);
}

/* Takes what opening it answered. What cannot even be opened is damaged, too. */
static int verify(struct check *c, weir_restore *restore, int code, const weir_ckpt_info *row)
{
    const weir_restore_info *info = code ? NULL : weir_restore_info_get(restore);
    c->errors = c->cli->json ? json_array() : NULL;
    c->bad = 0;
    if (code == -EBADMSG || code == -EPROTO || code == -EIO) {
        note(c, cli_error_json(code, weir_error_text()));
        code = 0;
    } else if (!code) {
        code = verify_open(c, restore);
    }
    if (c->cli->json && (info || row))
        json_array_append_new(c->cli->doc, result_json(c, info ? info->prefix : row->prefix,
                                                       (int64_t)(info ? info->step : row->step),
                                                       info ? info->size_bytes : 0));
    else if (c->cli->json)
        json_array_append_new(c->cli->doc,
                              json_pack("{s:b, s:o}", "ok", !c->bad, "errors", c->errors));
    if (info)
        weir_restore_close(restore);
    return code;
}

static int verify_all(struct check *c, const char *run)
{
    struct ckpt_rows rows = {0};
    uint64_t total = 0;
    weir_restore *restore = NULL;
    int code = weir_ckpt_each(c->cli->store, run, WEIR_CKPT_SIZES, ckpt_rows_add, &rows);
    for (size_t i = 0; i < rows.count; i++)
        total += rows.row[i].info.size_bytes;
    progress_start(c->cli, "verifying", total, rows.count, false);
    for (size_t i = 0; !code && i < rows.count; i++) {
        const weir_ckpt_info *info = &rows.row[i].info;
        int opened = weir_restore_open_this(&restore, c->cli->store, run, info);
        if (opened != -ESTALE) /* else it was retired since it was listed */
            code = verify(c, restore, opened, info);
        if (code == -ESTALE)
            code = 0;
        progress_item();
    }
    ckpt_rows_free(&rows);
    return code;
}

static int verify_one(struct check *c, const char *run, const char *which)
{
    weir_restore *restore = NULL;
    int code = ckpt_open(c->cli, &restore, run, which);
    progress_start(c->cli, "verifying", code ? 0 : weir_restore_info_get(restore)->size_bytes, 1,
                   false);
    return verify(c, restore, code, NULL);
}

static int run(struct cli *cli)
{
    struct check c = {.cli = cli};
    const char *which = cli->operand_count > 1 ? cli->operands[1] : NULL;
    if (opts.all && which)
        return cli_usage(cli, "--all is for all steps, '%s' is one", which);
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    stop_politely();
    code = opts.all ? verify_all(&c, cli->operands[0]) : verify_one(&c, cli->operands[0], which);
    progress_end();
    return code ? code : c.failed ? CLI_FAILED : 0;
}

const struct command cmd_ckpt_verify = {
    .name = "ckpt verify",
    .operands = "RUN [STEP|NAME]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Read a checkpoint and check every byte of it",
    .about =
        "Reads the newest checkpoint of RUN, the newest of STEP, or the one with that NAME, and "
        "checks it against what its log committed: parts, manifests, seals, and every block of "
        "every file. What is damaged is named on standard error, with the file, the byte range and "
        "the tensors that lie there; the rest is read all the same, and the exit code is 1.",
    .example = "weir ckpt verify llama/pretrain\n"
               "weir ckpt verify llama/pretrain best\n"
               "weir ckpt verify llama/pretrain --all",
    .json = "an array: for each checkpoint prefix, step, size_bytes, ok, errors (code, text, key, "
            "tensor, begin, end)",
    .options = options,
    .fields = &opts,
    .run = run,
};
