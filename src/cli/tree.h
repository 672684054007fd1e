/* tree.h - a local directory as a list of things to store. */
#ifndef WEIR_CLI_TREE_H
#define WEIR_CLI_TREE_H

#include <stdbool.h>

#include "cli/cli.h"
#include "cli/items.h"

/* Adds every plain file below dir, in order of names, with the key KEY/relative/path. What cannot
 * be stored (a link, unless follow; a pipe; a directory that cannot be read) becomes an item that
 * has failed already, so that it is neither lost silently nor in the way of the rest. A store in
 * there is left out, and that is said: else "weir put -r ." would store what it stored before. */
int tree_add(const struct cli *cli, struct items *items, const char *dir, const char *key,
             bool follow);

#endif
