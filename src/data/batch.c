/* batch.c - see batch.h. */
#include "data/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "util/copy.h"
#include "util/copy_sum.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    PAGES_GROUP = 8, /* rows */
};

/* A value of a sample, where it is now. */
struct cell {
    const uint8_t *data;
    size_t size;
    uint64_t dtype; /* the eight characters */
    size_t shape;   /* where in the gather's sizes */
    uint8_t kind, ndim;
    bool is_ragged;
};

struct gathered {
    struct weir_growing name; /* with a zero byte */
    struct cell *cells;
    uint64_t room;
    bool is_stacked, is_even; /* even: all of one kind and dtype */
    uint8_t kind;
    uint64_t dtype;
};

struct row {
    struct weir_drawing which;
    const uint8_t *data;
    size_t size;
};

struct weir_gather {
    bool is_raw;
    bool is_large; /* batches are pushed out of the cache before they are used */
    size_t wanted; /* columns that are there from the beginning; 0: all are taken */
    struct gathered columns[WEIR_COLUMNS_MAX];
    size_t count;
    size_t hints[WEIR_FIELDS_MAX]; /* which column a sample's i-th field went to */
    struct weir_field fields[WEIR_FIELDS_MAX];
    struct row *rows;
    uint64_t rows_count, rows_room, rows_max;
    struct weir_growing sizes; /* dimensions, as uint64_t */
    struct weir_growing parts;
    struct weir_arena *scratch;
};

/* ---- its life ---- */

static int set_name(struct gathered *column, const char *name, size_t size)
{
    column->name.size = 0;
    int code = weir_growing_add(&column->name, name, size);
    return code ? code : weir_growing_add(&column->name, "", 1);
}

int weir_gather_open(struct weir_gather **out, const char *const *wanted, size_t wanted_count,
                     bool is_raw, bool is_large)
{
    if (wanted_count > WEIR_FIELDS_MAX)
        return weir_fail(EINVAL, "%zu fields are wanted; a sample has at most %d", wanted_count,
                         WEIR_FIELDS_MAX);
    struct weir_gather *gather = weir_alloc(sizeof *gather);
    if (!gather)
        return weir_fail_memory();
    gather->wanted = wanted_count;
    gather->is_raw = is_raw;
    gather->is_large = is_large;
    int code = 0;
    for (size_t i = 0; i < wanted_count && !code; i++)
        code = set_name(&gather->columns[i], wanted[i], strlen(wanted[i]));
    if (code) {
        weir_gather_close(gather);
        return code;
    }
    *out = gather;
    return 0;
}

void weir_gather_close(struct weir_gather *gather)
{
    if (!gather)
        return;
    for (size_t i = 0; i < WEIR_COLUMNS_MAX; i++) {
        weir_growing_free(&gather->columns[i].name);
        free(gather->columns[i].cells);
    }
    free(gather->rows);
    weir_growing_free(&gather->sizes);
    weir_growing_free(&gather->parts);
    weir_arena_free(gather->scratch);
    free(gather);
}

/* ---- adding ---- */

static int start_column(struct weir_gather *gather, struct gathered *column)
{
    if (column->room < gather->rows_max) {
        struct cell *cells = weir_realloc(column->cells, gather->rows_max * sizeof *cells);
        if (!cells)
            return weir_fail_memory();
        column->cells = cells;
        column->room = gather->rows_max;
    }
    for (uint64_t i = 0; i < gather->rows_max; i++)
        column->cells[i] = (struct cell){.kind = WEIR_FIELD_NONE};
    return 0;
}

int weir_gather_begin(struct weir_gather *gather, uint64_t rows)
{
    if (gather->rows_room < rows) {
        struct row *more = weir_realloc(gather->rows, rows * sizeof *more);
        if (!more)
            return weir_fail_memory();
        gather->rows = more;
        gather->rows_room = rows;
    }
    gather->rows_max = rows;
    gather->rows_count = 0;
    gather->sizes.size = gather->parts.size = 0;
    weir_arena_free(gather->scratch);
    gather->scratch = NULL;
    int code = 0;
    for (gather->count = 0; gather->count < gather->wanted && !code; gather->count++)
        code = start_column(gather, &gather->columns[gather->count]);
    return code;
}

static bool is_named(const struct gathered *column, const struct weir_field *field)
{
    return column->name.size == field->name_size + 1 &&
           !memcmp(column->name.data, field->name, field->name_size);
}

/* The column of a sample's i-th field; NULL and 0 if it is not wanted. Samples mostly have the same
 * fields in the same order, so the hint is right. */
