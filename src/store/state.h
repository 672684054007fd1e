/* state.h - the state of a ledger (ledger.h), as its records hold it. Pure functions.
 *
 * On disk (little-endian), version 1, or 2 if there are labels:
 *
 *    0  2  version
 *    2  2  zero
 *    4  4  number of labels; zero in version 1
 *    8  8  attempt (0: none yet)
 *   16 16  its token
 *   32  8  floor: saves of this attempt up to this number that are no entry never will be
 *   40  4  number of older tokens
 *   44  4  number of entries, in the order they were begun
 *   48     older tokens of 16 bytes, newest first
 *          entries: u32 length of the name, u32 parts, u64 attempt, u64 save, u64 committed (Unix
 *          ns), u64 retired (Unix ns by the tier's clock; 0: live), 32 bytes SHA-256 of the root,
 *          the name
 *          labels, in ascending order: u32 which entry (from 0; a live one), u32 length, the label
 *
 * A Weir that knows version 1 alone would drop the labels with its next record, and retire what
 * they protect: so it must refuse a state that has some, and need not refuse any other.
 */
#ifndef WEIR_STORE_STATE_H
#define WEIR_STORE_STATE_H

#include "store/log.h"

enum {
    WEIR_TOKEN_BYTES = 16,
    WEIR_TOKENS_MAX = 1024,  /* incarnations whose stragglers are recognised */
    WEIR_ENTRIES_MAX = 8192, /* live and retired: the state stays small enough to rewrite */
    WEIR_SAVE_NAME_BYTES_MAX = 128,
    WEIR_LABELS_MAX = 256, /* given by people, one by one */
    WEIR_LABEL_BYTES_MAX = 64,
};

/* One save of something: which, under which attempt, the how-manieth of that attempt. */
struct weir_save {
    char name[WEIR_SAVE_NAME_BYTES_MAX + 1];
    uint64_t attempt, number;
    uint32_t parts;
};

struct weir_ledger_entry {
    struct weir_save save;
    uint64_t time_ns, retired_ns;
    uint8_t root[WEIR_SHA256_BYTES];
};

/* A second name ("best") of one live save, which stays while it has one. */
struct weir_label {
    char name[WEIR_LABEL_BYTES_MAX + 1];
    struct weir_save save;
};

struct weir_ledger_state {
    uint64_t attempt, floor;
    uint8_t token[WEIR_TOKEN_BYTES];
    uint8_t (*past)[WEIR_TOKEN_BYTES];
    size_t past_count;
    struct weir_ledger_entry *entries; /* live and retired, oldest first */
    size_t count;
    struct weir_label *labels; /* sorted by name */
    size_t label_count;
    struct weir_log_record record; /* it was read from; number 0: nothing was ever appended */
};

/* 0, or -EINVAL with a text: a name is one part of a key, of at most 128 bytes. */
int weir_save_name_check(const char *name);
/* The same for a label, which is no number either, and has no comma or colon: people write it where
 * a save's name may stand, and in lists. */
int weir_label_check(const char *label);
bool weir_save_same(const struct weir_save *a, const struct weir_save *b);
/* "<name>-<attempt>.<number>", and the reverse: false if text is not such a name. */
#define WEIR_SAVE_TEXT_BYTES (WEIR_SAVE_NAME_BYTES_MAX + 44)
void weir_save_text(char out[WEIR_SAVE_TEXT_BYTES], const struct weir_save *save);
bool weir_save_of_text(struct weir_save *out, const char *text, size_t size);

/* Bytes owned by the caller; NULL: out of memory. */
uint8_t *weir_state_encode(const struct weir_ledger_state *state, size_t *size);
int weir_state_decode(struct weir_ledger_state *out, const uint8_t *bytes, size_t size);
void weir_state_free(struct weir_ledger_state *state);

#endif
