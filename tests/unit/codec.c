/* Compression of whole files: what is compressed comes back whatever the pieces it is read in; cut
 * off, damaged, followed by something else, or too large, it is refused.
 */
#include "data/codec.h"

#include "data/flow.h"
#include "stores.h"

static const char *const codecs[] = {"zstd", "zstd:19", "gz",   "gz:0", "gz:1",
                                     "bz2",  "bz2:1",   "br:5", "br:0", "snappy"};
enum { CODECS = sizeof codecs / sizeof *codecs, RAW_BYTES = 300000 };

static uint8_t raw[RAW_BYTES];

/* Noise, runs of one byte, of a short and of a long period: all kinds of copies. */
static void fill(void)
{
    data_fill(raw, RAW_BYTES, 1, 0);
    memset(raw + 50000, 'x', 40000);
    for (size_t i = 90000; i < 150000; i++)
        raw[i] = (uint8_t)(i % 7);
    memcpy(raw + 200000, raw + 140000, 60000);
}

static struct weir_growing packed_as(const char *codec, size_t size)
{
    struct weir_growing out = {0};
    OK(weir_codec_encode(codec, raw, size, &out));
    return out;
}

/* Decodes all of it in pieces of so many bytes; what the last call returned. */
static int unpack(const char *codec, const struct weir_growing *packed, size_t in_piece,
                  size_t out_piece, uint64_t max, struct weir_growing *out)
{
    struct weir_decoder *decoder;
    int code = 0;
    size_t at = 0;
    OK(weir_decoder_open(&decoder, codec, max));
    for (bool last = false; !code;) {
        size_t in = packed->size - at < in_piece ? packed->size - at : in_piece;
        OK(weir_growing_room(out, out_piece));
        struct weir_codec_io io = {packed->data + at, in, out->data + out->size, out_piece};
        code = weir_decoder_step(decoder, &io);
        at += in - io.in_size;
        out->size += out_piece - io.out_room;
        CHECK(out->size <= max);
        if (last && !code && io.out_room == out_piece) {
            code = weir_decoder_end(decoder);
            break;
        }
        last = at == packed->size;
    }
    weir_decoder_close(decoder);
    return code;
}

static void any_pieces(void)
{
    static const size_t pieces[][2] = {{1 << 20, 1 << 20}, {1, 4096}, {4096, 1}, {777, 65537}};
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = packed_as(codecs[i], RAW_BYTES), again;
        again = packed_as(codecs[i], RAW_BYTES);
        CHECK(packed.size == again.size && !memcmp(packed.data, again.data, packed.size));
        weir_growing_free(&again);
        for (size_t j = 0; j < 4; j++) {
            struct weir_growing out = {0};
            OK(unpack(codecs[i], &packed, pieces[j][0], pieces[j][1], RAW_BYTES, &out));
            CHECK_EQ(out.size, RAW_BYTES);
            CHECK(!memcmp(out.data, raw, RAW_BYTES));
            weir_growing_free(&out);
        }
        weir_growing_free(&packed);
    }
}

static void nothing(void)
{
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = packed_as(codecs[i], 0), out = {0}, none = {0};
        OK(unpack(codecs[i], &packed, 4096, 4096, 0, &out));
        CHECK_EQ(out.size, 0);
        CHECK_EQ(unpack(codecs[i], &none, 4096, 4096, 0, &out), -EBADMSG);
        weir_growing_free(&packed);
        weir_growing_free(&out);
    }
}

static void several_in_a_row(void)
{
    static const char *const rows[] = {"zstd", "gz", "bz2"};
    for (size_t i = 0; i < 3; i++) {
        struct weir_growing packed = packed_as(rows[i], 1000), out = {0};
        OK(weir_codec_encode(rows[i], raw + 1000, RAW_BYTES - 1000, &packed));
        OK(unpack(rows[i], &packed, 100, 5000, RAW_BYTES, &out));
        CHECK(out.size == RAW_BYTES && !memcmp(out.data, raw, RAW_BYTES));
        weir_growing_free(&packed);
        weir_growing_free(&out);
    }
    /* Zeros behind a gzip file are no damage. */
    struct weir_growing packed = packed_as("gz", 1000), out = {0};
    OK(weir_growing_add(&packed, (uint8_t[100]){0}, 100));
    OK(unpack("gz", &packed, 64, 5000, RAW_BYTES, &out));
    CHECK_EQ(out.size, 1000);
    weir_growing_free(&packed);
    weir_growing_free(&out);
}

