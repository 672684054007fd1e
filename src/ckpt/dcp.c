/* dcp.c - see dcp.h. */
#include "ckpt/dcp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/nest.h"
#include "ckpt/pickle.h"
#include "ckpt/safetensors.h"
#include "ckpt/stfile.h"
#include "ckpt/torchfile.h"
#include "util/err.h"
#include "util/sys.h"

enum { PATH_BYTES_MAX = 4096 };

/* Where a piece or a value is. */
struct place {
    const struct weir_value *name;
    const uint64_t *offset; /* NULL: of a value that is no tensor */
    uint32_t ndim;
    const struct weir_value *info;
};

struct dcp {
    struct weir_arena **arena;
    struct weir_source *source;
    const char *dir;      /* NULL: the first file of the source stands for all */
    struct place *places; /* sorted */
    size_t count;
    struct weir_stfile st; /* the safetensors file that was looked at last */
};

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "its .metadata is not as it should be: %s", why);
}

/* A field of a dataclass. */
static struct weir_value *field(const struct weir_value *object, const char *name)
{
    return object && object->kind == WEIR_VALUE_OBJECT ? weir_value_get(object->object.state, name)
                                                       : NULL;
}

static bool is_dict(const struct weir_value *value)
{
    return value && (value->kind == WEIR_VALUE_DICT || value->kind == WEIR_VALUE_ORDERED);
}

/* ---- where things are ---- */

static int by_name(const struct weir_value *x, const struct weir_value *y)
{
    size_t size = x->text.size < y->text.size ? x->text.size : y->text.size;
    int order = size ? memcmp(x->text.at, y->text.at, size) : 0;
    return order ? order : x->text.size < y->text.size ? -1 : x->text.size > y->text.size;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = by_name(x->name, y->name);
    if (order || !x->offset != !y->offset)
        return order ? order : x->offset ? 1 : -1;
    if (x->ndim != y->ndim)
        return x->ndim < y->ndim ? -1 : 1;
    for (uint32_t i = 0; i < x->ndim; i++)
        if (x->offset[i] != y->offset[i])
            return x->offset[i] < y->offset[i] ? -1 : 1;
    return 0;
}

static int read_places(struct dcp *d, const struct weir_value *data)
{
    if (!is_dict(data))
        return damaged("it does not say where the data is");
    d->places = weir_alloc((data->items.count / 2 + 1) * sizeof *d->places);
    if (!d->places)
        return weir_fail_memory();
    for (size_t i = 0; i < data->items.count; i += 2) {
        const struct weir_value *index = data->items.at[i];
        const struct weir_value *offset = field(index, "offset");
        struct place place = {.name = field(index, "fqn"), .info = data->items.at[i + 1]};
        if (!place.name || place.name->kind != WEIR_VALUE_TEXT)
            return damaged("a piece has no name");
        int code = offset && offset->kind != WEIR_VALUE_NONE
                       ? weir_torch_dims(&place.offset, &place.ndim, d->arena, offset)
                       : 0;
        if (code)
            return code;
        d->places[d->count++] = place;
    }
    qsort(d->places, d->count, sizeof *d->places, by_place);
    return 0;
}

/* No directory but this one. */
static bool is_safe_path(const struct weir_value *path)
{
    return path && path->kind == WEIR_VALUE_TEXT && path->text.size &&
           path->text.size < PATH_BYTES_MAX && !memchr(path->text.at, '/', path->text.size) &&
           !memchr(path->text.at, 0, path->text.size) && !weir_value_is_text(path, "..");
}

static int find_span(struct dcp *d, const struct place *key, struct weir_extent *out)
{
    char path[2 * PATH_BYTES_MAX];
    const struct place *place = bsearch(key, d->places, d->count, sizeof *d->places, by_place);
    if (!place)
        return damaged("it does not say where a piece is");
    const struct weir_value *name = field(place->info, "relative_path");
    const struct weir_value *transforms = field(place->info, "transform_descriptors");
    if (transforms && transforms->kind != WEIR_VALUE_NONE && transforms->items.count)
        return weir_fail(ENOTSUP, "it is compressed by an extension of the writer");
    if (!is_safe_path(name) || !weir_value_uint(field(place->info, "offset"), &out->begin) ||
        !weir_value_uint(field(place->info, "length"), &out->size))
        return damaged("where a piece is, is no place");
    int code = 0;
    if (d->dir) {
        snprintf(path, sizeof path, "%s/%.*s", d->dir, (int)name->text.size, name->text.at);
        code = weir_source_add(d->source, path, &out->file);
    } else {
        out->file = d->source->files[0];
    }
    if (!code && (out->begin > out->file->size || out->size > out->file->size - out->begin))
        code = weir_fail(EBADMSG,
                         "'%s' has %" PRIu64 " bytes, and %" PRIu64 " at %" PRIu64
                         " are needed: it is cut short",
                         out->file->path, out->file->size, out->size, out->begin);
    return code;
}

