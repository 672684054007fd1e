/* Memory stays bounded however large an object is: the pool is the limit, not the object. */
#include <sys/resource.h>

#include "io/checkers.h"
#include "stores.h"

enum { PIECE = 1 << 20, PIECES = 512, PEAK_MIB_MAX = 192 };

static long peak_mib(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_maxrss / 1024;
}

static void large_object(const char *engine)
{
    weir_store *store = store_at(tmp_path("store"), engine);
    uint8_t *piece = data_buffer(PIECE, 1);
    weir_put *put;
    weir_object *obj;
    size_t got;
    OK(weir_put_open(&put, store, "large", NULL));
    for (uint64_t i = 0; i < PIECES; i++) {
        data_fill(piece, PIECE, i, 0);
        OK(weir_put_write(put, piece, PIECE));
    }
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    OK(weir_object_open(&obj, store, "large"));
    for (uint64_t i = 0; i < PIECES; i++) {
        OK(weir_object_read(obj, piece, PIECE, i * PIECE, &got));
        CHECK(got == PIECE && data_is(piece, 4096, i, 0));
    }
    weir_object_close(obj);
    OK(weir_verify(store, "large", NULL, NULL));
    OK(weir_remove(store, "large"));
    weir_store_close(store);
    data_free(piece, 1);
}

int main(int argc, char **argv)
{
#ifdef WEIR_ASAN
    SKIP("a sanitizer's own memory would be measured");
#endif
    const char *engine = engine_or_skip(argc, argv);
    large_object(engine);
    long peak = peak_mib();
    printf("# %s: %d MiB put and got, at most %ld MiB resident\n", engine, PIECES, peak);
    CHECK(peak < PEAK_MIB_MAX);
    return TEST_RESULT;
}
