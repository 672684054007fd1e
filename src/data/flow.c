/* flow.c - see flow.h. */
#include "data/flow.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    PIECE_BYTES = 1 << 20, /* of a read at most: a block of a sealed object, or several */
    PIECE_STEP = 4096,     /* and not within a page */
    RAW_BYTES = WEIR_FLOW_PEEK_MAX + PIECE_BYTES,
};

struct weir_flow {
    /* Where the bytes come from: an object, or memory. */
    weir_object *object;
    const uint8_t *memory;
    uint64_t file_bytes, file_at;
    char *key;         /* NULL: memory */
    size_t piece_size; /* of a read */

    struct weir_decoder *decoder; /* NULL: not compressed */
    uint8_t *packed;              /* with a decoder: one piece of the file */
    size_t packed_at, packed_end;
    bool decoded; /* and nothing more comes out of it */

    /* Raw bytes that were read ahead: of them, those in front of raw_at are behind us. */
    uint8_t *raw;
    size_t raw_at, raw_end;
    uint64_t at;
};

/* ---- the file ---- */

/* Reads at most `room` bytes of the file on, up to the end of a piece. */
static int read_file(struct weir_flow *flow, void *buf, size_t room, size_t *got)
{
    uint64_t left = flow->file_bytes - flow->file_at;
    size_t size = left < room ? (size_t)left : room;
    *got = 0;
    if (!size)
        return 0;
    if (flow->memory) {
        memcpy(buf, flow->memory + flow->file_at, size);
        *got = size;
    } else {
        int code = weir_object_read(flow->object, buf, size, flow->file_at, got);
        if (code)
            return code;
        if (*got != size)
            return weir_fail(EBADMSG, "'%s' became shorter while it was read", flow->key);
    }
    flow->file_at += size;
    return 0;
}

/* The size of the next read: pieces begin where blocks do. */
static size_t piece_bytes(const struct weir_flow *flow)
{
    return flow->piece_size - (size_t)(flow->file_at % flow->piece_size);
}

/* Names the file in a text that the decoder made. */
static int fail_decoding(const struct weir_flow *flow, int code)
{
    return flow->key ? weir_fail_in(code, "'%s'", flow->key) : code;
}

/* Some raw bytes on into buf, not none unless this is the end. */
static int decode(struct weir_flow *flow, void *buf, size_t room, size_t *got)
{
    struct weir_codec_io io = {.out = buf, .out_room = room};
    while (io.out_room == room && !flow->decoded) {
        if (flow->packed_at == flow->packed_end) {
            flow->packed_at = 0;
            int code = read_file(flow, flow->packed, piece_bytes(flow), &flow->packed_end);
            if (code)
                return code;
        }
        io.in = flow->packed + flow->packed_at;
        io.in_size = flow->packed_end - flow->packed_at;
        bool last = !io.in_size;
        int code = weir_decoder_step(flow->decoder, &io);
        if (!code && last && io.out_room == room) {
            code = weir_decoder_end(flow->decoder);
            flow->decoded = true;
        }
        if (code)
            return fail_decoding(flow, code);
        flow->packed_at = flow->packed_end - io.in_size;
    }
    *got = room - io.out_room;
    return 0;
}

static int read_raw(struct weir_flow *flow, void *buf, size_t room, size_t *got)
{
    return flow->decoder ? decode(flow, buf, room, got) : read_file(flow, buf, room, got);
}

/* ---- opening ---- */

static int open_buffers(struct weir_flow *flow, const char *codec, uint64_t raw_bytes_max)
{
    flow->piece_size = PIECE_BYTES;
    flow->raw = weir_realloc(NULL, RAW_BYTES);
    if (!flow->raw)
        return weir_fail_memory();
    if (!*codec && flow->file_bytes > raw_bytes_max)
        return weir_fail(EFBIG, "'%s' has %" PRIu64 " bytes, where at most %" PRIu64 " belong",
                         flow->key ? flow->key : "memory", flow->file_bytes, raw_bytes_max);
    if (!*codec)
        return 0;
    flow->packed = weir_realloc(NULL, PIECE_BYTES);
    if (!flow->packed)
        return weir_fail_memory();
    return weir_decoder_open(&flow->decoder, codec, raw_bytes_max);
}

int weir_flow_open_object(struct weir_flow **out, weir_object *object, const char *codec,
                          uint64_t raw_bytes_max)
{
    struct weir_flow *flow = weir_alloc(sizeof *flow);
    if (!flow) {
        weir_object_close(object);
        return weir_fail_memory();
    }
    flow->object = object;
    flow->file_bytes = weir_object_info(object)->size_bytes;
    flow->key = weir_strdup(weir_object_info(object)->key);
    int code = flow->key ? open_buffers(flow, codec, raw_bytes_max) : weir_fail_memory();
    if (code) {
        weir_flow_close(flow);
        return code;
    }
    *out = flow;
    return 0;
}

