/* calls.c - see calls.h. */
#include "calls.h"

#include <fcntl.h>

#include "util/sys.h"

static int (*before)(void);

static int at_open(int dir, const char *path, int flags, unsigned mode)
{
    int code = flags & O_CREAT ? before() : 0;
    return code ? code : weir_sys_real.open(dir, path, flags, mode);
}

static ssize_t at_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    int code = before();
    return code ? code : weir_sys_real.pwrite(fd, buf, size, off);
}

static int at_fsync(int fd)
{
    int code = before();
    return code ? code : weir_sys_real.fsync(fd);
}

static int at_fdatasync(int fd)
{
    int code = before();
    return code ? code : weir_sys_real.fdatasync(fd);
}

static int at_fallocate(int fd, uint64_t off, uint64_t len)
{
    int code = before();
    return code ? code : weir_sys_real.fallocate(fd, off, len);
}

static int at_ftruncate(int fd, uint64_t size)
{
    int code = before();
    return code ? code : weir_sys_real.ftruncate(fd, size);
}

static int at_link(int olddir, const char *old, int newdir, const char *name)
{
    int code = before();
    return code ? code : weir_sys_real.link(olddir, old, newdir, name);
}

static int at_unlink(int dir, const char *path, bool is_dir)
{
    int code = before();
    return code ? code : weir_sys_real.unlink(dir, path, is_dir);
}

static int at_mkdir(int dir, const char *path, unsigned mode)
{
    int code = before();
    return code ? code : weir_sys_real.mkdir(dir, path, mode);
}

static int at_flock(int fd, int operation)
{
    int code = before();
    if (!code)
        code = weir_sys_real.flock(fd, operation);
    return code ? code : before(); /* and holding it */
}

void calls_arm(int (*fn)(void))
{
    static struct weir_sys table;
    before = fn;
    table = weir_sys_real;
    table.open = at_open;
    table.pwrite = at_pwrite;
    table.fsync = at_fsync;
    table.fdatasync = at_fdatasync;
    table.fallocate = at_fallocate;
    table.ftruncate = at_ftruncate;
    table.link = at_link;
    table.unlink = at_unlink;
    table.mkdir = at_mkdir;
    table.flock = at_flock;
    weir_sys = &table;
}
