/* lockfile.h - locks that are files: the store's lock, held for moments, and leases on names, which
 * their holders share or have alone. The kernel drops them when the holder dies. Any thread may
 * call.
 */
#ifndef WEIR_IO_LOCKFILE_H
#define WEIR_IO_LOCKFILE_H

#include <stdbool.h>

#include "io/dirs.h"
#include "util/req.h"

/* Takes the lock `name` alone and tries so often, a millisecond apart. A descriptor, -EBUSY or
 * another -errno, with a text. */
int weir_lockfile_take(struct weir_dirs *dirs, const char *name, int tries_max);
void weir_lockfile_release(int fd);

/* Holds `name` until the handle is closed, with others or alone; who had it alone leaves nothing
 * behind. -EBUSY, -ENOTSUP where there are no locks. A share is waited for, for a second: it is
 * refused only while somebody has the name alone for moments. */
int weir_lockfile_lease(struct weir_handle **out, struct weir_dirs *dirs, const char *name,
                        bool alone);

#endif
