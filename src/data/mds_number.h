/* mds_number.h - numbers that become those of another dtype, exactly or not at all. Pure functions.
 */
#ifndef WEIR_DATA_MDS_NUMBER_H
#define WEIR_DATA_MDS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the number at `at`, of dtype `from`, as one of `dtype`, which has room at `out`; neither
 * is complex. False: that cannot hold it, and what is at `out` says nothing. */
bool weir_mds_number_put(const char *dtype, const char *from, const uint8_t *at, uint8_t *out);

#endif
