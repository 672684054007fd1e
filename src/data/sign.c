/* sign.c - see sign.h. */
#include "data/sign.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>

#include "util/err.h"
#include "util/hash.h"

/* Nobody is asked for a passphrase: OpenSSL would do so on the terminal. */
static int no_passphrase(char *out, int size, int writing, void *arg)
{
    (void)out, (void)size, (void)writing, (void)arg;
    return -1;
}

static bool has(const char *pem, size_t size, const char *word)
{
    return memmem(pem, size, word, strlen(word)) != NULL;
}

static int bad_key(bool is_private, const char *pem, size_t size)
{
    if (is_private && has(pem, size, "ENCRYPTED"))
        return weir_fail(EINVAL, "the private key is encrypted: decrypt it with openssl pkey");
    if (is_private && has(pem, size, "PUBLIC KEY"))
        return weir_fail(EINVAL, "that is a public key: signing takes the private one");
    if (!is_private && has(pem, size, "PRIVATE KEY"))
        return weir_fail(EINVAL,
                         "that is a private key: checking takes the public one, which openssl pkey "
                         "-pubout writes");
    return weir_fail(EINVAL,
                     "that is no %s Ed25519 key in PEM (openssl genpkey -algorithm ed25519 "
                     "makes one)",
                     is_private ? "private" : "public");
}

/* NULL if it is none. */
static EVP_PKEY *read_key(const char *pem, size_t size, bool is_private)
{
    BIO *bio = size <= WEIR_PEM_BYTES_MAX ? BIO_new_mem_buf(pem, (int)size) : NULL;
    EVP_PKEY *key = NULL;
    if (bio)
        key = is_private ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
                         : PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    if (key && EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error(); /* the queue is the application's, too */
    return key;
}

static void key_id(char out[WEIR_KEY_ID_BYTES], const EVP_PKEY *key)
{
    uint8_t raw[64], sha256[WEIR_SHA256_BYTES];
    size_t size = sizeof raw;
    out[0] = 0;
    if (!EVP_PKEY_get_raw_public_key(key, raw, &size))
        return;
    weir_sha256(sha256, raw, size);
    weir_hex(out, sha256, (WEIR_KEY_ID_BYTES - 1) / 2);
}

int weir_sign(uint8_t out[WEIR_SIGNATURE_BYTES], char id[WEIR_KEY_ID_BYTES], const char *pem,
              size_t pem_size, const void *data, size_t size)
{
    EVP_PKEY *key = read_key(pem, pem_size, true);
    if (!key)
        return bad_key(true, pem, pem_size);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t got = WEIR_SIGNATURE_BYTES;
    bool ok = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestSign(context, out, &got, data, size) == 1 && got == WEIR_SIGNATURE_BYTES;
    if (id)
        key_id(id, key);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok ? 0 : weir_fail(EIO, "OpenSSL could not sign");
}

int weir_sign_check(const uint8_t signature[WEIR_SIGNATURE_BYTES], char id[WEIR_KEY_ID_BYTES],
                    const char *pem, size_t pem_size, const void *data, size_t size)
{
    EVP_PKEY *key = read_key(pem, pem_size, false);
    if (!key)
        return bad_key(false, pem, pem_size);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestVerify(context, signature, WEIR_SIGNATURE_BYTES, data, size) == 1;
    char which[WEIR_KEY_ID_BYTES];
    key_id(which, key);
    if (id)
        memcpy(id, which, sizeof which);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok ? 0
              : weir_fail(EKEYREJECTED,
                          "the signature is not one of the key %s: another key signed it, or it "
                          "was changed since",
                          which);
}