static int find_column(struct weir_gather *gather, uint32_t i, struct gathered **out)
{
    const struct weir_field *field = &gather->fields[i];
    size_t at = gather->hints[i];
    if (at >= gather->count || !is_named(&gather->columns[at], field))
        for (at = 0; at < gather->count && !is_named(&gather->columns[at], field);)
            at++;
    *out = at < gather->count ? &gather->columns[at] : NULL;
    gather->hints[i] = at;
    if (*out || gather->wanted)
        return 0;
    if (gather->count == WEIR_COLUMNS_MAX)
        return weir_fail(EFBIG,
                         "the samples of a batch have more than %d different fields: choose "
                         "some of them",
                         WEIR_COLUMNS_MAX);
    struct gathered *column = &gather->columns[at];
    int code = set_name(column, field->name, field->name_size);
    if (!code)
        code = start_column(gather, column);
    if (!code) {
        gather->count++;
        *out = column;
    }
    return code;
}

static int fill_cell(struct weir_gather *gather, struct cell *cell, const struct weir_field *field)
{
    *cell = (struct cell){.data = field->data,
                          .size = field->size,
                          .kind = (uint8_t)field->kind,
                          .ndim = (uint8_t)field->ndim,
                          .is_ragged = field->is_ragged,
                          .shape = gather->sizes.size / sizeof(uint64_t)};
    if (field->kind == WEIR_FIELD_NONE)
        cell->size = 0;
    if (field->kind != WEIR_FIELD_ARRAY) {
        cell->ndim = 0;
        return 0;
    }
    memcpy(&cell->dtype, field->dtype, sizeof cell->dtype);
    return weir_growing_add(&gather->sizes, field->shape, field->ndim * sizeof(uint64_t));
}

/* The fields of a sample, into gather->fields. */
static int take_apart(struct weir_gather *gather, const struct weir_index *index,
                      const struct weir_sample *sample, uint32_t *count)
{
    if (!gather->is_raw)
        return weir_index_format(index)->fields(weir_index_schema(index), sample, &gather->scratch,
                                                gather->fields, count);
    *count = 1;
    return weir_format_raw(weir_index_format(index), sample, gather->fields);
}

int weir_gather_add(struct weir_gather *gather, const struct weir_index *index,
                    const struct weir_drawing *which, const struct weir_sample *sample)
{
    uint32_t count = WEIR_FIELDS_MAX;
    struct gathered *column;
    int code = take_apart(gather, index, sample, &count);
    if (code)
        return code;
    uint64_t row = gather->rows_count;
    for (uint32_t i = 0; i < count; i++) {
        code = find_column(gather, i, &column);
        if (code)
            return code;
        if (!column)
            continue;
        struct cell *cell = &column->cells[row];
        if (cell->kind != WEIR_FIELD_NONE)
            return weir_fail(EBADMSG, "it has the field '%.*s' twice",
                             (int)gather->fields[i].name_size, gather->fields[i].name);
        code = fill_cell(gather, cell, &gather->fields[i]);
        if (code)
            return code;
    }
    gather->rows[gather->rows_count++] = (struct row){*which, sample->data, sample->size};
    return 0;
}

/* ---- laying out ---- */

/* Where things go: without a base, only how much room they need. */
struct layout {
    uint8_t *base;
    size_t used;
};

static void *place(struct layout *layout, size_t size, size_t align)
{
    size_t at = (layout->used + align - 1) / align * align;
    layout->used = at + size;
    return layout->base ? layout->base + at : NULL;
}

static bool same_shape(const struct weir_gather *gather, const struct cell *a, const struct cell *b)
{
    const uint64_t *sizes = (const uint64_t *)gather->sizes.data;
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           (!a->ndim || !memcmp(sizes + a->shape, sizes + b->shape, a->ndim * sizeof(uint64_t)));
}

static void judge_column(const struct weir_gather *gather, struct gathered *column)
{
    const struct cell *first = NULL;
    bool has_none = false;
    column->is_stacked = column->is_even = true;
    for (uint64_t i = 0; i < gather->rows_count; i++) {
        const struct cell *cell = &column->cells[i];
        if (cell->kind == WEIR_FIELD_NONE) {
            has_none = true;
            continue;
        }
        first = first ? first : cell;
        column->is_even &= cell->kind == first->kind && cell->dtype == first->dtype;
        column->is_stacked =
            column->is_stacked && !cell->is_ragged && same_shape(gather, first, cell);
    }
    column->is_stacked &= first && first->kind == WEIR_FIELD_ARRAY && column->is_even && !has_none;
    column->kind = first && column->is_even ? first->kind : (uint8_t)WEIR_FIELD_NONE;
    column->dtype = first && column->is_even ? first->dtype : 0;
}

/* Values of unlike kinds have unlike sizes of elements: each begins where any can. */
static size_t value_align(const struct gathered *column)
{
    return column->is_even ? 1 : 16;
}

