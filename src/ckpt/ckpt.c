/* ckpt.c - saving: weir_ckpt_save() copies this rank's tensors into the staging area and returns;
 * one thread of the checkpointer writes them out, seals them, publishes this rank's part, and, if
 * that completed the set, has committed the checkpoint and tidies up after older ones.
 *
 *   the caller's thread            the writer's thread
 *   layout, header
 *   copy ◀─── buffers ───────────▶ copies, too, as long as there is room (snapshot.h)
 *   return                         lends each to the put: hashed, written, given back to the stage
 *                                  seal, manifest, state ─▶ part ─▶ (commit, index, retire)
 *
 * Saves are written in the order they were begun. A weir_saving is counted: the caller's handle and
 * the writer each hold it.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/cover.h"
#include "ckpt/run.h"
#include "ckpt/snapshot.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    QUEUE_DEFAULT = 2,
    QUEUE_MAX = 64,
    REFS_MAX = 4, /* file, manifest, state, meta */
};
#define STAGING_BYTES_DEFAULT ((uint64_t)4 << 30)

struct weir_saving {
    weir_ckpt *ckpt;
    struct weir_saving *next;
    unsigned refs; /* all of this is guarded by the checkpointer's lock */
    struct weir_save save;
    bool cancelled, asked; /* asked: somebody was told how it went */
    bool is_waited_for;    /* a caller uses what is next */
    weir_level level;
    int code;
    char text[WEIR_TEXT_MAX];

    /* Of whoever waits for the other ranks, from call to call; the writer's are in use. */
    struct weir_ledger *ledger;
    struct weir_set *set;
    bool waited; /* for weir_cover_check() */

    struct weir_snapshot snapshot;
    weir_tensor *tensors; /* a copy; what it points to is in the same block */
    size_t tensor_count;
    struct weir_layout layout;
    char *meta, *state, *name;
};

struct weir_ckpt {
    weir_store *store;
    struct weir_stage *stage;
    struct weir_ledger *ledger; /* the writer's */
    weir_ckpt_options opts;
    uint64_t attempt, saves;
    char run[WEIR_KEY_BYTES_MAX + 1], log[WEIR_KEY_BYTES_MAX + 1];
    unsigned generation;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t writer;
    bool closing;
    struct weir_saving *queue; /* the first is being written */
    unsigned queued;
    weir_ckpt_stats stats;
    uint64_t failed; /* the number of a save that failed and that nobody asked about, */
    int code;        /* if this is not 0, and why */
    char text[WEIR_TEXT_MAX];
};

void weir_ckpt_options_init(weir_ckpt_options *opts)
{
    *opts = (weir_ckpt_options){
        .struct_size = sizeof *opts,
        .ranks = 1,
        .queue_max = QUEUE_DEFAULT,
        .staging_bytes_max = STAGING_BYTES_DEFAULT,
        .keep_last = WEIR_KEEP_LAST_DEFAULT,
        .retired_grace_s = WEIR_RETIRED_GRACE_S_DEFAULT,
    };
}

/* ---- a saving's life ---- */

static void saving_free(struct weir_saving *s)
{
    weir_layout_free(&s->layout);
    weir_snapshot_close(&s->snapshot);
    free(s->tensors);
    free(s->meta);
    free(s->name);
    free(s->state);
    free(s);
}

/* With the lock held. */
static void saving_unref(struct weir_saving *s)
{
    if (--s->refs == 0)
        saving_free(s);
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

static int saving_new(struct weir_saving **out, weir_ckpt *ckpt, const weir_tensor *tensors,
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
        saving_free(s);
    else
        *out = s;
    return code;
}

/* ---- the snapshot ---- */

/* After a failure the writer gets no more, and gives up what it has. */
static int snapshot(struct weir_saving *s)
{
    weir_ckpt *ckpt = s->ckpt;
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO), stall_ns = 0;
    int code = weir_snapshot_take(&s->snapshot, &stall_ns);
    uint64_t took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
    pthread_mutex_lock(&ckpt->lock);
    s->cancelled |= code != 0;
    ckpt->stats.bytes += s->layout.bytes;
    ckpt->stats.stall_stage_ns += stall_ns;
    ckpt->stats.copy_ns += took_ns - stall_ns;
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

static int ckpt_check(const weir_ckpt *ckpt)
{
    return ckpt->generation == weir_fork_generation()
               ? 0
               : weir_fail(ECHILD,
                           "checkpointer '%s' was opened before fork(): open it again in "
                           "the child",
                           ckpt->run);
}

/* Waits, with the lock held, until at most so many saves are under way. -ETIMEDOUT. */
static int wait_for_queue(weir_ckpt *ckpt, unsigned queued_max, uint64_t timeout_ns)
{
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO), until_ns;
    int code = 0;
    if (__builtin_add_overflow(start_ns, timeout_ns, &until_ns) || until_ns > INT64_MAX)
        until_ns = INT64_MAX;
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    while (ckpt->queued > queued_max && !code)
        code = -pthread_cond_clockwait(&ckpt->changed, &ckpt->lock, CLOCK_MONOTONIC, &until);
    if (ckpt->queued <= queued_max)
        return 0;
    return weir_fail(ETIMEDOUT, "%u saves of run '%s' are under way", ckpt->queued, ckpt->run);
}

