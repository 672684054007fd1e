/* pack_place.h - where a dataset is to be written: a store and a prefix in it. What lies below a
 * store is written through that; anything else becomes a store, if nothing is there.
 */
#ifndef WEIR_CLI_PACK_PLACE_H
#define WEIR_CLI_PACK_PLACE_H

#include "cli/cli.h"

struct pack_place {
    weir_store *store;
    char *prefix; /* "" or "a/b/" */
};

int pack_place_open(struct cli *cli, struct pack_place *out, const char *url);
void pack_place_close(struct pack_place *place);

#endif
