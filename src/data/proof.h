/* proof.h - what shows that a dataset is what its owner made of it: three files at its root.
 *
 *     SHA256SUMS      the SHA-256 of every file, as sha256sum -c takes it (sums.h)
 *     SHA256BLOCKS    the SHA-256 of every block of every file (blocks.h)
 *     SHA256SUMS.sig  an Ed25519 signature of SHA256SUMS (sign.h)
 *
 * SHA256SUMS has a line for SHA256BLOCKS, so the one signature covers all. A dataset that cannot be
 * written to has its proof elsewhere.
 */
#ifndef WEIR_DATA_PROOF_H
#define WEIR_DATA_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/sign.h"
#include "data/sums.h"
#include "weir.h"

#define WEIR_PROOF_SUMS      "SHA256SUMS"
#define WEIR_PROOF_BLOCKS    "SHA256BLOCKS"
#define WEIR_PROOF_SIGNATURE "SHA256SUMS.sig"

/* Is it one of the three? A name below the dataset's prefix. They are no part of the dataset. */
bool weir_proof_has(const char *name);

struct weir_proof {
    char *sums;
    size_t sums_size;
    uint8_t *blocks; /* or NULL: sha256sum made the rest */
    size_t blocks_size;
    uint8_t signature[WEIR_SIGNATURE_BYTES];
    bool is_signed;
    char key_id[WEIR_KEY_ID_BYTES]; /* of the key with which that was checked; "": it was not */
};
void weir_proof_free(struct weir_proof *proof);

/* How many files and bytes there are, before any of them is read. */
typedef void (*weir_total_fn)(void *arg, uint64_t files, uint64_t bytes);

/* What making one and checking against one have in common: every file is read. */
struct weir_hashing {
    const char *prefix; /* of the dataset within its store: "" or one that ends in '/' */
    uint32_t threads;
    weir_total_fn total;       /* or NULL */
    weir_progress_fn progress; /* of bytes, on any thread; or NULL */
    void *arg;                 /* of both */
};
/* Reads everything once. -ESTALE if a file changes meanwhile. */
int weir_proof_make(struct weir_proof *out, weir_store *store, uint32_t block_bytes,
                    const struct weir_hashing *how);

/* What is there, below a prefix of a store; -ENOENT if there is no SHA256SUMS, -EBADMSG if
 * SHA256BLOCKS is not what SHA256SUMS says. With a public key (pem is not NULL), the signature is
 * checked before anything else is looked at: -EKEYREJECTED. */
int weir_proof_load(struct weir_proof *out, weir_store *store, const char *prefix, const char *pem,
                    size_t pem_size);
/* Puts it there, in place of what was: a signature that does not fit any more goes. The store has
 * to be one that can be written to. */
int weir_proof_keep(const struct weir_proof *proof, weir_store *store, const char *prefix);

/* The text's lines, sorted by name; the caller frees *out. -EBADMSG if a name comes twice. */
struct weir_proof_line {
    const char *name; /* in the lines' memory */
    uint8_t sha256[WEIR_SHA256_BYTES];
};
int weir_proof_lines(struct weir_proof_line **out, uint64_t *count, const struct weir_proof *proof);

#endif
