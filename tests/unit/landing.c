/* A long read tries both ways of landing and keeps one: whatever the clock says, whoever else
 * reads, and however it ends, what comes out is what was put in. Which way a real clock chooses is
 * not asserted.
 */
#include <pthread.h>

#include "store/store.h"
#include "stores.h"
#include "util/sys.h"

enum { MIB = 1 << 20, SHORT = 100 * MIB, LONG = 184 * MIB + 4097, THREADS = 2, SEED = 7 };

static weir_store *store;
static const char *dir;

static void forget(void)
{
    atomic_store(&store->landing.way, WEIR_WAY_UNKNOWN);
    atomic_store(&store->landing.bytes_left, 0);
}

static int verdict(void)
{
    return atomic_load(&store->landing.way);
}

static void short_reads_try_nothing(void)
{
    put_seed(store, "short", SHORT, SEED);
    get_seed(store, "short", SHORT, SEED);
    CHECK_EQ(verdict(), WEIR_WAY_UNKNOWN);
    OK(weir_remove(store, "short"));
}

static void a_long_read_decides(void)
{
    get_seed(store, "long", LONG, SEED);
    CHECK(verdict() == WEIR_WAY_IN_PLACE || verdict() == WEIR_WAY_POOL);
    long long left = atomic_load(&store->landing.bytes_left);
    CHECK(left > 0);
    get_seed(store, "long", LONG, SEED); /* as was decided */
    CHECK(atomic_load(&store->landing.bytes_left) <= left - LONG / MIB * MIB);
}

/* When so many bytes were read, it tries again, in the middle of a read. */
static void a_verdict_does_not_last(void)
{
    atomic_store(&store->landing.way, WEIR_WAY_UNKNOWN);
    atomic_store(&store->landing.bytes_left, 8 * MIB);
    get_seed(store, "long", LONG, SEED);
    CHECK(verdict() != WEIR_WAY_UNKNOWN);
    CHECK(atomic_load(&store->landing.bytes_left) > LONG);
}

static uint64_t clock_ns;

static uint64_t fake_now_ns(enum weir_clock clock)
{
    (void)clock;
    return clock_ns;
}

/* A trial without a read, in which each unit takes so long. */
static int decide(uint64_t in_place_ns, uint64_t pool_ns)
{
    enum { DEPTH = 16, UNITS_TO_GO = 1000 };
    struct weir_landing landing = {0};
    struct weir_trial trial = {0};
    unsigned units = 0;
    do {
        enum weir_way way = weir_landing_choose(&landing, &trial, MIB, UNITS_TO_GO, DEPTH);
        clock_ns += way == WEIR_WAY_POOL ? pool_ns : in_place_ns;
        weir_landing_count(&landing, &trial, DEPTH);
        CHECK(units++ < UNITS_TO_GO);
    } while (!atomic_load(&landing.way));
    return atomic_load(&landing.way);
}

/* In place is kept unless a tenth is gained; a clock may stand still, as the simulator's does. */
static void the_faster_way_is_kept(void)
{
    struct weir_sys table = *weir_sys;
    table.now_ns = fake_now_ns;
    weir_sys = &table;
    CHECK_EQ(decide(0, 0), WEIR_WAY_IN_PLACE);
    CHECK_EQ(decide(100, 100), WEIR_WAY_IN_PLACE);
    CHECK_EQ(decide(100, 200), WEIR_WAY_IN_PLACE);
    CHECK_EQ(decide(100, 91), WEIR_WAY_IN_PLACE);
    CHECK_EQ(decide(100, 89), WEIR_WAY_POOL);
    CHECK_EQ(decide(100, 0), WEIR_WAY_POOL);
    weir_sys = &weir_sys_real;
}

/* Of each unit that a read sends before any has come, one bit. */
static void flip_first(int fd)
{
    for (uint64_t i = 0; i < store->depth; i++)
        fd_flip(fd, i * MIB * 8);
}

/* A read that fails during its trial decides nothing and leaves the trial to the next. In a pool
 * buffer a bad block never reaches the caller. */
static void a_read_that_fails(void)
{
    char *path = data_path(store, dir, "long");
    int fd = file_force_open(path);
    uint8_t *buf = data_buffer(LONG, 0);
    weir_object *obj;
    size_t got;
    OK(weir_object_open(&obj, store, "long"));
    flip_first(fd);
    forget();
    CHECK_EQ(weir_object_read(obj, buf, LONG, 0, &got), -EBADMSG);
    CHECK_EQ(verdict(), WEIR_WAY_UNKNOWN);
    CHECK_EQ(atomic_load(&store->landing.bytes_left), 0);
    store->landing.forced = WEIR_WAY_POOL;
    memset(buf, 0xee, LONG);
    CHECK_EQ(weir_object_read(obj, buf, LONG, 0, &got), -EBADMSG);
    CHECK(data_all(buf, LONG, 0xee));
    store->landing.forced = WEIR_WAY_UNKNOWN;
    flip_first(fd);
    weir_object_close(obj);
    data_free(buf, 0);
    close(fd);
    free(path);
    get_seed(store, "long", LONG, SEED);
    CHECK(verdict() != WEIR_WAY_UNKNOWN);
}

static void *read_long(void *arg)
{
    get_seed(store, arg, LONG, SEED);
    return NULL;
}

static void many_readers(void)
{
    pthread_t threads[THREADS];
    forget();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, read_long, "long") == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(verdict() != WEIR_WAY_UNKNOWN);
}

static void only_files_are_tried(void)
{
    weir_store *memory = store_at("mem:", NULL);
    CHECK(memory->landing.forced == WEIR_WAY_IN_PLACE && !store->landing.forced);
    weir_store_close(memory);
}

int main(int argc, char **argv)
{
    const char *engine = engine_or_skip(argc, argv);
    RUN(the_faster_way_is_kept);
    dir = tmp_path("store");
    store = store_sized(dir, engine, 64 * MIB, 8); /* so a trial needs but 168 units */
    RUN(only_files_are_tried);
    RUN(short_reads_try_nothing);
    put_seed(store, "long", LONG, SEED);
    RUN(a_long_read_decides);
    RUN(a_verdict_does_not_last);
    RUN(a_read_that_fails);
    RUN(many_readers);
    weir_store_close(store);
    return TEST_RESULT;
}
