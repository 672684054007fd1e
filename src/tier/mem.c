/* mem.c - the memory tier: a bounded, sorted table of names in this process. Blobs are counted
 * references to chunks, so that an open one outlives its name. Every request completes at once, on
 * the submitter's thread, under one lock but for the copying of bytes.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/tier.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

enum { CHUNK_BYTES = 1 << 20 };

/* A chunk holds CHUNK_BYTES of its blob, of which the first `room` exist and the rest are zero. */
struct chunk {
    char *data;
    size_t room;
};

struct blob {
    unsigned refs; /* guarded by the tier's lock */
    uint64_t size, charged;
    int64_t time_ns;
    size_t chunks;
    struct chunk *chunk;
};

struct entry {
    char *name;
    struct blob *blob;
};

struct mem_tier {
    struct weir_tier tier;
    pthread_mutex_t lock; /* guards everything below, and the refs of blobs */
    uint64_t bytes, bytes_max;
    size_t count, room;
    struct entry *entries; /* sorted by name */
};

/* An open blob, or a sink whose blob has no name yet. */
struct mem_handle {
    struct weir_handle handle;
    struct mem_tier *tier;
    struct blob *blob;
    char *name; /* of a sink */
};

struct mem_cursor {
    struct weir_handle handle;
    char prefix[WEIR_NAME_BYTES_MAX];
    char after[2 * WEIR_NAME_BYTES_MAX + 4]; /* the next page begins behind this name */
};

static void blob_unref(struct mem_tier *t, struct blob *blob)
{
    pthread_mutex_lock(&t->lock);
    bool last = --blob->refs == 0;
    if (last)
        t->bytes -= blob->charged;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    for (size_t i = 0; i < blob->chunks; i++)
        free(blob->chunk[i].data);
    free(blob->chunk);
    free(blob);
}

static struct blob *blob_new(void)
{
    struct blob *blob = weir_alloc(sizeof *blob);
    if (blob)
        blob->refs = 1;
    return blob;
}

static int charge(struct mem_tier *t, struct blob *blob, uint64_t bytes)
{
    int code = 0;
    pthread_mutex_lock(&t->lock);
    if (bytes > t->bytes_max - t->bytes) {
        code = weir_fail(ENOSPC, "the memory tier is full: it holds %llu of %llu bytes (?size=)",
                         (unsigned long long)t->bytes, (unsigned long long)t->bytes_max);
    } else {
        t->bytes += bytes;
        blob->charged += bytes;
    }
    pthread_mutex_unlock(&t->lock);
    return code;
}

/* Makes the chunk hold its first `room` bytes: a small blob is not charged a whole chunk. */
static int chunk_grow(struct mem_tier *t, struct blob *blob, struct chunk *chunk, size_t room)
{
    if (room <= chunk->room)
        return 0;
    if (chunk->room)
        room = CHUNK_BYTES; /* it grows once */
    int code = charge(t, blob, room - chunk->room);
    if (code)
        return code;
    char *data = weir_realloc(chunk->data, room);
    if (!data)
        return weir_fail_memory(); /* what was charged goes with the blob */
    memset(data + chunk->room, 0, room - chunk->room);
    *chunk = (struct chunk){data, room};
    return 0;
}

/* Writes at off, making the chunks that are missing. Only a sink's owner calls this. */
static int blob_write(struct mem_tier *t, struct blob *blob, const char *data, size_t size,
                      uint64_t off)
{
    size_t chunks = (off + size + CHUNK_BYTES - 1) / CHUNK_BYTES;
    if (chunks > blob->chunks) {
        struct chunk *more = weir_realloc(blob->chunk, chunks * sizeof *more);
        if (!more)
            return weir_fail_memory();
        memset(more + blob->chunks, 0, (chunks - blob->chunks) * sizeof *more);
        blob->chunk = more;
        blob->chunks = chunks;
    }
    while (size) {
        size_t at = off % CHUNK_BYTES, n = CHUNK_BYTES - at < size ? CHUNK_BYTES - at : size;
        struct chunk *chunk = &blob->chunk[off / CHUNK_BYTES];
        int code = chunk_grow(t, blob, chunk, at + n);
        if (code)
            return code;
        memcpy(chunk->data + at, data, n);
        data += n, off += n, size -= n;
    }
    if (off > blob->size)
        blob->size = off;
    return 0;
}

