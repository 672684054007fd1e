/* snapshot.c - see snapshot.h. */
#include "ckpt/snapshot.h"

#include <stdlib.h>

#include "util/copy.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    BATCH_MAX = 8,   /* buffers */
    BATCH_SHARE = 4, /* of the stage: the others come back, so the caller is never stuck */
    AHEAD = 16,      /* of a writer that the caller waits for: they stay warm */
};

int weir_snapshot_open(struct weir_snapshot *snap, struct weir_stage *stage,
                       const struct weir_layout *layout, const struct weir_ckpt_reader *reader,
                       bool through)
{
    size_t share = weir_stage_count(stage) / BATCH_SHARE;
    *snap = (struct weir_snapshot){.stage = stage, .layout = layout, .reader = reader};
    snap->ahead = through ? AHEAD : SIZE_MAX;
    snap->batch = through || share < 1 ? 1 : share < BATCH_MAX ? share : BATCH_MAX;
    /* Without tensors there is no file. */
    if (layout->count)
        snap->count = (size_t)((layout->bytes - 1) / WEIR_BUFFER_BYTES) + 1;
    snap->buffers = weir_alloc((snap->count + 1) * sizeof *snap->buffers);
    if (!snap->buffers)
        return weir_fail_memory();
    pthread_mutex_init(&snap->lock, NULL);
    pthread_cond_init(&snap->changed, NULL);
    return 0;
}

void weir_snapshot_close(struct weir_snapshot *snap)
{
    if (!snap->buffers)
        return;
    pthread_cond_destroy(&snap->changed);
    pthread_mutex_destroy(&snap->lock);
    free(snap->buffers);
    snap->buffers = NULL;
}

/* How many bytes of the file buffer i has. */
static size_t size_of(const struct weir_snapshot *snap, size_t i)
{
    uint64_t left = snap->layout->bytes - (uint64_t)i * WEIR_BUFFER_BYTES;
    return left < WEIR_BUFFER_BYTES ? (size_t)left : WEIR_BUFFER_BYTES;
}

/* The first tensor that ends behind `at`, counted from where the data begins. */
static size_t tensor_at(const struct weir_layout *l, uint64_t at)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->places[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Copies what belongs into buffer i. */
static int fill(const struct weir_snapshot *snap, size_t i, char *to)
{
    const struct weir_layout *l = snap->layout;
    uint64_t begin = (uint64_t)i * WEIR_BUFFER_BYTES, end = begin + size_of(snap, i);
    int code = 0;
    if (begin < l->header_size) {
        size_t n = (size_t)((end < l->header_size ? end : l->header_size) - begin);
        weir_copy_around(to, l->header + begin, n);
        to += n;
        begin += n;
    }
    for (size_t t = begin < end ? tensor_at(l, begin - l->header_size) : 0; !code && begin < end;
         t++) {
        uint64_t at = begin - l->header_size, stop = l->places[t].end;
        size_t n = (size_t)((end - begin < stop - at) ? end - begin : stop - at);
        uint64_t done = at - l->places[t].begin;
        if (snap->reader)
            code = snap->reader->read(snap->reader->arg, l->tensors[t], done, to, n);
        else
            weir_copy_around(to, (const char *)l->tensors[t]->data + done, n);
        to += n;
        begin += n;
    }
    return code;
}

/* Fills the next buffer that nobody has claimed: 1, 0 if there is none, or the reader's failure. */
static int fill_next(struct weir_snapshot *snap, void *buffer)
{
    pthread_mutex_lock(&snap->lock);
    while (snap->claimed < snap->count && snap->claimed - snap->taken >= snap->ahead)
        pthread_cond_wait(&snap->changed, &snap->lock);
    size_t i = snap->claimed < snap->count ? snap->claimed++ : snap->count;
    pthread_mutex_unlock(&snap->lock);
    int code = i < snap->count ? fill(snap, i, buffer) : 0;
    if (i == snap->count || code) {
        weir_stage_put(snap->stage, buffer);
        return code;
    }
    pthread_mutex_lock(&snap->lock);
    snap->buffers[i] = buffer;
    snap->full++;
    /* The writer is not woken for every one: that would cost the caller a system call each. */
    if (snap->full - snap->taken >= snap->batch || snap->full == snap->count)
        pthread_cond_broadcast(&snap->changed);
    pthread_mutex_unlock(&snap->lock);
    return 1;
}

int weir_snapshot_take(struct weir_snapshot *snap, uint64_t *stall_ns)
{
    int code = snap->count ? 1 : 0;
    while (code == 1) {
        void *buffer = weir_stage_try(snap->stage);
        if (!buffer) {
            pthread_cond_broadcast(&snap->changed); /* a writer that waits for a batch */
            uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
            buffer = weir_stage_get(snap->stage);
            *stall_ns += weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
        }
        code = fill_next(snap, buffer);
    }
    pthread_mutex_lock(&snap->lock);
    snap->stopped = code != 0;
    pthread_cond_broadcast(&snap->changed);
    while (!code && snap->full < snap->count) /* the writer has claimed the last ones */
        pthread_cond_wait(&snap->changed, &snap->lock);
    pthread_mutex_unlock(&snap->lock);
    return code;
}

void weir_snapshot_help(struct weir_snapshot *snap)
{
    void *buffer;
    if (snap->reader || snap->ahead < snap->count)
        return; /* the reader is the caller's, and knows one thread; or there is writing to do */
    while ((buffer = weir_stage_try(snap->stage)) && fill_next(snap, buffer) == 1)
        ;
}

void *weir_snapshot_next(struct weir_snapshot *snap, size_t *size)
{
    void *buffer = NULL;
    pthread_mutex_lock(&snap->lock);
    while (snap->taken < snap->count && !snap->buffers[snap->taken] && !snap->stopped)
        pthread_cond_wait(&snap->changed, &snap->lock);
    if (snap->taken < snap->count && snap->buffers[snap->taken]) {
        *size = size_of(snap, snap->taken);
        buffer = snap->buffers[snap->taken++];
        if (snap->ahead < snap->count)
            pthread_cond_broadcast(&snap->changed);
    }
    pthread_mutex_unlock(&snap->lock);
    return buffer;
}
