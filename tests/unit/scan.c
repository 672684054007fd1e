/* Scattered reads: any spans of an object, in whatever way their bytes come, are what a plain copy
 * would give, and no other byte of memory is touched; damage fails those who want it, and nobody
 * else.
 */
#include "store/store.h"
#include "stores.h"

enum { MIB = 1 << 20, SIZE = 5 * MIB + 777, SEED = 3, SPANS = 40, ARENA = 12 * MIB, EMPTY = 0xee };

static weir_store *store;
static const char *dir, *engine;
static const uint32_t blocks[] = {4096, 65536, MIB};

/* ---- spans alone ---- */

enum { SMALL = 300 };

static struct weir_span small_span(struct rng *rng, char *to)
{
    struct weir_span s = {.size = rng_below(rng, 9), .rows = rng_below(rng, 8), .to = to};
    s.off_step = s.size + rng_below(rng, 20);
    s.to_step = s.size;
    s.off = rng_below(rng, SMALL - 8 * 28);
    return s;
}

static int by_off(const void *a, const void *b)
{
    const struct weir_span *x = a, *y = b;
    return (x->off > y->off) - (x->off < y->off);
}

static bool wants(const struct weir_span *s, uint64_t at)
{
    for (uint64_t row = 0; row < s->rows; row++)
        if (at >= s->off + row * s->off_step && at < s->off + row * s->off_step + s->size)
            return true;
    return false;
}

/* Byte by byte: who wants it, where the row ends, and where it goes. */
static void find_is_right(const struct weir_span *spans, size_t count)
{
    const struct weir_span *end = spans + count, *from = spans;
    for (uint64_t at = 0; at <= SMALL; at++) {
        uint64_t next = at;
        bool any = false;
        for (; !any && next < SMALL; next += !any)
            for (size_t i = 0; i < count; i++)
                any |= wants(&spans[i], next);
        struct weir_range range;
        const struct weir_span *found = weir_spans_find(&from, end, at, &range);
        CHECK_EQ(found != NULL, any);
        if (!found)
            continue;
        CHECK_EQ(range.begin, next);
        for (uint64_t i = range.begin; i < range.end; i++) {
            CHECK(wants(found, i));
            uint64_t row = (i - found->off) / (found->off_step ? found->off_step : 1);
            uint64_t in_row = i - found->off - row * found->off_step;
            CHECK(weir_span_place(found, i) == found->to + row * found->to_step + in_row);
        }
    }
}

static void spans_are_found(void)
{
    static char memory[64];
    struct rng rng = {1};
    for (int round = 0; round < 300; round++) {
        struct weir_span spans[6];
        size_t count = rng_below(&rng, 6);
        for (size_t i = 0; i < count; i++)
            spans[i] = small_span(&rng, memory);
        qsort(spans, count, sizeof spans[0], by_off);
        find_is_right(spans, count);
    }
}

/* ---- reads ---- */

/* Spans into an arena, and what the arena must be in the end. */
struct wish {
    struct weir_span spans[SPANS];
    size_t count;
    uint64_t bytes;
    uint8_t *arena, *want;
    size_t used;
};

static struct wish *wish_new(void)
{
    struct wish *w = calloc(1, sizeof *w);
    w->arena = data_buffer(ARENA, 0);
    w->want = data_buffer(ARENA, 0);
    return w;
}

static void wish_clear(struct wish *w)
{
    memset(w->arena, EMPTY, ARENA);
    memset(w->want, EMPTY, ARENA);
    w->count = w->used = w->bytes = 0;
}

static void wish_free(struct wish *w)
{
    data_free(w->arena, 0);
    data_free(w->want, 0);
    free(w);
}

/* Places a span in the arena, with bytes around it that nobody may touch; left out if it does not
 * fit any more. */
static void wish_add(struct wish *w, struct weir_span s, size_t room, size_t align)
{
    size_t at = (w->used + align) / align * align;
    s.to_step = s.size + room;
    uint64_t total = s.rows * s.to_step;
    if (w->count == SPANS || at + total > ARENA || weir_span_end(&s) > SIZE)
        return;
    s.to = (char *)w->arena + at;
    s.tag = (uint32_t)w->count;
    for (uint64_t row = 0; row < s.rows; row++)
        data_fill(w->want + at + row * s.to_step, s.size, SEED, s.off + row * s.off_step);
    w->used = at + total;
    w->bytes += weir_span_bytes(&s);
    w->spans[w->count++] = s;
}