int weir_flow_open(struct weir_flow **out, weir_store *store, const char *key, const char *codec,
                   uint64_t raw_bytes_max)
{
    weir_object *object;
    int code = weir_object_open(&object, store, key);
    return code ? code : weir_flow_open_object(out, object, codec, raw_bytes_max);
}

int weir_flow_open_bytes(struct weir_flow **out, const void *data, size_t size, const char *codec,
                         uint64_t raw_bytes_max)
{
    struct weir_flow *flow = weir_alloc(sizeof *flow);
    if (!flow)
        return weir_fail_memory();
    flow->memory = data;
    flow->file_bytes = size;
    int code = open_buffers(flow, codec, raw_bytes_max);
    if (code) {
        weir_flow_close(flow);
        return code;
    }
    *out = flow;
    return 0;
}

void weir_flow_close(struct weir_flow *flow)
{
    if (!flow)
        return;
    weir_object_close(flow->object);
    weir_decoder_close(flow->decoder);
    free(flow->packed);
    free(flow->raw);
    free(flow->key);
    free(flow);
}

/* ---- going on ---- */

uint64_t weir_flow_at(const struct weir_flow *flow)
{
    return flow->at;
}

void weir_flow_expect(struct weir_flow *flow, uint64_t size)
{
    assert(size);
    uint64_t pieces = size < PIECE_BYTES ? (size + PIECE_STEP - 1) / PIECE_STEP : UINT64_MAX;
    flow->piece_size = pieces < PIECE_BYTES / PIECE_STEP ? pieces * PIECE_STEP : PIECE_BYTES;
}

static size_t ahead(const struct weir_flow *flow)
{
    return flow->raw_end - flow->raw_at;
}

static void step_over(struct weir_flow *flow, size_t size)
{
    flow->raw_at += size;
    flow->at += size;
}

static int ends_early(const struct weir_flow *flow, uint64_t missing)
{
    return weir_fail(EBADMSG, "'%s' ends %" PRIu64 " bytes too early: it is cut off",
                     flow->key ? flow->key : "memory", missing);
}

int weir_flow_peek(struct weir_flow *flow, size_t want, const uint8_t **data, size_t *size)
{
    want = want < WEIR_FLOW_PEEK_MAX ? want : WEIR_FLOW_PEEK_MAX;
    if (ahead(flow) < want && flow->raw_at) {
        memmove(flow->raw, flow->raw + flow->raw_at, ahead(flow));
        flow->raw_end = ahead(flow);
        flow->raw_at = 0;
    }
    while (ahead(flow) < want) {
        size_t room = RAW_BYTES - flow->raw_end, piece = piece_bytes(flow), got;
        room = !flow->decoder && piece < room ? piece : room;
        int code = read_raw(flow, flow->raw + flow->raw_end, room, &got);
        if (code)
            return code;
        if (!got)
            break;
        flow->raw_end += got;
    }
    *data = flow->raw + flow->raw_at;
    *size = ahead(flow);
    return 0;
}

int weir_flow_read(struct weir_flow *flow, void *buf, size_t size)
{
    uint8_t *to = buf;
    while (size) {
        size_t got = ahead(flow) < size ? ahead(flow) : size;
        if (got) {
            memcpy(to, flow->raw + flow->raw_at, got);
            step_over(flow, got);
        } else if (size >= PIECE_BYTES) { /* without a copy */
            int code = read_raw(flow, to, size, &got);
            if (code)
                return code;
            flow->at += got;
        } else {
            const uint8_t *data;
            int code = weir_flow_peek(flow, 1, &data, &got);
            if (code)
                return code;
            if (got)
                continue;
        }
        if (!got)
            return ends_early(flow, size);
        to += got;
        size -= got;
    }
    return 0;
}

int weir_flow_skip(struct weir_flow *flow, uint64_t size)
{
    while (size) {
        uint64_t step = ahead(flow) < size ? ahead(flow) : size;
        if (step) {
            step_over(flow, (size_t)step);
        } else if (!flow->decoder) {
            uint64_t left = flow->file_bytes - flow->file_at;
            step = left < size ? left : size;
            flow->file_at += step;
            flow->at += step;
        } else {
            const uint8_t *data;
            size_t got;
            int code = weir_flow_peek(flow, 1, &data, &got);
            if (code)
                return code;
            if (got)
                continue;
        }
        if (!step)
            return ends_early(flow, size);
        size -= step;
    }
    return 0;
}

int weir_flow_finish(struct weir_flow *flow)
{
    const uint8_t *data;
    size_t size;
    int code = weir_flow_peek(flow, 1, &data, &size);
    while (!code && size) {
        code = weir_flow_skip(flow, size);
        if (!code)
            code = weir_flow_peek(flow, 1, &data, &size);
    }
    return code;
}
