/* advice_write.c - what to do about writing: checkpoints that are waited for, or may be lost; see
 * advice.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "trace/advice.h"
#include "util/opt.h"
#include "util/sys.h"

/* What is copied into a snapshot in a second: below what docs/bench-ckpt.md measures. */
static const double snapshot_rate = 4e9;

struct writes {
    uint64_t bytes, files, unsafe, in_place, waited;
    double wait_s, run_s;
    const struct weir_trace_burst *unsafe_one, *in_place_one;
};

static struct writes look(const struct weir_trace *trace)
{
    struct writes w = {.run_s = (double)weir_timeline_span_ns(&trace->timeline) / 1e9};
    w.wait_s = weir_trace_burst_s(trace);
    for (size_t i = 0; i < trace->burst_count; i++) {
        const struct weir_trace_burst *burst = &trace->bursts[i];
        w.files++;
        w.bytes += burst->is_thread ? 0 : burst->bytes;
        w.waited += !burst->is_thread;
        w.unsafe += burst->is_unsafe;
        w.in_place += burst->is_in_place;
        if (burst->is_unsafe)
            w.unsafe_one = burst;
        if (burst->is_in_place)
            w.in_place_one = burst;
    }
    return w;
}

static void advise_unsafe(struct weir_advices *out, const struct weir_trace *trace,
                          const struct writes *w)
{
    char path[256];
    uint64_t small = trace->renames_unsynced > w->unsafe ? trace->renames_unsynced - w->unsafe : 0;
    struct weir_advice *advice;
    if (w->unsafe && (advice = weir_advice_add(out, "fsync-missing", WEIR_ADVICE_DANGER))) {
        snprintf(advice->what, sizeof advice->what,
                 "fsync before rename: %" PRIu64 " of %" PRIu64 " large files were renamed without "
                 "(the last: %s)",
                 w->unsafe, w->files,
                 weir_trace_file_path(w->unsafe_one->final, path, sizeof path));
        snprintf(advice->why, sizeof advice->why,
                 "after a crash or a power cut the new name may stand for an empty or half-written "
                 "file, and the one before it is gone: f.flush(); os.fsync(f.fileno()) before "
                 "os.replace(), and fsync the directory after it");
        advice->command = weir_strdup("f.flush(); os.fsync(f.fileno())  # then os.replace(tmp, "
                                      "path)");
    } else if (small && (advice = weir_advice_add(out, "fsync-missing", WEIR_ADVICE_NOTE))) {
        snprintf(advice->what, sizeof advice->what,
                 "%" PRIu64 " small file%s renamed without an fsync", small,
                 small == 1 ? " was" : "s were");
        snprintf(advice->why, sizeof advice->why,
                 "after a power cut the new name may stand for an empty file");
    }
}

static void advise_in_place(struct weir_advices *out, const struct writes *w)
{
    char path[256];
    struct weir_advice *advice =
        w->in_place ? weir_advice_add(out, "in-place", WEIR_ADVICE_DANGER) : NULL;
    if (!advice)
        return;
    snprintf(advice->what, sizeof advice->what,
             "write to a new name, fsync, then rename: %s was written over itself",
             weir_trace_file_path(w->in_place_one->final, path, sizeof path));
    snprintf(advice->why, sizeof advice->why,
             "%" PRIu64 " large file%s truncated and written anew: a crash in between leaves "
             "neither the old one nor the new",
             w->in_place, w->in_place == 1 ? " was" : "s were");
}

static void advise_waiting(struct weir_advices *out, const struct writes *w)
{
    const double worth = 0.02;
    char size[32];
    if (!w->waited || w->wait_s < worth * w->run_s || w->wait_s < 0.05)
        return;
    struct weir_advice *advice = weir_advice_add(out, "checkpoint", WEIR_ADVICE_DO);
    if (!advice)
        return;
    double copy_s = (double)w->bytes / snapshot_rate;
    advice->now_s = w->wait_s;
    advice->then_s = copy_s < w->wait_s ? copy_s : w->wait_s;
    snprintf(advice->what, sizeof advice->what,
             "save in the background with weir.Checkpointer: the loop waited %.2f s of %.2f s for "
             "%" PRIu64 " large file%s",
             w->wait_s, w->run_s, w->waited, w->waited == 1 ? "" : "s");
    snprintf(advice->why, sizeof advice->why,
             "%s were written by a main thread, from opening to renaming or closing; only the copy "
             "of the state has to be waited for, and Weir also syncs and checks what it writes",
             weir_format_size(size, sizeof size, w->bytes));
    snprintf(advice->model, sizeof advice->model,
             "then: a copy in memory at %.0f GB/s; holds while a save ends before the next begins",
             snapshot_rate / 1e9);
    advice->command = weir_strdup("with weir.Checkpointer(STORE, RUN) as ck: ck.save(step, state)");
}

void weir_advise_writing(struct weir_advices *out, struct weir_trace *trace,
                         const struct weir_advice_how *how)
{
    (void)how;
    struct writes w = look(trace);
    advise_unsafe(out, trace, &w);
    advise_in_place(out, &w);
    advise_waiting(out, &w);
}