static void wish_random(struct wish *w, struct rng *rng)
{
    wish_clear(w);
    for (size_t n = rng_below(rng, SPANS); n; n--) {
        struct weir_span s = {.off = rng_below(rng, SIZE), .rows = 1};
        uint64_t left = SIZE - s.off;
        switch (rng_below(rng, 7)) {
        case 0: /* what may land in place */
            s.off = s.off / MIB * MIB;
            s.size = (SIZE - s.off) / MIB * MIB / (1 + rng_below(rng, 3));
            wish_add(w, s, 0, 4096);
            break;
        case 1: /* up to the end, the last block among it */
            s.size = left;
            wish_add(w, s, 0, 1);
            break;
        case 2: /* as a column of a matrix */
            s.size = 1 + rng_below(rng, 3000);
            s.off_step = s.size + rng_below(rng, rng_below(rng, 2) ? 3000 : 300000);
            s.rows = 1 + rng_below(rng, 300);
            wish_add(w, s, rng_below(rng, 2) * 5, 1);
            break;
        case 3: /* nothing */
            s.rows = rng_below(rng, 2);
            wish_add(w, s, 0, 1);
            break;
        case 4: /* the same as another, at another place */
            if (w->count)
                wish_add(w, w->spans[rng_below(rng, w->count)], 0, 1 + rng_below(rng, 2) * 4095);
            break;
        default:
            s.size = rng_below(rng, rng_below(rng, 2) ? 5000 : left + 1);
            wish_add(w, s, 0, 1);
        }
    }
    qsort(w->spans, w->count, sizeof w->spans[0], by_off);
}

static int count_bytes(void *arg, uint64_t more)
{
    *(uint64_t *)arg += more;
    return 0;
}

static void wish_comes_true(struct wish *w, weir_object *obj)
{
    uint64_t bytes = 0;
    const struct weir_span *bad = w->spans;
    OK(weir_object_read_spans(obj, w->spans, w->count, count_bytes, &bytes, &bad));
    CHECK_EQ(bytes, w->bytes);
    CHECK(!bad);
    CHECK(!memcmp(w->arena, w->want, ARENA));
}

static const char *key_of(int block)
{
    static const char *const keys[] = {"small", "middle", "large"};
    return keys[block];
}

static void random_spans(void)
{
    struct wish *w = wish_new();
    struct rng rng = {2};
    for (int round = 0; round < 60; round++) {
        const char *key = key_of(round % 3);
        weir_object *obj;
        if (dir && rng_below(&rng, 2)) {
            char *path = data_path(store, dir, key);
            file_drop_cache(path);
            free(path);
        }
        store->landing.forced = rng_below(&rng, 2) ? WEIR_WAY_POOL : WEIR_WAY_IN_PLACE;
        OK(weir_object_open(&obj, store, key));
        wish_random(w, &rng);
        wish_comes_true(w, obj);
        weir_object_close(obj);
    }
    store->landing.forced = WEIR_WAY_UNKNOWN;
    wish_free(w);
}

/* Block ends, one byte at a time, and the last byte. */
static void edges(void)
{
    struct wish *w = wish_new();
    for (int b = 0; b < 3; b++) {
        weir_object *obj;
        wish_clear(w);
        wish_add(w, (struct weir_span){.off = 0, .size = 1, .rows = 1}, 0, 1);
        for (uint64_t at = blocks[b] - 1; at <= blocks[b] + 1; at++)
            wish_add(w, (struct weir_span){.off = at, .size = 1, .rows = 1}, 0, 1);
        wish_add(w, (struct weir_span){.off = 2 * MIB - 1, .size = 2 * MIB + 2, .rows = 1}, 0, 1);
        wish_add(w, (struct weir_span){.off = SIZE - 1, .size = 1, .rows = 1}, 0, 1);
        wish_add(w, (struct weir_span){.off = SIZE, .size = 0, .rows = 1}, 0, 1);
        OK(weir_object_open(&obj, store, key_of(b)));
        wish_comes_true(w, obj);
        OK(weir_object_read_spans(obj, NULL, 0, NULL, NULL, NULL));
        weir_object_close(obj);
    }
    wish_free(w);
}

/* Several objects in one read, of which one may not be had. */
struct many {
    struct wish *wishes[3];
    weir_object *objects[3];
    int given, missing;
};

static int next_of_many(void *arg, struct weir_reading *out)
{
    struct many *m = arg;
    if (m->given == m->missing)
        return weir_fail(ENOENT, "number %d is not there", m->given);
    if (m->given == 3)
        return 0;
    const struct wish *w = m->wishes[m->given];
    *out = (struct weir_reading){m->objects[m->given++], w->spans, w->count};
    return 1;
}

