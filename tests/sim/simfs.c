/* simfs.c - see simfs.h. */
#include "simfs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

struct sim_fs *sim_fs_new(void)
{
    struct sim_fs *fs = sim_alloc(sizeof *fs);
    fs->inodes_count = fs->inodes_room = SIM_ROOT_INO + 1;
    fs->inodes = sim_alloc(fs->inodes_room * sizeof *fs->inodes);
    fs->inodes[SIM_ROOT_INO] = sim_inode_new(SIM_DIR, 0755, 0);
    fs->inodes[SIM_ROOT_INO]->parent = SIM_ROOT_INO;
    return fs;
}

void sim_fs_free(struct sim_fs *fs)
{
    if (!fs)
        return;
    for (size_t i = SIM_ROOT_INO; i < fs->inodes_count; i++)
        sim_inode_free(fs->inodes[i]);
    free(fs->inodes);
    free(fs->files);
    free(fs);
}

struct sim_fs *sim_fs_copy(const struct sim_fs *fs)
{
    struct sim_fs *copy = sim_alloc(sizeof *copy);
    assert(sim_fs_open_count(fs) == 0);
    copy->inodes_count = copy->inodes_room = fs->inodes_count;
    copy->inodes = sim_alloc(copy->inodes_room * sizeof *copy->inodes);
    for (size_t i = SIM_ROOT_INO; i < fs->inodes_count; i++)
        copy->inodes[i] = sim_inode_copy(fs->inodes[i]);
    copy->quirks = fs->quirks;
    copy->now_ns = fs->now_ns;
    return copy;
}

static unsigned add_inode(struct sim_fs *fs, enum sim_type type, unsigned mode)
{
    fs->inodes = sim_grow(fs->inodes, fs->inodes_count, &fs->inodes_room, sizeof *fs->inodes);
    fs->inodes[fs->inodes_count] = sim_inode_new(type, mode, fs->now_ns);
    return (unsigned)fs->inodes_count++;
}

static struct sim_file *file_of(const struct sim_fs *fs, int fd)
{
    if (fd < SIM_FD_BASE || (size_t)(fd - SIM_FD_BASE) >= fs->files_count)
        return NULL;
    struct sim_file *file = &fs->files[fd - SIM_FD_BASE];
    return file->ino ? file : NULL;
}

static struct sim_inode *inode_of(const struct sim_fs *fs, int fd)
{
    const struct sim_file *file = file_of(fs, fd);
    return file ? fs->inodes[file->ino] : NULL;
}

/* ---- paths ---- */

/* A place in the tree: a name in a directory, "." or "..". */
struct place {
    unsigned dir;
    char base[SIM_NAME_MAX];
};

static bool is_dots(const struct place *place)
{
    return !strcmp(place->base, ".") || !strcmp(place->base, "..");
}

static unsigned ino_at(const struct sim_fs *fs, const struct place *place)
{
    const struct sim_inode *dir = fs->inodes[place->dir];
    if (is_dots(place))
        return place->base[1] ? dir->parent : place->dir;
    return sim_inode_find(dir, place->base);
}

/* Walks to the directory that path's last part stands in. Links lead nowhere. */
static int walk(const struct sim_fs *fs, int dirfd, const char *path, struct place *out)
{
    struct place at = {.dir = SIM_ROOT_INO, .base = "."};
    const struct sim_file *from = file_of(fs, dirfd);
    if (*path != '/' && dirfd != AT_FDCWD) {
        if (!from)
            return -EBADF;
        at.dir = from->ino;
    }
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n >= sizeof at.base)
            return -ENAMETOOLONG;
        if (n) {
            unsigned ino = ino_at(fs, &at);
            if (!ino)
                return -ENOENT;
            if (fs->inodes[ino]->type != SIM_DIR)
                return -ENOTDIR;
            at.dir = ino;
            memcpy(at.base, path, n);
            at.base[n] = 0;
        }
        path += n + (path[n] == '/');
    }
    if (fs->inodes[at.dir]->type != SIM_DIR)
        return -ENOTDIR;
    *out = at;
    return 0;
}

