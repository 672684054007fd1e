/* A snapshot hands the writer the file, byte for byte: as a whole, or, for a caller that will wait,
 * through a few buffers.
 */
#include <pthread.h>

#include "ckpt/snapshot.h"
#include "test.h"

enum { MIB = 1 << 20, TENSOR_BYTES = 40 * MIB + 123, STAGE_BYTES = 64 * MIB, FEW = 20 };

static uint8_t *content;
static struct weir_stage *stage;

struct writer {
    struct weir_snapshot *snap;
    uint8_t *file;
    const char *low, *high; /* the buffers it was given lie between these */
};

static void *write_all(void *arg)
{
    struct writer *w = arg;
    size_t size, at = 0;
    char *buffer;
    weir_snapshot_help(w->snap);
    while ((buffer = weir_snapshot_next(w->snap, &size))) {
        memcpy(w->file + at, buffer, size);
        at += size;
        w->low = !w->low || buffer < w->low ? buffer : w->low;
        w->high = !w->high || buffer > w->high ? buffer : w->high;
        weir_stage_put(stage, buffer);
    }
    CHECK_EQ(at, w->snap->layout->bytes);
    return NULL;
}

/* How many buffers were in use. */
static size_t buffers_of(bool through)
{
    const uint64_t shape[] = {TENSOR_BYTES};
    const weir_tensor tensor = {
        .name = "w", .dtype = "U8", .ndim = 1, .shape = shape, .data = content};
    struct weir_layout layout = {0};
    struct weir_snapshot snap;
    uint64_t stall_ns = 0;
    pthread_t thread;
    OK(weir_layout_make(&layout, &tensor, 1));
    OK(weir_stage_open(&stage, STAGE_BYTES));
    OK(weir_snapshot_open(&snap, stage, &layout, NULL, through));
    struct writer w = {.snap = &snap, .file = malloc(layout.bytes)};
    CHECK(w.file);
    if (through) {
        CHECK(!pthread_create(&thread, NULL, write_all, &w));
        OK(weir_snapshot_take(&snap, &stall_ns));
    } else { /* nobody writes meanwhile */
        OK(weir_snapshot_take(&snap, &stall_ns));
        CHECK(!pthread_create(&thread, NULL, write_all, &w));
    }
    CHECK(!pthread_join(thread, NULL));
    CHECK(!memcmp(w.file + layout.header_size, content, TENSOR_BYTES));
    weir_snapshot_close(&snap);
    weir_stage_close(stage);
    weir_layout_free(&layout);
    free(w.file);
    return (size_t)(w.high - w.low) / MIB + 1;
}

static void a_whole_copy(void)
{
    CHECK_EQ(buffers_of(false), 41);
}

static void a_few_buffers(void)
{
    CHECK(buffers_of(true) <= FEW);
}

int main(void)
{
    content = malloc(TENSOR_BYTES);
    CHECK(content);
    for (size_t i = 0; i < TENSOR_BYTES; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 24);
    RUN(a_whole_copy);
    RUN(a_few_buffers);
    free(content);
    return TEST_RESULT;
}
