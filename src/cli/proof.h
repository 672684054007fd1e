/* proof.h - the dataset that an operand names, and where its manifest and signature are: in it, or
 * in a directory of their own.
 */
#ifndef WEIR_CLI_PROOF_H
#define WEIR_CLI_PROOF_H

#include "cli/cli.h"
#include "data/proof.h"
#include "store/within.h"

struct proof_place {
    struct cli *cli;
    struct weir_within within; /* which of cli->store it is: its prefix, and its path */
    const char *where;         /* a directory for the proof alone, or NULL: beside the dataset */
};

/* Opens what the first operand names: cli->store, and where in it. */
int proof_place_open(struct proof_place *out, struct cli *cli, const char *where);
void proof_place_close(struct proof_place *place);

/* key: the file of the public key with which it must be signed, or NULL. */
int proof_read(struct weir_proof *out, const struct proof_place *place, const char *key);
int proof_write(const struct weir_proof *proof, const struct proof_place *place);
/* Whether that can be, as far as it can be known before: so that nothing is hashed in vain. */
int proof_write_check(const struct proof_place *place);
/* A key in PEM, with a zero byte behind it; the caller frees it. */
int proof_key_read(char **pem, size_t *size, const char *path);

/* Reports to the progress bar, as struct weir_hashing has it; arg is a struct proof_bar. */
struct proof_bar {
    struct cli *cli;
    const char *doing;
};
/* Bytes only: files are not counted one by one. */
void proof_total(void *arg, uint64_t files, uint64_t bytes);
int proof_progress(void *arg, uint64_t more);

#endif
