/* tries.h - numbers that a command tries one after the other: sizes, depths, threads. */
#ifndef WEIR_CLI_TRIES_H
#define WEIR_CLI_TRIES_H

#include "cli/cli.h"

enum { TRIES_MAX = 16 };

struct tries {
    uint64_t at[TRIES_MAX];
    uint32_t count;
};

/* From "1,2,4" or "4K,1M", as parse reads each, which lies from min to max; a usage error names the
 * option. */
int tries_read(struct cli *cli, struct tries *tries, const char *name, const char *text,
               int (*parse)(uint64_t *, const char *), uint64_t min, uint64_t max);
/* 1, 2, 4, up to twice the processors, if nothing was asked for. */
void tries_choose_threads(struct tries *tries);

#endif
