/* within.c - see within.h. */
#include "store/within.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"
#include "util/url.h"

/* Is that the directory of a store? */
static bool is_store(const char *path)
{
    char marker[PATH_MAX + sizeof WEIR_NAME_STORE + 1];
    struct weir_sys_stat st;
    snprintf(marker, sizeof marker, "%s/%s", path, WEIR_NAME_STORE);
    return !weir_sys->stat(AT_FDCWD, marker, &st) && st.is_file;
}

/* How much of an absolute path is the nearest store's directory; all of it if there is none. */
static size_t root_length(const char *path)
{
    char root[PATH_MAX];
    size_t whole = strlen(path);
    snprintf(root, sizeof root, "%s", path);
    for (size_t size = whole; size;) {
        root[size] = 0;
        const char *rest = path + size + (size < whole);
        if (is_store(root) && !weir_prefix_check(rest) && !weir_name_is_own(rest))
            return size;
        while (size && root[size - 1] != '/')
            size--;
        size -= size > 0; /* "/" itself is no store */
    }
    return whole;
}

/* The URL of a directory with the options of another URL. */
static char *url_with(const char *root, size_t size, const char *query)
{
    char *out = weir_alloc(3 * size + strlen(query) + sizeof "file:"), *to = out;
    if (!out)
        return NULL;
    if (*query)
        to = stpcpy(to, "file:");
    for (size_t i = 0; i < size; i++)
        if (*query && (root[i] == '%' || root[i] == '?'))
            to += sprintf(to, "%%%02x", root[i]);
        else
            *to++ = root[i];
    strcpy(to, query);
    return out;
}

/* A path that was resolved: `only` is NULL for a directory. */
static int fill(struct weir_within *out, const char *dir, const char *only, const char *query)
{
    char place[PATH_MAX + 1], prefix[PATH_MAX + 1];
    size_t size = root_length(dir), whole = strlen(dir);
    bool joins = only && strcmp(dir, "/") != 0;
    snprintf(place, sizeof place, "%s%s%s", dir, joins ? "/" : "", only ? only : "");
    snprintf(prefix, sizeof prefix, "%s%s", size < whole ? dir + size + 1 : "",
             size < whole ? "/" : "");
    struct weir_within w = {
        .store_url = size ? url_with(dir, size, query) : url_with("/", 1, query),
        .place = weir_strdup(place),
        .prefix = weir_strdup(prefix),
        .only = only ? weir_strdup(only) : NULL,
    };
    if (w.store_url && w.place && w.prefix && (w.only || !only)) {
        *out = w;
        return 0;
    }
    weir_within_free(&w);
    return weir_fail_memory();
}

static int find_path(struct weir_within *out, const char *path, const char *query)
{
    char whole[PATH_MAX];
    struct weir_sys_stat st;
    if (!realpath(path, whole))
        return errno == ENOENT
                   ? weir_fail(ENOENT, "there is nothing at '%s'", path)
                   : weir_fail(errno, "cannot look at '%s': %s", path, weir_errno_text(errno));
    int code = weir_sys->stat(AT_FDCWD, whole, &st);
    if (code)
        return weir_fail(-code, "cannot look at '%s': %s", path, weir_errno_text(code));
    if (st.is_dir)
        return fill(out, whole, NULL, query);
    if (!st.is_file)
        return weir_fail(EINVAL, "'%s' is neither a directory nor a file", path);
    /* A link's own name says what it is, and where it lies: it may lead to a nameless blob. */
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(base - path) : 1, slash ? path : ".");
    if (!realpath(dir, whole))
        return weir_fail(errno, "cannot look at '%s': %s", dir, weir_errno_text(errno));
    return fill(out, whole, base, query);
}

/* Something that is no directory: all of it. */
static int fill_url(struct weir_within *out, const char *url)
{
    struct weir_within w = {weir_strdup(url), weir_strdup(url), weir_strdup(""), NULL};
    if (w.store_url && w.place && w.prefix) {
        *out = w;
        return 0;
    }
    weir_within_free(&w);
    return weir_fail_memory();
}

int weir_within_find(struct weir_within *out, const char *url)
{
    struct weir_url parsed;
    int code = weir_url_parse(&parsed, url);
    if (code)
        return code;
    const char *query = parsed.options ? strchr(url, '?') : NULL;
    if (strcmp(parsed.scheme, "file"))
        code = fill_url(out, url);
    else if (!*parsed.path)
        code = weir_fail(EINVAL, "a path or a URL is needed");
    else
        code = find_path(out, parsed.path, query ? query : "");
    weir_url_free(&parsed);
    return code;
}

void weir_within_free(struct weir_within *w)
{
    free(w->store_url);
    free(w->place);
    free(w->prefix);
    free(w->only);
    *w = (struct weir_within){0};
}
