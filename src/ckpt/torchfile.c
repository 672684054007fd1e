/* torchfile.c - see torchfile.h. */
#include "ckpt/torchfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/pickle.h"
#include "ckpt/safetensors.h"
#include "util/err.h"

enum { KEY_BYTES_MAX = 1024, WRAPPED_MAX = 8 };

/* The owner of a pickle's objects. */
struct torchfile {
    struct weir_zip zip;
    const char *prefix; /* "archive/" */
};

/* st NULL: safetensors has no such type. */
static const struct {
    const char *dtype, *storage, *st;
} types[] = {
    {"torch.float32", "torch.FloatStorage", "F32"},
    {"torch.float64", "torch.DoubleStorage", "F64"},
    {"torch.float16", "torch.HalfStorage", "F16"},
    {"torch.bfloat16", "torch.BFloat16Storage", "BF16"},
    {"torch.int64", "torch.LongStorage", "I64"},
    {"torch.int32", "torch.IntStorage", "I32"},
    {"torch.int16", "torch.ShortStorage", "I16"},
    {"torch.int8", "torch.CharStorage", "I8"},
    {"torch.uint8", "torch.ByteStorage", "U8"},
    {"torch.bool", "torch.BoolStorage", "BOOL"},
    {"torch.complex64", "torch.ComplexFloatStorage", "C64"},
    {"torch.complex128", "torch.ComplexDoubleStorage", NULL},
    {"torch.uint16", "", "U16"},
    {"torch.uint32", "", "U32"},
    {"torch.uint64", "", "U64"},
    {"torch.float8_e4m3fn", "", "F8_E4M3"},
    {"torch.float8_e5m2", "", "F8_E5M2"},
    {"torch.float8_e4m3fnuz", "", "F8_E4M3FNUZ"},
    {"torch.float8_e5m2fnuz", "", "F8_E5M2FNUZ"},
    {"torch.float8_e8m0fnu", "", "F8_E8M0"},
    {"torch.float4_e2m1fn_x2", "", NULL},
    {"torch.complex32", "torch.ComplexHalfStorage", NULL},
    {"torch.quint8", "torch.QUInt8Storage", NULL},
    {"torch.qint8", "torch.QInt8Storage", NULL},
    {"torch.qint32", "torch.QInt32Storage", NULL},
    {"torch.quint4x2", "torch.QUInt4x2Storage", NULL},
    {"torch.quint2x4", "torch.QUInt2x4Storage", NULL},
    {"torch.bits8", "", NULL},
    {"torch.bits16", "", NULL},
};
enum { TYPES = sizeof types / sizeof types[0] };

bool weir_torch_is_dtype(const struct weir_value *value)
{
    for (size_t i = 0; i < TYPES; i++)
        if (weir_value_is_global(value, types[i].dtype))
            return true;
    return false;
}

const char *weir_torch_dtype(const struct weir_value *global)
{
    for (size_t i = 0; i < TYPES; i++)
        if (weir_value_is_global(global, types[i].dtype))
            return types[i].st;
    return NULL;
}

static const char *dtype_of_storage(const struct weir_value *global)
{
    for (size_t i = 0; i < TYPES; i++)
        if (*types[i].storage && weir_value_is_global(global, types[i].storage))
            return types[i].st;
    return NULL;
}

int weir_torch_dims(const uint64_t **out, uint32_t *ndim, struct weir_arena **arena,
                    const struct weir_value *value)
{
    if (!value || (value->kind != WEIR_VALUE_TUPLE && value->kind != WEIR_VALUE_LIST &&
                   value->kind != WEIR_VALUE_SIZE))
        return weir_fail(EBADMSG, "its shape is none");
    size_t count = value->items.count;
    if (count > WEIR_ST_DIMS_MAX)
        return weir_fail(ENOTSUP, "it has %zu dimensions: %d is the limit", count,
                         WEIR_ST_DIMS_MAX);
    uint64_t *dims = weir_arena_take(arena, 8 * count + 8);
    if (!dims)
        return weir_fail_memory();
    for (size_t i = 0; i < count; i++)
        if (!weir_value_uint(value->items.at[i], &dims[i]))
            return weir_fail(EBADMSG, "a dimension of it is no whole number");
    *out = dims;
    *ndim = (uint32_t)count;
    return 0;
}

/* ---- the archive ---- */

static int read_whole(const char **out, struct weir_arena **arena, const struct weir_extent *span,
                      uint64_t max)
{
    if (span->size > max)
        return weir_fail(EFBIG, "'%s' has a pickle of %" PRIu64 " bytes: %" PRIu64 " is the limit",
                         span->file->path, span->size, max);
    char *bytes = weir_arena_take(arena, (size_t)span->size + 1);
    *out = bytes;
    return bytes ? weir_extent_read(span, 0, bytes, (size_t)span->size) : weir_fail_memory();
}

