/* pickle.c - see pickle.h. */
#include "ckpt/pickle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/utf8.h"

enum { COPIED_BYTES_MAX = 64 << 20 };

/* The machine: a stack of values, marks on it, and the memo: values that are named by number. */
struct machine {
    const uint8_t *begin, *at, *end;
    struct weir_arena **arena;
    void *owner;
    struct weir_value **stack, **memo;
    size_t *marks;
    size_t depth, stack_room, memo_count, memo_room, mark_count, mark_room;
    size_t values;
    uint64_t copied; /* bytes: a short pickle can have a long value copied again and again */
    bool stopped;
};

static int bad(const struct machine *m, const char *why)
{
    return weir_fail(EBADMSG, "a pickle is damaged: %s at byte %zu", why,
                     (size_t)(m->at - m->begin));
}

/* ---- stack, marks, memo ---- */

/* Makes room for one more in an array. */
static int grow(void *array, size_t count, size_t *room, size_t size)
{
    void **at = array;
    if (count < *room)
        return 0;
    size_t more = *room ? 2 * *room : 64;
    void *grown = weir_realloc(*at, more * size);
    if (!grown)
        return weir_fail_memory();
    *at = grown;
    *room = more;
    return 0;
}

static int push(struct machine *m, struct weir_value *value)
{
    if (!value)
        return weir_fail_memory();
    int code = grow(&m->stack, m->depth, &m->stack_room, sizeof *m->stack);
    if (!code)
        m->stack[m->depth++] = value;
    return code;
}

/* What the last mark leaves to the operation that is under way. */
static size_t floor_of(const struct machine *m)
{
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static struct weir_value *pop(struct machine *m)
{
    return m->depth > floor_of(m) ? m->stack[--m->depth] : NULL;
}

static struct weir_value *top(const struct machine *m)
{
    return m->depth > floor_of(m) ? m->stack[m->depth - 1] : NULL;
}

/* Takes the last mark away: *from is where it stood. */
static int unmark(struct machine *m, size_t *from)
{
    if (!m->mark_count)
        return bad(m, "a mark is missing");
    *from = m->marks[--m->mark_count];
    return 0;
}

static int new_value(struct machine *m, enum weir_value_kind kind, struct weir_value **out)
{
    if (m->values++ == WEIR_PICKLE_VALUES_MAX)
        return weir_fail(E2BIG, "a pickle has more than %d values", WEIR_PICKLE_VALUES_MAX);
    *out = weir_value_new(m->arena, kind);
    return *out ? 0 : weir_fail_memory();
}

static int push_new(struct machine *m, enum weir_value_kind kind)
{
    struct weir_value *value = NULL;
    int code = new_value(m, kind, &value);
    return code ? code : push(m, value);
}

/* Counts what is about to be copied. */
static int copying(struct machine *m, uint64_t bytes)
{
    m->copied += bytes;
    if (m->copied > COPIED_BYTES_MAX + 4 * (uint64_t)(m->end - m->begin))
        return weir_fail(E2BIG, "a pickle that grows without end");
    return 0;
}

/* ---- reading ---- */

static const uint8_t *take(struct machine *m, uint64_t size)
{
    if ((uint64_t)(m->end - m->at) < size)
        return NULL;
    const uint8_t *bytes = m->at;
    m->at += size;
    return bytes;
}

static int take_number(struct machine *m, unsigned bytes, uint64_t *out)
{
    const uint8_t *at = take(m, bytes);
    if (!at)
        return bad(m, "it ends too early");
    *out = weir_load_le(at, bytes);
    return 0;
}

/* A length of so many bytes, and as many bytes as it says. */
static int take_counted(struct machine *m, unsigned length_bytes, const uint8_t **out, size_t *size)
{
    uint64_t length = 0;
    int code = take_number(m, length_bytes, &length);
    if (code)
        return code;
    *out = take(m, length);
    *size = (size_t)length;
    return *out ? 0 : bad(m, "it ends too early");
}

static int check_utf8(const struct machine *m, const uint8_t *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n)
        if (!(n = weir_utf8_length(text + i, size - i)))
            return bad(m, "a text is not UTF-8");
    return 0;
}

