/* cmd_trace.c - weir trace: what a command does with files, and what to do about it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "cli/trace_report.h"
#include "cli/trace_run.h"
#include "util/err.h"
#include "util/ram.h"

static struct {
    const char *log, *save, *output, *html, *svg;
    uint64_t rate, batch, memory;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"log", 0, WEIR_OPT_TEXT, AT(log), NULL, "FILE",
     "read a log of strace instead of running a command; - is standard input", 0, 0},
    {"save", 0, WEIR_OPT_TEXT, AT(save), NULL, "FILE", "keep the log, for --log; FILE is replaced",
     0, 0},
    {"output", 'o', WEIR_OPT_TEXT, AT(output), NULL, "FILE",
     "where the report goes (default: a command's to standard error, a log's to standard output; "
     "--json and a command need it); FILE is replaced",
     0, 0},
    {"html", 0, WEIR_OPT_TEXT, AT(html), NULL, "FILE", "also write it as a page; FILE is replaced",
     0, 0},
    {"svg", 0, WEIR_OPT_TEXT, AT(svg), NULL, "FILE", "also draw it; FILE is replaced", 0, 0},
    {"rate", 0, WEIR_OPT_SIZE, AT(rate), NULL, "SIZE",
     "bytes/s that large reads get, as weir bench measures (default: as the trace shows)", 1, 0},
    {"batch", 'b', WEIR_OPT_NUMBER, AT(batch), "64", "N", "samples in a batch", 1, 1 << 24},
    {"memory", 0, WEIR_OPT_SIZE, AT(memory), NULL, "SIZE",
     "of the machine that trains (default: what there is here)", 1, 0},
    {0},
};

struct tracing {
    struct weir_trace *trace;
    struct target save;
};

/* ---- the log ---- */

static int take(void *arg, const void *data, size_t size)
{
    struct tracing *t = arg;
    int code = opts.save ? target_write(&t->save, data, size) : 0;
    return code ? code : weir_trace_feed(t->trace, data, size);
}

static uint32_t command_pid(void *arg)
{
    return ((struct tracing *)arg)->trace->root_pid;
}

static int read_log(struct tracing *t)
{
    static char buffer[1 << 16];
    bool is_input = !strcmp(opts.log, "-");
    int fd = is_input ? STDIN_FILENO : open(opts.log, O_RDONLY | O_CLOEXEC);
    int code = 0;
    ssize_t size = 0;
    if (fd < 0)
        return weir_fail(errno, "cannot open '%s': %s", opts.log, weir_errno_text(errno));
    while (!code && !stop_asked()) {
        size = read(fd, buffer, sizeof buffer);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            break;
        code = take(t, buffer, (size_t)size);
    }
    if (size < 0)
        code = weir_fail(errno, "cannot read '%s': %s", opts.log, weir_errno_text(errno));
    if (!is_input)
        close(fd);
    return stop_asked() ? stop_fail() : code;
}

/* Whatever is not understood is left out; if that is all, it is another kind of file. */
static int check_log(const struct weir_trace *trace)
{
    if (trace->calls)
        return 0;
    return weir_fail(EINVAL,
                     "'%s' is no log of strace: there is no system call in its %" PRIu64
                     " line%s; one is made by strace -f -ttt -T -y -s 0 -o FILE COMMAND",
                     opts.log, trace->lines, trace->lines == 1 ? "" : "s");
}

static int run_command(struct tracing *t, struct cli *cli, int *status)
{
    struct trace_run run = {cli->operands, take, command_pid, t};
    int code = trace_run(&run, status);
    if (!code && !t->trace->lines)
        return weir_fail(EIO,
                         "strace could not watch '%s' (it ended with %d; what it said is "
                         "above): a program of another user cannot be traced, nor one that "
                         "is not executable",
                         cli->operands[0], *status);
    return code;
}

/* ---- the report ---- */

typedef void report_fn(FILE *out, const struct trace_report *report);