static void many_objects(void)
{
    struct many m;
    struct rng rng = {6};
    for (int i = 0; i < 3; i++) {
        m.wishes[i] = wish_new();
        OK(weir_object_open(&m.objects[i], store, key_of(i)));
    }
    for (int round = 0; round < 12; round++) {
        struct weir_readings sources = {.next = next_of_many, .arg = &m};
        uint64_t bytes = 0;
        for (int i = 0; i < 3; i++) {
            wish_random(m.wishes[i], &rng);
            sources.bytes += m.wishes[i]->bytes;
        }
        m.given = 0;
        m.missing = round % 4;
        bool fails = m.missing < 3;
        if (!fails)
            m.missing = -1;
        CHECK_EQ(weir_readings_run(store, &sources, count_bytes, &bytes, NULL),
                 fails ? -ENOENT : 0);
        CHECK(!fails || strstr(weir_error_text(), "is not there"));
        for (int i = 0; !fails && i < 3; i++)
            CHECK(!memcmp(m.wishes[i]->arena, m.wishes[i]->want, ARENA));
        CHECK(fails || bytes == sources.bytes);
    }
    for (int i = 0; i < 3; i++) {
        wish_free(m.wishes[i]);
        weir_object_close(m.objects[i]);
    }
}

/* ---- failures ---- */

static void bytes_named(uint64_t at, uint32_t block)
{
    char want[64];
    unsigned long long begin = at / block * block, end = begin + block;
    snprintf(want, sizeof want, "(bytes %llu-%llu)", begin, (end < SIZE ? end : SIZE) - 1);
    CHECK(strstr(weir_error_text(), want));
}

/* One bad byte. Spans around its block are read, although the block may be read over; with a span
 * that wants it, that one is named, and the block does not come out. */
static void damage_at(struct wish *w, int b, uint64_t at, enum weir_way way)
{
    uint64_t begin = at / blocks[b] * blocks[b], after = begin + blocks[b];
    char *path = data_path(store, dir, key_of(b));
    int fd = file_force_open(path);
    const struct weir_span *bad;
    weir_object *obj;
    store->landing.forced = way;
    fd_flip(fd, at * 8 + 3);
    fd_drop_cache(fd);
    OK(weir_object_open(&obj, store, key_of(b)));
    wish_clear(w);
    if (begin)
        wish_add(w, (struct weir_span){.off = 0, .size = begin, .rows = 1}, 0, 4096);
    if (after < SIZE)
        wish_add(w, (struct weir_span){.off = after, .size = SIZE - after, .rows = 1}, 0, 4096);
    wish_comes_true(w, obj);
    wish_clear(w);
    if (begin)
        wish_add(w, (struct weir_span){.off = begin - 1, .size = 1, .rows = 1}, 0, 1);
    uint32_t tag = (uint32_t)w->count;
    uint64_t size = (after < SIZE ? after : SIZE) - begin;
    wish_add(w, (struct weir_span){.off = begin, .size = size, .rows = 1}, 0, 4096);
    if (after < SIZE)
        wish_add(w, (struct weir_span){.off = after, .size = 1, .rows = 1}, 0, 1);
    CHECK_EQ(weir_object_read_spans(obj, w->spans, w->count, NULL, NULL, &bad), -EBADMSG);
    CHECK(bad && bad->tag == tag);
    CHECK(data_all((uint8_t *)bad->to, size, EMPTY) || data_all((uint8_t *)bad->to, size, 0));
    bytes_named(at, blocks[b]);
    weir_object_close(obj);
    fd_flip(fd, at * 8 + 3);
    store->landing.forced = WEIR_WAY_UNKNOWN;
    close(fd);
    free(path);
}

static void damage(void)
{
    struct wish *w = wish_new();
    struct rng rng = {4};
    for (int b = 0; b < 3; b++)
        for (int i = 0; i < 8; i++) {
            uint64_t at = i == 0 ? 0 : i == 1 ? SIZE - 1 : rng_below(&rng, SIZE);
            damage_at(w, b, at, i % 2 ? WEIR_WAY_POOL : WEIR_WAY_IN_PLACE);
        }
    wish_free(w);
}

/* After a failure nothing comes any more: what was under way is back, and what of it was in the
 * caller's memory is wiped if it was not verified. */
