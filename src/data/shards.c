/* shards.c - see shards.h. */
#include "data/shards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "data/codec.h"
#include "util/err.h"

bool weir_name_ends(const char *name, size_t size, const char *ending)
{
    size_t length = strlen(ending);
    return size >= length && !memcmp(name + size - length, ending, length);
}

/* The codec of a shard, or NULL: this is none. */
static const char *codec_of(const char *key, weir_shard_name_fn is)
{
    const char *codec = weir_codec_of_suffix(key), *base = strrchr(key, '/');
    size_t size = strlen(key);
    base = base ? base + 1 : key;
    if (base[0] == '.') /* hidden: left by a copy that was cut short */
        return NULL;
    if (codec[0])
        size = (size_t)(strrchr(key, '.') - key);
    else if (weir_name_ends(key, size, ".tgz"))
        codec = "gz";
    return is(key, size) ? codec : NULL;
}

int weir_shards_match(const struct weir_survey *survey, weir_shard_name_fn is)
{
    struct weir_survey_file file;
    double ours = 0, others = 0;
    bool any = false;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++) {
        bool one = codec_of(file.key, is) != NULL;
        any = any || one;
        *(one ? &ours : &others) += (double)file.size_bytes;
    }
    return !any ? 0 : ours >= others ? 2 : 1;
}

int weir_shards_survey(struct weir_survey *survey, weir_shard_name_fn is, const char *what)
{
    struct weir_survey_file file;
    bool any = false;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++) {
        const char *codec = codec_of(file.key, is);
        if (!codec)
            continue;
        struct weir_shard_plan shard = {
            .key = file.key,
            .codec = codec,
            .file_bytes = file.size_bytes,
            .time_ns = file.time_ns,
            .raw_bytes = codec[0] ? UINT64_MAX : file.size_bytes,
            .samples = UINT64_MAX,
        };
        int code = weir_survey_add(survey, &shard);
        if (code)
            return code;
        any = true;
    }
    return any ? 0 : weir_fail(EINVAL, "there is no shard in it: no file is named %s", what);
}

void weir_shard_name(char out[64], uint32_t i, const char *ending, const char *codec)
{
    const char *suffix = weir_codec_suffix(codec);
    if (!strcmp(suffix, ".zstd")) /* Streaming's; everybody else says .zst */
        suffix = ".zst";
    snprintf(out, 64, "shard-%06u%s%s", i, ending, suffix);
}
