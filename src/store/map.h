/* map.h - a sealed object in memory, without being read first: its file mapped read-only. A block
 * is checked against the seal when it is first asked for.
 *
 * Only what Weir sealed is mapped. A foreign file may be truncated by its owner, and touching what
 * is gone would kill the process; Weir's own are read-only and are never written again.
 */
#ifndef WEIR_STORE_MAP_H
#define WEIR_STORE_MAP_H

#include <stdbool.h>

#include "weir.h"

struct weir_map;

/* Borrows obj, which is closed after the map. -ENOTSUP for a foreign object, and where the tier has
 * no files (mem:): read it instead. */
int weir_object_map(struct weir_map **out, weir_object *obj);
void weir_map_close(struct weir_map *map);
/* All of it will be wanted, in any order. */
void weir_map_want_all(struct weir_map *map);
/* Closes the object's file, which a mapping does not need: the object can be closed, no more. */
void weir_map_detach(struct weir_map *map);

/* All of the object; what was not checked must not be used. */
const void *weir_map_data(const struct weir_map *map);
/* Checks the blocks that [off, off + size) touches, each once; the range lies within the object.
 * Any thread. 0, or -EBADMSG as weir_object_read() would answer it. */
int weir_map_check(struct weir_map *map, uint64_t off, uint64_t size);
/* Whether they were. */
bool weir_map_is_checked(const struct weir_map *map, uint64_t off, uint64_t size);
/* Whether all of the object was. */
bool weir_map_is_whole(const struct weir_map *map);
/* Forgets that they were checked: they have left memory since, and may come back as others. */
void weir_map_forget(struct weir_map *map, uint64_t off, uint64_t size);
/* Whether these bytes are in memory now, so that to touch them is not to wait for storage. */
bool weir_map_is_resident(const struct weir_map *map, uint64_t off, uint64_t size);

#endif
