/* bench_show.c - see bench.h: for a terminal, and as JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/chart.h"
#include "cli/format.h"

enum { SPAN_WIDTH = 8 };

/* "85 µs", "1.2 ms": requests are shorter than what format_span() is for. */
static const char *span(char out[CHART_VALUE_BYTES], uint64_t ns)
{
    return chart_value(out, CHART_SECONDS, (double)ns / 1e9);
}

const char *bench_what(char out[64], const struct bench *bench, const struct bench_step *step)
{
    const struct weir_job *job = &step->job;
    const char *order = job->is_random ? "random" : "sequential";
    const char *way = bench->is_remote ? "" : job->is_direct ? ", direct" : ", buffered";
    snprintf(out, 64, "%s %s%s%s", order, job->is_write ? "write" : "read",
             job->is_fresh && !bench->is_remote ? ", new files" : "", way);
    return out;
}

/* Whether a cache had a part in it, as far as that can be known. */
const char *bench_cache(char out[32], const struct bench *bench, const struct bench_step *step)
{
    const char *text = step->job.is_direct ? "around" : step->job.is_write ? "synced" : "dropped";
    if (bench->is_memory)
        text = "memory";
    else if (bench->is_remote)
        text = "not known";
    if (!bench->is_memory && !step->job.is_direct && !step->job.is_write && !bench->is_remote &&
        step->result.cached > 0.01)
        snprintf(out, 32, "%.0f %% cached", 100 * step->result.cached);
    else
        snprintf(out, 32, "%s", text);
    return out;
}

const char *bench_rate_text(char out[32], double bytes_per_s)
{
    char size[24];
    snprintf(out, 32, "%s/s", weir_format_size(size, sizeof size, (uint64_t)bytes_per_s));
    return out;
}

const char *bench_cliff_text(char out[256], const struct bench *bench)
{
    char wrote[24], before[32], after[32];
    if (!bench->long_write) {
        snprintf(out, 256, "no long write was made");
        return out;
    }
    uint64_t bytes = bench->cliff.fell ? bench->cliff.at_bytes : bench->long_write->result.bytes;
    weir_format_size(wrote, sizeof wrote, bytes);
    bench_rate_text(before, bench->cliff.before_bytes_per_s);
    if (bench->cliff.fell)
        snprintf(out, 256, "the rate fell after %s, from %s to %s, and stayed there", wrote, before,
                 bench_rate_text(after, bench->cliff.after_bytes_per_s));
    else if (bench->cliff.is_known)
        snprintf(out, 256, "the rate did not fall within %s: %s throughout", wrote,
                 bench_rate_text(before, bench_rate(bench->long_write)));
    else
        snprintf(out, 256, "%s at %s were over too soon to tell whether the rate falls", wrote,
                 bench_rate_text(before, bench_rate(bench->long_write)));
    return out;
}

void bench_show_head(const struct cli *cli, const struct bench *bench)
{
    char size[24], *url = cli_printable(bench->url);
    weir_format_size(size, sizeof size, bench->data_bytes);
    cli_say(cli, "%s: %s, %s of data, %" PRIu32 " steps (%s)", url ? url : "?", bench->kind, size,
            bench->count, bench->engine);
    free(url);
    if (bench->is_memory)
        cli_say(cli, "This is memory: nothing of it was read from or written to a device.");
    else if (!bench->is_remote && !bench->has_direct)
        cli_say(cli,
                "Direct I/O is refused here: all goes through the page cache, which is dropped "
                "before reads.");
    cli_say(cli, "%-10s  %-36s  %8s  %5s  %7s  %11s  %9s  %8s  %8s  %s", "part", "what", "block",
            "depth", "threads", "rate", "IOPS", "p50", "p99", "cache");
}

void bench_show_step(const struct cli *cli, const struct bench *bench,
                     const struct bench_step *step)
{
    char what[64], block[24], rate[32], cache[32];
    char p50[CHART_VALUE_BYTES], p99[CHART_VALUE_BYTES];
    const char *part = bench_part_names[step->part];
    bench_what(what, bench, step);
    weir_format_size(block, sizeof block, step->job.block_bytes);
    if (!step->is_done) {
        cli_say(cli, "%-10s  %-36s  %8s  %5" PRIu32 "  %7" PRIu32 "  %s", part, what, block,
                step->job.depth, step->job.threads, step->why ? step->why : "not measured");
        return;
    }
    span(p50, step->result.latency_ns_p50);
    span(p99, step->result.latency_ns_p99);
    cli_say(cli, "%-10s  %-36s  %8s  %5" PRIu32 "  %7" PRIu32 "  %11s  %9.0f  %*s%s  %*s%s  %s",
            part, what, block, step->job.depth, step->job.threads,
            bench_rate_text(rate, bench_rate(step)), bench_iops(step),
            format_padding(p50, SPAN_WIDTH), "", p50, format_padding(p99, SPAN_WIDTH), "", p99,
            bench_cache(cache, bench, step));
}

static void show_large(const char *name, double rate, double block, double depth)
{
    char text[32], size[24];
    if (rate > 0)
        format_field(name, "%s, blocks of %s, depth %.0f", bench_rate_text(text, rate),
                     weir_format_size(size, sizeof size, (uint64_t)block), depth);
}

static void show_small(const char *name, double iops, double depth, double p50, double p99)
{
    char half[CHART_VALUE_BYTES], most[CHART_VALUE_BYTES];
    if (iops > 0)
        format_field(name, "%.0f a second of 4 KiB, depth %.0f: half within %s, 99 %% within %s",
                     iops, depth, chart_value(half, CHART_SECONDS, p50),
                     chart_value(most, CHART_SECONDS, p99));
}

