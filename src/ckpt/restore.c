/* restore.c - loading: any box of any tensor, from whatever pieces it was saved in.
 *
 * A box and a piece have a box in common, which is rows of bytes that are without gaps in both the
 * file and the caller's memory: spans (store/span.h). All spans of a call, sorted by where they
 * are, are one scattered read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/box.h"
#include "ckpt/ckpt.h"
#include "ckpt/restore.h"
#include "ckpt/run.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

enum {
    SPANS_MAX = 1 << 20, /* planned at once: 56 MiB */
    FILES_MAX = 128,     /* open at once: two descriptors each, and a process has 1,024 */
    OPEN_TRIES = 16,     /* each one lost to somebody who committed and retired meanwhile */
};

/* ---- opening ---- */

#define FILE_END ".safetensors"

/* Whether it is an object that has this name, or one that ends so. */
static bool ends_so(const struct weir_ref *ref, const char *end)
{
    size_t size = strlen(ref->name), tail = strlen(end);
    return ref->kind == WEIR_REF_OBJECT && size >= tail && !strcmp(ref->name + size - tail, end);
}

bool weir_restore_is_file(const struct weir_ref *ref)
{
    return ends_so(ref, FILE_END);
}

/* The object that a part names so, or that ends so; -ENOENT. */
static int find_ref(weir_restore *r, uint32_t number, const char *end, struct weir_ref *out)
{
    struct weir_part part;
    int code = weir_view_part(r->view, number, &part);
    if (code)
        return code;
    const uint8_t *at = part.refs_at;
    for (uint32_t i = 0; i < part.refs; i++) {
        weir_part_ref(out, &at);
        if (ends_so(out, end))
            return 0;
    }
    return -ENOENT;
}

static int part_object(weir_restore *r, uint32_t number, const char *end, weir_object **out)
{
    struct weir_ref ref;
    int code = find_ref(r, number, end, &ref);
    return code ? code : weir_view_object(r->view, &ref, out);
}

static int read_text(weir_object *obj, char **out)
{
    uint64_t size = weir_object_info(obj)->size_bytes;
    size_t got = 0;
    char *text = size < SIZE_MAX ? weir_alloc((size_t)size + 1) : NULL;
    int code = text ? weir_object_read(obj, text, (size_t)size, 0, &got) : weir_fail_memory();
    weir_object_close(obj);
    if (code)
        free(text);
    else
        *out = text;
    return code;
}

/* Which checkpoint of a run: just that save, or the one that has a name, or the one of a step. */
struct which {
    const weir_ckpt_info *info;
    const char *label;
    uint64_t step;
};

static int open_view(weir_restore *r, const struct which *which)
{
    struct weir_save save = {0};
    uint64_t step = which->info ? which->info->step : which->step;
    int code = 0;
    snprintf(save.name, sizeof save.name, "%" PRIu64, step);
    if (!which->info && !which->label)
        return weir_view_open(&r->view, r->ledger, step == WEIR_STEP_NEWEST ? NULL : save.name);
    if (which->info) {
        save.attempt = which->info->attempt;
        save.number = which->info->save;
    } else {
        code = weir_run_find_label(r->ledger, which->label, &save);
    }
    return code ? code : weir_view_open_save(&r->view, r->ledger, &save);
}

static int open_all(weir_restore *r, const char *run, const struct which *which)
{
    weir_object *obj;
    int code = weir_run_open(&r->ledger, r->store, run);
    if (!code)
        code = open_view(r, which);
    if (!code)
        code = weir_manifest_load(&r->manifest, r->view);
    if (code)
        return code;
    code = part_object(r, 0, "checkpoint.json", &obj);
    if (!code)
        code = read_text(obj, &r->meta);
    return code == -ENOENT ? 0 : code;
}

static void fill_info(weir_restore *r)
{
    const struct weir_ledger_entry *entry = weir_view_entry(r->view);
    r->info = (weir_restore_info){
        .step = strtoull(entry->save.name, NULL, 10),
        .attempt = entry->save.attempt,
        .save = entry->save.number,
        .time_ns = entry->time_ns,
        .ranks = entry->save.parts,
        .tensors = weir_manifest_count(r->manifest),
        .prefix = weir_view_prefix(r->view),
        .meta = r->meta,
    };
    for (size_t i = 0; i < r->info.tensors; i++) {
        const struct weir_manifest_tensor *t = weir_manifest_at(r->manifest, i);
        for (size_t k = 0; k < t->count; k++)
            r->info.size_bytes += t->pieces[k].bytes;
    }
}