static size_t blob_read(const struct blob *blob, char *buf, size_t size, uint64_t off)
{
    if (off >= blob->size)
        return 0;
    size = size < blob->size - off ? size : (size_t)(blob->size - off);
    for (size_t done = 0; done < size;) {
        const struct chunk *chunk = &blob->chunk[(off + done) / CHUNK_BYTES];
        size_t at = (off + done) % CHUNK_BYTES;
        size_t n = CHUNK_BYTES - at < size - done ? CHUNK_BYTES - at : size - done;
        size_t there = chunk->room <= at ? 0 : chunk->room - at < n ? chunk->room - at : n;
        if (there)
            memcpy(buf + done, chunk->data + at, there);
        memset(buf + done + there, 0, n - there);
        done += n;
    }
    return size;
}

static bool blob_is(const struct blob *blob, const char *content, size_t size)
{
    char piece[4096];
    if (blob->size != size)
        return false;
    for (size_t off = 0, n; off < size; off += n) {
        n = blob_read(blob, piece, sizeof piece, off);
        if (memcmp(piece, content + off, n))
            return false;
    }
    return true;
}

/* Where name is, or where it would be. Called with the lock held. */
static size_t locate(struct mem_tier *t, const char *name, bool *found)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(t->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < t->count && !strcmp(t->entries[low].name, name);
    return low;
}

/* Takes a reference. */
static int find(struct mem_tier *t, const char *name, struct blob **out)
{
    bool found;
    pthread_mutex_lock(&t->lock);
    size_t at = locate(t, name, &found);
    if (found) {
        *out = t->entries[at].blob;
        (*out)->refs++;
    }
    pthread_mutex_unlock(&t->lock);
    return found ? 0 : weir_fail(ENOENT, "'%s' is not in memory", name);
}

/* Gives blob the name, and takes a reference for it; -EEXIST if it is taken, -ESTALE if the
 * boot-time clock is past until_ns (0: never). */
static int insert(struct mem_tier *t, const char *name, struct blob *blob, uint64_t until_ns)
{
    bool found;
    int code = 0;
    char *copy = weir_strdup(name);
    if (!copy)
        return weir_fail_memory();
    pthread_mutex_lock(&t->lock);
    size_t at = locate(t, name, &found);
    if (found) {
        code = weir_fail(EEXIST, "'%s' exists already", name);
    } else if (until_ns && weir_sys->now_ns(WEIR_CLOCK_BOOT) > until_ns) {
        code = weir_fail(ESTALE, "it is too late to make '%s'", name);
    } else if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct entry *more = weir_realloc(t->entries, room * sizeof *more);
        if (more) {
            t->entries = more;
            t->room = room;
        } else {
            code = weir_fail_memory();
        }
    }
    if (!code) {
        memmove(t->entries + at + 1, t->entries + at, (t->count - at) * sizeof *t->entries);
        t->entries[at] = (struct entry){copy, blob};
        t->count++;
        blob->refs++;
        blob->time_ns = (int64_t)weir_sys->now_ns(WEIR_CLOCK_REAL);
    }
    pthread_mutex_unlock(&t->lock);
    if (code)
        free(copy);
    return code;
}

/* Where name is, if it is just that. */
static int locate_record(struct mem_tier *t, const char *name, const struct weir_req *req,
                         size_t *at)
{
    bool found;
    *at = locate(t, name, &found);
    if (!found)
        return weir_fail(ENOENT, "'%s' is not in memory", name);
    if (req->buf && !blob_is(t->entries[*at].blob, req->buf, req->len))
        return weir_fail(ESTALE, "'%s' has changed meanwhile", name);
    return 0;
}

/* only: remove only if it is that one (NULL: whatever). buf, len: and if the record is just that.
 */
