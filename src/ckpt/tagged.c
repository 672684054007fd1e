/* tagged.c - see tagged.h. The tree is walked with a stack of its own: how deep it is, is for
 * whoever wrote it to say. */
#include "ckpt/tagged.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/names.h"
#include "ckpt/scalar.h"
#include "ckpt/torchfile.h"
#include "util/err.h"
#include "util/sys.h"

/* A container that is being written. */
struct frame {
    const struct weir_value *value;
    size_t at;        /* the next item */
    size_t written;   /* items, or pairs, so far */
    size_t path_size; /* of the path of the container */
    unsigned levels;  /* of JSON that it takes */
    bool plain;       /* a dict that is a JSON object */
    bool pair;        /* "[key, value" is to be closed */
    size_t pair_at;   /* where in the text it began */
};

struct walk {
    struct weir_arena **arena;
    struct weir_json_out out, path, skipped;
    struct weir_names names;
    struct frame frames[WEIR_JSON_DEPTH_MAX];
    size_t depth;
    unsigned levels;
    size_t values;
    bool skip;
    struct weir_tagged_tensor *tensors;
    size_t count, room, skips;
};

static bool is_dict(const struct weir_value *value)
{
    return value->kind == WEIR_VALUE_DICT || value->kind == WEIR_VALUE_ORDERED;
}

static bool is_container(const struct weir_value *value)
{
    return value->kind >= WEIR_VALUE_LIST && value->kind <= WEIR_VALUE_ORDERED;
}

/* ---- where we are ---- */

static int fail_here(const struct walk *w, int code)
{
    if (w->path.size > 200)
        return weir_fail_in(code, "'%.200s…'", w->path.text);
    return w->path.size ? weir_fail_in(code, "'%.*s'", (int)w->path.size, w->path.text) : code;
}

static int path_to(struct walk *w, const struct frame *f)
{
    const struct weir_value *key = is_dict(f->value) ? f->value->items.at[f->at - f->at % 2] : NULL;
    char number[24];
    w->path.size = f->path_size;
    if (f->path_size)
        weir_json_puts(&w->path, ".");
    /* A key that is neither text nor number: by its place. */
    if (!key || !weir_scalar_str(&w->path, key)) {
        snprintf(number, sizeof number, "%zu", key ? f->at / 2 : f->at);
        weir_json_puts(&w->path, number);
    }
    if (w->path.failed)
        return weir_fail_memory();
    if (w->path.size > WEIR_TAGGED_PATH_BYTES_MAX)
        return fail_here(
            w, weir_fail(ENAMETOOLONG, "a name of more than %d bytes", WEIR_TAGGED_PATH_BYTES_MAX));
    return 0;
}

/* ---- what has no place in a state ---- */

static const struct weir_value *unknown_name(const struct weir_value *value)
{
    return value->kind == WEIR_VALUE_OBJECT ? value->object.global : value;
}

static int unknown(struct walk *w, const struct weir_value *value)
{
    const struct weir_value *name = unknown_name(value);
    bool named = name->kind == WEIR_VALUE_GLOBAL;
    const char *text = named ? name->text.at : "a storage";
    int size = named ? (int)(name->text.size < 200 ? name->text.size : 200) : 9;
    if (!w->skip)
        return fail_here(w, weir_fail(ENOTSUP,
                                      "%.*s is neither a tensor nor plain data, and is not made "
                                      "here: --skip-unknown leaves such values out",
                                      size, text));
    weir_json_put(&w->skipped, w->path.text, w->path.size);
    weir_json_puts(&w->skipped, ": ");
    weir_json_put(&w->skipped, text, (size_t)size);
    weir_json_puts(&w->skipped, "\n");
    w->skips++;
    return 0;
}

/* ---- tensors ---- */

static int put_tensor(struct walk *w, const struct weir_from *from)
{
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 256;
        void *more = weir_realloc(w->tensors, room * sizeof *w->tensors);
        if (!more)
            return weir_fail_memory();
        w->tensors = more;
        w->room = room;
    }
    if (w->path.size && memchr(w->path.text, 0, w->path.size))
        return fail_here(w, weir_fail(ENOTSUP, "the name of a tensor has a zero byte"));
    const char *path = w->path.size ? w->path.text : "tensor"; /* it is all there is */
    const char *name =
        weir_names_give(&w->names, w->arena, path, w->path.size ? w->path.size : strlen(path));
    if (!name)
        return weir_fail_memory();
    w->tensors[w->count++] = (struct weir_tagged_tensor){name, from};
    weir_json_puts(&w->out, "{\"$\":\"tensor\",\"name\":");
    weir_json_put_string(&w->out, name, strlen(name));
    weir_json_puts(&w->out, "}");
    return 0;
}

