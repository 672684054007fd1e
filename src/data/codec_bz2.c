/* codec_bz2.c - bzip2: streams, one after the other. */
#include <errno.h>
#include <stdlib.h>
#include <bzlib.h>

#include "data/codec_kind.h"
#include "util/err.h"
#include "util/sys.h"

struct bz2 {
    bz_stream stream;
    bool open; /* within a stream */
};

static int bz2_open(void **state)
{
    *state = weir_alloc(sizeof(struct bz2));
    return *state ? 0 : weir_fail_memory();
}

static void bz2_close(void *state)
{
    struct bz2 *bz2 = state;
    if (bz2->open)
        BZ2_bzDecompressEnd(&bz2->stream);
    free(bz2);
}

static int next_stream(struct bz2 *bz2)
{
    bz2->stream = (bz_stream){0};
    if (BZ2_bzDecompressInit(&bz2->stream, 0, 0) != BZ_OK)
        return weir_fail_memory();
    bz2->open = true;
    return 0;
}

static int bz2_step(void *state, struct weir_codec_io *io, bool *may_end)
{
    struct bz2 *bz2 = state;
    while (io->out_room && (bz2->open || io->in_size)) {
        int fail = bz2->open ? 0 : next_stream(bz2);
        if (fail)
            return fail;
        *may_end = false;
        unsigned in = weir_codec_count(io->in_size), out = weir_codec_count(io->out_room);
        bz2->stream.next_in = (char *)io->in;
        bz2->stream.avail_in = in;
        bz2->stream.next_out = (char *)io->out;
        bz2->stream.avail_out = out;
        int code = BZ2_bzDecompress(&bz2->stream);
        size_t took = in - bz2->stream.avail_in, gave = out - bz2->stream.avail_out;
        io->in += took;
        io->in_size -= took;
        io->out += gave;
        io->out_room -= gave;
        if (code == BZ_STREAM_END) {
            BZ2_bzDecompressEnd(&bz2->stream);
            bz2->open = false;
            *may_end = true;
        } else if (code == BZ_MEM_ERROR) {
            return weir_fail_memory();
        } else if (code != BZ_OK) {
            return weir_fail(EBADMSG, "not the bzip2 it should be: its %s wrong",
                             code == BZ_DATA_ERROR_MAGIC ? "magic number is" : "data are");
        } else if (!took && !gave) {
            break; /* it needs more input */
        }
    }
    return 0;
}

static int bz2_compress(bz_stream *stream, const uint8_t *data, size_t size,
                        struct weir_growing *out)
{
    int code = BZ_RUN_OK;
    while (code != BZ_STREAM_END) {
        unsigned in = weir_codec_count(size);
        int fail = weir_growing_room(out, 1 << 16);
        if (fail)
            return fail;
        unsigned room = weir_codec_count(out->room - out->size);
        stream->next_in = (char *)data;
        stream->avail_in = in;
        stream->next_out = (char *)out->data + out->size;
        stream->avail_out = room;
        code = BZ2_bzCompress(stream, in == size ? BZ_FINISH : BZ_RUN);
        if (code < 0)
            return weir_fail(EINVAL, "bzip2 cannot compress: error %d", code);
        data += in - stream->avail_in;
        size -= in - stream->avail_in;
        out->size += room - stream->avail_out;
    }
    return 0;
}

static int bz2_encode(const void *data, size_t size, int level, struct weir_growing *out)
{
    bz_stream stream = {0};
    if (BZ2_bzCompressInit(&stream, level, 0, 0) != BZ_OK)
        return weir_fail_memory();
    int code = bz2_compress(&stream, data, size, out);
    BZ2_bzCompressEnd(&stream);
    return code;
}

const struct weir_codec_kind weir_codec_bz2 = {
    .name = "bz2",
    .suffixes = {".bz2"},
    .level_min = 1,
    .level_max = 9,
    .level_usual = 9,
    .open = bz2_open,
    .step = bz2_step,
    .close = bz2_close,
    .encode = bz2_encode,
};
