/* trace_text.c - the report for people; see trace_report.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chart.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/trace_report.h"

enum { COLUMNS = 98, BAR = 30, NAME_COLUMNS = 12 };

static const char *size_text(char out[32], uint64_t bytes)
{
    return weir_format_size(out, 32, bytes);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* Of a call: "5.9 µs". */
static const char *time_text(char out[CHART_VALUE_BYTES], uint64_t ns)
{
    return chart_value(out, CHART_SECONDS, seconds(ns));
}

static double per_s(double amount, double s)
{
    return s > 0 ? amount / s : 0;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "Name        text" */
static void field(FILE *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void field(FILE *out, const char *name, const char *fmt, ...)
{
    va_list args;
    fprintf(out, "%-*s", NAME_COLUMNS, name);
    va_start(args, fmt);
    vfprintf(out, fmt, args);
    va_end(args);
    fputc('\n', out);
}

/* A paragraph, indented and broken between words. */
static void paragraph(FILE *out, const char *lead, int indent, const char *text)
{
    char *clean = cli_printable(text);
    int column = fprintf(out, "%*s%s", indent - (int)strlen(lead), "", lead);
    for (const char *at = clean ? clean : ""; *at;) {
        int size = (int)strcspn(at, " ");
        if (column > indent && column + 1 + size > COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", size, at);
        at += size;
        at += strspn(at, " ");
    }
    fputc('\n', out);
    free(clean);
}

/* ---- sums ---- */

static void put_head(FILE *out, const struct trace_report *report)
{
    const struct weir_trace *t = report->trace;
    char span[FORMAT_TIME_BYTES], *source = cli_printable(report->source);
    fprintf(out, "%s\n", source ? source : "?");
    free(source);
    fprintf(out, "%s, %" PRIu64 " process%s, %" PRIu64 " thread%s besides, %" PRIu64 " calls",
            t->has_time ? format_span(span, weir_timeline_span_ns(&t->timeline))
                        : "no times in this log",
            t->tasks.total - t->tasks.threads, t->tasks.total - t->tasks.threads == 1 ? "" : "es",
            t->tasks.threads, t->tasks.threads == 1 ? "" : "s", t->calls);
    if (report->status >= 0)
        fprintf(out, "; it ended with %d", report->status);
    fputs("\n\n", out);
}

static void put_reads(FILE *out, const struct weir_trace *t, double run_s)
{
    char bytes[32], rate[32], typical[32], again[32];
    uint64_t reads = t->data.reads;
    if (!reads)
        return;
    field(out, "Reads",
          "%" PRIu64 " requests, %s (%s/s); half of the bytes in requests of %s or less", reads,
          size_text(bytes, t->data.read_bytes),
          size_text(rate, (uint64_t)per_s((double)t->data.read_bytes, run_s)),
          size_text(typical, weir_sizes_typical(&t->read_sizes)));
    field(out, "",
          "%.0f %% go on where the file began or the last one ended; %" PRIu64
          " more found the end",
          percent((double)(t->reads_first + t->reads_next), (double)reads), t->reads_empty);
    field(out, "Re-reads", "%s had been read before (%.0f %%)%s",
          size_text(again, (uint64_t)t->pages.again_bytes),
          percent(t->pages.again_bytes, t->pages.read_bytes),
          t->pages.halvings ? ", by a sample of all pages" : "");
}

static void put_writes(FILE *out, const struct weir_trace *t, double run_s)
{
    char bytes[32], rate[32], typical[32];
    if (!t->data.writes)
        return;
    field(out, "Writes",
          "%" PRIu64 " requests, %s (%s/s); half of the bytes in requests of %s or "
          "less; %" PRIu64 " syncs, %" PRIu64 " renames",
          t->data.writes, size_text(bytes, t->data.write_bytes),
          size_text(rate, (uint64_t)per_s((double)t->data.write_bytes, run_s)),
          size_text(typical, weir_sizes_typical(&t->write_sizes)), t->syncs, t->renames);
}

static uint64_t opens_peak(const struct weir_trace *t)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < weir_timeline_bins(&t->timeline); i++)
        most =
            t->timeline.row[WEIR_ROW_OPENS][i] > most ? t->timeline.row[WEIR_ROW_OPENS][i] : most;
    return t->timeline.bin_ns ? (uint64_t)((double)most / seconds(t->timeline.bin_ns)) : 0;
}

static void put_sums(FILE *out, const struct weir_trace *t)
{
    char size[32], each[32], direct[32], mapped[32], program[32], buffered[32];
    double run_s = seconds(weir_timeline_span_ns(&t->timeline));
    uint64_t moved = t->data.read_bytes + t->data.write_bytes;
    uint64_t direct_bytes = t->direct_read_bytes + t->direct_write_bytes;
    field(out, "Files", "%" PRIu64 " of data (%s), %" PRIu64 " of them read and smaller than 1 MiB",
          t->data.files, size_text(size, t->data.size_bytes), t->data.small_files);
    field(out, "Opens",
          "%" PRIu64 " (%.0f/s, at most %" PRIu64 "/s), %s read per open; %" PRIu64
          " stats by name, %" PRIu64 " listings, %" PRIu64 " not found",
          t->data.opens, per_s((double)t->data.opens, run_s), opens_peak(t),
          size_text(each, t->data.opens ? t->data.read_bytes / t->data.opens : 0), t->stats,
          t->lists, t->opens_failed);
    put_reads(out, t, run_s);
    put_writes(out, t, run_s);
    field(out, "Page cache", "%s through it, %s around it (O_DIRECT); %s mapped%s",
          size_text(buffered, moved - (direct_bytes < moved ? direct_bytes : moved)),
          size_text(direct, direct_bytes), size_text(mapped, t->data.mapped_bytes),
          t->data.mapped_bytes ? ", whose page faults do not show here" : "");
    field(out, "Program",
          "%" PRIu64 " opens of libraries, modules and the system's files (%s): not "
          "counted here",
          t->program.opens, size_text(program, t->program.read_bytes));
}

/* ---- waiting ---- */

static void put_bar(FILE *out, double value, double most)
{
    int columns = most > 0 ? (int)(value / most * BAR + 0.5) : 0;
    for (int i = 0; i < BAR; i++)
        fputc(i < columns ? '#' : ' ', out);
}

static void put_waiting(FILE *out, const struct weir_trace *t)
{
    static const char *const names[] = {"open, close", "stat, list", "read",
                                        "write",       "sync",       "map"};
    double most = 0, all = 0, run_s = seconds(weir_timeline_span_ns(&t->timeline));
    char p50[CHART_VALUE_BYTES], p99[CHART_VALUE_BYTES], floor[CHART_VALUE_BYTES];
    if (!t->has_took) {
        fputs("\nWaiting     not told: the log was made without -T\n", out);
        return;
    }
    for (int i = 0; i < WEIR_TRACE_KINDS; i++) {
        double s = seconds(weir_trace_net_ns(t, (enum weir_trace_kind)i));
        most = s > most ? s : most;
        all += s;
    }
    fprintf(out, "\nWaiting in calls, all threads together: %.2f s of a run of %.2f s", all, run_s);
    if (t->readers > 1)
        fprintf(out, " with %" PRIu64 " readers", t->readers);
    fprintf(out, "\n  (without the %s that watching a call takes by itself)\n",
            time_text(floor, weir_trace_floor_ns(t)));
    for (int i = 0; i < WEIR_TRACE_KINDS; i++) {
        const struct weir_hist *times = &t->times[i];
        double s = seconds(weir_trace_net_ns(t, (enum weir_trace_kind)i));
        if (!times->count)
            continue;
        fprintf(out, "  %-11s %8.3f s  ", names[i], s);
        put_bar(out, s, most);
        fprintf(out, "  %8" PRIu64 " calls, half within %s, 99 %% within %s\n", times->count,
                time_text(p50, weir_hist_quantile(times, 0.5)),
                time_text(p99, weir_hist_quantile(times, 0.99)));
    }
}

/* ---- requests, places, checkpoints ---- */

static void put_requests(FILE *out, const char *name, const struct weir_sizes *sizes)
{
    uint64_t most = 0;
    char from[32], bytes[32];
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++)
        most = sizes->count[i] > most ? sizes->count[i] : most;
    if (!most)
        return;
    fprintf(out, "\nRequests to %s\n", name);
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++) {
        if (!sizes->count[i])
            continue;
        fprintf(out, "  from %10s  ", size_text(from, weir_sizes_from(i)));
        put_bar(out, (double)sizes->count[i], (double)most);
        fprintf(out, "  %8" PRIu64 "  %10s\n", sizes->count[i], size_text(bytes, sizes->bytes[i]));
    }
}

