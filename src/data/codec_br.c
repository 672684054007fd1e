/* codec_br.c - Brotli: one stream, and nothing behind it. */
#include <errno.h>
#include <stdlib.h>
#include <brotli/decode.h>
#include <brotli/encode.h>

#include "data/codec_kind.h"
#include "util/err.h"

static int br_open(void **state)
{
    *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    return *state ? 0 : weir_fail_memory();
}

static void br_close(void *state)
{
    BrotliDecoderDestroyInstance(state);
}

static int br_step(void *state, struct weir_codec_io *io, bool *may_end)
{
    if (BrotliDecoderIsFinished(state))
        return io->in_size ? weir_fail(EBADMSG, "there are bytes behind the end of the brotli") : 0;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state, &io->in_size, &io->in, &io->out_room, &io->out, NULL);
    if (result == BROTLI_DECODER_RESULT_ERROR)
        return weir_fail(EBADMSG, "not the brotli it should be: %s",
                         BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)));
    *may_end = result == BROTLI_DECODER_RESULT_SUCCESS;
    if (*may_end && io->in_size)
        return weir_fail(EBADMSG, "there are bytes behind the end of the brotli");
    return 0;
}

static int br_encode(const void *data, size_t size, int level, struct weir_growing *out)
{
    size_t made = BrotliEncoderMaxCompressedSize(size);
    if (!made) /* of what does not fit size_t */
        return weir_fail_memory();
    int code = weir_growing_room(out, made);
    if (code)
        return code;
    if (!BrotliEncoderCompress(level, BROTLI_DEFAULT_WINDOW, BROTLI_DEFAULT_MODE, size, data, &made,
                               out->data + out->size))
        return weir_fail_memory();
    out->size += made;
    return 0;
}

const struct weir_codec_kind weir_codec_br = {
    .name = "br",
    .suffixes = {".br"},
    .level_min = 0,
    .level_max = 11,
    .level_usual = 11,
    .open = br_open,
    .step = br_step,
    .close = br_close,
    .encode = br_encode,
};