static int is_archive(const struct weir_extent *span, bool *out)
{
    char magic[4] = "";
    int code = span->size >= 4 ? weir_extent_read(span, 0, magic, 4) : 0;
    *out = !memcmp(magic, "PK\3\4", 4);
    return code;
}

/* ---- tensors ---- */

/* A piece that torch.save() wrote: a tensor alone. */
static int archived_piece(struct weir_from *out, struct weir_arena **arena,
                          const struct weir_extent *span)
{
    struct weir_value *root;
    struct weir_from *from;
    int code = weir_torchfile_load(&root, arena, span);
    if (!code)
        code = weir_torchfile_tensor(&from, arena, root);
    if (!code && !from)
        code = weir_fail(EBADMSG, "'%s': a piece is no tensor", span->file->path);
    if (!code)
        *out = *from;
    return code;
}

/* A piece in the safetensors file that begins there and reaches to the end: by its name. */
static int safetensors_piece(struct dcp *d, struct weir_from *out, struct weir_arena **arena,
                             const struct weir_extent *span, const struct weir_value *name)
{
    struct weir_extent whole = {span->file, span->begin, span->file->size - span->begin};
    int code = 0;
    if (!d->st.st.memory || d->st.span.file != whole.file || d->st.span.begin != whole.begin) {
        weir_stfile_close(&d->st);
        code = weir_stfile_open(&d->st, &whole);
    }
    for (size_t i = 0; !code && i < d->st.st.count; i++)
        if (weir_value_is_text(name, d->st.st.tensors[i].name))
            return weir_stfile_tensor(&d->st, i, arena, out);
    return code ? code : weir_fail(EBADMSG, "'%s' does not have it", span->file->path);
}

/* One piece as a box of the whole. */
static int read_box(struct dcp *d, struct weir_box *box, const struct weir_from *whole,
                    const struct place *key, const struct weir_value *sizes)
{
    struct weir_arena *scratch = NULL;
    struct weir_from from;
    struct weir_extent span;
    uint32_t ndim;
    bool archive;
    int code = weir_torch_dims(&box->shape, &ndim, d->arena, sizes);
    if (!code && (ndim != whole->ndim || key->ndim != whole->ndim))
        code = damaged("a piece has other dimensions than the whole");
    for (uint32_t i = 0; !code && i < ndim; i++)
        if (key->offset[i] > whole->shape[i] || box->shape[i] > whole->shape[i] - key->offset[i])
            code = damaged("a piece is not within the whole");
    if (!code)
        code = find_span(d, key, &span);
    if (!code)
        code = is_archive(&span, &archive);
    if (!code)
        code = archive ? archived_piece(&from, &scratch, &span)
                       : safetensors_piece(d, &from, &scratch, &span, key->name);
    if (!code && (from.ndim != ndim || from.dtype != whole->dtype ||
                  memcmp(from.shape, box->shape, 8 * (size_t)ndim)))
        code = weir_fail(EBADMSG, "'%s': a piece has another shape or dtype than .metadata says",
                         span.file->path);
    uint64_t *stride = code ? NULL : weir_arena_take(d->arena, 8 * (size_t)ndim + 8);
    const uint64_t *from_stride = !code && from.boxes[0].stride ? from.boxes[0].stride
                                  : code                        ? NULL
                                         : weir_from_strides(&scratch, from.shape, ndim);
    if (!code && (!stride || !from_stride))
        code = weir_fail_memory();
    if (!code) {
        memcpy(stride, from_stride, 8 * (size_t)ndim);
        box->file = from.boxes[0].file;
        box->begin = from.boxes[0].begin;
        box->offset = key->offset;
        box->stride = stride;
    }
    weir_arena_free(scratch);
    return code;
}

static uint64_t volume(const uint64_t *shape, uint32_t ndim)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < ndim; i++)
        elements *= shape[i];
    return elements;
}

/* The pieces have as many elements as the whole. That each element is in one of them is seen when
 * it is read: so none can be in two. */
