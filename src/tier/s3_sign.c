/* s3_sign.c - see s3_sign.h. The canonical request is never built: its parts are hashed one after
 * the other. All texts of an answer live in one block whose size is counted first. */
#include "tier/s3_sign.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_time.h"
#include "util/err.h"
#include "util/sys.h"

enum { HEADER_NAME_MAX = 64, SCOPE_MAX = 192 };

#define ALGORITHM "AWS4-HMAC-SHA256"

static bool is_plain(unsigned char c)
{
    return isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

size_t weir_s3_encode(char *out, const char *text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    char *at = out;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (is_plain(c) || (c == '/' && keep_slash)) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    *at = 0;
    return (size_t)(at - out);
}

int weir_s3_decode(char *text)
{
    char *out = text;
    for (; *text; text++) {
        char pair[3] = {0};
        uint8_t byte = (uint8_t)*text;
        if (*text == '%') {
            for (int i = 0; i < 2 && text[1 + i]; i++)
                pair[i] = (char)tolower((unsigned char)text[1 + i]);
            if (weir_unhex(&byte, 1, pair) || !byte)
                return -EINVAL;
            text += 2;
        }
        *out++ = (char)byte;
    }
    *out = 0;
    return 0;
}

/* Text that grows inside a block which is known to be large enough. */
struct text {
    char *at, *end;
};

static void put(struct text *text, const char *more)
{
    size_t size = strlen(more);
    assert(size < (size_t)(text->end - text->at));
    memcpy(text->at, more, size + 1);
    text->at += size;
}

/* What was put so far is one text; the next one begins behind it. */
static void put_end(struct text *text)
{
    assert(text->at < text->end);
    *text->at++ = 0;
}

static char *put_encoded(struct text *text, const char *more)
{
    char *begin = text->at;
    assert(3 * strlen(more) + 1 < (size_t)(text->end - text->at));
    text->at += weir_s3_encode(begin, more, false);
    put_end(text);
    return begin;
}

/* ---- the target ---- */

/* Sorted as the signature wants it: by name, then by value, both encoded. */
static int by_encoded(const void *a, const void *b)
{
    const struct weir_s3_pair *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->value, y->value);
}

static void encode_query(struct weir_s3_pair *out, struct text *text,
                         const struct weir_s3_call *call)
{
    for (size_t i = 0; i < call->queries; i++) {
        const struct weir_s3_pair *pair = &call->query[i];
        out[i].name = put_encoded(text, pair->name);
        out[i].value = put_encoded(text, pair->value ? pair->value : "");
    }
    if (call->queries)
        qsort(out, call->queries, sizeof *out, by_encoded);
}

static void put_target(struct text *text, const struct weir_s3_call *call,
                       const struct weir_s3_pair *query)
{
    assert(call->path[0] == '/' && 3 * strlen(call->path) < (size_t)(text->end - text->at));
    text->at += weir_s3_encode(text->at, call->path, true);
    for (size_t i = 0; i < call->queries; i++) {
        put(text, i ? "&" : "?");
        put(text, query[i].name);
        put(text, "=");
        put(text, query[i].value);
    }
    put_end(text);
}

/* ---- headers ---- */

struct header {
    char name[HEADER_NAME_MAX]; /* in lower case */
    const char *value;
    size_t turn; /* repeated ones stay in order */
};

struct headers {
    size_t count;
    struct header header[WEIR_S3_HEADERS_MAX];
};

static bool one_line(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

static int add_header(struct headers *headers, const char *name, const char *value)
{
    size_t size = strlen(name);
    if (headers->count == WEIR_S3_HEADERS_MAX || size >= HEADER_NAME_MAX)
        return weir_fail(E2BIG,
                         "an S3 request has more than %d headers, or one with a name longer "
                         "than %d bytes",
                         WEIR_S3_HEADERS_MAX, HEADER_NAME_MAX - 1);
    if (!one_line(name) || !one_line(value)) /* which is not shown: it may be a token */
        return weir_fail(EINVAL,
                         "the S3 header '%.*s' holds a line break or another control "
                         "character",
                         (int)strcspn(name, "\r\n"), name);
    struct header *h = &headers->header[headers->count];
    for (size_t i = 0; i <= size; i++)
        h->name[i] = (char)tolower((unsigned char)name[i]);
    h->value = value;
    h->turn = headers->count++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct header *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->turn > y->turn) - (x->turn < y->turn);
}

static bool repeats(const struct headers *headers, size_t i)
{
    return i && !strcmp(headers->header[i].name, headers->header[i - 1].name);
}

