/* nfs_client.h - a table of system calls that behaves as an NFS client does, over any directory:
 * other clients are whoever uses the directory without it.
 *
 * It remembers names that are not there, and attributes, until it asks its server anew
 * (fstat_now) or changes them itself; opens by name are fresh, as close-to-open demands. What is
 * removed while it is open here gets a silly name until it is closed; what others remove is stale.
 * Answers of its requests may get lost: it asks again, and hears that it is done already.
 */
#ifndef WEIR_TESTS_NFS_CLIENT_H
#define WEIR_TESTS_NFS_CLIENT_H

#include <stdbool.h>

struct nfs_client {
    unsigned lose_links, lose_mkdirs, lose_creates,
        lose_unlinks; /* one answer in so many; 0: none */
    bool no_locks;    /* flock: ENOLCK */
    bool no_links;    /* link: EPERM */
    bool soft_links;  /* link answers that it did, and makes a symbolic link */
    unsigned asked;   /* times that the server was asked anew */
    unsigned silly;   /* files that got a silly name */
};
extern struct nfs_client nfs_client;

/* Before anything is open. */
void nfs_client_arm(void);

#endif
