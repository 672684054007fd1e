/* Compressed files: whatever the pieces they are read in, the same bytes or the same failure, and
 * never more than the limit. What is compressed here comes back.
 */
#include "data/codec.h"
#include "target.h"

enum { RAW_BYTES_MAX = 1 << 18 };

static const char *const codecs[] = {"zstd:1", "gz:1", "bz2:1", "br:1", "snappy"};

/* Decodes in pieces of so many bytes; -1 stands for any failure. */
static int unpack(const char *codec, const uint8_t *data, size_t size, size_t in_piece,
                  size_t out_piece, struct weir_growing *out)
{
    struct weir_decoder *decoder;
    int code = 0;
    PROMISE(weir_decoder_open(&decoder, codec, RAW_BYTES_MAX) == 0);
    for (size_t at = 0; !code;) {
        size_t in = size - at < in_piece ? size - at : in_piece;
        bool last = !in;
        PROMISE(weir_growing_room(out, out_piece) == 0);
        struct weir_codec_io io = {data + at, in, out->data + out->size, out_piece};
        code = weir_decoder_step(decoder, &io);
        PROMISE(code <= 0 && io.in_size <= in && io.out_room <= out_piece);
        bool moved = io.in_size < in || io.out_room < out_piece;
        at += in - io.in_size;
        out->size += out_piece - io.out_room;
        PROMISE(out->size <= RAW_BYTES_MAX);
        PROMISE(code || moved || last); /* it goes on */
        if (!code && last && !moved) {
            code = weir_decoder_end(decoder);
            break;
        }
    }
    weir_decoder_close(decoder);
    return code ? -1 : 0;
}

static void both_ways(const char *codec, const uint8_t *data, size_t size, size_t piece)
{
    struct weir_growing whole = {0}, pieces = {0};
    int code = unpack(codec, data, size, size + 1, RAW_BYTES_MAX + 1, &whole);
    int other = unpack(codec, data, size, piece, 4096 / piece + 1, &pieces);
    /* A frame of zstd that is shorter than it says may pass in pieces: its library checks that only
     * where it has the frame at once, if the last block is empty. */
    PROMISE(code == other || !strncmp(codec, "zstd", 4));
    PROMISE(code || other ||
            (whole.size == pieces.size &&
             (!whole.size || !memcmp(whole.data, pieces.data, whole.size))));
    weir_growing_free(&whole);
    weir_growing_free(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_growing packed = {0}, back = {0};
    if (!size)
        return 0;
    const char *codec = codecs[data[0] % 5];
    size_t piece = 1 + data[0] / 5;
    uint8_t *copy = exact_copy(data + 1, size - 1);
    both_ways(codec, copy, size - 1, piece);
    PROMISE(weir_codec_encode(codec, copy, size - 1, &packed) == 0);
    PROMISE(unpack(codec, packed.data, packed.size, piece, 100, &back) == 0);
    PROMISE(back.size == size - 1 && (!back.size || !memcmp(back.data, copy, back.size)));
    weir_growing_free(&packed);
    weir_growing_free(&back);
    free(copy);
    return 0;
}
