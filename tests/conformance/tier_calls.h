/* tier_calls.h - requests to a tier as plain calls, for its tests. Each may run blocking or not
 * (calls_async): the contract is the same. Every failure must bring a text.
 */
#ifndef WEIR_TESTS_TIER_CALLS_H
#define WEIR_TESTS_TIER_CALLS_H

#include <errno.h>

#include "data.h"
#include "test.h"
#include "tier/tier.h"

/* The tier under test, and how it is asked. */
extern struct weir_tier *tier;
extern bool calls_async;

/* Submits and waits; returns the request's code. */
int call(struct weir_req *req);

int t_put(const char *name, const void *data, size_t size);
int t_load(const char *name, size_t limit, void **data, size_t *size);
int t_stat(const char *name, struct weir_handle *handle, struct weir_blob_stat *stat);
int t_remove(const char *name, struct weir_handle *handle, bool sync);
int t_remove_if(const char *name, const void *data, size_t size);
int t_open(const char *name, struct weir_handle **handle, struct weir_blob_stat *stat);
int t_read(struct weir_handle *handle, void *buf, size_t size, uint64_t off, size_t *got);
int t_create(const char *name, uint64_t hint, bool small, struct weir_handle **handle);
int t_write(struct weir_handle *handle, const void *buf, size_t size, uint64_t off, bool sync);
int t_commit(struct weir_handle *handle, uint64_t size, enum weir_doubt *doubt);
int t_alias(const char *name, const char *target, const char *guard, const void *data, size_t size);
int64_t t_now(void);

/* A name that was not used before: DIR, a number, and END. A few stay valid. */
const char *fresh(const char *dir, const char *end);
/* Makes a blob of stream `seed`. */
void blob_make(const char *name, size_t size, uint64_t seed);
/* There is such a blob, with these bytes. */
void blob_is(const char *name, size_t size, uint64_t seed);
/* What stands at the name is this record. */
void record_is(const char *name, const char *text);

/* Asks for a page of a directory; the cursor is NULL at first, and then the request's handle. */
int t_list_page(struct weir_req *req, const char *dir, struct weir_handle *cursor, void *page,
                size_t page_bytes, bool look);
/* Walks one directory level with pages of that size; fn gets each entry. Returns the code. */
int t_list(const char *dir, size_t page_bytes, void (*fn)(void *arg, char type, const char *name),
           void *arg);

/* Runs fn(arg, i) on n threads that start together. */
void at_once(unsigned n, void (*fn)(void *arg, unsigned i), void *arg);

/* The checks, by what they are about. */
void check_blobs(void);
void check_records(void);
void check_names(void);
void check_listing(void);
void check_flow(void);
void check_leases(void);
void check_null(void);

/* For each check: how many names a tier of some speed is given to list. */
extern unsigned names_many;
extern bool has_alias, has_leases;
/* How often something is tried that most times goes well: fewer times where each takes long. */
extern bool is_short;
int rounds(int most);
/* Puts a table of system calls in place, before anything is open, that notes what is synced. */
void watch_syncs(void);

#endif
