/* sign.h - Ed25519 signatures, with keys as OpenSSL writes them (PEM, PKCS #8 and SPKI). A
 * signature is the 64 bytes that `openssl pkeyutl -sign -rawin` writes. Pure functions.
 */
#ifndef WEIR_DATA_SIGN_H
#define WEIR_DATA_SIGN_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_SIGNATURE_BYTES = 64, WEIR_PEM_BYTES_MAX = 65536, WEIR_KEY_ID_BYTES = 17 };

/* -EINVAL if pem is no private Ed25519 key. id (may be NULL) is told which key it was: the first 8
 * bytes of the SHA-256 of its public half, in hex. */
int weir_sign(uint8_t out[WEIR_SIGNATURE_BYTES], char id[WEIR_KEY_ID_BYTES], const char *pem,
              size_t pem_size, const void *data, size_t size);
/* -EINVAL if pem is no public Ed25519 key, -EKEYREJECTED if its owner did not sign this. */
int weir_sign_check(const uint8_t signature[WEIR_SIGNATURE_BYTES], char id[WEIR_KEY_ID_BYTES],
                    const char *pem, size_t pem_size, const void *data, size_t size);

#endif
