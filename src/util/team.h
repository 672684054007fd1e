/* team.h - the same thing done to each of many, by several threads. They live as long as the call:
 * what lasts longer has threads of its own.
 */
#ifndef WEIR_UTIL_TEAM_H
#define WEIR_UTIL_TEAM_H

#include <stdint.h>

enum { WEIR_TEAM_MAX = 256 }; /* threads: more only wait for each other */

/* Something to be done to number i; any thread. 0 or a failure, with its text. */
typedef int (*weir_team_fn)(void *arg, uint64_t i);
/* Calls fn for every i < count, in order of being begun, on at most `threads` threads; one means
 * the caller's own. After a failure nothing more is begun; the one of the smallest i is answered,
 * with its text. */
int weir_team_run(uint32_t threads, uint64_t count, weir_team_fn fn, void *arg);

#endif
