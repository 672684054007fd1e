/* tokens_put.h - how token files are written: in the layout of llm.c, of nanoGPT or of Megatron. */
#ifndef WEIR_DATA_TOKENS_PUT_H
#define WEIR_DATA_TOKENS_PUT_H

#include "data/format.h"

extern const struct weir_format_writer weir_tokens_writer;

#endif
