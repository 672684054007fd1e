/* codec_snappy.c - Snappy's raw block format: the raw length, then literals and copies of what came
 * before. The library reads it only in one piece, so it is taken apart here, with a window of 64
 * KiB: writers compress in blocks of that, and no copy reaches further back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <snappy-c.h>

#include "data/codec_kind.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { WINDOW_BYTES = 1 << 16, LENGTH_BYTES_MAX = 5, TAG_BYTES_MAX = 5 };

struct snappy {
    uint64_t left;   /* raw bytes that are still to come; the length itself while reading it */
    uint64_t length; /* of the literal or copy under way */
    size_t offset;   /* of a copy; 0: a literal */
    uint8_t tag[TAG_BYTES_MAX];
    unsigned tag_size;
    unsigned length_bytes; /* of the preamble, so far */
    bool begun;            /* the preamble was read */
    /* The last bytes that were given, in a ring. */
    size_t at, filled;
    uint8_t window[WINDOW_BYTES];
};

static int snappy_open(void **state)
{
    *state = weir_alloc(sizeof(struct snappy));
    return *state ? 0 : weir_fail_memory();
}

static void snappy_close(void *state)
{
    free(state);
}

static int not_snappy(const char *why)
{
    return weir_fail(EBADMSG, "not the snappy it should be: %s", why);
}

static uint8_t take(struct weir_codec_io *io)
{
    io->in_size--;
    return *io->in++;
}

static int read_preamble(struct snappy *s, struct weir_codec_io *io)
{
    while (io->in_size) {
        uint8_t byte = take(io);
        s->left |= (uint64_t)(byte & 0x7f) << (7 * s->length_bytes);
        if (++s->length_bytes > LENGTH_BYTES_MAX || s->left > UINT32_MAX)
            return not_snappy("its length is more than 32 bits");
        if (byte < 0x80) {
            s->begun = true;
            return 0;
        }
    }
    return 0;
}

/* How many bytes belong to a tag that begins with this one. */
static unsigned tag_bytes(uint8_t first)
{
    static const uint8_t copies[4] = {0, 2, 3, 5};
    unsigned literal = first >> 2;
    if (first & 3)
        return copies[first & 3];
    return literal < 60 ? 1 : literal - 58;
}

/* What the tag says: how long, and where from. */
static int begin_element(struct snappy *s)
{
    uint8_t first = s->tag[0];
    uint64_t more = weir_load_le(s->tag + 1, s->tag_size - 1);
    switch (first & 3) {
    case 0:
        s->length = (s->tag_size == 1 ? first >> 2 : more) + 1;
        s->offset = 0;
        break;
    case 1:
        s->length = ((first >> 2) & 7) + 4u;
        s->offset = (size_t)(first >> 5) << 8 | (size_t)more;
        break;
    default:
        s->length = (first >> 2) + 1u;
        s->offset = (size_t)more;
    }
    s->tag_size = 0;
    if (s->length > s->left)
        return not_snappy("it is longer than it says");
    if ((first & 3) && !s->offset)
        return not_snappy("a copy of nothing");
    if (s->offset > s->filled)
        return not_snappy(s->filled < WINDOW_BYTES ? "a copy from before the beginning"
                                                   : "a copy from more than 64 KiB before");
    return 0;
}

static int read_tag(struct snappy *s, struct weir_codec_io *io)
{
    while (io->in_size) {
        s->tag[s->tag_size++] = take(io);
        if (s->tag_size == tag_bytes(s->tag[0]))
            return begin_element(s);
    }
    return 0;
}

/* Gives `size` bytes that do not overlap the ring's write position, at most to its end. */
static void give(struct snappy *s, struct weir_codec_io *io, const uint8_t *from, size_t size)
{
    memmove(s->window + s->at, from, size);
    memcpy(io->out, s->window + s->at, size);
    io->out += size;
    io->out_room -= size;
    s->at = (s->at + size) % WINDOW_BYTES;
    s->filled = s->filled + size < WINDOW_BYTES ? s->filled + size : WINDOW_BYTES;
    s->length -= size;
    s->left -= size;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void go_on(struct snappy *s, struct weir_codec_io *io)
{
    size_t size = least(least((size_t)s->length, io->out_room), WINDOW_BYTES - s->at);
    if (!s->offset) {
        size = least(size, io->in_size);
        give(s, io, io->in, size);
        io->in += size;
        io->in_size -= size;
        return;
    }
    size_t from = (s->at + WINDOW_BYTES - s->offset) % WINDOW_BYTES;
    /* A copy may read what it writes: a run repeats its period. */
    size = least(least(size, s->offset), WINDOW_BYTES - from);
    give(s, io, s->window + from, size);
}

static int snappy_step(void *state, struct weir_codec_io *io, bool *may_end)
{
    struct snappy *s = state;
    int code = s->begun ? 0 : read_preamble(s, io);
    while (!code && s->begun && io->out_room) {
        if (s->length && (s->offset || io->in_size))
            go_on(s, io);
        else if (!io->in_size)
            break;
        else if (!s->left)
            code = not_snappy("there are bytes behind its end");
        else
            code = read_tag(s, io);
    }
    *may_end = s->begun && !s->left;
    return code;
}

static int snappy_encode(const void *data, size_t size, int level, struct weir_growing *out)
{
    (void)level;
    if (size > UINT32_MAX)
        return weir_fail(EFBIG, "snappy holds at most 4 GiB, not %zu bytes: use zstd", size);
    size_t made = snappy_max_compressed_length(size);
    int code = weir_growing_room(out, made);
    if (code)
        return code;
    if (snappy_compress(data, size, (char *)out->data + out->size, &made) != SNAPPY_OK)
        return weir_fail(EINVAL, "snappy cannot compress");
    out->size += made;
    return 0;
}

const struct weir_codec_kind weir_codec_snappy = {
    .name = "snappy",
    .suffixes = {".snappy"},
    .open = snappy_open,
    .step = snappy_step,
    .close = snappy_close,
    .encode = snappy_encode,
};
