/* audit.h - a whole dataset against its proof (proof.h): what is missing, what was added, what has
 * changed, and where in it.
 */
#ifndef WEIR_DATA_AUDIT_H
#define WEIR_DATA_AUDIT_H

#include "data/proof.h"

enum weir_flaw_kind { WEIR_FLAW_CHANGED, WEIR_FLAW_MISSING, WEIR_FLAW_ADDED };
enum { WEIR_FLAW_RANGES_MAX = 16 }; /* that are told of one file; the rest is counted */

/* A file that is not as it should be. */
struct weir_flaw {
    enum weir_flaw_kind kind;
    const char *name;          /* below the dataset's prefix; borrowed */
    uint64_t size, size_known; /* as it is, and as it should be, where it is there and known */
    uint64_t blocks;           /* that differ, of those both have; 0: not known which */
    uint32_t count;
    struct {
        uint64_t begin, end;
    } ranges[WEIR_FLAW_RANGES_MAX]; /* bytes [begin, end) where they are: whole blocks */
    bool is_unreadable; /* some of it could not be read: damaged, as the store says it */
};
/* Told in the order of the names, when all has been looked at. */
typedef void (*weir_flaw_fn)(void *arg, const struct weir_flaw *flaw);

struct weir_audit {
    uint64_t files, bytes; /* looked at */
    uint64_t flaws;
};
/* Looks at everything, whatever it finds: 0 then. -EBADMSG if the proof contradicts itself, -errno
 * if the dataset cannot be read at all. */
int weir_audit_run(struct weir_audit *out, weir_store *store, const struct weir_proof *proof,
                   const struct weir_hashing *how, weir_flaw_fn fn, void *arg);

#endif
