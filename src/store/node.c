/* node.c - see node.h. The decoders take any bytes. */
#include "store/node.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    NODE_HEAD_BYTES = 32,
    LIST_HEAD_BYTES = 8,
    PART_HEAD_BYTES = 4,
    REF_HEAD_BYTES = 34, /* without the name */
    VERSION = 1,
};
static const char magic[8] = {'W', 'E', 'I', 'R', 'N', 'O', 'D', 'E'};

_Static_assert(NODE_HEAD_BYTES + WEIR_SUM_BYTES +
                       (size_t)WEIR_SET_PARTS_MAX *
                           (LIST_HEAD_BYTES + WEIR_PART_PAYLOAD_BYTES_MAX) <=
                   WEIR_RECORD_BYTES_MAX,
               "the root of the largest set is a record");
_Static_assert(1 << WEIR_SET_LEVELS_MAX == WEIR_SET_PARTS_MAX, "a level doubles");

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the node is damaged: %s", why);
}

/* ---- parts ---- */

int weir_part_encode(uint8_t out[WEIR_PART_PAYLOAD_BYTES_MAX], size_t *size,
                     const struct weir_ref *refs, uint32_t count, const void *note,
                     size_t note_size)
{
    size_t at = PART_HEAD_BYTES;
    if (count > WEIR_PART_PAYLOAD_BYTES_MAX / REF_HEAD_BYTES)
        return weir_fail(E2BIG, "a part with %u references: list them in a table", count);
    weir_store_le(out, VERSION, 2);
    weir_store_le(out + 2, count, 2);
    for (uint32_t i = 0; i < count; i++) {
        size_t name_size = strlen(refs[i].name);
        int code = weir_key_check(refs[i].name);
        if (code)
            return code;
        if (WEIR_PART_PAYLOAD_BYTES_MAX - at < REF_HEAD_BYTES + name_size)
            return weir_fail(E2BIG, "a part with %u references: list them in a table", count);
        out[at] = (uint8_t)refs[i].kind;
        out[at + 1] = (uint8_t)name_size;
        memcpy(out + at + 2, refs[i].digest, WEIR_SHA256_BYTES);
        memcpy(out + at + REF_HEAD_BYTES, refs[i].name, name_size);
        at += REF_HEAD_BYTES + name_size;
    }
    if (note_size > WEIR_PART_PAYLOAD_BYTES_MAX - at)
        return weir_fail(E2BIG, "a note of %zu bytes: there is room for %zu", note_size,
                         WEIR_PART_PAYLOAD_BYTES_MAX - at);
    if (note_size)
        memcpy(out + at, note, note_size);
    *size = at + note_size;
    return 0;
}

static const char *ref_fault(const uint8_t *at, const uint8_t *end)
{
    struct weir_ref ref;
    if (end - at < REF_HEAD_BYTES || end - at - REF_HEAD_BYTES < at[1])
        return "a reference is cut short";
    if (at[0] != WEIR_REF_OBJECT && at[0] != WEIR_REF_TABLE)
        return "a reference is of no known kind";
    if (at[1] > WEIR_REF_NAME_BYTES_MAX)
        return "the name of a reference is too long";
    size_t size = at[1];
    weir_part_ref(&ref, &at);
    return strlen(ref.name) != size || weir_key_check(ref.name) ? "a reference has no name" : NULL;
}

