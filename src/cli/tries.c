/* tries.c - see tries.h. */
#include "cli/tries.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/opt.h"
#include "util/thread.h"

int tries_read(struct cli *cli, struct tries *tries, const char *name, const char *text,
               int (*parse)(uint64_t *, const char *), uint64_t min, uint64_t max)
{
    char *copy = strdup(text), *rest = copy, *word;
    int code = copy ? 0 : weir_fail_memory();
    tries->count = 0;
    while (!code && (word = strsep(&rest, ","))) {
        uint64_t value = 0;
        if (parse(&value, word) || value < min || value > max)
            code = cli_usage(cli,
                             "--%s: '%s' is not a list of numbers from %" PRIu64 " to %" PRIu64
                             ", such as 1,2,4",
                             name, text, min, max);
        else if (tries->count == TRIES_MAX)
            code = cli_usage(cli, "--%s: at most %d are tried", name, TRIES_MAX);
        else
            tries->at[tries->count++] = value;
    }
    free(copy);
    return code;
}

void tries_choose_threads(struct tries *tries)
{
    uint64_t most = 2 * (uint64_t)weir_processors();
    for (uint64_t n = 1; n <= most && n <= TRIES_MAX; n *= 2)
        tries->at[tries->count++] = n;
}