static void put_json(FILE *out, const struct trace_report *report)
{
    json_t *doc = trace_report_json(report);
    json_dumpf(doc, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(doc);
}

struct drawing {
    report_fn *put;
    const struct trace_report *report;
};

static void draw(FILE *out, const void *arg)
{
    const struct drawing *drawing = arg;
    drawing->put(out, drawing->report);
}

static int write_file(const char *path, report_fn *put, const struct trace_report *report)
{
    const struct drawing drawing = {put, report};
    return target_draw_file(path, draw, &drawing);
}

static int tell(struct cli *cli, const struct trace_report *report)
{
    int code = 0;
    if (opts.output)
        code = write_file(opts.output, cli->json ? put_json : trace_report_text, report);
    else if (cli->json)
        cli->doc = trace_report_json(report);
    else if (!cli->quiet)
        trace_report_text(opts.log ? stdout : stderr, report);
    if (!code && opts.html)
        code = write_file(opts.html, trace_report_html, report);
    if (!code && opts.svg)
        code = write_file(opts.svg, trace_report_svg, report);
    return code;
}

/* "python train.py --epochs 3"; the caller frees it. */
static char *command_line(const struct cli *cli)
{
    size_t size = 1, used = 0;
    for (int i = 0; i < cli->operand_count; i++)
        size += strlen(cli->operands[i]) + 1;
    char *out = calloc(1, size);
    for (int i = 0; out && i < cli->operand_count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", cli->operands[i]);
    return out;
}

static uint64_t memory_bytes(void)
{
    return opts.memory ? opts.memory : weir_ram_bytes();
}

/* ---- running ---- */

static int watch(struct cli *cli, struct tracing *t, struct trace_report *report)
{
    int code = opts.save ? target_open(&t->save, opts.save, true) : 0;
    if (code)
        return code;
    code = opts.log ? read_log(t) : run_command(t, cli, &report->status);
    if (!code)
        code = weir_trace_end(t->trace);
    if (!code && opts.log)
        code = check_log(t->trace);
    if (!code && opts.save)
        code = target_commit(&t->save);
    if (opts.save)
        target_close(&t->save);
    return code;
}

static int run(struct cli *cli)
{
    struct tracing t = {0};
    static struct trace_report report; /* too large for a stack */
    char cwd[4096];
    if (!opts.log == !cli->operand_count)
        return cli_usage(cli, opts.log ? "--log and a command exclude each other"
                                       : "a command is missing: weir trace -- python train.py");
    if (cli->json && !opts.log && !opts.output)
        return cli_usage(cli, "--json and a command need -o FILE for the report: standard output "
                              "is the command's");
    if (opts.log)
        stop_politely();
    char *source = opts.log ? strdup(opts.log) : command_line(cli);
    int code = source ? weir_trace_make(&t.trace, opts.log || !getcwd(cwd, sizeof cwd) ? NULL : cwd)
                      : weir_fail_memory();
    report = (struct trace_report){.source = source, .trace = t.trace, .status = -1};
    report.how = (struct weir_advice_how){memory_bytes(), opts.rate, opts.batch};
    if (!code)
        code = watch(cli, &t, &report);
    if (!code) {
        weir_advise(&report.advices, t.trace, &report.how);
        code = tell(cli, &report);
        weir_advices_free(&report.advices);
    }
    if (report.status > 0)
        cli->status = report.status;
    weir_trace_free(t.trace);
    free(source);
    return code;
}

const struct command cmd_trace = {
    .name = "trace",
    .operands = "[-- COMMAND [ARGUMENT]...]",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Watch what a command does with files, and advise",
    .about =
        "Runs COMMAND under strace, with its children and threads, and reports the files it used: "
        "how many and how large, opened how often, read in which requests and order, what was read "
        "again, what was waited for, what was written as a checkpoint is. Then it advises: which "
        "files to pack (with the command), shards of which size, how much cache, direct or "
        "buffered, how much to prefetch, which saves to make in the background, and where an fsync "
        "is missing; each with its reason, and its gain with the model behind it.\n\n"
        "COMMAND keeps standard input and output, gets the signals that are sent to weir, and its "
        "exit code is weir's. Libraries, modules and the system's files are left out of the "
        "figures. Only calls that have to do with files are stopped, for 20 to 120 microseconds "
        "each; what watching adds to a call is measured and taken off the times. What page faults "
        "of mapped files read, and requests in an io_uring, are no system calls and do not "
        "show; the report says when there were any.\n\n"
        "With --log it reads what 'strace -f -ttt -T -y -o FILE' wrote elsewhere, also without -f, "
        "-T, -y or times, as far as those tell.",
    .example = "weir trace --html report.html -- python train.py\n"
               "weir trace --log strace.log --memory 512G\n"
               "weir --json trace -o report.json -- torchrun --nproc-per-node 4 train.py",
    .json =
        "source, status, seconds, processes, threads, lines, lines_strange, calls, watching_s, "
        "data and program (sums over files), opens_failed, stats, listings, syncs, renames, "
        "renames_unsynced, rings, ring_waits, direct_read_bytes, direct_write_bytes, reading "
        "(order, re-reads, cache), waiting (by kind), read_requests, write_requests, "
        "file_sizes, datasets, directories, files, bursts (written as checkpoints are), "
        "bursts_busy_s, timeline, and advice: a list of kind, weight (note, do or danger), "
        "what, why and, where they apply, now_s, then_s, model, bytes, depth, command; "
        "docs/trace.md tells what each is. With a command -o FILE is needed: standard output is "
        "the command's",
    .options = options,
    .fields = &opts,
    .run = run,
};