/* ---- containers ---- */

static int by_text(const void *a, const void *b)
{
    const struct weir_value *const *x = a, *const *y = b;
    size_t size = (*x)->text.size < (*y)->text.size ? (*x)->text.size : (*y)->text.size;
    int order = size ? memcmp((*x)->text.at, (*y)->text.at, size) : 0;
    return order                               ? order
           : (*x)->text.size < (*y)->text.size ? -1
                                               : (*x)->text.size > (*y)->text.size;
}

/* No dict has a key twice; one in a forged pickle might. */
static int check_keys(const struct weir_value *dict)
{
    size_t count = dict->items.count / 2;
    struct weir_value **keys = weir_alloc(count * sizeof *keys + 1);
    int code = 0;
    if (!keys)
        return weir_fail_memory();
    for (size_t i = 0; i < count; i++)
        keys[i] = dict->items.at[2 * i];
    qsort(keys, count, sizeof *keys, by_text);
    for (size_t i = 1; !code && i < count; i++)
        if (!by_text(&keys[i - 1], &keys[i]))
            code = weir_fail(EBADMSG, "a dict has the key '%.*s' twice",
                             (int)(keys[i]->text.size < 200 ? keys[i]->text.size : 200),
                             keys[i]->text.at);
    free(keys);
    return code;
}

/* All keys are texts, and none would be taken for a tag. */
static bool is_plain(const struct weir_value *value)
{
    if (value->kind != WEIR_VALUE_DICT)
        return false;
    for (size_t i = 0; i < value->items.count; i += 2)
        if (value->items.at[i]->kind != WEIR_VALUE_TEXT ||
            weir_value_is_text(value->items.at[i], "$"))
            return false;
    return true;
}

static const char *tag_of(const struct weir_value *value)
{
    switch (value->kind) {
    case WEIR_VALUE_TUPLE:
        return "{\"$\":\"tuple\",\"items\":[";
    case WEIR_VALUE_SIZE:
        return "{\"$\":\"size\",\"items\":[";
    case WEIR_VALUE_SET:
        return "{\"$\":\"set\",\"items\":[";
    case WEIR_VALUE_FROZENSET:
        return "{\"$\":\"frozenset\",\"items\":[";
    case WEIR_VALUE_DICT:
        return "{\"$\":\"dict\",\"items\":[";
    default:
        return "{\"$\":\"ordered\",\"items\":[";
    }
}

static int enter(struct walk *w, const struct weir_value *value)
{
    struct frame f = {.value = value, .path_size = w->path.size, .plain = is_plain(value)};
    bool bare = f.plain || value->kind == WEIR_VALUE_LIST;
    f.levels = bare ? 1 : is_dict(value) ? 3 : 2;
    if (w->depth == WEIR_JSON_DEPTH_MAX || w->levels + f.levels > WEIR_JSON_DEPTH_MAX)
        return fail_here(w, weir_fail(ENOTSUP, "it is nested too deeply, or contains itself"));
    if (f.plain) {
        int code = check_keys(value);
        if (code)
            return fail_here(w, code);
    }
    w->levels += f.levels;
    w->frames[w->depth++] = f;
    weir_json_puts(&w->out, f.plain ? "{" : bare ? "[" : tag_of(value));
    return 0;
}

static void leave(struct walk *w, const struct frame *f)
{
    weir_json_puts(&w->out, f->plain ? "}" : f->value->kind == WEIR_VALUE_LIST ? "]" : "]}");
    w->levels -= f->levels;
    w->depth--;
}