static void lay_out_ragged(const struct weir_gather *gather, const struct gathered *column,
                           struct layout *layout, weir_column *out)
{
    uint64_t rows = gather->rows_count, off = 0;
    size_t dims = 0, align = value_align(column);
    weir_cell *values = place(layout, rows * sizeof *values, WEIR_BATCH_ALIGN);
    uint64_t *offsets =
        column->is_even ? place(layout, (rows + 1) * sizeof *offsets, WEIR_BATCH_ALIGN) : NULL;
    for (uint64_t i = 0; i < rows; i++)
        dims += column->cells[i].ndim;
    uint64_t *shapes = place(layout, dims * sizeof *shapes, WEIR_BATCH_ALIGN);
    for (uint64_t i = 0; i < rows; i++) {
        const struct cell *cell = &column->cells[i];
        off = (off + align - 1) / align * align;
        if (out) {
            values[i] = (weir_cell){off, cell->size, cell->kind, {0}, cell->ndim, shapes};
            memcpy(values[i].dtype, &cell->dtype, sizeof cell->dtype);
            if (cell->ndim)
                memcpy(shapes, (uint64_t *)gather->sizes.data + cell->shape,
                       cell->ndim * sizeof *shapes);
            shapes += cell->ndim;
            if (offsets)
                offsets[i] = off;
        }
        off += cell->size;
    }
    void *data = place(layout, off, WEIR_BATCH_ALIGN);
    if (!out)
        return;
    if (offsets)
        offsets[rows] = off;
    out->values = values;
    out->offsets = offsets;
    out->data = data;
    out->size = off;
}

static void lay_out_stacked(const struct weir_gather *gather, const struct gathered *column,
                            struct layout *layout, weir_column *out)
{
    const struct cell *cell = &column->cells[0];
    size_t shape_bytes = cell->ndim * sizeof(uint64_t);
    uint64_t *shape = place(layout, shape_bytes, WEIR_BATCH_ALIGN);
    void *data = place(layout, gather->rows_count * cell->size, WEIR_BATCH_ALIGN);
    if (!out)
        return;
    if (shape_bytes)
        memcpy(shape, (uint64_t *)gather->sizes.data + cell->shape, shape_bytes);
    out->ndim = cell->ndim;
    out->shape = shape;
    out->data = data;
    out->size = gather->rows_count * cell->size;
}

static void lay_out_column(const struct weir_gather *gather, const struct gathered *column,
                           struct layout *layout, weir_column *out)
{
    char *name = place(layout, column->name.size, 1);
    if (out) {
        memcpy(name, column->name.data, column->name.size);
        *out =
            (weir_column){.name = name, .name_size = column->name.size - 1, .kind = column->kind};
        memcpy(out->dtype, &column->dtype, sizeof column->dtype);
    }
    if (column->is_stacked)
        lay_out_stacked(gather, column, layout, out);
    else
        lay_out_ragged(gather, column, layout, out);
}

/* Everything but the bytes of the samples. */
static weir_batch *lay_out(const struct weir_gather *gather, bool has_sources,
                           struct layout *layout)
{
    uint64_t rows = gather->rows_count;
    weir_batch *batch = place(layout, sizeof *batch, WEIR_BATCH_ALIGN);
    weir_column *columns = place(layout, gather->count * sizeof *columns, WEIR_BATCH_ALIGN);
    uint64_t *numbers = place(layout, rows * sizeof *numbers, WEIR_BATCH_ALIGN);
    uint64_t *epochs = place(layout, rows * sizeof *epochs, WEIR_BATCH_ALIGN);
    uint32_t *sources =
        has_sources ? place(layout, rows * sizeof *sources, WEIR_BATCH_ALIGN) : NULL;
    struct weir_part *parts = place(layout, gather->parts.size, WEIR_BATCH_ALIGN);
    for (size_t i = 0; i < gather->count; i++)
        lay_out_column(gather, &gather->columns[i], layout, columns ? &columns[i] : NULL);
    if (!batch)
        return NULL;
    for (uint64_t i = 0; i < rows; i++) {
        numbers[i] = gather->rows[i].which.number;
        epochs[i] = gather->rows[i].which.epoch;
        if (sources)
            sources[i] = gather->rows[i].which.source;
    }
    *batch = (weir_batch){.info = {.samples = rows,
                                   .numbers = numbers,
                                   .epochs = epochs,
                                   .parts = sources,
                                   .columns = columns,
                                   .columns_count = gather->count},
                          .parts = parts,
                          .parts_count = gather->parts.size / sizeof *parts};
    return batch;
}

/* ---- ending ---- */

static bool is_of(const struct weir_part *part, const struct weir_drawing *which)
{
    return part->epoch == which->epoch && part->source == which->source;
}

