/* ram.h - how much memory this process may have. */
#ifndef WEIR_UTIL_RAM_H
#define WEIR_UTIL_RAM_H

#include <stdint.h>

/* The machine's, or what its container (control group, of either version) may have, page cache
 * included; 0 if that is not known. */
uint64_t weir_ram_bytes(void);

#endif
