/* nfs_client.c - see nfs_client.h. One lock around everything: it is no race of its own. */
#include "nfs_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "test.h"
#include "util/sys.h"

enum { FDS = 4096, NAMES = 512, SILLIES = 64 };

struct nfs_client nfs_client;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool open, read_only, cached;
    uint64_t ino;
    struct weir_sys_stat st; /* what is remembered */
} fds[FDS];
/* What is remembered of names: a ring, in which new ones replace the oldest. */
static struct {
    uint64_t dir; /* 0: nothing */
    char name[64];
    int code;
    struct weir_sys_stat st;
} names[NAMES];
static unsigned names_next;
static struct {
    uint64_t ino; /* 0: free */
    int dir;
    char name[40];
} sillies[SILLIES];

static uint64_t ino_of(int fd)
{
    struct weir_sys_stat st;
    return fd < 0 || weir_sys_real.fstat(fd, &st) ? 0 : st.ino;
}

/* What others removed is not known to the server any more. */
static bool is_stale(int fd)
{
    struct weir_sys_stat st;
    return fd >= 0 && !weir_sys_real.fstat(fd, &st) && !st.nlink;
}

static bool is_lost(unsigned one_in)
{
    static unsigned count;
    return one_in && ++count % one_in == 0;
}

/* ---- what is remembered ---- */

static bool is_special(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/') ||
           strlen(name) >= sizeof names[0].name;
}

static int find_name(uint64_t dir, const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (dir && names[i].dir == dir && !strcmp(names[i].name, name))
            return i;
    return -1;
}

static void forget_name(int dirfd, const char *name)
{
    int at = find_name(ino_of(dirfd), name);
    if (at >= 0)
        names[at].dir = 0;
}

static void keep_name(uint64_t dir, const char *name, int code, const struct weir_sys_stat *st)
{
    if (!dir || is_special(name))
        return;
    int at = find_name(dir, name);
    if (at < 0)
        at = (int)(names_next++ % NAMES);
    names[at].dir = dir;
    names[at].code = code;
    strcpy(names[at].name, name);
    if (!code)
        names[at].st = *st;
}

static void forget_file(uint64_t ino)
{
    for (int i = 0; i < FDS; i++)
        if (fds[i].open && fds[i].ino == ino)
            fds[i].cached = false;
}

static bool is_open(uint64_t ino)
{
    for (int i = 0; i < FDS; i++)
        if (fds[i].open && fds[i].ino == ino)
            return true;
    return false;
}

/* ---- calls ---- */

static int open_locked(int dirfd, const char *path, int flags, unsigned mode)
{
    uint64_t dir = ino_of(dirfd);
    int at = is_special(path) ? -1 : find_name(dir, path);
    if (is_stale(dirfd))
        return -ESTALE;
    if (at >= 0 && names[at].code == -ENOENT && !(flags & O_CREAT))
        return -ENOENT;
    int fd = weir_sys_real.open(dirfd, path, flags, mode);
    if (fd == -ENOENT && !(flags & O_CREAT))
        keep_name(dir, path, fd, NULL);
    if (fd < 0)
        return fd;
    if (at >= 0)
        names[at].dir = 0;
    if (flags & O_EXCL && is_lost(nfs_client.lose_creates)) {
        weir_sys_real.close(fd);
        return -EEXIST;
    }
    CHECK(fd < FDS);
    fds[fd].open = true;
    fds[fd].read_only = (flags & O_ACCMODE) == O_RDONLY;
    fds[fd].cached = !weir_sys_real.fstat(fd, &fds[fd].st);
    fds[fd].ino = fds[fd].st.ino;
    return fd;
}

static int nfs_open(int dirfd, const char *path, int flags, unsigned mode)
{
    pthread_mutex_lock(&lock);
    int fd = open_locked(dirfd, path, flags, mode);
    pthread_mutex_unlock(&lock);
    return fd;
}

