/* stripe.c - see stripe.h. */
#include "io/stripe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/key.h"
#include "util/sys.h"

#define SHARE_BYTES                                                                                \
    ((uint64_t)1 << 30) /* of a large file, on each server; smaller ones: as usual */
#define KNOWN_BYTES_MIN ((uint64_t)64 << 20) /* where a count was asked for, from this size on */
enum { COUNT_MAX = 32 };                     /* chosen here: more servers wait for the slowest */

/* Over how many servers? 0: as the directory says. */
static uint64_t count_for(const struct weir_stripes *stripes, uint64_t size)
{
    if (!stripes->bytes)
        return 0;
    if (stripes->count)
        return size && size < KNOWN_BYTES_MIN ? 0 : stripes->count;
    uint64_t count = size / SHARE_BYTES;
    return count < COUNT_MAX ? count : COUNT_MAX;
}

/* A path that no tool takes for an option; false if it is too long. */
static bool path_of(char path[PATH_MAX], const struct weir_dirs *dirs, const char *name,
                    const char *base)
{
    const char *root = weir_dirs_root(dirs);
    int size = snprintf(path, PATH_MAX, "%s%s/%s%s", *root == '/' ? "" : "./", root, name, base);
    return size > 0 && size < PATH_MAX;
}

/* The tool makes files as everybody may write them: its bits are what the umask lets through. */
static int take_over(struct weir_dir *dir, const char *base)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(dir->fd, base, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int code = weir_sys->fstat(fd, &st);
    if (!code)
        code = st.is_file && st.nlink == 1 && !st.size ? weir_sys->fchmod(fd, st.mode & 0444)
                                                       : -EINVAL;
    if (!code)
        return fd;
    weir_sys->close(fd);
    return code;
}

/* A new file with that layout, or false: then there is none. */
static bool open_laid_out(struct weir_tmp *tmp, struct weir_dirs *dirs,
                          struct weir_stripes *stripes, uint64_t count)
{
    char path[PATH_MAX], count_text[24], bytes_text[24];
    const char *argv[] = {"lfs", "setstripe", "-c", count_text, "-S", bytes_text, path, NULL};
    struct weir_tmp made = {.fd = -1};
    uint8_t nonce[WEIR_NONCE_BYTES];
    if (weir_sys->random(nonce, sizeof nonce))
        return false;
    weir_hex(made.base, nonce, sizeof nonce);
    if (!path_of(path, dirs, WEIR_DIR_TMP, made.base) ||
        weir_dirs_get(dirs, WEIR_DIR_TMP, WEIR_DIRS_MAKE, &made.dir, NULL))
        return false;
    snprintf(count_text, sizeof count_text, "%" PRIu64, count);
    snprintf(bytes_text, sizeof bytes_text, "%" PRIu64, stripes->bytes);
    int code = weir_sys->run(argv, NULL, 0);
    atomic_store(&stripes->missing, code == -ENOENT);
    if (code != -ENOENT)
        made.fd = take_over(made.dir, made.base);
    if (made.fd >= 0) {
        *tmp = made;
        return true;
    }
    weir_sys->unlink(made.dir->fd, made.base, false);
    weir_dirs_put(dirs, made.dir);
    return false;
}

int weir_stripe_open(struct weir_tmp *tmp, struct weir_dirs *dirs, struct weir_stripes *stripes,
                     uint64_t size)
{
    bool can = weir_dirs_kind(dirs)->is_striped && !atomic_load(&stripes->missing);
    uint64_t count = can ? count_for(stripes, size) : 0;
    return count && open_laid_out(tmp, dirs, stripes, count) ? 0 : weir_tmp_open(tmp, dirs);
}

/* The largest number behind "what:" in the tool's answer, which has one for each part of a layout
 * that changes along the file; 0: none. */
static uint64_t number_of(const char *text, const char *what)
{
    uint64_t most = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) {
        long long number = strtoll(at + strlen(what), NULL, 10);
        if (number > 0 && (uint64_t)number > most)
            most = (uint64_t)number;
    }
    return most;
}

int weir_stripe_show(char *out, size_t room, const struct weir_dirs *dirs, const char *name)
{
    char path[PATH_MAX], answer[4096] = "";
    const char *argv[] = {"lfs", "getstripe", "-c", "-S", path, NULL};
    if (!weir_dirs_kind(dirs)->is_striped || !path_of(path, dirs, name, "") ||
        weir_sys->run(argv, answer, sizeof answer))
        return -ENOTSUP;
    uint64_t count = number_of(answer, "stripe_count:"), bytes = number_of(answer, "stripe_size:");
    if (!count || !bytes)
        return -ENOTSUP;
    snprintf(out, room, "%" PRIu64 " stripe%s of %" PRIu64 " bytes", count, count == 1 ? "" : "s",
             bytes);
    return 0;
}
