/* The records of a set: parts with references and notes, nodes that join, and bytes that are
 * neither.
 */
#include "stores.h"

#include "store/node.h"
#include "util/bytes.h"

enum { REF_HEAD = 34, NODE_HEAD = 32 };

static struct weir_ref ref_of(enum weir_ref_kind kind, const char *name, uint8_t byte)
{
    struct weir_ref ref = {.kind = kind};
    snprintf(ref.name, sizeof ref.name, "%s", name);
    memset(ref.digest, byte, sizeof ref.digest);
    return ref;
}

static void parts_come_back(void)
{
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX];
    size_t size;
    struct weir_ref refs[2] = {ref_of(WEIR_REF_OBJECT, "rank-0/a", 1),
                               ref_of(WEIR_REF_TABLE, "table", 2)};
    struct weir_part part;
    OK(weir_part_encode(payload, &size, refs, 2, "note", 4));
    OK(weir_part_decode(&part, 7, payload, size));
    CHECK(part.number == 7 && part.refs == 2);
    CHECK(part.note_size == 4 && !memcmp(part.note, "note", 4));
    const uint8_t *at = part.refs_at;
    for (unsigned i = 0; i < 2; i++) {
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        CHECK(ref.kind == refs[i].kind && !strcmp(ref.name, refs[i].name));
        CHECK(!memcmp(ref.digest, refs[i].digest, sizeof ref.digest));
    }
    CHECK(at == part.note);
    OK(weir_part_encode(payload, &size, NULL, 0, NULL, 0)); /* of nothing */
    OK(weir_part_decode(&part, 0, payload, size));
    CHECK(part.refs == 0 && part.note_size == 0);
}

static void parts_at_their_limits(void)
{
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX], note[WEIR_PART_PAYLOAD_BYTES_MAX] = {0};
    struct weir_ref refs[32];
    struct weir_part part;
    size_t size, left = WEIR_PART_PAYLOAD_BYTES_MAX - 4;
    OK(weir_part_encode(payload, &size, NULL, 0, note, left));
    CHECK_EQ(size, sizeof payload);
    OK(weir_part_decode(&part, 0, payload, size));
    CHECK_EQ(part.note_size, left);
    CHECK_EQ(weir_part_encode(payload, &size, NULL, 0, note, left + 1), -E2BIG);
    char name[WEIR_REF_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof name);
    name[WEIR_REF_NAME_BYTES_MAX] = 0;
    for (unsigned i = 0; i < 32; i++)
        refs[i] = ref_of(WEIR_REF_OBJECT, name, 1);
    OK(weir_part_encode(payload, &size, refs, 4, NULL, 0)); /* four of 254 bytes */
    OK(weir_part_decode(&part, 0, payload, size));
    CHECK_EQ(weir_part_encode(payload, &size, refs, 5, NULL, 0), -E2BIG);
    CHECK(strstr(weir_error_text(), "table"));
    CHECK_EQ(weir_part_encode(payload, &size, refs, 4, note, left - 4 * 254 + 1), -E2BIG);
    for (unsigned i = 0; i < 32; i++)
        refs[i] = ref_of(WEIR_REF_OBJECT, "n", 1);
    OK(weir_part_encode(payload, &size, refs, left / (REF_HEAD + 1), NULL, 0));
    CHECK_EQ(weir_part_encode(payload, &size, refs, left / (REF_HEAD + 1) + 1, NULL, 0), -E2BIG);
    CHECK_EQ(weir_part_encode(payload, &size, refs, UINT32_MAX, NULL, 0), -E2BIG);
    refs[0].name[0] = 0;
    CHECK_EQ(weir_part_encode(payload, &size, refs, 1, NULL, 0), -EINVAL);
    refs[0] = ref_of(WEIR_REF_OBJECT, "../up", 1);
    CHECK_EQ(weir_part_encode(payload, &size, refs, 1, NULL, 0), -EINVAL);
}

/* ---- nodes ---- */

struct held {
    struct weir_node node;
    uint8_t *bytes;
    size_t size;
};

static struct held leaf_of(uint32_t total, uint32_t part)
{
    struct held held;
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX];
    char text[16];
    struct weir_ref ref = ref_of(WEIR_REF_OBJECT, "o", (uint8_t)part);
    size_t size;
    snprintf(text, sizeof text, "%u", part);
    OK(weir_part_encode(payload, &size, &ref, 1, text, strlen(text)));
    OK(weir_node_leaf(total, part, payload, size, &held.bytes, &held.size));
    OK(weir_node_decode(&held.node, held.bytes, held.size));
    return held;
}

