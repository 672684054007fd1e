/* pack_shard.c - one shard: its samples, which come loaded, are taken apart and handed to the
 * format's writer in their order. What it makes of them is on its way to storage at once, and what
 * stands in front of them comes last; only what is to be compressed is kept until it is whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/ahead.h"
#include "data/codec.h"
#include "data/field.h"
#include "data/pack_parts.h"
#include "data/survey.h"
#include "store/store.h"
#include "util/hash.h"
#include "util/sys.h"

/* Of samples, after which what was made of them is handed on: it is still in a processor's cache,
 * and the memory that it is in stays small. */
enum { DRAIN_BYTES = 256 << 10 };

/* What makes one shard after the other: memory that was touched once is used again. */
struct weir_making {
    struct weir_making *next;
    struct weir_packing *p;
    void *writer;
    bool is_probe;       /* nothing is written */
    weir_put *put;       /* the shard, once it has begun; NULL */
    uint64_t head_bytes; /* that stand in front of it */
    uint64_t drained;    /* bytes that were handed on to it */
    /* Where each field is a file: so many were put, of so many bytes. */
    uint64_t files, file_bytes;
    struct weir_growing raw, packed;
    struct weir_field *fields; /* room for WEIR_FIELDS_MAX */
    struct weir_arena *scratch;
};

/* ---- fields ---- */

/* Leaves those that were asked for, in the order in which they were. */
static int choose(const struct weir_packing *p, struct weir_field *fields, uint32_t *count,
                  struct weir_arena **scratch)
{
    if (!p->fields)
        return 0;
    struct weir_field *kept = weir_arena_take(scratch, p->field_count * sizeof *kept);
    const char *name = p->fields;
    if (!kept)
        return weir_fail_memory();
    for (uint32_t i = 0; i < p->field_count; i++, name += strlen(name) + 1) {
        const struct weir_field *field = weir_field_find(fields, *count, name, strlen(name), i);
        if (!field)
            return weir_fail(EINVAL, "it has no field '%s'", name);
        kept[i] = *field;
    }
    memcpy(fields, kept, p->field_count * sizeof *kept);
    *count = p->field_count;
    return 0;
}

/* Where each field is a file: those of the sample that was just added. */
static int put_files(struct weir_making *m, uint64_t number)
{
    const struct weir_format_writer *writer = m->p->to_format->writer;
    struct weir_made made;
    const char *name;
    int code;
    if (!writer->file)
        return 0;
    while ((code = writer->file(m->writer, &name, &made)) > 0) {
        code = m->is_probe ? 0 : weir_pack_put_file(m->p, name, &made, number);
        if (code)
            return code;
        m->files++;
        m->file_bytes += made.body_size;
    }
    return code;
}

/* Its fields, in the form that the writer loses least of. */
static int take_apart(struct weir_making *m, const struct weir_sample *sample, bool is_stored,
                      uint32_t *count)
{
    const struct weir_format *from = m->p->from_format;
    const void *schema = weir_index_schema(m->p->from.index);
    if (is_stored)
        return from->stored(schema, sample, m->fields, count);
    if (m->p->to_format->writer->keeps_members && from->members)
        return from->members(schema, sample, &m->scratch, m->fields, count);
    return from->fields(schema, sample, &m->scratch, m->fields, count);
}

static int add_sample(struct weir_making *m, uint64_t number, const struct weir_sample *sample)
{
    struct weir_packing *p = m->p;
    uint32_t count = WEIR_FIELDS_MAX;
    const char *key = NULL;
    const struct weir_format_writer *writer = p->to_format->writer;
    const void *schema = weir_index_schema(p->from.index);
    bool is_stored = p->from_format == p->to_format && writer->add_stored;
    int code = take_apart(m, sample, is_stored, &count);
    if (!code)
        code = choose(p, m->fields, &count, &m->scratch);
    if (!code && p->from_format->key)
        code = p->from_format->key(sample, &m->scratch, &key);
    if (code)
        return code;
    if (is_stored)
        code = writer->add_stored(m->writer, schema, sample, &m->scratch, m->fields, count);
    else
        code = writer->add(m->writer, number, key, m->fields, count);
    if (!code)
        code = put_files(m, number);
    if (code == -EINVAL && !p->fields)
        weir_fail(EINVAL, "%s (--fields chooses what is kept)", strdupa(weir_fail_last()));
    return code;
}

/* ---- writing as samples come ---- */

/* A list is short, and not begun before its files are there. */
static bool is_streamed(const struct weir_packing *p)
{
    return !p->opts->codec[0] && !p->to_format->writer->file;
}

/* Somewhat more than it will have, so that its space is allocated once; 0 if that cannot be said.
 * By the first sample, which may be another than the rest: it is not believed for much. */
static uint64_t guess_bytes(const struct weir_packing *p, uint32_t i)
{
    uint64_t bytes = p->begin[i + 1] - p->begin[i], extra;
    if (p->shrinks)
        return 0;
    if (__builtin_mul_overflow(p->first[i + 1] - p->first[i], p->extra, &extra) ||
        extra > bytes / 8)
        extra = bytes / 8;
    return bytes + bytes / 64 + extra;
}

