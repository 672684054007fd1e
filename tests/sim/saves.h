/* saves.h - what simulated ranks save, and what a ledger must look like. A rank's object has bytes
 * of its own (objects.h) and its part a note that says of which save it is; so whoever reads a
 * committed save can tell a mixture of two from either.
 *
 * The book is the log as it stands on the disk, read past the system calls: a list of states, each
 * of which must follow from the one before it by one legal change. Since a log is one order of all
 * changes, an answer is linearizable if one of the states that stood between its question and
 * itself explains it.
 */
#ifndef WEIR_SIM_SAVES_H
#define WEIR_SIM_SAVES_H

#include "model.h"
#include "store/view.h"

#define SIM_LEDGER "run"
enum { SIM_RECORDS_MAX = 120 };

/* The token of an incarnation. */
void sim_token(uint8_t token[WEIR_TOKEN_BYTES], unsigned incarnation);
struct weir_save sim_save(const char *name, uint64_t attempt, uint64_t number, uint32_t parts);
/* Forgets whose values are whose. */
void sim_saves_reset(void);

/* ---- what ranks do ---- */

/* Writes the objects of a part (part 0 has a table, too), or finds those that an earlier try of the
 * same rank wrote; refs has room for two. */
int sim_part_objects(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part,
                     struct weir_ref *refs, uint32_t *count);
/* The whole of it: objects, then the part. */
int sim_part_put(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part,
                 bool *committed);
/* The same, and dies before it looks for its sibling. Nothing may fail. */
void sim_part_leave(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part);
/* Is the part published? Past the system calls. */
bool sim_part_is_there(const struct weir_save *save, uint32_t part);
int sim_table_put(weir_store *store, const char *key, const struct weir_save *save,
                  uint8_t digest[WEIR_SHA256_BYTES]);
/* Ends the test if the table is not that save's. */
void sim_table_check(const struct weir_table *table, const struct weir_save *save);

/* Reads everything a view shows. Ends the test at anything that is of another save or part. */
int sim_view_read(struct weir_view *view);
/* The same of an entry that may not be the newest of its name. */
int sim_entry_read(struct weir_ledger *ledger, const struct weir_ledger_entry *entry);

/* Ends the test if any file of a rank, sealed or not, has not just the bytes it was made with: they
 * are there before its name is, and as long as that. */
void sim_files_check(void);
/* The file of a deleted object, ready to be written over. */
void sim_spare_plant(size_t size);

/* ---- the book ---- */

struct sim_book {
    struct weir_ledger_state states[SIM_RECORDS_MAX + 1]; /* by number; 0: before the first */
    uint64_t head;
};

/* The number of the newest record right now. */
uint64_t sim_book_head(void);
/* Reads all records; ends the test unless they are a chain of legal changes. */
void sim_book_open(struct sim_book *book);
void sim_book_close(struct sim_book *book);
/* Is `now` what `before` was, or its beginning? Ends the test if not. */
void sim_book_check_prefix(const struct sim_book *now, const struct sim_book *before);

/* ---- afterwards ---- */

/* The log is a chain and every live entry is whole. Gives the head. */
void sim_saves_check(weir_store *store, struct weir_ledger_state *head);
/* Runs gc twice (WEIR_GC_NOW, alone): afterwards there are no leases, and of saves only what live
 * entries consist of. `others` names keys of other objects, with NULL at the end. */
void sim_saves_collect(weir_store *store, const char *const *others);

#endif
