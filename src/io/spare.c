/* spare.c - see spare.h. A spare's name is its size and 32 digits: "2147483648-3f9c…". */
#include "io/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dents.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    SPARES_MAX = 64,   /* looked through at every large put */
    FREE_SHARE = 2,    /* of what is free they are at most one part in so many */
    CLAIMS_MAX = 4,    /* somebody else may be faster */
    READY_MODE = 0600, /* what a spare has when it may be taken, and no object ever has */
    BASE_BYTES = 64,
};

struct weir_spares {
    struct weir_dirs *dirs;
    uint64_t bytes_max, bytes_min;
    atomic_bool kept;
};

struct spare {
    uint64_t size;
    char base[BASE_BYTES];
};

/* What there was at a look. */
struct spare_list {
    struct weir_dir *dir; /* NULL: there is none yet */
    struct weir_dirs *dirs;
    unsigned count;
    uint64_t bytes;
    struct spare at[SPARES_MAX];
    struct weir_dents dents;
};

int weir_spares_open(struct weir_spares **out, struct weir_dirs *dirs, uint64_t bytes_max,
                     uint64_t bytes_min)
{
    struct weir_spares *spares = weir_alloc(sizeof *spares);
    if (!spares)
        return weir_fail_memory();
    spares->dirs = dirs;
    spares->bytes_max = bytes_max;
    spares->bytes_min = bytes_min;
    *out = spares;
    return 0;
}

void weir_spares_close(struct weir_spares *spares)
{
    if (spares && spares->kept)
        weir_spares_drop(spares, false);
    free(spares);
}

/* ---- what there is ---- */

static void list_free(struct spare_list *list)
{
    if (!list)
        return;
    weir_dirs_put(list->dirs, list->dir);
    free(list);
}

static void list_add(struct spare_list *list, const char *name)
{
    char *end;
    uint64_t size = strtoull(name, &end, 10);
    if (*end != '-' || strlen(name) >= BASE_BYTES || list->count == SPARES_MAX)
        return;
    struct spare *spare = &list->at[list->count++];
    spare->size = size;
    strcpy(spare->base, name);
    list->bytes += size;
}

/* NULL if that cannot be found out, or (mode: only to find) there is no place for spares. */
static struct spare_list *list_read(struct weir_spares *spares, enum weir_dirs_mode mode)
{
    struct spare_list *list = weir_alloc(sizeof *list);
    char text[WEIR_TEXT_MAX]; /* of what the caller is about: nobody hears of failures here */
    const char *name;
    int type = -ENOENT;
    if (!list)
        return NULL;
    snprintf(text, sizeof text, "%s", weir_fail_last());
    list->dirs = spares->dirs;
    if (!weir_dirs_get(spares->dirs, WEIR_DIR_SPARE, mode, &list->dir, NULL) &&
        !weir_dents_open(&list->dents, list->dir)) {
        while ((type = weir_dents_look(&list->dents, &name)) > 0) {
            if (type == 'f')
                list_add(list, name);
            weir_dents_skip(&list->dents);
        }
        weir_dents_close(&list->dents);
    }
    weir_fail_text(0, text);
    if (!type)
        return list;
    list_free(list);
    return NULL;
}

static uint64_t list_drop(struct spare_list *list)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < list->count; i++)
        if (!weir_sys->unlink(list->dir->fd, list->at[i].base, false))
            bytes += list->at[i].size;
    list->count = 0;
    list->bytes = 0;
    return bytes;
}

uint64_t weir_spares_drop(struct weir_spares *spares, bool dry)
{
    struct spare_list *list = list_read(spares, WEIR_DIRS_FIND);
    uint64_t bytes = !list ? 0 : dry ? list->bytes : list_drop(list);
    list_free(list);
    return bytes;
}

void weir_spares_make_room(struct weir_spares *spares, uint64_t bytes)
{
    struct weir_sys_space space;
    struct weir_dir *dir;
    if (weir_dirs_get(spares->dirs, WEIR_DIR_SPARE, WEIR_DIRS_FIND, &dir, NULL))
        return;
    bool is_short = !weir_sys->space(dir->fd, &space) && space.free_bytes < bytes;
    weir_dirs_put(spares->dirs, dir);
    if (is_short)
        weir_spares_drop(spares, false);
}

/* ---- keeping ---- */

/* What is short of space now drops what it has. */
static bool has_room(struct weir_spares *spares, struct spare_list *list, uint64_t size)
{
    struct weir_sys_space space;
    if (weir_sys->space(list->dir->fd, &space) || !space.is_local)
        return false;
    uint64_t most = space.free_bytes / FREE_SHARE;
    most = most < spares->bytes_max ? most : spares->bytes_max;
    if (list->bytes > most)
        list_drop(list);
    return list->count < SPARES_MAX && size <= most - list->bytes;
}

/* It has no other name, and never will again: it is nobody's. */
static int make_ready(struct weir_dir *dir, const char *base)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(dir->fd, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int code = weir_sys->fstat(fd, &st);
    if (!code)
        code = st.nlink == 1 ? weir_sys->fchmod(fd, READY_MODE) : -EMLINK;
    weir_sys->close(fd);
    return code;
}

