/* marker.h - the record .weir/store: which store a directory is. See marker.c for its bytes. */
#ifndef WEIR_STORE_MARKER_H
#define WEIR_STORE_MARKER_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_MARKER_BYTES = 64, WEIR_MARKER_BYTES_MAX = 4096 };

struct weir_marker {
    uint8_t uuid[16];
    uint64_t grace_ns, time_ns;
};

void weir_marker_encode(uint8_t out[WEIR_MARKER_BYTES], const struct weir_marker *marker);
/* -EBADMSG, or -EPROTO for a newer version, with a text. */
int weir_marker_decode(struct weir_marker *out, const uint8_t *record, size_t size);
/* 8-4-4-4-12 digits and a NUL. */
void weir_uuid_text(char out[40], const uint8_t uuid[16]);

#endif
