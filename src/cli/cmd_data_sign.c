/* cmd_data_sign.c - weir data sign: an Ed25519 signature of a dataset's manifest. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/proof.h"
#include "util/err.h"

static struct {
    const char *key, *manifest;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"key", 'k', WEIR_OPT_TEXT, AT(key), NULL, "FILE", "the private key, in PEM", 0, 0},
    {"manifest", 0, WEIR_OPT_TEXT, AT(manifest), NULL, "DIR",
     "where the manifest is, if it is not in the dataset", 0, 0},
    {0},
};

static int sign(struct proof_place *place, struct weir_proof *proof, const char *pem,
                size_t pem_size)
{
    char id[WEIR_KEY_ID_BYTES];
    int code = weir_sign(proof->signature, id, pem, pem_size, proof->sums, proof->sums_size);
    if (code)
        return weir_fail_in(code, "'%s'", opts.key);
    proof->is_signed = true;
    code = proof_write(proof, place);
    if (code)
        return code;
    cli_say(place->cli, "signed with key %s", id);
    if (place->cli->json)
        place->cli->doc = json_pack("{s:s}", "key", id);
    return 0;
}

static int run(struct cli *cli)
{
    struct proof_place place = {0};
    struct weir_proof proof = {0};
    char *pem = NULL;
    size_t pem_size;
    if (!opts.key)
        return cli_usage(cli, "--key is missing: the private key");
    int code = proof_key_read(&pem, &pem_size, opts.key);
    if (!code)
        code = proof_place_open(&place, cli, opts.manifest);
    if (!code)
        code = proof_read(&proof, &place, NULL);
    if (!code)
        code = sign(&place, &proof, pem, pem_size);
    proof_place_close(&place);
    weir_proof_free(&proof);
    if (pem)
        explicit_bzero(pem, pem_size);
    free(pem);
    return code;
}

const struct command cmd_data_sign = {
    .name = "data sign",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Sign a dataset's manifest with an Ed25519 key",
    .about =
        "Signs SHA256SUMS, which weir data manifest wrote, and puts the 64 bytes of the signature "
        "beside it as SHA256SUMS.sig. Whoever has the public key can then read the dataset with "
        "--key, and gets nothing but what was signed; or check it all with weir data verify. "
        "OpenSSL makes keys, and checks signatures, too:\n\n"
        "openssl pkeyutl -verify -rawin -pubin -inkey pub.pem -in SHA256SUMS -sigfile "
        "SHA256SUMS.sig",
    .example = "openssl genpkey -algorithm ed25519 -out key.pem\n"
               "openssl pkey -in key.pem -pubout -out pub.pem\n"
               "weir data sign /data/imagenet-mds --key key.pem",
    .json = "key: the first 8 bytes of the SHA-256 of the public key, in hex",
    .options = options,
    .fields = &opts,
    .run = run,
};