/* The entry "<anything>/data.pkl"; what is in front of it is the prefix of all. */
static int find_pickle(struct torchfile *file, struct weir_arena **arena,
                       const struct weir_zip_entry **out)
{
    static const char name[] = "data.pkl";
    for (size_t i = 0; i < file->zip.count; i++) {
        const char *slash = strchr(file->zip.entries[i].name, '/');
        if (!slash || strcmp(slash + 1, name))
            continue;
        size_t size = (size_t)(slash + 1 - file->zip.entries[i].name);
        char *prefix = weir_arena_take(arena, size + 1);
        if (!prefix)
            return weir_fail_memory();
        memcpy(prefix, file->zip.entries[i].name, size);
        file->prefix = prefix;
        *out = &file->zip.entries[i];
        return 0;
    }
    return weir_fail(EBADMSG, "'%s' is an archive, but none that torch.save() wrote: it has no %s",
                     file->zip.span.file->path, name);
}

static const struct weir_zip_entry *find_entry(const struct torchfile *file, const char *dir,
                                               const char *name, size_t size)
{
    char path[2 * KEY_BYTES_MAX];
    int n = snprintf(path, sizeof path, "%s%s%.*s", file->prefix, dir, (int)size, name);
    return n < (int)sizeof path ? weir_zip_find(&file->zip, path) : NULL;
}

static int check_byteorder(const struct torchfile *file)
{
    const struct weir_zip_entry *entry = find_entry(file, "", "byteorder", 9);
    struct weir_extent span;
    char order[6] = "";
    if (!entry)
        return 0; /* older ones have none, and were not made elsewhere */
    int code = weir_zip_span(&file->zip, entry, &span);
    if (!code && span.size == sizeof order)
        code = weir_extent_read(&span, 0, order, sizeof order);
    if (!code && memcmp(order, "little", 6))
        code = weir_fail(ENOTSUP, "'%s' was written on a big-endian machine", span.file->path);
    return code;
}

int weir_torchfile_load(struct weir_value **out, struct weir_arena **arena,
                        const struct weir_extent *span)
{
    struct torchfile *file = weir_arena_take(arena, sizeof *file);
    const struct weir_zip_entry *entry = NULL;
    struct weir_extent pickle = {0};
    const char *bytes = NULL;
    if (!file)
        return weir_fail_memory();
    int code = weir_zip_open(&file->zip, arena, span);
    if (!code)
        code = find_pickle(file, arena, &entry);
    if (!code)
        code = check_byteorder(file);
    if (!code)
        code = weir_zip_span(&file->zip, entry, &pickle);
    if (!code)
        code = read_whole(&bytes, arena, &pickle, WEIR_PICKLE_BYTES_MAX);
    if (code)
        return code;
    code = weir_pickle_load(out, arena, bytes, (size_t)pickle.size, file, NULL);
    return code ? weir_fail_in(code, "'%s'", span->file->path) : 0;
}

/* ---- tensors ---- */

/* A call that makes a tensor. */
struct rebuild {
    const struct weir_value *global, *args;
};

static const struct weir_value *arg(const struct rebuild *r, size_t i)
{
    return i < r->args->items.count ? r->args->items.at[i] : NULL;
}

static bool is_any(const struct weir_value *global, const char *const *names)
{
    for (; *names; names++)
        if (weir_value_is_global(global, *names))
            return true;
    return false;
}

/* Takes off what is wrapped around a tensor: Parameter, and classes that add nothing to it. */
static bool unwrap(struct rebuild *r, const struct weir_value *value)
{
    static const char *const wrappers[] = {"torch._utils._rebuild_parameter",
                                           "torch._utils._rebuild_parameter_with_state", NULL};
    static const char *const classes[] = {"torch.Tensor", "torch._tensor.Tensor",
                                          "torch.nn.parameter.Parameter",
                                          "torch.nn.parameter.Buffer", NULL};
    static const char *const makers[] = {"torch._utils._rebuild_tensor_v2",
                                         "torch._utils._rebuild_tensor_v3", NULL};
    if (!value || value->kind != WEIR_VALUE_OBJECT)
        return false;
    *r = (struct rebuild){value->object.global, value->object.args};
    for (int i = 0; i < WRAPPED_MAX; i++) {
        const struct weir_value *inner = arg(r, 0);
        if (is_any(r->global, wrappers) && inner && inner->kind == WEIR_VALUE_OBJECT) {
            *r = (struct rebuild){inner->object.global, inner->object.args};
        } else if (weir_value_is_global(r->global, "torch._tensor._rebuild_from_type_v2") &&
                   is_any(arg(r, 1), classes) && arg(r, 2) && arg(r, 2)->kind == WEIR_VALUE_TUPLE) {
            *r = (struct rebuild){inner, arg(r, 2)};
        } else {
            return is_any(r->global, makers);
        }
    }
    return false;
}

