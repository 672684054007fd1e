/* traffic.h - what --stats prints at the end. */
#ifndef WEIR_CLI_TRAFFIC_H
#define WEIR_CLI_TRAFFIC_H

#include "weir.h"

/* A table on stderr: requests, errors, bytes and latencies of each kind. */
void traffic_print(weir_store *store);

#endif
