/* pack.c - see pack.h. */
#include "data/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/ahead.h"
#include "data/codec.h"
#include "data/pack_parts.h"
#include "store/store.h"
#include "util/json.h"
#include "util/sys.h"
#include "util/team.h"
#include "util/utf8.h"

/* Memory for pieces that is kept for the next: of all jobs together. */
#define SLAB_BYTES       ((uint64_t)256 << 20)
#define MEMORY_BYTES_MAX ((uint64_t)4 << 30)

/* "a,b" becomes two names. */
static int read_fields(struct weir_packing *p)
{
    const char *given = p->opts->fields;
    if (!given)
        return 0;
    p->fields = weir_strdup(given);
    if (!p->fields)
        return weir_fail_memory();
    p->field_count = 1;
    for (char *at = p->fields; (at = strchr(at, ',')); at++) {
        *at = 0;
        p->field_count++;
    }
    const char *name = p->fields;
    for (uint32_t i = 0; i < p->field_count; i++, name += strlen(name) + 1)
        if (!*name)
            return weir_fail(EINVAL, "'%s': names of fields with commas between them", given);
    return p->field_count <= WEIR_FIELDS_MAX
               ? 0
               : weir_fail(EINVAL, "more than %d fields", WEIR_FIELDS_MAX);
}

/* How token files are to be written, as their writer reads it. */
static int read_layout(struct weir_packing *p)
{
    const char *layout = p->opts->layout, *dtype = p->opts->dtype;
    struct weir_json_out text = {0};
    if (!layout && !dtype)
        return 0;
    if (p->to_format != &weir_format_tokens)
        return weir_fail(EINVAL, "layout and dtype are of token files, not of '%s'",
                         p->opts->format);
    weir_json_puts(&text, layout ? "{\"layout\": " : "{\"dtype\": ");
    weir_json_put_string(&text, layout ? layout : dtype, strlen(layout ? layout : dtype));
    if (layout && dtype) {
        weir_json_puts(&text, ", \"dtype\": ");
        weir_json_put_string(&text, dtype, strlen(dtype));
    }
    weir_json_put(&text, "}", sizeof "}");
    int code =
        text.failed ? weir_fail_memory() : weir_growing_add(&p->layout, text.text, text.size);
    free(text.text);
    p->writing.schema = (const char *)p->layout.data;
    return code;
}

static int check_columns(const struct weir_packing *p)
{
    if (p->opts->columns && p->to_format != &weir_format_mds)
        return weir_fail(EINVAL, "columns are of mds, not of '%s'", p->opts->format);
    if (p->opts->columns && !weir_utf8_valid(p->opts->columns, strlen(p->opts->columns)))
        return weir_fail(EINVAL, "--columns is not UTF-8, and names are JSON in MDS");
    return 0;
}

static int check(struct weir_packing *p)
{
    const struct weir_pack_options *o = p->opts;
    p->to_format = weir_format_find(o->format);
    if (!p->to_format)
        return weir_format_fail(o->format, true);
    if (!p->to_format->writer)
        return weir_fail(EINVAL, "'%s' is only read, not written", o->format);
    if (o->shard_bytes < WEIR_PACK_SHARD_BYTES_MIN || o->shard_bytes > WEIR_PACK_SHARD_BYTES_MAX)
        return weir_fail(EINVAL, "shards of %" PRIu64 " bytes: they have 64 KiB to 1 GiB",
                         o->shard_bytes);
    if (!weir_index_count(p->from.index))
        return weir_fail(EINVAL, "'%s' has no samples", weir_data_info_get(p->from.data)->url);
    if (p->to_format->writer->file && o->codec[0])
        return weir_fail(EINVAL, "%s are written as they are: there is no compression of them",
                         p->to_format->name);
    int code = weir_codec_check(o->codec);
    if (!code)
        code = read_layout(p);
    if (!code)
        code = check_columns(p);
    return code ? code : read_fields(p);
}

/* Each job writes a shard; a file beside that is another. */
static uint32_t jobs_of(const struct weir_packing *p)
{
    uint32_t most = weir_store_writers_max(p->store) / (p->to_format->writer->beside ? 2 : 1);
    return p->jobs < most ? p->jobs : most;
}

/* A shard of the source that is compressed comes as a whole, and each job has two: there are no
 * more jobs than memory for them. */
static int check_memory(struct weir_packing *p)
{
    uint64_t shards = weir_index_shards(p->from.index), largest = 0, need;
    uint64_t most = p->opts->memory_bytes_max ? p->opts->memory_bytes_max : MEMORY_BYTES_MAX;
    uint64_t pieces = shards < WEIR_AHEAD_PIECES_MIN ? shards : WEIR_AHEAD_PIECES_MIN;
    for (uint64_t i = 0; i < shards; i++) {
        struct weir_index_shard shard;
        weir_index_shard(p->from.index, i, &shard);
        if (shard.codec[0] && shard.raw_bytes > largest)
            largest = shard.raw_bytes;
    }
    p->jobs = p->opts->jobs;
    if (__builtin_mul_overflow(largest, pieces, &need) || need > most)
        return weir_fail(EINVAL,
                         "the largest shard of '%s' has %" PRIu64 " bytes when it is decompressed, "
                         "%" PRIu64 " such would be held, and %" PRIu64
                         " bytes are allowed: allow more with --memory",
                         weir_data_info_get(p->from.data)->url, largest, pieces, most);
    if (need && most / need < p->jobs)
        p->jobs = (uint32_t)(most / need);
    return 0;
}

