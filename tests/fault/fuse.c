/* fuse.c - see fuse.h. Speaks the kernel's protocol (linux/fuse.h) itself, one request at a time. A
 * node is an O_PATH descriptor; all names of one file share a node, and the kernel counts how often
 * it was told of it.
 */
#include "fuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proc.h"
#include "test.h"

enum { NODES = 4096, WRITE_MAX = 131072, REQUEST_MAX = WRITE_MAX + 4096 };

static struct {
    int fd; /* 0: free */
    uint64_t ino, told;
} nodes[NODES];
static int device;

struct request {
    const struct fuse_in_header *head;
    const void *arg;
    const char *name; /* behind arg, in requests that have one */
};

/* ---- answers ---- */

static void answer(const struct request *r, int code, const void *a, size_t a_size, const void *b,
                   size_t b_size)
{
    struct fuse_out_header out = {(uint32_t)(sizeof out + a_size + b_size), code, r->head->unique};
    struct iovec parts[3] = {{&out, sizeof out}, {(void *)a, a_size}, {(void *)b, b_size}};
    ssize_t n = writev(device, parts, 3);
    CHECK(n >= 0 || errno == ENOENT); /* the asker was interrupted */
}

static void answer_code(const struct request *r, bool ok)
{
    answer(r, ok ? 0 : -errno, NULL, 0, NULL, 0);
}

static int node_fd(uint64_t node)
{
    CHECK(node < NODES && nodes[node].fd);
    return nodes[node].fd;
}

static const char *node_path(uint64_t node)
{
    static char paths[2][64];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "/proc/self/fd/%d", node_fd(node));
    return path;
}

static void fill_attr(struct fuse_attr *attr, const struct stat *st)
{
    *attr = (struct fuse_attr){
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .blocks = (uint64_t)st->st_blocks,
        .mtime = (uint64_t)st->st_mtim.tv_sec,
        .mtimensec = (uint32_t)st->st_mtim.tv_nsec,
        .ctime = (uint64_t)st->st_ctim.tv_sec,
        .mode = st->st_mode,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .blksize = 4096,
    };
}

static void give_attr(const struct request *r)
{
    struct fuse_attr_out out = {0};
    struct stat st;
    if (fstatat(node_fd(r->head->nodeid), "", &st, AT_EMPTY_PATH)) {
        answer_code(r, false);
        return;
    }
    fill_attr(&out.attr, &st);
    answer(r, 0, &out, sizeof out, NULL, 0);
}

/* The node of a name, told to the kernel once more; false: errno says why. */
static bool look_up(const struct request *r, const char *name, struct fuse_entry_out *out)
{
    struct stat st;
    int fd = openat(node_fd(r->head->nodeid), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstatat(fd, "", &st, AT_EMPTY_PATH))
        return false;
    uint64_t at = 2, free_at = 0;
    for (; at < NODES && !(nodes[at].fd && nodes[at].ino == st.st_ino); at++)
        if (!nodes[at].fd && !free_at)
            free_at = at;
    if (at < NODES) {
        close(fd);
    } else {
        at = free_at;
        CHECK(at);
        nodes[at].fd = fd;
        nodes[at].ino = st.st_ino;
        nodes[at].told = 0;
    }
    nodes[at].told++;
    *out = (struct fuse_entry_out){.nodeid = at};
    fill_attr(&out->attr, &st);
    return true;
}

static void give_entry(const struct request *r, bool ok, const char *name)
{
    struct fuse_entry_out out;
    if (ok && look_up(r, name, &out))
        answer(r, 0, &out, sizeof out, NULL, 0);
    else
        answer_code(r, false);
}

static void forget(uint64_t node, uint64_t times)
{
    if (node < 2 || node >= NODES || !nodes[node].fd)
        return;
    nodes[node].told -= times < nodes[node].told ? times : nodes[node].told;
    if (!nodes[node].told) {
        close(nodes[node].fd);
        nodes[node].fd = 0;
    }
}

/* ---- requests ---- */

static void do_init(const struct request *r)
{
    const struct fuse_init_in *in = r->arg;
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                .minor = 31,
                                .max_readahead = in->max_readahead,
                                .flags = FUSE_BIG_WRITES,
                                .max_background = 16,
                                .congestion_threshold = 12,
                                .max_write = WRITE_MAX,
                                .time_gran = 1};
    answer(r, 0, &out, sizeof out, NULL, 0);
}

