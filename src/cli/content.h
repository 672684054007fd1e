/* content.h - bytes on their way between files and objects, with progress, until asked to stop. */
#ifndef WEIR_CLI_CONTENT_H
#define WEIR_CLI_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/source.h"
#include "cli/target.h"
#include "weir.h"

/* Says how many threads are about to use what follows: they share one bound of memory. */
void content_share(size_t jobs);

/* All of the source into the put, without a copy. */
int content_store(weir_put *put, struct source *source);
/* [begin, end) of the object, verified, into the target. */
int content_fetch(struct target *target, weir_object *object, uint64_t begin, uint64_t end);
/* Whether the source, from where it stands, is just the object's bytes. */
int content_compare(bool *same, weir_object *object, struct source *source);

#endif
