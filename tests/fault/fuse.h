/* fuse.h - a FUSE file system without libfuse: a process that passes everything through to another
 * directory. It takes no space ahead and does not tell the types of directory entries, as many
 * network file systems do not.
 */
#ifndef WEIR_FAULT_FUSE_H
#define WEIR_FAULT_FUSE_H

/* Mounts it at path. NULL, or why that cannot be. It ends with the mount. */
const char *fuse_mount(const char *path, const char *backing);

#endif
