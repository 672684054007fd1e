/* place.h - where tests keep their stores: a directory of their own, and small file systems of any
 * kind mounted below it.
 *
 * Mounts are made in a mount namespace of the test's own and images are unlinked once they are
 * mounted, with loop devices that free themselves: whatever ends the test, nothing stays but,
 * at worst, an empty directory.
 */
#ifndef WEIR_FAULT_PLACE_H
#define WEIR_FAULT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACE_ROOM = 512 };

/* A new directory below base (NULL: $TMPDIR, else /tmp), removed with all in it when this process
 * ends by exit(). */
const char *place_temp(const char *base);
/* A base in memory with at least 1 GiB free, or NULL. */
const char *place_memory(void);
/* The one made last, and removing it now. */
const char *place_last(void);
void place_drop_last(void);

/* Enters a mount namespace of its own. NULL, or why that cannot be. */
const char *place_private(void);

/* Mounts a new file system and gives its directory. Kinds: tmpfs ramfs ext4 ext2 xfs btrfs overlay
 * fuse; ext4-4k, xfs-4k on a device with sectors of 4 KiB; tmpfs-inodes with room for 256 files.
 * NULL, or why there is none here. */
const char *place_mount(char path[PLACE_ROOM], const char *kind, uint64_t bytes);
/* Where images are made from now on; NULL: beside their mounts. When that place is full, writing to
 * the device fails. */
void place_images_in(const char *dir);
/* The image of the one mounted last, if it has one: what is done to it happens to the device. */
int place_last_image(void);
/* The same file system once more, read-only or not. */
const char *place_bind(char path[PLACE_ROOM], const char *from, bool read_only);
void place_unmount(const char *path);
/* Bytes free for anybody, after everything pending there was done. */
uint64_t place_free_bytes(const char *path);

#endif
