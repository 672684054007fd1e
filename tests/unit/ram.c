/* How much memory there is: the least of the machine's and of the limits of all control groups that
 * this process is in, of either version; what cannot be read, or says no number, is no limit.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "util/ram.h"
#include "util/sys.h"

struct file {
    const char *path, *text;
};
static const struct file *files; /* what there is, up to one without a path */

static int open_fake(int dirfd, const char *path, int flags, unsigned mode)
{
    (void)dirfd, (void)flags, (void)mode;
    for (int i = 0; files[i].path; i++)
        if (!strcmp(files[i].path, path))
            return i;
    return -ENOENT;
}

static ssize_t pread_fake(int fd, void *buf, size_t size, uint64_t off)
{
    size_t length = strlen(files[fd].text);
    CHECK(!off && length <= size);
    memcpy(buf, files[fd].text, length);
    return (ssize_t)length;
}

static int close_fake(int fd)
{
    (void)fd;
    return 0;
}

#define RAM(...) (files = (const struct file[]){__VA_ARGS__, {0}}, weir_ram_bytes())

static void limits(void)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    CHECK_EQ(RAM({"/else", "1"}), all);
    CHECK_EQ(RAM({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/memory.max", "4096\n"}),
             4096);
    CHECK_EQ(RAM({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                 {"/sys/fs/cgroup/a/memory.max", "8192\n"}),
             8192);
    CHECK_EQ(RAM({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "5\n"}), 5);
    CHECK_EQ(RAM({"/proc/self/cgroup", "0::/not/seen\n"}, {"/sys/fs/cgroup/memory.max", "6\n"}), 6);
    CHECK_EQ(RAM({"/proc/self/cgroup", "9:cpu:/x\n4:memory:/a\n0::/\n"},
                 {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "7\n"},
                 {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}),
             7);
    CHECK_EQ(RAM({"/proc/self/cgroup", "no lines\n:\n::\n0::/a\n"},
                 {"/sys/fs/cgroup/a/memory.max", "99999999999999999999999\n"}),
             all);
}

int main(void)
{
    struct weir_sys table = weir_sys_real;
    table.open = open_fake;
    table.pread = pread_fake;
    table.close = close_fake;
    weir_sys = &table;
    RUN(limits);
    return TEST_RESULT;
}
