/* utf8.h - one well-formed UTF-8 character (RFC 3629). */
#ifndef WEIR_UTIL_UTF8_H
#define WEIR_UTIL_UTF8_H

#include <stddef.h>

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

#endif
