/* safetensors.c - see safetensors.h. */
#include "ckpt/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"
#include "util/utf8.h"

static const struct dtype {
    const char *name;
    unsigned bits;
} dtypes[] = {
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static const struct dtype *dtype_find(const char *name, size_t size)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (strlen(dtypes[i].name) == size && !memcmp(dtypes[i].name, name, size))
            return &dtypes[i];
    return NULL;
}

const char *weir_st_dtype_name(const char *name)
{
    const struct dtype *dtype = dtype_find(name, strlen(name));
    return dtype ? dtype->name : NULL;
}

unsigned weir_st_dtype_bits(const char *name)
{
    const struct dtype *dtype = dtype_find(name, strlen(name));
    return dtype ? dtype->bits : 0;
}

int weir_st_bytes(const char *dtype, const uint64_t *shape, uint32_t ndim, uint64_t *bytes)
{
    uint64_t bits = weir_st_dtype_bits(dtype);
    if (!bits)
        return weir_fail(EINVAL, "there is no dtype '%.32s' in safetensors", dtype);
    for (uint32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(bits, shape[i], &bits))
            return weir_fail(EINVAL, "a shape too large to be true");
    if (bits % 8)
        return weir_fail(EINVAL, "a tensor of %" PRIu64 " bits is not whole bytes", bits);
    *bytes = bits / 8;
    return 0;
}

/* ---- reading ---- */

static int bad(const char *why)
{
    return weir_fail(EBADMSG, "not a safetensors file: %s", why);
}

int weir_st_header_size(const uint8_t first[8], uint64_t file_size, uint64_t *size)
{
    if (file_size < 8)
        return bad("it is shorter than 8 bytes");
    uint64_t n = weir_load_le(first, 8);
    if (n > WEIR_ST_HEADER_BYTES_MAX)
        return bad("its header would be longer than 100 MB");
    if (n > file_size - 8)
        return bad("it ends within its header");
    *size = n;
    return 0;
}

/* What the parse is building: names, texts and shapes live in one block, which never needs to be
 * larger than the header was: a text is not longer than its JSON, and a dimension takes at least a
 * digit and a comma, so that four header bytes for one of 8 bytes are always enough. */
struct parse {
    struct weir_json json;
    struct weir_st st;
    size_t tensors_room, pairs_room;
    char *text;       /* grows from the front of memory */
    uint64_t *number; /* shapes, behind the texts */
};

static int next(struct parse *p, enum weir_json_token token, const char *why)
{
    int code = weir_json_next(&p->json);
    if (code < 0)
        return weir_fail(EBADMSG, "not a safetensors file: its header: %s",
                         strdupa(weir_fail_last()));
    return code == 1 && p->json.token == token ? 0 : bad(why);
}

static const char *take_text(struct parse *p)
{
    char *text = p->text;
    p->text += weir_json_text(&p->json, text) + 1;
    return text;
}

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    size_t more = *room ? 2 * *room : 64;
    void *grown = weir_realloc(array, more * size);
    if (grown)
        *room = more;
    return grown;
}

static int parse_metadata(struct parse *p)
{
    int code = next(p, WEIR_JSON_OBJECT, "__metadata__ is not an object");
    while (!code) {
        code = weir_json_next(&p->json);
        if (code != 1 || p->json.token == WEIR_JSON_END)
            return code == 1 ? 0 : bad("its header is not JSON");
        struct weir_st_pair *pairs =
            grow(p->st.metadata, p->st.pairs, &p->pairs_room, sizeof *pairs);
        if (!pairs)
            return weir_fail_memory();
        p->st.metadata = pairs;
        pairs[p->st.pairs].key = take_text(p);
        code = next(p, WEIR_JSON_STRING, "a value of __metadata__ is not a string");
        if (!code)
            pairs[p->st.pairs++].value = take_text(p);
    }
    return code;
}

static int parse_shape(struct parse *p, struct weir_st_tensor *t)
{
    int code = next(p, WEIR_JSON_ARRAY, "a shape is not an array");
    t->shape = p->number;
    while (!code) {
        code = weir_json_next(&p->json);
        if (code != 1)
            return bad("its header is not JSON");
        if (p->json.token == WEIR_JSON_END)
            return 0;
        code = 0;
        if (t->ndim == WEIR_ST_DIMS_MAX)
            return bad("a tensor has more than 64 dimensions");
        if (!weir_json_uint(&p->json, p->number))
            return bad("a dimension is not a whole number");
        p->number++;
        t->ndim++;
    }
    return code;
}

