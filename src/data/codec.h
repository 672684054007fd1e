/* codec.h - compression of whole files, by name: "" (none), "zstd", "gz", "bz2", "br", "snappy",
 * all but the last with a level: "zstd:3". Names, levels and bytes are those of MosaicML Streaming:
 * "snappy" is the raw block format, and files of several frames, members or streams are read as
 * one. Functions are pure; a decoder is used by one thread at a time.
 */
#ifndef WEIR_DATA_CODEC_H
#define WEIR_DATA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

/* 0, or -EINVAL, which names the codecs and levels there are. */
int weir_codec_check(const char *codec);
/* That of a file by the end of its name ("a.tar.gz", ".zst"); "" if it has none that we know. */
const char *weir_codec_of_suffix(const char *name);
/* What Streaming appends to the name of a file: ".zstd"; "" without a codec. */
const char *weir_codec_suffix(const char *codec);

/* Appends the compressed bytes, which depend on nothing but these and the codec. */
int weir_codec_encode(const char *codec, const void *data, size_t size, struct weir_growing *out);

/* ---- decoding ---- */

/* A file of that size that becomes more than this, 4,096 times as much and 64 MiB, is a bomb. */
uint64_t weir_codec_raw_bytes_max(uint64_t file_bytes);

/* What goes in and what comes out: a step moves the pointers over what it took and gave. */
struct weir_codec_io {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_room;
};

struct weir_decoder;
int weir_decoder_open(struct weir_decoder **out, const char *codec, uint64_t raw_bytes_max);
void weir_decoder_close(struct weir_decoder *decoder);
/* Goes on until there is no more input or no more room. -EFBIG: it would become more than
 * raw_bytes_max; -EBADMSG: this is not what the codec writes. Memory: the codec's window. */
int weir_decoder_step(struct weir_decoder *decoder, struct weir_codec_io *io);
/* There is no more input: 0 if it may end here and everything was given, or -EBADMSG. */
int weir_decoder_end(const struct weir_decoder *decoder);

#endif
