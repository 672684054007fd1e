/* target.h - what every fuzz target shares. A target takes any bytes, and aborts when what it tests
 * breaks a promise; memory errors are the sanitizers' to find.
 */
#ifndef WEIR_FUZZ_TARGET_H
#define WEIR_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A block of exactly that size, so that a sanitizer sees the first byte read beyond it. */
static inline uint8_t *exact_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = calloc(1, size ? size : 1);
    PROMISE(copy);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

/* The bytes as text: up to the first NUL, or all. */
static inline char *text_copy(const uint8_t *data, size_t size)
{
    size = strnlen((const char *)data, size);
    char *text = malloc(size + 1);
    PROMISE(text);
    memcpy(text, data, size);
    text[size] = 0;
    return text;
}

#endif
