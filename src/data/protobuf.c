/* protobuf.c - see protobuf.h. */
#include "data/protobuf.h"

#include <errno.h>

#include "util/bytes.h"

enum { VARINT_BYTES_MAX = 10 };

int weir_pb_varint(struct weir_pb *pb, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && pb->at < pb->end; i++) {
        uint8_t byte = *pb->at++;
        if (i == VARINT_BYTES_MAX - 1 && byte > 1) /* more than 64 bits */
            return -EBADMSG;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *out = value;
            return 1;
        }
    }
    return -EBADMSG;
}

static int take_fixed(struct weir_pb *pb, unsigned bytes)
{
    if ((size_t)(pb->end - pb->at) < bytes)
        return -EBADMSG;
    pb->value = weir_load_le(pb->at, bytes);
    pb->at += bytes;
    return 1;
}

int weir_pb_next(struct weir_pb *pb)
{
    uint64_t tag, size;
    if (pb->at == pb->end)
        return 0;
    if (weir_pb_varint(pb, &tag) < 0 || tag >> 3 == 0 || tag >> 32)
        return -EBADMSG;
    pb->field = (uint32_t)(tag >> 3);
    pb->wire = (enum weir_pb_wire)(tag & 7);
    switch (pb->wire) {
    case WEIR_PB_VARINT:
        return weir_pb_varint(pb, &pb->value);
    case WEIR_PB_FIXED64:
        return take_fixed(pb, 8);
    case WEIR_PB_FIXED32:
        return take_fixed(pb, 4);
    case WEIR_PB_BYTES:
        if (weir_pb_varint(pb, &size) < 0 || size > (size_t)(pb->end - pb->at))
            return -EBADMSG;
        pb->data = pb->at;
        pb->size = (size_t)size;
        pb->at += size;
        return 1;
    }
    return -EBADMSG; /* groups, which nobody writes any more */
}

size_t weir_pb_varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (value >>= 7)
        bytes++;
    return bytes;
}

uint8_t *weir_pb_put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

uint8_t *weir_pb_put_bytes(uint8_t *at, uint32_t field, size_t size)
{
    at = weir_pb_put_varint(at, (uint64_t)field << 3 | WEIR_PB_BYTES);
    return weir_pb_put_varint(at, size);
}