static int drop(struct mem_tier *t, const struct weir_req *req, const struct blob *only)
{
    const struct weir_req any = {0};
    struct entry entry = {0};
    size_t at;
    pthread_mutex_lock(&t->lock);
    int code = req->guard ? locate_record(t, req->guard, req, &at) : 0;
    if (!code)
        code = locate_record(t, req->name, req->guard ? &any : req, &at);
    if (!code) {
        entry = t->entries[at];
        if (only && entry.blob != only)
            code = weir_fail(ESTALE, "'%s' has changed meanwhile", req->name);
    }
    if (!code) {
        t->count--;
        memmove(t->entries + at, t->entries + at + 1, (t->count - at) * sizeof *t->entries);
    }
    pthread_mutex_unlock(&t->lock);
    if (!code) {
        free(entry.name);
        blob_unref(t, entry.blob);
    }
    return code;
}

static void handle_close(struct weir_handle *handle)
{
    struct mem_handle *h = (struct mem_handle *)handle;
    blob_unref(h->tier, h->blob);
    free(h->name);
    free(h);
}

static int make_handle(struct mem_tier *t, struct weir_req *req, struct blob *blob,
                       const char *name)
{
    struct mem_handle *h = blob ? weir_alloc(sizeof *h) : NULL;
    char *copy = h && name ? weir_strdup(name) : NULL;
    if (!h || (name && !copy)) {
        free(h);
        if (blob)
            blob_unref(t, blob);
        return weir_fail_memory();
    }
    *h = (struct mem_handle){{handle_close}, t, blob, copy};
    req->handle = &h->handle;
    return 0;
}

static struct weir_blob_stat stat_of(const struct blob *blob)
{
    return (struct weir_blob_stat){blob->size, blob->time_ns};
}

static int mem_open(struct mem_tier *t, struct weir_req *req)
{
    struct blob *blob;
    int code = find(t, req->name, &blob);
    if (code)
        return code;
    req->stat = stat_of(blob);
    return make_handle(t, req, blob, NULL);
}

static int mem_stat(struct mem_tier *t, struct weir_req *req)
{
    struct blob *blob;
    int code = find(t, req->name, &blob);
    if (code)
        return code;
    const struct mem_handle *h = (struct mem_handle *)req->handle;
    if (h && h->blob != blob)
        code = weir_fail(ESTALE, "'%s' is not the same blob", req->name);
    req->stat = stat_of(blob);
    blob_unref(t, blob);
    return code;
}

static int mem_load(struct mem_tier *t, struct weir_req *req)
{
    struct blob *blob;
    int code = find(t, req->name, &blob);
    if (code)
        return code;
    char *buf = blob->size <= req->len ? weir_alloc(blob->size) : NULL;
    if (blob->size > req->len)
        code = weir_fail(EFBIG, "'%s' is %llu bytes, the limit is %zu", req->name,
                         (unsigned long long)blob->size, req->len);
    else if (!buf)
        code = weir_fail_memory();
    if (!code) {
        req->result = blob_read(blob, buf, blob->size, 0);
        req->buf = buf;
        req->stat = stat_of(blob);
    }
    blob_unref(t, blob);
    return code;
}

static int mem_put(struct mem_tier *t, struct weir_req *req)
{
    struct blob *blob = blob_new();
    if (!blob)
        return weir_fail_memory();
    int code = req->len ? blob_write(t, blob, req->buf, req->len, 0) : 0;
    if (!code)
        code = insert(t, req->name, blob, req->off);
    blob_unref(t, blob);
    return code;
}

static void cursor_close(struct weir_handle *handle)
{
    free(handle);
}

