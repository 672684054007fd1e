/* tar.h - the members of a tar archive, from memory and from a flow: ustar with prefixes, PAX x and
 * g, GNU long names, base-256 sizes. Every header's checksum is checked; an archive ends at its
 * first block of zeros, and one without it was cut short. Sparse members are refused, and so are
 * global headers that name members or size them: a part of an archive would not know of them.
 */
#ifndef WEIR_DATA_TAR_H
#define WEIR_DATA_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/flow.h"

enum {
    WEIR_TAR_BLOCK = 512,
    WEIR_TAR_NAME_MAX = 4096,         /* a path of Linux */
    WEIR_TAR_EXTENSION_MAX = 1 << 20, /* of one PAX header: attributes of 64 KiB are usual */
    WEIR_TAR_EXTENSIONS_MAX = 16,     /* in front of one member */
};

struct weir_tar_member {
    const char *name; /* borrowed until the next member is read; not terminated, any bytes */
    size_t name_size;
    bool is_file;      /* a regular one; others have no content worth reading */
    uint64_t begin;    /* its first header, extensions included */
    uint64_t data_off; /* its content */
    uint64_t size;
    uint64_t end; /* of its content, padded to a block */
};

/* What extensions have said about the member whose header is to come. */
struct weir_tar_pending {
    const char *name; /* NULL: nothing */
    size_t name_size;
    bool has_size;
    uint64_t size;
    uint64_t begin;
    uint32_t extensions;
};

/* Reads members one after the other: from `data`, or from the flow if that is set. */
struct weir_tar {
    const uint8_t *data;
    size_t size;
    struct weir_flow *flow;
    uint64_t at; /* where the next header is; in the flow, counted from its first byte */
    struct weir_tar_pending pending;
    char joined[WEIR_TAR_BLOCK]; /* a prefix, a slash and a name */
    char kept[WEIR_TAR_NAME_MAX];
};

/* Part of an archive, or all of it: it may end after any member. */
void weir_tar_begin(struct weir_tar *tar, const uint8_t *data, size_t size);
/* A whole archive, from where the flow is. */
void weir_tar_begin_flow(struct weir_tar *tar, struct weir_flow *flow);
/* 1 and a member, 0 at the end, -EBADMSG with the byte at which it is wrong. Content that was not
 * read is stepped over; in memory, all of it is there. */
int weir_tar_next(struct weir_tar *tar, struct weir_tar_member *out);

#endif