static int open_now(weir_restore **out, weir_store *store, const char *run,
                    const struct which *which)
{
    weir_restore *r = weir_alloc(sizeof *r);
    if (!r)
        return weir_fail_memory();
    r->store = store;
    int code = open_all(r, run, which);
    if (!code) {
        size_t parts = weir_view_entry(r->view)->save.parts;
        r->files = weir_alloc(parts * sizeof *r->files);
        r->names = weir_alloc(parts * sizeof *r->names);
        code = r->files && r->names ? 0 : weir_fail_memory();
    }
    if (code) {
        weir_restore_close(r);
        return code;
    }
    fill_info(r);
    *out = r;
    return 0;
}

/* A training that saves and prunes may retire what was found before it is open: then another one
 * is the newest, or the one of that step or name. Only a caller who wants just this save is told.
 */
static int open_one(weir_restore **out, weir_store *store, const char *run,
                    const struct which *which)
{
    int code = open_now(out, store, run, which);
    for (unsigned tries = 1; code == -ESTALE && !which->info && tries < OPEN_TRIES; tries++)
        code = open_now(out, store, run, which);
    return code;
}

int weir_restore_open(weir_restore **out, weir_store *store, const char *run, uint64_t step)
{
    struct which which = {.step = step};
    return open_one(out, store, run, &which);
}

int weir_restore_open_named(weir_restore **out, weir_store *store, const char *run,
                            const char *name)
{
    struct which which = {.label = name};
    return open_one(out, store, run, &which);
}

int weir_restore_open_this(weir_restore **out, weir_store *store, const char *run,
                           const weir_ckpt_info *info)
{
    struct which which = {.info = info};
    return open_one(out, store, run, &which);
}

/* They are opened again when they are needed. */
static void close_files(weir_restore *r)
{
    for (uint32_t i = 0; r->open_count && i < r->info.ranks; i++) {
        weir_object_close(r->files[i]);
        r->files[i] = NULL;
    }
    r->open_count = 0;
}

void weir_restore_close(weir_restore *r)
{
    if (!r)
        return;
    close_files(r);
    for (uint32_t i = 0; i < r->info.ranks; i++)
        free(r->names[i]);
    free(r->files);
    free(r->names);
    weir_manifest_free(r->manifest);
    weir_view_close(r->view);
    weir_ledger_close(r->ledger);
    free(r->meta);
    free(r);
}

const weir_restore_info *weir_restore_info_get(const weir_restore *r)
{
    return &r->info;
}

int weir_restore_tensor(const weir_restore *r, size_t i, weir_tensor_info *out)
{
    if (i >= r->info.tensors)
        return weir_fail(EINVAL, "tensor %zu of %zu", i, r->info.tensors);
    const struct weir_manifest_tensor *t = weir_manifest_at(r->manifest, i);
    *out = (weir_tensor_info){t->name, t->dtype, t->ndim, t->shape, 0, (uint32_t)t->count};
    return weir_st_bytes(t->dtype, t->shape, t->ndim, &out->size_bytes);
}

/* What the file of a part is called; NULL if that cannot be said. */
static const char *name_of(weir_restore *r, uint32_t number)
{
    struct weir_ref ref;
    if (!r->names[number] && !find_ref(r, number, FILE_END, &ref))
        r->names[number] = weir_strdup(ref.name);
    return r->names[number];
}

int weir_restore_piece(weir_restore *r, size_t tensor, uint32_t piece, weir_piece_info *out)
{
    const struct weir_manifest_tensor *t =
        tensor < r->info.tensors ? weir_manifest_at(r->manifest, tensor) : NULL;
    if (!t || piece >= t->count)
        return weir_fail(EINVAL, "piece %u of tensor %zu: there is none", piece, tensor);
    const struct weir_piece *p = &t->pieces[piece];
    const char *file = name_of(r, p->part);
    *out = (weir_piece_info){file ? file : "", p->begin, p->bytes, p->offset, p->shape};
    return 0;
}

int64_t weir_restore_find(const weir_restore *r, const char *name)
{
    const struct weir_manifest_tensor *t = weir_manifest_find(r->manifest, name);
    return t ? t - weir_manifest_at(r->manifest, 0)
             : weir_fail(ENOENT, "'%s' has no tensor '%.200s'", r->info.prefix, name);
}

int weir_restore_state(weir_restore *r, uint32_t rank, char **out)
{
    char name[64];
    weir_object *obj;
    if (rank >= r->info.ranks)
        return weir_fail(EINVAL, "rank %u of %u", rank, r->info.ranks);
    snprintf(name, sizeof name, "state-%05u.json", rank + 1);
    int code = part_object(r, rank, name, &obj);
    if (code == -ENOENT)
        return weir_fail(ENOENT, "rank %u saved no state with '%s'", rank, r->info.prefix);
    return code ? code : read_text(obj, out);
}

