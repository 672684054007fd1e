/* codec_kind.h - what codec.c knows of a library that compresses: one file for each. */
#ifndef WEIR_DATA_CODEC_KIND_H
#define WEIR_DATA_CODEC_KIND_H

#include "data/codec.h"

struct weir_codec_kind {
    const char *name;
    const char *suffixes[2];               /* the first is written, all are read */
    int level_min, level_max, level_usual; /* all 0: it has none */
    int (*open)(void **state);
    /* Takes input or gives output until one of them is used up. *may_end: the bytes so far are
     * whole, and all of them were given. */
    int (*step)(void *state, struct weir_codec_io *io, bool *may_end);
    void (*close)(void *state);
    int (*encode)(const void *data, size_t size, int level, struct weir_growing *out);
};

/* For libraries that count in 32 bits. */
static inline unsigned weir_codec_count(size_t size)
{
    return size < 1u << 30 ? (unsigned)size : 1u << 30;
}

extern const struct weir_codec_kind weir_codec_zstd, weir_codec_gz, weir_codec_bz2, weir_codec_br,
    weir_codec_snappy;

#endif
