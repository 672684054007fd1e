/* shards.h - finds a dataset's shards by their names: one file is one shard, compressed if its name
 * ends so ("a.tar", "a.tar.gz").
 */
#ifndef WEIR_DATA_SHARDS_H
#define WEIR_DATA_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

/* Is that a shard's name? Without a codec's suffix, which is behind it. */
typedef bool (*weir_shard_name_fn)(const char *name, size_t size);

/* Does the name end so? */
bool weir_name_ends(const char *name, size_t size, const char *ending);
/* As weir_format's match(): 2 if most bytes are in such files, 1 if some are. */
int weir_shards_match(const struct weir_survey *survey, weir_shard_name_fn is);
/* As weir_format's survey(): adds each of them. -EINVAL without any: `what` says what it looked
 * for. */
int weir_shards_survey(struct weir_survey *survey, weir_shard_name_fn is, const char *what);
/* The name of shard i that we write: "shard-000007.tar.zst", if the ending is ".tar". */
void weir_shard_name(char out[64], uint32_t i, const char *ending, const char *codec);

#endif
