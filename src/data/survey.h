/* survey.h - a dataset being looked at: its files, and what its format says of them (format.h has
 * what a format's survey() calls). For build.c and tests. One thread at a time.
 */
#ifndef WEIR_DATA_SURVEY_H
#define WEIR_DATA_SURVEY_H

#include "data/format.h"
#include "util/hash.h"

/* An index, kept beside the shards: as all that ends so it is Weir's, and not a file of the
 * dataset. */
#define WEIR_INDEX_NAME "index.weir"

/* Each takes about 200 bytes of memory while a dataset is opened. */
#define WEIR_SURVEY_FILES_MAX (100 << 20)

/* Lists the files. prefix: "" or "data/imagenet/"; options: "name=value&…" or NULL. Both are
 * copied; the store must stay. listed: NULL, or told of each file. -ENOENT if there is nothing. */
int weir_survey_open(struct weir_survey **out, weir_store *store, const char *prefix,
                     const char *options, weir_data_listed_fn listed, void *arg);
void weir_survey_close(struct weir_survey *survey);
/* Forgets all files but that one. */
void weir_survey_keep(struct weir_survey *survey, const char *key);
/* Is that what Weir keeps beside the data, and no file of a survey: an index, sums, signatures? A
 * name below the prefix. */
bool weir_survey_is_ours(const char *name);
/* Hidden files are of no dataset: left by editors and copies. */
bool weir_survey_is_hidden(const char *name);
/* Is that what nobody misses where it cannot be read: hidden, or an editor's copy ("x~")? */
bool weir_survey_is_left_behind(const char *name);
/* Has the format add its shards and its schema; -EINVAL names an option that it does not have. */
int weir_survey_run(struct weir_survey *survey, const struct weir_format *format);

/* What survey() of the format added; borrowed until it is closed. */
size_t weir_survey_shards(const struct weir_survey *survey);
const struct weir_shard_plan *weir_survey_shard(const struct weir_survey *survey, size_t i);
const char *weir_survey_schema_get(const struct weir_survey *survey, size_t *size);
/* The file of that key, below the prefix; false. */
bool weir_survey_find(const struct weir_survey *survey, const char *key,
                      struct weir_survey_file *out);
/* Of the shards as they are: names, sizes, times; and of the schema. */
int weir_survey_fingerprint(const struct weir_survey *survey, uint8_t out[WEIR_SHA256_BYTES]);

#endif
