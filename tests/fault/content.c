/* content.c - see content.h. */
#include "content.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/io.h"
#include "store/store.h"
#include "test.h"

enum { PIECE_BYTES = 1 << 20, META_BYTES = sizeof(struct content) };

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t dice_next(struct dice *dice)
{
    return mix(dice->state++, 0);
}

uint64_t dice_below(struct dice *dice, uint64_t limit)
{
    return dice_next(dice) % limit;
}

bool dice_one_in(struct dice *dice, uint64_t n)
{
    return dice_below(dice, n) == 0;
}

uint64_t seed_choose(void)
{
    const char *given = getenv("WEIR_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed =
        given ? strtoull(given, NULL, 0) : mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec) >> 32;
    printf("seed %" PRIu64 " (WEIR_SEED=%" PRIu64 " makes the same choices)\n", seed, seed);
    fflush(stdout);
    return seed;
}

void content_fill(void *buf, uint64_t seed, uint64_t off, size_t size)
{
    char *at = buf;
    for (uint64_t i = off / 8; size; i++) {
        uint64_t word = mix(seed, i);
        size_t n = size < sizeof word ? size : sizeof word;
        memcpy(at, &word, n);
        at += n;
        size -= n;
    }
}

bool content_same(struct content a, struct content b)
{
    return a.seed == b.seed && a.size == b.size;
}

static int write_pieces(weir_put *put, struct content what)
{
    char *piece = malloc(PIECE_BYTES);
    int code = piece ? 0 : weir_fail(ENOMEM, "the test itself has no memory");
    for (uint64_t off = 0; !code && off < what.size; off += PIECE_BYTES) {
        size_t n = what.size - off < PIECE_BYTES ? (size_t)(what.size - off) : PIECE_BYTES;
        content_fill(piece, what.seed, off, n);
        code = weir_put_write(put, piece, n);
    }
    free(piece);
    return code;
}

static int write_in_place(weir_put *put, struct content what)
{
    size_t room = ((size_t)what.size + WEIR_IO_ALIGN) / WEIR_IO_ALIGN * WEIR_IO_ALIGN;
    char *all = aligned_alloc(WEIR_IO_ALIGN, room);
    if (!all)
        return weir_fail(ENOMEM, "the test itself has no memory");
    content_fill(all, what.seed, 0, what.size);
    int code = weir_put_write(put, all, what.size);
    free(all);
    return code;
}

int content_put(weir_store *store, const char *key, struct content what, unsigned how)
{
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.meta = &what;
    opts.meta_bytes = META_BYTES;
    opts.size_bytes = how & CONTENT_HINT ? what.size : 0;
    if (how & CONTENT_OF_SAVE) /* the last name of the key is the object's own */
        opts.flags = WEIR_PUT_PREFIX | (uint32_t)(strrchr(key, '/') - key);
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = how & CONTENT_IN_PLACE ? write_in_place(put, what) : write_pieces(put, what);
    if (!code)
        code = weir_put_commit(put, NULL);
    weir_put_close(put);
    return code;
}

static int wrong(const char *key, const char *what, uint64_t where)
{
    printf("WRONG BYTES: '%s': %s (%" PRIu64 ")\n", key, what, where);
    fflush(stdout);
    return -EILSEQ;
}

static int compare(weir_object *obj, const char *key, struct content what)
{
    char *got = malloc(2 * PIECE_BYTES);
    if (!got)
        return weir_fail(ENOMEM, "the test itself has no memory");
    char *want = got + PIECE_BYTES;
    int code = 0;
    for (uint64_t off = 0; !code && off < what.size; off += PIECE_BYTES) {
        size_t n = what.size - off < PIECE_BYTES ? (size_t)(what.size - off) : PIECE_BYTES;
        size_t read = 0;
        code = weir_object_read(obj, got, PIECE_BYTES, off, &read);
        if (code)
            break;
        content_fill(want, what.seed, off, n);
        if (read != n)
            code = wrong(key, "a short read", read);
        else if (memcmp(got, want, n))
            code = wrong(key, "its bytes are not its seed's, near byte", off);
    }
    free(got);
    return code;
}

int content_get(struct content *out, weir_store *store, const char *key)
{
    weir_object *obj;
    struct content what;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    const weir_info *info = weir_object_info(obj);
    if (info->kind != WEIR_KIND_SEALED) {
        code = -ENODATA;
    } else if (info->meta_bytes != META_BYTES) {
        code = wrong(key, "its metadata has another size", info->meta_bytes);
    } else {
        memcpy(&what, info->meta, META_BYTES);
        code = what.size == info->size_bytes ? compare(obj, key, what)
                                             : wrong(key, "its size is not its own", what.size);
    }
    weir_object_close(obj);
    if (!code)
        *out = what;
    return code;
}

int content_expect(weir_store *store, const char *key, struct content what)
{
    struct content found;
    int code = content_get(&found, store, key);
    if (!code && !content_same(found, what))
        code = wrong(key, "it is another object, of seed", found.seed);
    return code;
}

weir_store *store_must_open(const char *url, const char *engine, uint32_t flags, uint64_t grace_s)
{
    weir_store_options opts;
    weir_store *store = NULL;
    weir_store_options_init(&opts);
    opts.flags = flags;
    opts.io = engine;
    opts.grace_s = grace_s;
    opts.pool_bytes_max = 16 << 20;
    OK(weir_store_open(&store, url, &opts));
    return store;
}

const char *engine_pick(uint64_t number)
{
    return number % 2 || weir_io_uring_fault() ? "threads" : "uring";
}