static void set_name(struct sim_fs *fs, const struct place *place, unsigned ino)
{
    struct sim_inode *dir = fs->inodes[place->dir];
    sim_inode_name(dir, place->base, ino);
    dir->mtime_ns = fs->now_ns;
}

/* ---- descriptors ---- */

static int add_file(struct sim_fs *fs, unsigned ino, int flags, int owner)
{
    size_t i = 0;
    while (i < fs->files_count && fs->files[i].ino)
        i++;
    if (i == fs->files_count) {
        fs->files = sim_grow(fs->files, i, &fs->files_room, sizeof *fs->files);
        fs->files_count++;
    }
    fs->files[i] = (struct sim_file){.ino = ino, .flags = flags, .owner = owner};
    return SIM_FD_BASE + (int)i;
}

static int may_open(const struct sim_fs *fs, const struct sim_inode *inode, int flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (inode->type == SIM_LINK)
        return flags & O_NOFOLLOW ? -ELOOP : -ENOENT;
    if (flags & O_DIRECTORY && inode->type != SIM_DIR)
        return -ENOTDIR;
    if (inode->type == SIM_DIR && writes)
        return -EISDIR;
    if (flags & O_DIRECT && fs->quirks.no_direct)
        return -EINVAL;
    if (writes && fs->quirks.user && !(inode->mode & 0200))
        return -EACCES;
    return 0;
}

int sim_fs_open(struct sim_fs *fs, int owner, int dirfd, const char *path, int flags, unsigned mode)
{
    struct place place;
    assert(!(flags & (O_TRUNC | O_APPEND)));
    int code = walk(fs, dirfd, path, &place);
    if (code)
        return code;
    unsigned ino = ino_at(fs, &place);
    if (ino) {
        code = flags & O_CREAT && flags & O_EXCL ? -EEXIST : may_open(fs, fs->inodes[ino], flags);
        return code ? code : add_file(fs, ino, flags, owner);
    }
    if (!(flags & O_CREAT) || !fs->inodes[place.dir]->links)
        return -ENOENT;
    ino = add_inode(fs, SIM_FILE, mode);
    fs->inodes[ino]->links = 1;
    set_name(fs, &place, ino);
    return add_file(fs, ino, flags, owner);
}

static void drop_lock(struct sim_fs *fs, struct sim_file *file)
{
    fs->unlocks += file->lock != 0;
    file->lock = 0;
}

int sim_fs_close(struct sim_fs *fs, int fd)
{
    struct sim_file *file = file_of(fs, fd);
    if (!file)
        return -EBADF;
    drop_lock(fs, file);
    file->ino = 0;
    return 0;
}

void sim_fs_close_all(struct sim_fs *fs, int owner)
{
    for (size_t i = 0; i < fs->files_count; i++)
        if (fs->files[i].ino && (owner < 0 || fs->files[i].owner == owner))
            sim_fs_close(fs, SIM_FD_BASE + (int)i);
}

size_t sim_fs_open_count(const struct sim_fs *fs)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->files_count; i++)
        count += fs->files[i].ino != 0;
    return count;
}

/* ---- transfers ---- */

/* What keeps a transfer from being made, or 0. */
static int transfer_fault(const struct sim_fs *fs, int fd, const void *buf, size_t size,
                          uint64_t off, int refused)
{
    const struct sim_file *file = file_of(fs, fd);
    if (!file || (file->flags & O_ACCMODE) == refused)
        return -EBADF;
    if (fs->inodes[file->ino]->type != SIM_FILE)
        return -EISDIR;
    if (file->flags & O_DIRECT &&
        (fs->quirks.late_direct || ((uintptr_t)buf | size | off) % SIM_SECTOR))
        return -EINVAL;
    return 0;
}

ssize_t sim_fs_pread(struct sim_fs *fs, int fd, void *buf, size_t size, uint64_t off)
{
    int code = transfer_fault(fs, fd, buf, size, off, O_WRONLY);
    return code ? code : (ssize_t)sim_image_read(inode_of(fs, fd)->live, buf, size, off);
}

