/* sys.c - the real entries of the table in sys.h. Any thread may call them. */
#include "util/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
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

static int real_path_of(int fd, char *out, size_t room)
{
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, out, room - 1);
    if (size < 0)
        return -errno;
    out[size] = 0;
    return 0;
}

/* Where statx(2) is refused (old kernels, some containers), the plain call must do. */
static int real_fstat_now(int fd, struct weir_sys_stat *out)
{
    struct statx now;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now) < 0)
        return errno == ENOSYS || errno == EPERM || errno == EINVAL ? real_fstat(fd, out) : -errno;
    int code = real_fstat(fd, out); /* which knows it now */
    if (code)
        return code;
    out->nlink = now.stx_nlink;
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
    space->magic = (uint64_t)fs.f_type;
    space->is_local = fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC;
    return 0;
}

static int real_map_resident(const void *data, size_t size)
{
    enum { PAGE = 4096, PAGES_MAX = 4096 };
    unsigned char seen[PAGES_MAX];
    uintptr_t at = (uintptr_t)data & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)data + size;
    while (at < end) {
        size_t left = end - at, span = left < PAGES_MAX * PAGE ? left : PAGES_MAX * PAGE;
        if (mincore((void *)at, span, seen) < 0)
            return 0;
        for (size_t i = 0; i < (span + PAGE - 1) / PAGE; i++)
            if (!(seen[i] & 1))
                return 0;
        at += span;
    }
    return 1;
}

/* Before Linux 6.5 there is no cachestat(2): ask mincore(2) about a mapping. */
static int resident_by_mincore(int fd, uint64_t off, uint64_t len)
{
    enum { PAGE = 4096 };
    uint64_t begin = off & ~(uint64_t)(PAGE - 1), span = off + len - begin;
    void *map = mmap(NULL, span, PROT_READ, MAP_SHARED, fd, (off_t)begin);
    if (map == MAP_FAILED)
        return 0;
    int all = real_map_resident(map, span);
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

static int real_set_direct(int fd, bool direct)
{
    return fcntl(fd, F_SETFL, direct ? O_DIRECT : 0) < 0 ? -errno : 0;
}

static int real_advise(int fd, int advice)
{
    return -posix_fadvise(fd, 0, 0, advice);
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

/* A page missed costs a read of its own if it is small, and each row a walk of the page table even
 * if it is there. Neighbours of a huge page are not asked for with it: they may be another node's.
 * Kernels that do not know MADV_COLLAPSE may take that to mean single small pages. */
static void real_map_all(void *data, size_t size)
{
    enum { COLLAPSE = 25 };
    if (!madvise(data, 0, COLLAPSE) && !madvise(data, size, MADV_HUGEPAGE))
        madvise(data, size, MADV_RANDOM);
}

static void real_unmap(void *data, size_t size)
{
    munmap(data, size);
}

/* ---- programs ---- */

enum { RUN_MS_MAX = 10000, RUN_PAUSE_MS = 2, RUN_KILLED_MS = 100 };

/* Reads what a program writes until it has closed its output or time is up. */
static void run_read(int fd, char *out, size_t size, uint64_t until_ns)
{
    char rest[512];
    size_t used = 0;
    for (;;) {
        uint64_t now_ns = real_now_ns(WEIR_CLOCK_MONO);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (now_ns >= until_ns || poll(&wait, 1, (int)((until_ns - now_ns) / 1000000) + 1) == 0)
            return;
        bool keep = used + 1 < size;
        ssize_t n = RETRY(read(fd, keep ? out + used : rest, keep ? size - 1 - used : sizeof rest));
        if (n <= 0)
            return;
        used += keep ? (size_t)n : 0;
        if (size)
            out[used] = 0;
    }
}

/* Waits for its end until then. 0, -EIO, -ETIMEDOUT; if somebody else waits for all children of
 * this process, what became of it is not known: -EIO. */
static int run_wait(pid_t pid, uint64_t until_ns)
{
    for (;;) {
        int status = 0;
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
        if (got < 0 && errno != EINTR)
            return -EIO;
        if (real_now_ns(WEIR_CLOCK_MONO) >= until_ns)
            return -ETIMEDOUT;
        real_sleep_ns((uint64_t)RUN_PAUSE_MS * 1000000);
    }
}

/* It has no signals blocked, whatever its starter has. */
static int run_start(pid_t *pid, const char *const *argv, int output)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int code = posix_spawnp(pid, argv[0], &files, &attr, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return -code;
}

static int real_run(const char *const *argv, char *out, size_t size)
{
    int ends[2];
    pid_t pid;
    uint64_t until_ns = real_now_ns(WEIR_CLOCK_MONO) + (uint64_t)RUN_MS_MAX * 1000000;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int code = run_start(&pid, argv, ends[1]);
    close(ends[1]);
    if (!code) {
        run_read(ends[0], out, size, until_ns);
        code = run_wait(pid, until_ns);
        if (code == -ETIMEDOUT && !kill(pid, SIGKILL))
            run_wait(pid, real_now_ns(WEIR_CLOCK_MONO) + (uint64_t)RUN_KILLED_MS * 1000000);
    }
    close(ends[0]);
    return code;
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
    .fstat_now = real_fstat_now,
    .path_of = real_path_of,
    .fchmod = real_fchmod,
    .touch = real_touch,
    .recyclable = real_recyclable,
    .getdents = real_getdents,
    .flock = real_flock,
    .space = real_space,
    .map = real_map,
    .unmap = real_unmap,
    .map_all = real_map_all,
    .map_resident = real_map_resident,
    .resident = real_resident,
    .set_direct = real_set_direct,
    .advise = real_advise,
    .now_ns = real_now_ns,
    .sleep_ns = real_sleep_ns,
    .random = real_random,
    .realloc = realloc,
    .run = real_run,
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
