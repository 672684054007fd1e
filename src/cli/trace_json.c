/* trace_json.c - the report for scripts; see trace_report.h. */
#include "cli/cli.h"
#include "cli/trace_report.h"

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *seconds(uint64_t ns)
{
    return json_real((double)ns / 1e9);
}

static void put(json_t *doc, const char *name, json_t *value)
{
    json_object_set_new(doc, name, value);
}

static json_t *sizes_json(const struct weir_sizes *sizes)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++)
        if (sizes->count[i])
            json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "from_bytes",
                                                  number(weir_sizes_from(i)), "count",
                                                  number(sizes->count[i]), "bytes",
                                                  number(sizes->bytes[i])));
    return list;
}

static json_t *sum_json(const struct weir_trace_sum *sum)
{
    json_t *doc = json_object();
    put(doc, "files", number(sum->files));
    put(doc, "small_files", number(sum->small_files));
    put(doc, "size_bytes", number(sum->size_bytes));
    put(doc, "opens", number(sum->opens));
    put(doc, "reads", number(sum->reads));
    put(doc, "read_bytes", number(sum->read_bytes));
    put(doc, "writes", number(sum->writes));
    put(doc, "write_bytes", number(sum->write_bytes));
    put(doc, "mapped_bytes", number(sum->mapped_bytes));
    put(doc, "calls", number(sum->calls));
    put(doc, "waiting_s", seconds(sum->ns));
    return doc;
}

static json_t *waiting_json(const struct weir_trace *t)
{
    json_t *doc = json_object();
    for (int i = 0; i < WEIR_TRACE_KINDS; i++) {
        const struct weir_hist *times = &t->times[i];
        put(doc, weir_trace_kind_name((enum weir_trace_kind)i),
            json_pack("{s:o, s:o, s:o, s:o}", "calls", number(times->count), "seconds",
                      seconds(weir_trace_net_ns(t, (enum weir_trace_kind)i)), "p50_s",
                      seconds(weir_hist_quantile(times, 0.5)), "p99_s",
                      seconds(weir_hist_quantile(times, 0.99))));
    }
    return doc;
}

static json_t *reads_json(const struct weir_trace *t)
{
    json_t *cache = json_array();
    for (unsigned i = 20; i < WEIR_REUSE_BINS - 1; i++) {
        double hits = weir_pages_hits(&t->pages, (uint64_t)1 << i);
        if (t->pages.again_bytes <= 0)
            break;
        json_array_append_new(cache,
                              json_pack("{s:o, s:f}", "cache_bytes", number((uint64_t)1 << i),
                                        "hit_share", hits / t->pages.again_bytes));
        if (hits >= t->pages.again_bytes)
            break;
    }
    uint64_t in_order = t->reads_first + t->reads_next;
    return json_pack("{s:f, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "sequential_share",
                     t->data.reads ? (double)in_order / (double)t->data.reads : 0.0, "jumps",
                     number(t->reads_jump), "at_end", number(t->reads_empty), "again_bytes",
                     number((uint64_t)t->pages.again_bytes), "again_is_sampled",
                     t->pages.halvings > 0, "typical_bytes",
                     number(weir_sizes_typical(&t->read_sizes)), "readers", number(t->readers),
                     "cache", cache);
}

static json_t *bursts_json(const struct weir_trace *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->burst_count; i++) {
        const struct weir_trace_burst *b = &t->bursts[i];
        char path[4096];
        weir_trace_file_path(b->final, path, sizeof path);
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:b, s:b}", "path",
                      cli_text_json(path), "at_s", seconds(b->begin_ns - t->timeline.begin_ns),
                      "bytes", number(b->bytes), "seconds", seconds(b->end_ns - b->begin_ns),
                      "calls_s", seconds(b->call_ns), "sync_s", seconds(b->sync_ns), "synced",
                      b->is_synced, "renamed", b->is_renamed, "unsafe", b->is_unsafe, "in_place",
                      b->is_in_place, "direct", b->is_direct, "by_thread", b->is_thread));
    }
    return list;
}

static json_t *advice_json(const struct weir_advice *a)
{
    static const char *const weights[] = {"note", "do", "danger"};
    json_t *doc = json_pack("{s:s, s:s, s:o, s:o}", "kind", a->kind, "weight", weights[a->weight],
                            "what", cli_text_json(a->what), "why", cli_text_json(a->why));
    if (a->now_s > 0) {
        put(doc, "now_s", json_real(a->now_s));
        put(doc, "then_s", json_real(a->then_s));
    }
    if (a->model[0])
        put(doc, "model", cli_text_json(a->model));
    if (a->bytes)
        put(doc, "bytes", number(a->bytes));
    if (a->depth)
        put(doc, "depth", number(a->depth));
    if (a->command)
        put(doc, "command", cli_text_json(a->command));
    return doc;
}