static int begin(struct weir_making *m, uint32_t i)
{
    struct weir_packing *p = m->p;
    const struct weir_format_writer *writer = p->to_format->writer;
    m->head_bytes = m->drained = 0;
    m->files = m->file_bytes = 0;
    if (!is_streamed(p))
        return 0;
    int code = 0;
    if (writer->expect)
        code = writer->expect(m->writer, p->first[i + 1] - p->first[i], &m->head_bytes);
    uint64_t guess = guess_bytes(p, i);
    if (!code)
        code = weir_pack_begin(&m->put, p, i, guess ? m->head_bytes + guess : 0);
    return code || !m->head_bytes ? code : weir_put_lead(m->put, (size_t)m->head_bytes);
}

static int drain(struct weir_making *m)
{
    struct weir_made made;
    if (!m->put)
        return 0;
    m->p->to_format->writer->drain(m->writer, &made);
    m->drained += made.body_size;
    return weir_put_write(m->put, made.body, made.body_size);
}

/* ---- reading ---- */

static int tell(const struct weir_packing *p, uint64_t bytes)
{
    const struct weir_pack_options *o = p->opts;
    if (o->progress && o->progress(o->arg, bytes))
        return weir_fail(ECANCELED, "packing was stopped: the same command goes on from there");
    return 0;
}

/* Samples [first, first + count) of a loaded piece. */
static int add_piece(struct weir_making *m, const struct weir_piece *piece, uint64_t first,
                     uint64_t count)
{
    const struct weir_supply *from = &m->p->from;
    uint64_t bytes = 0, made_bytes = 0;
    for (uint64_t n = first; n < first + count; n++) {
        struct weir_sample sample;
        int code = weir_piece_sample(piece, from, n, 0, &m->scratch, &sample);
        if (code)
            return code;
        code = add_sample(m, n, &sample);
        if (code)
            return weir_sample_fail(from, n, code);
        bytes += sample.size;
        made_bytes += sample.size;
        if (made_bytes < DRAIN_BYTES && n + 1 < first + count)
            continue;
        code = drain(m);
        if (code)
            return code;
        made_bytes = 0;
    }
    return tell(m->p, bytes);
}

static int add_range(struct weir_making *m, uint64_t first, uint64_t end)
{
    struct weir_ahead *ahead = m->p->ahead;
    struct weir_ahead_range range;
    const struct weir_piece *piece;
    uint64_t at, count;
    int code;
    weir_ahead_begin(ahead, &range, first, end);
    while ((code = weir_ahead_next(ahead, &range, &piece, &at, &count)) > 0) {
        code = add_piece(m, piece, at, count);
        weir_arena_free(m->scratch);
        m->scratch = NULL;
        if (code)
            break;
    }
    weir_ahead_end(ahead, &range);
    return code;
}

/* ---- one shard after the other ---- */

static void making_close(struct weir_making *m)
{
    weir_put_close(m->put);
    if (m->writer)
        m->p->to_format->writer->close(m->writer);
    weir_growing_free(&m->raw);
    weir_growing_free(&m->packed);
    free(m->fields);
    free(m);
}

static int making_open(struct weir_making **out, struct weir_packing *p)
{
    struct weir_making *m = weir_alloc(sizeof *m);
    if (!m)
        return weir_fail_memory();
    m->p = p;
    m->fields = weir_alloc(WEIR_FIELDS_MAX * sizeof *m->fields);
    int code = m->fields ? p->to_format->writer->open(&m->writer, &p->writing) : weir_fail_memory();
    if (code)
        making_close(m);
    else
        *out = m;
    return code;
}

/* One that is idle, or a new one. */
static int making_take(struct weir_making **out, struct weir_packing *p)
{
    pthread_mutex_lock(&p->lock);
    struct weir_making *m = p->idle;
    if (m)
        p->idle = m->next;
    pthread_mutex_unlock(&p->lock);
    *out = m;
    return m ? 0 : making_open(out, p);
}

static void making_give(struct weir_making *m)
{
    struct weir_packing *p = m->p;
    weir_put_close(m->put);
    m->put = NULL;
    pthread_mutex_lock(&p->lock);
    m->next = p->idle;
    p->idle = m;
    pthread_mutex_unlock(&p->lock);
}

void weir_pack_done(struct weir_packing *p)
{
    for (struct weir_making *m = p->idle, *next; m; m = next) {
        next = m->next;
        making_close(m);
    }
    p->idle = NULL;
}

/* If every sample becomes as many files as the first one: can they be read again? */
static int check_files(const struct weir_making *m)
{
    uint64_t files;
    if (__builtin_mul_overflow(weir_index_count(m->p->from.index), m->files, &files))
        files = UINT64_MAX;
    return files <= WEIR_SURVEY_FILES_MAX
               ? 0
               : weir_fail(EFBIG,
                           "that makes about %" PRIu64 " files, and a dataset of files has at most "
                           "%d: choose a format with shards",
                           files, WEIR_SURVEY_FILES_MAX);
}

