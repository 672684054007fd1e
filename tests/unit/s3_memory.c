/* Memory of parts: what one part had the next one gets, nothing is spare beyond the bound or after
 * the last sink, and who finds none waits for an upload, unless there is none.
 */
#include "test.h"
#include "tier/s3_memory.h"

enum { PART = 4096, PARTS = 3 };

static struct weir_s3_memory memory;

static void *begin_part(uint64_t bytes)
{
    void *data = weir_s3_memory_take(&memory, bytes, true);
    return data ? data : malloc(bytes);
}

static void the_next_one_gets_it(void)
{
    weir_s3_memory_join(&memory);
    weir_s3_memory_join(&memory);
    void *first = begin_part(PART), *second = begin_part(PART);
    weir_s3_memory_keep(&memory, first, PART);
    CHECK_EQ(memory.bytes, 2 * PART);
    CHECK(!weir_s3_memory_take(&memory, PART, false)); /* who has a part already wants no other */
    weir_s3_memory_give(&memory, PART);
    CHECK(begin_part(PART) == first);
    weir_s3_memory_keep(&memory, second, PART);
    weir_s3_memory_keep(&memory, first, PART);
    weir_s3_memory_leave(&memory);
    CHECK_EQ(memory.bytes, 2 * PART);
    weir_s3_memory_leave(&memory);
    CHECK_EQ(memory.bytes, 0);
    CHECK(!memory.spare);
}

static void another_size(void)
{
    weir_s3_memory_join(&memory);
    void *small = begin_part(PART), *large = begin_part(2 * PART);
    weir_s3_memory_keep(&memory, small, PART);
    weir_s3_memory_keep(&memory, large, 2 * PART); /* the small one goes */
    CHECK_EQ(memory.bytes, 2 * PART);
    CHECK(begin_part(2 * PART) == large);
    weir_s3_memory_keep(&memory, large, 2 * PART);
    small = begin_part(2 * PART - 1); /* and now the large one: both would be too much */
    CHECK_EQ(memory.bytes, 2 * PART - 1);
    free(small);
    weir_s3_memory_give(&memory, 2 * PART - 1);
    weir_s3_memory_leave(&memory);
    CHECK_EQ(memory.bytes, 0);
}

static void nothing_is_spare_beyond_the_bound(void)
{
    void *parts[2 * PARTS];
    weir_s3_memory_join(&memory);
    for (int i = 0; i < 2 * PARTS; i++) /* nobody to wait for */
        parts[i] = begin_part(PART);
    CHECK_EQ(memory.bytes, 2 * PARTS * PART);
    for (int i = 0; i < 2 * PARTS; i++)
        weir_s3_memory_keep(&memory, parts[i], PART);
    CHECK_EQ(memory.bytes, PARTS * PART);
    weir_s3_memory_leave(&memory);
    CHECK_EQ(memory.bytes, 0);
}

static void *wait_for_memory(void *arg)
{
    *(void **)arg = weir_s3_memory_take(&memory, PART, true);
    return NULL;
}

static void who_finds_none_waits(void)
{
    void *parts[PARTS], *got = NULL;
    pthread_t waiter;
    weir_s3_memory_join(&memory);
    for (int i = 0; i < PARTS; i++)
        parts[i] = begin_part(PART);
    weir_s3_memory_uploads(&memory, 1);
    CHECK(!pthread_create(&waiter, NULL, wait_for_memory, &got));
    weir_s3_memory_keep(&memory, parts[0], PART);
    CHECK(!pthread_join(waiter, NULL));
    CHECK(got == parts[0]);
    weir_s3_memory_uploads(&memory, -1);
    for (int i = 0; i < PARTS; i++)
        weir_s3_memory_keep(&memory, parts[i], PART);
    weir_s3_memory_leave(&memory);
}

int main(void)
{
    weir_s3_memory_init(&memory, PARTS * PART);
    RUN(the_next_one_gets_it);
    RUN(another_size);
    RUN(nothing_is_spare_beyond_the_bound);
    RUN(who_finds_none_waits);
    weir_s3_memory_destroy(&memory);
    return TEST_RESULT;
}
