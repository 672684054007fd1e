/* dataset.c - opening a dataset: which store it is in, which format it has, and its index, which is
 * found beside it or in the cache, or made.
 */
#include "data/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/build.h"
#include "data/cache.h"
#include "data/codec.h"
#include "data/index_file.h"
#include "data/trust.h"
#include "store/within.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

/* Unless more is allowed: as much as a loader has. */
#define SAMPLE_BYTES_MAX ((uint64_t)512 << 20)

struct weir_data {
    struct weir_within within;
    weir_store *store;
    struct weir_trust *trust; /* or NULL */
    struct weir_cache cache;
    struct weir_index *index;
    struct weir_maps *maps;
    struct weir_shelf *shelf;
    char *url, *schema, *index_name;
    char digest[2 * WEIR_SHA256_BYTES + 1];
    weir_data_info info;
    uint64_t sample_bytes_max;
    bool is_believed;    /* the index, without a look at the shards: their times may be a copy's */
    unsigned generation; /* of fork() */
};

/* What opening needs meanwhile. */
struct opening {
    weir_data *data;
    weir_data_options opts;
    struct weir_survey *survey;
    const struct weir_format *format;
    struct weir_sources sources;
    uint8_t fingerprint[WEIR_SHA256_BYTES];
    char beside[2 * WEIR_KEY_BYTES_MAX]; /* the key of an index in the dataset */
    char cached[WEIR_KEY_BYTES_MAX];     /* the key of one in the cache */
    uint64_t scanned;
    bool built;
};

void weir_data_options_init(weir_data_options *opts)
{
    *opts = (weir_data_options){.struct_size = sizeof *opts};
}

static int options_read(weir_data_options *out, const weir_data_options *given)
{
    weir_data_options_init(out);
    if (!given)
        return 0;
    if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
        return weir_fail(EINVAL, "weir_data_options: call weir_data_options_init() first");
    size_t size = given->struct_size < sizeof *out ? given->struct_size : sizeof *out;
    memcpy(out, given, size);
    if (out->flags & ~(uint32_t)(WEIR_DATA_NO_BUILD | WEIR_DATA_REBUILD | WEIR_DATA_BESIDE |
                                 WEIR_DATA_TRUST | WEIR_DATA_KEEP))
        return weir_fail(EINVAL, "weir_data_options: an unknown flag");
    return out->format && !weir_format_find(out->format) ? weir_format_fail(out->format, false) : 0;
}

/* ---- finding an index ---- */

/* 0 and data->index, or -ENOENT where there is none that may be used. */
static int use(struct opening *o, weir_store *store, const char *key)
{
    struct weir_index *index;
    int code = weir_index_open(&index, store, key);
    if (!code && weir_index_is_read(index) && (code = weir_index_check(index)))
        weir_index_close(index); /* a plain file, perhaps: no seal will see it */
    if (code == -EBADMSG || code == -EPROTO || code == -EKEYREJECTED ||
        (store == o->data->cache.store && weir_cache_is_shut(code)))
        return -ENOENT; /* it can be made again */
    if (code)
        return code;
    bool trusted = o->opts.flags & WEIR_DATA_TRUST && !o->survey;
    bool fits = trusted
                    ? !o->opts.format || !strcmp(o->opts.format, weir_index_format(index)->name)
                    : weir_index_format(index) == o->format &&
                          !memcmp(weir_index_fingerprint(index), o->fingerprint, WEIR_SHA256_BYTES);
    if (fits) {
        o->data->index = index;
        o->data->is_believed = trusted;
        return 0;
    }
    if (trusted || weir_index_format(index) != o->format)
        weir_index_close(index);
    else if ((code = weir_sources_add(&o->sources, index)))
        return code;
    return -ENOENT;
}

