/* key.c - pure functions over names. */
#include "util/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "util/hash.h"
#include "util/utf8.h"
#include "weir.h"

enum { NONCE_DIGITS = 2 * WEIR_NONCE_BYTES };

/* C0, DEL and C1 (U+0080..U+009F, which is 0xc2 0x80..0x9f). */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* Where "~" and 32 hex digits begin at the end of part, or NULL. */
static const char *nonce_tail(const char *part, size_t size)
{
    if (size < NONCE_DIGITS + 1 || part[size - NONCE_DIGITS - 1] != '~')
        return NULL;
    for (size_t i = size - NONCE_DIGITS; i < size; i++)
        if (!strchr("0123456789abcdef", part[i]))
            return NULL;
    return part + size - NONCE_DIGITS - 1;
}

static const char *part_fault(const char *part, size_t size, bool first)
{
    if (size == 0)
        return "it has an empty part";
    if ((size == 1 && part[0] == '.') || (size == 2 && !memcmp(part, "..", 2)))
        return "it has a part '.' or '..'";
    if (first && size == 5 && !memcmp(part, ".weir", 5))
        return "'.weir' is the engine's own";
    if (part[size - 1] == '~' || nonce_tail(part, size))
        return "names ending in '~' or '~' and 32 hex digits are the engine's own";
    return NULL;
}

static const char *key_fault(const char *key, bool *too_long)
{
    size_t size = strnlen(key, WEIR_KEY_BYTES_MAX + 1);
    if (size > WEIR_KEY_BYTES_MAX) {
        *too_long = true;
        return "it is longer than 1024 bytes";
    }
    for (size_t i = 0, n; i < size; i += n) {
        n = weir_utf8_length((const unsigned char *)key + i, size - i);
        if (!n)
            return "it is not UTF-8";
        if (is_control((const unsigned char *)key + i))
            return "it has a control character";
    }
    const char *part = key;
    for (;;) {
        size_t length = strcspn(part, "/");
        if (length > WEIR_PART_BYTES_MAX) {
            *too_long = true;
            return "a part of it is longer than 220 bytes";
        }
        const char *fault = part_fault(part, length, part == key);
        if (fault || !part[length])
            return fault;
        part += length + 1;
    }
}

void weir_key_quote(char *out, size_t size, const char *name)
{
    size_t used = 0;
    for (const unsigned char *s = (const unsigned char *)name; *s; s++) {
        if (used + 8 >= size) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (*s >= 0x20 && *s < 0x7f)
            out[used++] = (char)*s;
        else
            used += (size_t)snprintf(out + used, 5, "\\x%02x", *s);
    }
    out[used] = 0;
}

int weir_key_check(const char *key)
{
    bool too_long = false;
    const char *fault = key_fault(key, &too_long);
    if (!fault)
        return 0;
    char quoted[96]; /* so that an error never garbles a terminal, nor fills it */
    weir_key_quote(quoted, sizeof quoted, key);
    return weir_fail(too_long ? ENAMETOOLONG : EINVAL, "'%s' cannot be a key: %s", quoted, fault);
}

int weir_prefix_check(const char *prefix)
{
    size_t size = strnlen(prefix, WEIR_KEY_BYTES_MAX + 2);
    char key[WEIR_KEY_BYTES_MAX + 3];
    if (size == 0)
        return 0;
    memcpy(key, prefix, size);
    if (size > 1 && key[size - 1] == '/')
        size--;
    key[size] = 0;
    return weir_key_check(key);
}

bool weir_name_is_own(const char *name)
{
    return !strncmp(name, ".weir", 5) && (!name[5] || name[5] == '/');
}

const char *weir_name_kept(const char *name)
{
    static const char *const own[] = {WEIR_DIR_SEAL, WEIR_DIR_DATA, WEIR_DIR_LEARN,
                                      WEIR_DIR_LOG,  WEIR_DIR_SET,  WEIR_DIR_LEASE,
                                      WEIR_DIR_TMP,  WEIR_DIR_SPARE};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!strncmp(name, own[i], strlen(own[i])))
            return own[i];
    return weir_name_is_own(name) ? name : "";
}

void weir_key_name(char out[WEIR_NAME_BYTES_MAX], const char *dir, const char *key)
{
    snprintf(out, WEIR_NAME_BYTES_MAX, "%s%s~", dir, key);
}

void weir_key_data_name(char out[WEIR_NAME_BYTES_MAX], const char *key,
                        const uint8_t nonce[WEIR_NONCE_BYTES])
{
    char digits[NONCE_DIGITS + 1];
    weir_hex(digits, nonce, WEIR_NONCE_BYTES);
    snprintf(out, WEIR_NAME_BYTES_MAX, "%s%s~%s", WEIR_DIR_DATA, key, digits);
}

bool weir_key_of_name(char out[WEIR_NAME_BYTES_MAX], const char *name)
{
    size_t size = strnlen(name, WEIR_NAME_BYTES_MAX);
    if (size < 2 || size >= WEIR_NAME_BYTES_MAX || name[size - 1] != '~')
        return false;
    memcpy(out, name, size - 1);
    out[size - 1] = 0;
    bool too_long;
    return !key_fault(out, &too_long);
}

bool weir_key_of_data_name(char out[WEIR_NAME_BYTES_MAX], uint8_t nonce[WEIR_NONCE_BYTES],
                           const char *name)
{
    size_t size = strnlen(name, WEIR_NAME_BYTES_MAX);
    const char *tail = size < WEIR_NAME_BYTES_MAX ? nonce_tail(name, size) : NULL;
    if (!tail || tail == name || weir_unhex(nonce, WEIR_NONCE_BYTES, tail + 1))
        return false;
    memcpy(out, name, (size_t)(tail - name));
    out[tail - name] = 0;
    bool too_long;
    return !key_fault(out, &too_long);
}
