/* place.c - see place.h. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "disk.h"
#include "fuse.h"
#include "proc.h"
#include "test.h"

enum { TEMPS_MAX = 8, MOUNTS_MAX = 32, LOOP_TRIES = 64 };

static char temps[TEMPS_MAX][PLACE_ROOM / 2];
static unsigned temps_count;
static char mounts[MOUNTS_MAX][PLACE_ROOM];
static unsigned mounts_count;
static pid_t owner; /* of the lists; children inherit them, not the duty */
static char reason[256];
static int last_image = -1;
static const char *image_dir;

static void clean(void)
{
    if (getpid() != owner)
        return;
    proc_end_all(); /* a test that failed may have left some that still write */
    while (mounts_count)
        place_unmount(mounts[mounts_count - 1]);
    while (temps_count)
        disk_remove(temps[--temps_count]);
}

const char *place_temp(const char *base)
{
    const char *given = getenv("TMPDIR");
    if (owner != getpid()) { /* what a parent made is the parent's */
        owner = getpid();
        temps_count = mounts_count = 0;
        atexit(clean);
    }
    CHECK(temps_count < TEMPS_MAX);
    char *path = temps[temps_count];
    snprintf(path, sizeof temps[0], "%s/weir-fault-XXXXXX",
             base              ? base
             : given && *given ? given
                               : "/tmp");
    CHECK(mkdtemp(path) && chmod(path, 0711) == 0); /* nobody goes through it, too */
    temps_count++;
    return path;
}

const char *place_memory(void)
{
    struct statvfs vfs;
    bool room = !statvfs("/dev/shm", &vfs) && vfs.f_bavail * vfs.f_frsize > 1 << 30;
    return room && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL;
}

const char *place_last(void)
{
    CHECK(temps_count);
    return temps[temps_count - 1];
}

void place_drop_last(void)
{
    disk_remove(place_last());
    temps_count--;
}

static const char *because(const char *what)
{
    snprintf(reason, sizeof reason, "%s: %s", what, strerror(errno));
    return reason;
}