static int mem_list(struct mem_tier *t, struct weir_req *req)
{
    struct mem_cursor *c = (struct mem_cursor *)req->handle;
    if (!c) {
        c = weir_alloc(sizeof *c);
        if (!c)
            return weir_fail_memory();
        c->handle.close = cursor_close;
        snprintf(c->prefix, sizeof c->prefix, "%s", req->name);
        snprintf(c->after, sizeof c->after, "%s", req->name);
        req->handle = &c->handle;
    }
    size_t prefix = strlen(c->prefix), used = 0;
    bool found, more = true;
    req->result = 0;
    pthread_mutex_lock(&t->lock);
    while (more) {
        size_t at = locate(t, c->after, &found);
        at += found;
        if (at == t->count || strncmp(t->entries[at].name, c->prefix, prefix))
            break;
        const char *rest = t->entries[at].name + prefix;
        const char *slash = req->deep ? NULL : strchr(rest, '/');
        char part[WEIR_NAME_BYTES_MAX];
        snprintf(part, sizeof part, "%.*s", slash ? (int)(slash - rest) : (int)strlen(rest), rest);
        more = weir_list_page_add(req, &used, slash != NULL, part);
        if (more) /* behind everything below a directory: '0' follows '/' */
            snprintf(c->after, sizeof c->after, "%.*s%s%s", (int)prefix, c->prefix, part,
                     slash ? "/\xff" : "");
    }
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static int mem_do(struct mem_tier *t, struct weir_req *req)
{
    struct mem_handle *h = (struct mem_handle *)req->handle;
    switch (req->op) {
    case WEIR_OP_OPEN:
        return mem_open(t, req);
    case WEIR_OP_READ:
        req->result = blob_read(h->blob, req->buf, req->len, req->off);
        return 0;
    case WEIR_OP_MAP:
        return weir_fail(ENOTSUP, "memory has no files to map");
    case WEIR_OP_CREATE:
        return make_handle(t, req, blob_new(), req->name);
    case WEIR_OP_WRITE:
        return blob_write(t, h->blob, req->buf, req->len, req->off);
    case WEIR_OP_COMMIT:
        assert(req->off == h->blob->size);
        return insert(t, h->name, h->blob, 0);
    case WEIR_OP_LOAD:
        return mem_load(t, req);
    case WEIR_OP_PUT:
        return mem_put(t, req);
    case WEIR_OP_STAT:
        return mem_stat(t, req);
    case WEIR_OP_REMOVE:
        return drop(t, req, h ? h->blob : NULL);
    case WEIR_OP_REMOVE_IF:
        return drop(t, req, NULL);
    case WEIR_OP_ALIAS:
        return weir_fail(ENOTSUP, "memory has no plain names");
    case WEIR_OP_LEASE:
        return weir_fail(ENOTSUP, "memory has no leases: an open blob outlives its name");
    case WEIR_OP_LIST:
        return mem_list(t, req);
    case WEIR_OP_SPACE:
        pthread_mutex_lock(&t->lock);
        req->space = (struct weir_space){t->bytes_max - t->bytes, t->bytes_max};
        pthread_mutex_unlock(&t->lock);
        return 0;
    case WEIR_OP_SWEEP:
        req->stat.time_ns = (int64_t)weir_sys->now_ns(WEIR_CLOCK_REAL);
        req->result = req->len = 0;
        return 0;
    case WEIR_OPS:
        break;
    }
    assert(!"an unknown request");
    return -EINVAL;
}

static void mem_submit(struct weir_tier *tier, struct weir_req *req)
{
    req->doubt = WEIR_SURE;
    weir_req_take(req, mem_do((struct mem_tier *)tier, req));
    weir_req_done(req);
}

static void mem_close(struct weir_tier *tier)
{
    struct mem_tier *t = (struct mem_tier *)tier;
    for (size_t i = 0; i < t->count; i++) {
        free(t->entries[i].name);
        blob_unref(t, t->entries[i].blob);
    }
    free(t->entries);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static const struct weir_tier_ops mem_ops = {"mem", mem_submit, mem_close};

int weir_tier_mem_open(struct weir_tier **out, uint64_t bytes_max)
{
    struct mem_tier *t = weir_alloc(sizeof *t);
    if (!t)
        return weir_fail_memory();
    t->tier = (struct weir_tier){&mem_ops, NULL, WEIR_LEVEL_MEMORY, 0, 0, false};
    t->bytes_max = bytes_max;
    pthread_mutex_init(&t->lock, NULL);
    *out = &t->tier;
    return 0;
}
