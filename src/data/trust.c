/* trust.c - see trust.h. */
#include "data/trust.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/blocks.h"
#include "data/proof.h"
#include "util/err.h"
#include "util/sys.h"

struct weir_trust {
    struct weir_proof proof; /* its blocks stay, the rest is used once */
    struct weir_blocks blocks;
    struct weir_guard guard;
    char prefix[WEIR_NAME_BYTES_MAX];
    char digest[2 * WEIR_SHA256_BYTES + 1];
};

static int admit(void *arg, const char *key, uint64_t size, uint64_t *file)
{
    struct weir_trust *trust = arg;
    struct weir_blocks_file known;
    size_t skip = strlen(trust->prefix);
    int64_t found = -ENOENT;
    if (!strncmp(key, trust->prefix, skip))
        found = weir_blocks_find(&trust->blocks, key + skip);
    if (found < 0)
        return weir_fail(EKEYREJECTED, "'%s' is not in the signed manifest: it is not read", key);
    weir_blocks_file(&trust->blocks, (uint64_t)found, &known);
    if (known.size_bytes != size)
        return weir_fail(EKEYREJECTED,
                         "'%s' has %" PRIu64 " bytes, the signed manifest says %" PRIu64
                         ": it is not read",
                         key, size, known.size_bytes);
    *file = (uint64_t)found;
    return 0;
}

static int check(void *arg, uint64_t number, uint64_t off, const void *data, size_t size)
{
    struct weir_trust *trust = arg;
    struct weir_blocks_file file;
    uint8_t sha256[WEIR_SHA256_BYTES];
    uint64_t block = off / trust->blocks.block_bytes;
    weir_blocks_file(&trust->blocks, number, &file);
    weir_sha256(sha256, data, size);
    if (block < file.count &&
        !memcmp(sha256, trust->blocks.sums + (file.first + block) * sizeof sha256, sizeof sha256))
        return 0;
    return weir_fail(EKEYREJECTED,
                     "'%s%.*s' is not what was signed in block %" PRIu64 " (bytes %" PRIu64
                     "-%" PRIu64 "): it was changed since",
                     trust->prefix, (int)file.name_size, file.name, block, off, off + size - 1);
}

static int open_blocks(struct weir_trust *trust)
{
    struct weir_proof *proof = &trust->proof;
    if (!proof->blocks)
        return weir_fail(EKEYREJECTED, WEIR_PROOF_SUMS
                         " was not made by weir data manifest: without " WEIR_PROOF_BLOCKS
                         " only whole files can be checked (weir data verify)");
    int code = weir_blocks_open(&trust->blocks, proof->blocks, proof->blocks_size);
    return code ? weir_fail_in(code, WEIR_PROOF_BLOCKS) : 0;
}

int weir_trust_open(struct weir_trust **out, const char *prefix, weir_store *where,
                    const char *proof_prefix, const char *pem, size_t pem_size)
{
    struct weir_trust *trust = weir_alloc(sizeof *trust);
    if (!trust)
        return weir_fail_memory();
    int code = weir_proof_load(&trust->proof, where, proof_prefix, pem, pem_size);
    if (!code)
        code = open_blocks(trust);
    if (code) {
        weir_trust_close(trust);
        return code;
    }
    uint8_t sha256[WEIR_SHA256_BYTES];
    weir_sha256(sha256, trust->proof.sums, trust->proof.sums_size);
    weir_hex(trust->digest, sha256, sizeof sha256);
    free(trust->proof.sums);
    trust->proof.sums = NULL;
    strncpy(trust->prefix, prefix, sizeof trust->prefix - 1);
    trust->guard = (struct weir_guard){trust->blocks.block_bytes, admit, check, trust};
    *out = trust;
    return 0;
}

void weir_trust_close(struct weir_trust *trust)
{
    if (!trust)
        return;
    weir_proof_free(&trust->proof);
    free(trust);
}

const struct weir_guard *weir_trust_guard(const struct weir_trust *trust)
{
    return &trust->guard;
}

const char *weir_trust_digest(const struct weir_trust *trust)
{
    return trust->digest;
}

static int find_missing(const struct weir_trust *trust, const struct weir_survey *survey)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_blocks_file signed_file;
    struct weir_survey_file file;
    for (uint64_t i = 0; i < trust->blocks.files; i++) {
        weir_blocks_file(&trust->blocks, i, &signed_file);
        snprintf(name, sizeof name, "%.*s", (int)signed_file.name_size, signed_file.name);
        /* An index need not be there: without it, one is made of what was signed. */
        if (!weir_survey_is_ours(name) && !weir_survey_find(survey, name, &file))
            return weir_fail(EKEYREJECTED,
                             "'%s%s' is in the signed manifest, but not there: copy the dataset "
                             "anew (weir data verify names all that it lacks)",
                             trust->prefix, name);
    }
    return 0;
}

int weir_trust_survey(struct weir_trust *trust, const struct weir_survey *survey, bool is_whole)
{
    char key[2 * WEIR_NAME_BYTES_MAX];
    int code = is_whole ? find_missing(trust, survey) : 0;
    for (size_t i = 0; !code && i < weir_survey_shards(survey); i++) {
        const struct weir_shard_plan *shard = weir_survey_shard(survey, i);
        uint64_t file;
        snprintf(key, sizeof key, "%s%s", trust->prefix, shard->key);
        code = admit(trust, key, shard->file_bytes, &file);
    }
    return code;
}
