/* cmd_ckpt_import.c - weir ckpt import: a checkpoint of another tool becomes one of a run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/import.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"

static struct {
    uint64_t step;
    bool dry_run, skip_unknown;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"step", 0, WEIR_OPT_NUMBER, AT(step), "0", "N", "the step it becomes (default: 0)", 0, 0},
    {"skip-unknown", 0, WEIR_OPT_FLAG, AT(skip_unknown), "no", NULL,
     "leave out what is neither a tensor nor plain data, and name it", 0, 0},
    {"dry-run", 'n', WEIR_OPT_FLAG, AT(dry_run), "no", NULL,
     "list what would be imported, and write nothing", 0, 0},
    {0},
};

/* ---- what is said ---- */

/* "[2,3]" */
static void shape_text(char *out, size_t room, const struct weir_from *from)
{
    size_t used = (size_t)snprintf(out, room, "[");
    for (uint32_t i = 0; i < from->ndim && used < room; i++)
        used +=
            (size_t)snprintf(out + used, room - used, "%s%" PRIu64, i ? "," : "", from->shape[i]);
    if (used < room)
        snprintf(out + used, room - used, "]");
}

static json_t *tensor_json(const struct weir_tagged_tensor *t)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < t->from->ndim; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->from->shape[i]));
    return json_pack("{s:o, s:s, s:o, s:I}", "name", cli_text_json(t->name), "dtype",
                     t->from->dtype, "shape", shape, "size_bytes", (json_int_t)t->from->bytes);
}

static void list_tensors(struct cli *cli, const struct weir_import *import)
{
    for (size_t i = 0; i < import->tagged.count; i++) {
        const struct weir_tagged_tensor *t = &import->tagged.tensors[i];
        char shape[1536], size[32];
        char *name = cli_printable(t->name);
        shape_text(shape, sizeof shape, t->from);
        cli_say(cli, "%-5s %10s  %s %s", t->from->dtype,
                weir_format_size(size, sizeof size, t->from->bytes), name ? name : "?", shape);
        free(name);
    }
}

/* The lines "path: class" of what was left out. */
static json_t *note_skipped(struct cli *cli, const struct weir_import *import)
{
    json_t *skipped = json_array();
    const char *line = import->tagged.skips ? import->tagged.skipped : "";
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        char *text = strndup(line, (size_t)(end - line));
        char *shown = text ? cli_printable(text) : NULL;
        if (shown)
            cli_note(cli, "left out: %s", shown);
        if (text)
            json_array_append_new(skipped, cli_text_json(text));
        free(shown);
        free(text);
    }
    return skipped;
}

static void report(struct cli *cli, const struct weir_import *import, const char *run)
{
    char size[32];
    json_t *skipped = note_skipped(cli, import), *tensors = NULL;
    if (opts.dry_run) {
        list_tensors(cli, import);
        tensors = json_array();
        for (size_t i = 0; cli->json && i < import->tagged.count; i++)
            json_array_append_new(tensors, tensor_json(&import->tagged.tensors[i]));
    }
    cli_say(cli, "%s %zu tensor%s (%s) as step %" PRIu64 " of run %s",
            opts.dry_run ? "would import" : "imported", import->tagged.count,
            import->tagged.count == 1 ? "" : "s",
            weir_format_size(size, sizeof size, import->bytes), opts.step, run);
    cli->doc = json_pack(
        "{s:s, s:o, s:o, s:I, s:s, s:I, s:I, s:I, s:o, s:o*}", "status",
        opts.dry_run ? "dry-run" : "imported", "source", cli_text_json(cli->operands[0]), "run",
        cli_text_json(run), "step", (json_int_t)opts.step, "format", import->format, "tensors",
        (json_int_t)import->tagged.count, "size_bytes", (json_int_t)import->bytes, "state_bytes",
        (json_int_t)import->tagged.size, "skipped", skipped, "list", tensors);
    if (!cli->json) {
        json_decref(cli->doc);
        cli->doc = NULL;
    }
}

/* ---- what is done ---- */

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    progress_bytes(more);
    return stop_asked();
}

static int import_into_store(struct cli *cli, struct weir_import *import, const char *run)
{
    int code = cli_store_open(cli, CLI_MAKE, 0, NULL);
    if (code)
        return code;
    stop_politely();
    progress_start(cli, "importing", import->bytes, 0, false);
    code = weir_import_save(import, cli->store, run, opts.step, on_progress, NULL);
    progress_end();
    return code == -ECANCELED && stop_asked() ? stop_fail() : code;
}

static int run(struct cli *cli)
{
    const char *source = cli->operands[0], *run = cli->operands[1];
    struct weir_import *import;
    char log[WEIR_KEY_BYTES_MAX + 1];
    int code = weir_ckpt_log_name(log, run); /* before a store is made for it */
    if (code)
        return code;
    code = weir_import_open(&import, source, opts.skip_unknown);
    if (code)
        return weir_fail_in(code, "cannot import '%s'", source);
    if (!opts.dry_run)
        code = import_into_store(cli, import, run);
    if (!code)
        report(cli, import, run);
    weir_import_close(import);
    return code;
}

const struct command cmd_ckpt_import = {
    .name = "ckpt import",
    .operands = "SOURCE RUN",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Make a checkpoint from one of another tool",
    .about =
        "Commits SOURCE as a checkpoint of RUN. SOURCE is a .safetensors file; a directory of them "
        "as Hugging Face has it (with model.safetensors.index.json, or without); a file of "
        "torch.save() (.pt, .pth, .bin); or a directory of torch.distributed.checkpoint. What it "
        "is, is seen from its content. The store is made if there is none.\n\n"
        "Tensors are named by their path in the state dict (optimizer.state.0.exp_avg), stored "
        "contiguously, and those that share memory each for itself. Everything else of plain data "
        "becomes the checkpoint's state. A pickle is read, never run: an object of a class that is "
        "not known here is refused by name, or left out with --skip-unknown.\n\n"
        "A step that RUN has already is refused. An import begins a new life of the run, as a "
        "restart does: a job that is saving to it now is refused from then on. Older checkpoints "
        "of the run stay.",
    .example = "weir ckpt import ./Llama-3.1-8B llama --dry-run\n"
               "weir ckpt import checkpoint.pt run-7 --step 1000\n"
               "weir ckpt import ./dcp/step-500 run-7 --step 500 --skip-unknown",
    .json = "status (imported or dry-run), source, run, step, format (safetensors, huggingface, "
            "torch or dcp), tensors, size_bytes, state_bytes, skipped; with --dry-run list: for "
            "each tensor name, dtype, shape, size_bytes",
    .options = options,
    .fields = &opts,
    .run = run,
};
