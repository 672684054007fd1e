/* Markers of stores. A first byte that is odd makes the record's own sum right. */
#include "store/marker.h"
#include "target.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_marker marker;
    uint8_t again[WEIR_MARKER_BYTES];
    char text[40];
    if (!size)
        return 0;
    uint8_t how = *data++;
    uint8_t *record = exact_copy(data, --size);
    if (how & 1 && size == WEIR_MARKER_BYTES)
        weir_sum(record + 48, record, 48);
    if (weir_marker_decode(&marker, record, size) == 0) {
        weir_marker_encode(again, &marker);
        memset(record + 10, 0, 6); /* reserved: not looked at */
        weir_sum(record + 48, record, 48);
        PROMISE(size == WEIR_MARKER_BYTES && !memcmp(again, record, size));
        weir_uuid_text(text, marker.uuid);
        PROMISE(strlen(text) == 36);
    }
    free(record);
    return 0;
}
