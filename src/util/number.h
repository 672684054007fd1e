/* number.h - the elements of tensors and arrays as numbers. Pure functions. */
#ifndef WEIR_UTIL_NUMBER_H
#define WEIR_UTIL_NUMBER_H

#include <stdint.h>

/* The number at that place, little-endian, aligned or not. */
typedef double (*weir_number_fn)(const uint8_t *at);
/* NULL for complex numbers, and for what is smaller than a byte. */
weir_number_fn weir_number_of(const char *dtype);

#endif
