/* target.c - see target.h. */
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/stop.h"
#include "util/err.h"

enum {
    NAMES_MAX = 1000, /* names tried that leftovers of killed processes may have */
    DIRECT_ALIGN = 4096,
    DIRECT_BYTES_MIN = 1 << 20,
};

static int fail(const char *what, const char *path)
{
    return weir_fail(errno, "cannot %s '%s': %s", what, path, weir_errno_text(errno));
}

static int exists(const char *path)
{
    return weir_fail(EEXIST, "'%s' exists already: --force replaces it", path);
}

static int make_directories(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return weir_fail_memory();
    int code = 0;
    for (char *at = copy; !code && (at = strchr(at + 1, '/'));) {
        *at = 0;
        if (mkdir(copy, 0777) && errno != EEXIST)
            code = fail("make directory", copy);
        *at = '/';
    }
    free(copy);
    return code;
}

/* Opens a new file beside path. */
static int open_tmp(struct target *t)
{
    static atomic_uint serial;
    const char *slash = strrchr(t->path, '/');
    int dir = slash ? (int)(slash + 1 - t->path) : 0;
    for (int tries = 0; tries < NAMES_MAX; tries++) {
        if (asprintf(&t->tmp, "%.*s.weir-get-%d-%u", dir, t->path, getpid(), serial++) < 0) {
            t->tmp = NULL;
            return weir_fail_memory();
        }
        t->fd = open(t->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (t->fd >= 0)
            return 0;
        free(t->tmp);
        t->tmp = NULL;
        if (errno != EEXIST)
            break;
    }
    return fail("write", t->path);
}

int target_open(struct target *target, const char *path, bool force)
{
    struct target t = {.path = path, .fd = STDOUT_FILENO, .force = force};
    struct stat st;
    int code = 0;
    if (!strcmp(path, "-")) {
        *target = t;
        return 0;
    }
    bool there = stat(path, &st) == 0;
    if (there && S_ISREG(st.st_mode) && !force)
        return exists(path);
    if (there && S_ISDIR(st.st_mode))
        return weir_fail(EISDIR, "cannot write '%s': it is a directory", path);
    if (there && !S_ISREG(st.st_mode)) {
        t.fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        code = t.fd < 0 ? fail("write", path) : 0;
    } else {
        code = make_directories(path);
        if (!code)
            code = open_tmp(&t);
    }
    if (!code)
        *target = t;
    return code;
}

/* How much of [data, data + size) to write next, and whether around the page cache: large aligned
 * pieces of a new file go faster that way, and nobody's cache is emptied for them. */
static size_t next_piece(struct target *t, const char *data, size_t size)
{
    bool aligned = (uintptr_t)data % DIRECT_ALIGN == 0 && t->offset % DIRECT_ALIGN == 0;
    bool direct = t->tmp && !t->no_direct && aligned && size >= DIRECT_BYTES_MIN;
    if (direct != t->direct && fcntl(t->fd, F_SETFL, direct ? O_DIRECT : 0))
        t->no_direct = true;
    else
        t->direct = direct;
    return t->direct ? size / DIRECT_ALIGN * DIRECT_ALIGN : size;
}

int target_write(struct target *target, const void *data, size_t size)
{
    const char *at = data, *end = at + size;
    while (at < end) {
        size_t piece = next_piece(target, at, (size_t)(end - at));
        ssize_t n = write(target->fd, at, piece);
        if (n < 0 && errno == EINVAL && target->direct) {
            target->no_direct = true; /* a file system that takes the flag, and then refuses it */
            continue;
        }
        if (n < 0 && errno == EPIPE)
            stop_for_closed_pipe();
        if (stop_asked())
            return stop_fail();
        if (n < 0 && errno != EINTR)
            return fail("write", target->path);
        at += n > 0 ? n : 0;
        target->offset += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

/* Without force nothing is replaced, also not what appeared meanwhile. */
static int give_name(const struct target *t)
{
    if (t->force)
        return rename(t->tmp, t->path);
    if (renameat2(AT_FDCWD, t->tmp, AT_FDCWD, t->path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* A file system without it (NFS): a link does not replace anything either. */
    return link(t->tmp, t->path) ? -1 : unlink(t->tmp);
}

int target_commit(struct target *target)
{
    if (!target->tmp)
        return 0;
    if (fdatasync(target->fd))
        return fail("sync", target->path);
    if (give_name(target))
        return errno == EEXIST ? exists(target->path) : fail("write", target->path);
    free(target->tmp);
    target->tmp = NULL;
    return 0;
}

int target_draw(struct target *target, void (*draw)(FILE *out, const void *arg), const void *arg)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return weir_fail_memory();
    draw(out, arg);
    int code = fclose(out) ? weir_fail_memory() : target_write(target, text, size);
    free(text);
    return code ? code : target_commit(target);
}

void target_close(struct target *target)
{
    if (target->tmp)
        unlink(target->tmp);
    free(target->tmp);
    target->tmp = NULL;
    if (target->fd > STDERR_FILENO)
        close(target->fd);
    target->fd = -1;
}

int target_draw_file(const char *path, void (*draw)(FILE *out, const void *arg), const void *arg)
{
    struct target target;
    int code = target_open(&target, path, true);
    if (code)
        return code;
    code = target_draw(&target, draw, arg);
    target_close(&target);
    return code;
}
