/* hash.c - see hash.h. On x86 XXH3 uses what the processor has (AVX2, AVX-512), up to four times as
 * fast as what every one of them has. */
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#include "util/hash.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>

#include "util/bytes.h"
#include "util/err.h"

void weir_sum(uint8_t out[WEIR_SUM_BYTES], const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);
    weir_store_be64(out, hash.high64);
    weir_store_be64(out + 8, hash.low64);
}

void weir_sha256(uint8_t out[WEIR_SHA256_BYTES], const void *data, size_t size)
{
    unsigned got = 0;
    int ok = EVP_Digest(data, size, out, &got, EVP_sha256(), NULL);
    assert(ok && got == WEIR_SHA256_BYTES); /* fails only where libcrypto has no SHA-256 */
}

int weir_sha256_begin(struct weir_sha256_stream *stream)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(context);
        return weir_fail_memory();
    }
    stream->context = context;
    return 0;
}

void weir_sha256_more(struct weir_sha256_stream *stream, const void *data, size_t size)
{
    int ok = EVP_DigestUpdate(stream->context, data, size);
    assert(ok);
}

void weir_sha256_end(struct weir_sha256_stream *stream, uint8_t out[WEIR_SHA256_BYTES])
{
    unsigned got = WEIR_SHA256_BYTES;
    int ok = out ? EVP_DigestFinal_ex(stream->context, out, &got) : 1;
    assert(ok && got == WEIR_SHA256_BYTES);
    EVP_MD_CTX_free(stream->context);
    stream->context = NULL;
}

bool weir_md5(uint8_t out[WEIR_MD5_BYTES], const void *data, size_t size)
{
    return EVP_Digest(data, size, out, NULL, EVP_md5(), NULL) == 1;
}

const char *weir_algorithm_name(enum weir_algorithm algorithm)
{
    return algorithm == WEIR_ALGORITHM_XXH3_128 ? "xxh3-128" : "";
}

void weir_hex(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int weir_unhex(uint8_t *out, size_t size, const char *text)
{
    for (size_t i = 0; i < size; i++, text += 2) {
        int high = digit(text[0]);
        int low = high < 0 ? -1 : digit(text[1]);
        if (low < 0)
            return -EINVAL;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return *text ? -EINVAL : 0;
}
