/* pack_mark.c - what was packed already: pack.weir says what is being made, the metadata of each
 * shard's seal say that it belongs to that, and what an index needs to know of it.
 *
 * pack.weir has nothing in it that depends on the time or the place, so that two packs of the same
 * are the same in every byte. When the source was last written to is in its metadata.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/pack_parts.h"
#include "store/store.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/sys.h"

enum { MARK_BYTES_MAX = 65536 };

int weir_pack_key(char out[WEIR_KEY_BYTES_MAX + 1], const struct weir_packing *p, const char *name)
{
    int size = snprintf(out, WEIR_KEY_BYTES_MAX + 1, "%s%s", p->prefix, name);
    return size <= WEIR_KEY_BYTES_MAX
               ? 0
               : weir_fail(ENAMETOOLONG, "'%s%s' is too long", p->prefix, name);
}

/* ---- objects with metadata ---- */

void weir_pack_file_meta(char out[WEIR_PACK_META_BYTES], const struct weir_packing *p,
                         uint64_t number)
{
    snprintf(out, WEIR_PACK_META_BYTES, "{\"pack\": \"%s\", \"sample\": %" PRIu64 "}", p->digest,
             number);
}

bool weir_pack_is_file(const struct weir_packing *p, const weir_info *info, uint64_t *number)
{
    char text[WEIR_PACK_META_BYTES], again[WEIR_PACK_META_BYTES];
    if (info->kind != WEIR_KIND_SEALED || info->meta_bytes >= sizeof text)
        return false;
    memcpy(text, info->meta, info->meta_bytes);
    text[info->meta_bytes] = 0;
    if (sscanf(text, "{\"pack\": \"%*64[0-9a-f]\", \"sample\": %" SCNu64 "}", number) != 1)
        return false;
    weir_pack_file_meta(again, p, *number);
    return !strcmp(text, again);
}

static int refuse(const struct weir_packing *p, const weir_info *info)
{
    uint64_t number;
    if (weir_pack_is_file(p, info, &number))
        return weir_fail(EEXIST,
                         "'%s' is there already, as a file of sample %" PRIu64
                         ": two files cannot have one name (choose other --fields, or pack the "
                         "shards that they are in each into a place of its own)",
                         info->key, number);
    return weir_fail(EEXIST,
                     "'%s' is there already, and is no part of this pack: remove it, or "
                     "choose another place",
                     info->key);
}

/* 1 if it is there with just this metadata (NULL: with any); 0 if nothing is; -EEXIST. */
static int is_there(weir_object **out, const struct weir_packing *p, const char *key,
                    const char *meta)
{
    weir_object *obj = NULL;
    int code = weir_object_open(&obj, p->store, key);
    if (code)
        return code == -ENOENT ? 0 : code;
    const weir_info *info = weir_object_info(obj);
    if (info->kind == WEIR_KIND_SEALED &&
        (!meta || (info->meta_bytes == strlen(meta) && !memcmp(info->meta, meta, strlen(meta))))) {
        weir_object_settle(obj);
        *out = obj;
        return 1;
    }
    code = refuse(p, info);
    weir_object_close(obj);
    return code;
}

static int put_new(weir_store *store, const char *key, const struct weir_made *made,
                   const char *meta, bool *is_named)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = WEIR_PIECE_BLOCK;
    opts.size_bytes = made->head_size + made->body_size;
    opts.meta = meta;
    opts.meta_bytes = strlen(meta);
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = weir_put_write(put, made->head, made->head_size);
    if (!code)
        code = weir_put_write(put, made->body, made->body_size);
    if (!code)
        code = weir_put_commit(put, NULL);
    if (is_named)
        *is_named = !code && weir_put_is_named(put);
    weir_put_close(put);
    return code;
}

int weir_pack_put(struct weir_packing *p, const char *name, const struct weir_made *made,
                  const char *meta, bool *is_named)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    weir_object *obj = NULL;
    int code = weir_pack_key(key, p, name);
    if (code)
        return code;
    code = put_new(p->store, key, made, meta, is_named);
    if (code != -EEXIST)
        return code;
    code = is_there(&obj, p, key, meta); /* another process does the same */
    if (code == 1)
        weir_object_close(obj);
    return code == 1 ? 0 : code ? code : weir_fail(EAGAIN, "'%s' comes and goes: try again", key);
}

/* ---- the mark ---- */

static void put_hex(struct weir_json_out *out, const uint8_t *sha256)
{
    char hex[2 * WEIR_SHA256_BYTES + 1];
    weir_hex(hex, sha256, WEIR_SHA256_BYTES);
    weir_json_put_string(out, hex, strlen(hex));
}

