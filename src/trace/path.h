/* path.h - names of files, as a program gives them, made whole. Pure functions. */
#ifndef WEIR_TRACE_PATH_H
#define WEIR_TRACE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_TRACE_PATH_MAX = 4096 };

/* path, seen from base ("" if that is not known), without "//", "." and ".." (links are not looked
 * at); false if it is too long. */
bool weir_trace_path_join(char out[WEIR_TRACE_PATH_MAX], const char *base, const char *path);
/* Never 0. */
uint64_t weir_trace_path_hash(const char *path);
/* Of the program itself and of the system, not of its data: libraries, Python's modules, /proc. */
bool weir_trace_path_is_program(const char *path);

#endif
