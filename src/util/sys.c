/* sys.c - the real entries of the table in sys.h. Any thread may call them. */
#include "util/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* A system call interrupted by a signal the caller handles is simply made again. */
#define RETRY(call)                                                                                \
    ({                                                                                             \
        long rc_;                                                                                  \
        do                                                                                         \
            rc_ = (long)(call);                                                                    \
        while (rc_ < 0 && errno == EINTR);                                                         \
        rc_ < 0 ? -errno : rc_;                                                                    \
    })

static int real_open(int dirfd, const char *path, int flags, unsigned mode)
{
    return (int)RETRY(openat(dirfd, path, flags | O_CLOEXEC, mode));
}

static int real_close(int fd)
{
    /* EINTR from close(2) on Linux means closed. */
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static ssize_t real_pread(int fd, void *buf, size_t size, uint64_t off)
{
    return RETRY(pread(fd, buf, size, (off_t)off));
}

static ssize_t real_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    return RETRY(pwrite(fd, buf, size, (off_t)off));
}

static int real_fsync(int fd)
{
    return (int)RETRY(fsync(fd));
}

static int real_fdatasync(int fd)
{
    return (int)RETRY(fdatasync(fd));
}

/* Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which kills: space is often taken ahead of
 * what is written, and that is no reason to die. */
static int real_fallocate(int fd, uint64_t off, uint64_t len)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        off + len > limit.rlim_cur)
        return -EFBIG;
    return (int)RETRY(fallocate(fd, 0, (off_t)off, (off_t)len));
}

static int real_ftruncate(int fd, uint64_t size)
{
    return (int)RETRY(ftruncate(fd, (off_t)size));
}

static int real_link(int olddir, const char *old, int newdir, const char *name)
{
    return linkat(olddir, old, newdir, name, 0) < 0 ? -errno : 0;
}

