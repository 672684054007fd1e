/* tmpdir.h - a directory of this program's own below $TMPDIR or /tmp, removed when the program
 * ends (not when a forked child of it does), and what tests do to files in it behind Weir's back.
 */
#ifndef WEIR_TESTS_TMPDIR_H
#define WEIR_TESTS_TMPDIR_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static struct {
    char path[PATH_MAX];
    pid_t owner;
} tmpdir_state;

static inline int tmpdir_drop_one(const char *path, const struct stat *st, int type,
                                  struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static inline void tree_remove(const char *path)
{
    nftw(path, tmpdir_drop_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tmpdir_remove(void)
{
    if (tmpdir_state.owner == getpid())
        tree_remove(tmpdir_state.path);
}

/* The program's directory, made at the first call. */
static inline const char *tmpdir(void)
{
    if (!tmpdir_state.owner) {
        const char *base = getenv("TMPDIR");
        snprintf(tmpdir_state.path, sizeof tmpdir_state.path, "%s/weir-test-XXXXXX",
                 base && *base ? base : "/tmp");
        CHECK(mkdtemp(tmpdir_state.path));
        tmpdir_state.owner = getpid();
        atexit(tmpdir_remove);
    }
    return tmpdir_state.path;
}

/* A path in it that no other call of this program gave; nothing is there. Stays valid for the
 * next 255 calls. */
static inline const char *tmp_path(const char *name)
{
    static unsigned number;
    static char kept[256][PATH_MAX + 64];
    char *path = kept[number % 256];
    snprintf(path, sizeof kept[0], "%s/%s-%u", tmpdir(), name, number);
    number++;
    return path;
}

/* DIR/NAME; one of a few buffers in turn. */
static inline const char *path_in(const char *dir, const char *name)
{
    static _Thread_local char paths[8][2 * PATH_MAX];
    static _Thread_local unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static inline bool path_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline void file_write(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
    close(fd);
}

/* What is in the file, and its size; the caller frees it. */
static inline void *file_read(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    char *data = malloc((size_t)st.st_size + 1);
    CHECK(data);
    CHECK_EQ(pread(fd, data, (size_t)st.st_size, 0), st.st_size);
    close(fd);
    *size = (size_t)st.st_size;
    return data;
}

/* Opens what Weir keeps read-only, as vandals do. */
static inline int file_force_open(const char *path)
{
    CHECK(chmod(path, 0644) == 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static inline void fd_flip(int fd, uint64_t bit)
{
    uint8_t byte;
    CHECK_EQ(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (uint8_t)(1u << (bit % 8));
    CHECK_EQ(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

/* Takes the file out of the page cache, so that reads of it go to the device. */
static inline void fd_drop_cache(int fd)
{
    CHECK(fdatasync(fd) == 0);
    CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
}

static inline void file_drop_cache(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    fd_drop_cache(fd);
    close(fd);
}

static unsigned tree_files_seen;
static inline int tree_count_one(const char *path, const struct stat *st, int type,
                                 struct FTW *where)
{
    (void)path, (void)st, (void)where;
    tree_files_seen += type == FTW_F;
    return 0;
}

/* How many files are below a directory; 0 if it is not there. */
static inline unsigned tree_files(const char *path)
{
    tree_files_seen = 0;
    nftw(path, tree_count_one, 16, FTW_PHYS);
    return tree_files_seen;
}

#endif
