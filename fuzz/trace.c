/* Logs of strace: any bytes are taken, in pieces of any size, and what is told of them adds up. */
#include "target.h"
#include "trace/advice.h"

static void check(const struct weir_trace *trace)
{
    uint64_t reads = 0;
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++)
        reads += trace->read_sizes.count[i];
    PROMISE(trace->reads_first + trace->reads_next + trace->reads_jump == reads);
    PROMISE(trace->strange <= trace->lines && trace->calls <= trace->lines);
    PROMISE(trace->pages.again_bytes <= trace->pages.read_bytes);
    PROMISE(trace->tasks.count == 0 && trace->tasks.fds == 0);
    PROMISE(weir_timeline_bins(&trace->timeline) <= WEIR_TIMELINE_BINS);
    for (size_t i = 0; i < trace->burst_count; i++)
        PROMISE(trace->bursts[i].bytes >= WEIR_TRACE_BURST_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_advices advices;
    struct weir_advice_how how = {.memory_bytes = 1 << 30, .batch = 64};
    struct weir_trace *trace;
    PROMISE(!weir_trace_make(&trace, size & 1 ? "/cwd" : NULL));
    size_t piece = size ? data[0] + 1u : 1;
    for (size_t at = 0; at < size; at += piece) {
        size_t more = size - at < piece ? size - at : piece;
        uint8_t *copy = exact_copy(data + at, more);
        PROMISE(!weir_trace_feed(trace, copy, more));
        free(copy);
    }
    PROMISE(!weir_trace_end(trace));
    check(trace);
    weir_advise(&advices, trace, &how);
    PROMISE(advices.count > 0);
    for (size_t i = 0; i < advices.count; i++)
        PROMISE(advices.item[i].what[0] && advices.item[i].then_s <= advices.item[i].now_s);
    weir_advices_free(&advices);
    weir_trace_free(trace);
    return 0;
}