/* The same, until one more may be begun: this is what a caller loses. */
static int wait_for_room(weir_ckpt *ckpt, uint64_t timeout_ns)
{
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    int code = wait_for_queue(ckpt, ckpt->opts.queue_max - 1, timeout_ns);
    ckpt->stats.stall_queue_ns += weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
    return code;
}

/* With the lock held: the error of a save that nobody asked about, which is heard thereby. */
static int take_failure(weir_ckpt *ckpt)
{
    int code = ckpt->code;
    ckpt->code = 0;
    if (code) {
        weir_fail_text(code, ckpt->text);
        weir_fail_in(code, "an earlier save failed");
    }
    return code;
}

int weir_ckpt_wait(weir_ckpt *ckpt, uint32_t queued_max, uint64_t timeout_ns)
{
    int code = ckpt_check(ckpt);
    if (code)
        return code;
    pthread_mutex_lock(&ckpt->lock);
    code = wait_for_queue(ckpt, queued_max, timeout_ns);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

int weir_ckpt_room(weir_ckpt *ckpt, uint64_t timeout_ns)
{
    int code = ckpt_check(ckpt);
    if (code)
        return code;
    pthread_mutex_lock(&ckpt->lock);
    code = wait_for_room(ckpt, timeout_ns);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

int weir_ckpt_failure(weir_ckpt *ckpt)
{
    int code = ckpt_check(ckpt);
    if (code)
        return code;
    pthread_mutex_lock(&ckpt->lock);
    code = take_failure(ckpt);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

/* Waits for room in the queue and enters it. */
static int enqueue(weir_ckpt *ckpt, struct weir_saving *s)
{
    pthread_mutex_lock(&ckpt->lock);
    wait_for_room(ckpt, UINT64_MAX);
    int code = take_failure(ckpt);
    if (!code) {
        struct weir_saving **at = &ckpt->queue;
        while (*at)
            at = &(*at)->next;
        *at = s;
        ckpt->queued++;
        ckpt->stats.saves++;
        pthread_cond_broadcast(&ckpt->changed);
    }
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

void weir_save_options_init(weir_save_options *opts)
{
    *opts = (weir_save_options){.struct_size = sizeof *opts};
}

static int save_options_read(weir_save_options *out, const weir_save_options *given)
{
    weir_save_options_init(out);
    if (!given)
        return 0;
    if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
        return weir_fail(EINVAL, "weir_save_options: call weir_save_options_init() first");
    memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    return out->name ? weir_label_check(out->name) : 0;
}

/* The number of this save. A call that fails counts: the other ranks, which know nothing of that,
 * count theirs. */
static int next_number(weir_ckpt *ckpt, uint64_t wanted, uint64_t *out)
{
    if (wanted && wanted <= ckpt->saves)
        return weir_fail(EINVAL, "save %" PRIu64 " of run '%s' comes after save %" PRIu64, wanted,
                         ckpt->run, ckpt->saves);
    ckpt->saves = wanted ? wanted : ckpt->saves + 1;
    *out = ckpt->saves;
    return 0;
}

int weir_ckpt_save_read(weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors, size_t count,
                        const weir_save_options *given, const struct weir_ckpt_reader *reader,
                        weir_saving **out)
{
    struct weir_saving *s = NULL;
    weir_save_options opts;
    uint64_t number = 0;
    int code = ckpt_check(ckpt);
    if (code)
        return code;
    code = save_options_read(&opts, given);
    int refused = next_number(ckpt, code ? 0 : opts.number, &number);
    if (!code)
        code = refused;
    if (!code && step == WEIR_STEP_NEWEST)
        code = weir_fail(EINVAL, "step %" PRIu64 " is no step", step);
    if (!code)
        code = saving_new(&s, ckpt, tensors, count, &opts, reader);
    if (code)
        return code;
    snprintf(s->save.name, sizeof s->save.name, "%" PRIu64, step);
    s->save.attempt = ckpt->attempt;
    s->save.number = number;
    s->save.parts = ckpt->opts.ranks;
    code = enqueue(ckpt, s);
    if (code) {
        saving_free(s);
        return code;
    }
    code = snapshot(s);
    if (out && !code)
        *out = s;
    else
        weir_saving_close(s);
    return code;
}

int weir_ckpt_save(weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors, size_t count,
                   const weir_save_options *opts, weir_saving **out)
{
    return weir_ckpt_save_read(ckpt, step, tensors, count, opts, NULL, out);
}

/* ---- writing ---- */

static bool is_cancelled(struct weir_saving *s)
{
    pthread_mutex_lock(&s->ckpt->lock);
    bool cancelled = s->cancelled;
    pthread_mutex_unlock(&s->ckpt->lock);
    return cancelled;
}

/* Sleeps so that the bytes written since start_ns stay within the rate. */
static void keep_rate(const weir_ckpt *ckpt, uint64_t bytes, uint64_t start_ns)
{
    uint64_t rate = ckpt->opts.rate_bytes_per_s;
    if (!rate)
        return;
    uint64_t due_ns = (uint64_t)((double)bytes / (double)rate * 1e9);
    uint64_t took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
    if (due_ns > took_ns)
        weir_sys->sleep_ns(due_ns - took_ns);
}

static int write_file(struct weir_saving *s, const char *prefix, struct weir_ref *ref)
{
    weir_ckpt *ckpt = s->ckpt;
    char name[64], key[WEIR_KEY_BYTES_MAX + 72];
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO), bytes = 0;
    weir_put_options opts;
    weir_put *put = NULL;
    void *buffer;
    size_t size;
    weir_snapshot_help(&s->snapshot);
    weir_put_options_init(&opts);
    opts.flags = WEIR_PUT_OF_SAVE(prefix);
    opts.size_bytes = s->layout.bytes;
    weir_ckpt_file_name(name, ckpt->opts.rank, ckpt->opts.ranks);
    snprintf(key, sizeof key, "%s/%s", prefix, name);
    int code = weir_put_open(&put, ckpt->store, key, &opts);
    if (!code)
        weir_put_lender(put, weir_stage_put, ckpt->stage);
    while ((buffer = weir_snapshot_next(&s->snapshot, &size))) {
        if (!code && is_cancelled(s))
            code = weir_fail(ECANCELED, "saving '%s' was cancelled", prefix);
        bytes += size;
        if (code)
            weir_stage_put(ckpt->stage, buffer); /* the caller may be waiting for room */
        else
            code = weir_put_lend(put, buffer, size);
        if (!code)
            keep_rate(ckpt, bytes, start_ns);
    }
    /* No more comes also after a reader's failure, of which the caller may not have told yet. */
    if (!code && (bytes < s->layout.bytes || is_cancelled(s)))
        code = weir_fail(ECANCELED, "saving '%s' was cancelled", prefix);
    if (!code)
        code = weir_put_commit(put, NULL);
    if (!code)
        weir_ckpt_ref(ref, put, name);
    weir_put_close(put);
    return code;
}

/* Publishes this rank's part, and so perhaps the whole. */
static int put_part(struct weir_saving *s, const struct weir_ref *refs, uint32_t count,
                    bool *committed)
{
    struct weir_cover cover = {0};
    uint8_t note[WEIR_COVER_BYTES];
    struct weir_set *set;
    int code = weir_set_open(&set, s->ckpt->ledger, &s->save);
    if (code)
        return code;
    for (size_t i = 0; i < s->tensor_count; i++)
        weir_cover_add(&cover, &s->tensors[i], weir_layout_is_written(&s->tensors[i]));
    weir_cover_encode(&cover, note);
    weir_set_label(set, s->name);
    weir_set_check(set, weir_cover_check, NULL);
    code = weir_set_put(set, s->ckpt->opts.rank, refs, count, note, sizeof note, committed);
    weir_set_close(set);
    return code;
}

/* All of this rank's objects, and its part. Without tensors there is no file. */
static int write_part(struct weir_saving *s, bool *committed)
{
    weir_ckpt *ckpt = s->ckpt;
    char prefix[WEIR_KEY_BYTES_MAX + 1], name[64];
    struct weir_ref refs[REFS_MAX];
    uint32_t count = 0;
    int code = 0;
    weir_ledger_prefix(ckpt->ledger, &s->save, prefix);
    if (s->layout.count)
        code = write_file(s, prefix, &refs[count++]);
    if (!code && s->layout.count)
        code = weir_layout_put_manifest(&s->layout, ckpt->store, prefix, ckpt->opts.rank,
                                        &refs[count++]);
    if (!code && s->state) {
        snprintf(name, sizeof name, "state-%05u.json", ckpt->opts.rank + 1);
        code = weir_ckpt_put_text(ckpt->store, prefix, name, s->state, strlen(s->state),
                                  &refs[count++]);
    }
    if (!code && s->meta && !ckpt->opts.rank)
        code = weir_ckpt_put_text(ckpt->store, prefix, "checkpoint.json", s->meta, strlen(s->meta),
                                  &refs[count++]);
    if (!code && is_cancelled(s))
        code = weir_fail(ECANCELED, "saving '%s' was cancelled", prefix);
    return code ? code : put_part(s, refs, count, committed);
}

/* ---- what a commit brings with it ---- */

/* By whoever committed it. None of this is worth failing a checkpoint that is committed; the next
 * one tries again. */
static void tidy(struct weir_saving *s, struct weir_ledger *ledger)
{
    weir_ckpt *ckpt = s->ckpt;
    struct weir_ledger_state state;
    size_t count;
    weir_ckpt_put_indexes(ckpt->store, ckpt->run, &s->save);
    if (!ckpt->opts.keep_last || weir_ledger_read(ledger, &state))
        return;
    struct weir_keep keep = {ckpt->opts.keep_last, ckpt->opts.keep_every, &state, NULL};
    int code = weir_ledger_retire(ledger, ckpt->attempt, weir_keep_is_surplus, &keep, &count);
    weir_state_free(&state);
    if (!code)
        weir_ledger_collect(ckpt->store, ckpt->log, weir_keep_grace_ns(ckpt->opts.retired_grace_s),
                            NULL);
}

static void finish(struct weir_saving *s, int code, bool committed)
{
    weir_ckpt *ckpt = s->ckpt;
    pthread_mutex_lock(&ckpt->lock);
    s->code = code;
    if (code)
        snprintf(s->text, sizeof s->text, "%s", weir_fail_last());
    else
        s->level = committed ? WEIR_LEVEL_HOME : WEIR_LEVEL_NODE;
    pthread_cond_broadcast(&ckpt->changed);
    pthread_mutex_unlock(&ckpt->lock);
}

/* Leaves the queue. A failure that nobody has asked about yet is kept for the next save, also while
 * there is a handle: who has it may never ask. */
static void dequeue(weir_ckpt *ckpt, struct weir_saving *s)
{
    pthread_mutex_lock(&ckpt->lock);
    assert(ckpt->queue == s);
    ckpt->queue = s->next;
    ckpt->queued--;
    if (s->code && s->code != -ECANCELED && !s->asked) {
        ckpt->code = s->code;
        ckpt->failed = s->save.number;
        memcpy(ckpt->text, s->text, sizeof ckpt->text);
    }
    saving_unref(s);
    pthread_cond_broadcast(&ckpt->changed);
    pthread_mutex_unlock(&ckpt->lock);
}

static void *writer(void *arg)
{
    weir_ckpt *ckpt = arg;
    for (;;) {
        pthread_mutex_lock(&ckpt->lock);
        while (!ckpt->queue && !ckpt->closing)
            pthread_cond_wait(&ckpt->changed, &ckpt->lock);
        struct weir_saving *s = ckpt->queue;
        pthread_mutex_unlock(&ckpt->lock);
        if (!s)
            return NULL;
        bool committed = false;
        int code = write_part(s, &committed);
        finish(s, code, committed);
        if (committed)
            tidy(s, ckpt->ledger);
        dequeue(ckpt, s);
    }
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
        tidy(s, s->ledger);
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
    int code = ckpt_check(s->ckpt);
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
    if (ckpt_check(s->ckpt))
        return;
    pthread_mutex_lock(&s->ckpt->lock);
    s->cancelled = true;
    pthread_mutex_unlock(&s->ckpt->lock);
}

void weir_saving_close(weir_saving *s)
{
    if (!s || ckpt_check(s->ckpt))
        return;
    weir_ckpt *ckpt = s->ckpt;
    waiter_close(s);
    pthread_mutex_lock(&ckpt->lock);
    saving_unref(s);
    pthread_mutex_unlock(&ckpt->lock);
}

void weir_ckpt_stats_get(weir_ckpt *ckpt, weir_ckpt_stats *stats)
{
    *stats = (weir_ckpt_stats){0};
    if (ckpt_check(ckpt))
        return;
    pthread_mutex_lock(&ckpt->lock);
    *stats = ckpt->stats;
    pthread_mutex_unlock(&ckpt->lock);
}

uint64_t weir_ckpt_attempt(const weir_ckpt *ckpt)
{
    return ckpt->attempt;
}

/* ---- opening ---- */

static int options_read(weir_ckpt_options *out, const weir_ckpt_options *given)
{
    weir_ckpt_options_init(out);
    if (given) {
        if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
            return weir_fail(EINVAL, "weir_ckpt_options: call weir_ckpt_options_init() first");
        size_t size = given->struct_size < sizeof *out ? given->struct_size : sizeof *out;
        memcpy(out, given, size);
    }
    if (!out->ranks || out->rank >= out->ranks || out->ranks > WEIR_SET_PARTS_MAX)
        return weir_fail(EINVAL, "rank %u of %u ranks", out->rank, out->ranks);
    if (!out->queue_max || out->queue_max > QUEUE_MAX)
        return weir_fail(EINVAL, "a queue of %u saves: it is 1 to %d", out->queue_max, QUEUE_MAX);
    if (!out->token && out->ranks > 1)
        return weir_fail(EINVAL, "%u ranks need a token that they share", out->ranks);
    return 0;
}

static int join(weir_ckpt *ckpt)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    int code = weir_ledger_open(&ckpt->ledger, ckpt->store, ckpt->log);
    if (code)
        return code;
    if (ckpt->opts.token)
        memcpy(token, ckpt->opts.token, sizeof token);
    else if ((code = weir_sys->random(token, sizeof token)))
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    ckpt->opts.token = NULL; /* it is the caller's */
    return weir_ledger_join(ckpt->ledger, token, &ckpt->attempt);
}

int weir_ckpt_open(weir_ckpt **out, weir_store *store, const char *run,
                   const weir_ckpt_options *opts)
{
    weir_ckpt *ckpt = weir_alloc(sizeof *ckpt);
    if (!ckpt)
        return weir_fail_memory();
    ckpt->store = store;
    ckpt->generation = weir_fork_generation();
    int code = options_read(&ckpt->opts, opts);
    if (!code)
        code = weir_ckpt_log_name(ckpt->log, run);
    if (!code)
        code = weir_stage_open(&ckpt->stage, ckpt->opts.staging_bytes_max);
    if (!code) {
        strcpy(ckpt->run, run);
        code = join(ckpt);
    }
    pthread_mutex_init(&ckpt->lock, NULL);
    pthread_cond_init(&ckpt->changed, NULL);
    if (!code)
        code = weir_thread_start(&ckpt->writer, "weir-ckpt", writer, ckpt);
    if (code) {
        weir_ledger_close(ckpt->ledger);
        weir_stage_close(ckpt->stage);
        free(ckpt);
        return code;
    }
    *out = ckpt;
    return 0;
}

void weir_ckpt_close(weir_ckpt *ckpt)
{
    if (!ckpt || ckpt_check(ckpt))
        return;
    pthread_mutex_lock(&ckpt->lock);
    ckpt->closing = true;
    pthread_cond_broadcast(&ckpt->changed);
    pthread_mutex_unlock(&ckpt->lock);
    pthread_join(ckpt->writer, NULL);
    weir_ledger_close(ckpt->ledger);
    weir_stage_close(ckpt->stage);
    pthread_cond_destroy(&ckpt->changed);
    pthread_mutex_destroy(&ckpt->lock);
    free(ckpt);
}
