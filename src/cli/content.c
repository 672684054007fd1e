/* content.c - see content.h. */
#include "cli/content.h"

#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/work.h"
#include "util/err.h"

enum {
    STEP_BYTES_MAX = 16 << 20, /* keeps a store's default depth of 1 MiB reads busy */
    ALL_BYTES_MAX = 64 << 20,  /* with a store's buffers, a process stays within 192 MiB */
    BUFFERS_MAX = 2,           /* of one thread: two sides are compared */
    UNIT_BYTES = 1 << 20,      /* steps are whole blocks of an object */
    ALIGN_BYTES = 4096,        /* lets reads land in the buffer itself */
};

_Static_assert(ALL_BYTES_MAX / BUFFERS_MAX / WORK_JOBS_MAX >= UNIT_BYTES, "a step for each job");

static size_t step_bytes = STEP_BYTES_MAX;

void content_share(size_t jobs)
{
    size_t share = ALL_BYTES_MAX / BUFFERS_MAX / jobs / UNIT_BYTES * UNIT_BYTES;
    step_bytes = share < STEP_BYTES_MAX ? share : STEP_BYTES_MAX;
}

static int new_buffer(void **out, uint64_t size)
{
    uint64_t whole = (size / ALIGN_BYTES + 1) * ALIGN_BYTES;
    *out = aligned_alloc(ALIGN_BYTES, whole < step_bytes ? whole : step_bytes);
    return *out ? 0 : weir_fail_memory();
}

int content_store(weir_put *put, struct source *source)
{
    for (;;) {
        void *buf;
        size_t room, got;
        int code = weir_put_buffer(put, &buf, &room);
        if (!code)
            code = source_read(source, buf, room, &got);
        if (!code && got)
            code = weir_put_advance(put, got);
        if (code || !got)
            return code;
        progress_bytes(got);
    }
}

int content_fetch(struct target *target, weir_object *object, uint64_t begin, uint64_t end)
{
    void *buf;
    int code = new_buffer(&buf, end - begin);
    if (code)
        return code;
    while (!code && begin < end) {
        size_t got = 0, want = end - begin < step_bytes ? (size_t)(end - begin) : step_bytes;
        code = stop_asked() ? stop_fail() : weir_object_read(object, buf, want, begin, &got);
        if (!code)
            code = target_write(target, buf, got);
        if (!code)
            progress_bytes(got);
        begin += got;
    }
    free(buf);
    return code;
}

/* Reads until size bytes are there, or the end. */
static int read_full(struct source *source, char *buf, size_t size, size_t *got)
{
    size_t n;
    int code = 0;
    *got = 0;
    do {
        code = source_read(source, buf + *got, size - *got, &n);
        *got += code ? 0 : n;
    } while (!code && n && *got < size);
    return code;
}

static int compare(bool *same, weir_object *object, struct source *source, char *mine, char *theirs)
{
    uint64_t size = weir_object_info(object)->size_bytes;
    int code = 0;
    *same = true;
    for (uint64_t at = 0; !code && *same && at < size; at += step_bytes) {
        size_t want = size - at < step_bytes ? (size_t)(size - at) : step_bytes, got, have;
        code = read_full(source, mine, want, &have);
        if (!code && have == want)
            code = weir_object_read(object, theirs, want, at, &got);
        *same = !code && have == want && !memcmp(mine, theirs, want);
        progress_bytes(have);
    }
    size_t more = 0;
    char byte;
    if (!code && *same)
        code = source_read(source, &byte, 1, &more);
    *same = *same && !more;
    return code;
}

int content_compare(bool *same, weir_object *object, struct source *source)
{
    uint64_t size = weir_object_info(object)->size_bytes;
    void *mine, *theirs = NULL;
    if (source->plain && (uint64_t)source->st.st_size != size) {
        *same = false;
        return 0;
    }
    int code = new_buffer(&mine, size);
    if (!code)
        code = new_buffer(&theirs, size);
    if (!code)
        code = compare(same, object, source, mine, theirs);
    free(mine);
    free(theirs);
    return code;
}
