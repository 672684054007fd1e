/* layout.c - what a rank writes: which of its tensors, in which order, under which names. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/box.h"
#include "ckpt/ckpt.h"
#include "util/err.h"
#include "util/sys.h"

int weir_ckpt_log_name(char out[WEIR_KEY_BYTES_MAX + 1], const char *run)
{
    int size = snprintf(out, WEIR_KEY_BYTES_MAX + 1, "ckpt/%s", run);
    if (size > WEIR_KEY_BYTES_MAX)
        return weir_fail(ENAMETOOLONG, "the name of a run has %zu bytes", strlen(run));
    int code = weir_key_check(out);
    return code ? weir_fail_in(code, "the run '%.200s'", run) : 0;
}

void weir_ckpt_file_name(char out[64], uint32_t rank, uint32_t ranks)
{
    if (ranks == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05u-of-%05u.safetensors", rank + 1, ranks);
}

/* Each tensor picks another one of the ranks that have it. */
bool weir_layout_is_written(const weir_tensor *t)
{
    uint8_t sum[WEIR_SUM_BYTES];
    if (t->replicas < 2)
        return true;
    weir_sum(sum, t->name, strlen(t->name));
    uint32_t pick = (uint32_t)sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16;
    return pick % t->replicas == t->replica;
}

static int tensor_check(const weir_tensor *t)
{
    uint64_t bytes, end;
    if (!t->name || !*t->name || strlen(t->name) > WEIR_TABLE_KEY_BYTES_MAX)
        return weir_fail(EINVAL, "the name of a tensor has 1 to %d bytes",
                         WEIR_TABLE_KEY_BYTES_MAX);
    if (!t->dtype || t->ndim > WEIR_DIMS_MAX || (t->replicas && t->replica >= t->replicas))
        return weir_fail(EINVAL,
                         "tensor '%.200s' has no dtype, too many dimensions, or is a replica "
                         "beyond the last",
                         t->name);
    for (uint32_t i = 0; t->global_shape && i < t->ndim; i++)
        if (__builtin_add_overflow(t->offset[i], t->shape[i], &end) || end > t->global_shape[i])
            return weir_fail(EINVAL, "the piece of tensor '%.200s' is not within it", t->name);
    int code = weir_st_bytes(t->dtype, t->shape, t->ndim, &bytes);
    if (!code && bytes && !t->data)
        code = weir_fail(EINVAL, "it has no data");
    return code ? weir_fail_in(code, "tensor '%.200s'", t->name) : 0;
}

static bool is_whole(const weir_tensor *t)
{
    return !t->global_shape || !memcmp(t->shape, t->global_shape, t->ndim * sizeof *t->shape);
}

/* "w", or of a piece "w[0:512,0:1024]": tools without Weir must not take it for the whole. */
static size_t piece_name(char *out, size_t room, const weir_tensor *t)
{
    size_t used = (size_t)snprintf(out, room, "%s", t->name);
    if (!is_whole(t))
        used += weir_box_text(used < room ? out + used : NULL, used < room ? room - used : 0,
                              t->offset, t->shape, t->ndim);
    return used + 1;
}

static const uint64_t *whole_of(const weir_tensor *t)
{
    return t->global_shape ? t->global_shape : t->shape;
}

/* By name, then by where the piece begins: the same one twice is beside itself. */
static int by_place(const void *a, const void *b)
{
    const weir_tensor *x = *(const weir_tensor *const *)a, *y = *(const weir_tensor *const *)b;
    int order = strcmp(x->name, y->name);
    for (uint32_t i = 0; !order && i < x->ndim && i < y->ndim; i++) {
        uint64_t at_x = x->offset ? x->offset[i] : 0, at_y = y->offset ? y->offset[i] : 0;
        order = (at_x > at_y) - (at_x < at_y);
    }
    return order;
}

/* Pieces of one name are of one tensor. */
static int pair_check(const weir_tensor *a, const weir_tensor *b)
{
    if (strcmp(a->name, b->name) || (a->ndim == b->ndim && !strcmp(a->dtype, b->dtype) &&
                                     !memcmp(whole_of(a), whole_of(b), a->ndim * sizeof *a->shape)))
        return 0;
    return weir_fail(EINVAL, "tensor '%.200s' is given with two dtypes or shapes", a->name);
}

static int choose(struct weir_layout *l, const weir_tensor *tensors, size_t count)
{
    l->tensors = weir_alloc(count * sizeof *l->tensors);
    l->places = weir_alloc(count * sizeof *l->places);
    if (!l->tensors || !l->places)
        return weir_fail_memory();
    for (size_t i = 0; i < count; i++) {
        int code = tensor_check(&tensors[i]);
        if (code)
            return code;
        if (weir_layout_is_written(&tensors[i]))
            l->tensors[l->count++] = &tensors[i];
    }
    if (l->count)
        qsort(l->tensors, l->count, sizeof *l->tensors, by_place);
    for (size_t i = 1; i < l->count; i++) {
        int code = pair_check(l->tensors[i - 1], l->tensors[i]);
        if (code)
            return code;
    }
    return 0;
}

