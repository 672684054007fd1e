/* lease.h - a lease on something that gc would delete: readers share it, gc wants it alone.
 *
 * A lease is a lock on a file at .weir/lease/<key>~, held while the handle is open; the kernel
 * drops it when its holder dies. It holds among the processes of one machine, and of several where
 * their file system's locks do (NFS, Lustre with flock, CephFS). Where there are no locks
 * (-ENOTSUP), or a reader may not make that file, only the store's grace protects a reader.
 */
#ifndef WEIR_STORE_LEASE_H
#define WEIR_STORE_LEASE_H

#include "store/store.h"

/* 0 and *out, which weir_handle_close() gives back; *out is NULL where there are no leases. */
int weir_lease_share(struct weir_handle **out, weir_store *store, const char *key);
/* The same alone, without waiting: -EBUSY while somebody shares it. */
int weir_lease_take(struct weir_handle **out, weir_store *store, const char *key);

#endif
