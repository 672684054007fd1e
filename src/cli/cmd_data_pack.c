/* cmd_data_pack.c - weir data pack: a dataset written anew, as shards. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dataset.h"
#include "cli/pack_place.h"
#include "cli/progress.h"
#include "cli/proof.h"
#include "cli/stop.h"
#include "data/pack.h"
#include "util/err.h"
#include "util/sys.h"

static struct {
    const char *format, *compression, *fields, *columns, *layout, *dtype, *source_format, *options;
    struct signed_opts source_signed;
    uint64_t shard_bytes, jobs, memory;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"format", 0, WEIR_OPT_TEXT, AT(format), NULL, "FORMAT",
     "what is written: mds, wds, tfrecord, jsonl, tokens or files", 0, 0},
    {"shard-size", 0, WEIR_OPT_SIZE, AT(shard_bytes), "64M", "SIZE",
     "bytes of samples in a shard, as the source has them (of files: in one list)",
     WEIR_PACK_SHARD_BYTES_MIN, WEIR_PACK_SHARD_BYTES_MAX},
    {"compression", 'c', WEIR_OPT_TEXT, AT(compression), "", "CODEC",
     "of whole shards: zstd, gz, bz2, br, snappy, with a level as in zstd:3", 0, 0},
    {"fields", 0, WEIR_OPT_TEXT, AT(fields), NULL, "A,B",
     "keep only these fields, in this order (default: all)", 0, 0},
    {"columns", 0, WEIR_OPT_TEXT, AT(columns), NULL, "NAME:ENCODING,…",
     "of mds: the encodings of these columns, as in image:jpeg,box:ndarray:int16:2,2 (default: as "
     "in a source that is mds, else as their values are)",
     0, 0},
    {"layout", 0, WEIR_OPT_TEXT, AT(layout), NULL, "LAYOUT",
     "of token files: llm.c, nanogpt, or megatron, which has an .idx beside each .bin (default: "
     "megatron if an index says where documents begin, else llm.c)",
     0, 0},
    {"dtype", 0, WEIR_OPT_TEXT, AT(dtype), NULL, "TYPE",
     "of token files: u16 or u32, which is i32 in megatron's (default: as the source's)", 0, 0},
    {"jobs", 'j', WEIR_OPT_NUMBER, AT(jobs), "4", "N",
     "shards made at once, in memory if they are compressed", 1, WEIR_PACK_JOBS_MAX},
    {"memory", 0, WEIR_OPT_SIZE, AT(memory), "4G", "SIZE",
     "for shards of the source that are decompressed, two for each job: no more jobs than that", 1,
     0},
    {"source-format", 0, WEIR_OPT_TEXT, AT(source_format), NULL, "FORMAT",
     "what is read (default: as it looks)", 0, 0},
    {"source-options", 0, WEIR_OPT_TEXT, AT(options), NULL, "A=B&C=D",
     "options of the source's format, such as seq_len=2048", 0, 0},
    SIGNED_OPTIONS(AT(source_signed)),
    {0},
};

struct packing {
    struct proof_bar bar; /* first: proof.h takes this for it */
    struct pack_place place;
    struct weir_pack_result result;
    uint64_t start_ns, index_total;
};

static int on_indexing(void *arg, uint64_t more, uint64_t total)
{
    struct packing *p = arg;
    if (total && !p->index_total)
        progress_start(p->bar.cli, "indexing", p->index_total = total, 0, false);
    progress_bytes(more);
    return stop_asked();
}

static int open_source(weir_data **out, struct packing *p, const char *url)
{
    weir_data_options data;
    char *pem = NULL;
    weir_data_options_init(&data);
    int code = dataset_signed(&data, &pem, &opts.source_signed);
    if (code)
        return code;
    data.format = opts.source_format;
    data.options = opts.options;
    data.progress = on_indexing;
    data.progress_arg = p;
    code = weir_pack_open(out, url, &data, opts.format);
    progress_end();
    free(pem);
    return code;
}

/* Weir's own index, beside the shards: who opens it next need not make one. */
static int make_index(struct packing *p)
{
    weir_data *data;
    weir_data_options how;
    weir_data_options_init(&how);
    how.flags = WEIR_DATA_BESIDE;
    how.format = opts.format;
    how.progress = on_indexing;
    how.progress_arg = p;
    p->index_total = 0;
    int code = weir_data_open(&data, p->bar.cli->operands[1], &how);
    progress_end();
    if (code)
        return code;
    uint64_t samples = weir_data_count(data);
    weir_data_close(data);
    uint64_t expected = p->result.files ? p->result.files : p->result.samples;
    if (samples != expected)
        return weir_fail(EBADMSG, "the packed dataset has %llu samples where there should be %llu",
                         (unsigned long long)samples, (unsigned long long)expected);
    return 0;
}