int weir_part_decode(struct weir_part *out, uint32_t number, const uint8_t *payload, size_t size)
{
    if (size < PART_HEAD_BYTES || size > WEIR_PART_PAYLOAD_BYTES_MAX)
        return damaged("a part has an impossible length");
    if (weir_load_le(payload, 2) != VERSION)
        return weir_fail(EPROTO, "the part was written by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(payload, 2));
    struct weir_part part = {number, (uint32_t)weir_load_le(payload + 2, 2),
                             payload + PART_HEAD_BYTES, NULL, 0};
    const uint8_t *at = part.refs_at, *end = payload + size;
    for (uint32_t i = 0; i < part.refs; i++) {
        const char *fault = ref_fault(at, end);
        if (fault)
            return damaged(fault);
        at += REF_HEAD_BYTES + at[1];
    }
    part.note = at;
    part.note_size = (size_t)(end - at);
    *out = part;
    return 0;
}

void weir_part_ref(struct weir_ref *out, const uint8_t **at)
{
    const uint8_t *p = *at;
    out->kind = p[0];
    memcpy(out->digest, p + 2, WEIR_SHA256_BYTES);
    memcpy(out->name, p + REF_HEAD_BYTES, p[1]);
    out->name[p[1]] = 0;
    *at = p + REF_HEAD_BYTES + p[1];
}

/* ---- nodes ---- */

/* A node holds just the parts below it, each once, in order. */
static bool list_is_good(const struct weir_node *n)
{
    uint64_t first = n->index << n->level, end = (n->index + 1) << n->level;
    size_t at = 0;
    if (end > n->parts_total)
        end = n->parts_total;
    if (first >= end || n->parts != end - first)
        return false;
    for (uint64_t part = first; part < end; part++) {
        struct weir_part decoded;
        if (n->list_size - at < LIST_HEAD_BYTES || weir_load_le(n->list + at, 4) != part)
            return false;
        size_t size = (size_t)weir_load_le(n->list + at + 4, 4);
        at += LIST_HEAD_BYTES;
        if (size > n->list_size - at ||
            weir_part_decode(&decoded, (uint32_t)part, n->list + at, size))
            return false;
        at += size;
    }
    return at == n->list_size;
}

int weir_node_decode(struct weir_node *out, const uint8_t *bytes, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    if (size < NODE_HEAD_BYTES + WEIR_SUM_BYTES || memcmp(bytes, magic, sizeof magic))
        return damaged("it does not begin like one");
    weir_sum(sum, bytes, size - WEIR_SUM_BYTES);
    if (memcmp(sum, bytes + size - WEIR_SUM_BYTES, WEIR_SUM_BYTES))
        return damaged("its bytes do not match its own sum");
    if (weir_load_le(bytes + 8, 2) != VERSION)
        return weir_fail(EPROTO, "the node was written by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(bytes + 8, 2));
    struct weir_node n = {
        .level = (uint32_t)weir_load_le(bytes + 12, 4),
        .index = weir_load_le(bytes + 16, 8),
        .parts_total = (uint32_t)weir_load_le(bytes + 24, 4),
        .parts = (uint32_t)weir_load_le(bytes + 28, 4),
        .list = bytes + NODE_HEAD_BYTES,
        .list_size = size - NODE_HEAD_BYTES - WEIR_SUM_BYTES,
    };
    if (n.level > WEIR_SET_LEVELS_MAX || n.index >= WEIR_SET_PARTS_MAX ||
        n.parts_total > WEIR_SET_PARTS_MAX || !list_is_good(&n))
        return damaged("its list of parts is impossible");
    *out = n;
    return 0;
}

/* A node with two lists, the second of which may be empty, one after the other. */
static int node_make(const struct weir_node *n, const void *more, size_t more_size, uint8_t **out,
                     size_t *size)
{
    size_t total = NODE_HEAD_BYTES + n->list_size + more_size + WEIR_SUM_BYTES;
    uint8_t *bytes = weir_alloc(total);
    if (!bytes)
        return weir_fail_memory();
    memcpy(bytes, magic, sizeof magic);
    weir_store_le(bytes + 8, VERSION, 2);
    weir_store_le(bytes + 12, n->level, 4);
    weir_store_le(bytes + 16, n->index, 8);
    weir_store_le(bytes + 24, n->parts_total, 4);
    weir_store_le(bytes + 28, n->parts, 4);
    memcpy(bytes + NODE_HEAD_BYTES, n->list, n->list_size);
    if (more_size)
        memcpy(bytes + NODE_HEAD_BYTES + n->list_size, more, more_size);
    weir_sum(bytes + total - WEIR_SUM_BYTES, bytes, total - WEIR_SUM_BYTES);
    *out = bytes;
    *size = total;
    return 0;
}

int weir_node_join(const struct weir_node *a, const struct weir_node *b, uint8_t **out,
                   size_t *size)
{
    if (b && b->index < a->index) {
        const struct weir_node *first = b;
        b = a;
        a = first;
    }
    assert(a->index % 2 == 0 && (!b || (b->index == a->index + 1 && b->level == a->level)));
    struct weir_node parent = *a;
    parent.level++;
    parent.index /= 2;
    parent.parts += b ? b->parts : 0;
    return node_make(&parent, b ? b->list : NULL, b ? b->list_size : 0, out, size);
}

int weir_node_leaf(uint32_t parts_total, uint32_t part, const void *payload, size_t payload_size,
                   uint8_t **out, size_t *size)
{
    uint8_t head[LIST_HEAD_BYTES];
    struct weir_node leaf = {0, parts_total, 1, part, head, sizeof head};
    weir_store_le(head, part, 4);
    weir_store_le(head + 4, payload_size, 4);
    return node_make(&leaf, payload, payload_size, out, size);
}

int weir_node_part(struct weir_part *out, const uint8_t **at)
{
    uint32_t number = (uint32_t)weir_load_le(*at, 4);
    size_t size = (size_t)weir_load_le(*at + 4, 4);
    const uint8_t *payload = *at + LIST_HEAD_BYTES;
    *at = payload + size;
    return weir_part_decode(out, number, payload, size);
}
