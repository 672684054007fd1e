/* ckpt_write.c - the thread of a checkpointer that writes saves out. See saving.h. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/cover.h"
#include "ckpt/saving.h"
#include "util/err.h"
#include "util/sys.h"

enum { REFS_MAX = 4 /* file, manifest, state, meta */ };

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

void weir_ckpt_tidy(struct weir_saving *s, struct weir_ledger *ledger)
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
    weir_saving_unref(s);
    pthread_cond_broadcast(&ckpt->changed);
    pthread_mutex_unlock(&ckpt->lock);
}

void *weir_ckpt_writer(void *arg)
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
            weir_ckpt_tidy(s, ckpt->ledger);
        dequeue(ckpt, s);
    }
}