/* ---- operations ---- */

static int op_mark(struct machine *m, uint8_t op)
{
    (void)op;
    int code = grow(&m->marks, m->mark_count, &m->mark_room, sizeof *m->marks);
    if (!code)
        m->marks[m->mark_count++] = m->depth;
    return code;
}

static int op_stop(struct machine *m, uint8_t op)
{
    (void)op;
    m->stopped = true;
    return m->depth == 1 && !m->mark_count ? 0 : bad(m, "it ends with other than one value");
}

static int op_skip(struct machine *m, uint8_t op)
{
    uint64_t ignored = 0;
    int code = take_number(m, op == 0x80 ? 1 : 8, &ignored);
    if (!code && op == 0x80 && (ignored < 2 || ignored > 5))
        code = weir_fail(ENOTSUP, "a pickle of protocol %" PRIu64 ": 2 to 5 are known", ignored);
    return code;
}

static int op_pop(struct machine *m, uint8_t op)
{
    size_t from = m->depth;
    if (op == '0')
        return pop(m) ? 0 : bad(m, "nothing to drop");
    int code = unmark(m, &from);
    m->depth = from;
    return code;
}

static int op_constant(struct machine *m, uint8_t op)
{
    int code = push_new(m, op == 'N' ? WEIR_VALUE_NONE : WEIR_VALUE_BOOL);
    if (!code)
        top(m)->number = op == 0x88;
    return code;
}

static int op_int(struct machine *m, uint8_t op)
{
    unsigned bytes = op == 'K' ? 1 : op == 'M' ? 2 : 4;
    uint64_t value = 0;
    int code = take_number(m, bytes, &value);
    if (!code)
        code = push_new(m, WEIR_VALUE_INT);
    if (!code)
        top(m)->number = bytes == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
    return code;
}

/* A long of so many bytes: an int, if it fits. */
static int op_long(struct machine *m, uint8_t op)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int code = take_counted(m, op == 0x8a ? 1 : 4, &bytes, &size);
    if (!code && size > WEIR_PICKLE_INT_BYTES_MAX)
        code = weir_fail(ENOTSUP, "a pickle has an int of %zu bytes: %d is the limit", size,
                         WEIR_PICKLE_INT_BYTES_MAX);
    if (!code)
        code = push_new(m, size > 8 ? WEIR_VALUE_LONG : WEIR_VALUE_INT);
    if (code)
        return code;
    struct weir_value *value = top(m);
    if (size > 8) {
        value->text.at = (const char *)bytes;
        value->text.size = size;
        return 0;
    }
    uint64_t number = weir_load_le(bytes, (unsigned)size);
    if (size && size < 8 && bytes[size - 1] & 0x80)
        number |= UINT64_MAX << (8 * size);
    value->number = (int64_t)number;
    return 0;
}

static int op_float(struct machine *m, uint8_t op)
{
    (void)op;
    const uint8_t *at = take(m, 8);
    uint64_t bits = 0;
    if (!at)
        return bad(m, "it ends too early");
    for (int i = 0; i < 8; i++) /* the one big-endian thing */
        bits = bits << 8 | at[i];
    int code = push_new(m, WEIR_VALUE_FLOAT);
    if (!code)
        memcpy(&top(m)->real[0], &bits, 8);
    return code;
}

static unsigned length_bytes(uint8_t op)
{
    switch (op) {
    case 'U':
    case 'C':
    case 0x8c:
        return 1;
    case 0x8d:
    case 0x8e:
    case 0x96:
        return 8;
    default:
        return 4;
    }
}