static void more_behind(void)
{
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = packed_as(codecs[i], 1000), out = {0};
        OK(weir_growing_add(&packed, "something", 9));
        CHECK_EQ(unpack(codecs[i], &packed, 1 << 20, 1 << 20, RAW_BYTES, &out), -EBADMSG);
        weir_growing_free(&packed);
        weir_growing_free(&out);
    }
}

static void cut_off(void)
{
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = packed_as(codecs[i], 5000);
        size_t whole = packed.size;
        for (packed.size = 0; packed.size < whole; packed.size += 1 + whole / 50) {
            struct weir_growing out = {0};
            CHECK_EQ(unpack(codecs[i], &packed, 500, 500, RAW_BYTES, &out), -EBADMSG);
            weir_growing_free(&out);
        }
        weir_growing_free(&packed);
    }
}

/* Whatever byte is changed, nothing but an error or other bytes within the limit. Those that have a
 * sum of their raw bytes find it. */
static void damaged(void)
{
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = packed_as(codecs[i], 5000);
        for (size_t at = 0; at < packed.size; at += 1 + packed.size / 100) {
            struct weir_growing out = {0};
            packed.data[at] ^= 0x55;
            int code = unpack(codecs[i], &packed, 500, 500, 5000, &out);
            CHECK(!code || code == -EBADMSG || code == -EFBIG);
            packed.data[at] ^= 0x55;
            weir_growing_free(&out);
        }
        weir_growing_free(&packed);
    }
}

static void a_bomb(void)
{
    enum { BOMB_BYTES = 32 << 20 };
    void *zeros = calloc(1, BOMB_BYTES);
    CHECK(zeros);
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = {0}, out = {0};
        OK(weir_codec_encode(codecs[i], zeros, BOMB_BYTES, &packed));
        CHECK_EQ(unpack(codecs[i], &packed, 1 << 20, 4096, 10000, &out), -EFBIG);
        CHECK_EQ(out.size, 10000);
        CHECK(strstr(weir_error_text(), "decompresses to more than 10000 bytes"));
        weir_growing_free(&packed);
        weir_growing_free(&out);
    }
    free(zeros);
}

/* Copies of what is not there, and the window: written by hand. */
static void snappy_by_hand(void)
{
    static const struct {
        uint8_t bytes[16];
        size_t size;
        const char *says;
    } bad[] = {
        {{4, 0x01, 0x01}, 3, "before the beginning"},
        {{5, 0x00, 'a', 0x01, 0x00}, 5, "a copy of nothing"},
        {{5, 0x00, 'a', 0x02, 0x02, 0x00}, 6, "before the beginning"},
        {{2, 0x08, 'a', 'b', 'c'}, 5, "longer than it says"},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6, "more than 32 bits"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_growing packed = {(uint8_t *)bad[i].bytes, bad[i].size, 0}, out = {0};
        CHECK_EQ(unpack("snappy", &packed, 100, 100, 1000, &out), -EBADMSG);
        CHECK(strstr(weir_error_text(), bad[i].says));
        weir_growing_free(&out);
    }
    struct weir_growing run = {(uint8_t[]){6, 0x04, 'a', 'b', 0x01, 0x02}, 6, 0}, out = {0};
    OK(unpack("snappy", &run, 1, 1, 1000, &out));
    CHECK(out.size == 6 && !memcmp(out.data, "ababab", 6));
    weir_growing_free(&out);
}

static void names(void)
{
    static const char *const bad[] = {"zip",   "zstd:0", "zstd:23", "gz:10",    "zstd:",
                                      "br:12", "gz:-1",  "gz:1x",   "snappy:1", "zstd:100"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(weir_codec_check(bad[i]), -EINVAL);
        CHECK(strstr(weir_error_text(), "zstd[:1-22]"));
    }
    OK(weir_codec_check(""));
    OK(weir_codec_check("br:11"));
    CHECK(!strcmp(weir_codec_of_suffix("a.b/c.tar.gz"), "gz"));
    CHECK(!strcmp(weir_codec_of_suffix(".zst"), "zstd"));
    CHECK(!strcmp(weir_codec_of_suffix("shard.mds"), ""));
    CHECK(!strcmp(weir_codec_of_suffix("gz"), ""));
    CHECK(!strcmp(weir_codec_suffix("zstd:7"), ".zstd"));
    CHECK(!strcmp(weir_codec_suffix(""), ""));
}

int main(void)
{
    fill();
    RUN(any_pieces);
    RUN(nothing);
    RUN(several_in_a_row);
    RUN(more_behind);
    RUN(cut_off);
    RUN(damaged);
    RUN(a_bomb);
    RUN(snappy_by_hand);
    RUN(names);
    return TEST_RESULT;
}
