/* hashing.c - see hashing.h. */
#include "data/hashing.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

enum { PIECE_BYTES = 4 << 20 }; /* read at once: enough in flight, little memory */

struct hashing {
    weir_object *obj;
    uint32_t block_bytes;
    weir_hashed_fn fn;
    void *arg;
    struct weir_sha256_stream whole;
    bool is_whole;
    uint8_t last[WEIR_SHA256_BYTES];
};

static int hash_blocks(struct hashing *h, const uint8_t *data, size_t size, uint64_t off)
{
    int code = 0;
    for (size_t at = 0; !code && at < size; at += h->block_bytes) {
        size_t n = size - at < h->block_bytes ? size - at : h->block_bytes;
        weir_sha256(h->last, data + at, n);
        code = h->fn(h->arg, (off + at) / h->block_bytes, h->last);
    }
    return code;
}

/* A piece could not be read: which of its blocks cannot? */
static int read_apart(struct hashing *h, uint8_t *buf, size_t size, uint64_t off)
{
    size_t got, n;
    int code = 0;
    h->is_whole = false;
    for (size_t at = 0; !code && at < size; at += n) {
        n = size - at < h->block_bytes ? size - at : h->block_bytes;
        code = weir_object_read(h->obj, buf, n, off + at, &got);
        if (!code)
            code = hash_blocks(h, buf, got, off + at);
        else if (!h->fn(h->arg, (off + at) / h->block_bytes, NULL))
            code = 0;
    }
    return code;
}

static int hash_pieces(struct hashing *h, uint8_t *buf, size_t room, weir_progress_fn progress,
                       void *progress_arg)
{
    uint64_t size = weir_object_info(h->obj)->size_bytes;
    for (uint64_t off = 0; off < size; off += room) {
        size_t got = 0, n = size - off < room ? size - off : room;
        int code = weir_object_read(h->obj, buf, n, off, &got);
        if (code == -EBADMSG || code == -EIO)
            code = read_apart(h, buf, n, off);
        else if (!code) {
            if (size > h->block_bytes)
                weir_sha256_more(&h->whole, buf, got);
            code = hash_blocks(h, buf, got, off);
        }
        if (code)
            return code;
        if (progress && progress(progress_arg, n))
            return weir_fail(ECANCELED, "reading '%s' was stopped", weir_object_info(h->obj)->key);
    }
    return 0;
}

int weir_hash_object(weir_object *obj, uint32_t block_bytes, weir_hashed_fn fn, void *arg,
                     uint8_t whole[WEIR_SHA256_BYTES], weir_progress_fn progress,
                     void *progress_arg)
{
    struct hashing h = {obj, block_bytes, fn, arg, .is_whole = true};
    uint64_t size = weir_object_info(obj)->size_bytes;
    size_t room = size < PIECE_BYTES ? size : PIECE_BYTES;
    uint8_t *buf = weir_alloc(room);
    if (!buf)
        return weir_fail_memory();
    int code = weir_sha256_begin(&h.whole);
    if (code) {
        free(buf);
        return code;
    }
    code = hash_pieces(&h, buf, room, progress, progress_arg);
    /* A file of one block is that block: it is not hashed twice. */
    bool one = size && size <= block_bytes;
    if (one && !code && h.is_whole)
        memcpy(whole, h.last, WEIR_SHA256_BYTES);
    weir_sha256_end(&h.whole, code || !h.is_whole || one ? NULL : whole);
    free(buf);
    return code;
}