static int move_in(struct weir_dir *dir, const char *base, struct weir_dir *to, const char *name)
{
    int code = weir_sys->link(dir->fd, base, to->fd, name);
    if (!code)
        code = weir_sys->unlink(dir->fd, base, false);
    /* The removal is durable before anybody may write to the file. */
    if (code || weir_sys->fsync(dir->fd) || make_ready(to, name))
        weir_sys->unlink(to->fd, name, false);
    return code;
}

int weir_spares_keep(struct weir_spares *spares, struct weir_dir *dir, const char *base)
{
    uint8_t nonce[WEIR_NONCE_BYTES];
    char digits[2 * WEIR_NONCE_BYTES + 1], name[BASE_BYTES];
    struct weir_sys_stat st;
    if (!spares->bytes_max)
        return -ENOTSUP;
    int code = weir_sys->stat(dir->fd, base, &st);
    if (code)
        return code;
    if (!st.is_file || st.nlink != 1 || st.size < spares->bytes_min)
        return -EINVAL;
    struct spare_list *list = list_read(spares, WEIR_DIRS_MAKE);
    if (!list)
        return -EIO;
    code = has_room(spares, list, st.size) ? weir_sys->random(nonce, sizeof nonce) : -ENOSPC;
    if (!code) {
        weir_hex(digits, nonce, sizeof nonce);
        snprintf(name, sizeof name, "%" PRIu64 "-%s", st.size, digits);
        spares->kept = true;
        code = move_in(dir, base, list->dir, name);
    }
    list_free(list);
    return code;
}

/* ---- taking ---- */

/* The one whose size is nearest, within a factor of two; NULL if there is none. */
static struct spare *nearest(struct spare_list *list, uint64_t size)
{
    struct spare *best = NULL;
    uint64_t best_off = 0;
    for (unsigned i = 0; i < list->count; i++) {
        struct spare *spare = &list->at[i];
        uint64_t off = spare->size > size ? spare->size - size : size - spare->size;
        if (spare->size / 2 > size || spare->size < size / 2 || (best && off >= best_off))
            continue;
        best = spare;
        best_off = off;
    }
    return best;
}

/* Is it ready, and would it belong to whom a fresh file belongs? */
static bool is_ready(const struct weir_sys_stat *st, const struct weir_sys_stat *fresh)
{
    return st->is_file && st->nlink == 1 && st->mode == READY_MODE && st->uid == fresh->uid &&
           st->gid == fresh->gid;
}

/* It is below our own temporary name now; may it be written to? Then it is like a fresh one, but
 * for its bytes. */
static int make_fresh(int fd, const struct weir_sys_stat *fresh, uint64_t size)
{
    struct weir_sys_stat st;
    int code = weir_sys->fstat(fd, &st);
    if (!code && st.nlink != 1)
        code = -EMLINK;
    if (!code)
        code = weir_sys->recyclable(fd);
    if (!code)
        code = weir_sys->fchmod(fd, fresh->mode);
    if (!code && st.size > size)
        code = weir_sys->ftruncate(fd, size);
    return code;
}

/* Claims one as the temporary `base`. Its descriptor, or -errno. *size: wanted, then there. */
static int claim(struct weir_dir *from, const char *name, const struct weir_tmp *tmp,
                 const char *base, const struct weir_sys_stat *fresh, uint64_t *size)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(from->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int code = weir_sys->fstat(fd, &st);
    if (!code)
        code = is_ready(&st, fresh) ? 0 : -EPERM;
    /* Before it is a temporary it is a young one: gc takes the old ones. */
    if (!code)
        code = weir_sys->touch(fd);
    if (!code) {
        code = weir_sys->link(from->fd, name, tmp->dir->fd, base);
        if (!code)
            code = weir_sys->unlink(from->fd, name, false); /* only one can */
        if (!code)
            code = make_fresh(fd, fresh, *size);
        if (!code) {
            *size = st.size < *size ? st.size : *size;
            return fd;
        }
        weir_sys->unlink(tmp->dir->fd, base, false);
    }
    weir_sys->close(fd);
    return code;
}

/* Claims the best one there is. Its descriptor, or -errno. */
static int claim_any(struct spare_list *list, const struct weir_tmp *tmp, const char *base,
                     uint64_t *size)
{
    struct weir_sys_stat fresh;
    int code = weir_sys->fstat(tmp->fd, &fresh), fd = -ENOENT;
    for (int i = 0; !code && fd < 0 && i < CLAIMS_MAX; i++) {
        struct spare *spare = nearest(list, *size);
        if (!spare)
            break;
        fd = claim(list->dir, spare->base, tmp, base, &fresh, size);
        *spare = list->at[--list->count];
    }
    return fd;
}

uint64_t weir_spares_take(struct weir_spares *spares, struct weir_tmp *tmp, uint64_t size)
{
    char base[sizeof tmp->base];
    if (!spares->bytes_max || size < spares->bytes_min)
        return 0;
    struct spare_list *list = list_read(spares, WEIR_DIRS_FIND);
    if (!list)
        return 0;
    snprintf(base, sizeof base, "%.32s+", tmp->base);
    int fd = claim_any(list, tmp, base, &size);
    list_free(list);
    if (fd < 0)
        return 0;
    weir_sys->close(tmp->fd);
    weir_sys->unlink(tmp->dir->fd, tmp->base, false);
    tmp->fd = fd;
    strcpy(tmp->base, base);
    return size;
}