static int op_text(struct machine *m, uint8_t op)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    bool text = op == 'X' || op == 0x8c || op == 0x8d || op == 'U' || op == 'T';
    int code = take_counted(m, length_bytes(op), &bytes, &size);
    if (!code && text)
        code = check_utf8(m, bytes, size);
    if (!code)
        code = push_new(m, text ? WEIR_VALUE_TEXT : WEIR_VALUE_BYTES);
    if (code)
        return code;
    top(m)->text.at = (const char *)bytes;
    top(m)->text.size = size;
    return 0;
}

static int op_empty(struct machine *m, uint8_t op)
{
    switch (op) {
    case ']':
        return push_new(m, WEIR_VALUE_LIST);
    case ')':
        return push_new(m, WEIR_VALUE_TUPLE);
    case '}':
        return push_new(m, WEIR_VALUE_DICT);
    default:
        return push_new(m, WEIR_VALUE_SET);
    }
}

/* Moves what is above `from` into `into`. An object that no kind of data stands for may be a list
 * or a dict of its own kind: what it holds is nobody's business. */
static int move_items(struct machine *m, struct weir_value *into, size_t from)
{
    for (size_t i = from; i < m->depth; i++)
        if (into->kind != WEIR_VALUE_OBJECT && !weir_value_add(m->arena, into, m->stack[i]))
            return weir_fail_memory();
    m->depth = from;
    return 0;
}

/* A new container of what is above the mark, or of the last 1, 2 or 3. */
static int op_collect(struct machine *m, uint8_t op)
{
    enum weir_value_kind kind = op == 'l'    ? WEIR_VALUE_LIST
                                : op == 'd'  ? WEIR_VALUE_DICT
                                : op == 0x91 ? WEIR_VALUE_FROZENSET
                                             : WEIR_VALUE_TUPLE;
    size_t from, count = op >= 0x85 && op <= 0x87 ? op - 0x84u : 0;
    struct weir_value *value = NULL;
    int code = 0;
    if (count && m->depth - floor_of(m) < count)
        return bad(m, "a tuple of more than there is");
    from = m->depth - count;
    if (!count)
        code = unmark(m, &from);
    if (!code && kind == WEIR_VALUE_DICT && (m->depth - from) % 2)
        code = bad(m, "a key without a value");
    if (!code)
        code = new_value(m, kind, &value);
    if (!code)
        code = move_items(m, value, from);
    return code ? code : push(m, value);
}

static bool takes_items(const struct weir_value *value, uint8_t op)
{
    if (!value)
        return false;
    if (value->kind == WEIR_VALUE_OBJECT)
        return true;
    if (op == 's' || op == 'u')
        return value->kind == WEIR_VALUE_DICT || value->kind == WEIR_VALUE_ORDERED;
    return value->kind == (op == 0x90 ? WEIR_VALUE_SET : WEIR_VALUE_LIST);
}

/* APPEND, APPENDS, SETITEM, SETITEMS, ADDITEMS. */
static int op_add(struct machine *m, uint8_t op)
{
    size_t from = 0, count = op == 'a' ? 1 : op == 's' ? 2 : 0;
    int code = 0;
    if (count)
        from = m->depth - floor_of(m) > count ? m->depth - count : 0;
    else
        code = unmark(m, &from);
    if (code)
        return code;
    if (from <= floor_of(m))
        return bad(m, "nothing to add to");
    struct weir_value *into = m->stack[from - 1];
    if (!takes_items(into, op))
        return bad(m, "something is added to what takes nothing");
    if ((op == 's' || op == 'u') && (m->depth - from) % 2)
        return bad(m, "a key without a value");
    return move_items(m, into, from);
}

/* ---- names and calls ---- */

