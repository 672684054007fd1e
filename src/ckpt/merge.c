/* merge.c - see merge.h. Rows are gathered by name with a hash, so that only the names are sorted,
 * each once; the pieces of a tensor usually come in order.
 */
#include "ckpt/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/box.h"
#include "ckpt/safetensors.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { SLOTS_MIN = 1024, BOX_TEXT = 200 };

/* All rows that bear one name: a list, in the order of the parts. */
struct group {
    const char *name;
    struct line *first, *last;
};

/* One row of one part. */
struct line {
    struct line *next;
    uint32_t part;
    struct weir_tensor_row row;
};

struct merge {
    struct weir_manifest *manifest;
    bool with_parts;
    uint32_t parts;
    struct line *lines;
    size_t line_count;
    struct group *groups;
    size_t count, room;
    uint32_t *slots; /* of the hash: number of a group + 1; 0: free */
    size_t slot_count;
};

/* ---- gathering ---- */

static uint64_t hash_of(const char *name, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    weir_sum(sum, name, size);
    return weir_load_le(sum, 8);
}

static uint32_t *slot_of(struct merge *m, const char *name, size_t size)
{
    size_t at = hash_of(name, size) & (m->slot_count - 1);
    while (m->slots[at]) {
        const char *there = m->groups[m->slots[at] - 1].name;
        if (!strncmp(there, name, size) && !there[size])
            break;
        at = (at + 1) & (m->slot_count - 1);
    }
    return &m->slots[at];
}

/* Twice as many slots and groups, or the first ones. */
static int grow(struct merge *m)
{
    size_t slot_count = m->slot_count ? 2 * m->slot_count : SLOTS_MIN;
    struct group *groups = weir_realloc(m->groups, slot_count / 2 * sizeof *groups);
    uint32_t *slots = weir_alloc(slot_count * sizeof *slots);
    if (groups)
        m->groups = groups;
    if (!groups || !slots) {
        free(slots);
        return weir_fail_memory();
    }
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
    m->room = slot_count / 2;
    for (size_t i = 0; i < m->count; i++)
        *slot_of(m, m->groups[i].name, strlen(m->groups[i].name)) = (uint32_t)i + 1;
    return 0;
}

static struct group *group_of(struct merge *m, const char *name, size_t size)
{
    if (m->count == m->room && grow(m))
        return NULL;
    uint32_t *slot = slot_of(m, name, size);
    if (!*slot) {
        char *copy = weir_arena_take(&m->manifest->arena, size + 1);
        if (!copy) {
            weir_fail_memory();
            return NULL;
        }
        memcpy(copy, name, size);
        m->groups[m->count] = (struct group){.name = copy};
        *slot = (uint32_t)++m->count;
    }
    return &m->groups[*slot - 1];
}

static int gather_row(struct merge *m, struct line *line, const struct weir_row *row)
{
    size_t size = strnlen(row->key, row->key_size); /* what follows a zero tells rows apart */
    struct group *group = group_of(m, row->key, size);
    if (!group)
        return -ENOMEM;
    int code = weir_tensor_row_read(&line->row, row->value, row->value_size);
    if (!code && line->row.has_parts != m->with_parts)
        code = weir_fail(EBADMSG, "the manifest is damaged: a row of another kind");
    if (code)
        return weir_fail_in(code, "tensor '%.200s'", group->name);
    if (group->last)
        group->last->next = line;
    else
        group->first = line;
    group->last = line;
    return 0;
}

static int gather(struct merge *m, struct weir_table *const *tables, uint32_t count)
{
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += tables[i] ? (size_t)weir_table_count(tables[i]) : 0;
    m->lines = weir_alloc((total + 1) * sizeof *m->lines);
    if (!m->lines)
        return weir_fail_memory();
    for (uint32_t i = 0; i < count; i++) {
        uint64_t rows = tables[i] ? weir_table_count(tables[i]) : 0;
        for (uint64_t k = m->with_parts; k < rows; k++) { /* a merged one begins with its root */
            struct line *line = &m->lines[m->line_count++];
            struct weir_row row;
            weir_table_row(tables[i], k, &row);
            line->part = m->with_parts ? m->parts : i;
            int code = gather_row(m, line, &row);
            if (code)
                return code;
        }
    }
    return 0;
}