ssize_t sim_fs_pwrite(struct sim_fs *fs, int fd, const void *buf, size_t size, uint64_t off)
{
    int code = transfer_fault(fs, fd, buf, size, off, O_RDONLY);
    if (code || !size)
        return code;
    struct sim_inode *inode = inode_of(fs, fd);
    sim_inode_write(inode, buf, size, off);
    inode->mtime_ns = fs->now_ns;
    return (ssize_t)size;
}

int sim_fs_sync(struct sim_fs *fs, int fd, bool failed)
{
    struct sim_inode *inode = inode_of(fs, fd);
    if (!inode)
        return -EBADF;
    if (failed)
        sim_inode_sync_failed(inode);
    else
        sim_inode_sync(inode);
    return failed ? -EIO : 0;
}

int sim_fs_fallocate(struct sim_fs *fs, int fd, uint64_t off, uint64_t len)
{
    struct sim_inode *inode = inode_of(fs, fd);
    if (!inode)
        return -EBADF;
    if (fs->quirks.no_fallocate)
        return -EOPNOTSUPP;
    if (off + len > inode->live->size)
        sim_inode_resize(inode, off + len);
    return 0;
}

int sim_fs_ftruncate(struct sim_fs *fs, int fd, uint64_t size)
{
    struct sim_inode *inode = inode_of(fs, fd);
    if (!inode)
        return -EBADF;
    sim_inode_resize(inode, size);
    inode->mtime_ns = fs->now_ns;
    return 0;
}

/* ---- names ---- */

int sim_fs_link(struct sim_fs *fs, int olddir, const char *old, int newdir, const char *name)
{
    struct place from, to;
    int code = walk(fs, olddir, old, &from);
    if (code)
        return code;
    unsigned ino = ino_at(fs, &from);
    if (!ino)
        return -ENOENT;
    if (fs->inodes[ino]->type == SIM_DIR)
        return -EPERM;
    code = walk(fs, newdir, name, &to);
    if (code)
        return code;
    if (ino_at(fs, &to))
        return -EEXIST;
    if (!fs->inodes[to.dir]->links)
        return -ENOENT;
    set_name(fs, &to, ino);
    fs->inodes[ino]->links++;
    return 0;
}

int sim_fs_unlink(struct sim_fs *fs, int dirfd, const char *path, bool dir)
{
    struct place place;
    int code = walk(fs, dirfd, path, &place);
    if (code)
        return code;
    unsigned ino = ino_at(fs, &place);
    if (!ino)
        return -ENOENT;
    struct sim_inode *inode = fs->inodes[ino];
    if (dir && inode->type != SIM_DIR)
        return -ENOTDIR;
    if (!dir && inode->type == SIM_DIR)
        return -EISDIR;
    if (dir && inode->names.count)
        return -ENOTEMPTY;
    if (is_dots(&place))
        return -EINVAL;
    set_name(fs, &place, 0);
    inode->links = dir ? 0 : inode->links - 1;
    return 0;
}

int sim_fs_mkdir(struct sim_fs *fs, int dirfd, const char *path, unsigned mode)
{
    struct place place;
    int code = walk(fs, dirfd, path, &place);
    if (code)
        return code;
    if (ino_at(fs, &place))
        return -EEXIST;
    if (!fs->inodes[place.dir]->links)
        return -ENOENT;
    unsigned ino = add_inode(fs, SIM_DIR, mode);
    fs->inodes[ino]->parent = place.dir;
    set_name(fs, &place, ino);
    return 0;
}

static void fill_stat(const struct sim_fs *fs, unsigned ino, struct weir_sys_stat *st)
{
    const struct sim_inode *inode = fs->inodes[ino];
    *st = (struct weir_sys_stat){
        .dev = 1,
        .ino = ino,
        .size = inode->live->size,
        .nlink = inode->links,
        .mtime_ns = inode->mtime_ns,
        .mode = inode->mode,
        .is_dir = inode->type == SIM_DIR,
        .is_file = inode->type == SIM_FILE,
        .is_link = inode->type == SIM_LINK,
    };
}

