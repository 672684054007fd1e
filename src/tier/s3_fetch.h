/* s3_fetch.h - one small HTTP request and its whole answer, for credentials: the data path has its
 * own. Any thread; it waits for the answer, at most until its deadline.
 */
#ifndef WEIR_TIER_S3_FETCH_H
#define WEIR_TIER_S3_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Around all that is done for one set of credentials. */
struct weir_s3_try {
    uint64_t deadline_ns;    /* of the monotonic clock */
    const atomic_bool *stop; /* set: give up at once */
    const char *ca_file;     /* NULL: the system's */
};

struct weir_s3_fetch {
    const struct weir_s3_try *within;
    const char *what; /* for texts: "the container's credentials" */
    const char *method, *url, *body;
    const char *const *lines; /* headers, ended by NULL */
    bool direct; /* a service of this machine: no proxy, and it answers soon or never */

    /* Out. */
    long status;
    char *answer; /* terminated by a NUL; wiped by weir_s3_fetch_free() */
    size_t size;
    int64_t date_s; /* the server's clock; ours if it does not say */
};

/* Answers of any status are answers; 429 and 5xx are asked for again a few times first. -ETIMEDOUT,
 * -ECANCELED (stop), -EMSGSIZE, -ECONNREFUSED or -EIO, with a text. */
int weir_s3_fetch(struct weir_s3_fetch *fetch);
void weir_s3_fetch_free(struct weir_s3_fetch *fetch);
/* Before libcurl is first used, by any thread. */
int weir_s3_curl_begin(void);
/* Frees lines of a request, and wipes them: tokens and signatures are in them. */
struct curl_slist;
void weir_s3_lines_free(struct curl_slist *lines);

#endif
