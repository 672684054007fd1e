/* codec.c - see codec.h: names and limits; the libraries are behind codec_kind.h. */
#include "data/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec_kind.h"
#include "util/err.h"
#include "util/sys.h"

static const struct weir_codec_kind *const kinds[] = {
    &weir_codec_zstd, &weir_codec_gz, &weir_codec_bz2, &weir_codec_br, &weir_codec_snappy,
};
enum { KINDS = sizeof kinds / sizeof *kinds, RATIO_MAX = 4096 };
#define RATIO_FREE_BYTES ((uint64_t)64 << 20)

struct weir_decoder {
    const struct weir_codec_kind *kind;
    void *state;
    uint64_t given, max;
    bool may_end;
};

/* ---- names ---- */

/* A level of one or two digits; -1 if it is none. */
static int level_of(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n < 1 || n > 2 || text[n] ? -1 : atoi(text);
}

/* The codec and its level; NULL for a name that is not one. */
static const struct weir_codec_kind *find(const char *codec, int *level)
{
    const char *colon = strchrnul(codec, ':');
    for (size_t i = 0; i < KINDS; i++) {
        const struct weir_codec_kind *kind = kinds[i];
        if (strlen(kind->name) != (size_t)(colon - codec) ||
            memcmp(kind->name, codec, (size_t)(colon - codec)) != 0)
            continue;
        *level = *colon ? level_of(colon + 1) : kind->level_usual;
        bool known =
            !*colon || (kind->level_max && *level >= kind->level_min && *level <= kind->level_max);
        return known ? kind : NULL;
    }
    return NULL;
}

static int unknown(const char *codec)
{
    return weir_fail(EINVAL,
                     "there is no compression '%.40s': use zstd[:1-22], gz[:0-9], bz2[:1-9], "
                     "br[:0-11] or snappy",
                     codec);
}

int weir_codec_check(const char *codec)
{
    int level;
    return !*codec || find(codec, &level) ? 0 : unknown(codec);
}

const char *weir_codec_of_suffix(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < KINDS; i++)
        for (size_t j = 0; j < 2 && kinds[i]->suffixes[j]; j++)
            if (!strcmp(dot, kinds[i]->suffixes[j]))
                return kinds[i]->name;
    return "";
}

const char *weir_codec_suffix(const char *codec)
{
    int level;
    const struct weir_codec_kind *kind = find(codec, &level);
    return kind ? kind->suffixes[0] : "";
}

/* ---- encoding ---- */

int weir_codec_encode(const char *codec, const void *data, size_t size, struct weir_growing *out)
{
    int level;
    if (!*codec)
        return weir_growing_add(out, data, size);
    const struct weir_codec_kind *kind = find(codec, &level);
    return kind ? kind->encode(data, size, level, out) : unknown(codec);
}

/* ---- decoding ---- */

uint64_t weir_codec_raw_bytes_max(uint64_t file_bytes)
{
    uint64_t max;
    if (__builtin_mul_overflow(file_bytes, RATIO_MAX, &max) ||
        __builtin_add_overflow(max, RATIO_FREE_BYTES, &max))
        return UINT64_MAX;
    return max;
}

int weir_decoder_open(struct weir_decoder **out, const char *codec, uint64_t raw_bytes_max)
{
    int level;
    const struct weir_codec_kind *kind = find(codec, &level);
    if (!kind)
        return unknown(codec);
    struct weir_decoder *d = weir_alloc(sizeof *d);
    if (!d)
        return weir_fail_memory();
    d->kind = kind;
    d->max = raw_bytes_max;
    int code = kind->open(&d->state);
    if (code) {
        free(d);
        return code;
    }
    *out = d;
    return 0;
}

void weir_decoder_close(struct weir_decoder *d)
{
    if (!d)
        return;
    d->kind->close(d->state);
    free(d);
}

static int too_much(const struct weir_decoder *d)
{
    return weir_fail(
        EFBIG, "decompresses to more than %" PRIu64 " bytes: a damaged or hostile file", d->max);
}

/* At the limit it gets room for one byte more, which shows whether there is one. */
static int step_at_limit(struct weir_decoder *d, struct weir_codec_io *io)
{
    uint8_t more;
    struct weir_codec_io last = {io->in, io->in_size, &more, 1};
    int code = d->kind->step(d->state, &last, &d->may_end);
    io->in = last.in;
    io->in_size = last.in_size;
    if (code)
        return code;
    return last.out_room ? 0 : too_much(d);
}

int weir_decoder_step(struct weir_decoder *d, struct weir_codec_io *io)
{
    uint64_t left = d->max - d->given;
    if (!left)
        return step_at_limit(d, io);
    struct weir_codec_io now = *io;
    now.out_room = now.out_room < left ? now.out_room : (size_t)left;
    size_t room = now.out_room;
    int code = d->kind->step(d->state, &now, &d->may_end);
    size_t gave = room - now.out_room;
    io->in = now.in;
    io->in_size = now.in_size;
    io->out += gave;
    io->out_room -= gave;
    d->given += gave;
    return code;
}

int weir_decoder_end(const struct weir_decoder *d)
{
    return d->may_end ? 0
                      : weir_fail(EBADMSG,
                                  "the compressed file (%s) is cut off after %" PRIu64 " raw bytes",
                                  d->kind->name, d->given);
}