int sim_fs_stat(struct sim_fs *fs, int dirfd, const char *path, struct weir_sys_stat *st)
{
    struct place place;
    int code = walk(fs, dirfd, path, &place);
    if (code)
        return code;
    unsigned ino = ino_at(fs, &place);
    if (!ino)
        return -ENOENT;
    fill_stat(fs, ino, st);
    return 0;
}

int sim_fs_fstat(struct sim_fs *fs, int fd, struct weir_sys_stat *st)
{
    const struct sim_file *file = file_of(fs, fd);
    if (!file)
        return -EBADF;
    fill_stat(fs, file->ino, st);
    return 0;
}

/* Who may open a file is nothing that a power loss could make worse: it is not remembered. */
int sim_fs_fchmod(struct sim_fs *fs, int fd, unsigned mode)
{
    struct sim_inode *inode = inode_of(fs, fd);
    if (!inode)
        return -EBADF;
    inode->mode = mode;
    return 0;
}

int sim_fs_touch(struct sim_fs *fs, int fd)
{
    struct sim_inode *inode = inode_of(fs, fd);
    if (!inode)
        return -EBADF;
    inode->mtime_ns = fs->now_ns;
    return 0;
}

int sim_fs_recyclable(struct sim_fs *fs, int fd)
{
    const struct sim_file *file = file_of(fs, fd);
    if (!file)
        return -EBADF;
    for (size_t i = 0; i < fs->files_count; i++)
        if (&fs->files[i] != file && fs->files[i].ino == file->ino)
            return -EBUSY;
    return 0;
}

/* ---- listing ---- */

struct dirent_head {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
} __attribute__((packed));

/* Appends one entry; 0 if it does not fit. */
static size_t put_dirent(char *buf, size_t room, const char *name, unsigned ino, uint64_t cookie,
                         enum sim_type type)
{
    size_t size = (sizeof(struct dirent_head) + strlen(name) + 1 + 7) & ~(size_t)7;
    if (size > room)
        return 0;
    struct dirent_head head = {ino, (int64_t)cookie, (uint16_t)size, (uint8_t)type};
    memset(buf, 0, size);
    memcpy(buf, &head, sizeof head);
    strcpy(buf + sizeof head, name);
    return size;
}

/* The entry behind `cookie`. "." and ".." come first. */
static const struct sim_entry *next_entry(const struct sim_inode *dir, uint64_t cookie,
                                          struct sim_entry *dots)
{
    if (cookie < 2) {
        *dots = (struct sim_entry){.name = ".", .ino = dir->parent, .cookie = cookie + 1};
        if (cookie)
            strcpy(dots->name, "..");
        return dots;
    }
    const struct sim_entry *best = NULL;
    for (size_t i = 0; i < dir->names.count; i++) {
        const struct sim_entry *entry = &dir->names.at[i];
        if (entry->cookie + 2 > cookie && (!best || entry->cookie < best->cookie))
            best = entry;
    }
    if (!best)
        return NULL;
    *dots = *best;
    dots->cookie += 2;
    return dots;
}

ssize_t sim_fs_getdents(struct sim_fs *fs, int fd, void *buf, size_t size)
{
    struct sim_file *file = file_of(fs, fd);
    if (!file)
        return -EBADF;
    const struct sim_inode *dir = fs->inodes[file->ino];
    if (dir->type != SIM_DIR)
        return -ENOTDIR;
    if (!dir->links)
        return -ENOENT; /* as Linux answers in a directory that was removed */
    size_t used = 0;
    struct sim_entry entry;
    for (unsigned n = 0; !fs->quirks.dents_max || n < fs->quirks.dents_max; n++) {
        if (!next_entry(dir, file->cookie, &entry))
            break;
        enum sim_type type = fs->quirks.no_types ? 0 : fs->inodes[entry.ino]->type;
        size_t more =
            put_dirent((char *)buf + used, size - used, entry.name, entry.ino, entry.cookie, type);
        if (!more)
            return used ? (ssize_t)used : -EINVAL;
        used += more;
        file->cookie = entry.cookie;
    }
    return (ssize_t)used;
}