/* "module.name"; what Python 2 called __builtin__ is builtins. */
static int push_global(struct machine *m, const char *module, size_t module_size, const char *name,
                       size_t name_size)
{
    if (module_size == 11 && !memcmp(module, "__builtin__", 11)) {
        module = "builtins";
        module_size = 8;
    }
    size_t size = module_size + 1 + name_size;
    int code = copying(m, size);
    if (code)
        return code;
    char *text = weir_arena_take(m->arena, size + 1);
    if (!text)
        return weir_fail_memory();
    memcpy(text, module, module_size);
    text[module_size] = '.';
    memcpy(text + module_size + 1, name, name_size);
    code = check_utf8(m, (const uint8_t *)text, size);
    if (!code)
        code = push_new(m, WEIR_VALUE_GLOBAL);
    if (code)
        return code;
    top(m)->text.at = text;
    top(m)->text.size = size;
    return 0;
}

static const uint8_t *take_line(struct machine *m, size_t *size)
{
    const uint8_t *line = m->at, *end = memchr(line, '\n', (size_t)(m->end - line));
    if (!end)
        return NULL;
    *size = (size_t)(end - line);
    m->at = end + 1;
    return line;
}

static int op_global(struct machine *m, uint8_t op)
{
    if (op == 0x93) {
        const struct weir_value *name = pop(m), *module = pop(m);
        if (!name || !module || name->kind != WEIR_VALUE_TEXT || module->kind != WEIR_VALUE_TEXT)
            return bad(m, "a name that is no text");
        return push_global(m, module->text.at, module->text.size, name->text.at, name->text.size);
    }
    size_t module_size, name_size;
    const char *module = (const char *)take_line(m, &module_size);
    const char *name = module ? (const char *)take_line(m, &name_size) : NULL;
    if (!name)
        return bad(m, "a name without an end");
    return push_global(m, module, module_size, name, name_size);
}

/* As much as a call may copy of its first argument. */
static uint64_t copied_by_call(const struct weir_value *args)
{
    const struct weir_value *first = args->items.count ? args->items.at[0] : NULL;
    if (first && (first->kind == WEIR_VALUE_TEXT || first->kind == WEIR_VALUE_BYTES))
        return first->text.size;
    if (first && first->kind >= WEIR_VALUE_LIST && first->kind <= WEIR_VALUE_ORDERED)
        return 4 * sizeof first * first->items.count;
    return 0;
}

static int op_call(struct machine *m, uint8_t op)
{
    (void)op;
    struct weir_value *args = pop(m), *callee = pop(m), *value = NULL;
    if (!callee || args->kind != WEIR_VALUE_TUPLE)
        return bad(m, "a call without arguments");
    if (callee->kind == WEIR_VALUE_OBJECT) /* of what a call gave: it is named after that */
        callee = callee->object.global;
    if (callee->kind != WEIR_VALUE_GLOBAL)
        return bad(m, "a call of what is no name");
    if (m->values++ == WEIR_PICKLE_VALUES_MAX)
        return weir_fail(E2BIG, "a pickle has more than %d values", WEIR_PICKLE_VALUES_MAX);
    int code = copying(m, copied_by_call(args));
    if (!code)
        code = weir_pickle_call(&value, m->arena, callee, args, m->owner);
    return code ? code : push(m, value);
}

/* What an OrderedDict has besides its items (state dicts: _metadata) is dropped. */
static int op_build(struct machine *m, uint8_t op)
{
    (void)op;
    struct weir_value *state = pop(m), *value = top(m);
    if (!value || (value->kind != WEIR_VALUE_OBJECT && value->kind != WEIR_VALUE_ORDERED &&
                   value->kind != WEIR_VALUE_DICT))
        return bad(m, "a state for what has none");
    if (value->kind == WEIR_VALUE_OBJECT)
        value->object.state = state;
    return 0;
}

static int op_persistent(struct machine *m, uint8_t op)
{
    (void)op;
    struct weir_value *args = pop(m);
    if (!args || args->kind != WEIR_VALUE_TUPLE)
        return bad(m, "a storage that is not described");
    int code = push_new(m, WEIR_VALUE_STORAGE);
    if (code)
        return code;
    top(m)->object.args = args;
    top(m)->object.owner = m->owner;
    return 0;
}

