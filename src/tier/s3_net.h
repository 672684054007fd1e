/* s3_net.h - the requests under way: a few threads of our own, each with its connections, started
 * at first use. Any thread may submit.
 *
 * A trip is tried again, after a pause that grows and is never the same twice, while its time
 * lasts: when the network fails or the server says that it cannot now. How many are under way at
 * once follows what that brings (s3_gauge.h); the others wait in order.
 */
#ifndef WEIR_TIER_S3_NET_H
#define WEIR_TIER_S3_NET_H

#include "tier/s3_creds.h"
#include "tier/s3_trip.h"

struct weir_s3_net;

struct weir_s3_net_options {
    struct weir_s3_site *site;   /* borrowed */
    struct weir_s3_creds *creds; /* borrowed */
    const char *ca_file;         /* borrowed, or NULL */
    uint64_t timeout_ns, stall_ns;
    unsigned requests_max;
    /* Work that is made up when there is room for it: a trip, or NULL and when to ask again (in
     * nanoseconds; 0: when woken). spare: how many more may go. Called without the net's lock. */
    struct weir_s3_trip *(*feed)(void *arg, unsigned spare, uint64_t *wait_ns);
    void *feed_arg;
};

int weir_s3_net_open(struct weir_s3_net **out, const struct weir_s3_net_options *opts);
/* Waits for what is under way. */
void weir_s3_net_close(struct weir_s3_net *net);
/* Takes a trip on its way; its done() is called when that is over, maybe at once. */
void weir_s3_net_submit(struct weir_s3_net *net, struct weir_s3_trip *trip);
/* The same, and waits: true if it was ok. */
bool weir_s3_net_run(struct weir_s3_net *net, struct weir_s3_trip *trip);
/* Are there threads, from now on? false: with a text. */
bool weir_s3_net_start(struct weir_s3_net *net);
/* There may be something to feed on. Where there is no room for it, nobody is woken: whoever makes
 * room asks. */
void weir_s3_net_wake(struct weir_s3_net *net);
/* The server's clock as far as it is known. */
int64_t weir_s3_net_now_s(const struct weir_s3_net *net);

#endif