static int parse_offsets(struct parse *p, struct weir_st_tensor *t)
{
    static const char why[] = "data_offsets are not two whole numbers";
    int code = next(p, WEIR_JSON_ARRAY, why);
    if (!code)
        code = next(p, WEIR_JSON_NUMBER, why);
    if (!code && !weir_json_uint(&p->json, &t->begin))
        code = bad(why);
    if (!code)
        code = next(p, WEIR_JSON_NUMBER, why);
    if (!code && !weir_json_uint(&p->json, &t->end))
        code = bad(why);
    return code ? code : next(p, WEIR_JSON_END, why);
}

static int parse_dtype(struct parse *p, struct weir_st_tensor *t)
{
    int code = next(p, WEIR_JSON_STRING, "a dtype is not a string");
    if (code)
        return code;
    const struct dtype *dtype = dtype_find(p->json.text, p->json.size);
    t->dtype = dtype ? dtype->name : NULL;
    return dtype ? 0 : bad("a tensor has an unknown dtype");
}

static bool key_is(const struct parse *p, const char *key)
{
    return p->json.size == strlen(key) && !memcmp(p->json.text, key, p->json.size);
}

/* {"dtype": …, "shape": …, "data_offsets": …} in any order, each once. */
static int parse_tensor(struct parse *p, struct weir_st_tensor *t)
{
    bool shape = false, offsets = false;
    int code = next(p, WEIR_JSON_OBJECT, "a tensor is not described by an object");
    while (!code) {
        code = weir_json_next(&p->json);
        if (code != 1)
            return bad("its header is not JSON");
        if (p->json.token == WEIR_JSON_END)
            break;
        if (key_is(p, "dtype")) {
            code = t->dtype ? bad("a tensor has two dtypes") : parse_dtype(p, t);
        } else if (key_is(p, "shape")) {
            code = shape ? bad("a tensor has two shapes") : parse_shape(p, t);
            shape = true;
        } else if (key_is(p, "data_offsets")) {
            code = offsets ? bad("a tensor has two places") : parse_offsets(p, t);
            offsets = true;
        } else {
            code = weir_json_skip(&p->json) == 1 ? 0 : bad("its header is not JSON");
        }
    }
    if (code < 0)
        return code;
    return t->dtype && shape && offsets ? 0 : bad("a tensor lacks dtype, shape or data_offsets");
}

static int parse_all(struct parse *p)
{
    bool metadata = false;
    int code = next(p, WEIR_JSON_OBJECT, "its header is not an object");
    while (!code) {
        code = weir_json_next(&p->json);
        if (code != 1)
            return next(p, WEIR_JSON_END, "its header is not JSON");
        if (p->json.token == WEIR_JSON_END)
            break;
        if (key_is(p, "__metadata__")) {
            code = metadata ? bad("it has two __metadata__") : parse_metadata(p);
            metadata = true;
            continue;
        }
        struct weir_st_tensor *t = grow(p->st.tensors, p->st.count, &p->tensors_room, sizeof *t);
        if (!t)
            return weir_fail_memory();
        p->st.tensors = t;
        t += p->st.count++;
        *t = (struct weir_st_tensor){.name = take_text(p)};
        code = parse_tensor(p, t);
    }
    return code < 0                        ? code
           : weir_json_next(&p->json) == 0 ? 0
                                           : bad("there is more after its header");
}

