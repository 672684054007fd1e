/* litdata_tree.c - names the leaves of an item by the tree that LitData keeps as data_spec:
 *
 *     [1, {"type": "builtins.dict", "context": "[\"a\", \"b\"]", "children_spec": [{…}, {…}]}]
 *
 * A node without a type is a leaf. The keys of a dict are a JSON text of their own; all others
 * count their children.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/json_read.h"
#include "data/litdata_index.h"
#include "util/err.h"

enum { NAME_BYTES_MAX = 1024 };

/* A node whose members are being read. */
struct node {
    const char *type, *context; /* NULL: null */
    struct weir_json keys;      /* of a dict: within the list */
    bool keyed;
    uint64_t children;
    size_t name_size; /* of the path up to here */
};

struct walk {
    struct weir_arena **arena;
    struct weir_litdata_field *fields;
    uint32_t count, room;
    struct node nodes[WEIR_JSON_DEPTH_MAX];
    unsigned depth;
    char path[NAME_BYTES_MAX];
};

static int bad_tree(void)
{
    return weir_fail(EINVAL, "its data_spec is not as LitData writes it");
}

/* Appends to the path what the next child of the node is called. */
static int name_child(struct walk *w, struct node *node, size_t *size)
{
    char number[24];
    const char *name = number;
    size_t length, at = node->name_size;
    if (!node->keyed || weir_json_next(&node->keys) != 1 || node->keys.token == WEIR_JSON_END) {
        length = (size_t)snprintf(number, sizeof number, "%" PRIu64, node->children);
    } else if (node->keys.token == WEIR_JSON_NUMBER) {
        name = node->keys.text;
        length = node->keys.size;
    } else if (node->keys.token == WEIR_JSON_STRING) {
        int code = weir_json_take(&node->keys, w->arena, &name, &length);
        if (code)
            return code;
        length = strlen(name);
    } else {
        return bad_tree();
    }
    node->children++;
    if (at + 1 + length >= NAME_BYTES_MAX)
        return weir_fail(ENOTSUP, "the name of a field is longer than %d bytes", NAME_BYTES_MAX);
    if (at)
        w->path[at++] = '.';
    memcpy(w->path + at, name, length);
    *size = at + length;
    return 0;
}

static int enter(struct walk *w)
{
    size_t size = 0;
    int code = 0;
    if (w->depth == WEIR_JSON_DEPTH_MAX)
        return bad_tree();
    if (w->depth)
        code = name_child(w, &w->nodes[w->depth - 1], &size);
    w->nodes[w->depth++] = (struct node){.name_size = size};
    return code;
}

static int leave(struct walk *w)
{
    const struct node *node = &w->nodes[--w->depth];
    if (node->type)
        return 0;
    if (node->children || w->count == w->room)
        return bad_tree();
    size_t size = node->name_size;
    char *name = weir_arena_take(w->arena, size + 2);
    if (!name)
        return weir_fail_memory();
    memcpy(name, size ? w->path : "0", size ? size : 1);
    w->fields[w->count++].name = name;
    return 0;
}

/* The children are about to come: are there keys for them? */
static void begin_children(struct node *node)
{
    if (!node->type || !node->context ||
        (strcmp(node->type, "builtins.dict") != 0 &&
         strcmp(node->type, "collections.OrderedDict") != 0))
        return;
    weir_json_begin(&node->keys, node->context, strlen(node->context));
    node->keyed = weir_json_next(&node->keys) == 1 && node->keys.token == WEIR_JSON_ARRAY;
}

static int read_member(struct walk *w, struct weir_json *json)
{
    struct node *node = &w->nodes[w->depth - 1];
    if (weir_json_is(json, "type"))
        return weir_json_want_text(json, w->arena, "type", &node->type);
    if (weir_json_is(json, "context"))
        return weir_json_want_text(json, w->arena, "context", &node->context);
    if (!weir_json_is(json, "children_spec"))
        return weir_json_over(json);
    int code = weir_json_want(json, WEIR_JSON_ARRAY, "children_spec");
    if (!code)
        begin_children(node);
    return code;
}

int weir_litdata_leaves(struct weir_litdata_field *fields, uint32_t room, struct weir_arena **arena,
                        const char *text, size_t size)
{
    struct walk walk = {.arena = arena, .fields = fields, .room = room};
    struct weir_json json;
    uint64_t protocol;
    weir_json_begin(&json, text, size);
    int code = weir_json_want(&json, WEIR_JSON_ARRAY, "data_spec");
    if (!code)
        code = weir_json_want_uint(&json, "data_spec", &protocol);
    if (!code)
        code = weir_json_want(&json, WEIR_JSON_OBJECT, "data_spec");
    if (!code)
        code = enter(&walk);
    while (!code && walk.depth && !(code = weir_json_more(&json))) {
        /* Ends are of objects, which nodes are, or of the lists they are in. */
        unsigned depth = 2 * walk.depth;
        if (json.token == WEIR_JSON_KEY)
            code = read_member(&walk, &json);
        else if (json.token == WEIR_JSON_OBJECT)
            code = enter(&walk);
        else if (json.token == WEIR_JSON_END && json.depth < depth)
            code = leave(&walk);
        else if (json.token != WEIR_JSON_END)
            code = bad_tree();
    }
    return code ? code : (int)walk.count;
}
