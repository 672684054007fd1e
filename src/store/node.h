/* node.h - the records of a set (set.h): nodes of its tree, and the parts they list.
 * Pure functions.
 *
 * A node on disk (little-endian), version 1:
 *
 *    0  8  "WEIRNODE"
 *    8  2  version, 1
 *   10  2  zero
 *   12  4  level; 0 is a leaf
 *   16  8  index within the level
 *   24  4  parts of the whole set
 *   28  4  parts in this node
 *   32     for each part, in order: u32 number, u32 length, payload
 *      16  XXH3-128 of everything before
 *
 * The payload of a part names what the part consists of, and carries a note of the workload's:
 *
 *    0  2  version, 1
 *    2  2  number of references
 *    4     references: u8 kind ('o' or 't'), u8 length of the name, 32 bytes SHA-256, the name
 *          the note: all the rest
 *
 * A reference of kind 'o' is an object, by the SHA-256 of its seal; one of kind 't' a table
 * (table.h), by the SHA-256 of its bytes. Names are relative to the save's prefix.
 */
#ifndef WEIR_STORE_NODE_H
#define WEIR_STORE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tier/tier.h"
#include "util/hash.h"

enum {
    WEIR_SET_PARTS_MAX = 32768,
    WEIR_SET_LEVELS_MAX = 15,
    WEIR_PART_PAYLOAD_BYTES_MAX = 1024, /* a part with more to say says it in a table */
    WEIR_REF_NAME_BYTES_MAX = 220,
};

enum weir_ref_kind { WEIR_REF_OBJECT = 'o', WEIR_REF_TABLE = 't' };

struct weir_ref {
    enum weir_ref_kind kind;
    char name[WEIR_REF_NAME_BYTES_MAX + 1];
    uint8_t digest[WEIR_SHA256_BYTES];
};

/* A payload; iterate with weir_part_ref(). */
struct weir_part {
    uint32_t number, refs;
    const uint8_t *refs_at, *note;
    size_t note_size;
};

/* Fills out, whose size is *size; -E2BIG if it does not fit. */
int weir_part_encode(uint8_t out[WEIR_PART_PAYLOAD_BYTES_MAX], size_t *size,
                     const struct weir_ref *refs, uint32_t count, const void *note,
                     size_t note_size);
/* Points into payload. */
int weir_part_decode(struct weir_part *out, uint32_t number, const uint8_t *payload, size_t size);
/* Copies the reference at *at, which begins as part->refs_at, and steps over it. */
void weir_part_ref(struct weir_ref *out, const uint8_t **at);

/* Points into bytes. */
struct weir_node {
    uint32_t level, parts_total, parts;
    uint64_t index;
    const uint8_t *list;
    size_t list_size;
};

/* Bytes owned by the caller: the lists of a and, if it has one, of its sibling b, joined. */
int weir_node_join(const struct weir_node *a, const struct weir_node *b, uint8_t **out,
                   size_t *size);
int weir_node_leaf(uint32_t parts_total, uint32_t part, const void *payload, size_t payload_size,
                   uint8_t **out, size_t *size);
int weir_node_decode(struct weir_node *out, const uint8_t *bytes, size_t size);
/* The payload at *at, which begins as node->list; steps over it. */
int weir_node_part(struct weir_part *out, const uint8_t **at);

#endif