static int op_get(struct machine *m, uint8_t op)
{
    uint64_t number = 0;
    int code = take_number(m, op == 'h' ? 1 : 4, &number);
    if (code)
        return code;
    return number < m->memo_count ? push(m, m->memo[number]) : bad(m, "an unknown number");
}

/* Every writer numbers them one after the other: so the memo is not larger than the pickle. */
static int op_put(struct machine *m, uint8_t op)
{
    uint64_t number = m->memo_count;
    int code = op == 0x94 ? 0 : take_number(m, op == 'q' ? 1 : 4, &number);
    if (code)
        return code;
    if (!top(m) || number > m->memo_count)
        return bad(m, "a number out of order");
    if (number == m->memo_count) {
        code = grow(&m->memo, m->memo_count, &m->memo_room, sizeof *m->memo);
        if (code)
            return code;
        m->memo_count++;
    }
    m->memo[number] = top(m);
    return 0;
}

typedef int (*operation)(struct machine *m, uint8_t op);

static const operation operations[256] = {
    [0x80] = op_skip,     [0x95] = op_skip,      ['.'] = op_stop,     ['('] = op_mark,
    ['0'] = op_pop,       ['1'] = op_pop,        ['N'] = op_constant, [0x88] = op_constant,
    [0x89] = op_constant, ['J'] = op_int,        ['K'] = op_int,      ['M'] = op_int,
    [0x8a] = op_long,     [0x8b] = op_long,      ['G'] = op_float,    ['X'] = op_text,
    [0x8c] = op_text,     [0x8d] = op_text,      ['U'] = op_text,     ['T'] = op_text,
    ['B'] = op_text,      ['C'] = op_text,       [0x8e] = op_text,    [0x96] = op_text,
    [']'] = op_empty,     [')'] = op_empty,      ['}'] = op_empty,    [0x8f] = op_empty,
    ['l'] = op_collect,   ['t'] = op_collect,    ['d'] = op_collect,  [0x85] = op_collect,
    [0x86] = op_collect,  [0x87] = op_collect,   [0x91] = op_collect, ['a'] = op_add,
    ['e'] = op_add,       ['s'] = op_add,        ['u'] = op_add,      [0x90] = op_add,
    ['c'] = op_global,    [0x93] = op_global,    ['R'] = op_call,     [0x81] = op_call,
    ['b'] = op_build,     ['Q'] = op_persistent, ['h'] = op_get,      ['j'] = op_get,
    ['q'] = op_put,       ['r'] = op_put,        [0x94] = op_put,
};

static int run(struct machine *m)
{
    int code = 0;
    while (!code && !m->stopped) {
        if (m->at == m->end)
            return bad(m, "it ends too early");
        uint8_t op = *m->at++;
        if (!operations[op])
            return weir_fail(ENOTSUP,
                             "a pickle has the operation 0x%02x at byte %zu, which no state dict "
                             "needs: load it in Python and save it again",
                             op, (size_t)(m->at - m->begin) - 1);
        code = operations[op](m, op);
    }
    return code;
}

int weir_pickle_load(struct weir_value **out, struct weir_arena **arena, const void *bytes,
                     size_t size, void *owner, size_t *used)
{
    struct machine m = {.begin = bytes, .arena = arena, .owner = owner};
    if (size > WEIR_PICKLE_BYTES_MAX)
        return weir_fail(EFBIG, "a pickle of %zu bytes: %d is the limit", size,
                         WEIR_PICKLE_BYTES_MAX);
    m.at = m.begin;
    m.end = m.begin + size;
    int code = run(&m);
    if (!code)
        *out = m.stack[0];
    if (!code && used)
        *used = (size_t)(m.at - m.begin);
    free(m.stack);
    free(m.memo);
    free(m.marks);
    return code;
}