/* ---- planning ---- */

/* Spans, each of a rank's file (group) and of a tensor (tag). */
struct plan {
    weir_restore *restore;
    struct weir_span *spans;
    size_t count, room, next; /* next: the first not read yet */
    bool is_sorted;
    weir_progress_fn progress;
    weir_plan_fn only; /* not NULL: tell what would be read, and read nothing */
    void *arg;
};

static int by_place(const void *a, const void *b)
{
    const struct weir_span *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->off > y->off) - (x->off < y->off);
}

static int plan_run(struct plan *p);

static int plan_add(struct plan *p, const struct weir_span *span)
{
    int code = p->count < SPANS_MAX ? 0 : plan_run(p);
    if (code)
        return code;
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 1024;
        struct weir_span *spans = weir_realloc(p->spans, room * sizeof *spans);
        if (!spans)
            return weir_fail_memory();
        p->spans = spans;
        p->room = room;
    }
    if (p->count && by_place(&p->spans[p->count - 1], span) > 0)
        p->is_sorted = false;
    p->spans[p->count++] = *span;
    return 0;
}

/* What a piece and a slice have in common. Its dimensions, from the last to the first: those that
 * make up a row, those that number the rows, and those before `outer`, which are walked. */
struct overlap {
    const struct weir_manifest_tensor *tensor;
    const struct weir_piece *piece;
    const uint64_t *offset, *shape; /* the slice's */
    uint64_t first[WEIR_DIMS_MAX], size[WEIR_DIMS_MAX];
    uint32_t outer;
    uint64_t rows, bits;             /* bits: of a row */
    uint64_t piece_step, slice_step; /* from row to row, in bits */
};

/* Whether the box goes from end to end of both, so that the next dimension goes on without a gap.
 */
static bool is_full(const struct overlap *o, uint32_t d)
{
    return o->size[d] == o->piece->shape[d] && o->size[d] == o->shape[d];
}

static void find_rows(struct overlap *o)
{
    uint64_t piece_bits = weir_st_dtype_bits(o->tensor->dtype), slice_bits = piece_bits;
    uint32_t d = o->tensor->ndim;
    bool full = true;
    o->bits = piece_bits;
    o->rows = 1;
    while (d && full) { /* the row ends with the first dimension that is cut */
        d--;
        full = is_full(o, d);
        o->bits *= o->size[d];
        piece_bits *= o->piece->shape[d];
        slice_bits *= o->shape[d];
    }
    o->piece_step = piece_bits;
    o->slice_step = slice_bits;
    full = true;
    while (d && full) { /* and so do the rows that are at equal distances */
        d--;
        full = is_full(o, d);
        o->rows *= o->size[d];
    }
    o->outer = d;
}

/* false if they have nothing in common. */
static bool overlap_find(struct overlap *o)
{
    for (uint32_t i = 0; i < o->tensor->ndim; i++) {
        uint64_t a = o->piece->offset[i], b = o->offset[i];
        uint64_t a_end = a + o->piece->shape[i], b_end = b + o->shape[i];
        o->first[i] = a > b ? a : b;
        uint64_t end = a_end < b_end ? a_end : b_end;
        if (end <= o->first[i])
            return false;
        o->size[i] = end - o->first[i];
    }
    find_rows(o);
    return true;
}

/* Where in a box that begins at offset the element `at` is. */
static uint64_t place_in(const struct overlap *o, const uint64_t *offset, const uint64_t *shape,
                         const uint64_t *at)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < o->tensor->ndim; i++)
        place = place * shape[i] + (at[i] - offset[i]);
    return place;
}

static int add_spans(struct plan *p, const struct overlap *o, char *data)
{
    uint64_t at[WEIR_DIMS_MAX], bits = weir_st_dtype_bits(o->tensor->dtype);
    uint32_t tag = (uint32_t)(o->tensor - weir_manifest_at(p->restore->manifest, 0));
    bool strided = o->rows > 1;
    memcpy(at, o->first, o->tensor->ndim * sizeof *at);
    for (;;) {
        uint64_t from = bits * place_in(o, o->piece->offset, o->piece->shape, at);
        uint64_t to = bits * place_in(o, o->offset, o->shape, at);
        if ((from | to | o->bits) % 8 || (strided && (o->piece_step | o->slice_step) % 8))
            return weir_fail(EINVAL, "a slice of tensor '%.200s' does not begin at a whole byte",
                             o->tensor->name);
        struct weir_span span = {.off = o->piece->begin + from / 8,
                                 .size = o->bits / 8,
                                 .rows = o->rows,
                                 .off_step = o->piece_step / 8,
                                 .to_step = o->slice_step / 8,
                                 .to = data + to / 8,
                                 .group = o->piece->part,
                                 .tag = tag};
        int code = plan_add(p, &span);
        if (code)
            return code;
        uint32_t d = o->outer;
        while (d && ++at[d - 1] == o->first[d - 1] + o->size[d - 1]) {
            at[d - 1] = o->first[d - 1];
            d--;
        }
        if (!d)
            return 0;
    }
}

