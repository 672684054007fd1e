/* codec_gz.c - gzip: members, one after the other, perhaps with zeros behind the last (tapes). What
 * is written says no time, so that the same bytes become the same file. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "data/codec_kind.h"
#include "util/err.h"
#include "util/sys.h"

enum { GZIP_BITS = 15 + 16, /* the largest window, with a gzip header */ MEMORY_LEVEL = 8 };

struct gz {
    z_stream stream;
    bool between; /* members */
};

static int gz_open(void **state)
{
    struct gz *gz = weir_alloc(sizeof *gz);
    if (!gz)
        return weir_fail_memory();
    if (inflateInit2(&gz->stream, GZIP_BITS) != Z_OK) {
        free(gz);
        return weir_fail_memory();
    }
    *state = gz;
    return 0;
}

static void gz_close(void *state)
{
    struct gz *gz = state;
    inflateEnd(&gz->stream);
    free(gz);
}

static void skip_zeros(struct weir_codec_io *io)
{
    while (io->in_size && !*io->in) {
        io->in++;
        io->in_size--;
    }
}

static int gz_step(void *state, struct weir_codec_io *io, bool *may_end)
{
    struct gz *gz = state;
    while (io->out_room) {
        if (gz->between)
            skip_zeros(io);
        if (gz->between && io->in_size) {
            inflateReset(&gz->stream);
            gz->between = *may_end = false;
        } else if (gz->between) {
            break;
        }
        unsigned in = weir_codec_count(io->in_size), out = weir_codec_count(io->out_room);
        gz->stream.next_in = (Bytef *)io->in;
        gz->stream.avail_in = in;
        gz->stream.next_out = io->out;
        gz->stream.avail_out = out;
        int code = inflate(&gz->stream, Z_NO_FLUSH);
        io->in += in - gz->stream.avail_in;
        io->in_size -= in - gz->stream.avail_in;
        io->out += out - gz->stream.avail_out;
        io->out_room -= out - gz->stream.avail_out;
        if (code == Z_STREAM_END)
            gz->between = *may_end = true;
        else if (code == Z_BUF_ERROR)
            break; /* it needs more input */
        else if (code == Z_MEM_ERROR)
            return weir_fail_memory();
        else if (code != Z_OK)
            return weir_fail(EBADMSG, "not the gzip it should be: %s",
                             gz->stream.msg ? gz->stream.msg : "it needs a dictionary");
    }
    return 0;
}

static int gz_deflate(z_stream *stream, const uint8_t *data, size_t size, struct weir_growing *out)
{
    int code = Z_OK;
    while (code != Z_STREAM_END) {
        unsigned in = weir_codec_count(size);
        int fail = weir_growing_room(out, 1 << 16);
        if (fail)
            return fail;
        unsigned room = weir_codec_count(out->room - out->size);
        stream->next_in = (Bytef *)data;
        stream->avail_in = in;
        stream->next_out = out->data + out->size;
        stream->avail_out = room;
        code = deflate(stream, in == size ? Z_FINISH : Z_NO_FLUSH);
        if (code == Z_STREAM_ERROR)
            return weir_fail(EINVAL, "zlib cannot compress");
        data += in - stream->avail_in;
        size -= in - stream->avail_in;
        out->size += room - stream->avail_out;
    }
    return 0;
}

static int gz_encode(const void *data, size_t size, int level, struct weir_growing *out)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, level, Z_DEFLATED, GZIP_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return weir_fail_memory();
    int code = gz_deflate(&stream, data, size, out);
    deflateEnd(&stream);
    return code;
}

const struct weir_codec_kind weir_codec_gz = {
    .name = "gz",
    .suffixes = {".gz", ".gzip"},
    .level_min = 0,
    .level_max = 9,
    .level_usual = 9,
    .open = gz_open,
    .step = gz_step,
    .close = gz_close,
    .encode = gz_encode,
};
