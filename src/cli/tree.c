/* tree.c - see tree.h. */
#include "cli/tree.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/err.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Why an entry cannot be stored; 0 if it can. */
static int refusal(const FTSENT *entry, bool follow, uint64_t *size)
{
    struct stat st;
    const char *path = entry->fts_path;
    *size = 0;
    switch (entry->fts_info) {
    case FTS_F:
        *size = (uint64_t)entry->fts_statp->st_size;
        return 0;
    case FTS_SL:
    case FTS_SLNONE:
        if (!follow)
            return weir_fail(ELOOP, "'%s' is a symbolic link: --follow stores what it points to",
                             path);
        if (stat(path, &st))
            return weir_fail(errno, "cannot follow '%s': %s", path, weir_errno_text(errno));
        if (!S_ISREG(st.st_mode))
            return weir_fail(EINVAL, "'%s' does not point to a plain file", path);
        *size = (uint64_t)st.st_size;
        return 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return weir_fail(entry->fts_errno, "cannot read '%s': %s", path,
                         weir_errno_text(entry->fts_errno));
    default:
        return weir_fail(EINVAL, "'%s' is not a plain file", path);
    }
}

static int add_entry(struct items *items, const FTSENT *entry, size_t dir_size, const char *key,
                     bool follow)
{
    char *name;
    uint64_t size;
    const char *rest = entry->fts_path + dir_size;
    rest += strspn(rest, "/");
    if (asprintf(&name, "%s%s%s", key, *rest ? "/" : "", rest) < 0)
        return weir_fail_memory();
    int refused = refusal(entry, follow, &size);
    int code = items_add(items, name, entry->fts_path, size);
    if (!code && refused)
        item_failed(&items->item[items->count - 1], refused);
    free(name);
    return code;
}

/* Whether a directory is a store, or the engine's own part of one. */
static bool is_store(const FTSENT *entry)
{
    char *marker;
    bool own = !strcmp(entry->fts_name, ".weir");
    if (entry->fts_level == FTS_ROOTLEVEL ||
        asprintf(&marker, "%s%s/store", entry->fts_path, own ? "" : "/.weir") < 0)
        return false;
    bool found = access(marker, F_OK) == 0;
    free(marker);
    return found;
}

int tree_add(const struct cli *cli, struct items *items, const char *dir, const char *key,
             bool follow)
{
    char *roots[] = {(char *)dir, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    if (!walk)
        return weir_fail(errno, "cannot read '%s': %s", dir, weir_errno_text(errno));
    int code = 0;
    FTSENT *entry;
    errno = 0;
    while (!code && (entry = fts_read(walk))) {
        if (entry->fts_info == FTS_D && is_store(entry)) {
            cli_note(cli, "left out %s: it belongs to a store", entry->fts_path);
            fts_set(walk, entry, FTS_SKIP);
        } else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
            code = add_entry(items, entry, strlen(dir), key, follow);
        }
    }
    if (!code && errno)
        code = weir_fail(errno, "cannot read '%s': %s", dir, weir_errno_text(errno));
    fts_close(walk);
    return code;
}
