/* sys.h - the one table of system calls.
 *
 * Everything that touches files, the clock, randomness or the allocator goes through weir_sys, so
 * that a test can fail the n-th call, tear writes, lose unsynced data, or stop time. All entries
 * return -errno instead of setting errno. The table is swapped only while no handle is open.
 * (io_uring transfers bypass the table: under another table the uring engine is not offered.)
 */
#ifndef WEIR_UTIL_SYS_H
#define WEIR_UTIL_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weir_sys_stat {
    uint64_t dev, ino, size, nlink;
    int64_t mtime_ns;
    unsigned mode, uid, gid; /* mode: permissions only */
    bool is_dir, is_file, is_link;
};

struct weir_sys_space {
    uint64_t free_bytes, total_bytes;
    uint64_t magic; /* which kind of file system */
    bool is_local;  /* a file system of this machine that overwrites in place: ext4, XFS */
};

enum weir_clock {
    WEIR_CLOCK_REAL, /* Unix time: shown to people, never compared */
    WEIR_CLOCK_BOOT, /* since boot, suspend included: ages of writers */
    WEIR_CLOCK_MONO  /* durations */
};

struct weir_sys {
    int (*open)(int dirfd, const char *path, int flags, unsigned mode);
    int (*close)(int fd);
    ssize_t (*pread)(int fd, void *buf, size_t size, uint64_t off);
    ssize_t (*pwrite)(int fd, const void *buf, size_t size, uint64_t off);
    int (*fsync)(int fd);
    int (*fdatasync)(int fd);
    int (*fallocate)(int fd, uint64_t off, uint64_t len);
    int (*ftruncate)(int fd, uint64_t size);
    int (*link)(int olddir, const char *old, int newdir, const char *name);
    int (*unlink)(int dirfd, const char *path, bool dir);
    int (*mkdir)(int dirfd, const char *path, unsigned mode);
    int (*stat)(int dirfd, const char *path, struct weir_sys_stat *st); /* follows no link */
    int (*fstat)(int fd, struct weir_sys_stat *st);
    /* The same, asked of a server that has it anew, whatever is remembered here; what is remembered
     * of names in a directory is then as new. */
    int (*fstat_now)(int fd, struct weir_sys_stat *st);
    /* Where it lies, without a link in the way: an absolute path, which is cut where there is no
     * room for it. */
    int (*path_of)(int fd, char *out, size_t room);
    int (*fchmod)(int fd, unsigned mode);
    int (*touch)(int fd); /* modified now */
    /* 0 if the file's next owner would get nothing but its bytes, owner and mode with it: -EBUSY
     * while anybody else has it open or mapped, -EPERM if it has an ACL or other attributes. */
    int (*recyclable)(int fd);
    ssize_t (*getdents)(int fd, void *buf, size_t size);
    int (*flock)(int fd, int operation);
    int (*space)(int fd, struct weir_sys_space *space);
    /* The first `size` bytes of a file, read-only, as they are on disk when they are touched. */
    int (*map)(int fd, size_t size, void **out);
    void (*unmap)(void *data, size_t size);
    /* All of these mapped bytes will be wanted, in any order: where the kernel can, they come and
     * are mapped in huge pages. */
    void (*map_all)(void *data, size_t size);
    /* 1 if all pages of these mapped bytes are in memory, 0 if not or not known. */
    int (*map_resident)(const void *data, size_t size);
    /* 1 if all of the range is in the page cache, 0 if not or not known. */
    int (*resident)(int fd, uint64_t off, uint64_t len);
    int (*set_direct)(int fd, bool direct); /* transfers go around the page cache, or through it */
    /* What the page cache may do with a file: POSIX_FADV_…, of all of it. */
    int (*advise)(int fd, int advice);
    uint64_t (*now_ns)(enum weir_clock clock);
    void (*sleep_ns)(uint64_t ns);
    int (*random)(void *buf, size_t size);
    void *(*realloc)(void *ptr, size_t size);
    /* Runs a program found in PATH (argv ends with NULL) for at most ten seconds, without input.
     * The beginning of what it writes comes into out, as a text; its complaints go nowhere. 0 if it
     * says that it succeeded, -ENOENT if there is none, -ETIMEDOUT, -EIO if it failed. */
    int (*run)(const char *const *argv, char *out, size_t size);
};

extern const struct weir_sys weir_sys_real;
extern const struct weir_sys *weir_sys;

/* Zeroed memory; NULL when there is none. Freed with free(). */
void *weir_alloc(size_t size);
/* Like realloc; the old block stays when this returns NULL. */
void *weir_realloc(void *ptr, size_t size);
char *weir_strdup(const char *text);

#endif
