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
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/saving.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    QUEUE_DEFAULT = 2,
    QUEUE_MAX = 64,
};
#define STAGING_BYTES_DEFAULT ((uint64_t)4 << 30)

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

int weir_ckpt_check(const weir_ckpt *ckpt)
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
    int code = weir_ckpt_check(ckpt);
    if (code)
        return code;
    pthread_mutex_lock(&ckpt->lock);
    code = wait_for_queue(ckpt, queued_max, timeout_ns);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

int weir_ckpt_room(weir_ckpt *ckpt, uint64_t timeout_ns)
{
    int code = weir_ckpt_check(ckpt);
    if (code)
        return code;
    pthread_mutex_lock(&ckpt->lock);
    code = wait_for_room(ckpt, timeout_ns);
    pthread_mutex_unlock(&ckpt->lock);
    return code;
}

int weir_ckpt_failure(weir_ckpt *ckpt)
{
    int code = weir_ckpt_check(ckpt);
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
    int code = weir_ckpt_check(ckpt);
    if (code)
        return code;
    code = save_options_read(&opts, given);
    int refused = next_number(ckpt, code ? 0 : opts.number, &number);
    if (!code)
        code = refused;
    if (!code && step == WEIR_STEP_NEWEST)
        code = weir_fail(EINVAL, "step %" PRIu64 " is no step", step);
    if (!code)
        code = weir_saving_new(&s, ckpt, tensors, count, &opts, reader);
    if (code)
        return code;
    snprintf(s->save.name, sizeof s->save.name, "%" PRIu64, step);
    s->save.attempt = ckpt->attempt;
    s->save.number = number;
    s->save.parts = ckpt->opts.ranks;
    code = enqueue(ckpt, s);
    if (code) {
        weir_saving_free(s);
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

void weir_ckpt_stats_get(weir_ckpt *ckpt, weir_ckpt_stats *stats)
{
    *stats = (weir_ckpt_stats){0};
    if (weir_ckpt_check(ckpt))
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
        code = weir_thread_start(&ckpt->writer, "weir-ckpt", weir_ckpt_writer, ckpt);
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
    if (!ckpt || weir_ckpt_check(ckpt))
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
