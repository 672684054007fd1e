/* s3_list.c - LIST: one level, in pages of the server's that are handed on in pages of the
 * caller's. What has a tombstone's size is looked at before it is shown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3.h"
#include "util/err.h"
#include "util/sys.h"

enum { EMPTY_PAGES_MAX = 1000 }; /* in a row: a server that says for ever that more is to come */

struct cursor {
    struct weir_handle handle;
    char prefix[2 * WEIR_NAME_BYTES_MAX]; /* of the keys: the store's, and the directory */
    bool deep, begun, any;
    struct weir_s3_turns turns;
    struct weir_s3_page page;
    bool *hidden; /* by entry: a tombstone */
    size_t next;
};

static void page_free(struct cursor *c)
{
    weir_s3_page_free(&c->page);
    memset(&c->page, 0, sizeof c->page);
    free(c->hidden);
    c->hidden = NULL;
    c->next = 0;
}

static void cursor_close(struct weir_handle *handle)
{
    page_free((struct cursor *)handle);
    free(handle);
}

/* ---- tombstones ---- */

/* Many looks at once. */
struct looks {
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t left;
};

static void look_done(struct weir_s3_trip *trip)
{
    struct looks *looks = trip->owner;
    pthread_mutex_lock(&looks->lock);
    looks->left--;
    pthread_cond_signal(&looks->over);
    pthread_mutex_unlock(&looks->lock);
}

static bool may_be_tomb(const struct weir_s3_entry *entry)
{
    return !entry->is_prefix && entry->size == WEIR_S3_TOMB_BYTES;
}

static void look_at_all(struct weir_s3_tier *t, struct weir_s3_trip *trips, size_t count)
{
    struct looks looks = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count};
    for (size_t i = 0; i < count; i++) {
        trips[i].owner = &looks;
        trips[i].done = look_done;
        weir_s3_net_submit(t->net, &trips[i]);
    }
    pthread_mutex_lock(&looks.lock);
    while (looks.left)
        pthread_cond_wait(&looks.over, &looks.lock);
    pthread_mutex_unlock(&looks.lock);
    pthread_mutex_destroy(&looks.lock);
    pthread_cond_destroy(&looks.over);
}

static int hide_tombs(struct weir_s3_tier *t, struct cursor *c)
{
    size_t count = 0, skip = strlen(t->site.prefix);
    for (size_t i = 0; i < c->page.count; i++)
        count += may_be_tomb(&c->page.entries[i]);
    c->hidden = weir_alloc(c->page.count + 1);
    struct weir_s3_trip *trips = count ? weir_alloc(count * sizeof *trips) : NULL;
    if (!c->hidden || (count && !trips)) {
        free(trips);
        return weir_fail_memory();
    }
    size_t n = 0;
    for (size_t i = 0; i < c->page.count; i++)
        if (may_be_tomb(&c->page.entries[i]))
            weir_s3_trip_begin(&trips[n++], "HEAD", c->page.entries[i].key + skip);
    if (count)
        look_at_all(t, trips, count);
    int code = 0;
    n = 0;
    for (size_t i = 0; i < c->page.count; i++)
        if (may_be_tomb(&c->page.entries[i])) {
            struct weir_s3_trip *trip = &trips[n++];
            bool missing = !trip->code && trip->status == 404;
            if (!code && !missing && !weir_s3_trip_ok(trip))
                code = weir_s3_trip_fail(trip, &t->site, "look at");
            c->hidden[i] = missing || trip->meta.is_gone;
            weir_s3_trip_end(trip);
        }
    free(trips);
    return code;
}

/* ---- pages ---- */