static int name_pieces(struct weir_layout *l)
{
    size_t room = 0, used = 0;
    for (size_t i = 0; i < l->count; i++)
        room += piece_name(NULL, 0, l->tensors[i]);
    l->names = weir_alloc(room);
    if (!l->names)
        return weir_fail_memory();
    for (size_t i = 0; i < l->count; i++) {
        const weir_tensor *t = l->tensors[i];
        l->places[i] = (struct weir_st_tensor){
            .name = l->names + used, .dtype = t->dtype, .ndim = t->ndim, .shape = t->shape};
        used += piece_name(l->names + used, room - used, t);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A piece of "w" and a tensor that is called "w[0:2]" would have one name in the file, wherever
 * they stand. */
static int names_check(const struct weir_layout *l)
{
    const char **names = weir_alloc((l->count + 1) * sizeof *names);
    int code = names ? 0 : weir_fail_memory();
    for (size_t i = 0; !code && i < l->count; i++)
        names[i] = l->places[i].name;
    if (!code)
        qsort(names, l->count, sizeof *names, by_name);
    for (size_t i = 1; !code && i < l->count; i++)
        if (!strcmp(names[i - 1], names[i]))
            code = weir_fail(EINVAL, "tensor '%.200s' is given twice", names[i]);
    free(names);
    return code;
}

int weir_layout_make(struct weir_layout *out, const weir_tensor *tensors, size_t count)
{
    static const struct weir_st_pair metadata[] = {{"format", "pt"}};
    struct weir_layout l = {0};
    int code = choose(&l, tensors, count);
    if (!code)
        code = name_pieces(&l);
    if (!code)
        code = names_check(&l);
    if (!code && l.count)
        code = weir_st_make(l.places, l.count, metadata, 1, &l.header, &l.header_size);
    if (code) {
        weir_layout_free(&l);
        return code;
    }
    l.bytes = l.header_size + (l.count ? l.places[l.count - 1].end : 0);
    *out = l;
    return 0;
}

void weir_layout_free(struct weir_layout *l)
{
    free(l->tensors);
    free(l->places);
    free(l->header);
    free(l->names);
    *l = (struct weir_layout){0};
}

/* One row: the pieces of the `count` tensors from i on, which have one name. */
static int put_row(const struct weir_layout *l, struct weir_table_put *put, size_t i, size_t count)
{
    static const uint64_t zeros[WEIR_DIMS_MAX];
    const weir_tensor *first = l->tensors[i];
    struct weir_piece *pieces = weir_alloc(count * sizeof *pieces);
    uint8_t *value;
    size_t size;
    if (!pieces)
        return weir_fail_memory();
    for (size_t k = 0; k < count; k++) {
        const weir_tensor *t = l->tensors[i + k];
        const struct weir_st_tensor *place = &l->places[i + k];
        pieces[k] = (struct weir_piece){.begin = l->header_size + place->begin,
                                        .bytes = place->end - place->begin,
                                        .offset = t->global_shape ? t->offset : zeros,
                                        .shape = t->shape};
    }
    struct weir_manifest_tensor tensor = {.name = first->name,
                                          .dtype = first->dtype,
                                          .ndim = first->ndim,
                                          .shape = whole_of(first),
                                          .pieces = pieces,
                                          .count = count};
    int code = weir_manifest_encode(&tensor, &value, &size);
    free(pieces);
    if (code)
        return code;
    code = weir_table_put_row(put, first->name, strlen(first->name), value, size);
    free(value);
    return code;
}

int weir_layout_put_manifest(const struct weir_layout *l, weir_store *store, const char *prefix,
                             uint32_t rank, struct weir_ref *ref)
{
    char key[WEIR_KEY_BYTES_MAX + 256];
    struct weir_table_put *put;
    ref->kind = WEIR_REF_TABLE;
    snprintf(ref->name, sizeof ref->name, "manifest-%05u", rank + 1);
    snprintf(key, sizeof key, "%s/%s", prefix, ref->name);
    int code = weir_table_put_open(&put, store, key, WEIR_PUT_OF_SAVE(prefix));
    if (code)
        return code;
    for (size_t i = 0, k; !code && i < l->count; i = k) {
        for (k = i + 1; k < l->count && !strcmp(l->tensors[i]->name, l->tensors[k]->name); k++)
            ;
        code = put_row(l, put, i, k - i);
    }
    if (!code)
        code = weir_table_put_commit(put, ref->digest);
    weir_table_put_close(put);
    return code;
}

void weir_ckpt_ref(struct weir_ref *ref, const weir_put *put, const char *name)
{
    ref->kind = WEIR_REF_OBJECT;
    snprintf(ref->name, sizeof ref->name, "%s", name);
    weir_put_digest(put, ref->digest);
}

int weir_ckpt_put_text(weir_store *store, const char *prefix, const char *name, const char *text,
                       size_t size, struct weir_ref *ref)
{
    char key[WEIR_KEY_BYTES_MAX + 72];
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.flags = WEIR_PUT_OF_SAVE(prefix);
    snprintf(key, sizeof key, "%s/%s", prefix, name);
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = weir_put_write(put, text, size);
    if (!code)
        code = weir_put_commit(put, NULL);
    if (!code && ref)
        weir_ckpt_ref(ref, put, name);
    weir_put_close(put);
    return code;
}
