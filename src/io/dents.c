/* dents.c - see dents.h. */
#include "io/dents.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "util/sys.h"

/* What getdents64(2) fills in. */
struct dirent64_raw {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};
enum { TYPE_UNKNOWN = 0, TYPE_DIR = 4, TYPE_FILE = 8, TYPE_LINK = 10 };

int weir_dents_open(struct weir_dents *dents, const struct weir_dir *dir)
{
    dents->used = dents->size = 0;
    dents->fd = weir_sys->open(dir->fd, ".", O_RDONLY | O_DIRECTORY, 0);
    return dents->fd < 0 ? dents->fd : 0;
}

void weir_dents_close(struct weir_dents *dents)
{
    weir_sys->close(dents->fd);
}

bool weir_dents_is_empty(const struct weir_dents *dents)
{
    return dents->used == dents->size;
}

static const struct dirent64_raw *entry_of(const struct weir_dents *dents)
{
    return (const void *)(dents->buf + dents->used);
}

static char type_of(const struct weir_dents *dents, const struct dirent64_raw *entry)
{
    if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
        return '?';
    if (entry->type == TYPE_UNKNOWN) {
        struct weir_sys_stat st;
        if (weir_sys->stat(dents->fd, entry->name, &st))
            return '?';
        return st.is_dir ? 'd' : st.is_file ? 'f' : st.is_link ? 'l' : '?';
    }
    switch (entry->type) {
    case TYPE_DIR:
        return 'd';
    case TYPE_FILE:
        return 'f';
    case TYPE_LINK:
        return 'l';
    default:
        return '?';
    }
}

int weir_dents_look(struct weir_dents *dents, const char **name)
{
    if (weir_dents_is_empty(dents)) {
        ssize_t n = weir_sys->getdents(dents->fd, dents->buf, sizeof dents->buf);
        dents->used = 0;
        dents->size = n > 0 ? (size_t)n : 0;
        if (n <= 0)
            return (int)n;
    }
    *name = entry_of(dents)->name;
    return type_of(dents, entry_of(dents));
}

void weir_dents_skip(struct weir_dents *dents)
{
    dents->used += entry_of(dents)->reclen;
}

bool weir_dents_is_silly(const char *name)
{
    static const struct {
        const char *start;
        size_t digits;
    } kinds[] = {{".nfs", 24}, {".fuse_hidden", 16}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t size = strlen(kinds[i].start);
        if (!strncmp(name, kinds[i].start, size) && strlen(name + size) == kinds[i].digits &&
            strspn(name + size, "0123456789abcdef") == kinds[i].digits)
            return true;
    }
    return false;
}