/* ('storage', class, key, location, number of elements) */
struct storage {
    const char *dtype; /* NULL: it has none of its own, or one without a name */
    const struct weir_value *type;
    bool untyped;
    uint64_t count;
    struct weir_extent span;
};

static int read_storage(struct storage *out, const struct weir_value *value)
{
    if (!value || value->kind != WEIR_VALUE_STORAGE || value->object.args->items.count < 5)
        return weir_fail(EBADMSG, "it has no storage");
    struct weir_value **args = value->object.args->items.at;
    const struct torchfile *file = value->object.owner;
    if (!weir_value_is_text(args[0], "storage") || args[2]->kind != WEIR_VALUE_TEXT ||
        args[2]->text.size > KEY_BYTES_MAX || !weir_value_uint(args[4], &out->count))
        return weir_fail(EBADMSG, "its storage is not described as it should be");
    if (!file || weir_value_is_text(args[3], "meta"))
        return weir_fail(ENOTSUP, "it has a shape but no data: it is on the device 'meta'");
    const struct weir_zip_entry *entry =
        find_entry(file, "data/", args[2]->text.at, args[2]->text.size);
    if (!entry)
        return weir_fail(EBADMSG, "its storage '%.*s' is missing in '%s'", (int)args[2]->text.size,
                         args[2]->text.at, file->zip.span.file->path);
    out->type = args[1];
    out->dtype = dtype_of_storage(args[1]);
    out->untyped = weir_value_is_global(args[1], "torch.storage.UntypedStorage");
    return weir_zip_span(&file->zip, entry, &out->span);
}

static int no_dtype(const struct weir_value *type)
{
    if (type && type->kind == WEIR_VALUE_GLOBAL)
        return weir_fail(ENOTSUP, "safetensors has no name for %.*s: convert it first",
                         (int)type->text.size, type->text.at);
    return weir_fail(EBADMSG, "it has no dtype");
}

/* What the entry holds is as long as the pickle says. */
static int check_storage(const struct storage *storage)
{
    uint64_t bytes = storage->untyped ? 1 : weir_st_dtype_bits(storage->dtype) / 8;
    if (__builtin_mul_overflow(bytes, storage->count, &bytes) || bytes != storage->span.size)
        return weir_fail(EBADMSG, "its storage has %" PRIu64 " bytes, not as many as it says",
                         storage->span.size);
    return 0;
}

int weir_torchfile_tensor(struct weir_from **out, struct weir_arena **arena,
                          const struct weir_value *value)
{
    struct rebuild r;
    struct storage storage = {0};
    const uint64_t *shape = NULL, *stride = NULL;
    uint32_t ndim = 0, strides = 0;
    uint64_t at = 0;
    *out = NULL;
    if (!unwrap(&r, value))
        return 0;
    bool v3 = weir_value_is_global(r.global, "torch._utils._rebuild_tensor_v3");
    const struct weir_value *type = v3 ? arg(&r, 6) : NULL, *bits = arg(&r, v3 ? 7 : 6);
    int code = read_storage(&storage, arg(&r, 0));
    if (code)
        return code;
    const char *dtype = v3 ? weir_torch_dtype(type) : storage.dtype;
    if (!dtype)
        return no_dtype(v3 ? type : storage.type);
    if (!storage.untyped && !storage.dtype)
        return no_dtype(storage.type);
    if (bits && bits->kind == WEIR_VALUE_DICT && bits->items.count)
        return weir_fail(ENOTSUP, "it is a conjugate or negative view: resolve it before saving");
    code = check_storage(&storage);
    if (!code && !weir_value_uint(arg(&r, 1), &at))
        code = weir_fail(EBADMSG, "it does not say where in its storage it begins");
    if (!code)
        code = weir_torch_dims(&shape, &ndim, arena, arg(&r, 2));
    if (!code)
        code = weir_torch_dims(&stride, &strides, arena, arg(&r, 3));
    if (!code && strides != ndim)
        code = weir_fail(EBADMSG, "it has %u dimensions and %u strides", ndim, strides);
    struct weir_from *from = code ? NULL : weir_arena_take(arena, sizeof *from);
    if (!code && !from)
        code = weir_fail_memory();
    if (!code)
        code = weir_from_make(from, arena, dtype, shape, stride, ndim, &storage.span, at);
    if (!code)
        *out = from;
    return code;
}