static void nothing_after_a_failure(void)
{
    uint8_t *buf = data_buffer(SIZE, 0);
    char *path = data_path(store, dir, "large");
    int fd = file_force_open(path);
    const struct weir_span span = {.size = SIZE, .rows = 1, .to = (char *)buf};
    fd_flip(fd, 77);
    for (int way = WEIR_WAY_IN_PLACE; way <= WEIR_WAY_POOL; way++) {
        weir_store *other = store_at(dir, engine);
        weir_object *obj;
        other->landing.forced = (enum weir_way)way;
        memset(buf, EMPTY, SIZE);
        fd_drop_cache(fd);
        OK(weir_object_open(&obj, other, "large"));
        CHECK_EQ(weir_object_read_spans(obj, &span, 1, NULL, NULL, NULL), -EBADMSG);
        for (size_t at = 0; at < SIZE; at += MIB) {
            size_t size = SIZE - at < MIB ? SIZE - at : MIB;
            CHECK(data_all(buf + at, size, 0) || data_all(buf + at, size, EMPTY) ||
                  data_is(buf + at, size, SEED, at));
        }
        if (way == WEIR_WAY_POOL && !strcmp(engine, "inline")) /* where the order is known */
            CHECK(data_all(buf, SIZE, EMPTY));
        memset(buf, EMPTY, SIZE);
        weir_object_close(obj);
        weir_store_close(other); /* which waits for what is under way */
        CHECK(data_all(buf, SIZE, EMPTY));
    }
    fd_flip(fd, 77);
    close(fd);
    free(path);
    data_free(buf, 0);
}

/* A read that the storage refuses fails, whichever of many it is; the next one is as good as ever.
 */
static void refused(void)
{
    struct wish *w = wish_new();
    for (int nth = 1; nth <= 6; nth++) {
        char url[PATH_MAX + 64];
        const struct weir_span *bad;
        weir_object *obj;
        snprintf(url, sizeof url, "file:%s?fault_ops=read&fault_nth=%d", dir, nth);
        weir_store *other = store_at(url, engine);
        OK(weir_object_open(&obj, other, "large"));
        wish_clear(w);
        wish_add(w, (struct weir_span){.size = SIZE, .rows = 1}, 0, nth % 2 ? 1 : 4096);
        CHECK_EQ(weir_object_read_spans(obj, w->spans, w->count, NULL, NULL, &bad), -EIO);
        CHECK(bad == w->spans);
        wish_comes_true(w, obj);
        weir_object_close(obj);
        weir_store_close(other);
    }
    wish_free(w);
}

static int stop_second(void *arg, uint64_t more)
{
    (void)more;
    return ++*(int *)arg == 2;
}

static void stopped(void)
{
    uint8_t *buf = data_buffer(SIZE, 0);
    const struct weir_span span = {.size = SIZE, .rows = 1, .to = (char *)buf}, *bad = &span;
    int calls = 0;
    weir_object *obj;
    OK(weir_object_open(&obj, store, "large"));
    CHECK_EQ(weir_object_read_spans(obj, &span, 1, stop_second, &calls, &bad), -ECANCELED);
    CHECK_EQ(calls, 2);
    CHECK(!bad);
    weir_object_close(obj);
    data_free(buf, 0);
}

struct units {
    uint64_t least, most, sum;
};

static int note_unit(void *arg, uint64_t more)
{
    struct units *units = arg;
    units->least = more < units->least ? more : units->least;
    units->most = more > units->most ? more : units->most;
    units->sum += more;
    return 0;
}

/* What is longer than a buffer comes in pieces of about the same size, wherever it begins: a small
 * one would go through the page cache. */
static void even_units(void)
{
    static const uint64_t sizes[] = {MIB + 1, MIB + 65536, 2 * MIB - 4096, 2 * MIB + 1, 3 * MIB};
    uint8_t *buf = data_buffer(4 * MIB, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int b = 0; b < 2; b++)
            for (uint64_t off = 0; off < MIB; off += 3 * 65536) {
                const struct weir_span span = {
                    .off = off, .size = sizes[i], .rows = 1, .to = (char *)buf};
                struct units units = {.least = UINT64_MAX};
                weir_object *obj;
                OK(weir_object_open(&obj, store, key_of(b)));
                OK(weir_object_read_spans(obj, &span, 1, note_unit, &units, NULL));
                CHECK_EQ(units.sum, sizes[i]);
                CHECK(units.most <= MIB && units.least >= MIB / 2 - 2 * blocks[b]);
                CHECK(data_is(buf, sizes[i], SEED, off));
                weir_object_close(obj);
            }
    data_free(buf, 0);
}

static void put_objects(void)
{
    for (int b = 0; b < 3; b++)
        OK(put_try(store, key_of(b), SIZE, SEED, blocks[b]));
}

int main(int argc, char **argv)
{
    engine = engine_or_skip(argc, argv);
    RUN(spans_are_found);
    store = store_at("mem:", engine);
    put_objects();
    RUN(random_spans);
    weir_store_close(store);
    dir = tmp_path("store");
    store = store_at(dir, engine);
    put_objects();
    RUN(random_spans);
    RUN(edges);
    RUN(many_objects);
    RUN(damage);
    RUN(nothing_after_a_failure);
    RUN(refused);
    RUN(stopped);
    RUN(even_units);
    weir_store_close(store);
    return TEST_RESULT;
}
