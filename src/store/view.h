/* view.h - reading what a ledger has committed: its parts, their objects and tables, each checked
 * against what the log names. While a view is open gc leaves its save alone (lease.h); where leases
 * do not reach, a save that was retired and deleted meanwhile answers -ESTALE, never other bytes.
 *
 * A handle belongs to one thread at a time.
 */
#ifndef WEIR_STORE_VIEW_H
#define WEIR_STORE_VIEW_H

#include "store/set.h"
#include "store/table.h"

struct weir_view;

/* The newest live save of that name; name NULL: the newest of all. -ENOENT if there is none.
 * Borrows ledger. */
int weir_view_open(struct weir_view **out, struct weir_ledger *ledger, const char *name);
/* Just that save; -ESTALE if it is not live. */
int weir_view_open_save(struct weir_view **out, struct weir_ledger *ledger,
                        const struct weir_save *save);
/* Just that save, as an entry of a damaged log has it: the log is not asked whether it is live. */
int weir_view_open_entry(struct weir_view **out, struct weir_ledger *ledger,
                         const struct weir_ledger_entry *entry);
void weir_view_close(struct weir_view *view);
/* Borrowed. */
const struct weir_ledger_entry *weir_view_entry(const struct weir_view *view);
const char *weir_view_prefix(const struct weir_view *view);
weir_store *weir_view_store(const struct weir_view *view);

/* The parts in order, from 0; points into the view. */
int weir_view_part(struct weir_view *view, uint32_t number, struct weir_part *out);
/* Opens what a part refers to; -EBADMSG if it is not just that. */
int weir_view_object(struct weir_view *view, const struct weir_ref *ref, weir_object **out);
int weir_view_table(struct weir_view *view, const struct weir_ref *ref, struct weir_table **out);

#endif