/* ---- locks ---- */

int sim_fs_flock(struct sim_fs *fs, int fd, int operation)
{
    struct sim_file *file = file_of(fs, fd);
    if (!file)
        return -EBADF;
    operation &= ~LOCK_NB;
    if (operation == LOCK_UN) {
        drop_lock(fs, file);
        return 0;
    }
    for (size_t i = 0; i < fs->files_count; i++) {
        const struct sim_file *other = &fs->files[i];
        if (other != file && other->ino == file->ino && other->lock &&
            (other->lock == LOCK_EX || operation == LOCK_EX))
            return -EWOULDBLOCK;
    }
    file->lock = operation;
    return 0;
}

/* ---- power loss ---- */

void sim_fs_sync_all(struct sim_fs *fs)
{
    for (size_t i = SIM_ROOT_INO; i < fs->inodes_count; i++)
        sim_inode_sync(fs->inodes[i]);
}

static void count_links(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    struct sim_fs *fs = arg;
    (void)name;
    fs->inodes[ino]->links += inode->type == SIM_DIR ? 2 : 1;
}

void sim_fs_crash(struct sim_fs *fs, struct weir_rng *rng)
{
    sim_fs_close_all(fs, -1);
    for (size_t i = SIM_ROOT_INO; i < fs->inodes_count; i++) {
        sim_inode_crash(fs->inodes[i], rng);
        fs->inodes[i]->links = i == SIM_ROOT_INO ? 2 : 0;
    }
    sim_fs_each(fs, "/", count_links, fs);
}

/* ---- for tests ---- */

static struct place plant(struct sim_fs *fs, const char *path)
{
    char part[1024];
    struct place place = {0};
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        sim_fs_mkdir(fs, AT_FDCWD, part, 0755);
    }
    int code = walk(fs, AT_FDCWD, path, &place);
    assert(!code && !ino_at(fs, &place));
    return place;
}

void sim_fs_plant(struct sim_fs *fs, const char *path, const void *data, size_t size)
{
    struct place place = plant(fs, path);
    unsigned ino = add_inode(fs, SIM_FILE, 0644);
    fs->inodes[ino]->links = 1;
    if (size)
        sim_inode_write(fs->inodes[ino], data, size, 0);
    set_name(fs, &place, ino);
    sim_fs_sync_all(fs);
}

void sim_fs_plant_link(struct sim_fs *fs, const char *path)
{
    struct place place = plant(fs, path);
    unsigned ino = add_inode(fs, SIM_LINK, 0777);
    fs->inodes[ino]->links = 1;
    set_name(fs, &place, ino);
    sim_fs_sync_all(fs);
}

const struct sim_inode *sim_fs_at(const struct sim_fs *fs, const char *path)
{
    struct place place;
    unsigned ino = walk(fs, AT_FDCWD, path, &place) ? 0 : ino_at(fs, &place);
    return ino ? fs->inodes[ino] : NULL;
}

/* The depth is that of a few nested test directories. */
static void each_below(const struct sim_fs *fs, const struct sim_inode *dir, const char *prefix,
                       sim_fs_fn fn, void *arg)
{
    for (size_t i = 0; i < dir->names.count; i++) {
        char name[1024];
        unsigned ino = dir->names.at[i].ino;
        snprintf(name, sizeof name, "%s%s", prefix, dir->names.at[i].name);
        fn(arg, name, ino, fs->inodes[ino]);
        if (fs->inodes[ino]->type == SIM_DIR) {
            strncat(name, "/", sizeof name - strlen(name) - 1);
            each_below(fs, fs->inodes[ino], name, fn, arg);
        }
    }
}

void sim_fs_each(const struct sim_fs *fs, const char *path, sim_fs_fn fn, void *arg)
{
    const struct sim_inode *dir = sim_fs_at(fs, path);
    if (dir && dir->type == SIM_DIR)
        each_below(fs, dir, "", fn, arg);
}