static int name_index(weir_data *data, weir_store *store, const char *key)
{
    weir_store_info info;
    int code = weir_store_info_get(store, &info);
    if (code)
        return code;
    const char *url = strcmp(info.tier, "mem") ? info.url : "mem:"; /* its size says nothing */
    size_t size = strlen(url) + strlen(key) + 2;
    data->index_name = weir_alloc(size);
    if (!data->index_name)
        return weir_fail_memory();
    snprintf(data->index_name, size, "%s/%s", url, key);
    return 0;
}

/* An index that came along with the data as a plain file is not mapped: its copy in the cache is.
 * Where that cannot be had it stays in memory. */
static int adopt(struct opening *o)
{
    weir_data *data = o->data;
    struct weir_index *copy;
    if (!weir_index_is_read(data->index) || data->cache.in_memory ||
        weir_index_copy(data->index, data->cache.store, o->cached) ||
        weir_index_open(&copy, data->cache.store, o->cached))
        return name_index(data, data->store, o->beside);
    weir_index_close(data->index);
    data->index = copy;
    return name_index(data, data->cache.store, o->cached);
}

/* 0, -ENOENT, or another failure. */
static int find_there(struct opening *o)
{
    weir_data *data = o->data;
    int code = -ENOENT;
    if (!(o->opts.flags & WEIR_DATA_BESIDE))
        code = use(o, data->cache.store, o->cached);
    if (!code)
        return name_index(data, data->cache.store, o->cached);
    if (code != -ENOENT || !o->beside[0])
        return code;
    code = use(o, data->store, o->beside);
    return code ? code : adopt(o);
}

/* Without looking at the shards. */
static int find_trusted(struct opening *o)
{
    weir_data *data = o->data;
    int code = o->beside[0] ? use(o, data->store, o->beside) : -ENOENT;
    if (code != -ENOENT)
        return code ? code : name_index(data, data->store, o->beside);
    code = weir_cache_any(&data->cache, o->opts.format, o->cached);
    if (weir_cache_is_shut(code))
        return -ENOENT;
    if (!code)
        code = use(o, data->cache.store, o->cached);
    return code ? code : name_index(data, data->cache.store, o->cached);
}

/* ---- making one ---- */

/* An object that will be made anew. */
static int clear(weir_store *store, const char *key)
{
    int code = weir_remove(store, key);
    if (code == -EBADMSG)
        code = weir_remove_damaged(store, key);
    return code == -ENOENT ? 0 : code;
}

/* What the cache has of shards that are as they were. */
static int load_sources(struct opening *o, const char *parts)
{
    struct weir_cache *cache = &o->data->cache;
    int code = weir_sources_load(&o->sources, cache->store, cache->dir, o->format);
    if (!code)
        code = weir_sources_load(&o->sources, cache->store, parts, o->format);
    return weir_cache_is_shut(code) ? 0 : code; /* all of them are looked into, then */
}

/* Where it is made: the cache may be left while it is. */
static weir_store *store_of(struct opening *o)
{
    return o->opts.flags & WEIR_DATA_BESIDE ? o->data->store : o->data->cache.store;
}

/* Makes it; 1: another, who makes it too, took this one for what was to be made anew. */
static int make_once(struct opening *o, const char *key, bool must_keep)
{
    weir_data *data = o->data;
    char parts[WEIR_KEY_BYTES_MAX];
    weir_cache_parts(&data->cache, o->format->name, parts);
    struct weir_build build = {
        .survey = o->survey,
        .format = o->format,
        .sources = &o->sources,
        .cache = &data->cache,
        .must_keep = must_keep,
        .threads = o->opts.threads,
        .progress = o->opts.progress,
        .progress_arg = o->opts.progress_arg,
    };
    int code = o->opts.flags & WEIR_DATA_REBUILD ? 0 : load_sources(o, parts);
    if (!code)
        code = clear(store_of(o), key);
    if (code && !(o->opts.flags & WEIR_DATA_BESIDE)) {
        code = weir_cache_leave(&data->cache, code);
        if (!code && must_keep)
            code = weir_cache_fail(&data->cache);
    }
    build.parts = data->cache.in_memory ? NULL : parts;
    if (!code)
        code = weir_build_index(&build, store_of(o), key, o->fingerprint);
    if (code == -EEXIST) /* somebody else made the same meanwhile */
        code = 0;
    o->scanned = build.scanned;
    o->built = true;
    if (code)
        return code;
    code = weir_index_open(&data->index, store_of(o), key);
    return code == -ENOENT ? 1 : code;
}

