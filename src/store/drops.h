/* drops.h - data that is removed while its remover goes on: many removals at once, and no answer
 * that anybody asks for. What stays is unsealed: gc takes it. Any thread may add.
 */
#ifndef WEIR_STORE_DROPS_H
#define WEIR_STORE_DROPS_H

#include "store/store.h"

struct weir_drops;

/* NULL where there is no memory: then the remover waits itself. */
struct weir_drops *weir_drops_open(weir_store *store);
/* Waits for those under way. */
void weir_drops_close(struct weir_drops *drops);
/* Removes it, sooner or later; waits for room. reuse: as of weir_remove_object(). */
void weir_drops_add(struct weir_drops *drops, const char *name, bool reuse);

#endif
