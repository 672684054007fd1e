/* trust.h - a dataset of which nothing is read but what the owner of a pinned key has signed.
 *
 * When it is opened, the signature of SHA256SUMS is checked, and the hashes of the blocks are
 * loaded (proof.h). From then on it is the guard of the dataset's store: the store asks it about
 * every file that is opened and every block that is read, before anybody sees a byte (there is one
 * get path, store/scan.c), and widens reads to whole blocks. So a reader, an index being made, a
 * flow: all of them read what was signed or fail, without knowing of it. What would go around that
 * path, a mapping, is refused by a guarded store.
 *
 *     weir_trust_open(&trust, prefix, store, prefix, pem, pem_size);
 *     weir_store_set_guard(store, weir_trust_guard(trust));
 *     … read …
 *     weir_store_close(store);
 *     weir_trust_close(trust);
 *
 * Any thread, once it is open.
 */
#ifndef WEIR_DATA_TRUST_H
#define WEIR_DATA_TRUST_H

#include <stddef.h>

#include "data/survey.h"
#include "store/store.h"

struct weir_trust;

/* The proof is below `proof_prefix` of `proof`, which may be the dataset's own store. -ENOENT if
 * there is none, -EKEYREJECTED if it is not signed, or not with this key, -EBADMSG if it is
 * damaged. pem: the public key. */
int weir_trust_open(struct weir_trust **out, const char *prefix, weir_store *proof,
                    const char *proof_prefix, const char *pem, size_t pem_size);
void weir_trust_close(struct weir_trust *trust);
/* Which manifest it is: the SHA-256 of SHA256SUMS, in hex. Borrowed. */
const char *weir_trust_digest(const struct weir_trust *trust);
/* The guard sees what is read: this, what is not. -EKEYREJECTED if a shard was not signed or has
 * another size, or, where the survey is of the whole dataset, if a file that was signed is missing:
 * fewer samples than were signed are another dataset. */
int weir_trust_survey(struct weir_trust *trust, const struct weir_survey *survey, bool is_whole);
/* Borrowed. */
const struct weir_guard *weir_trust_guard(const struct weir_trust *trust);

#endif