static void report(struct cli *cli, const struct packing *p)
{
    const struct weir_pack_result *r = &p->result;
    double seconds = (double)(weir_sys->now_ns(WEIR_CLOCK_MONO) - p->start_ns) / 1e9;
    char from[32], to[32], rate[32], kept[64] = "";
    bool is_files = r->files;
    unsigned long long made = is_files ? r->files : r->shards;
    unsigned long long there = is_files ? r->files_kept : r->shards_kept;
    if (there)
        snprintf(kept, sizeof kept, " (%llu were there)", there);
    cli_say(cli, "%llu sample%s (%s) in %llu %s%s%s (%s), %s/s", (unsigned long long)r->samples,
            r->samples == 1 ? "" : "s", weir_format_size(from, sizeof from, r->source_bytes), made,
            is_files ? "file" : "shard", made == 1 ? "" : "s", kept,
            weir_format_size(to, sizeof to, r->file_bytes),
            weir_format_size(rate, sizeof rate,
                             (uint64_t)((double)r->source_bytes / (seconds > 0 ? seconds : 1))));
    if (is_files && !r->has_names)
        cli_note(cli, "this store has no files by name: what was packed is read through Weir "
                      "(weir get -r makes files of it)");
    if (!cli->json)
        return;
    cli->doc = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f}", "samples", (json_int_t)r->samples,
                         "shards", (json_int_t)r->shards, "shards_kept", (json_int_t)r->shards_kept,
                         "source_bytes", (json_int_t)r->source_bytes, "size_bytes",
                         (json_int_t)r->file_bytes, "seconds", seconds);
    if (is_files) {
        json_object_set_new(cli->doc, "files", json_integer((json_int_t)r->files));
        json_object_set_new(cli->doc, "files_kept", json_integer((json_int_t)r->files_kept));
    }
}

static int open_place(void *arg, weir_store **store, const char **prefix)
{
    struct packing *p = arg;
    int code = pack_place_open(p->bar.cli, &p->place, p->bar.cli->operands[1]);
    *store = p->place.store;
    *prefix = p->place.prefix;
    return code;
}

static int pack(struct cli *cli, struct packing *p, weir_data *source)
{
    const struct weir_pack_options how = {
        .format = opts.format,
        .codec = opts.compression,
        .fields = opts.fields,
        .columns = opts.columns,
        .layout = opts.layout,
        .dtype = opts.dtype,
        .shard_bytes = opts.shard_bytes,
        .jobs = (uint32_t)opts.jobs,
        .memory_bytes_max = opts.memory,
        .total = proof_total,
        .progress = proof_progress,
        .place = open_place,
        .arg = p,
    };
    p->start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    int code = weir_pack_run(&p->result, source, NULL, NULL, &how);
    progress_end();
    if (!code && strcmp(opts.format, "tokens")) /* whose samples are what the reader says */
        code = make_index(p);
    if (!code)
        report(cli, p);
    return code;
}

static int run(struct cli *cli)
{
    struct packing p = {.bar = {cli, "packing"}};
    weir_data *source = NULL;
    if (!opts.format)
        return cli_usage(cli, "--format is missing: what shall be written");
    stop_politely();
    int code = open_source(&source, &p, cli->operands[0]);
    if (!code)
        code = pack(cli, &p, source);
    if (code == -ENOSPC || code == -EDQUOT)
        code = weir_fail(-code, "%s: the same command goes on once there is room",
                         strdupa(weir_fail_last()));
    weir_data_close(source);
    pack_place_close(&p.place);
    return code == -ECANCELED ? stop_fail() : code;
}

const struct command cmd_data_pack = {
    .name = "data pack",
    .operands = "SRC DST",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Write a dataset anew: as shards, in another format, compressed",
    .about =
        "Reads the dataset SRC, in any format that can be opened (a tree of small files, too), and "
        "writes its samples, in their order, as shards below DST, with the index file that other "
        "libraries of that format want, and Weir's own. DST becomes a store if it is not in one: "
        "the shards are ordinary files with ordinary names in it, and every block of them has a "
        "fingerprint.\n\n"
        "The same source and options make the same bytes, whatever --jobs is. If it is stopped or "
        "killed, the same command goes on from there; several of them may run at once, also on "
        "several machines. DST must be empty, or such a beginning.\n\n"
        "Token files that become token files keep every token, in their order; cut into samples "
        "for another format, they are those that 'weir data cat' shows, which overlap by one "
        "token, unless --source-options has overlap=0. A document that is cut by the end of a "
        "shard is two in megatron's layout.\n\n"
        "As 'files', each field becomes a file, named by its sample (what it is called, or its "
        "number) and the field; a sample with the fields data and path becomes the file of that "
        "path, below DST. Each is sealed, and a list in .pack/ says which are complete, for up to "
        "1,024 samples at once. Two files of one name are an error.\n\n"
        "Fields keep their names. One that the format cannot hold is an error that names it; "
        "--fields chooses which are kept. MDS that becomes MDS keeps the encoding of every column, "
        "and its bytes as they stand; --columns names other encodings, any but pkl, and what does "
        "not fit one is an error, too.\n\n"
        "With --key, nothing is packed but what the owner of SRC has signed.",
    .example = "weir data pack ./images ./shards --format wds\n"
               "weir data pack ./shards ./mds --format mds --compression zstd:3 --jobs 8\n"
               "weir data pack ./images ./mds --format mds --columns data:jpeg\n"
               "weir data pack ./shards ./tree --format files --fields jpg,cls\n"
               "weir data pack ./train.bin ./corpus --format tokens \\\n"
               "    --layout megatron --source-options eot=50256",
    .json =
        "samples, shards, shards_kept (of those: they were there), source_bytes (of the "
        "samples), size_bytes (of the shards, or files), seconds; of files, which are listed in "
        "shards, files and files_kept (of whole lists) too",
    .options = options,
    .fields = &opts,
    .run = run,
};
