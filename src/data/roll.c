/* roll.c - see roll.h. */
#include "data/roll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/proof.h"
#include "data/survey.h"
#include "util/err.h"
#include "util/sys.h"

static int add(struct weir_roll *roll, const char *name, uint64_t size)
{
    if (roll->count == roll->room) {
        uint64_t room = roll->room ? 2 * roll->room : 64;
        struct weir_blocks_entry *entries =
            weir_realloc(roll->entries, room * sizeof *roll->entries);
        if (!entries)
            return weir_fail_memory();
        roll->entries = entries;
        roll->room = room;
    }
    char *copy = weir_arena_take(&roll->names, strlen(name) + 1);
    if (!copy)
        return weir_fail_memory();
    strcpy(copy, name);
    roll->entries[roll->count++] = (struct weir_blocks_entry){copy, size};
    roll->bytes += size;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct weir_blocks_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int fill(struct weir_roll *roll, weir_list *list, const char *prefix)
{
    const weir_entry *entry;
    size_t skip = strlen(prefix);
    int code;
    while ((code = weir_list_next(list, &entry)) == 1) {
        const char *name = entry->key + skip;
        if (strncmp(entry->key, prefix, skip) || (entry->is_dir && !entry->error) ||
            weir_proof_has(name))
            continue;
        if (entry->error && entry->kind == WEIR_KIND_FOREIGN) {
            if (weir_survey_is_left_behind(name))
                continue;
            return entry->error;
        }
        if (entry->error)
            return weir_fail(-entry->error, "the seal of '%s' is damaged: see weir verify",
                             entry->key);
        code = add(roll, name, entry->size_bytes);
        if (code)
            return code;
    }
    return code;
}

int weir_roll_call(struct weir_roll *out, weir_store *store, const char *prefix)
{
    struct weir_roll roll = {0};
    weir_list *list;
    int code = weir_list_open(&list, store, prefix,
                              WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL | WEIR_LIST_ODD);
    if (code)
        return code;
    code = fill(&roll, list, prefix);
    weir_list_close(list);
    if (code) {
        weir_roll_free(&roll);
        return code;
    }
    if (roll.count)
        qsort(roll.entries, roll.count, sizeof *roll.entries, by_name);
    *out = roll;
    return 0;
}

void weir_roll_free(struct weir_roll *roll)
{
    free(roll->entries);
    weir_arena_free(roll->names);
    *roll = (struct weir_roll){0};
}
