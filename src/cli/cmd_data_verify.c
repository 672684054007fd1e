/* cmd_data_verify.c - weir data verify: a whole dataset against its manifest and its signature. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/proof.h"
#include "cli/stop.h"
#include "cli/work.h"
#include "data/audit.h"
#include "util/err.h"

static struct {
    uint64_t jobs;
    const char *key, *manifest;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"key", 'k', WEIR_OPT_TEXT, AT(key), NULL, "FILE",
     "the public key, in PEM: the manifest must be signed with it", 0, 0},
    {"manifest", 0, WEIR_OPT_TEXT, AT(manifest), NULL, "DIR",
     "where the manifest is, if it is not in the dataset", 0, 0},
    WORK_OPT_JOBS(AT(jobs), "files"),
    {0},
};

static const char *const kinds[] = {"changed", "missing", "added"};

struct verifying {
    struct proof_bar bar; /* first: proof.h takes it */
    struct cli *cli;
    json_t *flaws;
};

/* "bytes 0-1048575 and 3145728-4194303 differ" */
static void write_ranges(FILE *out, const struct weir_flaw *flaw)
{
    for (uint32_t i = 0; i < flaw->count; i++)
        fprintf(out, "%s%llu-%llu", i ? ", " : "bytes ", (unsigned long long)flaw->ranges[i].begin,
                (unsigned long long)flaw->ranges[i].end - 1);
    if (flaw->count == WEIR_FLAW_RANGES_MAX)
        fprintf(out, " and more");
    if (flaw->count)
        fprintf(out, " (%llu block%s) %s", (unsigned long long)flaw->blocks,
                flaw->blocks == 1 ? "" : "s", flaw->is_unreadable ? "cannot be read" : "differ");
}

static void write_flaw(FILE *out, const struct weir_flaw *flaw)
{
    fprintf(out, "'%s' ", flaw->name);
    if (flaw->kind != WEIR_FLAW_CHANGED) {
        fputs(flaw->kind == WEIR_FLAW_MISSING ? "is missing" : "is not in the manifest", out);
        return;
    }
    fputs("has changed", out);
    if (flaw->size != flaw->size_known)
        fprintf(out, ": it has %llu bytes, not %llu", (unsigned long long)flaw->size,
                (unsigned long long)flaw->size_known);
    if (flaw->count)
        fputs(": ", out);
    write_ranges(out, flaw);
    if (!flaw->count && flaw->is_unreadable)
        fputs(": it cannot be opened", out);
}

static json_t *flaw_json(const struct weir_flaw *flaw)
{
    json_t *ranges = json_array();
    for (uint32_t i = 0; i < flaw->count; i++)
        json_array_append_new(ranges, json_pack("[I, I]", (json_int_t)flaw->ranges[i].begin,
                                                (json_int_t)flaw->ranges[i].end));
    return json_pack("{s:o, s:s, s:I, s:o}", "name", cli_text_json(flaw->name), "status",
                     kinds[flaw->kind], "blocks", (json_int_t)flaw->blocks, "ranges", ranges);
}

static void on_flaw(void *arg, const struct weir_flaw *flaw)
{
    struct verifying *v = arg;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        write_flaw(out, flaw);
        fclose(out);
    }
    cli_error(v->cli, text ? text : flaw->name);
    if (v->flaws)
        json_array_append_new(v->flaws, flaw_json(flaw));
    free(text);
}

static void report(struct verifying *v, const struct weir_audit *audit, const char *id)
{
    struct cli *cli = v->cli;
    char size[32];
    weir_format_size(size, sizeof size, audit->bytes);
    if (audit->flaws)
        cli_say(cli, "%llu of %llu files are not as they were", (unsigned long long)audit->flaws,
                (unsigned long long)audit->files);
    else
        cli_say(cli, "verified %llu file%s (%s)%s%s", (unsigned long long)audit->files,
                audit->files == 1 ? "" : "s", size, id[0] ? ", signed with key " : "", id);
    if (!cli->json)
        return;
    cli->doc =
        json_pack("{s:I, s:I, s:b, s:o*}", "files", (json_int_t)audit->files, "size_bytes",
                  (json_int_t)audit->bytes, "ok", !audit->flaws, "flaws", json_incref(v->flaws));
    json_object_set_new(cli->doc, "key", id[0] ? json_string(id) : json_null());
    if (audit->flaws)
        json_object_set_new(cli->doc, "error",
                            cli_error_json(-EBADMSG, "the dataset is not as its manifest says"));
}

static int verify(struct verifying *v, const struct weir_proof *proof, struct weir_hashing *how)
{
    struct weir_audit audit;
    if (proof->is_signed && !opts.key)
        cli_note(v->cli, "the signature was not checked: --key takes the public key");
    stop_politely();
    int code = weir_audit_run(&audit, v->cli->store, proof, how, on_flaw, v);
    progress_end();
    if (code)
        return code == -ECANCELED ? stop_fail() : code;
    report(v, &audit, proof->key_id);
    return audit.flaws ? CLI_FAILED : 0;
}

static int run(struct cli *cli)
{
    struct verifying v = {.bar = {cli, "verifying"}, .cli = cli};
    struct weir_hashing how = {
        .threads = (uint32_t)opts.jobs,
        .total = proof_total,
        .progress = proof_progress,
        .arg = &v.bar,
    };
    struct proof_place place;
    struct weir_proof proof;
    int code = proof_place_open(&place, cli, opts.manifest);
    if (code)
        return code;
    how.prefix = place.within.prefix;
    code = proof_read(&proof, &place, opts.key);
    if (!code) {
        v.flaws = cli->json ? json_array() : NULL;
        code = verify(&v, &proof, &how);
        json_decref(v.flaws);
        weir_proof_free(&proof);
    }
    proof_place_close(&place);
    return code;
}

const struct command cmd_data_verify = {
    .name = "data verify",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Check a whole dataset against its manifest and its signature",
    .about =
        "Reads every file below URL and compares it with SHA256SUMS and SHA256BLOCKS, which weir "
        "data manifest wrote. Each file that is missing, was added or has changed is named on "
        "standard error, with the bytes in which it differs (in whole blocks), and the exit code "
        "is 1. With --key, the manifest must be signed with that key, or nothing is read.\n\n"
        "A SHA256SUMS that sha256sum made will do as well; which bytes differ is then not known.",
    .example = "weir data verify /data/imagenet-mds --key pub.pem",
    .json = "files, size_bytes, ok, key (that signed it, or null), flaws: for each name, status "
            "(changed, missing, added), blocks, ranges of bytes [begin, end)",
    .options = options,
    .fields = &opts,
    .run = run,
};