static void do_open(const struct request *r, bool is_dir)
{
    const struct fuse_open_in *in = r->arg;
    struct fuse_open_out out = {0};
    int flags = (int)(in->flags & ~(unsigned)(O_DIRECT | O_NOFOLLOW | O_CREAT | O_EXCL));
    int fd = open(node_path(r->head->nodeid), flags | O_CLOEXEC);
    DIR *dir = fd >= 0 && is_dir ? fdopendir(fd) : NULL;
    out.fh = is_dir ? (uintptr_t)dir : (uint64_t)fd;
    if (fd < 0)
        answer_code(r, false);
    else
        answer(r, 0, &out, sizeof out, NULL, 0);
}

static void do_create(const struct request *r)
{
    const struct fuse_create_in *in = r->arg;
    struct fuse_entry_out entry;
    struct fuse_open_out out = {0};
    const char *name = (const char *)(in + 1);
    int flags = (int)(in->flags & ~(unsigned)O_DIRECT);
    int fd = openat(node_fd(r->head->nodeid), name, flags | O_CREAT | O_CLOEXEC, in->mode);
    if (fd < 0 || fchown(fd, r->head->uid, r->head->gid) || !look_up(r, name, &entry)) {
        answer_code(r, false);
        return;
    }
    out.fh = (uint64_t)fd;
    answer(r, 0, &entry, sizeof entry, &out, sizeof out);
}

static void do_mkdir(const struct request *r)
{
    const struct fuse_mkdir_in *in = r->arg;
    const char *name = (const char *)(in + 1);
    int dir = node_fd(r->head->nodeid);
    bool ok = !mkdirat(dir, name, in->mode) && !fchownat(dir, name, r->head->uid, r->head->gid, 0);
    give_entry(r, ok, name);
}

static void do_link(const struct request *r)
{
    const struct fuse_link_in *in = r->arg;
    const char *name = (const char *)(in + 1);
    bool ok = !linkat(AT_FDCWD, node_path(in->oldnodeid), node_fd(r->head->nodeid), name,
                      AT_SYMLINK_FOLLOW);
    give_entry(r, ok, name);
}

static void do_setattr(const struct request *r)
{
    const struct fuse_setattr_in *in = r->arg;
    const char *path = node_path(r->head->nodeid);
    bool ok = true;
    if (in->valid & FATTR_SIZE)
        ok = !(in->valid & FATTR_FH ? ftruncate((int)in->fh, (off_t)in->size)
                                    : truncate(path, (off_t)in->size));
    if (ok && in->valid & FATTR_MODE)
        ok = !chmod(path, in->mode & 07777);
    if (ok)
        give_attr(r);
    else
        answer_code(r, false);
}

static void do_read(const struct request *r)
{
    static char buf[1 << 20];
    const struct fuse_read_in *in = r->arg;
    size_t size = in->size < sizeof buf ? in->size : sizeof buf;
    ssize_t n = pread((int)in->fh, buf, size, (off_t)in->offset);
    answer(r, n < 0 ? -errno : 0, buf, n < 0 ? 0 : (size_t)n, NULL, 0);
}

static void do_write(const struct request *r)
{
    const struct fuse_write_in *in = r->arg;
    ssize_t n = pwrite((int)in->fh, in + 1, in->size, (off_t)in->offset);
    struct fuse_write_out out = {.size = n < 0 ? 0 : (uint32_t)n};
    if (n < 0)
        answer_code(r, false);
    else
        answer(r, 0, &out, sizeof out, NULL, 0);
}

static void do_readdir(const struct request *r)
{
    static char buf[65536] __attribute__((aligned(8)));
    const struct fuse_read_in *in = r->arg;
    DIR *dir = (DIR *)(uintptr_t)in->fh;
    size_t used = 0, room = in->size < sizeof buf ? in->size : sizeof buf;
    seekdir(dir, (long)in->offset);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        struct fuse_dirent *at = (struct fuse_dirent *)(buf + used);
        if (used + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length) > room)
            break;
        *at = (struct fuse_dirent){entry->d_ino, (uint64_t)telldir(dir), (uint32_t)length,
                                   DT_UNKNOWN};
        memcpy((char *)at + FUSE_NAME_OFFSET, entry->d_name, length);
        used += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
    }
    answer(r, 0, buf, used, NULL, 0);
}

