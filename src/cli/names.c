/* names.c - see names.h. */
#include "cli/names.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"

int names_add(void *arg, const char *name)
{
    struct names *names = arg;
    char **more = realloc(names->name, (names->count + 1) * sizeof *more);
    if (!more)
        return weir_fail_memory();
    names->name = more;
    more[names->count] = strdup(name);
    return more[names->count++] ? 0 : weir_fail_memory();
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void names_sort(struct names *names)
{
    if (names->count)
        qsort(names->name, names->count, sizeof *names->name, by_name);
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct names){0};
}