static int slice_check(const struct weir_manifest_tensor *t, const weir_slice *slice)
{
    uint64_t end;
    if (!slice->offset != !slice->shape)
        return weir_fail(EINVAL, "a slice of '%.200s' with an offset or a shape alone", t->name);
    for (uint32_t i = 0; slice->shape && i < t->ndim; i++)
        if (__builtin_add_overflow(slice->offset[i], slice->shape[i], &end) || end > t->shape[i])
            return weir_fail(EINVAL, "a slice of tensor '%.200s' is not within it", t->name);
    return 0;
}

/* ---- reading ---- */

static int file_of(weir_restore *r, uint32_t part, weir_object **out)
{
    int code = 0;
    if (!r->files[part]) {
        code = part_object(r, part, FILE_END, &r->files[part]);
        r->open_count += !code;
        if (code == -ENOENT)
            code = weir_fail(EBADMSG, "rank %u of '%s' has no file", part, r->info.prefix);
    }
    *out = r->files[part];
    return code;
}

static int fail_tensor(weir_restore *r, const struct weir_span *span, int code)
{
    return weir_fail_in(code, "cannot load tensor '%.200s'",
                        weir_manifest_at(r->manifest, span->tag)->name);
}

/* The next file, and its spans; 0 also if there are too many open: the rest is another pass. */
static int next_file(void *arg, struct weir_reading *out)
{
    struct plan *p = arg;
    const struct weir_span *spans = &p->spans[p->next], *bad = spans;
    size_t count = 0, left = p->count - p->next;
    weir_object *file;
    if (!left || (p->restore->open_count == FILES_MAX && !p->restore->files[spans->group]))
        return 0;
    int code = file_of(p->restore, spans->group, &file);
    for (; !code && count < left && spans[count].group == spans->group; count++)
        if (weir_span_end(&spans[count]) > weir_object_info(file)->size_bytes) {
            bad = &spans[count];
            code = weir_fail(EBADMSG, "'%s' ends too early", weir_object_info(file)->key);
        }
    if (code)
        return fail_tensor(p->restore, bad, code);
    p->next += count;
    *out = (struct weir_reading){file, spans, count};
    return 1;
}

/* Tells what would be read: neighbours together. */
static int plan_tell(struct plan *p)
{
    int code = 0;
    for (size_t i = 0, k; !code && i < p->count; i = k) {
        const struct weir_span *first = &p->spans[i];
        uint64_t end = weir_span_end(first);
        for (k = i + 1; k < p->count && p->spans[k].group == first->group; k++) {
            if (p->spans[k].off > end)
                break;
            uint64_t next_end = weir_span_end(&p->spans[k]);
            end = next_end > end ? next_end : end;
        }
        code = p->only(p->arg, first->group, first->off, end - first->off);
    }
    p->count = 0;
    return code;
}

static uint64_t bytes_left(const struct plan *p)
{
    uint64_t bytes = 0;
    for (size_t i = p->next; i < p->count; i++)
        bytes += weir_span_bytes(&p->spans[i]);
    return bytes;
}

/* Reads what is planned, in the order of the files. */
static int plan_run(struct plan *p)
{
    struct weir_readings sources = {.next = next_file, .arg = p};
    const struct weir_span *bad = NULL;
    int code = 0;
    if (!p->is_sorted)
        qsort(p->spans, p->count, sizeof *p->spans, by_place);
    if (p->only)
        return plan_tell(p);
    while (!code && p->next < p->count) {
        if (p->restore->open_count == FILES_MAX)
            close_files(p->restore);
        sources.bytes = bytes_left(p);
        code = weir_readings_run(p->restore->store, &sources, p->progress, p->arg, &bad);
    }
    if (code == -ECANCELED)
        weir_fail(ECANCELED, "loading '%s' was stopped", p->restore->info.prefix);
    else if (code && bad)
        fail_tensor(p->restore, bad, code);
    p->count = p->next = 0;
    p->is_sorted = true;
    return code;
}

