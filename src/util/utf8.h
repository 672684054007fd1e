/* utf8.h - well-formed UTF-8 (RFC 3629). */
#ifndef WEIR_UTIL_UTF8_H
#define WEIR_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The length of the character at s, of which `room` bytes may be looked at, or 0: overlong forms
 * and surrogates, too, are none. */
static inline size_t weir_utf8_length(const unsigned char *s, size_t room)
{
    if (room && s[0] < 0x80)
        return 1;
    if (!room || s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > room)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

/* Is that nothing but such characters? Eight at a time while they are ASCII. */
static inline bool weir_utf8_valid(const void *text, size_t size)
{
    const unsigned char *s = text;
    for (size_t at = 0, length; at < size; at += length) {
        uint64_t word;
        length = 8;
        if (size - at >= 8) {
            memcpy(&word, s + at, 8);
            if (!(word & 0x8080808080808080u))
                continue;
        }
        length = weir_utf8_length(s + at, size - at);
        if (!length)
            return false;
    }
    return true;
}

#endif