static int real_unlink(int dirfd, const char *path, bool dir)
{
    return unlinkat(dirfd, path, dir ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

static int real_mkdir(int dirfd, const char *path, unsigned mode)
{
    return mkdirat(dirfd, path, mode) < 0 ? -errno : 0;
}

static void stat_fill(struct weir_sys_stat *out, const struct stat *st)
{
    *out = (struct weir_sys_stat){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .nlink = st->st_nlink,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .is_dir = S_ISDIR(st->st_mode),
        .is_file = S_ISREG(st->st_mode),
        .is_link = S_ISLNK(st->st_mode),
    };
}

static int real_stat(int dirfd, const char *path, struct weir_sys_stat *out)
{
    struct stat st;
    if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    stat_fill(out, &st);
    return 0;
}

static int real_fstat(int fd, struct weir_sys_stat *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    stat_fill(out, &st);
    return 0;
}

static int real_fchmod(int fd, unsigned mode)
{
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int real_touch(int fd)
{
    static const struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    return futimens(fd, times) < 0 ? -errno : 0;
}

/* Labels of the security modules are the directory's, not the file's own. */
static int has_attributes(int fd)
{
    static const char labels[] = "security.";
    char names[4096];
    ssize_t size = flistxattr(fd, names, sizeof names);
    if (size < 0)
        return errno == ENOTSUP ? 0 : -errno;
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
        if (strncmp(names + at, labels, sizeof labels - 1) != 0)
            return -EPERM;
    return 0;
}

/* The kernel grants a write lease only while there is no other descriptor and no mapping. It is
 * given back at once; whoever comes in between would have us told by SIGIO, which kills, so it is
 * a signal that does nothing. */
static int real_recyclable(int fd)
{
    int code = has_attributes(fd);
    if (code)
        return code;
    if (fcntl(fd, F_SETSIG, SIGURG) < 0)
        return -errno;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        code = errno == EAGAIN ? -EBUSY : -errno;
    else if (fcntl(fd, F_SETLEASE, F_UNLCK) < 0)
        code = -errno;
    fcntl(fd, F_SETSIG, 0);
    return code;
}

static ssize_t real_getdents(int fd, void *buf, size_t size)
{
    return RETRY(syscall(SYS_getdents64, fd, buf, size));
}

static int real_flock(int fd, int operation)
{
    return (int)RETRY(flock(fd, operation));
}

static int real_space(int fd, struct weir_sys_space *space)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return -errno;
    uint64_t unit = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
    space->free_bytes = (uint64_t)fs.f_bavail * unit;
    space->total_bytes = (uint64_t)fs.f_blocks * unit;
    space->is_local = fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC;
    return 0;
}

/* Before Linux 6.5 there is no cachestat(2): ask mincore(2) about a mapping. */
static int resident_by_mincore(int fd, uint64_t off, uint64_t len)
{
    enum { PAGE = 4096, PAGES_MAX = 4096 };
    unsigned char seen[PAGES_MAX];
    uint64_t begin = off & ~(uint64_t)(PAGE - 1);
    uint64_t span = off + len - begin, pages = (span + PAGE - 1) / PAGE;
    if (!pages || pages > PAGES_MAX)
        return 0;
    void *map = mmap(NULL, span, PROT_READ, MAP_SHARED, fd, (off_t)begin);
    if (map == MAP_FAILED)
        return 0;
    int all = mincore(map, span, seen) == 0;
    for (uint64_t i = 0; all && i < pages; i++)
        all = seen[i] & 1;
    munmap(map, span);
    return all;
}

static int real_resident(int fd, uint64_t off, uint64_t len)
{
    enum { CACHESTAT = 451, PAGE = 4096 };
    struct {
        uint64_t off, len;
    } range = {off, len};
    struct {
        uint64_t cache, dirty, writeback, evicted, recently_evicted;
    } answer;
    if (!len)
        return 1;
    if (syscall(CACHESTAT, fd, &range, &answer, 0) == 0)
        return answer.cache >= (off + len - 1) / PAGE - off / PAGE + 1;
    return errno == ENOSYS || errno == EPERM ? resident_by_mincore(fd, off, len) : 0;
}

static uint64_t real_now_ns(enum weir_clock clock)
{
    static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC};
    struct timespec ts;
    clock_gettime(ids[clock], &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void real_sleep_ns(uint64_t ns)
{
    struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
        ;
}

static int real_random(void *buf, size_t size)
{
    while (size) {
        ssize_t n = RETRY(getrandom(buf, size, 0));
        if (n < 0)
            return (int)n;
        buf = (char *)buf + n;
        size -= (size_t)n;
    }
    return 0;
}

static int real_map(int fd, size_t size, void **out)
{
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    *out = data;
    return 0;
}

static void real_unmap(void *data, size_t size)
{
    munmap(data, size);
}

const struct weir_sys weir_sys_real = {
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwrite = real_pwrite,
    .fsync = real_fsync,
    .fdatasync = real_fdatasync,
    .fallocate = real_fallocate,
    .ftruncate = real_ftruncate,
    .link = real_link,
    .unlink = real_unlink,
    .mkdir = real_mkdir,
    .stat = real_stat,
    .fstat = real_fstat,
    .fchmod = real_fchmod,
    .touch = real_touch,
    .recyclable = real_recyclable,
    .getdents = real_getdents,
    .flock = real_flock,
    .space = real_space,
    .map = real_map,
    .unmap = real_unmap,
    .resident = real_resident,
    .now_ns = real_now_ns,
    .sleep_ns = real_sleep_ns,
    .random = real_random,
    .realloc = realloc,
};

const struct weir_sys *weir_sys = &weir_sys_real;

void *weir_alloc(size_t size)
{
    void *ptr = weir_sys->realloc(NULL, size ? size : 1);
    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

void *weir_realloc(void *ptr, size_t size)
{
    return weir_sys->realloc(ptr, size ? size : 1);
}

char *weir_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir_sys->realloc(NULL, size);
    return copy ? memcpy(copy, text, size) : NULL;
}
