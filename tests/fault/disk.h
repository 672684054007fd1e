/* disk.h - what lies in a store's directory, seen with plain system calls: does every file belong
 * to a live object, and is everything else gone?
 */
#ifndef WEIR_FAULT_DISK_H
#define WEIR_FAULT_DISK_H

#include <stdbool.h>

#include "weir.h"

/* Walks the directory of an idle store after weir_gc(WEIR_GC_NOW) and prints what should not be
 * there: temporaries, data that no live seal names, voids, seals without data, plain names that are
 * not the object's own data, learned records of nothing, empty directories of the engine's,
 * plain files without a seal. Returns how many. */
unsigned disk_debris(weir_store *store, const char *root);
/* How many live objects lack their plain name although nothing stands in its way. */
unsigned disk_plain_missing(weir_store *store, const char *root);
/* True if below root there is nothing but the engine's own empty directories and its marker. */
bool disk_is_bare(const char *root);
/* Removes root and all below it. */
void disk_remove(const char *root);

#endif