const char *place_private(void)
{
    if (geteuid())
        return "only root can mount file systems";
    if (unshare(CLONE_NEWNS))
        return because("no mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return because("the mount namespace cannot be made private");
    return NULL;
}

/* A new directory to mount on. */
static void new_point(char path[PLACE_ROOM], const char *kind)
{
    static unsigned number;
    if (!temps_count)
        place_temp(NULL);
    snprintf(path, PLACE_ROOM, "%s/%s.%u", temps[0], kind, number++);
    CHECK(mkdir(path, 0755) == 0);
}

static const char *mounted(const char *path)
{
    CHECK(mounts_count < MOUNTS_MAX);
    strcpy(mounts[mounts_count++], path);
    return NULL;
}

/* A loop device for the image, which frees itself with its last user. Its descriptor, or -1. */
static int loop_attach(int image, unsigned sector_bytes, char device[64])
{
    int fd = -1, control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return -1;
    for (int tries = 0; fd < 0 && tries < LOOP_TRIES; tries++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            break;
        struct loop_config config = {.fd = (unsigned)image, .block_size = sector_bytes};
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        snprintf(device, 64, "/dev/loop%d", number);
        fd = open(device, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            break;
        if (ioctl(fd, LOOP_CONFIGURE, &config)) { /* another process may have been faster */
            close(fd);
            fd = -1;
        }
    }
    close(control);
    return fd;
}

static const char *mkfs(const char *type, unsigned sector_bytes, const char *image)
{
    char tool[32], sector[32];
    const char *ext[] = {tool, "-q", "-F", "-m", "0", "-b", "4096", image, NULL};
    const char *xfs[] = {tool, "-q", "-f", "-s", sector, image, NULL};
    const char *other[] = {tool, "-q", "-f", image, NULL};
    const char **argv = !strncmp(type, "ext", 3) ? ext : !strcmp(type, "xfs") ? xfs : other;
    snprintf(sector, sizeof sector, "size=%u", sector_bytes);
    snprintf(tool, sizeof tool, "mkfs.%s", type);
    if (!tool_exists(tool)) {
        snprintf(reason, sizeof reason, "%s is not installed", tool);
        return reason;
    }
    if (tool_run(argv)) {
        snprintf(reason, sizeof reason, "%s failed", tool);
        return reason;
    }
    return NULL;
}

static const char *mount_image(const char *path, const char *type, unsigned sector_bytes,
                               uint64_t bytes)
{
    char image[PLACE_ROOM + 8], device[64];
    snprintf(image, sizeof image, image_dir ? "%s/image" : "%s.img", image_dir ? image_dir : path);
    int fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    const char *why =
        ftruncate(fd, (off_t)bytes) ? because("no image") : mkfs(type, sector_bytes, image);
    if (!why) {
        int loop = loop_attach(fd, sector_bytes, device);
        if (loop < 0)
            why = because("no loop device");
        else if (mount(device, path, type, MS_NOATIME, ""))
            why = because("the image cannot be mounted");
        if (loop >= 0)
            close(loop);
    }
    if (last_image >= 0)
        close(last_image);
    last_image = fd;
    unlink(image);
    return why;
}

void place_images_in(const char *dir)
{
    image_dir = dir;
}

int place_last_image(void)
{
    return last_image;
}

static const char *mount_overlay(const char *path, uint64_t bytes)
{
    char base[PLACE_ROOM], options[4 * PLACE_ROOM], dir[PLACE_ROOM + 16];
    const char *why = place_mount(base, "tmpfs", bytes);
    if (why)
        return why;
    for (const char *const *part = (const char *const[]){"lower", "upper", "work", NULL}; *part;
         part++) {
        snprintf(dir, sizeof dir, "%s/%s", base, *part);
        CHECK(mkdir(dir, 0755) == 0);
    }
    snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", base,
             base, base);
    return mount("overlay", path, "overlay", 0, options) ? because("no overlayfs") : NULL;
}

static const char *mount_fuse(const char *path, uint64_t bytes)
{
    char base[PLACE_ROOM];
    const char *why = place_mount(base, "tmpfs", bytes);
    return why ? why : fuse_mount(path, base);
}

static const char *mount_kind(const char *path, const char *kind, uint64_t bytes)
{
    char type[16] = "", options[64] = "";
    const char *dash = strchr(kind, '-');
    size_t size = strcspn(kind, "-");
    CHECK(size < sizeof type);
    memcpy(type, kind, size);
    if (!strcmp(kind, "overlay"))
        return mount_overlay(path, bytes);
    if (!strcmp(kind, "fuse"))
        return mount_fuse(path, bytes);
    if (strcmp(type, "tmpfs") && strcmp(type, "ramfs"))
        return mount_image(path, type, dash ? 4096 : 512, bytes);
    if (!strcmp(type, "tmpfs"))
        snprintf(options, sizeof options, "size=%llu%s", (unsigned long long)bytes,
                 dash ? ",nr_inodes=256" : "");
    return mount(kind, path, type, 0, options) ? because(kind) : NULL;
}

const char *place_mount(char path[PLACE_ROOM], const char *kind, uint64_t bytes)
{
    new_point(path, kind);
    const char *why = mount_kind(path, kind, bytes);
    if (why) {
        rmdir(path);
        return why;
    }
    chmod(path, 0777);
    return mounted(path);
}

const char *place_bind(char path[PLACE_ROOM], const char *from, bool read_only)
{
    new_point(path, "bind");
    if (mount(from, path, NULL, MS_BIND, NULL) ||
        (read_only && mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL)))
        return because("no bind mount");
    return mounted(path);
}

void place_unmount(const char *path)
{
    if (umount2(path, 0))
        umount2(path, MNT_DETACH);
    rmdir(path);
    for (unsigned i = 0; i < mounts_count; i++)
        if (!strcmp(mounts[i], path)) {
            if (i != --mounts_count)
                strcpy(mounts[i], mounts[mounts_count]);
            return;
        }
}

uint64_t place_free_bytes(const char *path)
{
    struct statvfs vfs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    syncfs(fd);
    close(fd);
    CHECK(statvfs(path, &vfs) == 0);
    return (uint64_t)vfs.f_bavail * vfs.f_frsize;
}
