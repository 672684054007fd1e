/* value.h - the values of a foreign checkpoint, as a tree: what Python would have had in memory.
 *
 * Values live in an arena and are never freed alone. The same value may be reached in several ways,
 * also from within itself: whoever walks the tree bounds its depth and its steps.
 */
#ifndef WEIR_CKPT_VALUE_H
#define WEIR_CKPT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/arena.h"

enum weir_value_kind {
    WEIR_VALUE_NONE,
    WEIR_VALUE_BOOL,
    WEIR_VALUE_INT,
    WEIR_VALUE_LONG, /* an int that does not fit: text is its two's complement, little-endian */
    WEIR_VALUE_FLOAT,
    WEIR_VALUE_COMPLEX,
    WEIR_VALUE_TEXT, /* UTF-8 */
    WEIR_VALUE_BYTES,
    WEIR_VALUE_LIST,
    WEIR_VALUE_TUPLE,
    WEIR_VALUE_SIZE, /* torch.Size */
    WEIR_VALUE_SET,
    WEIR_VALUE_FROZENSET,
    WEIR_VALUE_DICT,    /* items: key, value, key, value, … */
    WEIR_VALUE_ORDERED, /* collections.OrderedDict, likewise */
    WEIR_VALUE_GLOBAL,  /* a name, text "module.name": of a class, a function, a constant */
    WEIR_VALUE_OBJECT,  /* what calling a global with these arguments would have made */
    WEIR_VALUE_STORAGE, /* args: what a pickle says of bytes that are kept beside it */
    WEIR_VALUE_TENSOR,
};

struct weir_value {
    enum weir_value_kind kind;
    union {
        int64_t number; /* BOOL, INT */
        double real[2]; /* FLOAT; COMPLEX: and the imaginary part */
        struct {
            const char *at; /* not terminated */
            size_t size;
        } text;
        struct {
            struct weir_value **at;
            size_t count, room;
        } items;
        struct {
            struct weir_value *global, *args, *state; /* state: NULL if none was set */
            void *owner;                              /* of the file that it comes from */
        } object;
        const struct weir_from *tensor; /* from.h */
    };
};

struct weir_value *weir_value_new(struct weir_arena **arena, enum weir_value_kind kind);
/* The text is the caller's and has to live as long as the arena. */
struct weir_value *weir_value_text(struct weir_arena **arena, const char *text, size_t size);
/* Adds to the items; false: no memory. */
bool weir_value_add(struct weir_arena **arena, struct weir_value *list, struct weir_value *item);
bool weir_value_is_text(const struct weir_value *value, const char *text);
/* The value of a key that is a text; NULL if there is none, or if this is no dict. */
struct weir_value *weir_value_get(const struct weir_value *dict, const char *key);
/* A global of just that name, or an object made by it? */
bool weir_value_is_global(const struct weir_value *value, const char *name);
bool weir_value_is_object(const struct weir_value *value, const char *name);
/* A whole number, at least 0; false if it is not. */
bool weir_value_uint(const struct weir_value *value, uint64_t *out);

#endif