int weir_s3_page(struct weir_s3_tier *t, const char *prefix, bool deep, const char *more,
                 struct weir_s3_page *out)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "GET", NULL);
    weir_s3_trip_query(&trip, "list-type", "2");
    if (!deep)
        weir_s3_trip_query(&trip, "delimiter", "/");
    weir_s3_trip_query(&trip, "encoding-type", "url");
    weir_s3_trip_query(&trip, "prefix", prefix);
    if (more)
        weir_s3_trip_query(&trip, "continuation-token", more);
    trip.text_max = WEIR_S3_ANSWER_BYTES_MAX;
    bool ok = weir_s3_net_run(t->net, &trip);
    int code = ok ? weir_s3_answer_list(out, trip.text ? trip.text : "", trip.text_bytes)
                  : weir_s3_trip_fail(&trip, &t->site, "list");
    weir_s3_trip_end(&trip);
    if (code == -EBADMSG) /* to others that means damage of what is stored */
        code = weir_fail_in(-EIO, "cannot list 's3://%s/%s'", t->site.bucket, prefix);
    return code;
}

static int next_page(struct weir_s3_tier *t, struct cursor *c)
{
    struct weir_s3_page page;
    int code = weir_s3_page(t, c->prefix, c->deep, c->begun ? c->page.more : NULL, &page);
    if (code)
        return code;
    page_free(c);
    c->page = page;
    c->begun = true;
    size_t size = strlen(c->prefix);
    for (size_t i = 0; i < page.count; i++)
        if (strncmp(page.entries[i].key, c->prefix, size))
            return weir_fail(EIO, "cannot list 's3://%s/%s': the server listed something else",
                             t->site.bucket, c->prefix);
    if (page.more && weir_s3_turns_repeat(&c->turns, page.more))
        return weir_fail(EIO, "cannot list 's3://%s/%s': the server lists the same again and again",
                         t->site.bucket, c->prefix);
    return hide_tombs(t, c);
}

/* Adds entries for as long as they fit; false when one did not. */
static bool add_entries(struct cursor *c, struct weir_req *req, size_t *used)
{
    for (; c->next < c->page.count; c->next++) {
        const struct weir_s3_entry *entry = &c->page.entries[c->next];
        char name[WEIR_NAME_BYTES_MAX];
        const char *rest = entry->key + strlen(c->prefix);
        size_t size = c->deep ? strlen(rest) : strcspn(rest, "/");
        if (c->hidden[c->next] || !size || size >= sizeof name || (rest[size] && rest[size + 1]) ||
            rest[size - 1] == '/')
            continue; /* a directory itself is no name in it */
        snprintf(name, sizeof name, "%.*s", (int)size, rest);
        if (!weir_list_page_add(req, used, entry->is_prefix, name))
            return false;
        c->any = true;
    }
    return true;
}

static struct cursor *cursor_make(struct weir_s3_tier *t, const char *dir, bool deep)
{
    struct cursor *c = weir_alloc(sizeof *c);
    if (!c)
        return NULL;
    c->handle.close = cursor_close;
    c->deep = deep;
    snprintf(c->prefix, sizeof c->prefix, "%s%s", t->site.prefix, dir);
    return c;
}

int weir_s3_list(struct weir_s3_tier *t, struct weir_req *req)
{
    struct cursor *c = (struct cursor *)req->handle;
    req->result = 0;
    if (!c) {
        c = cursor_make(t, req->name, req->deep);
        if (!c)
            return weir_fail_memory();
        req->handle = &c->handle;
    }
    size_t used = 0;
    unsigned empty = 0;
    for (bool fits = true; fits;) {
        if (c->begun)
            fits = add_entries(c, req, &used);
        if (!fits || (c->begun && (!c->page.more || req->result)))
            break;
        if (c->begun && !c->page.count && ++empty > EMPTY_PAGES_MAX)
            return weir_fail(EIO, "cannot list '%s': the server answers with empty pages only",
                             req->name);
        int code = next_page(t, c);
        if (code)
            return code;
    }
    if (!c->any && req->name[0])
        return weir_fail(ENOENT, "there is nothing below '%s'", req->name);
    return 0;
}