static void do_statfs(const struct request *r)
{
    struct statvfs vfs;
    struct fuse_statfs_out out = {0};
    if (fstatvfs(node_fd(1), &vfs)) {
        answer_code(r, false);
        return;
    }
    out.st = (struct fuse_kstatfs){.blocks = vfs.f_blocks,
                                   .bfree = vfs.f_bfree,
                                   .bavail = vfs.f_bavail,
                                   .files = vfs.f_files,
                                   .ffree = vfs.f_ffree,
                                   .bsize = (uint32_t)vfs.f_bsize,
                                   .namelen = 255,
                                   .frsize = (uint32_t)vfs.f_frsize};
    answer(r, 0, &out, sizeof out, NULL, 0);
}

static void do_forgets(const struct request *r)
{
    const struct fuse_batch_forget_in *in = r->arg;
    const struct fuse_forget_one *one = (const struct fuse_forget_one *)(in + 1);
    for (uint32_t i = 0; i < in->count; i++)
        forget(one[i].nodeid, one[i].nlookup);
}

static void serve_file(const struct request *r)
{
    const struct fuse_release_in *release = r->arg;
    const struct fuse_fsync_in *sync = r->arg;
    switch (r->head->opcode) {
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        do_open(r, r->head->opcode == FUSE_OPENDIR);
        break;
    case FUSE_READ:
        do_read(r);
        break;
    case FUSE_WRITE:
        do_write(r);
        break;
    case FUSE_READDIR:
        do_readdir(r);
        break;
    case FUSE_RELEASE:
        answer_code(r, close((int)release->fh) == 0);
        break;
    case FUSE_RELEASEDIR:
        answer_code(r, closedir((DIR *)(uintptr_t)release->fh) == 0);
        break;
    case FUSE_FSYNC:
        answer_code(r, fsync((int)sync->fh) == 0);
        break;
    case FUSE_FSYNCDIR:
        answer_code(r, fsync(dirfd((DIR *)(uintptr_t)sync->fh)) == 0);
        break;
    default:
        errno = ENOSYS; /* fallocate, lseek, xattrs: the kernel does not ask again */
        answer_code(r, false);
    }
}

static void serve(const struct request *r)
{
    const struct fuse_forget_in *in = r->arg;
    switch (r->head->opcode) {
    case FUSE_INIT:
        do_init(r);
        break;
    case FUSE_LOOKUP:
        give_entry(r, true, r->name);
        break;
    case FUSE_FORGET:
        forget(r->head->nodeid, in->nlookup);
        break;
    case FUSE_BATCH_FORGET:
        do_forgets(r);
        break;
    case FUSE_GETATTR:
        give_attr(r);
        break;
    case FUSE_SETATTR:
        do_setattr(r);
        break;
    case FUSE_MKDIR:
        do_mkdir(r);
        break;
    case FUSE_LINK:
        do_link(r);
        break;
    case FUSE_UNLINK:
    case FUSE_RMDIR:
        answer_code(r, !unlinkat(node_fd(r->head->nodeid), r->name,
                                 r->head->opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0));
        break;
    case FUSE_CREATE:
        do_create(r);
        break;
    case FUSE_STATFS:
        do_statfs(r);
        break;
    case FUSE_INTERRUPT:
    case FUSE_DESTROY:
        break;
    default:
        serve_file(r);
    }
}

static int server_main(void *backing)
{
    static char buf[REQUEST_MAX] __attribute__((aligned(8)));
    nodes[1].fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(nodes[1].fd > 0);
    umask(0);
    for (;;) {
        ssize_t n = read(device, buf, sizeof buf);
        if (n < 0 && errno == ENODEV)
            return 0; /* unmounted */
        if (n < 0) {
            CHECK(errno == EINTR || errno == ENOENT || errno == EAGAIN);
            continue;
        }
        struct request r = {(void *)buf, buf + sizeof(struct fuse_in_header),
                            buf + sizeof(struct fuse_in_header)};
        serve(&r);
    }
}

const char *fuse_mount(const char *path, const char *backing)
{
    char options[128];
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return "/dev/fuse cannot be opened";
    snprintf(options, sizeof options,
             "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device);
    if (mount("weir-test", path, "fuse", MS_NOSUID | MS_NODEV, options)) {
        close(device);
        return "this kernel has no FUSE";
    }
    proc_start(server_main, (void *)backing); /* it ends with the mount */
    close(device);
    return NULL;
}
