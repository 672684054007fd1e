/* log.h - a log: numbered records, each naming its parent's SHA-256, appended by put-if-absent.
 *
 * One writer wins a number; so whoever appended knows exactly what came before, and a log is one
 * chain for everybody. A record holds the whole state it stands for: reading the head is enough.
 * Records are at .weir/log/<name>~/<20 digits>, from 1 on without holes, and are never changed.
 * No step lists anything: the head is found by probing numbers, from the last one known.
 *
 * On disk (little-endian), version 1:
 *
 *    0  8  "WEIRLOGR"
 *    8  2  version, 1
 *   10  6  zero
 *   16  8  number
 *   24 32  SHA-256 of the parent record; zeros for number 1
 *   56 16  nonce of the writer
 *   72  8  time (Unix ns), for people
 *   80  8  length of the state
 *   88     state, then 16 bytes of XXH3-128 of everything before
 *
 * A handle belongs to one thread at a time.
 */
#ifndef WEIR_STORE_LOG_H
#define WEIR_STORE_LOG_H

#include "store/store.h"
#include "util/hash.h"

/* One record is read whole, and one is written for each commit. */
#define WEIR_LOG_STATE_BYTES_MAX ((size_t)4 << 20)

struct weir_log;

struct weir_log_record {
    uint64_t number; /* 0: "before the first" */
    uint8_t parent[WEIR_SHA256_BYTES];
    uint8_t digest[WEIR_SHA256_BYTES]; /* of this record */
    uint8_t nonce[WEIR_NONCE_BYTES];
    uint64_t time_ns;
    const void *state;
    size_t state_size;
    uint8_t *bytes; /* owns the state */
    size_t size;
};

/* name: a key. Nothing is written before the first append. */
int weir_log_open(struct weir_log **out, weir_store *store, const char *name);
void weir_log_close(struct weir_log *log);
const char *weir_log_name(const struct weir_log *log);

/* The newest record. An empty log gives number 0 and no state. At most about 2 log2(n) requests,
 * two when nothing was appended since the last call. -EBADMSG names a record that is missing where
 * the search ended. */
int weir_log_head(struct weir_log *log, struct weir_log_record *out);
/* Is there a record beyond the newest this handle knows? 1, 0 or -errno: one request. */
int weir_log_moved(struct weir_log *log);
/* -ENOENT beyond the head; -EBADMSG for a damaged record. */
int weir_log_read(struct weir_log *log, uint64_t number, struct weir_log_record *out);
void weir_log_record_free(struct weir_log_record *record);

/* Appends behind parent. -EAGAIN: another record stands there: get the head and decide again;
 * WEIR_EUNKNOWN: it may stand there: the next head tells. */
int weir_log_append(struct weir_log *log, const struct weir_log_record *parent, const void *state,
                    size_t size);
/* Makes sure that a record which was read survives a power loss: its writer may not have lived to
 * see to it. Whoever promises or destroys something because of a record calls this first. */
int weir_log_settle(struct weir_log *log, const struct weir_log_record *record);

/* Says in the text of a failure what to do about a newest record that is damaged; returns code. */
int weir_log_advise(const struct weir_log *log, uint64_t number, int code);

/* The largest number below that one of which there is a record; 0: none. It lists: a missing record
 * would hide what is behind it from a search. */
int weir_log_last(struct weir_log *log, uint64_t below, uint64_t *last);

/* Does anything stand beyond a head that was found by probing, behind a record that is missing?
 * -EBADMSG then. It lists: for gc, which deletes because of what a head does not say. */
int weir_log_check_head(struct weir_log *log, const struct weir_log_record *head);

/* Walks the chain from 1 to the head. -EBADMSG names the first record that does not follow from
 * the one before it. *records says how many were good. */
int weir_log_verify(struct weir_log *log, uint64_t *records);

/* Is that the file name of a record? Just its digits, and not all zeros. */
enum { WEIR_LOG_DIGITS = 20 };
bool weir_log_record_number(const char *name, uint64_t *number);
/* Points into bytes, which stay the caller's. */
int weir_log_record_decode(struct weir_log_record *out, const uint8_t *bytes, size_t size);

#endif