/* The parts of the rows, each once, before it is known where they go. */
static int find_parts(struct weir_gather *gather)
{
    for (uint64_t i = 0; i < gather->rows_count; i++) {
        const struct weir_drawing *which = &gather->rows[i].which;
        const struct weir_part *parts = (const struct weir_part *)gather->parts.data;
        size_t at = gather->parts.size / sizeof *parts;
        while (at && !is_of(&parts[at - 1], which))
            at--;
        if (at)
            continue;
        struct weir_part fresh = {.source = which->source, .epoch = which->epoch};
        int code = weir_growing_add(&gather->parts, &fresh, sizeof fresh);
        if (code)
            return code;
    }
    return 0;
}

/* At least half of the sample is this value, as it stands there. */
static bool is_much_of(const struct cell *cell, const struct row *row)
{
    uintptr_t begin = (uintptr_t)cell->data, all = (uintptr_t)row->data;
    return cell->size >= row->size / 2 && cell->size <= row->size && begin >= all &&
           begin - all <= row->size - cell->size;
}

/* Copies the values of a row, and sums all its bytes: while a large part of them is copied. */
static void copy_row(const struct weir_gather *gather, uint64_t number, const weir_column *columns,
                     uint8_t sum[WEIR_SUM_BYTES])
{
    const struct row *row = &gather->rows[number];
    struct weir_copy copy = {.data = row->data,
                             .size = row->size,
                             .is_around = gather->is_large,
                             .next = number + 1 < gather->rows_count ? row[1].data : NULL};
    bool is_summed = false;
    for (size_t i = 0; i < gather->count; i++) {
        const struct cell *cell = &gather->columns[i].cells[number];
        const weir_column *column = &columns[i];
        uint64_t off = column->values ? column->values[number].off : number * cell->size;
        uint8_t *to = (uint8_t *)column->data + off;
        if (!cell->size)
            continue;
        if (!is_summed && is_much_of(cell, row)) {
            copy.begin = (size_t)(cell->data - row->data);
            copy.count = cell->size;
            copy.to = to;
            weir_copy_sum(sum, &copy);
            is_summed = true;
        } else if (gather->is_large) {
            weir_copy_around(to, cell->data, cell->size);
        } else {
            memcpy(to, cell->data, cell->size);
        }
    }
    if (!is_summed)
        weir_sum(sum, row->data, row->size);
}

/* Samples are anywhere, and a processor takes longer to find a page than to read a line of it, but
 * can look for several at once: those of a group of rows, before they are copied. */
static void find_pages(const struct weir_gather *gather, uint64_t first)
{
    uint64_t end = first + PAGES_GROUP;
    end = end < gather->rows_count ? end : gather->rows_count;
    for (uint64_t i = first; i < end; i++)
        if (gather->rows[i].size) {
            __builtin_prefetch(gather->rows[i].data);
            __builtin_prefetch(gather->rows[i].data + gather->rows[i].size - 1);
        }
}

static void copy_rows(struct weir_gather *gather, weir_batch *batch, struct weir_part *parts)
{
    if (gather->parts.size)
        memcpy(parts, gather->parts.data, gather->parts.size);
    find_pages(gather, 0);
    for (uint64_t i = 0; i < gather->rows_count; i++) {
        const struct row *row = &gather->rows[i];
        struct weir_part *part = parts;
        uint8_t sum[WEIR_SUM_BYTES];
        while (!is_of(part, &row->which))
            part++;
        part->samples++;
        batch->sample_bytes += row->size;
        if (i % PAGES_GROUP == 0)
            find_pages(gather, i + PAGES_GROUP);
        copy_row(gather, i, batch->info.columns, sum);
        weir_digest_add(&part->digest, weir_digest_of(row->which.number, sum));
    }
}

int weir_gather_end(struct weir_gather *gather, struct weir_slabs *slabs, bool has_sources,
                    weir_batch **out)
{
    int code = find_parts(gather);
    if (code)
        return code;
    for (size_t i = 0; i < gather->count; i++)
        judge_column(gather, &gather->columns[i]);
    struct layout layout = {0};
    lay_out(gather, has_sources, &layout);
    struct weir_slab *slab = weir_slab_take_lent(slabs, layout.used);
    if (!slab)
        return -ENOMEM;
    layout = (struct layout){slab->data, 0};
    weir_batch *batch = lay_out(gather, has_sources, &layout);
    batch->slab = slab;
    batch->info.data = slab->data;
    batch->info.size = layout.used;
    batch->info.owner = slab->owner;
    copy_rows(gather, batch, (struct weir_part *)batch->parts);
    *out = batch;
    return 0;
}

/* ---- for those who get it ---- */

const weir_batch_info *weir_batch_get(const weir_batch *batch)
{
    return &batch->info;
}

void weir_batch_release(weir_batch *batch)
{
    if (batch)
        weir_slab_give(batch->slab);
}