static void put_names(struct text *text, const struct headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (repeats(headers, i))
            continue;
        if (i)
            put(text, ";");
        put(text, headers->header[i].name);
    }
}

/* ---- the canonical request, as a digest ---- */

static void hash_text(struct weir_sha256_stream *stream, const char *text)
{
    weir_sha256_more(stream, text, strlen(text));
}

/* Without blanks at the ends, and with one where there are several. */
static void hash_value(struct weir_sha256_stream *stream, const char *value)
{
    bool first = true;
    while (*(value += strspn(value, " \t"))) {
        size_t word = strcspn(value, " \t");
        if (!first)
            hash_text(stream, " ");
        weir_sha256_more(stream, value, word);
        value += word;
        first = false;
    }
}

static int hash_request(char out[2 * WEIR_SHA256_BYTES + 1], const struct weir_s3_call *call,
                        const char *target, const struct headers *headers, const char *names)
{
    struct weir_sha256_stream stream;
    uint8_t digest[WEIR_SHA256_BYTES];
    int code = weir_sha256_begin(&stream);
    if (code)
        return code;
    size_t path = strcspn(target, "?");
    hash_text(&stream, call->method);
    hash_text(&stream, "\n");
    weir_sha256_more(&stream, target, path);
    hash_text(&stream, "\n");
    hash_text(&stream, target[path] ? target + path + 1 : "");
    for (size_t i = 0; i < headers->count; i++) {
        bool more = repeats(headers, i);
        hash_text(&stream, more ? "," : "\n");
        if (!more) {
            hash_text(&stream, headers->header[i].name);
            hash_text(&stream, ":");
        }
        hash_value(&stream, headers->header[i].value);
    }
    hash_text(&stream, "\n\n");
    hash_text(&stream, names);
    hash_text(&stream, "\n");
    hash_text(&stream, call->payload);
    weir_sha256_end(&stream, digest);
    weir_hex(out, digest, sizeof digest);
    return 0;
}

/* ---- the signature ---- */

static void hmac(uint8_t out[WEIR_SHA256_BYTES], const void *key, size_t size, const char *text)
{
    unsigned got = 0;
    const uint8_t *done =
        HMAC(EVP_sha256(), key, (int)size, (const uint8_t *)text, strlen(text), out, &got);
    assert(done && got == WEIR_SHA256_BYTES); /* fails only where libcrypto has no SHA-256 */
}

static void signature(char out[2 * WEIR_SHA256_BYTES + 1], const struct weir_s3_call *call,
                      const char *secret, const char *date, const char *text)
{
    char first[4 + WEIR_S3_SECRET_MAX];
    uint8_t key[WEIR_SHA256_BYTES], next[WEIR_SHA256_BYTES];
    const char *const steps[] = {call->region, call->service, "aws4_request", text};
    int size = snprintf(first, sizeof first, "AWS4%s", secret);
    hmac(key, first, (size_t)size, date);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        hmac(next, key, sizeof key, steps[i]);
        memcpy(key, next, sizeof key);
    }
    weir_hex(out, key, sizeof key);
    OPENSSL_cleanse(first, sizeof first);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(next, sizeof next);
}

/* "DATE/REGION/SERVICE/aws4_request", and what is signed in the end. */
static int put_authorization(struct text *text, const struct weir_s3_call *call,
                             const struct weir_s3_keys *keys, const char *target, const char *stamp,
                             const struct headers *headers)
{
    char digest[2 * WEIR_SHA256_BYTES + 1], mark[2 * WEIR_SHA256_BYTES + 1], date[9];
    char scope[SCOPE_MAX], names[WEIR_S3_HEADERS_MAX * HEADER_NAME_MAX];
    char whole[sizeof ALGORITHM + 17 + SCOPE_MAX + sizeof digest + 3];
    struct text list = {names, names + sizeof names};
    names[0] = 0;
    put_names(&list, headers);
    int code = hash_request(digest, call, target, headers, names);
    if (code)
        return code;
    snprintf(date, sizeof date, "%.8s", stamp);
    snprintf(scope, sizeof scope, "%s/%s/%s/aws4_request", date, call->region, call->service);
    snprintf(whole, sizeof whole, ALGORITHM "\n%s\n%s\n%s", stamp, scope, digest);
    signature(mark, call, keys->secret, date, whole);
    const char *const parts[] = {"Authorization: " ALGORITHM " Credential=",
                                 keys->id,
                                 "/",
                                 scope,
                                 ", SignedHeaders=",
                                 names,
                                 ", Signature=",
                                 mark};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        put(text, parts[i]);
    put_end(text);
    return 0;
}

