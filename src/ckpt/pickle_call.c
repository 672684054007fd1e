/* pickle_call.c - the calls in a pickle that build plain data, carried out by hand. All others are
 * only recorded. */
#include <errno.h>
#include <string.h>

#include "ckpt/pickle.h"
#include "util/err.h"

struct call {
    struct weir_value **out;
    struct weir_arena **arena;
    const struct weir_value *args; /* a tuple */
};

static struct weir_value *arg(const struct call *call, size_t i)
{
    return i < call->args->items.count ? call->args->items.at[i] : NULL;
}

static int made(const struct call *call, struct weir_value *value)
{
    *call->out = value;
    return value ? 0 : weir_fail_memory();
}

static int bad(const char *what)
{
    return weir_fail(EBADMSG, "a pickle calls %s with arguments it cannot have", what);
}

/* The items of a list, tuple or set as another kind. */
static int items_as(const struct call *call, enum weir_value_kind kind, const char *what)
{
    const struct weir_value *from = arg(call, 0);
    struct weir_value *value = weir_value_new(call->arena, kind);
    if (call->args->items.count > 1 ||
        (from && (from->kind < WEIR_VALUE_LIST || from->kind > WEIR_VALUE_FROZENSET)))
        return bad(what);
    for (size_t i = 0; value && from && i < from->items.count; i++)
        if (!weir_value_add(call->arena, value, from->items.at[i]))
            value = NULL;
    return made(call, value);
}

static int call_set(const struct call *call)
{
    return items_as(call, WEIR_VALUE_SET, "set");
}

static int call_frozenset(const struct call *call)
{
    return items_as(call, WEIR_VALUE_FROZENSET, "frozenset");
}

static int call_size(const struct call *call)
{
    return items_as(call, WEIR_VALUE_SIZE, "torch.Size");
}

/* Nothing, or pairs, as Python 2 wrote it. */
static int call_ordered(const struct call *call)
{
    const struct weir_value *pairs = arg(call, 0);
    struct weir_value *value = weir_value_new(call->arena, WEIR_VALUE_ORDERED);
    if (pairs && pairs->kind != WEIR_VALUE_LIST)
        return bad("OrderedDict");
    for (size_t i = 0; value && pairs && i < pairs->items.count; i++) {
        const struct weir_value *pair = pairs->items.at[i];
        if ((pair->kind != WEIR_VALUE_LIST && pair->kind != WEIR_VALUE_TUPLE) ||
            pair->items.count != 2)
            return bad("OrderedDict");
        if (!weir_value_add(call->arena, value, pair->items.at[0]) ||
            !weir_value_add(call->arena, value, pair->items.at[1]))
            value = NULL;
    }
    return made(call, value);
}

/* Whatever it would make of missing keys: those that are there follow. */
static int call_defaultdict(const struct call *call)
{
    return made(call, weir_value_new(call->arena, WEIR_VALUE_DICT));
}

static int call_complex(const struct call *call)
{
    const struct weir_value *re = arg(call, 0), *im = arg(call, 1);
    if (!re || !im || re->kind != WEIR_VALUE_FLOAT || im->kind != WEIR_VALUE_FLOAT)
        return bad("complex");
    struct weir_value *value = weir_value_new(call->arena, WEIR_VALUE_COMPLEX);
    if (value) {
        value->real[0] = re->real[0];
        value->real[1] = im->real[0];
    }
    return made(call, value);
}

static int bytes_made(const struct call *call, const char *at, size_t size)
{
    struct weir_value *value = weir_value_new(call->arena, WEIR_VALUE_BYTES);
    if (value) {
        value->text.at = at;
        value->text.size = size;
    }
    return made(call, value);
}

/* bytes() and bytearray(): of nothing, or of bytes. */
static int call_bytes(const struct call *call)
{
    const struct weir_value *from = arg(call, 0);
    if (!from)
        return bytes_made(call, "", 0);
    if (from->kind != WEIR_VALUE_BYTES)
        return bad("bytes");
    return bytes_made(call, from->text.at, from->text.size);
}

/* How protocol 2 writes bytes: encode("\u00e9", "latin1"), a character for each. */
static int call_encode(const struct call *call)
{
    const struct weir_value *from = arg(call, 0);
    if (!from || from->kind != WEIR_VALUE_TEXT || !weir_value_is_text(arg(call, 1), "latin1"))
        return bad("encode");
    char *bytes = weir_arena_take(call->arena, from->text.size + 1);
    size_t size = 0;
    if (!bytes)
        return weir_fail_memory();
    for (size_t i = 0; i < from->text.size; i++) {
        unsigned char c = (unsigned char)from->text.at[i];
        if (c >= 0x80) { /* the text is known to be UTF-8: a second byte follows */
            if (c > 0xc3)
                return bad("encode");
            c = (unsigned char)((c & 3) << 6 | ((unsigned char)from->text.at[++i] & 0x3f));
        }
        bytes[size++] = (char)c;
    }
    return bytes_made(call, bytes, size);
}

static const struct {
    const char *name;
    int (*call)(const struct call *call);
} calls[] = {
    {"collections.OrderedDict", call_ordered},
    {"collections.defaultdict", call_defaultdict},
    {"torch.Size", call_size},
    {"_codecs.encode", call_encode},
    {"builtins.set", call_set},
    {"builtins.frozenset", call_frozenset},
    {"builtins.complex", call_complex},
    {"builtins.bytes", call_bytes},
    {"builtins.bytearray", call_bytes},
};

int weir_pickle_call(struct weir_value **out, struct weir_arena **arena, struct weir_value *global,
                     struct weir_value *args, void *owner)
{
    struct call call = {out, arena, args};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (weir_value_is_global(global, calls[i].name))
            return calls[i].call(&call);
    struct weir_value *object = weir_value_new(arena, WEIR_VALUE_OBJECT);
    if (object) {
        object->object.global = global;
        object->object.args = args;
        object->object.owner = owner;
    }
    return made(&call, object);
}
