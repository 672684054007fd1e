/* source.c - see source.h. */
#include "ckpt/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

static bool is_same(const struct weir_source_file *file, const struct weir_sys_stat *st)
{
    return file->size == st->size && file->mtime_ns == st->mtime_ns && file->dev == st->dev &&
           file->ino == st->ino;
}

static int changed(const struct weir_source_file *file)
{
    return weir_fail(ESTALE, "'%s' was changed meanwhile: import it again when nobody writes to it",
                     file->path);
}

/* Closes one of those that are open, each in its turn. */
static void close_one(struct weir_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        struct weir_source_file *file = source->files[source->turn++ % source->count];
        if (file->fd < 0)
            continue;
        weir_sys->close(file->fd);
        file->fd = -1;
        source->open--;
        return;
    }
}

static int file_open(struct weir_source_file *file, struct weir_sys_stat *st)
{
    if (file->source->open == WEIR_SOURCE_OPEN_MAX)
        close_one(file->source);
    int fd = weir_sys->open(AT_FDCWD, file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return weir_fail(-fd, "cannot open '%s': %s", file->path, weir_errno_text(fd));
    int code = weir_sys->fstat(fd, st);
    if (code) {
        weir_sys->close(fd);
        return weir_fail(-code, "cannot look at '%s': %s", file->path, weir_errno_text(code));
    }
    file->fd = fd;
    file->source->open++;
    return 0;
}

/* Opens it again if it was closed to make room. */
static int file_ready(struct weir_source_file *file)
{
    struct weir_sys_stat st;
    if (file->fd >= 0 || file->bytes)
        return 0;
    int code = file_open(file, &st);
    if (code)
        return code;
    return is_same(file, &st) ? 0 : changed(file);
}

static void file_free(struct weir_source_file *file)
{
    if (file->fd >= 0) {
        weir_sys->close(file->fd);
        file->source->open--;
    }
    free(file->path);
    free(file);
}

static int source_append(struct weir_source *source, const char *path,
                         struct weir_source_file **out)
{
    if (source->count == source->room) {
        size_t room = source->room ? 2 * source->room : 16;
        void *more = weir_realloc(source->files, room * sizeof *source->files);
        if (!more)
            return weir_fail_memory();
        source->files = more;
        source->room = room;
    }
    struct weir_source_file *file = weir_alloc(sizeof *file);
    char *copy = file ? weir_strdup(path) : NULL;
    if (!copy) {
        free(file);
        return weir_fail_memory();
    }
    file->source = source;
    file->path = copy;
    file->fd = -1;
    source->files[source->count++] = file;
    *out = file;
    return 0;
}

int weir_source_add(struct weir_source *source, const char *path, struct weir_source_file **out)
{
    struct weir_sys_stat st;
    struct weir_source_file *file = NULL;
    for (size_t i = 0; i < source->count; i++) {
        if (strcmp(source->files[i]->path, path))
            continue;
        *out = source->files[i];
        return 0;
    }
    int code = source_append(source, path, &file);
    if (code)
        return code;
    code = file_open(file, &st);
    if (!code && !st.is_file)
        code = weir_fail(st.is_dir ? EISDIR : EINVAL, "'%s' is not a plain file", path);
    if (code) {
        source->count--;
        file_free(file);
        return code;
    }
    file->size = st.size;
    file->mtime_ns = st.mtime_ns;
    file->dev = st.dev;
    file->ino = st.ino;
    source->bytes += st.size;
    *out = file;
    return 0;
}

int weir_source_add_bytes(struct weir_source *source, const void *bytes, size_t size,
                          struct weir_source_file **out)
{
    int code = source_append(source, "(memory)", out);
    if (code)
        return code;
    (*out)->bytes = bytes;
    (*out)->size = size;
    source->bytes += size;
    return 0;
}

int weir_source_read(struct weir_source_file *file, uint64_t at, void *buf, size_t size)
{
    if (at > file->size || size > file->size - at)
        return weir_fail(EBADMSG, "'%s' has %" PRIu64 " bytes, and %zu at %" PRIu64 " are needed",
                         file->path, file->size, size, at);
    int code = file_ready(file);
    if (code)
        return code;
    if (file->bytes) {
        memcpy(buf, file->bytes + at, size);
        return 0;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n = weir_sys->pread(file->fd, (char *)buf + done, size - done, at + done);
        if (n < 0)
            return weir_fail((int)-n, "cannot read '%s': %s", file->path, weir_errno_text((int)n));
        if (!n)
            return changed(file); /* it was longer when it was added */
        done += (size_t)n;
    }
    return 0;
}

int weir_source_check(struct weir_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        struct weir_source_file *file = source->files[i];
        struct weir_sys_stat st;
        int code = file_ready(file);
        if (!code && file->bytes)
            continue;
        if (!code)
            code = weir_sys->fstat(file->fd, &st);
        if (code)
            return code;
        if (!is_same(file, &st))
            return changed(file);
    }
    return 0;
}

void weir_source_close(struct weir_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        file_free(source->files[i]);
    free(source->files);
    *source = (struct weir_source){0};
}

int weir_extent_read(const struct weir_extent *span, uint64_t at, void *buf, size_t size)
{
    if (at > span->size || size > span->size - at)
        return weir_fail(EBADMSG,
                         "'%s': %zu bytes are needed at %" PRIu64 " of a part that has %" PRIu64,
                         span->file->path, size, at, span->size);
    return weir_source_read(span->file, span->begin + at, buf, size);
}
