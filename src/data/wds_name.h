/* wds_name.h - how WebDataset takes the names of a tar's members apart. Pure functions. */
#ifndef WEIR_DATA_WDS_NAME_H
#define WEIR_DATA_WDS_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct weir_wds_name {
    const char *key; /* borrowed from the name */
    size_t key_size;
    const char *suffix; /* as written: it is compared and shown in lower case */
    size_t suffix_size;
};

/* How much of a path is in front of the first dot of its last part. */
size_t weir_wds_stem(const char *path, size_t size);

/* What a member's content is taken for, by the last part of its suffix. */
enum weir_wds_content {
    WEIR_WDS_BYTES,
    WEIR_WDS_TEXT,
    WEIR_WDS_NUMBER,
    WEIR_WDS_JSON,
    WEIR_WDS_NPY,
};
/* The suffix is in lower case. */
enum weir_wds_content weir_wds_content_of(const char *suffix, size_t size);

/* False for a member that belongs to no sample: without a suffix, or like "__x__". */
bool weir_wds_split(struct weir_wds_name *out, const char *name, size_t size);

#endif
