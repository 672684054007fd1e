/* stage.c - see stage.h. */
#include "ckpt/stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"

struct weir_stage {
    pthread_mutex_t lock;
    pthread_cond_t more;
    char *area;
    size_t bytes, used; /* used: as far as buffers were handed out once */
    void **free;        /* given back, the last one on top: it is the warmest */
    size_t free_count;
};

int weir_stage_open(struct weir_stage **out, uint64_t bytes_max)
{
    size_t count = (size_t)(bytes_max / WEIR_BUFFER_BYTES);
    if (count < 2)
        return weir_fail(EINVAL, "a staging area of %llu bytes: it has at least 2 MiB",
                         (unsigned long long)bytes_max);
    struct weir_stage *stage = weir_alloc(sizeof *stage);
    void **free_list = stage ? weir_alloc(count * sizeof *free_list) : NULL;
    if (!free_list) {
        free(stage);
        return weir_fail_memory();
    }
    stage->bytes = count * WEIR_BUFFER_BYTES;
    stage->area = mmap(NULL, stage->bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stage->area == MAP_FAILED) {
        free(free_list);
        free(stage);
        return weir_fail(ENOMEM, "cannot map a staging area of %llu bytes",
                         (unsigned long long)bytes_max);
    }
    madvise(stage->area, stage->bytes, MADV_DONTFORK);
    madvise(stage->area, stage->bytes, MADV_HUGEPAGE);
    stage->free = free_list;
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->more, NULL);
    *out = stage;
    return 0;
}

void weir_stage_close(struct weir_stage *stage)
{
    if (!stage)
        return;
    munmap(stage->area, stage->bytes);
    pthread_cond_destroy(&stage->more);
    pthread_mutex_destroy(&stage->lock);
    free(stage->free);
    free(stage);
}

size_t weir_stage_count(const struct weir_stage *stage)
{
    return stage->bytes / WEIR_BUFFER_BYTES;
}

/* With the lock held. */
static void *take(struct weir_stage *stage)
{
    if (stage->free_count)
        return stage->free[--stage->free_count];
    if (stage->used == stage->bytes)
        return NULL;
    void *buffer = stage->area + stage->used;
    stage->used += WEIR_BUFFER_BYTES;
    return buffer;
}

void *weir_stage_get(struct weir_stage *stage)
{
    void *buffer;
    pthread_mutex_lock(&stage->lock);
    while (!(buffer = take(stage)))
        pthread_cond_wait(&stage->more, &stage->lock);
    pthread_mutex_unlock(&stage->lock);
    return buffer;
}

void *weir_stage_try(struct weir_stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    void *buffer = take(stage);
    pthread_mutex_unlock(&stage->lock);
    return buffer;
}

void weir_stage_put(void *arg, void *buffer)
{
    struct weir_stage *stage = arg;
    pthread_mutex_lock(&stage->lock);
    stage->free[stage->free_count++] = buffer;
    pthread_cond_signal(&stage->more);
    pthread_mutex_unlock(&stage->lock);
}