static int make_index(struct opening *o)
{
    enum { TRIES_MAX = 8 };
    weir_data *data = o->data;
    bool beside = o->opts.flags & WEIR_DATA_BESIDE;
    bool must_keep = o->opts.flags & WEIR_DATA_KEEP && !beside;
    const char *key = beside ? o->beside : o->cached;
    if (must_keep && data->cache.in_memory)
        return weir_cache_fail(&data->cache);
    int code = make_once(o, key, must_keep);
    for (int tries = 1; code == 1 && tries < TRIES_MAX; tries++) {
        code = use(o, store_of(o), key); /* the other's is as good */
        if (code == -ENOENT)
            code = make_once(o, key, must_keep);
    }
    if (code == 1)
        code = weir_fail(EAGAIN, "others make its index anew all the time: try again");
    if (!code)
        code = name_index(data, store_of(o), key);
    if (!code)
        weir_cache_tidy(&data->cache, o->format->name, beside ? "" : key);
    return code;
}

/* ---- opening ---- */

static int look(struct opening *o)
{
    weir_data *data = o->data;
    int code = weir_survey_open(&o->survey, data->store, data->within.prefix, o->opts.options,
                                o->opts.listed, o->opts.progress_arg);
    struct weir_survey_file any;
    if (!code && data->within.only)
        weir_survey_keep(o->survey, data->within.only);
    if (!code && !weir_survey_file(o->survey, 0, &any))
        code = weir_fail(ENOENT, "there are no files in '%s'", data->url);
    if (!code && o->opts.format)
        o->format = weir_format_find(o->opts.format);
    else if (!code)
        code = weir_format_detect(&o->format, o->survey);
    if (!code)
        code = weir_survey_run(o->survey, o->format);
    if (code && o->format && !o->opts.format) /* among many files, a few may have misled us */
        code = weir_fail_in(code, "its files look like the format '%s' (name another if it is not)",
                            o->format->name);
    if (!code && !weir_survey_shards(o->survey))
        code = weir_fail(EINVAL, "there is nothing of the format '%s' in '%s'", o->format->name,
                         data->url);
    if (!code && data->trust)
        code = weir_trust_survey(data->trust, o->survey, !data->within.only);
    if (code)
        return code;
    code = weir_survey_fingerprint(o->survey, o->fingerprint);
    weir_cache_key(&data->cache, o->format->name, o->fingerprint, o->cached);
    return code;
}

static int find_or_make(struct opening *o)
{
    weir_data *data = o->data;
    uint32_t flags = o->opts.flags;
    int code = -ENOENT;
    if (!data->within.only)
        snprintf(o->beside, sizeof o->beside, "%s" WEIR_INDEX_NAME, data->within.prefix);
    else if (flags & WEIR_DATA_BESIDE)
        return weir_fail(EINVAL, "'%s' is one file: an index is kept beside a directory's",
                         data->url);
    if (flags & WEIR_DATA_TRUST && !(flags & WEIR_DATA_REBUILD))
        code = find_trusted(o);
    if (code != -ENOENT)
        return code;
    code = look(o);
    if (code)
        return code;
    code = flags & WEIR_DATA_REBUILD ? -ENOENT : find_there(o);
    if (code != -ENOENT)
        return code;
    if (flags & WEIR_DATA_NO_BUILD)
        return weir_fail(ENOENT,
                         "there is no index of '%s' as it is now: make one with 'weir data index'",
                         data->url);
    return make_index(o);
}

