/* calls.c - the table of system calls of the simulated machine. */
#include <assert.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "baton.h"
#include "sim.h"

/* What is answered after a call was made. */
static int told(struct sim_verdict verdict, int code)
{
    return verdict.lost && code >= 0 ? -EIO : code;
}

static int call_open(int dirfd, const char *path, int flags, unsigned mode)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_OPEN);
    if (verdict.code)
        return verdict.code;
    int fd = sim_fs_open(sim.fs, sim_self->id, dirfd, path, flags, mode);
    if (fd >= 0 && verdict.lost)
        sim_fs_close(sim.fs, fd);
    return told(verdict, fd);
}

static int call_close(int fd)
{
    if (sim_self->dead || sim.off)
        return 0; /* it was closed when the process died */
    struct sim_verdict verdict = sim_enter(SIM_CALL_CLOSE);
    if (sim_self->dead || sim.off)
        return 0;
    /* Whatever close(2) answers on Linux, the descriptor is gone. */
    int code = sim_fs_close(sim.fs, fd);
    assert(!code && "a descriptor that is not open was closed");
    return verdict.code;
}

/* A short transfer moves at least a byte. */
static size_t shortened(struct sim_verdict verdict, size_t size)
{
    return verdict.shorten && size > 1 ? size / 2 : size;
}

static ssize_t call_pread(int fd, void *buf, size_t size, uint64_t off)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_PREAD);
    if (verdict.code)
        return verdict.code;
    ssize_t n = sim_fs_pread(sim.fs, fd, buf, size, off);
    return n > 0 && (size_t)n == size ? (ssize_t)shortened(verdict, size) : n;
}

static ssize_t call_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_PWRITE);
    if (verdict.code)
        return verdict.code;
    size_t part = shortened(verdict, size);
    if (part != size && part >= SIM_SECTOR)
        part -= part % SIM_SECTOR; /* as a direct transfer would */
    ssize_t n = sim_fs_pwrite(sim.fs, fd, buf, part, off);
    return verdict.lost && n >= 0 ? -EIO : n;
}

static int sync_it(enum sim_call call, int fd)
{
    struct sim_verdict verdict = sim_enter(call);
    if (!verdict.code)
        return told(verdict, sim_fs_sync(sim.fs, fd, false));
    if (verdict.code != -EINTR && !sim_self->dead && !sim.off)
        sim_fs_sync(sim.fs, fd, true);
    return verdict.code;
}

static int call_fsync(int fd)
{
    return sync_it(SIM_CALL_FSYNC, fd);
}

static int call_fdatasync(int fd)
{
    return sync_it(SIM_CALL_FDATASYNC, fd);
}

static int call_fallocate(int fd, uint64_t off, uint64_t len)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_FALLOCATE);
    return verdict.code ? verdict.code : sim_fs_fallocate(sim.fs, fd, off, len);
}

static int call_ftruncate(int fd, uint64_t size)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_FTRUNCATE);
    return verdict.code ? verdict.code : sim_fs_ftruncate(sim.fs, fd, size);
}

static int call_link(int olddir, const char *old, int newdir, const char *name)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_LINK);
    if (verdict.code)
        return verdict.code;
    int code = sim_fs_link(sim.fs, olddir, old, newdir, name);
    if (++sim_self->links == sim_self->hold_link)
        sim_baton_hold(sim_self->hold_link_ns);
    return told(verdict, code);
}

static int call_unlink(int dirfd, const char *path, bool dir)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_UNLINK);
    return verdict.code ? verdict.code : told(verdict, sim_fs_unlink(sim.fs, dirfd, path, dir));
}

static int call_mkdir(int dirfd, const char *path, unsigned mode)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_MKDIR);
    return verdict.code ? verdict.code : told(verdict, sim_fs_mkdir(sim.fs, dirfd, path, mode));
}

static int call_stat(int dirfd, const char *path, struct weir_sys_stat *st)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_STAT);
    return verdict.code ? verdict.code : sim_fs_stat(sim.fs, dirfd, path, st);
}

static int call_fstat(int fd, struct weir_sys_stat *st)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_FSTAT);
    return verdict.code ? verdict.code : sim_fs_fstat(sim.fs, fd, st);
}

static int call_fchmod(int fd, unsigned mode)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_FCHMOD);
    return verdict.code ? verdict.code : sim_fs_fchmod(sim.fs, fd, mode);
}

static int call_touch(int fd)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_TOUCH);
    return verdict.code ? verdict.code : sim_fs_touch(sim.fs, fd);
}

