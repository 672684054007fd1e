/* token_file.h - what a file of tokens is: where they begin, how many there are and of which type.
 *
 *   nanoGPT   nothing but tokens
 *   llm.c     256 x i32 {20240520, 1, tokens} and u16, or {20240801, 7, tokens} and u32
 *   Megatron  nothing but tokens in NAME.bin; NAME.idx says of which type, and where documents are:
 *             "MMIDIDX\0\0", u64 version 1, u8 dtype, u64 sequences, u64 documents + 1,
 *             i32 length of each sequence, i64 byte at which each begins, i64 the sequence with
 *             which each document begins
 */
#ifndef WEIR_DATA_TOKEN_FILE_H
#define WEIR_DATA_TOKEN_FILE_H

#include "data/format.h"

enum {
    WEIR_LLMC_HEAD_BYTES = 1024,
    WEIR_MEGATRON_HEAD_BYTES = 34,
};

struct weir_token_file {
    uint64_t begin; /* of the first token */
    uint64_t tokens;
    char dtype[8]; /* "<u2", "<i4", …; "": the file does not say */
};

/* From the first bytes of a .bin, of `file_bytes`. -EBADMSG names the key and what is wrong. */
int weir_token_head(struct weir_token_file *out, const char *key, const uint8_t *head, size_t size,
                    uint64_t file_bytes);
/* The head of an llm.c file of so many tokens; width 2 or 4. */
void weir_token_head_make(uint8_t out[WEIR_LLMC_HEAD_BYTES], uint32_t tokens, uint32_t width);

struct weir_megatron {
    char dtype[8];
    uint64_t sequences, documents; /* one more than there are documents */
};
/* The same, from the first WEIR_MEGATRON_HEAD_BYTES of an .idx. */
int weir_megatron_head(struct weir_megatron *out, const char *key, const uint8_t *head,
                       uint64_t file_bytes);
/* Where in the .bin the last sequence ends. */
int weir_megatron_end(const struct weir_survey *survey, const char *idx,
                      const struct weir_megatron *head, uint64_t *out);
/* Calls fn with the byte of the .bin at which each document begins. */
int weir_megatron_marks(weir_store *store, const char *key, const struct weir_shard_plan *shard,
                        weir_mark_fn fn, void *arg);

/* The .idx of a .bin of so many tokens of `width` 2 (u16) or 4 (i32), appended to out: a document,
 * of one sequence, begins at each of `starts` (u32, ascending, the first 0). */
int weir_megatron_make(struct weir_growing *out, uint32_t tokens, uint32_t width,
                       const uint32_t *starts, uint32_t count);

/* "u16", "uint16", "<u2" … as numpy's str; NULL: no type of whole numbers. */
const char *weir_token_dtype(const char *name);

#endif