static int fill_info(weir_data *data, const struct opening *o)
{
    const struct weir_index *index = data->index;
    size_t size;
    const char *schema = weir_index_schema_json(index, &size);
    data->schema = weir_alloc(size + 1);
    if (!data->schema)
        return weir_fail_memory();
    memcpy(data->schema, schema, size);
    weir_hex(data->digest, weir_index_digest(index), WEIR_SHA256_BYTES);
    data->info = (weir_data_info){
        .url = data->url,
        .format = weir_index_format(index)->name,
        .digest = data->digest,
        .schema = data->schema,
        .index = data->index_name,
        .samples = weir_index_count(index),
        .shards = weir_index_shards(index),
        .sample_bytes = weir_index_bytes(index),
        .sample_bytes_max = weir_index_bytes_max(index),
        .index_bytes = weir_index_file_bytes(index),
        .scanned = o->scanned,
        .built = o->built,
    };
    for (uint64_t i = 0; i < data->info.shards; i++) {
        struct weir_index_shard shard;
        weir_index_shard(index, i, &shard);
        data->info.file_bytes += shard.file_bytes;
    }
    return 0;
}

/* From here on the store reads nothing but what was signed. */
static int guard(weir_data *data, const weir_data_options *opts)
{
    const char *pem = opts->verify_key, *prefix = data->within.prefix;
    weir_store *other = NULL;
    if (opts->flags & WEIR_DATA_BESIDE)
        return weir_fail(EINVAL, "an index in the dataset would not be signed: make it before the "
                                 "manifest");
    int code = opts->proof ? weir_store_open(&other, opts->proof, NULL) : 0;
    if (!code)
        code = weir_trust_open(&data->trust, prefix, other ? other : data->store,
                               other ? "" : prefix, pem, strlen(pem));
    weir_store_close(other);
    if (!code)
        weir_store_set_guard(data->store, weir_trust_guard(data->trust));
    return code;
}

/* What was found in bytes that nobody vouched for is not mixed with what was found in those that
 * somebody has, nor what was found under one manifest with another's: size and time, by which an
 * index knows its shards, are not signed. */
static int open_cache(weir_data *data, const weir_data_options *opts)
{
    const char *options = opts->options ? opts->options : "";
    if (!data->trust)
        return weir_cache_open(&data->cache, opts->cache, data->within.place, opts->options);
    const char *manifest = weir_trust_digest(data->trust);
    size_t size = strlen(options) + strlen(manifest) + sizeof "&signed=";
    char *both = weir_alloc(size);
    if (!both)
        return weir_fail_memory();
    snprintf(both, size, "%s&signed=%s", options, manifest);
    int code = weir_cache_open(&data->cache, opts->cache, data->within.place, both);
    free(both);
    return code;
}

static int open_parts(weir_data *data, struct opening *o)
{
    if (o->opts.proof && !o->opts.verify_key)
        return weir_fail(EINVAL,
                         "the manifest in '%s' is checked with a public key, and none is given: "
                         "give it, too (--key; verify_key)",
                         o->opts.proof);
    int code = weir_within_find(&data->within, data->url);
    if (!code)
        code = weir_store_open(&data->store, data->within.store_url, NULL);
    if (!code && o->opts.verify_key)
        code = guard(data, &o->opts);
    if (!code)
        code = open_cache(data, &o->opts);
    if (!code)
        code = find_or_make(o);
    if (!code)
        code = weir_maps_open(&data->maps, weir_index_shards(data->index));
    if (!code)
        code = weir_shelf_open(&data->shelf);
    return code ? code : fill_info(data, o);
}

int weir_data_open(weir_data **out, const char *url, const weir_data_options *opts)
{
    struct opening o = {0};
    int code = options_read(&o.opts, opts);
    if (code)
        return code;
    weir_data *data = weir_alloc(sizeof *data);
    if (!data || !(data->url = weir_strdup(url))) {
        free(data);
        return weir_fail_memory();
    }
    data->generation = weir_fork_generation();
    data->sample_bytes_max = o.opts.sample_bytes_max ? o.opts.sample_bytes_max : SAMPLE_BYTES_MAX;
    o.data = data;
    code = open_parts(data, &o);
    weir_sources_free(&o.sources);
    weir_survey_close(o.survey);
    if (code) {
        code = weir_fail_in(code, "cannot open the dataset '%s'", url);
        weir_data_close(data);
    } else {
        *out = data;
    }
    return code;
}

