/* names.h - names that are listed in no order, to be shown in one. */
#ifndef WEIR_CLI_NAMES_H
#define WEIR_CLI_NAMES_H

#include <stddef.h>

struct names {
    char **name;
    size_t count;
};

/* Adds a copy; arg is the struct. */
int names_add(void *arg, const char *name);
void names_sort(struct names *names);
void names_free(struct names *names);

#endif
