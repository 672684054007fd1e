/* spare.h - files of deleted objects, kept to be written over: on ext4 and XFS overwriting a file
 * of the same size is faster than writing a new one, whose extents must be allocated and converted.
 *
 * A spare is a file below .weir/spare that has no other name. It gets there when its only other
 * name is removed, and is *ready* (mode 0600, set last) when that removal is durable: else a power
 * loss could bring the name back with somebody else's bytes. Whoever unlinks a ready one has it,
 * and writes over it only if nobody has it open or mapped and nothing but its bytes would betray
 * where it comes from; else it goes. None of this can fail a put or a removal: then there is no
 * spare.
 *
 * The space is on loan. It is at most half of what is free, and given back when it is needed, by
 * gc, and when a handle closes that has kept one: then all go, whoever kept them. Any thread may
 * call.
 */
#ifndef WEIR_IO_SPARE_H
#define WEIR_IO_SPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/dirs.h"
#include "io/publish.h"

struct weir_spares;

/* bytes_max: of all of them, 0 for none; bytes_min: of each. */
int weir_spares_open(struct weir_spares **out, struct weir_dirs *dirs, uint64_t bytes_max,
                     uint64_t bytes_min);
/* Drops all if any was kept through this handle. */
void weir_spares_close(struct weir_spares *spares);

/* Removes `base` from dir and keeps the file. The caller knows that all other names it ever had are
 * gone, durably. -errno without a text: it is not kept, and the name may still be there. */
int weir_spares_keep(struct weir_spares *spares, struct weir_dir *dir, const char *base);
/* Puts a spare in the place of a fresh temporary, for `size` bytes. Returns how many of these have
 * their space already; 0: it is still the fresh one. */
uint64_t weir_spares_take(struct weir_spares *spares, struct weir_tmp *tmp, uint64_t size);
/* Drops all (dry: none) and returns how many bytes that were. */
uint64_t weir_spares_drop(struct weir_spares *spares, bool dry);
/* Drops all if there are any and so many bytes are not free. */
void weir_spares_make_room(struct weir_spares *spares, uint64_t bytes);

#endif
