/* protobuf.h - reads the fields of a protobuf message from memory, one at a time, without a schema;
 * and writes them. Pure functions; the reader takes any bytes.
 *
 *     struct weir_pb pb = {data, data + size};
 *     while ((code = weir_pb_next(&pb)) == 1)
 *         … pb.field, pb.wire, pb.value or pb.data and pb.size …
 */
#ifndef WEIR_DATA_PROTOBUF_H
#define WEIR_DATA_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

enum weir_pb_wire {
    WEIR_PB_VARINT = 0,
    WEIR_PB_FIXED64 = 1,
    WEIR_PB_BYTES = 2,
    WEIR_PB_FIXED32 = 5,
};

struct weir_pb {
    const uint8_t *at, *end;
    uint32_t field;
    enum weir_pb_wire wire;
    uint64_t value;      /* a varint, or what is fixed */
    const uint8_t *data; /* bytes, borrowed */
    size_t size;
};

/* 1: a field; 0: the end; -EBADMSG without a text (many files hold something else). */
int weir_pb_next(struct weir_pb *pb);
/* The varint at pb->at, which steps over it: 1, or -EBADMSG without a text. */
int weir_pb_varint(struct weir_pb *pb, uint64_t *out);

/* How many bytes a varint takes, and writes it: behind its last byte. */
size_t weir_pb_varint_bytes(uint64_t value);
uint8_t *weir_pb_put_varint(uint8_t *at, uint64_t value);
/* The tag and length of bytes that follow. */
uint8_t *weir_pb_put_bytes(uint8_t *at, uint32_t field, size_t size);

#endif