static void put_place(FILE *out, const struct weir_trace_sum *sum, const char *where)
{
    char read[32], written[32], *path = cli_printable(where);
    fprintf(out, "  %10s  %10s  %8" PRIu64 "  %8" PRIu64 "  %7.2f s  %s\n",
            size_text(read, sum->read_bytes), size_text(written, sum->write_bytes), sum->files,
            sum->opens, seconds(sum->ns), path ? path : "?");
    free(path);
}

static void put_places(FILE *out, const struct weir_trace *t)
{
    const struct weir_trace_dir *top[TRACE_TOP];
    struct weir_trace_set sets[WEIR_TRACE_SETS_MAX];
    size_t count = trace_top_dirs(t, top), set_count = weir_trace_sets(t, sets);
    if (!count)
        return;
    fprintf(out, "\n  %10s  %10s  %8s  %8s  %9s\n", "read", "written", "files", "opens", "waiting");
    if (set_count)
        fputs("Datasets, with all below\n", out);
    for (size_t i = 0; i < set_count; i++)
        put_place(out, &sets[i].dir->all, sets[i].dir->path);
    fputs("Directories\n", out);
    for (size_t i = 0; i < count; i++)
        put_place(out, &top[i]->own, top[i]->path);
}

static void put_bursts(FILE *out, const struct weir_trace *t)
{
    enum { SHOWN = 8 };
    char size[32], took[FORMAT_TIME_BYTES], path[512];
    if (!t->burst_count)
        return;
    fprintf(out,
            "\nLarge writes, as of checkpoints: %" PRIu64 ", for which main threads were busy "
            "%.2f s\n",
            t->bursts_total, weir_trace_burst_s(t));
    for (size_t i = 0; i < t->burst_count && i < SHOWN; i++) {
        const struct weir_trace_burst *b = &t->bursts[i];
        char *name = cli_printable(weir_trace_file_path(b->final, path, sizeof path));
        fprintf(out, "  at %7.2f s  %10s in %8s  %s%s%s%s  %s\n",
                seconds(b->begin_ns - t->timeline.begin_ns), size_text(size, b->bytes),
                format_span(took, b->end_ns - b->begin_ns), b->is_synced ? "fsync" : "no fsync",
                b->is_renamed ? ", renamed" : "", b->is_in_place ? ", over itself" : "",
                b->is_thread ? ", by a thread" : "", name ? name : "?");
        free(name);
    }
    if (t->burst_count > SHOWN)
        fprintf(out, "  and %zu more\n", (size_t)t->bursts_total - SHOWN);
}

