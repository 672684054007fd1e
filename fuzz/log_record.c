/* Records of logs, and the state of a ledger within one. The first byte says how: 1 makes the
 * record's own sum right, 2 its length of the state, without which hardly anything gets past them.
 */
#include "store/state.h"
#include "target.h"
#include "util/bytes.h"

enum { RESUM = 1, RELENGTH = 2, HEAD_BYTES = 88 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_log_record record;
    struct weir_ledger_state state;
    uint8_t digest[WEIR_SHA256_BYTES];
    if (!size)
        return 0;
    uint8_t how = *data++;
    uint8_t *bytes = exact_copy(data, --size);
    if (how & RELENGTH && size >= HEAD_BYTES + WEIR_SUM_BYTES)
        weir_store_le(bytes + 80, size - HEAD_BYTES - WEIR_SUM_BYTES, 8);
    if (how & RESUM && size >= WEIR_SUM_BYTES)
        weir_sum(bytes + size - WEIR_SUM_BYTES, bytes, size - WEIR_SUM_BYTES);
    if (weir_log_record_decode(&record, bytes, size) == 0) {
        const uint8_t *at = record.state;
        PROMISE(record.number && record.size == size && !record.bytes);
        PROMISE(at == bytes + HEAD_BYTES);
        PROMISE(at + record.state_size + WEIR_SUM_BYTES == bytes + size);
        PROMISE(record.state_size <= WEIR_LOG_STATE_BYTES_MAX);
        weir_sha256(digest, bytes, size);
        PROMISE(!memcmp(digest, record.digest, sizeof digest));
        if (weir_state_decode(&state, at, record.state_size) == 0)
            weir_state_free(&state);
    }
    free(bytes);
    return 0;
}