/* The node above all parts from first on, by joining; the order of the two does not matter. */
static struct held node_of(uint32_t total, uint32_t level, uint32_t index)
{
    if (!level)
        return leaf_of(total, index);
    struct held held, again, a = node_of(total, level - 1, 2 * index);
    bool both = (2 * index + 1) << (level - 1) < total;
    if (!both) {
        OK(weir_node_join(&a.node, NULL, &held.bytes, &held.size));
    } else {
        struct held b = node_of(total, level - 1, 2 * index + 1);
        OK(weir_node_join(&a.node, &b.node, &held.bytes, &held.size));
        OK(weir_node_join(&b.node, &a.node, &again.bytes, &again.size));
        CHECK(held.size == again.size && !memcmp(held.bytes, again.bytes, held.size));
        free(again.bytes);
        free(b.bytes);
    }
    free(a.bytes);
    OK(weir_node_decode(&held.node, held.bytes, held.size));
    CHECK(held.node.level == level && held.node.index == index);
    return held;
}

static void nodes_join(void)
{
    for (uint32_t total = 1; total <= 33; total++) {
        uint32_t level = 0;
        while ((1u << level) < total)
            level++;
        struct held root = node_of(total, level, 0);
        CHECK(root.node.parts == total && root.node.parts_total == total);
        const uint8_t *at = root.node.list;
        for (uint32_t i = 0; i < total; i++) {
            struct weir_part part;
            char text[16];
            OK(weir_node_part(&part, &at));
            snprintf(text, sizeof text, "%u", i);
            CHECK(part.number == i && part.refs == 1);
            CHECK(part.note_size == strlen(text) && !memcmp(part.note, text, part.note_size));
        }
        CHECK(at == root.node.list + root.node.list_size);
        free(root.bytes);
    }
}

/* ---- damage ---- */

static int decode_exact(const uint8_t *bytes, size_t size)
{
    struct weir_node node;
    uint8_t *copy = malloc(size ? size : 1); /* a sanitizer sees the first byte beyond */
    memcpy(copy, bytes, size);
    int code = weir_node_decode(&node, copy, size);
    free(copy);
    return code;
}

static int decode_resummed(struct held *held)
{
    weir_sum(held->bytes + held->size - WEIR_SUM_BYTES, held->bytes, held->size - WEIR_SUM_BYTES);
    return decode_exact(held->bytes, held->size);
}

static void every_bit_counts(void)
{
    struct held root = node_of(5, 3, 0);
    OK(decode_exact(root.bytes, root.size));
    for (size_t bit = 0; bit < 8 * root.size; bit++) {
        root.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        CHECK_EQ(decode_exact(root.bytes, root.size), -EBADMSG);
        root.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (size_t cut = 0; cut < root.size; cut++)
        CHECK_EQ(decode_exact(root.bytes, cut), -EBADMSG);
    free(root.bytes);
}

/* The sum is right, and what it covers is not. */
static void impossible_nodes(void)
{
    static const struct {
        size_t at, size;
        uint64_t value;
        int code;
    } bad[] = {
        {8, 2, 2, -EPROTO},
        {12, 4, 2, -EBADMSG},
        {12, 4, 16, -EBADMSG},
        {12, 4, 64, -EBADMSG},
        {16, 8, 1, -EBADMSG},
        {16, 8, 1ull << 61, -EBADMSG},
        {24, 4, 0, -EBADMSG},
        {24, 4, 4, -EBADMSG},
        {24, 4, 6, -EBADMSG},
        {28, 4, 4, -EBADMSG},
        {NODE_HEAD, 4, 1, -EBADMSG},
        {NODE_HEAD + 4, 4, 0, -EBADMSG},
        {24, 4, 32769, -EBADMSG},
        {28, 4, UINT32_MAX, -EBADMSG},
        {NODE_HEAD + 4, 4, -1u, -EBADMSG},
        {NODE_HEAD + 8, 2, 2, -EBADMSG},  /* a part's version */
        {NODE_HEAD + 10, 2, 2, -EBADMSG}, /* more references than there are */
        {NODE_HEAD + 12, 1, 'x', -EBADMSG},
        {NODE_HEAD + 13, 1, 0, -EBADMSG},
        {NODE_HEAD + 13, 1, 255, -EBADMSG},
        {NODE_HEAD + 12 + REF_HEAD, 1, '/', -EBADMSG},
        {NODE_HEAD + 12 + REF_HEAD, 1, 0, -EBADMSG},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct held root = node_of(5, 3, 0);
        OK(decode_resummed(&root));
        weir_store_le(root.bytes + bad[i].at, bad[i].value, (unsigned)bad[i].size);
        CHECK_EQ(decode_resummed(&root), bad[i].code);
        free(root.bytes);
    }
}

int main(void)
{
    RUN(parts_come_back);
    RUN(parts_at_their_limits);
    RUN(nodes_join);
    RUN(every_bit_counts);
    RUN(impossible_nodes);
    return TEST_RESULT;
}