static int read_boxes(struct dcp *d, struct weir_from *from, const struct weir_value *name,
                      const struct weir_value *chunks)
{
    uint64_t elements = 0;
    if (!chunks || chunks->kind != WEIR_VALUE_LIST)
        return damaged("a tensor has no pieces");
    struct weir_box *boxes = weir_arena_take(d->arena, (chunks->items.count + 1) * sizeof *boxes);
    if (!boxes)
        return weir_fail_memory();
    for (size_t i = 0; i < chunks->items.count; i++) {
        const struct weir_value *chunk = chunks->items.at[i];
        struct place key = {.name = name};
        int code = weir_torch_dims(&key.offset, &key.ndim, d->arena, field(chunk, "offsets"));
        if (!code)
            code = read_box(d, &boxes[i], from, &key, field(chunk, "sizes"));
        if (code)
            return code;
        if (__builtin_add_overflow(elements, volume(boxes[i].shape, from->ndim), &elements))
            return damaged("a tensor has too many pieces");
    }
    if (elements != volume(from->shape, from->ndim))
        return weir_fail(EBADMSG, "its pieces do not make up the whole");
    from->boxes = boxes;
    from->count = chunks->items.count;
    return 0;
}

static int read_tensor(struct dcp *d, const struct weir_value *name, const struct weir_value *meta,
                       struct weir_value **out)
{
    const struct weir_value *properties = field(meta, "properties"), *type = NULL;
    struct weir_from *from = weir_arena_take(d->arena, sizeof *from);
    *out = weir_value_new(d->arena, WEIR_VALUE_TENSOR);
    if (!from || !*out)
        return weir_fail_memory();
    if (properties && properties->kind == WEIR_VALUE_OBJECT && properties->object.state &&
        properties->object.state->kind == WEIR_VALUE_TUPLE && properties->object.state->items.count)
        type = properties->object.state->items.at[0];
    if (!weir_torch_is_dtype(type))
        return damaged("a tensor has no dtype");
    from->dtype = weir_torch_dtype(type);
    if (!from->dtype)
        return weir_fail(ENOTSUP, "safetensors has no name for %.*s: convert it first",
                         (int)type->text.size, type->text.at);
    from->dtype = weir_st_dtype_name(from->dtype);
    from->element_bytes = weir_st_dtype_bits(from->dtype) / 8;
    int code = weir_torch_dims(&from->shape, &from->ndim, d->arena, field(meta, "size"));
    if (!code && weir_st_bytes(from->dtype, from->shape, from->ndim, &from->bytes))
        code = damaged("a tensor is too large to be true");
    if (!code)
        code = read_boxes(d, from, name, field(meta, "chunks"));
    (*out)->tensor = from;
    return code;
}

/* ---- other values ---- */

/* What torch.save() did not write, or what only Python can read, is an object of no known kind. */
static int unreadable(struct dcp *d, struct weir_value **out, const char *text)
{
    struct weir_value *name = weir_value_text(d->arena, text, strlen(text));
    *out = weir_value_new(d->arena, WEIR_VALUE_OBJECT);
    if (!name || !*out)
        return weir_fail_memory();
    name->kind = WEIR_VALUE_GLOBAL;
    (*out)->object.global = name;
    (*out)->object.args = weir_value_new(d->arena, WEIR_VALUE_TUPLE);
    return (*out)->object.args ? 0 : weir_fail_memory();
}

static int read_bytes(struct dcp *d, const struct weir_value *name, struct weir_value **out)
{
    const struct place key = {.name = name};
    struct weir_extent span;
    bool archive;
    int code = find_span(d, &key, &span);
    if (!code)
        code = is_archive(&span, &archive);
    if (code)
        return code;
    if (!archive)
        return unreadable(d, out, "a run of bytes that torch.save() did not write");
    code = weir_torchfile_load(out, d->arena, &span);
    return code == -ENOTSUP ? unreadable(d, out, "a pickle that only Python can read") : code;
}

/* ---- all of it ---- */

static int read_value(struct dcp *d, const struct weir_value *name, const struct weir_value *meta,
                      struct weir_value **out)
{
    static const char module[] = "torch.distributed.checkpoint.metadata.";
    int code;
    if (weir_value_is_object(meta, "torch.distributed.checkpoint.metadata.TensorStorageMetadata"))
        code = read_tensor(d, name, meta, out);
    else if (weir_value_is_object(meta,
                                  "torch.distributed.checkpoint.metadata.BytesStorageMetadata"))
        code = read_bytes(d, name, out);
    else
        code = weir_fail(ENOTSUP, "it is neither a tensor nor bytes of %s", module);
    return code ? weir_fail_in(code, "'%.*s'", (int)(name->text.size < 200 ? name->text.size : 200),
                               name->text.at)
                : 0;
}

