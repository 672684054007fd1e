/* Nodes of sets, and parts. The first byte says how: 1 makes the node's own sum right; 2 takes the
 * bytes for a part instead. What decodes can be walked to its end, and names only what a key may.
 */
#include "store/node.h"
#include "target.h"
#include "util/key.h"

enum { RESUM = 1, PART = 2 };

/* Walks the references, up to the note; encoded again they are the same. */
static void check_part(const struct weir_part *part, const uint8_t *payload, size_t size)
{
    uint8_t again[WEIR_PART_PAYLOAD_BYTES_MAX];
    struct weir_ref refs[WEIR_PART_PAYLOAD_BYTES_MAX / 34];
    size_t again_size;
    const uint8_t *at = part->refs_at;
    PROMISE(part->refs <= sizeof refs / sizeof refs[0]);
    for (uint32_t i = 0; i < part->refs; i++) {
        weir_part_ref(&refs[i], &at);
        PROMISE(at <= payload + size && weir_key_check(refs[i].name) == 0);
        PROMISE(refs[i].kind == WEIR_REF_OBJECT || refs[i].kind == WEIR_REF_TABLE);
    }
    PROMISE(at == part->note && part->note + part->note_size == payload + size);
    PROMISE(weir_part_encode(again, &again_size, refs, part->refs, part->note, part->note_size) ==
            0);
    PROMISE(again_size == size && !memcmp(again, payload, size));
}

/* Splits a node into its leaves and joins the first two of them again, if it has them. */
static void check_join(const struct weir_node *node, const uint8_t *const payloads[2],
                       const size_t sizes[2], uint32_t first)
{
    struct weir_node a, b, parent;
    uint8_t *bytes[3];
    size_t bytes_sizes[3];
    if (first % 2 || first + 1 >= node->parts_total)
        return;
    for (uint32_t i = 0; i < 2; i++)
        PROMISE(weir_node_leaf(node->parts_total, first + i, payloads[i], sizes[i], &bytes[i],
                               &bytes_sizes[i]) == 0);
    PROMISE(weir_node_decode(&a, bytes[0], bytes_sizes[0]) == 0);
    PROMISE(weir_node_decode(&b, bytes[1], bytes_sizes[1]) == 0);
    PROMISE(weir_node_join(&b, &a, &bytes[2], &bytes_sizes[2]) == 0);
    PROMISE(weir_node_decode(&parent, bytes[2], bytes_sizes[2]) == 0);
    PROMISE(parent.parts == 2 && parent.level == 1 && parent.index == first / 2);
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
}

static void check_node(const struct weir_node *node)
{
    const uint8_t *at = node->list, *end = node->list + node->list_size, *payloads[2];
    size_t sizes[2];
    uint32_t first = (uint32_t)(node->index << node->level);
    PROMISE(node->parts && node->parts <= node->parts_total);
    for (uint32_t i = 0; i < node->parts; i++) {
        struct weir_part part;
        const uint8_t *payload = at + 8;
        PROMISE(weir_node_part(&part, &at) == 0);
        PROMISE(at <= end && part.number == first + i);
        check_part(&part, payload, (size_t)(at - payload));
        if (i < 2) {
            payloads[i] = payload;
            sizes[i] = (size_t)(at - payload);
        }
    }
    PROMISE(at == end);
    if (node->parts >= 2)
        check_join(node, payloads, sizes, first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_node node;
    struct weir_part part;
    if (!size)
        return 0;
    uint8_t how = *data++;
    uint8_t *bytes = exact_copy(data, --size);
    if (how & RESUM && size >= WEIR_SUM_BYTES)
        weir_sum(bytes + size - WEIR_SUM_BYTES, bytes, size - WEIR_SUM_BYTES);
    if (how & PART && weir_part_decode(&part, 3, bytes, size) == 0)
        check_part(&part, bytes, size);
    else if (!(how & PART) && weir_node_decode(&node, bytes, size) == 0)
        check_node(&node);
    free(bytes);
    return 0;
}