/* What is made of what. */
static void write_mark(struct weir_json_out *out, const struct weir_packing *p)
{
    const struct weir_pack_options *o = p->opts;
    weir_json_puts(out, "{\"pack\": 1, \"format\": ");
    weir_json_put_string(out, o->format, strlen(o->format));
    weir_json_puts(out, ", \"compression\": ");
    weir_json_put_string(out, o->codec, strlen(o->codec));
    weir_json_puts(out, ", \"shard_bytes\": ");
    weir_json_put_uint(out, o->shard_bytes);
    weir_json_puts(out, ", \"fields\": ");
    if (o->fields)
        weir_json_put_string(out, o->fields, strlen(o->fields));
    else
        weir_json_puts(out, "null");
    if (o->columns) {
        weir_json_puts(out, ", \"columns\": ");
        weir_json_put_string(out, o->columns, strlen(o->columns));
    }
    if (p->schema.size) { /* each shard is written by it */
        weir_json_puts(out, ", \"schema\": ");
        put_hex(out, p->schema_sha256);
    }
    if (p->layout.size) {
        weir_json_puts(out, ", \"tokens\": ");
        weir_json_puts(out, (const char *)p->layout.data);
    }
    weir_json_puts(out, ", \"source\": ");
    put_hex(out, weir_index_digest(p->from.index));
    weir_json_puts(out, ", \"samples\": ");
    weir_json_put_uint(out, weir_index_count(p->from.index));
    weir_json_puts(out, ", \"shards\": ");
    weir_json_put_uint(out, p->shards);
    weir_json_puts(out, "}\n");
}

/* 1 if there is a file already, anybody's, with its name; 0 if the place is empty. */
static int find_any(char name[WEIR_KEY_BYTES_MAX + 1], struct weir_packing *p)
{
    const weir_entry *entry;
    weir_list *list;
    int code = weir_list_open(&list, p->store, p->prefix, WEIR_LIST_RECURSIVE);
    if (code)
        return code == -ENOENT ? 0 : code;
    while ((code = weir_list_next(list, &entry)) == 1)
        if (!entry->is_dir)
            break;
    if (code == 1)
        snprintf(name, WEIR_KEY_BYTES_MAX + 1, "%s", entry->key);
    weir_list_close(list);
    return code;
}

/* A mark is there: is it this one? */
static int check_mark(weir_object *obj, const struct weir_json_out *text, const char *meta)
{
    const weir_info *info = weir_object_info(obj);
    char old[MARK_BYTES_MAX];
    size_t got;
    if (info->size_bytes >= sizeof old)
        return weir_fail(EEXIST, "'%s' is no mark of a pack", info->key);
    int code = weir_object_read(obj, old, sizeof old, 0, &got);
    if (code)
        return code;
    if (!got || got != text->size || memcmp(old, text->text, got))
        return weir_fail(EEXIST,
                         "another source was packed there, or with other options (%.*s): remove "
                         "it, or choose another place",
                         got ? (int)got - 1 : 0, old);
    if (info->meta_bytes != strlen(meta) || memcmp(info->meta, meta, info->meta_bytes))
        return weir_fail(EEXIST,
                         "the source was written to since '%s' was made: remove what was packed, "
                         "or choose another place",
                         info->key);
    return 0;
}

/* 0: the mark is ours; 1: another process's, which began just now. */
static int begin_mark(weir_object **obj, struct weir_packing *p, const char *key,
                      const struct weir_json_out *text, const char *meta)
{
    struct weir_made made = {.body = (const uint8_t *)text->text, .body_size = text->size};
    char other[WEIR_KEY_BYTES_MAX + 1];
    int found = find_any(other, p);
    int code = found ? found : put_new(p->store, key, &made, meta, NULL);
    if (code != 1 && code != -EEXIST)
        return code;
    code = is_there(obj, p, key, NULL);
    if (code)
        return code;
    return found ? weir_fail(ENOTEMPTY,
                             "'%s' is there already: a dataset is packed into an empty place, or "
                             "where the same was begun",
                             other)
                 : weir_fail(EAGAIN, "'%s' comes and goes: try again", key);
}

static int settle_mark(struct weir_packing *p, const char *key, const struct weir_json_out *text,
                       const char *meta)
{
    weir_object *obj = NULL;
    int code = is_there(&obj, p, key, NULL);
    if (!code)
        code = begin_mark(&obj, p, key, text, meta);
    if (code == 1) {
        code = check_mark(obj, text, meta);
        weir_object_close(obj);
    }
    return code;
}

