/* flow.h - the raw bytes of a shard from its beginning to its end: read through the store in large
 * pieces, decompressed on the way if it is compressed, never more in memory than a few pieces. What
 * is skipped in a shard that is not compressed is not read. One thread at a time.
 */
#ifndef WEIR_DATA_FLOW_H
#define WEIR_DATA_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

struct weir_flow;
/* codec: codec.h; "": none. More raw bytes than max are refused with -EFBIG: a bomb. */
int weir_flow_open(struct weir_flow **out, weir_store *store, const char *key, const char *codec,
                   uint64_t raw_bytes_max);
/* Of an open object, which it closes, also where it fails. */
int weir_flow_open_object(struct weir_flow **out, weir_object *object, const char *codec,
                          uint64_t raw_bytes_max);
/* Bytes in memory instead, borrowed: for tests and fuzzers. */
int weir_flow_open_bytes(struct weir_flow **out, const void *data, size_t size, const char *codec,
                         uint64_t raw_bytes_max);
void weir_flow_close(struct weir_flow *flow);

/* How many raw bytes are behind us. */
uint64_t weir_flow_at(const struct weir_flow *flow);
/* Little more than so many bytes from the beginning will be asked for, at least one: so reads are
 * of that size, where that is less than a large piece. */
void weir_flow_expect(struct weir_flow *flow, uint64_t size);
/* At least `want` bytes (at most WEIR_FLOW_PEEK_MAX) without stepping over them, fewer only at the
 * end: borrowed until the next call. */
enum { WEIR_FLOW_PEEK_MAX = 1 << 20 };
int weir_flow_peek(struct weir_flow *flow, size_t want, const uint8_t **data, size_t *size);
/* All `size` bytes, or -EBADMSG if it ends before. */
int weir_flow_read(struct weir_flow *flow, void *buf, size_t size);
/* Steps over them: -EBADMSG if it ends before. */
int weir_flow_skip(struct weir_flow *flow, uint64_t size);
/* Steps over whatever is left: only at the end is a compressed file known to be no longer than it
 * should be, and checked against the sums that its codec has. */
int weir_flow_finish(struct weir_flow *flow);

#endif