static int by_name(const void *a, const void *b)
{
    const struct weir_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_place(const void *a, const void *b)
{
    const struct weir_st_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int check_names(const struct weir_st *st)
{
    const struct weir_st_tensor **sorted = weir_alloc(st->count * sizeof *sorted);
    int code = 0;
    if (!sorted)
        return weir_fail_memory();
    for (size_t i = 0; i < st->count; i++)
        sorted[i] = &st->tensors[i];
    qsort(sorted, st->count, sizeof *sorted, by_name);
    for (size_t i = 1; !code && i < st->count; i++)
        if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
            code = weir_fail(EBADMSG, "not a safetensors file: it has tensor '%.200s' twice",
                             sorted[i]->name);
    free(sorted);
    return code;
}

/* One after the other, each as long as its dtype and shape say, up to the end of the file. */
static int check_places(const struct weir_st *st, uint64_t file_size)
{
    uint64_t at = 0, bytes;
    for (size_t i = 0; i < st->count; i++) {
        const struct weir_st_tensor *t = &st->tensors[i];
        if (t->begin != at || t->end < t->begin)
            return weir_fail(EBADMSG,
                             "not a safetensors file: tensor '%.200s' begins at %" PRIu64
                             " and ends at %" PRIu64 ", where %" PRIu64 " was to be expected",
                             t->name, t->begin, t->end, at);
        int code = weir_st_bytes(t->dtype, t->shape, t->ndim, &bytes);
        if (code || bytes != t->end - t->begin)
            return weir_fail(EBADMSG,
                             "not a safetensors file: tensor '%.200s' does not have the length of "
                             "its shape",
                             t->name);
        at = t->end;
    }
    return at == file_size - st->data_at ? 0 : bad("its tensors do not end where the file ends");
}

int weir_st_parse(struct weir_st *out, const char *json, size_t size, uint64_t file_size)
{
    struct parse p = {.st = {.data_at = size + 8}};
    if (size > WEIR_ST_HEADER_BYTES_MAX || size + 8 > file_size)
        return bad("it ends within its header");
    weir_json_begin(&p.json, json, size);
    /* Texts take at most their JSON, numbers at most 4 times theirs. */
    size_t texts = (size + 8) & ~(size_t)7;
    p.st.memory = weir_alloc(texts + 4 * size + 8);
    if (!p.st.memory)
        return weir_fail_memory();
    p.text = p.st.memory;
    p.number = (uint64_t *)((char *)p.st.memory + texts);
    int code = parse_all(&p);
    if (!code)
        code = check_names(&p.st);
    if (!code && p.st.count)
        qsort(p.st.tensors, p.st.count, sizeof *p.st.tensors, by_place);
    if (!code)
        code = check_places(&p.st, file_size);
    if (code)
        weir_st_free(&p.st);
    else
        *out = p.st;
    return code;
}

void weir_st_free(struct weir_st *st)
{
    free(st->tensors);
    free(st->metadata);
    free(st->memory);
    *st = (struct weir_st){0};
}

/* ---- writing ---- */

static int put_name(struct weir_json_out *json, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0, n; i < size; i += n)
        if (!(n = weir_utf8_length((const unsigned char *)name + i, size - i)))
            return weir_fail(EINVAL, "a name that is not UTF-8");
    weir_json_put_string(json, name, size);
    return 0;
}

static int put_tensor(struct weir_json_out *json, struct weir_st_tensor *t, uint64_t *at)
{
    uint64_t bytes;
    int code = strcmp(t->name, "__metadata__") ? put_name(json, t->name)
                                               : weir_fail(EINVAL, "a tensor named __metadata__");
    if (!code)
        code = weir_st_bytes(t->dtype, t->shape, t->ndim, &bytes);
    if (code)
        return weir_fail_in(code, "tensor '%.200s'", t->name);
    if (__builtin_add_overflow(*at, bytes, &t->end))
        return weir_fail(EFBIG, "the tensors are too large together");
    t->begin = *at;
    weir_json_puts(json, ":{\"dtype\":\"");
    weir_json_puts(json, t->dtype);
    weir_json_puts(json, "\",\"shape\":[");
    for (uint32_t i = 0; i < t->ndim; i++) {
        weir_json_puts(json, i ? "," : "");
        weir_json_put_uint(json, t->shape[i]);
    }
    weir_json_puts(json, "],\"data_offsets\":[");
    weir_json_put_uint(json, t->begin);
    weir_json_puts(json, ",");
    weir_json_put_uint(json, t->end);
    weir_json_puts(json, "]}");
    *at = t->end;
    return 0;
}

static int put_metadata(struct weir_json_out *json, const struct weir_st_pair *metadata,
                        size_t pairs)
{
    int code = 0;
    weir_json_puts(json, "\"__metadata__\":{");
    for (size_t i = 0; !code && i < pairs; i++) {
        weir_json_puts(json, i ? "," : "");
        code = put_name(json, metadata[i].key);
        weir_json_puts(json, ":");
        if (!code)
            code = put_name(json, metadata[i].value);
    }
    weir_json_puts(json, "}");
    return code;
}

int weir_st_make(struct weir_st_tensor *tensors, size_t count, const struct weir_st_pair *metadata,
                 size_t pairs, uint8_t **out, size_t *size)
{
    static const char space[] = "                                                               ";
    struct weir_json_out json = {0};
    uint64_t at = 0;
    int code = 0;
    weir_json_puts(&json, "        {"); /* the length comes here */
    if (pairs)
        code = put_metadata(&json, metadata, pairs);
    for (size_t i = 0; !code && i < count; i++) {
        weir_json_puts(&json, i || pairs ? "," : "");
        code = put_tensor(&json, &tensors[i], &at);
    }
    weir_json_puts(&json, "}");
    while (!code && !json.failed && json.size % WEIR_ST_ALIGN) {
        size_t left = WEIR_ST_ALIGN - json.size % WEIR_ST_ALIGN;
        weir_json_put(&json, space, left < sizeof space - 1 ? left : sizeof space - 1);
    }
    if (!code && json.failed)
        code = weir_fail_memory();
    if (!code && json.size - 8 > WEIR_ST_HEADER_BYTES_MAX)
        code = weir_fail(EFBIG, "the header of %zu tensors is longer than 100 MB: use more files",
                         count);
    if (code) {
        free(json.text);
        return code;
    }
    weir_store_le((uint8_t *)json.text, json.size - 8, 8);
    *out = (uint8_t *)json.text;
    *size = json.size;
    return 0;
}