static int plan_slice(struct plan *p, const weir_slice *slice)
{
    static const uint64_t zeros[WEIR_DIMS_MAX];
    const struct weir_manifest_tensor *t = weir_manifest_at(p->restore->manifest, slice->tensor);
    struct overlap o;
    int code = slice_check(t, slice);
    o.tensor = t;
    o.offset = slice->offset ? slice->offset : zeros;
    o.shape = slice->shape ? slice->shape : t->shape;
    uint64_t begin = t->ndim ? o.offset[t->along] : 0;
    uint64_t end = t->ndim ? begin + o.shape[t->along] : 0;
    for (size_t i = weir_manifest_seek(t, begin); !code && i < t->count; i++) {
        o.piece = &t->pieces[i];
        if (t->ndim && o.piece->offset[t->along] >= end)
            break;
        if (o.piece->bytes && overlap_find(&o))
            code = add_spans(p, &o, slice->data);
    }
    return code;
}

static int plan_all(struct plan *p, const weir_slice *slices, size_t count)
{
    size_t tensors = p->restore->info.tensors;
    int code = weir_store_check(p->restore->store);
    for (size_t i = 0; !code && i < count; i++)
        code = slices[i].tensor < tensors
                   ? plan_slice(p, &slices[i])
                   : weir_fail(EINVAL, "tensor %zu of %zu", slices[i].tensor, tensors);
    if (!code)
        code = plan_run(p);
    free(p->spans);
    return code;
}

int weir_restore_read(weir_restore *r, const weir_slice *slices, size_t count,
                      weir_progress_fn progress, void *arg)
{
    struct plan p = {.restore = r, .is_sorted = true, .progress = progress, .arg = arg};
    return plan_all(&p, slices, count);
}

int weir_restore_plan(weir_restore *r, const weir_slice *slices, size_t count, weir_plan_fn fn,
                      void *arg)
{
    struct plan p = {.restore = r, .is_sorted = true, .only = fn, .arg = arg};
    return plan_all(&p, slices, count);
}

/* ---- what is written for readers ---- */

/* The names that the pieces have in their files. */
static void index_tensor(weir_restore *r, const struct weir_manifest_tensor *t,
                         struct weir_json_out *json, bool *any)
{
    char box[WEIR_DIMS_MAX * 44], file[64];
    for (size_t i = 0; i < t->count && !json->failed; i++) {
        const struct weir_piece *p = &t->pieces[i];
        bool whole = !memcmp(p->shape, t->shape, t->ndim * sizeof *t->shape);
        size_t size = strlen(t->name), box_size = 0;
        if (!whole)
            box_size = weir_box_text(box, sizeof box, p->offset, p->shape, t->ndim);
        char *name = weir_alloc(size + box_size + 1);
        if (!name) {
            json->failed = true;
            return;
        }
        memcpy(name, t->name, size);
        memcpy(name + size, box, box_size);
        weir_json_puts(json, *any ? ",\n" : "\n");
        weir_json_put_string(json, name, size + box_size);
        weir_ckpt_file_name(file, p->part, r->info.ranks);
        weir_json_puts(json, ":\"");
        weir_json_puts(json, file);
        weir_json_puts(json, "\"");
        free(name);
        *any = true;
    }
}

static int put_index(weir_restore *r)
{
    struct weir_json_out json = {0};
    bool any = false;
    weir_json_puts(&json, "{\"metadata\":{\"total_size\":");
    weir_json_put_uint(&json, r->info.size_bytes);
    weir_json_puts(&json, "},\"weight_map\":{");
    for (size_t i = 0; i < r->info.tensors; i++)
        index_tensor(r, weir_manifest_at(r->manifest, i), &json, &any);
    weir_json_puts(&json, "}}\n");
    int code = json.failed
                   ? weir_fail_memory()
                   : weir_ckpt_put_text(r->store, r->info.prefix, "model.safetensors.index.json",
                                        json.text, json.size, NULL);
    free(json.text);
    return code;
}

int weir_ckpt_put_indexes(weir_store *store, const char *run, const struct weir_save *save)
{
    weir_restore *r;
    const weir_ckpt_info info = {
        .step = weir_run_step(save), .attempt = save->attempt, .save = save->number};
    int code = weir_restore_open_this(&r, store, run, &info);
    if (code)
        return code;
    if (r->info.ranks > 1)
        code = weir_manifest_put(r->manifest, r->view);
    int other = put_index(r); /* one is worth having without the other */
    weir_restore_close(r);
    return code ? code : other;
}