/* ---- advice ---- */

static void put_advice(FILE *out, const struct trace_report *report)
{
    fputs("\nAdvice\n", out);
    for (size_t i = 0; i < report->advices.count; i++) {
        const struct weir_advice *a = &report->advices.item[i];
        char lead[32], gain[WEIR_ADVICE_TEXT_MAX + 200];
        snprintf(lead, sizeof lead, "%2zu. ", i + 1);
        paragraph(out, lead, 6, a->what);
        paragraph(out, "", 6, a->why);
        if (a->now_s > 0) {
            snprintf(gain, sizeof gain, "Gain: %.2f s now, %.2f s then (%.0f %% less). Model: %s.",
                     a->now_s, a->then_s, percent(a->now_s - a->then_s, a->now_s), a->model);
            paragraph(out, "", 6, gain);
        } else if (a->model[0]) {
            snprintf(gain, sizeof gain, "Model: %s.", a->model);
            paragraph(out, "", 6, gain);
        }
        if (a->command) {
            char *command = cli_printable(a->command);
            fprintf(out, "        %s\n", command ? command : "?");
            free(command);
        }
    }
}

static void put_limits(FILE *out, const struct weir_trace *t)
{
    if (t->strange)
        fprintf(out, "\n%" PRIu64 " of %" PRIu64 " lines of the log were not understood.\n",
                t->strange, t->lines);
    if (t->files.beyond)
        fprintf(out, "\nMore than %d files: those seen later share one account.\n",
                WEIR_TRACE_FILES_MAX);
    if (t->tasks.lost)
        fprintf(out, "\nMore processes or descriptors than are followed: %" PRIu64 " were lost.\n",
                t->tasks.lost);
}

void trace_report_text(FILE *out, const struct trace_report *report)
{
    put_head(out, report);
    put_sums(out, report->trace);
    put_waiting(out, report->trace);
    put_requests(out, "read", &report->trace->read_sizes);
    put_requests(out, "write", &report->trace->write_sizes);
    put_places(out, report->trace);
    put_bursts(out, report->trace);
    put_advice(out, report);
    put_limits(out, report->trace);
}
