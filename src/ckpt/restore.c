/* restore.c - loading: any box of any tensor, from whatever pieces it was saved in.
 *
 * A box and a piece have a box in common, which is runs of bytes that are without gaps in both the
 * file and the caller's memory. All runs of a call are sorted by where they are, and neighbours are
 * read together: a run alone straight into the caller's memory, several through a buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/box.h"
#include "ckpt/ckpt.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

enum {
    GAP_BYTES_MAX = 65536,       /* reading over a smaller gap costs less than a second read */
    WINDOW_BYTES_MAX = 16 << 20, /* read together */
    RUNS_MAX = 1 << 20,          /* planned at once */
};

struct weir_restore {
    weir_store *store;
    struct weir_ledger *ledger;
    struct weir_view *view;
    struct weir_manifest *manifest;
    weir_object **files; /* of each rank, opened when they are needed */
    weir_restore_info info;
    char *meta;
    uint8_t *window;
};

/* ---- opening ---- */

/* The object of a part that has this name, or that ends so; -ENOENT. */
static int part_object(weir_restore *r, uint32_t number, const char *end, weir_object **out)
{
    struct weir_part part;
    int code = weir_view_part(r->view, number, &part);
    if (code)
        return code;
    const uint8_t *at = part.refs_at;
    for (uint32_t i = 0; i < part.refs; i++) {
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        size_t size = strlen(ref.name), tail = strlen(end);
        if (ref.kind == WEIR_REF_OBJECT && size >= tail && !strcmp(ref.name + size - tail, end))
            return weir_view_object(r->view, &ref, out);
    }
    return -ENOENT;
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

static int open_all(weir_restore *r, const char *run, uint64_t step)
{
    char log[WEIR_KEY_BYTES_MAX + 1], name[32];
    weir_object *obj;
    snprintf(name, sizeof name, "%" PRIu64, step);
    int code = weir_ckpt_log_name(log, run);
    if (!code)
        code = weir_ledger_open(&r->ledger, r->store, log);
    if (!code)
        code = weir_view_open(&r->view, r->ledger, step == WEIR_STEP_NEWEST ? NULL : name);
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

int weir_restore_open(weir_restore **out, weir_store *store, const char *run, uint64_t step)
{
    weir_restore *r = weir_alloc(sizeof *r);
    if (!r)
        return weir_fail_memory();
    r->store = store;
    int code = open_all(r, run, step);
    if (!code) {
        r->files = weir_alloc(weir_view_entry(r->view)->save.parts * sizeof *r->files);
        code = r->files ? 0 : weir_fail_memory();
    }
    if (code) {
        weir_restore_close(r);
        return code;
    }
    fill_info(r);
    *out = r;
    return 0;
}

void weir_restore_close(weir_restore *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->files && i < r->info.ranks; i++)
        weir_object_close(r->files[i]);
    free(r->files);
    weir_manifest_free(r->manifest);
    weir_view_close(r->view);
    weir_ledger_close(r->ledger);
    free(r->meta);
    free(r->window);
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

/* Bytes without a gap, in a file and in memory. */
struct run {
    uint32_t part;
    uint64_t at, size;
    char *to;
    const struct weir_manifest_tensor *tensor;
};

struct plan {
    weir_restore *restore;
    struct run *runs;
    size_t count, room;
    weir_progress_fn progress;
    weir_plan_fn only; /* not NULL: tell what would be read, and read nothing */
    void *arg;
};

static int plan_add(struct plan *p, const struct run *run)
{
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 1024;
        struct run *runs = weir_realloc(p->runs, room * sizeof *runs);
        if (!runs)
            return weir_fail_memory();
        p->runs = runs;
        p->room = room;
    }
    p->runs[p->count++] = *run;
    return 0;
}

/* What a piece and a slice have in common. */
struct overlap {
    const struct weir_manifest_tensor *tensor;
    const struct weir_piece *piece;
    const uint64_t *offset, *shape; /* the slice's */
    uint64_t first[WEIR_DIMS_MAX], size[WEIR_DIMS_MAX];
    uint32_t outer; /* the dimensions before this one are walked, the rest is one run */
    uint64_t bits;  /* of a run */
};

/* false if they have nothing in common. */
static bool overlap_find(struct overlap *o)
{
    uint32_t ndim = o->tensor->ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        uint64_t a = o->piece->offset[i], b = o->offset[i];
        uint64_t a_end = a + o->piece->shape[i], b_end = b + o->shape[i];
        o->first[i] = a > b ? a : b;
        uint64_t end = a_end < b_end ? a_end : b_end;
        if (end <= o->first[i])
            return false;
        o->size[i] = end - o->first[i];
    }
    o->bits = weir_st_dtype_bits(o->tensor->dtype);
    for (o->outer = ndim; o->outer; o->outer--) {
        uint32_t d = o->outer - 1;
        o->bits *= o->size[d];
        if (o->size[d] != o->piece->shape[d] || o->size[d] != o->shape[d])
            break;
    }
    o->outer = o->outer ? o->outer - 1 : 0;
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

static int add_runs(struct plan *p, const struct overlap *o, char *data)
{
    uint64_t at[WEIR_DIMS_MAX], bits = weir_st_dtype_bits(o->tensor->dtype);
    memcpy(at, o->first, o->tensor->ndim * sizeof *at);
    for (;;) {
        uint64_t from = bits * place_in(o, o->piece->offset, o->piece->shape, at);
        uint64_t to = bits * place_in(o, o->offset, o->shape, at);
        if (from % 8 || to % 8 || o->bits % 8)
            return weir_fail(EINVAL, "a slice of tensor '%.200s' does not begin at a whole byte",
                             o->tensor->name);
        struct run run = {o->piece->part, o->piece->begin + from / 8, o->bits / 8, data + to / 8,
                          o->tensor};
        int code = plan_add(p, &run);
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

static int by_place(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int file_of(weir_restore *r, uint32_t part, weir_object **out)
{
    int code = 0;
    if (!r->files[part]) {
        code = part_object(r, part, ".safetensors", &r->files[part]);
        if (code == -ENOENT)
            code = weir_fail(EBADMSG, "rank %u of '%s' has no file", part, r->info.prefix);
    }
    *out = r->files[part];
    return code;
}

static int read_exactly(weir_restore *r, const struct run *run, void *buf, uint64_t size)
{
    weir_object *file;
    size_t got;
    int code = file_of(r, run->part, &file);
    if (!code)
        code = weir_object_read(file, buf, (size_t)size, run->at, &got);
    if (!code && got != size)
        code = weir_fail(EBADMSG, "'%s' ends too early", weir_object_info(file)->key);
    return code ? weir_fail_in(code, "cannot load tensor '%.200s'", run->tensor->name) : 0;
}

/* Reads the runs from i up to end, which lie close together. */
static int read_window(weir_restore *r, const struct run *runs, size_t count)
{
    if (count == 1)
        return read_exactly(r, runs, runs->to, runs->size);
    if (!r->window && !(r->window = weir_alloc(WINDOW_BYTES_MAX)))
        return weir_fail_memory();
    const struct run *last = &runs[count - 1];
    int code = read_exactly(r, runs, r->window, last->at + last->size - runs->at);
    if (code == -EBADMSG) { /* whose bytes are they? Those between two runs are nobody's */
        code = 0;
        for (size_t i = 0; !code && i < count; i++)
            code = read_exactly(r, &runs[i], runs[i].to, runs[i].size);
        return code;
    }
    for (size_t i = 0; !code && i < count; i++)
        memcpy(runs[i].to, r->window + (runs[i].at - runs->at), (size_t)runs[i].size);
    return code;
}

static int plan_run(struct plan *p)
{
    int code = 0;
    if (p->count)
        qsort(p->runs, p->count, sizeof *p->runs, by_place);
    for (size_t i = 0, k; !code && i < p->count; i = k) {
        const struct run *first = &p->runs[i];
        uint64_t end = first->at + first->size, bytes = first->size;
        for (k = i + 1; k < p->count && p->runs[k].part == first->part; k++) {
            uint64_t next_end = p->runs[k].at + p->runs[k].size;
            if (p->runs[k].at < end || p->runs[k].at - end > GAP_BYTES_MAX ||
                next_end - first->at > WINDOW_BYTES_MAX)
                break;
            end = next_end;
            bytes += p->runs[k].size;
        }
        if (p->only) {
            code = p->only(p->arg, first->part, first->at, end - first->at);
            continue;
        }
        code = read_window(p->restore, first, k - i);
        if (!code && p->progress && p->progress(p->arg, bytes))
            code = weir_fail(ECANCELED, "loading '%s' was stopped", p->restore->info.prefix);
    }
    p->count = 0;
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
            code = add_runs(p, &o, slice->data);
        if (!code && p->count >= RUNS_MAX)
            code = plan_run(p);
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
    free(p->runs);
    return code;
}

int weir_restore_read(weir_restore *r, const weir_slice *slices, size_t count,
                      weir_progress_fn progress, void *arg)
{
    struct plan p = {.restore = r, .progress = progress, .arg = arg};
    return plan_all(&p, slices, count);
}

int weir_restore_plan(weir_restore *r, const weir_slice *slices, size_t count, weir_plan_fn fn,
                      void *arg)
{
    struct plan p = {.restore = r, .only = fn, .arg = arg};
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

int weir_ckpt_put_indexes(weir_store *store, const char *run, uint64_t step)
{
    weir_restore *r;
    int code = weir_restore_open(&r, store, run, step);
    if (code)
        return code;
    if (r->info.ranks > 1)
        code = weir_manifest_put(r->manifest, r->view);
    int other = put_index(r); /* one is worth having without the other */
    weir_restore_close(r);
    return code ? code : other;
}
