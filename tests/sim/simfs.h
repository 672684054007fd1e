/* simfs.h - a file system in memory: a tree of inodes (inode.h), and the descriptors and locks of
 * the simulated processes. Answers are -errno, as of the system calls they stand for. It has no
 * threads, no clock and no chance of its own: the machine around it (sim.h) provides them.
 */
#ifndef WEIR_SIM_SIMFS_H
#define WEIR_SIM_SIMFS_H

#include <sys/types.h>

#include "inode.h"
#include "util/sys.h"

/* Descriptors begin here, so that none is mistaken for one of the test's own. */
enum { SIM_FD_BASE = 1000, SIM_ROOT_INO = 1 };

struct sim_file {
    unsigned ino; /* 0: not open */
    int flags, owner, lock;
    uint64_t cookie; /* of the last entry listed */
};

/* What file systems differ in. */
struct sim_quirks {
    bool no_direct;   /* O_DIRECT is refused by open(2) */
    bool late_direct; /* O_DIRECT is refused by the transfer */
    bool no_fallocate;
    bool no_types;      /* getdents64(2) does not say what an entry is */
    bool user;          /* modes are checked: not root */
    unsigned dents_max; /* entries in one answer; 0: what fits */
};

struct sim_fs {
    struct sim_inode **inodes; /* by number; never freed before the end: descriptors, synced
                                  entries and unsynced operations may all still mean one */
    size_t inodes_count, inodes_room;
    struct sim_file *files;
    size_t files_count, files_room;
    struct sim_quirks quirks;
    int64_t now_ns;   /* for time stamps */
    uint64_t unlocks; /* how often a lock was given up: those who wait look again */
};

struct sim_fs *sim_fs_new(void);
void sim_fs_free(struct sim_fs *fs);
/* A copy of one that has nothing unsynced and nothing open. */
struct sim_fs *sim_fs_copy(const struct sim_fs *fs);

int sim_fs_open(struct sim_fs *fs, int owner, int dirfd, const char *path, int flags,
                unsigned mode);
int sim_fs_close(struct sim_fs *fs, int fd);
ssize_t sim_fs_pread(struct sim_fs *fs, int fd, void *buf, size_t size, uint64_t off);
ssize_t sim_fs_pwrite(struct sim_fs *fs, int fd, const void *buf, size_t size, uint64_t off);
int sim_fs_sync(struct sim_fs *fs, int fd, bool failed);
int sim_fs_fallocate(struct sim_fs *fs, int fd, uint64_t off, uint64_t len);
int sim_fs_ftruncate(struct sim_fs *fs, int fd, uint64_t size);
int sim_fs_link(struct sim_fs *fs, int olddir, const char *old, int newdir, const char *name);
int sim_fs_unlink(struct sim_fs *fs, int dirfd, const char *path, bool dir);
int sim_fs_mkdir(struct sim_fs *fs, int dirfd, const char *path, unsigned mode);
int sim_fs_stat(struct sim_fs *fs, int dirfd, const char *path, struct weir_sys_stat *st);
int sim_fs_fstat(struct sim_fs *fs, int fd, struct weir_sys_stat *st);
int sim_fs_fchmod(struct sim_fs *fs, int fd, unsigned mode);
int sim_fs_touch(struct sim_fs *fs, int fd);
/* -EBUSY while it is open twice. */
int sim_fs_recyclable(struct sim_fs *fs, int fd);
ssize_t sim_fs_getdents(struct sim_fs *fs, int fd, void *buf, size_t size);
/* Never waits: -EWOULDBLOCK. */
int sim_fs_flock(struct sim_fs *fs, int fd, int operation);

/* Closes what a process has open (-1: all of them). */
void sim_fs_close_all(struct sim_fs *fs, int owner);
size_t sim_fs_open_count(const struct sim_fs *fs);
void sim_fs_sync_all(struct sim_fs *fs);
/* Power loss: nothing is open any more, and every inode is what its synced state and a part of
 * what came after make it. */
void sim_fs_crash(struct sim_fs *fs, struct weir_rng *rng);

/* ---- for tests, past the system calls ---- */

/* Makes a file, synced, with the directories that lead to it. */
void sim_fs_plant(struct sim_fs *fs, const char *path, const void *data, size_t size);
/* Makes a symbolic link, synced; it leads nowhere. */
void sim_fs_plant_link(struct sim_fs *fs, const char *path);
/* NULL if there is none. */
const struct sim_inode *sim_fs_at(const struct sim_fs *fs, const char *path);
/* Calls fn for all that is below path, directories too, with names relative to path. */
typedef void (*sim_fs_fn)(void *arg, const char *name, unsigned ino, const struct sim_inode *inode);
void sim_fs_each(const struct sim_fs *fs, const char *path, sim_fs_fn fn, void *arg);

#endif
