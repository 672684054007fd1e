/* cover.h - do the pieces of all ranks make up their tensors? Told, but for names, from three
 * numbers of each rank, which stand in the note of its part: so whoever completes a set can tell
 * before it is committed, from the root alone, without reading anybody's manifest.
 *
 * A tensor is a polynomial with a term of its own for each element; a piece is the sum of its
 * elements' terms, which has a closed form. The pieces of a tensor make up the whole, each element
 * once, if and only if their sum is the whole's. That is looked at in one random point, a function
 * of the tensor's name, dtype and shape (twice, modulo 2^61 - 1): each rank adds up its pieces, and
 * takes off the whole where it has the piece with the first element. If all is well the sums of
 * all ranks add up to zero; if not, they do so with a probability below 2^-40 even for a tensor of
 * a trillion rows. Two complete covers of one tensor by different pieces do, too: that is found by
 * whoever loads it.
 *
 * Of what is replicated the writer counts the others, and each of them takes itself off: so all of
 * `replicas` ranks were there, and meant the same.
 */
#ifndef WEIR_CKPT_COVER_H
#define WEIR_CKPT_COVER_H

#include "store/set.h"
#include "weir.h"

enum { WEIR_COVER_BYTES = 32 };

struct weir_cover {
    uint64_t sum[2], replicas;
};

void weir_cover_add(struct weir_cover *cover, const weir_tensor *tensor, bool is_written);
/* The note of a part. */
void weir_cover_encode(const struct weir_cover *cover, uint8_t out[WEIR_COVER_BYTES]);
/* A weir_set_fn. -EBADMSG names the tensor: then the manifests are read, which costs two requests a
 * rank. They also decide where a part has no such note. */
int weir_cover_check(void *arg, struct weir_ledger *ledger, const struct weir_ledger_entry *entry,
                     const struct weir_node *root);

#endif
