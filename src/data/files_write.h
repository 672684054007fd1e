/* files_write.h - writes a tree of plain files: each field of a sample is one (member.h). */
#ifndef WEIR_DATA_FILES_WRITE_H
#define WEIR_DATA_FILES_WRITE_H

#include "data/format.h"

extern const struct weir_format_writer weir_files_writer;

#endif
