/* dataset.h - an open dataset (weir_data of weir.h), for those within the library who read it:
 * which store, which index. Any thread.
 */
#ifndef WEIR_DATA_DATASET_H
#define WEIR_DATA_DATASET_H

#include "data/index.h"
#include "data/maps.h"
#include "data/shelf.h"

/* 0, or -ECHILD in a forked child. */
int weir_data_check(const weir_data *data);
weir_store *weir_data_store(const weir_data *data);
/* "" or "data/imagenet/": in front of every key of the index. */
const char *weir_data_prefix(const weir_data *data);
const struct weir_index *weir_data_index(const weir_data *data);
struct weir_maps *weir_data_maps(const weir_data *data);
struct weir_shelf *weir_data_shelf(const weir_data *data);

/* Opens the file that a sample is in; -ESTALE if it is not the one that was indexed. once: for
 * weir_object_open_once(). */
int weir_data_object(const weir_data *data, const struct weir_place *place, bool once,
                     weir_object **out);
/* The same of one that is compressed, from its beginning (flow.h); at its end stands no more than
 * belongs there, as far as that is known. */
int weir_data_flow(const weir_data *data, const struct weir_place *place, struct weir_flow **out);
/* A sample of a compressed shard that is read by its number may have so many bytes. */
uint64_t weir_data_sample_bytes_max(const weir_data *data);

#endif
