/* pack_place.c - see pack_place.h. */
#include "cli/pack_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/within.h"
#include "util/err.h"
#include "util/url.h"

/* Opens the store there; *is_store: whether it is one, and not a plain directory. */
static int open_there(struct cli *cli, weir_store **out, const char *url, bool make, bool *is_store)
{
    weir_store_options opts;
    weir_store_info info;
    weir_store *store;
    weir_store_options_init(&opts);
    opts.io = cli->io;
    opts.flags = make ? WEIR_STORE_CREATE : 0;
    int code = weir_store_open(&store, url, &opts);
    if (code)
        return code;
    code = weir_store_info_get(store, &info);
    *is_store = !code && info.uuid[0];
    if (code || !*is_store)
        weir_store_close(store);
    else
        *out = store;
    return code;
}

/* What is there and is no store: is it empty? */
static int check_empty(const char *url)
{
    weir_store *store;
    weir_list *list;
    const weir_entry *entry;
    int code = weir_store_open(&store, url, NULL);
    if (code)
        return code;
    code = weir_list_open(&list, store, "", 0);
    if (!code) {
        code = weir_list_next(list, &entry);
        if (code == 1)
            code = weir_fail(ENOTEMPTY,
                             "'%s' is no store, and '%s' is in it: choose an empty place, or one "
                             "that is not there yet",
                             url, entry->key);
        weir_list_close(list);
    }
    weir_store_close(store);
    return code;
}

static int make_store(struct cli *cli, struct pack_place *out, const char *url)
{
    bool is_store;
    int code = open_there(cli, &out->store, url, true, &is_store);
    if (!code && !(out->prefix = strdup("")))
        code = weir_fail_memory();
    return code;
}

/* Nothing is there. If the nearest directory above it is in a store, so will it be; -ENOENT if
 * not. */
static int open_below(struct cli *cli, struct pack_place *out, const char *path)
{
    char *above = strdup(path);
    struct weir_within within;
    bool is_store = false;
    int code = above ? -ENOENT : weir_fail_memory();
    size_t size = strlen(path), end = size;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (size_t cut = end; code == -ENOENT && cut;) {
        while (cut && path[cut - 1] != '/')
            cut--;
        const char *rest = path + cut;
        while (cut > 1 && path[cut - 1] == '/')
            cut--;
        snprintf(above, size + 1, "%.*s", (int)cut, path);
        code = weir_within_find(&within, cut ? above : ".");
        if (code)
            continue;
        code = open_there(cli, &out->store, within.store_url, false, &is_store);
        if (!code && !is_store)
            code = -ENOENT;
        if (!code &&
            asprintf(&out->prefix, "%s%.*s/", within.prefix, (int)(path + end - rest), rest) < 0)
            code = weir_fail_memory();
        weir_within_free(&within);
        break;
    }
    free(above);
    return code;
}

static int open_new(struct cli *cli, struct pack_place *out, const char *url)
{
    struct weir_url parts;
    int code = weir_url_parse(&parts, url);
    if (code)
        return code;
    code = strcmp(parts.scheme, "file") ? -ENOENT : open_below(cli, out, parts.path);
    weir_url_free(&parts);
    return code == -ENOENT ? make_store(cli, out, url) : code;
}

int pack_place_open(struct cli *cli, struct pack_place *out, const char *url)
{
    struct weir_within within;
    bool is_store;
    int code = weir_within_find(&within, url);
    if (code == -ENOENT)
        return open_new(cli, out, url);
    if (code)
        return code;
    if (within.only)
        code = weir_fail(ENOTDIR, "'%s' is a file: a dataset is packed into a directory", url);
    else
        code = open_there(cli, &out->store, within.store_url, false, &is_store);
    if (!code && is_store && !(out->prefix = strdup(within.prefix)))
        code = weir_fail_memory();
    weir_within_free(&within);
    if (code || is_store)
        return code;
    code = check_empty(url);
    return code ? code : make_store(cli, out, url);
}

void pack_place_close(struct pack_place *place)
{
    weir_store_close(place->store);
    free(place->prefix);
}
