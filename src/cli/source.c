/* source.c - see source.h. Only the main thread reads streams, which may block: see stop.h. */
#include "cli/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/stop.h"
#include "util/err.h"

static int fail(const char *what, const char *path)
{
    if (errno == EINTR && stop_asked())
        return stop_fail();
    return weir_fail(errno, "cannot %s '%s': %s", what, path, weir_errno_text(errno));
}

int source_open(struct source *source, const char *path)
{
    bool input = !strcmp(path, "-");
    struct source s = {.path = input ? "standard input" : path, .fd = STDIN_FILENO};
    if (!input)
        s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s.fd < 0)
        return fail("open", path);
    if (fstat(s.fd, &s.st)) {
        int code = fail("open", s.path);
        source_close(&s);
        return code;
    }
    /* What is redirected from may stand anywhere in its file: that is a stream, too. */
    s.plain = S_ISREG(s.st.st_mode) && !input;
    if (s.plain)
        posix_fadvise(s.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    *source = s;
    return 0;
}

int source_read(struct source *source, void *buf, size_t size, size_t *got)
{
    ssize_t n;
    do {
        if (stop_asked())
            return stop_fail();
        n = read(source->fd, buf, size);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail("read", source->path);
    *got = (size_t)n;
    return 0;
}

int source_rewind(struct source *source)
{
    if (!source->plain)
        return weir_fail(ESPIPE, "'%s' cannot be read twice", source->path);
    return lseek(source->fd, 0, SEEK_SET) < 0 ? fail("rewind", source->path) : 0;
}

int source_check(const struct source *source)
{
    struct stat now;
    if (!source->plain)
        return 0;
    if (fstat(source->fd, &now))
        return fail("look at", source->path);
    if (now.st_size != source->st.st_size || now.st_mtim.tv_sec != source->st.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != source->st.st_mtim.tv_nsec)
        return weir_fail(ESTALE, "'%s' changed while it was being read: nothing was stored",
                         source->path);
    return 0;
}

void source_close(struct source *source)
{
    if (source->fd > STDIN_FILENO)
        close(source->fd);
    source->fd = -1;
}
