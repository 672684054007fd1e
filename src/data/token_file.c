/* token_file.c - see token_file.h. */
#include "data/token_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"
#include "util/err.h"

enum { LLMC_U16_MAGIC = 20240520, LLMC_U32_MAGIC = 20240801, LLMC_U16 = 1, LLMC_U32 = 7 };

const char *weir_token_dtype(const char *name)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {
        {"u8", "|u1"},    {"uint8", "|u1"},  {"u16", "<u2"},    {"uint16", "<u2"}, {"i16", "<i2"},
        {"int16", "<i2"}, {"u32", "<u4"},    {"uint32", "<u4"}, {"i32", "<i4"},    {"int32", "<i4"},
        {"u64", "<u8"},   {"uint64", "<u8"}, {"i64", "<i8"},    {"int64", "<i8"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i].name) || !strcmp(name, names[i].dtype))
            return names[i].dtype;
    return NULL;
}

int weir_token_head(struct weir_token_file *out, const char *key, const uint8_t *head, size_t size,
                    uint64_t file_bytes)
{
    struct weir_token_file file = {.tokens = file_bytes};
    uint32_t words[3] = {0};
    for (int i = 0; size >= WEIR_LLMC_HEAD_BYTES && i < 3; i++)
        words[i] = (uint32_t)weir_load_le(head + 4 * i, 4);
    bool u16 = words[0] == LLMC_U16_MAGIC, u32 = words[0] == LLMC_U32_MAGIC;
    if (!u16 && !u32) {
        *out = file; /* how many tokens that is, the type tells */
        return 0;
    }
    uint32_t version = u16 ? LLMC_U16 : LLMC_U32, width = u16 ? 2 : 4;
    if (words[1] != version)
        return weir_fail(EBADMSG,
                         "'%s': it begins as a file of llm.c's does, but of version %" PRIu32
                         ", where %" PRIu32 " is known: write it anew as one of these",
                         key, words[1], version);
    uint64_t need = WEIR_LLMC_HEAD_BYTES + (uint64_t)words[2] * width;
    if (need > file_bytes)
        return weir_fail(EBADMSG,
                         "'%s': it has %" PRIu64 " bytes, where the %" PRIu32
                         " tokens that its head counts need %" PRIu64
                         ": it was cut off; copy it anew from where it was made",
                         key, file_bytes, words[2], need);
    file.begin = WEIR_LLMC_HEAD_BYTES;
    file.tokens = words[2];
    strcpy(file.dtype, u16 ? "<u2" : "<u4");
    *out = file;
    return 0;
}

void weir_token_head_make(uint8_t out[WEIR_LLMC_HEAD_BYTES], uint32_t tokens, uint32_t width)
{
    memset(out, 0, WEIR_LLMC_HEAD_BYTES);
    weir_store_le(out, width == 2 ? LLMC_U16_MAGIC : LLMC_U32_MAGIC, 4);
    weir_store_le(out + 4, width == 2 ? LLMC_U16 : LLMC_U32, 4);
    weir_store_le(out + 8, tokens, 4);
}

/* ---- Megatron ---- */

static const char megatron_magic[9] = "MMIDIDX\0";
enum { MEGATRON_I32 = 4, MEGATRON_U16 = 8 };
static const char *const megatron_dtypes[] = {NULL,  "|u1", "|i1", "<i2", "<i4",
                                              "<i8", NULL,  NULL,  "<u2"};

static int not_megatron(const char *key, const char *why)
{
    return weir_fail(EBADMSG, "'%s': %s", key, why);
}

int weir_megatron_head(struct weir_megatron *out, const char *key, const uint8_t *head,
                       uint64_t file_bytes)
{
    if (file_bytes < WEIR_MEGATRON_HEAD_BYTES ||
        memcmp(head, megatron_magic, sizeof megatron_magic))
        return not_megatron(key, "it is no index of Megatron's: it does not begin like one");
    if (weir_load_le(head + 9, 8) != 1)
        return not_megatron(key, "it is of an unknown version");
    uint8_t dtype = head[17];
    if (dtype >= sizeof megatron_dtypes / sizeof megatron_dtypes[0] || !megatron_dtypes[dtype])
        return not_megatron(key, "its numbers are no tokens");
    struct weir_megatron m = {.sequences = weir_load_le(head + 18, 8),
                              .documents = weir_load_le(head + 26, 8)};
    strcpy(m.dtype, megatron_dtypes[dtype]);
    uint64_t sequences, documents, all;
    if (__builtin_mul_overflow(m.sequences, 12, &sequences) ||
        __builtin_mul_overflow(m.documents, 8, &documents) ||
        __builtin_add_overflow(sequences, documents, &all) ||
        all > file_bytes - WEIR_MEGATRON_HEAD_BYTES)
        return not_megatron(key, "it ends before the last of what its head counts: it was cut off");
    *out = m;
    return 0;
}