static void show_shapes(const struct bench *bench)
{
    const struct weir_profile *p = &bench->profile;
    char text[32], cliff[256], half[CHART_VALUE_BYTES], most[CHART_VALUE_BYTES];
    if (p->checkpoint_bytes_per_s > 0)
        format_field("checkpoint", "%s durable, %.0f writers",
                     bench_rate_text(text, p->checkpoint_bytes_per_s), p->checkpoint_writers);
    if (bench->long_write)
        format_field("long write", "%s", bench_cliff_text(cliff, bench));
    if (p->shards_bytes_per_s > 0)
        format_field("shards", "%s, %.0f readers", bench_rate_text(text, p->shards_bytes_per_s),
                     p->shards_readers);
    if (p->lookup_iops > 0)
        format_field("lookups", "%.0f a second; one alone takes %s, 99 %% of them at most %s",
                     p->lookup_iops, chart_value(half, CHART_SECONDS, p->lookup_latency_s_p50),
                     chart_value(most, CHART_SECONDS, p->lookup_latency_s_p99));
}

void bench_show_end(const struct cli *cli, const struct bench *bench)
{
    const struct weir_profile *p = &bench->profile;
    char size[24];
    if (cli->json || cli->quiet)
        return;
    putchar('\n');
    show_large("read", p->read_bytes_per_s, p->read_block_bytes, p->read_depth);
    show_large("write", p->write_bytes_per_s, p->write_block_bytes, p->write_depth);
    show_small("random reads", p->random_read_iops, p->random_read_depth,
               p->random_read_latency_s_p50, p->random_read_latency_s_p99);
    show_small("random writes", p->random_write_iops, p->random_write_depth,
               p->random_write_latency_s_p50, p->random_write_latency_s_p99);
    show_shapes(bench);
    if (p->best_block_bytes > 0 && p->best_depth > 0)
        format_field("enough", "blocks of %s and a depth of %.0f reach 95 %% of the best",
                     weir_format_size(size, sizeof size, (uint64_t)p->best_block_bytes),
                     p->best_depth);
    format_field("written", "%s in all, which are gone again",
                 weir_format_size(size, sizeof size, bench->written_bytes));
    if (bench->is_cut)
        format_field("not all", "time was up: --limit gives more, --only chooses parts");
}

/* ---- JSON ---- */

static json_t *step_json(const struct bench *bench, const struct bench_step *step)
{
    const struct weir_job *job = &step->job;
    const struct weir_job_result *r = &step->result;
    char cache[32];
    json_t *doc =
        json_pack("{s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I}", "part", bench_part_names[step->part],
                  "op", job->is_write ? "write" : "read", "order",
                  job->is_random ? "random" : "sequential", "direct", job->is_direct, "fresh",
                  job->is_fresh, "block_bytes", (json_int_t)job->block_bytes, "depth",
                  (json_int_t)job->depth, "threads", (json_int_t)job->threads);
    json_t *more =
        !step->is_done
            ? json_pack("{s:o}", "error", cli_text_json(step->why ? step->why : "not measured"))
            : json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:f}", "bytes",
                        (json_int_t)r->bytes, "requests", (json_int_t)r->requests, "seconds",
                        (double)r->time_ns / 1e9, "bytes_per_s", bench_rate(step), "iops",
                        bench_iops(step), "latency_s_p50", (double)r->latency_ns_p50 / 1e9,
                        "latency_s_p99", (double)r->latency_ns_p99 / 1e9, "latency_s_max",
                        (double)r->latency_ns_max / 1e9, "cache", bench_cache(cache, bench, step),
                        "cached_share", r->cached);
    json_object_update(doc, more);
    json_decref(more);
    return doc;
}

static json_t *long_json(const struct bench *bench)
{
    if (!bench->long_write)
        return json_null();
    const struct weir_job_result *r = &bench->long_write->result;
    json_t *slots = json_array();
    for (uint32_t i = 0; i < r->slots; i++)
        json_array_append_new(slots, json_integer((json_int_t)r->slot_bytes[i]));
    return json_pack("{s:I, s:f, s:b, s:b, s:I, s:f, s:f, s:f, s:o}", "bytes", (json_int_t)r->bytes,
                     "seconds", (double)r->time_ns / 1e9, "known", bench->cliff.is_known, "fell",
                     bench->cliff.fell, "at_bytes", (json_int_t)bench->cliff.at_bytes,
                     "before_bytes_per_s", bench->cliff.before_bytes_per_s, "after_bytes_per_s",
                     bench->cliff.after_bytes_per_s, "slot_s", (double)r->slot_ns / 1e9,
                     "slot_bytes", slots);
}

static json_t *profile_json(const struct weir_profile *profile)
{
    struct weir_json_out out = {0};
    weir_profile_write(&out, profile);
    json_t *doc = out.failed ? NULL : json_loadb(out.text, out.size, 0, NULL);
    free(out.text);
    return doc ? doc : json_null();
}

json_t *bench_json(const struct bench *bench)
{
    json_t *steps = json_array();
    for (uint32_t i = 0; i < bench->count; i++)
        json_array_append_new(steps, step_json(bench, &bench->steps[i]));
    return json_pack("{s:o, s:s, s:s, s:b, s:b, s:I, s:I, s:f, s:b, s:o, s:o, s:o}", "url",
                     cli_text_json(bench->url), "kind", bench->kind, "engine", bench->engine,
                     "memory", bench->is_memory, "direct", bench->has_direct, "data_bytes",
                     (json_int_t)bench->data_bytes, "written_bytes",
                     (json_int_t)bench->written_bytes, "seconds", (double)bench->took_ns / 1e9,
                     "cut", bench->is_cut, "steps", steps, "long_write", long_json(bench),
                     "profile", profile_json(&bench->profile));
}