/* Its path in the state dict, if that is known; else its name alone. */
static int path_of(struct dcp *d, const struct weir_names *paths, struct weir_value *name,
                   struct weir_value **out)
{
    void **known =
        weir_names_at((struct weir_names *)paths, d->arena, name->text.at, name->text.size);
    if (!known)
        return weir_fail_memory();
    *out = *known;
    if (*out)
        return 0;
    *out = weir_value_new(d->arena, WEIR_VALUE_TUPLE);
    return *out && weir_value_add(d->arena, *out, name) ? 0 : weir_fail_memory();
}

static int read_paths(struct dcp *d, struct weir_names *paths, const struct weir_value *planner)
{
    for (size_t i = 0; is_dict(planner) && i < planner->items.count; i += 2) {
        const struct weir_value *name = planner->items.at[i];
        struct weir_value *path = planner->items.at[i + 1];
        if (name->kind != WEIR_VALUE_TEXT || path->kind != WEIR_VALUE_TUPLE)
            continue; /* of a planner of its own kind */
        void **known = weir_names_at(paths, d->arena, name->text.at, name->text.size);
        if (!known)
            return weir_fail_memory();
        *known = path;
    }
    return 0;
}

static int read_all(struct dcp *d, const struct weir_value *root, struct weir_value **out)
{
    const struct weir_value *metas = field(root, "state_dict_metadata");
    struct weir_names paths = {0};
    struct weir_nest nest = {0};
    if (!weir_value_is_object(root, "torch.distributed.checkpoint.metadata.Metadata") ||
        !is_dict(metas))
        return damaged("it describes no state dict");
    int code = read_places(d, field(root, "storage_data"));
    if (!code)
        code = read_paths(d, &paths, field(root, "planner_data"));
    if (!code)
        code = weir_nest_begin(&nest, d->arena);
    for (size_t i = 0; !code && i < metas->items.count; i += 2) {
        struct weir_value *name = metas->items.at[i], *value = NULL, *path = NULL;
        code = name->kind == WEIR_VALUE_TEXT ? read_value(d, name, metas->items.at[i + 1], &value)
                                             : damaged("a name is no text");
        if (!code)
            code = path_of(d, &paths, name, &path);
        if (!code)
            code = weir_nest_set(&nest, path, value);
    }
    if (!code)
        *out = nest.root;
    weir_nest_end(&nest);
    weir_names_free(&paths);
    free(d->places);
    weir_stfile_close(&d->st);
    return code;
}

int weir_dcp_load_bytes(struct weir_value **out, struct weir_arena **arena,
                        struct weir_source *source, const void *bytes, size_t size)
{
    struct dcp d = {.arena = arena, .source = source};
    struct weir_value *root;
    int code = weir_pickle_load(&root, arena, bytes, size, NULL, NULL);
    return code ? code : read_all(&d, root, out);
}

int weir_dcp_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                  const char *dir)
{
    struct dcp d = {.arena = arena, .source = source, .dir = dir};
    struct weir_source_file *file;
    struct weir_value *root;
    char path[PATH_BYTES_MAX];
    if (snprintf(path, sizeof path, "%s/.metadata", dir) >= (int)sizeof path)
        return weir_fail(ENAMETOOLONG, "the name of '%.200s…' is too long", dir);
    int code = weir_source_add(source, path, &file);
    if (!code && file->size > WEIR_PICKLE_BYTES_MAX)
        code = weir_fail(EFBIG, "'%s' has %" PRIu64 " bytes: %d is the limit", path, file->size,
                         WEIR_PICKLE_BYTES_MAX);
    char *bytes = code ? NULL : weir_arena_take(arena, (size_t)file->size + 1);
    if (!code && !bytes)
        code = weir_fail_memory();
    if (!code)
        code = weir_source_read(file, 0, bytes, (size_t)file->size);
    if (!code)
        code = weir_pickle_load(&root, arena, bytes, (size_t)file->size, NULL, NULL);
    if (!code)
        code = read_all(&d, root, out);
    return code ? weir_fail_in(code, "'%s'", dir) : 0;
}