void weir_data_close(weir_data *data)
{
    if (!data || data->generation != weir_fork_generation())
        return; /* in a forked child the parent's handles are left alone */
    weir_maps_close(data->maps);
    weir_shelf_close(data->shelf);
    weir_index_close(data->index);
    weir_cache_close(&data->cache);
    weir_store_close(data->store);
    weir_trust_close(data->trust);
    weir_within_free(&data->within);
    free(data->index_name);
    free(data->schema);
    free(data->url);
    free(data);
}

/* ---- what it is ---- */

int weir_data_check(const weir_data *data)
{
    if (data->generation != weir_fork_generation())
        return weir_fail(ECHILD,
                         "the dataset '%s' was opened before fork(): open it again in the child",
                         data->url);
    return 0;
}

weir_store *weir_data_store(const weir_data *data)
{
    return data->store;
}

const char *weir_data_prefix(const weir_data *data)
{
    return data->within.prefix;
}

const struct weir_index *weir_data_index(const weir_data *data)
{
    return data->index;
}

struct weir_maps *weir_data_maps(const weir_data *data)
{
    return data->maps;
}

struct weir_shelf *weir_data_shelf(const weir_data *data)
{
    return data->shelf;
}

uint64_t weir_data_count(const weir_data *data)
{
    return data->info.samples;
}

const weir_data_info *weir_data_info_get(const weir_data *data)
{
    return &data->info;
}

int weir_data_shard_get(const weir_data *data, uint64_t i, weir_data_shard *out)
{
    struct weir_index_shard shard;
    if (i >= data->info.shards)
        return weir_fail(EINVAL, "there is no shard %" PRIu64 ": there are %" PRIu64, i,
                         data->info.shards);
    weir_index_shard(data->index, i, &shard);
    *out = (weir_data_shard){
        .key = shard.key,
        .codec = shard.codec,
        .file_bytes = shard.file_bytes,
        .raw_bytes = shard.raw_bytes,
        .time_ns = shard.is_files ? 0 : shard.time_ns,
        .first = shard.first,
        .samples = shard.samples,
    };
    return 0;
}

int weir_data_object(const weir_data *data, const struct weir_place *place, bool once,
                     weir_object **out)
{
    char key[2 * WEIR_KEY_BYTES_MAX];
    weir_object *obj;
    snprintf(key, sizeof key, "%s%s", data->within.prefix, place->key);
    int code = once ? weir_object_open_once(&obj, data->store, key)
                    : weir_object_open(&obj, data->store, key);
    if (code)
        return code;
    uint64_t size = weir_object_info(obj)->size_bytes;
    int64_t time_ns = (int64_t)weir_object_info(obj)->time_ns;
    if (size != place->file_bytes || (!data->is_believed && time_ns != place->time_ns)) {
        code =
            weir_fail(ESTALE, "'%s' has changed since it was indexed: open the dataset again", key);
        weir_object_close(obj);
        return code;
    }
    *out = obj;
    return 0;
}

int weir_data_flow(const weir_data *data, const struct weir_place *place, struct weir_flow **out)
{
    weir_object *obj;
    struct weir_index_shard shard;
    int code = weir_data_object(data, place, false, &obj);
    if (code)
        return code;
    weir_index_shard(data->index, place->shard, &shard);
    uint64_t max = weir_index_format(data->index)->ends_with_sample
                       ? shard.raw_bytes
                       : weir_codec_raw_bytes_max(shard.file_bytes);
    return weir_flow_open_object(out, obj, place->codec, max);
}

uint64_t weir_data_sample_bytes_max(const weir_data *data)
{
    return data->sample_bytes_max;
}
