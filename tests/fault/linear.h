/* linear.h - is the history of one key linearizable?
 *
 * Each operation takes place at one instant between its beginning and its answer; the key then
 * holds one content or nothing. A put that succeeded found nothing and left its content; one that
 * was told -EEXIST found something; a remove found something and left nothing, or was told -ENOENT;
 * a get saw what was there. What is in doubt may have taken place at any instant after it began, or
 * never; other failures did not. The search is for an order of such instants that explains every
 * answer: if there is none, the operations that could not be placed are printed.
 */
#ifndef WEIR_FAULT_LINEAR_H
#define WEIR_FAULT_LINEAR_H

#include "history.h"

enum { LINEAR_OPS = 1024 }; /* about one key; a history with more is refused */

/* final: what the key holds now that all are done; NULL: nothing. */
bool linear_key(const struct history *h, const char *key, const struct content *final);

#endif
