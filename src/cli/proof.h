/* proof.h - the dataset that an operand names, and where its manifest and signature are: in it, or
 * in a directory of their own.
 */
#ifndef WEIR_CLI_PROOF_H
#define WEIR_CLI_PROOF_H

#include "cli/cli.h"
#include "data/proof.h"

/* Opens what the first operand names as cli->store; *prefix is the dataset's within it. */
int proof_dataset_open(struct cli *cli, const char **prefix);
/* where: a directory of its own, or NULL: beside the dataset. key: the file of the public key with
 * which it must be signed, or NULL. */
int proof_read(struct cli *cli, struct weir_proof *out, const char *where, const char *key);
int proof_write(struct cli *cli, const struct weir_proof *proof, const char *where);
/* A key in PEM; the caller frees it. */
int proof_key_read(char **pem, size_t *size, const char *path);

/* Reports to the progress bar, as struct weir_hashing has it; arg is a struct proof_bar. */
struct proof_bar {
    struct cli *cli;
    const char *doing;
};
void proof_total(void *arg, uint64_t files, uint64_t bytes);
int proof_progress(void *arg, uint64_t more);

#endif
