/* survey.h - a dataset being looked at: its files, and what its format says of them (format.h has
 * what a format's survey() calls). For build.c and tests. One thread at a time.
 */
#ifndef WEIR_DATA_SURVEY_H
#define WEIR_DATA_SURVEY_H

#include "data/format.h"

/* Lists the files. prefix: "" or "data/imagenet/"; options: "name=value&…" or NULL. Both are
 * copied; the store must stay. -ENOENT if there is nothing. */
int weir_survey_open(struct weir_survey **out, weir_store *store, const char *prefix,
                     const char *options);
void weir_survey_close(struct weir_survey *survey);

/* What survey() of the format added; borrowed until it is closed. */
size_t weir_survey_shards(const struct weir_survey *survey);
const struct weir_shard_plan *weir_survey_shard(const struct weir_survey *survey, size_t i);
const char *weir_survey_schema_get(const struct weir_survey *survey, size_t *size);
/* The file of that key, below the prefix; false. */
bool weir_survey_find(const struct weir_survey *survey, const char *key,
                      struct weir_survey_file *out);

#endif
