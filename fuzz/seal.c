/* Seals. The first byte says how: 1 makes the record's own sum right (else hardly anything gets
 * past it), 2 takes the key from the record's data name. A seal that decodes means what it says:
 * encoded again it is the same.
 */
#include "store/seal.h"
#include "target.h"
#include "util/bytes.h"
#include "weir.h"

enum { RESUM = 1, KEY_INSIDE = 2 };

static void key_inside(char key[WEIR_NAME_BYTES_MAX], const uint8_t *record, size_t size)
{
    if (size < 64 + 16)
        return;
    size_t length = (size_t)weir_load_le(record + 48, 4);
    if (length > size - 64 || length > WEIR_KEY_BYTES_MAX)
        return;
    char found[WEIR_NAME_BYTES_MAX], inside[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    memcpy(found, record + 64, length);
    found[length] = 0;
    if (!strncmp(found, WEIR_DIR_DATA, strlen(WEIR_DIR_DATA)) &&
        weir_key_of_data_name(inside, nonce, found + strlen(WEIR_DIR_DATA)))
        strcpy(key, inside);
    else if (!weir_key_check(found))
        strcpy(key, found);
}

static void check(const struct weir_seal *seal, const uint8_t *record, size_t size, const char *key)
{
    uint8_t *again;
    struct weir_seal back;
    size_t again_size;
    PROMISE(seal->kind >= WEIR_SEAL_OBJECT && seal->kind <= WEIR_SEAL_LEARNED);
    PROMISE((const uint8_t *)seal->data_name >= record);
    PROMISE((const uint8_t *)seal->data_name + seal->data_name_size <= record + size);
    PROMISE((const uint8_t *)seal->meta + seal->meta_size <= record + size);
    PROMISE(seal->sums + seal->blocks * WEIR_SUM_BYTES <= record + size - WEIR_SUM_BYTES);
    PROMISE(seal->meta_size <= WEIR_META_BYTES_MAX && seal->size <= WEIR_OBJECT_BYTES_MAX);
    if (seal->kind != WEIR_SEAL_VOID)
        PROMISE(seal->blocks == weir_seal_blocks(seal->size, seal->block_bytes));
    PROMISE(weir_seal_encode(seal, &again, &again_size) == 0);
    PROMISE(again_size == size);
    PROMISE(weir_seal_decode(&back, again, again_size, key) == 0);
    PROMISE(back.size == seal->size && back.blocks == seal->blocks);
    PROMISE(!memcmp(back.sums, seal->sums, seal->blocks * WEIR_SUM_BYTES));
    PROMISE(!memcmp(back.meta, seal->meta, seal->meta_size));
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char key[WEIR_NAME_BYTES_MAX] = "some/key";
    struct weir_seal seal;
    if (!size)
        return 0;
    uint8_t how = *data++;
    uint8_t *record = exact_copy(data, --size);
    if (how & RESUM && size >= WEIR_SUM_BYTES)
        weir_sum(record + size - WEIR_SUM_BYTES, record, size - WEIR_SUM_BYTES);
    if (how & KEY_INSIDE)
        key_inside(key, record, size);
    if (weir_seal_decode(&seal, record, size, key) == 0)
        check(&seal, record, size, key);
    free(record);
    return 0;
}
