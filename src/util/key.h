/* key.h - which names are keys, and the engine's own names made from them.
 *
 * A key is a UTF-8 path of at most WEIR_KEY_BYTES_MAX bytes. Its parts are not empty, not "." or
 * "..", at most WEIR_PART_BYTES_MAX bytes, and hold no control characters. The first part is not
 * ".weir", and no part ends in "~" or in "~" and 32 hex digits: those are the engine's. So the
 * seal of "a" (.weir/seal/a~) never stands in the way of the seal of "a/b" (.weir/seal/a/b~), and
 * the keys "a" and "a/b" live side by side on every tier.
 */
#ifndef WEIR_UTIL_KEY_H
#define WEIR_UTIL_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_NONCE_BYTES 16
/* ".weir/data/" + key + "~" + 32 digits, with room for other such places. */
#define WEIR_NAME_BYTES_MAX (1024 + 64)

#define WEIR_NAME_OWN ".weir/"
#define WEIR_DIR_SEAL ".weir/seal/"
#define WEIR_DIR_DATA ".weir/data/"
#define WEIR_DIR_LEARN ".weir/learn/"
#define WEIR_DIR_LOG ".weir/log/"
#define WEIR_DIR_SET ".weir/set/"
#define WEIR_DIR_LEASE ".weir/lease/"
#define WEIR_DIR_TMP ".weir/tmp/"
#define WEIR_DIR_SPARE ".weir/spare/"
#define WEIR_NAME_STORE ".weir/store"

/* 0, or -EINVAL / -ENAMETOOLONG with a text that quotes the key and names what is wrong. */
int weir_key_check(const char *key);
/* The same for what a person gives as a prefix: "" and one trailing '/' are allowed. */
int weir_prefix_check(const char *prefix);
/* A name of any bytes as printable ASCII; what has no room becomes "...". size: at least 16. */
void weir_key_quote(char *out, size_t size, const char *name);
/* Is that ".weir" or below it? */
bool weir_name_is_own(const char *name);
/* The leading part of a name whose directories stay although they are empty. Borrowed. */
const char *weir_name_kept(const char *name);
/* DIR + key + "~" into out. */
void weir_key_name(char out[WEIR_NAME_BYTES_MAX], const char *dir, const char *key);
/* .weir/data/ + key + "~" + nonce into out. */
void weir_key_data_name(char out[WEIR_NAME_BYTES_MAX], const char *key,
                        const uint8_t nonce[WEIR_NONCE_BYTES]);
/* The reverse of weir_key_name without DIR: cuts the "~"; false if that is no such name. */
bool weir_key_of_name(char out[WEIR_NAME_BYTES_MAX], const char *name);
/* The reverse of weir_key_data_name without .weir/data/. */
bool weir_key_of_data_name(char out[WEIR_NAME_BYTES_MAX], uint8_t nonce[WEIR_NONCE_BYTES],
                           const char *name);

#endif
