/* seal.c - see seal.h. Pure functions; the decoder takes any bytes. */
#include "store/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"
#include "weir.h"

enum { HEAD_BYTES = 64, VERSION = 1 };
static const char magic[8] = {'W', 'E', 'I', 'R', 'S', 'E', 'A', 'L'};

_Static_assert(WEIR_SEAL_VOID_BYTES == HEAD_BYTES + WEIR_SUM_BYTES, "a void is bare");

uint64_t weir_seal_blocks(uint64_t size, uint32_t block_bytes)
{
    return size / block_bytes + (size % block_bytes != 0);
}

static size_t round_up8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

int weir_seal_encode(const struct weir_seal *seal, uint8_t **out, size_t *size)
{
    size_t names = round_up8(seal->data_name_size + seal->meta_size);
    size_t sums = seal->blocks * WEIR_SUM_BYTES;
    size_t total = HEAD_BYTES + names + sums + WEIR_SUM_BYTES;
    assert(seal->blocks <= WEIR_BLOCKS_MAX); /* what is written must be readable */
    uint8_t *record = weir_alloc(total);
    if (!record)
        return weir_fail_memory();
    memcpy(record, magic, sizeof magic);
    weir_store_le(record + 8, VERSION, 2);
    record[10] = (uint8_t)seal->kind;
    record[11] = (uint8_t)seal->algorithm;
    weir_store_le(record + 12, seal->block_bytes, 4);
    weir_store_le(record + 16, seal->size, 8);
    memcpy(record + 24, seal->nonce, WEIR_NONCE_BYTES);
    weir_store_le(record + 40, seal->time_ns, 8);
    weir_store_le(record + 48, seal->data_name_size, 2);
    weir_store_le(record + 50, seal->prefix_size, 2);
    weir_store_le(record + 52, seal->meta_size, 4);
    weir_store_le(record + 56, seal->blocks, 8);
    uint8_t *at = record + HEAD_BYTES;
    if (seal->data_name_size)
        memcpy(at, seal->data_name, seal->data_name_size);
    if (seal->meta_size)
        memcpy(at + seal->data_name_size, seal->meta, seal->meta_size);
    if (sums)
        memcpy(at + names, seal->sums, sums);
    weir_sum(record + total - WEIR_SUM_BYTES, record, total - WEIR_SUM_BYTES);
    *out = record;
    *size = total;
    return 0;
}

/* What is wrong with the fixed part, or NULL. */
static const char *head_fault(const struct weir_seal *s)
{
    if (s->kind < WEIR_SEAL_OBJECT || s->kind > WEIR_SEAL_LEARNED)
        return "it is of no known kind";
    if (s->kind == WEIR_SEAL_VOID)
        return s->size || s->blocks || s->data_name_size || s->meta_size ? "its void is not empty"
                                                                         : NULL;
    if (s->algorithm != WEIR_ALGORITHM_XXH3_128)
        return "its sums are of no known algorithm";
    if (s->block_bytes < WEIR_BLOCK_BYTES_MIN || s->block_bytes > WEIR_BLOCK_BYTES_MAX ||
        s->block_bytes & (s->block_bytes - 1))
        return "its block size is impossible";
    if (s->blocks > WEIR_BLOCKS_MAX || s->blocks != weir_seal_blocks(s->size, s->block_bytes))
        return "its size is impossible";
    if (s->data_name_size > WEIR_NAME_BYTES_MAX || s->meta_size > WEIR_META_BYTES_MAX)
        return "its names are too long";
    return NULL;
}

/* A seal copied or moved to another key must not make that key's reader follow it. */
static bool name_belongs(const struct weir_seal *s, const char *key)
{
    char name[WEIR_NAME_BYTES_MAX];
    if (s->kind == WEIR_SEAL_OBJECT) {
        weir_key_data_name(name, key, s->nonce);
        key = name;
    }
    return s->data_name_size == strlen(key) && !memcmp(s->data_name, key, s->data_name_size);
}

static int damaged(const char *key, const char *why)
{
    return weir_fail(EBADMSG,
                     "the seal of '%s' is damaged: %s (its bytes may be sound: 'weir rm --damaged' "
                     "gives up the seal and leaves them as a plain file)",
                     key, why);
}

int weir_seal_decode(struct weir_seal *out, const uint8_t *record, size_t size, const char *key)
{
    uint8_t sum[WEIR_SUM_BYTES];
    if (size < HEAD_BYTES + WEIR_SUM_BYTES)
        return damaged(key, "it is too short");
    if (memcmp(record, magic, sizeof magic))
        return damaged(key, "it does not begin like one");
    weir_sum(sum, record, size - WEIR_SUM_BYTES);
    if (memcmp(sum, record + size - WEIR_SUM_BYTES, WEIR_SUM_BYTES))
        return damaged(key, "its bytes do not match its own sum");
    if (weir_load_le(record + 8, 2) != VERSION)
        return weir_fail(EPROTO,
                         "the seal of '%s' was written by a newer Weir (version %u): update", key,
                         (unsigned)weir_load_le(record + 8, 2));
    struct weir_seal s = {
        .kind = record[10],
        .algorithm = record[11],
        .block_bytes = (uint32_t)weir_load_le(record + 12, 4),
        .size = weir_load_le(record + 16, 8),
        .time_ns = weir_load_le(record + 40, 8),
        .data_name_size = (size_t)weir_load_le(record + 48, 2),
        .prefix_size = (uint16_t)weir_load_le(record + 50, 2),
        .meta_size = (size_t)weir_load_le(record + 52, 4),
        .blocks = weir_load_le(record + 56, 8),
    };
    memcpy(s.nonce, record + 24, WEIR_NONCE_BYTES);
    const char *fault = head_fault(&s);
    if (fault)
        return damaged(key, fault);
    /* The limits checked above keep this sum far from overflow. */
    size_t names = round_up8(s.data_name_size + s.meta_size);
    if (size != HEAD_BYTES + names + s.blocks * WEIR_SUM_BYTES + WEIR_SUM_BYTES)
        return damaged(key, "its length is wrong");
    s.data_name = (const char *)record + HEAD_BYTES;
    s.meta = record + HEAD_BYTES + s.data_name_size;
    s.sums = record + HEAD_BYTES + names;
    if (s.kind != WEIR_SEAL_VOID && !name_belongs(&s, key))
        return damaged(key, "it belongs to another key");
    *out = s;
    return 0;
}
