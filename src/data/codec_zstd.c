/* codec_zstd.c - Zstandard: frames, one after the other. Windows of more than 128 MiB, which only
 * `zstd --long` makes, are refused by the library. */
#include <errno.h>
#include <zstd.h>

#include "data/codec_kind.h"
#include "util/err.h"

static int zstd_open(void **state)
{
    *state = ZSTD_createDStream();
    return *state ? 0 : weir_fail_memory();
}

static void zstd_close(void *state)
{
    ZSTD_freeDStream(state);
}

static int zstd_step(void *state, struct weir_codec_io *io, bool *may_end)
{
    while (io->out_room) {
        ZSTD_inBuffer in = {io->in, io->in_size, 0};
        ZSTD_outBuffer out = {io->out, io->out_room, 0};
        size_t left = ZSTD_decompressStream(state, &out, &in);
        if (ZSTD_isError(left))
            return weir_fail(EBADMSG, "not the zstd it should be: %s", ZSTD_getErrorName(left));
        if (in.pos || out.pos)
            *may_end = !left;
        io->in += in.pos;
        io->in_size -= in.pos;
        io->out += out.pos;
        io->out_room -= out.pos;
        if (!io->in_size && (!out.pos || !left))
            break;
    }
    return 0;
}

static int zstd_encode(const void *data, size_t size, int level, struct weir_growing *out)
{
    size_t bound = ZSTD_compressBound(size);
    int code = weir_growing_room(out, bound);
    if (code)
        return code;
    size_t made = ZSTD_compress(out->data + out->size, bound, data, size, level);
    if (ZSTD_isError(made))
        return weir_fail(ENOMEM, "zstd cannot compress: %s", ZSTD_getErrorName(made));
    out->size += made;
    return 0;
}

const struct weir_codec_kind weir_codec_zstd = {
    .name = "zstd",
    .suffixes = {".zstd", ".zst"},
    .level_min = 1,
    .level_max = 22,
    .level_usual = 3,
    .open = zstd_open,
    .step = zstd_step,
    .close = zstd_close,
    .encode = zstd_encode,
};