static json_t *places_json(const struct weir_trace *t)
{
    const struct weir_trace_dir *top[TRACE_TOP];
    size_t count = trace_top_dirs(t, top);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *doc = sum_json(&top[i]->own);
        put(doc, "path", cli_text_json(top[i]->path));
        json_array_append_new(list, doc);
    }
    return list;
}

static json_t *sets_json(const struct weir_trace *t)
{
    struct weir_trace_set sets[WEIR_TRACE_SETS_MAX];
    size_t count = weir_trace_sets(t, sets);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *doc = sum_json(&sets[i].dir->all);
        put(doc, "path", cli_text_json(sets[i].dir->path));
        put(doc, "small", json_boolean(sets[i].is_small));
        json_array_append_new(list, doc);
    }
    return list;
}

static json_t *files_json(const struct weir_trace *t)
{
    const struct weir_trace_file *top[TRACE_TOP];
    size_t count = trace_top_files(t, top);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_file *f = top[i];
        char path[4096];
        weir_trace_file_path(f, path, sizeof path);
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path", cli_text_json(path),
                            "size_bytes", number(f->size_bytes), "opens", number(f->opens), "reads",
                            number(f->reads), "read_bytes", number(f->read_bytes), "writes",
                            number(f->writes), "write_bytes", number(f->write_bytes), "waiting_s",
                            seconds(f->ns)));
    }
    return list;
}

static json_t *timeline_json(const struct weir_trace *t)
{
    static const char *const names[] = {"read_bytes", "write_bytes", "opens"};
    json_t *doc = json_pack("{s:o}", "bin_s", seconds(t->timeline.bin_ns));
    for (int r = 0; r < WEIR_ROWS; r++) {
        json_t *row = json_array();
        for (unsigned i = 0; i < weir_timeline_bins(&t->timeline); i++)
            json_array_append_new(row, number(t->timeline.row[r][i]));
        put(doc, names[r], row);
    }
    return doc;
}

json_t *trace_report_json(const struct trace_report *report)
{
    const struct weir_trace *t = report->trace;
    json_t *doc = json_object(), *advice = json_array();
    for (size_t i = 0; i < report->advices.count; i++)
        json_array_append_new(advice, advice_json(&report->advices.item[i]));
    put(doc, "source", cli_text_json(report->source));
    put(doc, "status", report->status >= 0 ? json_integer(report->status) : json_null());
    put(doc, "seconds", seconds(weir_timeline_span_ns(&t->timeline)));
    put(doc, "processes", number(t->tasks.total - t->tasks.threads));
    put(doc, "threads", number(t->tasks.threads));
    put(doc, "lines", number(t->lines));
    put(doc, "lines_strange", number(t->strange));
    put(doc, "calls", number(t->calls));
    put(doc, "watching_s", seconds(weir_trace_floor_ns(t)));
    put(doc, "data", sum_json(&t->data));
    put(doc, "program", sum_json(&t->program));
    put(doc, "opens_failed", number(t->opens_failed));
    put(doc, "stats", number(t->stats));
    put(doc, "listings", number(t->lists));
    put(doc, "syncs", number(t->syncs));
    put(doc, "renames", number(t->renames));
    put(doc, "renames_unsynced", number(t->renames_unsynced));
    put(doc, "rings", number(t->rings));
    put(doc, "ring_waits", number(t->ring_waits));
    put(doc, "direct_read_bytes", number(t->direct_read_bytes));
    put(doc, "direct_write_bytes", number(t->direct_write_bytes));
    put(doc, "reading", reads_json(t));
    put(doc, "waiting", waiting_json(t));
    put(doc, "read_requests", sizes_json(&t->read_sizes));
    put(doc, "write_requests", sizes_json(&t->write_sizes));
    put(doc, "file_sizes", sizes_json(&t->file_sizes));
    put(doc, "datasets", sets_json(t));
    put(doc, "directories", places_json(t));
    put(doc, "files", files_json(t));
    put(doc, "bursts", bursts_json(t));
    put(doc, "bursts_busy_s", json_real(weir_trace_burst_s(t)));
    put(doc, "timeline", timeline_json(t));
    put(doc, "advice", advice);
    return doc;
}