static int probe(struct weir_making *m)
{
    struct weir_packing *p = m->p;
    const struct weir_format_writer *writer = p->to_format->writer;
    const struct weir_pack_options *opts = p->opts;
    struct weir_pack_options quiet = *opts;
    quiet.progress = NULL;
    m->is_probe = true;
    p->opts = &quiet;
    int code = add_range(m, 0, 1);
    p->opts = opts;
    if (!code)
        code = check_files(m);
    if (code)
        return code;
    struct weir_made made;
    struct weir_place place;
    writer->drain(m->writer, &made);
    code = weir_index_find(p->from.index, 0, &place);
    if (code)
        return code;
    p->shrinks = made.body_size < place.size;
    p->extra = p->shrinks ? 0 : made.body_size - place.size;
    if (!writer->schema)
        return code;
    code = writer->schema(m->writer, &p->schema);
    if (!code)
        code = weir_growing_add(&p->schema, "", 1);
    if (!code)
        weir_sha256(p->schema_sha256, p->schema.data, p->schema.size - 1);
    if (!code)
        p->writing.schema = (const char *)p->schema.data;
    return code;
}

int weir_pack_probe(struct weir_packing *p)
{
    struct weir_making *m = NULL;
    int code = making_open(&m, p);
    if (code)
        return code;
    code = probe(m);
    making_close(m);
    return code;
}

/* The file beside a shard is there before the shard is. */
static int put_beside(struct weir_making *m, uint32_t i)
{
    struct weir_packing *p = m->p;
    char name[64], meta[2 * WEIR_SHA256_BYTES + 64];
    m->raw.size = 0;
    int code = p->to_format->writer->beside(m->writer, name, i, &m->raw);
    if (code != 1)
        return code;
    snprintf(meta, sizeof meta, "{\"pack\": \"%s\", \"beside\": %" PRIu32 "}", p->digest, i);
    struct weir_made made = {.body = m->raw.data, .body_size = m->raw.size};
    return weir_pack_put(p, name, &made, meta, NULL);
}

/* Of one piece it makes another. */
static int compress(struct weir_making *m, struct weir_made *made)
{
    m->raw.size = m->packed.size = 0;
    int code = weir_made_join(made, &m->raw);
    if (!code)
        code = weir_codec_encode(m->p->opts->codec, m->raw.data, m->raw.size, &m->packed);
    *made = (struct weir_made){.body = m->packed.data, .body_size = m->packed.size};
    return code;
}

/* The rest of what was begun. */
static int write_rest(struct weir_making *m, const struct weir_made *made)
{
    if (made->head_size != m->head_bytes)
        return weir_fail(EINVAL, "%zu bytes in front of a shard where %" PRIu64 " were expected",
                         made->head_size, m->head_bytes);
    if (made->head_size)
        weir_put_head(m->put, made->head, made->head_size);
    return weir_put_write(m->put, made->body, made->body_size);
}

/* Writes and seals what the writer has made. */
static int finish(struct weir_making *m, uint32_t i)
{
    struct weir_packing *p = m->p;
    struct weir_written *w = &p->written[i];
    struct weir_made made;
    int code = p->to_format->writer->beside ? put_beside(m, i) : 0;
    if (!code)
        code = p->to_format->writer->finish(m->writer, &made);
    if (code)
        return code;
    w->samples = m->files ? m->files : p->first[i + 1] - p->first[i];
    w->raw_bytes = m->files ? m->file_bytes : made.head_size + m->drained + made.body_size;
    if (p->opts->codec[0])
        code = compress(m, &made);
    if (!code && !m->put)
        code = weir_pack_begin(&m->put, p, i, made.body_size);
    w->file_bytes = made.head_size + m->drained + made.body_size;
    if (!code)
        code = write_rest(m, &made);
    if (!code)
        code = weir_pack_seal(p, i, m->put);
    return weir_pack_settle(p, i, code);
}

/* begun: it was not there, as far as one could see. */
static int make(struct weir_packing *p, uint32_t i, bool *begun)
{
    struct weir_making *m = NULL;
    int code = making_take(&m, p);
    if (code)
        return code;
    code = begin(m, i);
    *begun = !code;
    if (!code)
        code = add_range(m, p->first[i], p->first[i + 1]);
    if (!code)
        code = finish(m, i);
    if (!code) {
        making_give(m);
        return 0;
    }
    /* Half a shard may be in it. What ends with it must not say something else. */
    char text[WEIR_TEXT_MAX];
    memcpy(text, weir_fail_last(), sizeof text);
    making_close(m);
    return weir_fail_text(code, text);
}

int weir_pack_shard(struct weir_packing *p, uint32_t i)
{
    bool begun = false;
    int code = weir_pack_find(p, i);
    if (!code) {
        code = make(p, i, &begun);
        if (code != -EEXIST || begun)
            return code;
        code = weir_pack_settle(p, i, code);
        code = code ? code : 1;
    }
    if (code < 0)
        return code;
    p->kept++;
    if (p->to_format->writer->file)
        p->files_kept += p->written[i].samples;
    return tell(p, p->begin[i + 1] - p->begin[i]);
}
