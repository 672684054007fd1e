/* zip.h - the archives that torch.save() writes: zip files, also large ones (zip64), in which every
 * entry is stored as it is. Takes any bytes; what an archive says of its entries is checked against
 * where they are. Checksums are not looked at: torch.save() can be told to write none.
 */
#ifndef WEIR_CKPT_ZIP_H
#define WEIR_CKPT_ZIP_H

#include "util/arena.h"
#include "ckpt/source.h"

enum { WEIR_ZIP_DIRECTORY_BYTES_MAX = 256 << 20 };

struct weir_zip_entry {
    const char *name; /* terminated */
    uint64_t header;  /* where its local header is */
    uint64_t size;
};

struct weir_zip {
    struct weir_extent span;
    struct weir_zip_entry *entries; /* sorted by name */
    size_t count;
    uint64_t directory; /* where the central directory begins: entries end before it */
};

/* What it points to is in the arena. -EBADMSG if it is no such archive, -ENOTSUP if an entry is
 * compressed or encrypted. */
int weir_zip_open(struct weir_zip *out, struct weir_arena **arena, const struct weir_extent *span);
/* NULL if there is none. */
const struct weir_zip_entry *weir_zip_find(const struct weir_zip *zip, const char *name);
/* Where the bytes of an entry are. */
int weir_zip_span(const struct weir_zip *zip, const struct weir_zip_entry *entry,
                  struct weir_extent *out);

#endif