/* What it is, written; 1: it is nothing that can be written. */
static int put_value(struct walk *w, const struct weir_value *value)
{
    struct weir_from *from = NULL;
    if (++w->values > WEIR_TAGGED_VALUES_MAX || w->out.size > WEIR_TAGGED_BYTES_MAX)
        return weir_fail(E2BIG, "more than %d values, or %zu bytes of state",
                         WEIR_TAGGED_VALUES_MAX, WEIR_TAGGED_BYTES_MAX);
    if (is_container(value))
        return enter(w, value);
    if (value->kind == WEIR_VALUE_TENSOR)
        return put_tensor(w, value->tensor);
    if (value->kind == WEIR_VALUE_OBJECT) {
        int code = weir_torchfile_tensor(&from, w->arena, value);
        if (code)
            return fail_here(w, code);
        if (from)
            return put_tensor(w, from);
    }
    return weir_scalar_put(&w->out, value) ? 0 : 1;
}

/* ---- the walk ---- */

/* The next item of a list, tuple or set; in a set, too, what is unknown leaves null behind. */
static int step_item(struct walk *w, struct frame *f)
{
    weir_json_puts(&w->out, f->written++ ? "," : "");
    int code = path_to(w, f);
    const struct weir_value *value = f->value->items.at[f->at++];
    if (!code)
        code = put_value(w, value);
    if (code == 1) {
        code = unknown(w, value);
        weir_json_puts(&w->out, "null");
    }
    return code;
}

/* The next key, or the value of the last one. A pair is taken back if its value is unknown. */
static int step_pair(struct walk *w, struct frame *f)
{
    bool is_key = f->at % 2 == 0;
    int code = path_to(w, f);
    if (code)
        return code;
    const struct weir_value *value = f->value->items.at[f->at++];
    if (is_key) {
        f->pair = !f->plain;
        if (f->plain)
            return 0; /* together with its value */
        f->pair_at = w->out.size;
        weir_json_puts(&w->out, f->written ? ",[" : "[");
        code = put_value(w, value);
        if (code == 1) {
            code = unknown(w, value);
            weir_json_puts(&w->out, "null");
        }
        return code;
    }
    if (f->plain) {
        f->pair_at = w->out.size;
        const struct weir_value *key = f->value->items.at[f->at - 2];
        weir_json_puts(&w->out, f->written ? "," : "");
        weir_json_put_string(&w->out, key->text.at, key->text.size);
        weir_json_puts(&w->out, ":");
    } else {
        weir_json_puts(&w->out, ",");
    }
    f->written++;
    code = put_value(w, value);
    if (code != 1)
        return code;
    w->out.size = f->pair_at;
    f->written--;
    f->pair = false;
    return unknown(w, value);
}

static int step(struct walk *w)
{
    struct frame *f = &w->frames[w->depth - 1];
    if (f->pair && f->at % 2 == 0) {
        weir_json_puts(&w->out, "]");
        f->pair = false;
    }
    if (f->at == f->value->items.count) {
        leave(w, f);
        return 0;
    }
    return is_dict(f->value) ? step_pair(w, f) : step_item(w, f);
}

static int walk_all(struct walk *w, const struct weir_value *root)
{
    weir_json_puts(&w->out, "{\"weir\":\"state/1\",\"root\":");
    w->levels = 1;
    int code = put_value(w, root);
    if (code == 1) {
        code = unknown(w, root);
        weir_json_puts(&w->out, "null");
    }
    while (!code && w->depth)
        code = w->out.failed ? weir_fail_memory() : step(w);
    weir_json_put(&w->out, "}", 2); /* with the zero */
    if (w->skips)
        weir_json_put(&w->skipped, "", 1);
    if (!code && (w->out.failed || w->skipped.failed))
        code = weir_fail_memory();
    return code;
}

int weir_tagged_make(struct weir_tagged *out, struct weir_arena **arena,
                     const struct weir_value *root, bool skip)
{
    struct walk *w = weir_alloc(sizeof *w);
    if (!w)
        return weir_fail_memory();
    w->arena = arena;
    w->skip = skip;
    int code = walk_all(w, root);
    struct weir_tagged tagged = {.text = w->out.text,
                                 .size = w->out.size - 1,
                                 .tensors = w->tensors,
                                 .count = w->count,
                                 .skipped = w->skipped.text,
                                 .skips = w->skips};
    weir_names_free(&w->names);
    free(w->path.text);
    free(w);
    if (code)
        weir_tagged_free(&tagged);
    else
        *out = tagged;
    return code;
}

void weir_tagged_free(struct weir_tagged *tagged)
{
    free(tagged->text);
    free(tagged->tensors);
    free(tagged->skipped);
    *tagged = (struct weir_tagged){0};
}