static int call_recyclable(int fd)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_RECYCLABLE);
    return verdict.code ? verdict.code : sim_fs_recyclable(sim.fs, fd);
}

static ssize_t call_getdents(int fd, void *buf, size_t size)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_GETDENTS);
    return verdict.code ? verdict.code : sim_fs_getdents(sim.fs, fd, buf, size);
}

static int call_flock(int fd, int operation)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_FLOCK);
    if (verdict.code)
        return verdict.code;
    for (;;) {
        int code = sim_fs_flock(sim.fs, fd, operation);
        if (code != -EWOULDBLOCK || operation & LOCK_NB)
            return code;
        if (!sim_baton_wait())
            return -EIO;
    }
}

static int call_space(int fd, struct weir_sys_space *space)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_SPACE);
    (void)fd;
    /* One that others share is asked more often. */
    uint64_t magic = weir_rng_next(&sim.weather) & 1 ? EXT4_SUPER_MAGIC : FUSE_SUPER_MAGIC;
    *space = (struct weir_sys_space){1u << 30, 1u << 31, magic, true};
    return verdict.code;
}

/* There are no programs on this machine. */
static int call_run(const char *const *argv, char *out, size_t size)
{
    (void)argv, (void)out, (void)size;
    return -ENOENT;
}

/* There are no links that lead anywhere: nobody gets so far as to ask. */
static int call_path_of(int fd, char *out, size_t room)
{
    (void)fd, (void)out, (void)room;
    return -ENOSYS;
}

/* No call that can fail: it only asks. */
static int call_resident(int fd, uint64_t off, uint64_t len)
{
    (void)fd, (void)off, (void)len;
    return (int)(weir_rng_next(&sim.weather) & 1);
}

/* Here all transfers are alike. */
static int call_set_direct(int fd, bool direct)
{
    (void)fd, (void)direct;
    return 0;
}

static int call_map_resident(const void *data, size_t size)
{
    (void)data, (void)size;
    return (int)(weir_rng_next(&sim.weather) & 1);
}

/* Nothing depends on advice. */
static int call_advise(int fd, int advice)
{
    (void)fd, (void)advice;
    return 0;
}

static uint64_t call_now_ns(enum weir_clock clock)
{
    uint64_t now_ns = sim_clock(clock);
    if (clock == WEIR_CLOCK_BOOT && !sim_self->dead && !sim.off &&
        ++sim_self->boots == sim_self->hold_boot)
        sim_baton_hold(sim_self->hold_boot_ns); /* between a look at its age and what follows */
    return now_ns;
}

static int call_random(void *buf, size_t size)
{
    struct sim_verdict verdict = sim_enter(SIM_CALL_RANDOM);
    for (size_t i = 0; !verdict.code && i < size; i++)
        ((uint8_t *)buf)[i] = (uint8_t)weir_rng_next(&sim.entropy);
    return verdict.code;
}

static void *call_realloc(void *ptr, size_t size)
{
    return sim_memory_fails() ? NULL : realloc(ptr, size);
}

/* What is simulated has no pages. */
static int call_map(int fd, size_t size, void **out)
{
    (void)fd;
    (void)size;
    (void)out;
    return -ENOTSUP;
}

static void call_unmap(void *data, size_t size)
{
    (void)data;
    (void)size;
}

static void call_map_all(void *data, size_t size)
{
    (void)data, (void)size;
}

const struct weir_sys sim_sys = {
    .open = call_open,
    .close = call_close,
    .pread = call_pread,
    .pwrite = call_pwrite,
    .fsync = call_fsync,
    .fdatasync = call_fdatasync,
    .fallocate = call_fallocate,
    .ftruncate = call_ftruncate,
    .link = call_link,
    .unlink = call_unlink,
    .mkdir = call_mkdir,
    .stat = call_stat,
    .fstat = call_fstat,
    .run = call_run,
    .fstat_now = call_fstat,
    .path_of = call_path_of,
    .fchmod = call_fchmod,
    .touch = call_touch,
    .recyclable = call_recyclable,
    .getdents = call_getdents,
    .flock = call_flock,
    .space = call_space,
    .map = call_map,
    .unmap = call_unmap,
    .map_all = call_map_all,
    .map_resident = call_map_resident,
    .resident = call_resident,
    .set_direct = call_set_direct,
    .advise = call_advise,
    .now_ns = call_now_ns,
    .sleep_ns = sim_sleep,
    .random = call_random,
    .realloc = call_realloc,
};
