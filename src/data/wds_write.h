/* wds_write.h - writes WebDataset shards. */
#ifndef WEIR_DATA_WDS_WRITE_H
#define WEIR_DATA_WDS_WRITE_H

#include "data/format.h"

extern const struct weir_format_writer weir_wds_writer;

#endif