/* ---- all together ---- */

static bool is_word(const char *text, size_t max)
{
    size_t size = strnlen(text, max);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= 0x20 || (unsigned char)text[i] >= 0x7f || text[i] == '/')
            return false;
    return size && size < max;
}

/* Keys are texts that others wrote: one with a line break must not become a header. */
static int check(const struct weir_s3_call *call, const struct weir_s3_keys *keys)
{
    if (call->queries > WEIR_S3_QUERIES_MAX)
        return weir_fail(E2BIG, "an S3 request has more than %d query parameters",
                         WEIR_S3_QUERIES_MAX);
    if (!keys)
        return 0;
    if (!is_word(call->region, 64) || !is_word(call->service, 64))
        return weir_fail(EINVAL, "the S3 region '%.64s' is no region", call->region);
    if (!is_word(keys->id, WEIR_S3_ID_MAX) || !keys->secret[0] ||
        strnlen(keys->secret, WEIR_S3_SECRET_MAX) == WEIR_S3_SECRET_MAX ||
        (keys->token && strnlen(keys->token, WEIR_S3_TOKEN_MAX) == WEIR_S3_TOKEN_MAX))
        return weir_fail(EINVAL,
                         "the S3 credentials are no credentials: an access key is at most "
                         "%d bytes without blanks, a secret %d, a session token %d",
                         WEIR_S3_ID_MAX - 1, WEIR_S3_SECRET_MAX - 1, WEIR_S3_TOKEN_MAX - 1);
    return 0;
}

static size_t room_for(const struct weir_s3_call *call, const struct weir_s3_keys *keys)
{
    size_t room = 3 * strlen(call->path) + 8192; /* the lines, but for the token, are bounded */
    for (size_t i = 0; i < call->queries; i++) {
        const char *value = call->query[i].value;
        room += 2 * (3 * strlen(call->query[i].name) + (value ? 3 * strlen(value) : 0) + 4);
    }
    return room + (keys && keys->token ? strlen(keys->token) : 0) + strlen(call->payload);
}

/* Makes a line and counts it among the headers that are signed. */
static int put_line(struct weir_s3_signed *out, struct text *text, struct headers *headers,
                    const char *name, const char *value)
{
    out->line[out->count++] = text->at;
    put(text, name);
    put(text, ": ");
    const char *at = text->at;
    put(text, value);
    put_end(text);
    return add_header(headers, name, at);
}

static int put_lines(struct weir_s3_signed *out, struct text *text, const struct weir_s3_call *call,
                     const struct weir_s3_keys *keys)
{
    struct headers headers = {0};
    char stamp[17];
    weir_s3_time_stamp(stamp, call->time_s);
    int code = add_header(&headers, "host", call->host);
    for (size_t i = 0; !code && i < call->headers; i++)
        code = add_header(&headers, call->header[i].name,
                          call->header[i].value ? call->header[i].value : "");
    if (!code)
        code = put_line(out, text, &headers, "x-amz-date", stamp);
    if (!code && !strcmp(call->service, "s3")) /* the others do not ask for it */
        code = put_line(out, text, &headers, "x-amz-content-sha256", call->payload);
    if (!code && keys->token)
        code = put_line(out, text, &headers, "x-amz-security-token", keys->token);
    if (code)
        return code;
    qsort(headers.header, headers.count, sizeof headers.header[0], by_name);
    out->line[out->count++] = text->at;
    return put_authorization(text, call, keys, out->target, stamp, &headers);
}

int weir_s3_sign(struct weir_s3_signed *out, const struct weir_s3_call *call,
                 const struct weir_s3_keys *keys)
{
    struct weir_s3_pair query[WEIR_S3_QUERIES_MAX];
    int code = check(call, keys);
    if (code)
        return code;
    struct weir_s3_signed made = {.size = room_for(call, keys)};
    made.text = weir_alloc(made.size);
    if (!made.text)
        return weir_fail_memory();
    struct text text = {made.text, made.text + made.size};
    encode_query(query, &text, call);
    made.target = text.at;
    put_target(&text, call, query);
    if (keys)
        code = put_lines(&made, &text, call, keys);
    if (code)
        weir_s3_signed_free(&made);
    else
        *out = made;
    return code;
}

void weir_s3_signed_free(struct weir_s3_signed *out)
{
    if (out->text)
        OPENSSL_cleanse(out->text, out->size);
    free(out->text);
    *out = (struct weir_s3_signed){0};
}