static int one_shard(void *arg, uint64_t i)
{
    return weir_pack_shard(arg, (uint32_t)i);
}

/* The file that other libraries want beside the shards. */
static int write_index(struct weir_packing *p)
{
    const struct weir_format_writer *w = p->to_format->writer;
    struct weir_growing text = {0};
    char meta[2 * WEIR_SHA256_BYTES + 16];
    void *writer;
    if (!w->index_name)
        return 0;
    int code = w->open(&writer, &p->writing);
    if (code)
        return code;
    code = w->index(&p->writing, writer, p->written, p->shards, &text);
    w->close(writer);
    struct weir_made made = {.body = text.data, .body_size = text.size};
    snprintf(meta, sizeof meta, "{\"pack\": \"%s\"}", p->digest);
    if (!code)
        code = weir_pack_put(p, w->index_name, &made, meta, NULL);
    weir_growing_free(&text);
    return code;
}

static int pack(struct weir_packing *p)
{
    const struct weir_pack_options *o = p->opts;
    int code = check(p);
    if (!code)
        code = weir_ahead_open(&p->ahead, &p->from);
    if (!code)
        code = check_memory(p);
    if (!code)
        code = weir_pack_probe(p); /* what cannot be packed at all leaves nothing */
    if (!code)
        code = weir_pack_plan(p);
    if (!code && !p->store)
        code = o->place(o->arg, &p->store, &p->prefix);
    if (!code)
        code = weir_pack_mark(p);
    if (!code && o->total)
        o->total(o->arg, weir_index_count(p->from.index), p->begin[p->shards]);
    if (!code)
        code = weir_team_run(jobs_of(p), p->shards, one_shard, p);
    return code ? code : write_index(p);
}

static void tell(struct weir_pack_result *out, const struct weir_packing *p)
{
    *out = (struct weir_pack_result){
        .samples = p->first[p->shards],
        .shards = p->shards,
        .shards_kept = p->kept,
        .source_bytes = p->begin[p->shards],
    };
    bool is_files = p->to_format->writer->file;
    for (uint32_t i = 0; i < p->shards; i++) {
        const struct weir_written *w = &p->written[i];
        out->file_bytes += is_files ? w->raw_bytes : w->file_bytes;
        out->files += is_files ? w->samples : 0;
    }
    out->files_kept = p->files_kept;
    out->has_names = weir_store_has_names(p->store);
}

int weir_pack_open(weir_data **out, const char *url, const weir_data_options *opts,
                   const char *format)
{
    weir_data_options apart = *opts;
    const char *given = opts->options ? opts->options : "";
    if (strcmp(format, weir_format_tokens.name) || strstr(given, "overlap="))
        return weir_data_open(out, url, opts);
    size_t size = strlen(given) + sizeof "&overlap=0";
    char *options = weir_alloc(size);
    if (!options)
        return weir_fail_memory();
    snprintf(options, size, "%s%soverlap=0", given, *given ? "&" : "");
    apart.options = options;
    int code = weir_data_open(out, url, &apart);
    free(options);
    /* Other formats have no such option, and say so before they read anything. */
    return code == -EINVAL ? weir_data_open(out, url, opts) : code;
}

int weir_pack_run(struct weir_pack_result *out, weir_data *source, weir_store *store,
                  const char *prefix, const struct weir_pack_options *opts)
{
    const struct weir_index *index = weir_data_index(source);
    struct weir_packing p = {
        .opts = opts,
        .from = {.data = source,
                 .store = weir_data_store(source),
                 .prefix = weir_data_prefix(source),
                 .index = index,
                 .once = true},
        .from_format = weir_index_format(index),
        .store = store,
        .prefix = prefix,
        .writing = {.codec = opts->codec, .columns = opts->columns},
    };
    int code = weir_data_check(source);
    if (!code)
        code = weir_slabs_open(&p.from.slabs, SLAB_BYTES);
    if (code)
        return code;
    pthread_mutex_init(&p.lock, NULL);
    code = pack(&p);
    if (!code)
        tell(out, &p);
    weir_pack_done(&p);
    weir_ahead_close(p.ahead);
    pthread_mutex_destroy(&p.lock);
    weir_slabs_close(p.from.slabs);
    weir_growing_free(&p.schema);
    weir_growing_free(&p.layout);
    free(p.fields);
    free(p.first);
    free(p.begin);
    free(p.written);
    return code;
}
