/* inode.h - one simulated file or directory, as it is and as it would be after a power loss.
 *
 * What was synced is certain. Everything since is a list of changes of which, at a power loss, any
 * part survives: of a file each 512-byte sector of each write, and each change of size; of a
 * directory, for each name on its own, the operations on it up to some point. A file whose sync
 * failed is the kernel's way: a later sync says yes and does not write what the failed one dropped.
 * (A directory whose sync failed is synced by the next one: file systems log their metadata, and
 * stop altogether when the log cannot be written.)
 */
#ifndef WEIR_SIM_INODE_H
#define WEIR_SIM_INODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "util/rng.h"

enum { SIM_NAME_MAX = 96, SIM_SECTOR = 512 };

/* The numbers of getdents64(2). */
enum sim_type { SIM_DIR = 4, SIM_FILE = 8, SIM_LINK = 10 };

struct sim_entry {
    char name[SIM_NAME_MAX];
    unsigned ino;
    uint64_t cookie; /* listing goes by these: an entry is found once however others come and go */
};

struct sim_names {
    struct sim_entry *at;
    size_t count, room;
};

/* An unsynced change of a file: bytes, or (bytes NULL) a new size. */
struct sim_change {
    uint8_t *bytes;
    uint64_t off, size;
    bool dropped; /* by a failed sync */
};

struct sim_inode {
    enum sim_type type;
    unsigned mode, links; /* of a removed directory, links is 0 */
    unsigned parent;      /* of a directory */
    int64_t mtime_ns;

    struct sim_image *live, *synced;
    struct sim_change *changes;
    size_t changes_count, changes_room;

    struct sim_names names, synced_names;
    struct sim_names ops; /* unsynced, in order: a name now stands for ino, or (0) for nothing */
    uint64_t cookie;
};

struct sim_inode *sim_inode_new(enum sim_type type, unsigned mode, int64_t mtime_ns);
void sim_inode_free(struct sim_inode *inode);
/* A copy of one that has nothing unsynced. */
struct sim_inode *sim_inode_copy(const struct sim_inode *inode);

void sim_inode_write(struct sim_inode *inode, const void *buf, size_t size, uint64_t off);
void sim_inode_resize(struct sim_inode *inode, uint64_t size);
/* The inode number of a name in a directory; 0: none. */
unsigned sim_inode_find(const struct sim_inode *dir, const char *name);
/* ino 0 removes the name. */
void sim_inode_name(struct sim_inode *dir, const char *name, unsigned ino);

void sim_inode_sync(struct sim_inode *inode);
void sim_inode_sync_failed(struct sim_inode *inode);
/* Power loss: becomes one of the things it may legally be. */
void sim_inode_crash(struct sim_inode *inode, struct weir_rng *rng);

#endif