int weir_megatron_end(const struct weir_survey *survey, const char *idx,
                      const struct weir_megatron *head, uint64_t *out)
{
    uint8_t length[4], begin[8];
    uint64_t lengths = WEIR_MEGATRON_HEAD_BYTES, begins = lengths + 4 * head->sequences, size;
    *out = 0;
    if (!head->sequences)
        return 0;
    int code = weir_survey_read(survey, idx, length, sizeof length, begins - sizeof length);
    if (!code)
        code = weir_survey_read(survey, idx, begin, sizeof begin,
                                begins + 8 * head->sequences - sizeof begin);
    if (code)
        return code;
    if (__builtin_mul_overflow(weir_load_le(length, 4), weir_dtype_bytes(head->dtype), &size) ||
        __builtin_add_overflow(weir_load_le(begin, 8), size, out))
        return weir_fail(EBADMSG, "'%s': its last sequence ends nowhere", idx);
    return 0;
}

/* Two places of the same file, because the documents count sequences. */
struct walk {
    struct weir_flow *begins, *documents;
    struct weir_megatron head;
};

static int walk_open(struct walk *walk, weir_store *store, const char *key)
{
    uint8_t head[WEIR_MEGATRON_HEAD_BYTES];
    int code = weir_flow_open(&walk->begins, store, key, "", WEIR_OBJECT_BYTES_MAX);
    if (!code)
        code = weir_flow_open(&walk->documents, store, key, "", WEIR_OBJECT_BYTES_MAX);
    if (!code)
        code = weir_flow_read(walk->begins, head, sizeof head);
    if (!code) /* that it does not end too early, the flow says */
        code = weir_megatron_head(&walk->head, key, head, UINT64_MAX);
    if (!code)
        code = weir_flow_skip(walk->begins, 4 * walk->head.sequences);
    return code ? code
                : weir_flow_skip(walk->documents,
                                 WEIR_MEGATRON_HEAD_BYTES + 12 * walk->head.sequences);
}

/* Where a document begins; `at` says how many sequences are behind us. */
static int next_mark(struct walk *walk, uint64_t *at, uint64_t sequence, uint64_t *out)
{
    uint8_t word[8];
    int code = weir_flow_skip(walk->begins, 8 * (sequence - *at));
    if (!code)
        code = weir_flow_read(walk->begins, word, sizeof word);
    if (!code) {
        *at = sequence + 1;
        *out = weir_load_le(word, 8);
    }
    return code;
}

static int walk_marks(struct walk *walk, const struct weir_shard_plan *shard, weir_mark_fn fn,
                      void *arg)
{
    uint64_t at = 0, mark = 0;
    for (uint64_t i = 0; i < walk->head.documents; i++) {
        uint8_t word[8];
        int code = weir_flow_read(walk->documents, word, sizeof word);
        if (code)
            return code;
        uint64_t sequence = weir_load_le(word, 8);
        if (sequence >= walk->head.sequences)
            return sequence == walk->head.sequences /* where the last one ends */
                       ? 0
                       : weir_fail(EBADMSG, "document %" PRIu64 " begins with no sequence", i);
        if (sequence < at) /* an empty document begins where the next one does */
            continue;
        code = next_mark(walk, &at, sequence, &mark);
        if (!code && mark > shard->file_bytes)
            code = weir_fail(EBADMSG, "document %" PRIu64 " begins behind the end of '%s'", i,
                             shard->key);
        if (!code)
            code = fn(arg, mark);
        if (code)
            return code;
    }
    return 0;
}

int weir_megatron_marks(weir_store *store, const char *key, const struct weir_shard_plan *shard,
                        weir_mark_fn fn, void *arg)
{
    struct walk walk = {0};
    int code = walk_open(&walk, store, key);
    if (!code)
        code = walk_marks(&walk, shard, fn, arg);
    weir_flow_close(walk.begins);
    weir_flow_close(walk.documents);
    return code ? weir_fail_in(code, "'%s'", key) : 0;
}

int weir_megatron_make(struct weir_growing *out, uint32_t tokens, uint32_t width,
                       const uint32_t *starts, uint32_t count)
{
    size_t size = WEIR_MEGATRON_HEAD_BYTES + 20 * (size_t)count + 8;
    int code = weir_growing_room(out, size);
    if (code)
        return code;
    uint8_t *head = out->data + out->size, *lengths = head + WEIR_MEGATRON_HEAD_BYTES;
    uint8_t *begins = lengths + 4 * (size_t)count, *documents = begins + 8 * (size_t)count;
    memcpy(head, megatron_magic, sizeof megatron_magic);
    weir_store_le(head + 9, 1, 8);
    head[17] = width == 2 ? MEGATRON_U16 : MEGATRON_I32;
    weir_store_le(head + 18, count, 8);
    weir_store_le(head + 26, (uint64_t)count + 1, 8);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = i + 1 < count ? starts[i + 1] : tokens;
        weir_store_le(lengths + 4 * (size_t)i, end - starts[i], 4);
        weir_store_le(begins + 8 * (size_t)i, (uint64_t)starts[i] * width, 8);
        weir_store_le(documents + 8 * (size_t)i, i, 8);
    }
    weir_store_le(documents + 8 * (size_t)count, count, 8);
    out->size += size;
    return 0;
}
