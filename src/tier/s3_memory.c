/* s3_memory.c - see s3_memory.h. */
#include "tier/s3_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void weir_s3_memory_init(struct weir_s3_memory *memory, uint64_t bytes_max)
{
    *memory = (struct weir_s3_memory){.bytes_max = bytes_max};
    pthread_mutex_init(&memory->lock, NULL);
    pthread_cond_init(&memory->freed, NULL);
}

void weir_s3_memory_destroy(struct weir_s3_memory *memory)
{
    assert(!memory->sinks && !memory->spare);
    pthread_mutex_destroy(&memory->lock);
    pthread_cond_destroy(&memory->freed);
}

/* Under the lock, as the next. */
static void *pop_spare(struct weir_s3_memory *memory)
{
    void *data = memory->spare;
    if (data)
        memcpy(&memory->spare, data, sizeof memory->spare);
    return data;
}

static void drop_spare(struct weir_s3_memory *memory)
{
    memory->bytes -= memory->spare_bytes;
    free(pop_spare(memory));
}

void weir_s3_memory_join(struct weir_s3_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    memory->sinks++;
    pthread_mutex_unlock(&memory->lock);
}

void weir_s3_memory_leave(struct weir_s3_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    memory->sinks--;
    while (!memory->sinks && memory->spare)
        drop_spare(memory);
    pthread_mutex_unlock(&memory->lock);
}

void weir_s3_memory_uploads(struct weir_s3_memory *memory, int more)
{
    pthread_mutex_lock(&memory->lock);
    memory->uploads += (unsigned)more;
    pthread_cond_broadcast(&memory->freed);
    pthread_mutex_unlock(&memory->lock);
}

void *weir_s3_memory_take(struct weir_s3_memory *memory, uint64_t bytes, bool begins)
{
    void *data = NULL;
    pthread_mutex_lock(&memory->lock);
    for (;;) {
        data = begins && bytes == memory->spare_bytes ? pop_spare(memory) : NULL;
        if (data || memory->bytes + bytes <= memory->bytes_max)
            break;
        if (memory->spare)
            drop_spare(memory);
        else if (memory->uploads)
            pthread_cond_wait(&memory->freed, &memory->lock);
        else
            break;
    }
    memory->bytes += data ? 0 : bytes;
    pthread_mutex_unlock(&memory->lock);
    return data;
}

void weir_s3_memory_give(struct weir_s3_memory *memory, uint64_t bytes)
{
    pthread_mutex_lock(&memory->lock);
    memory->bytes -= bytes;
    pthread_cond_broadcast(&memory->freed);
    pthread_mutex_unlock(&memory->lock);
}

void weir_s3_memory_keep(struct weir_s3_memory *memory, void *data, uint64_t bytes)
{
    pthread_mutex_lock(&memory->lock);
    while (memory->spare && memory->spare_bytes != bytes)
        drop_spare(memory);
    if (memory->bytes <= memory->bytes_max) {
        memory->spare_bytes = bytes;
        memcpy(data, &memory->spare, sizeof memory->spare);
        memory->spare = data;
    } else {
        memory->bytes -= bytes;
        free(data);
    }
    pthread_cond_broadcast(&memory->freed);
    pthread_mutex_unlock(&memory->lock);
}