static int nfs_close(int fd)
{
    pthread_mutex_lock(&lock);
    uint64_t ino = fds[fd].ino;
    fds[fd].open = false;
    int code = weir_sys_real.close(fd);
    for (int i = 0; i < SILLIES && !is_open(ino); i++)
        if (sillies[i].ino && sillies[i].ino == ino) {
            weir_sys_real.unlink(sillies[i].dir, sillies[i].name, false);
            weir_sys_real.close(sillies[i].dir);
            sillies[i].ino = 0;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

static ssize_t nfs_pread(int fd, void *buf, size_t size, uint64_t off)
{
    return is_stale(fd) ? -ESTALE : weir_sys_real.pread(fd, buf, size, off);
}

static ssize_t nfs_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    pthread_mutex_lock(&lock);
    forget_file(fds[fd].ino);
    pthread_mutex_unlock(&lock);
    return is_stale(fd) ? -ESTALE : weir_sys_real.pwrite(fd, buf, size, off);
}

static int nfs_ftruncate(int fd, uint64_t size)
{
    pthread_mutex_lock(&lock);
    forget_file(fds[fd].ino);
    pthread_mutex_unlock(&lock);
    return weir_sys_real.ftruncate(fd, size);
}

static int nfs_fallocate(int fd, uint64_t off, uint64_t len)
{
    (void)fd, (void)off, (void)len;
    return -EOPNOTSUPP;
}

static int link_locked(int olddir, const char *old, int newdir, const char *name)
{
    struct weir_sys_stat st;
    forget_name(newdir, name);
    if (is_stale(newdir) || is_stale(olddir))
        return -ESTALE;
    if (nfs_client.no_links)
        return -EPERM;
    if (nfs_client.soft_links)
        return symlinkat(old, newdir, name) < 0 ? -errno : 0;
    int code = weir_sys_real.link(olddir, old, newdir, name);
    if (code)
        return code;
    if (is_lost(nfs_client.lose_links))
        return -EEXIST; /* and nothing is learned of the file */
    if (!weir_sys_real.stat(newdir, name, &st))
        forget_file(st.ino);
    return 0;
}

static int nfs_link(int olddir, const char *old, int newdir, const char *name)
{
    pthread_mutex_lock(&lock);
    int code = link_locked(olddir, old, newdir, name);
    pthread_mutex_unlock(&lock);
    return code;
}

static int make_silly(int dirfd, const char *path, uint64_t ino)
{
    int at = 0;
    while (at < SILLIES && sillies[at].ino)
        at++;
    CHECK(at < SILLIES);
    snprintf(sillies[at].name, sizeof sillies[at].name, ".nfs%016llx%08x", (unsigned long long)ino,
             ++nfs_client.silly);
    if (renameat(dirfd, path, dirfd, sillies[at].name))
        return -errno;
    sillies[at].ino = ino;
    sillies[at].dir = weir_sys_real.open(dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
    CHECK(sillies[at].dir >= 0);
    return 0;
}

static int unlink_locked(int dirfd, const char *path, bool is_dir)
{
    struct weir_sys_stat st;
    if (is_stale(dirfd))
        return -ESTALE;
    forget_name(dirfd, path);
    int code = weir_sys_real.stat(dirfd, path, &st);
    if (code || is_dir)
        return code ? code : weir_sys_real.unlink(dirfd, path, true);
    if (is_open(st.ino))
        code = strncmp(path, ".nfs", 4) ? make_silly(dirfd, path, st.ino) : -EBUSY;
    else
        code = weir_sys_real.unlink(dirfd, path, false);
    forget_file(st.ino);
    return !code && is_lost(nfs_client.lose_unlinks) ? -ENOENT : code;
}

static int nfs_unlink(int dirfd, const char *path, bool is_dir)
{
    pthread_mutex_lock(&lock);
    int code = unlink_locked(dirfd, path, is_dir);
    pthread_mutex_unlock(&lock);
    return code;
}

static int nfs_mkdir(int dirfd, const char *path, unsigned mode)
{
    pthread_mutex_lock(&lock);
    int code = is_stale(dirfd) ? -ESTALE : weir_sys_real.mkdir(dirfd, path, mode);
    forget_name(dirfd, path);
    if (!code && is_lost(nfs_client.lose_mkdirs))
        code = -EEXIST;
    pthread_mutex_unlock(&lock);
    return code;
}

static int nfs_stat(int dirfd, const char *path, struct weir_sys_stat *st)
{
    pthread_mutex_lock(&lock);
    uint64_t dir = ino_of(dirfd);
    int at = is_special(path) ? -1 : find_name(dir, path), code = is_stale(dirfd) ? -ESTALE : 0;
    if (!code && at >= 0) {
        code = names[at].code;
        *st = names[at].st;
    } else if (!code) {
        code = weir_sys_real.stat(dirfd, path, st);
        if (!code || code == -ENOENT)
            keep_name(dir, path, code, st);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int nfs_fstat(int fd, struct weir_sys_stat *st)
{
    pthread_mutex_lock(&lock);
    int code = 0;
    if (!fds[fd].cached && is_stale(fd))
        code = -ESTALE;
    else if (!fds[fd].cached)
        fds[fd].cached = !(code = weir_sys_real.fstat(fd, &fds[fd].st));
    if (!code)
        *st = fds[fd].st;
    pthread_mutex_unlock(&lock);
    return code;
}

static int nfs_fstat_now(int fd, struct weir_sys_stat *st)
{
    pthread_mutex_lock(&lock);
    uint64_t ino = ino_of(fd);
    nfs_client.asked++;
    forget_file(ino);
    for (int i = 0; i < NAMES; i++)
        if (names[i].dir == ino)
            names[i].dir = 0;
    pthread_mutex_unlock(&lock);
    return nfs_fstat(fd, st);
}

static int nfs_fchmod(int fd, unsigned mode)
{
    pthread_mutex_lock(&lock);
    forget_file(fds[fd].ino);
    pthread_mutex_unlock(&lock);
    return weir_sys_real.fchmod(fd, mode);
}

/* Locks are ranges of bytes there, and need the right to write. */
static int nfs_flock(int fd, int operation)
{
    if (nfs_client.no_locks)
        return -ENOLCK;
    if (operation & LOCK_EX && fds[fd].read_only)
        return -EBADF;
    return is_stale(fd) ? -ESTALE : weir_sys_real.flock(fd, operation);
}

static int nfs_space(int fd, struct weir_sys_space *space)
{
    int code = weir_sys_real.space(fd, space);
    space->magic = NFS_SUPER_MAGIC;
    space->is_local = false;
    return code;
}

void nfs_client_arm(void)
{
    static struct weir_sys table;
    table = weir_sys_real;
    table.open = nfs_open;
    table.close = nfs_close;
    table.pread = nfs_pread;
    table.pwrite = nfs_pwrite;
    table.ftruncate = nfs_ftruncate;
    table.fallocate = nfs_fallocate;
    table.link = nfs_link;
    table.unlink = nfs_unlink;
    table.mkdir = nfs_mkdir;
    table.stat = nfs_stat;
    table.fstat = nfs_fstat;
    table.fstat_now = nfs_fstat_now;
    table.fchmod = nfs_fchmod;
    table.flock = nfs_flock;
    table.space = nfs_space;
    weir_sys = &table;
}