/* ---- one tensor ---- */

struct order {
    uint32_t along, ndim;
};

/* By where they begin in the dimension they are cut along, then in the others, then by shape. */
static int by_place(const void *a, const void *b, void *arg)
{
    const struct weir_piece *x = a, *y = b;
    const struct order *order = arg;
    if (order->ndim && x->offset[order->along] != y->offset[order->along])
        return x->offset[order->along] < y->offset[order->along] ? -1 : 1;
    for (uint32_t i = 0; i < order->ndim; i++)
        if (x->offset[i] != y->offset[i])
            return x->offset[i] < y->offset[i] ? -1 : 1;
    for (uint32_t i = 0; i < order->ndim; i++)
        if (x->shape[i] != y->shape[i])
            return x->shape[i] < y->shape[i] ? -1 : 1;
    return 0;
}

/* The dimension in which neighbours differ most often: the pieces are cut there. */
static uint32_t cut_along(const struct weir_piece *pieces, size_t count, uint32_t ndim)
{
    size_t most = 0;
    uint32_t along = 0;
    for (uint32_t d = 0; d < ndim; d++) {
        size_t cuts = 0;
        for (size_t i = 1; i < count; i++)
            cuts += pieces[i].offset[d] != pieces[i - 1].offset[d];
        if (cuts > most) {
            most = cuts;
            along = d;
        }
    }
    return along;
}

/* Sorts, and drops what several ranks have written alike. */
static void arrange(struct weir_manifest_tensor *t, struct weir_piece *pieces)
{
    struct order order = {cut_along(pieces, t->count, t->ndim), t->ndim};
    size_t sorted = 1, kept = 0;
    while (sorted < t->count && by_place(&pieces[sorted - 1], &pieces[sorted], &order) <= 0)
        sorted++;
    if (sorted < t->count)
        qsort_r(pieces, t->count, sizeof *pieces, by_place, &order);
    for (size_t i = 0; i < t->count; i++) {
        if (kept && !by_place(&pieces[kept - 1], &pieces[i], &order))
            continue;
        pieces[kept++] = pieces[i];
        if (t->ndim && pieces[i].shape[order.along] > t->reach)
            t->reach = pieces[i].shape[order.along];
    }
    t->pieces = pieces;
    t->count = kept;
    t->along = order.along;
}

static int overlap(const struct weir_manifest_tensor *t, const struct weir_piece *a,
                   const struct weir_piece *b)
{
    char x[BOX_TEXT], y[BOX_TEXT];
    weir_box_text(x, sizeof x, a->offset, a->shape, t->ndim);
    weir_box_text(y, sizeof y, b->offset, b->shape, t->ndim);
    return weir_fail(EBADMSG, "pieces of tensor '%.200s' overlap: %s of rank %u, %s of rank %u",
                     t->name, x, a->part, y, b->part);
}

static int missing(const struct weir_manifest_tensor *t, uint64_t sum, uint64_t whole)
{
    uint64_t offset[WEIR_DIMS_MAX], shape[WEIR_DIMS_MAX];
    char text[BOX_TEXT] = "a part";
    if (weir_box_hole(t, offset, shape))
        weir_box_text(text, sizeof text, offset, shape, t->ndim);
    return weir_fail(EBADMSG,
                     "nobody has %s of tensor '%.200s': its pieces have %" PRIu64
                     " bytes, the whole %" PRIu64,
                     text, t->name, sum, whole);
}

/* The pieces make up the whole: no two of them overlap, and they have as many elements together. */
static int check_cover(const struct weir_manifest_tensor *t)
{
    uint64_t whole, sum = 0;
    if (weir_st_bytes(t->dtype, t->shape, t->ndim, &whole))
        return weir_fail_in(-EBADMSG, "tensor '%.200s'", t->name);
    for (size_t i = 0; t->ndim && i < t->count; i++) {
        const struct weir_piece *a = &t->pieces[i];
        uint64_t end = a->offset[t->along] + a->shape[t->along];
        for (size_t k = i + 1; k < t->count && t->pieces[k].offset[t->along] < end; k++)
            if (weir_box_overlap(a, &t->pieces[k], t->ndim))
                return overlap(t, a, &t->pieces[k]);
    }
    for (size_t i = 0; i < t->count; i++) /* apart and within the whole: no overflow */
        sum += t->pieces[i].bytes;
    return sum == whole ? 0 : missing(t, sum, whole);
}

