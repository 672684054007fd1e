/* ram.c - see ram.h. Limits are those of the process's own control group and of all above it, as
 * far as they can be seen: within a container the mount often begins at its own group.
 */
#include "util/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/min.h"
#include "util/sys.h"

enum { GROUPS_BYTES_MAX = 8192, PATH_BYTES_MAX = 4352 };

/* The beginning of a small file, with a zero byte; false if there is none. */
static bool load(const char *path, char *out, size_t size)
{
    int fd = weir_sys->open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t got = weir_sys->pread(fd, out, size - 1, 0);
    weir_sys->close(fd);
    out[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* The least of the limits of a group and of those above it. */
static uint64_t least(const char *mount, const char *file, char *group)
{
    uint64_t found = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        char path[PATH_BYTES_MAX], text[32], *rest;
        *end = 0;
        snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
        if (!load(path, text, sizeof text))
            continue;
        errno = 0;
        uint64_t limit = strtoull(text, &rest, 10); /* or "max" */
        if (rest != text && !errno)
            found = weir_min(found, limit);
    }
    return found;
}

/* Lines like "4:memory:/a/b" and, of version 2, "0::/a/b". */
static uint64_t limit_of_groups(void)
{
    char groups[GROUPS_BYTES_MAX], *rest = NULL;
    uint64_t found = UINT64_MAX;
    if (!load("/proc/self/cgroup", groups, sizeof groups))
        return found;
    for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (!strcmp(names, ":"))
            found = weir_min(found, least("/sys/fs/cgroup", "memory.max", group));
        else if (!strcmp(names, ":memory"))
            found = weir_min(found,
                             least("/sys/fs/cgroup/memory", "memory.limit_in_bytes", group));
    }
    return found;
}

uint64_t weir_ram_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0
               ? weir_min((uint64_t)pages * (uint64_t)page, limit_of_groups())
               : 0;
}
