/* saving.c - one save: its memory, and those who wait for it. See saving.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/cover.h"
#include "ckpt/saving.h"
#include "util/err.h"
#include "util/sys.h"

void weir_saving_free(struct weir_saving *s)
{
    weir_layout_free(&s->layout);
    weir_snapshot_close(&s->snapshot);
    free(s->tensors);
    free(s->meta);
    free(s->name);
    free(s->state);
    free(s);
}

void weir_saving_unref(struct weir_saving *s)
{
    if (--s->refs == 0)
        weir_saving_free(s);
}

static void *copy_in(char **at, const void *from, size_t size)
{
    void *to = *at;
    if (size)
        memcpy(to, from, size);
    *at += (size + 7) & ~(size_t)7;
    return to;
}

/* Names, shapes and offsets outlive the call; the data need not. */
static int copy_tensors(struct weir_saving *s, const weir_tensor *tensors, size_t count)
{
    size_t size = count * sizeof *tensors;
    for (size_t i = 0; i < count; i++) {
        if (!tensors[i].name || !tensors[i].dtype || tensors[i].ndim > WEIR_DIMS_MAX ||
            (tensors[i].ndim && !tensors[i].shape) ||
            !tensors[i].offset != !tensors[i].global_shape)
            return weir_fail(EINVAL, "tensor %zu lacks a name, a dtype, a shape or an offset", i);
        size += strlen(tensors[i].name) + 8 + strlen(tensors[i].dtype) + 8 +
                3 * 8 * (size_t)tensors[i].ndim;
    }
    s->tensors = weir_alloc(size + 8);
    if (!s->tensors)
        return weir_fail_memory();
    s->tensor_count = count;
    char *at = (char *)(s->tensors + count);
    for (size_t i = 0; i < count; i++) {
        weir_tensor *t = &s->tensors[i];
        size_t dims = 8 * (size_t)tensors[i].ndim;
        *t = tensors[i];
        t->name = copy_in(&at, t->name, strlen(t->name) + 1);
        t->dtype = copy_in(&at, t->dtype, strlen(t->dtype) + 1);
        t->shape = copy_in(&at, t->shape, dims);
        if (t->global_shape) {
            t->global_shape = copy_in(&at, t->global_shape, dims);
            t->offset = copy_in(&at, t->offset, dims);
        }
    }
    return weir_layout_make(&s->layout, s->tensors, count);
}

int weir_saving_new(struct weir_saving **out, weir_ckpt *ckpt, const weir_tensor *tensors,
                    size_t count, const weir_save_options *opts,
                    const struct weir_ckpt_reader *reader)
{
    struct weir_saving *s = weir_alloc(sizeof *s);
    if (!s)
        return weir_fail_memory();
    s->ckpt = ckpt;
    s->refs = 2; /* the caller's and the writer's */
    s->level = WEIR_LEVEL_MEMORY;
    int code = copy_tensors(s, tensors, count);
    s->meta = opts->meta ? weir_strdup(opts->meta) : NULL;
    s->state = opts->state ? weir_strdup(opts->state) : NULL;
    s->name = opts->name ? weir_strdup(opts->name) : NULL;
    if (!code &&
        ((opts->meta && !s->meta) || (opts->state && !s->state) || (opts->name && !s->name)))
        code = weir_fail_memory();
    if (!code)
        code =
            weir_snapshot_open(&s->snapshot, ckpt->stage, &s->layout, reader, opts->is_waited_for);
    if (code)
        weir_saving_free(s);
    else
        *out = s;
    return code;
}

/* ---- asking ---- */

/* Waits until the writer is done with it, and, if it shall be home, no other thread waits for that:
 * 0, its failure, or -ETIMEDOUT. If it is not there yet, this thread is who waits then. */
static int wait_for_writer(struct weir_saving *s, uint64_t until_ns, weir_level wanted,
                           weir_level *level)
{
    weir_ckpt *ckpt = s->ckpt;
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    int code = 0;
    pthread_mutex_lock(&ckpt->lock);
    while (!s->code && s->level < wanted && (s->level < WEIR_LEVEL_NODE || s->is_waited_for) &&
           !code)
        code = -pthread_cond_clockwait(&ckpt->changed, &ckpt->lock, CLOCK_MONOTONIC, &until);
    *level = s->level;
    if (s->code) {
        s->asked = true;
        if (ckpt->failed == s->save.number)
            ckpt->code = 0; /* it is heard */
        code = weir_fail_text(s->code, s->text);
    } else if (s->level >= WEIR_LEVEL_NODE && s->level < wanted && s->is_waited_for) {
        code =
            weir_fail(ETIMEDOUT, "'%s' of run '%s' is not complete yet", s->save.name, ckpt->run);
    } else if (s->level >= WEIR_LEVEL_NODE) {
        code = 0;
        s->is_waited_for |= s->level < wanted;
    } else {
        code = weir_fail(ETIMEDOUT, "'%s' of run '%s' is still being written", s->save.name,
                         ckpt->run);
    }
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

static void waiter_close(struct weir_saving *s)
{
    weir_set_close(s->set);
    weir_ledger_close(s->ledger);
    s->set = NULL;
    s->ledger = NULL;
}

static int waiter_open(struct weir_saving *s)
{
    if (s->set)
        return 0;
    int code = weir_ledger_open(&s->ledger, s->ckpt->store, s->ckpt->log);
    if (!code)
        code = weir_set_open(&s->set, s->ledger, &s->save);
    if (code)
        return code;
    s->waited = false;
    weir_set_label(s->set, s->name);
    weir_set_check(s->set, weir_cover_check, &s->waited);
    return 0;
}

/* Waits for the other ranks, and then lets others do so. */
static int wait_for_set(struct weir_saving *s, uint64_t timeout_ns)
{
    weir_ckpt *ckpt = s->ckpt;
    bool committed = false;
    int code = waiter_open(s);
    if (!code)
        code = weir_set_wait(s->set, timeout_ns, &committed);
    if (committed)
        weir_ckpt_tidy(s, s->ledger);
    if (code != -ETIMEDOUT)
        waiter_close(s);
    pthread_mutex_lock(&ckpt->lock);
    s->is_waited_for = false;
    if (!code)
        s->level = WEIR_LEVEL_HOME;
    pthread_cond_broadcast(&ckpt->changed);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

int weir_saving_wait(weir_saving *s, weir_level level, uint64_t timeout_ns)
{
    weir_level reached;
    uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO), until_ns;
    int code = weir_ckpt_check(s->ckpt);
    if (code || level <= WEIR_LEVEL_MEMORY)
        return code;
    if (__builtin_add_overflow(now_ns, timeout_ns, &until_ns) || until_ns > INT64_MAX)
        until_ns = INT64_MAX;
    code = wait_for_writer(s, until_ns, level, &reached);
    if (code || level <= reached)
        return code;
    now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    return wait_for_set(s, until_ns > now_ns ? until_ns - now_ns : 0);
}

void weir_saving_cancel(weir_saving *s)
{
    if (weir_ckpt_check(s->ckpt))
        return;
    pthread_mutex_lock(&s->ckpt->lock);
    s->cancelled = true;
    pthread_mutex_unlock(&s->ckpt->lock);
}

void weir_saving_close(weir_saving *s)
{
    if (!s || weir_ckpt_check(s->ckpt))
        return;
    weir_ckpt *ckpt = s->ckpt;
    waiter_close(s);
    pthread_mutex_lock(&ckpt->lock);
    weir_saving_unref(s);
    pthread_mutex_unlock(&ckpt->lock);
}
