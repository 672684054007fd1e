/* marker.c - see marker.h. Version 1, little-endian:
 *
 *    0  8  "WEIRSTOR"
 *    8  2  version, 1
 *   10  6  zero
 *   16 16  UUID of the store
 *   32  8  grace in nanoseconds
 *   40  8  when the store was made (Unix ns)
 *   48 16  XXH3-128 of everything before it
 */
#include "store/marker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/hash.h"

enum { VERSION = 1, SUM_AT = 48 };
static const char magic[8] = {'W', 'E', 'I', 'R', 'S', 'T', 'O', 'R'};

_Static_assert(SUM_AT + WEIR_SUM_BYTES == WEIR_MARKER_BYTES, "the sum is last");

void weir_marker_encode(uint8_t out[WEIR_MARKER_BYTES], const struct weir_marker *marker)
{
    memset(out, 0, WEIR_MARKER_BYTES);
    memcpy(out, magic, sizeof magic);
    weir_store_le(out + 8, VERSION, 2);
    memcpy(out + 16, marker->uuid, sizeof marker->uuid);
    weir_store_le(out + 32, marker->grace_ns, 8);
    weir_store_le(out + 40, marker->time_ns, 8);
    weir_sum(out + SUM_AT, out, SUM_AT);
}

int weir_marker_decode(struct weir_marker *out, const uint8_t *record, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    if (size >= 8 && !memcmp(record, "WEIRPART", 8)) /* of src/tier/split.c */
        return weir_fail(EPROTO, "its records are kept elsewhere: open it with the commit=URL that "
                                 "it was made with");
    if (size < 10 || memcmp(record, magic, sizeof magic))
        return weir_fail(EBADMSG, "its marker .weir/store is damaged: it does not begin like one");
    if (weir_load_le(record + 8, 2) > VERSION)
        return weir_fail(EPROTO, "it was made by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(record + 8, 2));
    if (size != WEIR_MARKER_BYTES)
        return weir_fail(EBADMSG, "its marker .weir/store is damaged: its length is wrong");
    weir_sum(sum, record, SUM_AT);
    if (memcmp(sum, record + SUM_AT, WEIR_SUM_BYTES) || weir_load_le(record + 8, 2) != VERSION)
        return weir_fail(EBADMSG,
                         "its marker .weir/store is damaged: its bytes do not match their sum");
    memcpy(out->uuid, record + 16, sizeof out->uuid);
    out->grace_ns = weir_load_le(record + 32, 8);
    out->time_ns = weir_load_le(record + 40, 8);
    return 0;
}

void weir_uuid_text(char out[40], const uint8_t uuid[16])
{
    char hex[33];
    weir_hex(hex, uuid, 16);
    snprintf(out, 40, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}
