/* maps.h - shards of Weir's own that are mapped instead of read. They stay mapped while the dataset
 * is open: however many epochs there are, a block is checked once, and the kernel is asked for a
 * page once. Their files are not kept open. Any thread.
 */
#ifndef WEIR_DATA_MAPS_H
#define WEIR_DATA_MAPS_H

#include "data/index.h"
#include "store/map.h"

struct weir_maps;

int weir_maps_open(struct weir_maps **out, uint64_t shards);
void weir_maps_close(struct weir_maps *maps);

/* The shard in which a sample is; NULL if it cannot be mapped, and then it is not tried again
 * unless the reason may pass. Whoever takes it gives it back. */
struct weir_map *weir_maps_take(struct weir_maps *maps, const weir_data *data,
                                const struct weir_place *place);
void weir_maps_give(struct weir_maps *maps, uint64_t shard);

#endif
