/* foreign.h - what the targets for foreign checkpoints share: whatever value came out of them is
 * written as a state, which is JSON, and its tensors are read, which stays within the files.
 */
#ifndef WEIR_FUZZ_FOREIGN_H
#define WEIR_FUZZ_FOREIGN_H

#include "ckpt/tagged.h"
#include "target.h"

enum { READ_BYTES_MAX = 1 << 16 };

static inline void check_json(const char *text, size_t size)
{
    struct weir_json json;
    int code;
    weir_json_begin(&json, text, size);
    while ((code = weir_json_next(&json)) == 1)
        ;
    PROMISE(code == 0);
}

/* In one piece and in odd ones: the same bytes, or the same failure. */
static inline void read_both_ways(const struct weir_from *from)
{
    struct weir_windows windows = {0};
    size_t size = from->bytes < READ_BYTES_MAX ? (size_t)from->bytes : READ_BYTES_MAX;
    uint8_t *whole = malloc(size + 1), *pieces = malloc(size + 1);
    PROMISE(whole && pieces);
    int code = weir_from_read(from, &windows, 0, whole, size), other = 0;
    for (size_t at = 0, n; !other && at < size; at += n) {
        n = size - at < 7 ? size - at : 7;
        other = weir_from_read(from, &windows, at, pieces + at, n);
    }
    PROMISE(!code == !other);
    PROMISE(code || !size || !memcmp(whole, pieces, size));
    weir_windows_free(&windows);
    free(whole);
    free(pieces);
}

static inline void check_value(const struct weir_value *root, struct weir_arena **arena)
{
    struct weir_tagged tagged;
    if (weir_tagged_make(&tagged, arena, root, true))
        return;
    check_json(tagged.text, tagged.size);
    for (size_t i = 0; i < tagged.count && i < 64; i++)
        read_both_ways(tagged.tensors[i].from);
    weir_tagged_free(&tagged);
}

#endif
