/* cmd_data_manifest.c - weir data manifest: SHA-256 of every file and every block of a dataset. */
#include <errno.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/proof.h"
#include "cli/stop.h"
#include "cli/work.h"
#include "data/blocks.h"
#include "util/err.h"

static struct {
    uint64_t jobs, block_bytes;
    const char *output;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    WORK_OPT_JOBS(AT(jobs), "files"),
    {"block", 0, WEIR_OPT_SIZE, AT(block_bytes), "1M", "SIZE",
     "bytes that one hash stands for, a power of two: what a reader with a key reads at least",
     WEIR_BLOCKS_BYTES_MIN, WEIR_BLOCK_BYTES_MAX},
    {"output", 'o', WEIR_OPT_TEXT, AT(output), NULL, "DIR",
     "write there, for a dataset that cannot be written to", 0, 0},
    {0},
};

struct totals {
    struct proof_bar bar; /* first: proof.h takes it */
    uint64_t files, bytes;
};

static void on_total(void *arg, uint64_t files, uint64_t bytes)
{
    struct totals *t = arg;
    t->files = files;
    t->bytes = bytes;
    proof_total(&t->bar, files, bytes);
}

static void report(struct cli *cli, const struct totals *t, const struct weir_proof *proof)
{
    char size[32], sum[2 * WEIR_SHA256_BYTES + 1];
    uint8_t sha256[WEIR_SHA256_BYTES];
    weir_sha256(sha256, proof->sums, proof->sums_size);
    weir_hex(sum, sha256, sizeof sha256);
    cli_say(cli, "%llu file%s (%s): " WEIR_PROOF_SUMS " is %s", (unsigned long long)t->files,
            t->files == 1 ? "" : "s", weir_format_size(size, sizeof size, t->bytes), sum);
    if (cli->json)
        cli->doc = json_pack("{s:I, s:I, s:I, s:s}", "files", (json_int_t)t->files, "size_bytes",
                             (json_int_t)t->bytes, "block_bytes", (json_int_t)opts.block_bytes,
                             "sha256", sum);
}

static int run(struct cli *cli)
{
    struct totals totals = {.bar = {cli, "hashing"}};
    struct weir_hashing how = {
        .threads = (uint32_t)opts.jobs,
        .total = on_total,
        .progress = proof_progress,
        .arg = &totals,
    };
    struct proof_place place;
    struct weir_proof proof;
    if (opts.block_bytes & (opts.block_bytes - 1))
        return cli_usage(cli, "--block: %llu is not a power of two",
                         (unsigned long long)opts.block_bytes);
    int code = proof_place_open(&place, cli, opts.output);
    if (code)
        return code;
    stop_politely();
    how.prefix = place.within.prefix;
    code = proof_write_check(&place);
    if (!code)
        code = weir_proof_make(&proof, cli->store, (uint32_t)opts.block_bytes, &how);
    progress_end();
    if (!code) {
        code = proof_write(&proof, &place);
        if (!code)
            report(cli, &totals, &proof);
        weir_proof_free(&proof);
    }
    proof_place_close(&place);
    return code == -ECANCELED ? stop_fail() : code;
}

const struct command cmd_data_manifest = {
    .name = "data manifest",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Write the SHA-256 of every file and every block of a dataset",
    .about =
        "Reads every file below URL once, and writes two files there: SHA256SUMS, which sha256sum "
        "-c checks, and SHA256BLOCKS, by which a part of a file can be checked without the rest. "
        "SHA256SUMS has a line for SHA256BLOCKS, so that signing it (weir data sign) covers "
        "both. What is written depends on names and bytes only. A signature that does not fit any "
        "more is removed.",
    .example = "weir data manifest /data/imagenet-mds\n"
               "weir data manifest /mnt/readonly/c4 --output ~/manifests/c4",
    .json = "files, size_bytes, block_bytes, and sha256 of SHA256SUMS",
    .options = options,
    .fields = &opts,
    .run = run,
};