int weir_pack_mark(struct weir_packing *p)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    uint8_t sha256[WEIR_SHA256_BYTES];
    struct weir_sha256_stream stream;
    struct weir_json_out text = {0}, meta = {0};
    write_mark(&text, p);
    weir_json_puts(&meta, "{\"written\": ");
    put_hex(&meta, weir_index_fingerprint(p->from.index));
    weir_json_put(&meta, "}", sizeof "}");
    int code =
        text.failed || meta.failed ? weir_fail_memory() : weir_pack_key(key, p, WEIR_PACK_MARK);
    if (!code)
        code = weir_sha256_begin(&stream);
    if (!code) {
        weir_sha256_more(&stream, text.text, text.size);
        weir_sha256_more(&stream, meta.text, meta.size);
        weir_sha256_end(&stream, sha256);
        weir_hex(p->digest, sha256, sizeof sha256);
        code = settle_mark(p, key, &text, meta.text);
    }
    free(text.text);
    free(meta.text);
    return code;
}

/* ---- shards ---- */

/* The parts that are known before a shard is made, and those that are not. */
static void write_meta(char out[WEIR_PACK_META_BYTES], const struct weir_packing *p, uint32_t i)
{
    const struct weir_written *w = &p->written[i];
    snprintf(out, WEIR_PACK_META_BYTES,
             "{\"pack\": \"%s\", \"shard\": %" PRIu32 ", \"samples\": %" PRIu64
             ", \"raw_bytes\": %" PRIu64 "}",
             p->digest, i, w->samples, w->raw_bytes);
}

/* Metadata as write_meta() writes them; false if they are others. */
static bool read_meta(struct weir_packing *p, uint32_t i, const weir_info *info)
{
    struct weir_written *w = &p->written[i];
    char text[WEIR_PACK_META_BYTES], again[WEIR_PACK_META_BYTES], digest[65];
    uint32_t number;
    if (info->kind != WEIR_KIND_SEALED || info->meta_bytes >= sizeof text)
        return false;
    memcpy(text, info->meta, info->meta_bytes);
    text[info->meta_bytes] = 0;
    if (sscanf(text,
               "{\"pack\": \"%64[0-9a-f]\", \"shard\": %" SCNu32 ", \"samples\": %" SCNu64
               ", \"raw_bytes\": %" SCNu64 "}",
               digest, &number, &w->samples, &w->raw_bytes) != 4)
        return false;
    w->file_bytes = info->size_bytes;
    write_meta(again, p, i);
    return !strcmp(text, again) &&
           (p->to_format->writer->file || w->samples == p->first[i + 1] - p->first[i]);
}

int weir_pack_find(struct weir_packing *p, uint32_t i)
{
    struct weir_written *w = &p->written[i];
    char key[WEIR_KEY_BYTES_MAX + 1];
    weir_object *obj = NULL;
    p->to_format->writer->name(w->name, i, p->opts->codec);
    int code = weir_pack_key(key, p, w->name);
    if (!code)
        code = weir_object_open(&obj, p->store, key);
    if (code)
        return code == -ENOENT ? 0 : code;
    const weir_info *info = weir_object_info(obj);
    code = read_meta(p, i, info) ? 1 : refuse(p, info);
    if (code == 1) {
        weir_object_settle(obj);
        int named = p->to_format->writer->file ? weir_pack_names(p, obj) : 0;
        code = named ? named : 1;
    }
    weir_object_close(obj);
    return code;
}

int weir_pack_begin(weir_put **out, struct weir_packing *p, uint32_t i, uint64_t bytes)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = WEIR_PIECE_BLOCK;
    opts.size_bytes = bytes;
    int code = weir_pack_key(key, p, p->written[i].name);
    return code ? code : weir_put_open(out, p->store, key, &opts);
}

int weir_pack_settle(struct weir_packing *p, uint32_t i, int code)
{
    if (code != -EEXIST)
        return code;
    code = weir_pack_find(p, i);
    return code == 1 ? 0
           : code    ? code
                     : weir_fail(EAGAIN, "'%s' comes and goes: try again", p->written[i].name);
}

int weir_pack_seal(struct weir_packing *p, uint32_t i, weir_put *put)
{
    char meta[WEIR_PACK_META_BYTES];
    write_meta(meta, p, i);
    int code = weir_put_meta(put, meta, strlen(meta));
    return code ? code : weir_put_commit(put, NULL);
}