static int disagree(const struct group *group, const struct line *a, const struct line *b)
{
    return weir_fail(EBADMSG,
                     "ranks %u and %u do not agree on the dtype or shape of tensor '%.200s'",
                     a->part, b->part, group->name);
}

/* One tensor from the rows that bear its name. */
static int merge_group(struct merge *m, const struct group *group)
{
    struct weir_arena **arena = &m->manifest->arena;
    const struct weir_tensor_row *first = &group->first->row;
    struct weir_manifest_tensor *t = &m->manifest->tensors[m->manifest->count++];
    *t = (struct weir_manifest_tensor){
        .name = group->name, .dtype = first->dtype, .ndim = first->ndim};
    size_t total = 0;
    for (const struct line *line = group->first; line; line = line->next)
        total += line->row.pieces;
    t->shape = weir_dims_take(arena, first->shape, first->ndim);
    struct weir_piece *pieces = weir_arena_take(arena, total * sizeof *pieces);
    if (!t->shape || !pieces)
        return weir_fail_memory();
    for (const struct line *line = group->first; line; line = line->next) {
        const struct weir_tensor_row *row = &line->row;
        if (row->dtype != first->dtype || row->ndim != first->ndim ||
            memcmp(row->shape, first->shape, 8 * (size_t)row->ndim))
            return disagree(group, group->first, line);
        int code = weir_tensor_row_pieces(arena, row, t->shape, line->part, pieces + t->count);
        if (code)
            return weir_fail_in(code, "tensor '%.200s'", group->name);
        t->count += row->pieces;
    }
    arrange(t, pieces);
    return check_cover(t);
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int merge_groups(struct merge *m)
{
    int code = 0;
    if (m->count)
        qsort(m->groups, m->count, sizeof *m->groups, by_name);
    m->manifest->tensors = weir_alloc((m->count + 1) * sizeof *m->manifest->tensors);
    if (!m->manifest->tensors)
        return weir_fail_memory();
    for (size_t i = 0; !code && i < m->count; i++)
        code = merge_group(m, &m->groups[i]);
    return code;
}

int weir_merge_tables(struct weir_manifest **out, struct weir_table *const *tables, uint32_t count,
                      bool with_parts, uint32_t parts)
{
    struct merge m = {.with_parts = with_parts, .parts = parts};
    m.manifest = weir_alloc(sizeof *m.manifest);
    int code = m.manifest ? gather(&m, tables, count) : weir_fail_memory();
    if (!code)
        code = merge_groups(&m);
    free(m.lines);
    free(m.groups);
    free(m.slots);
    if (code)
        weir_manifest_free(m.manifest);
    else
        *out = m.manifest;
    return code;
}

static int open_table(struct weir_view *view, uint32_t number, struct weir_table **out)
{
    struct weir_part part;
    int code = weir_view_part(view, number, &part);
    const uint8_t *at = part.refs_at;
    for (uint32_t i = 0; !code && i < part.refs; i++) {
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        if (ref.kind == WEIR_REF_TABLE)
            return weir_view_table(view, &ref, out);
    }
    return code;
}

int weir_manifest_merge(struct weir_manifest **out, struct weir_view *view)
{
    uint32_t parts = weir_view_entry(view)->save.parts;
    struct weir_table **tables = weir_alloc(parts * sizeof *tables);
    int code = tables ? 0 : weir_fail_memory();
    for (uint32_t i = 0; !code && i < parts; i++)
        code = open_table(view, i, &tables[i]);
    if (!code)
        code = weir_merge_tables(out, tables, parts, false, parts);
    for (uint32_t i = 0; tables && i < parts; i++)
        weir_table_close(tables[i]);
    free(tables);
    return code;
}
