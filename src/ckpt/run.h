/* run.h - the log of a run: who opens it, what is found in it, and which of its checkpoints stay.
 */
#ifndef WEIR_CKPT_RUN_H
#define WEIR_CKPT_RUN_H

#include "store/ledger.h"
#include "weir.h"

enum { WEIR_KEEP_LAST_DEFAULT = 3, WEIR_RETIRED_GRACE_S_DEFAULT = 600 };

int weir_run_open(struct weir_ledger **out, weir_store *store, const char *run);
/* The same, and its state; -ENOENT if there is no such run. */
int weir_run_read(struct weir_ledger **out, struct weir_ledger_state *state, weir_store *store,
                  const char *run);
int weir_run_find_label(struct weir_ledger *ledger, const char *label, struct weir_save *save);
uint64_t weir_run_step(const struct weir_save *save);

/* Adds up what a save consists of; -EBADMSG if some of it is missing, or is not what the log
 * names. whole: tables are read, too. */
int weir_run_look(struct weir_ledger *ledger, const struct weir_ledger_entry *entry, bool whole,
                  uint64_t *size_bytes);
/* Calls fn with what there is to say of an entry. */
int weir_run_tell(struct weir_ledger *ledger, const struct weir_ledger_state *state,
                  const struct weir_ledger_entry *entry, uint32_t flags, weir_ckpt_fn fn,
                  void *arg);

/* Which live entries stay: counted from the newest of the state. */
struct weir_keep {
    uint32_t last, every; /* last 0: all */
    const struct weir_ledger_state *state;
    const struct weir_ledger_entry *good; /* one that stays in any case, or NULL */
};
uint64_t weir_keep_grace_ns(uint64_t grace_s);
bool weir_keep_is_surplus(void *keep, const struct weir_ledger_entry *entry);

#endif
