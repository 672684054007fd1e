/* cmd_ckpt_show.c - weir ckpt show: what is in a checkpoint. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "util/err.h"
#include "util/json.h"

static struct {
    bool list;
    const char *filter;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"long", 'l', WEIR_OPT_FLAG, AT(list), "no", NULL, "list the tensors, too", 0, 0},
    {"filter", 0, WEIR_OPT_TEXT, AT(filter), NULL, "GLOB",
     "only tensors whose names match, such as '*.layers.0.*'; lists them", 0, 0},
    {0},
};

enum {
    DTYPES_MAX = 32,         /* more than there are */
    OUT_BYTES_MAX = 1 << 20, /* of JSON held in memory */
};

/* What there is of a dtype. */
struct sum {
    const char *dtype; /* borrowed from the checkpoint */
    uint64_t tensors, elements, bytes;
};

struct shown {
    struct cli *cli;
    weir_restore *restore;
    const weir_restore_info *info;
    struct sum sums[DTYPES_MAX];
    size_t sum_count;
    struct sum all;
    char names[256];
    json_t *names_json;
};

static bool is_wanted(const weir_tensor_info *t)
{
    return !opts.filter || !fnmatch(opts.filter, t->name, 0);
}

static uint64_t elements_of(const weir_tensor_info *t)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < t->ndim; i++)
        elements *= t->shape[i]; /* as many bytes as there are: no overflow */
    return elements;
}

static void add(struct sum *sum, const weir_tensor_info *t)
{
    sum->tensors++;
    sum->elements += elements_of(t);
    sum->bytes += t->size_bytes;
}

static int add_up(struct shown *s)
{
    for (size_t i = 0; i < s->info->tensors; i++) {
        weir_tensor_info t;
        size_t k = 0;
        int code = weir_restore_tensor(s->restore, i, &t);
        if (code)
            return code;
        if (!is_wanted(&t))
            continue;
        while (k < s->sum_count && strcmp(s->sums[k].dtype, t.dtype))
            k++;
        if (k == s->sum_count && k < DTYPES_MAX)
            s->sums[s->sum_count++].dtype = t.dtype;
        if (k < DTYPES_MAX)
            add(&s->sums[k], &t);
        add(&s->all, &t);
    }
    return 0;
}

static int find_names(void *arg, const weir_ckpt_info *info)
{
    struct shown *s = arg;
    if (info->attempt != s->info->attempt || info->save != s->info->save ||
        info->step != s->info->step)
        return 0;
    ckpt_names(s->names, sizeof s->names, info);
    for (uint32_t i = 0; i < info->name_count; i++)
        json_array_append_new(s->names_json, cli_text_json(info->names[i]));
    return 0;
}

/* ---- for people ---- */

static const char *shape_text(char *out, size_t size, const weir_tensor_info *t)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < t->ndim && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    if (used < size)
        snprintf(out + used, size - used, "]");
    return out;
}

static void print_tensors(struct shown *s)
{
    char shape[256], size[32];
    weir_tensor_info t;
    weir_piece_info piece;
    printf("\n%-8s  %-20s  %9s  %-36s  %s\n", "dtype", "shape", "size", "file", "tensor");
    for (size_t i = 0; i < s->info->tensors; i++) {
        weir_restore_tensor(s->restore, i, &t);
        if (!is_wanted(&t))
            continue;
        const char *file = weir_restore_piece(s->restore, i, 0, &piece) ? "-" : piece.file;
        char pieces[64];
        snprintf(pieces, sizeof pieces, "%u pieces", t.pieces);
        char *name = cli_printable(t.name);
        printf("%-8s  %-20s  %9s  %-36s  %s\n", t.dtype, shape_text(shape, sizeof shape, &t),
               weir_format_size(size, sizeof size, t.size_bytes), t.pieces == 1 ? file : pieces,
               name ? name : "");
        free(name);
    }
}

static void print_meta(const char *meta)
{
    json_t *json = json_loads(meta, JSON_DECODE_ANY, NULL);
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
                      : cli_printable(meta);
    printf("\n%s\n", text ? text : "");
    free(text);
    json_decref(json);
}

static void print(struct shown *s)
{
    char when[FORMAT_TIME_BYTES], size[32];
    format_field("checkpoint", "%s", s->info->prefix);
    format_field("step", "%" PRIu64, s->info->step);
    format_field("committed", "%s", format_time(when, s->info->time_ns));
    format_field("attempt", "%" PRIu64 ", save %" PRIu64, s->info->attempt, s->info->save);
    format_field("ranks", "%u", s->info->ranks);
    if (*s->names)
        format_field("names", "%s", s->names);
    format_field("tensors", "%" PRIu64, s->all.tensors);
    format_field("parameters", "%" PRIu64, s->all.elements);
    format_field("size", "%s", weir_format_size(size, sizeof size, s->all.bytes));
    if (s->sum_count)
        printf("\n%-12s  %8s  %15s  %9s\n", "dtype", "tensors", "parameters", "size");
    for (size_t i = 0; i < s->sum_count; i++)
        printf("%-12s  %8" PRIu64 "  %15" PRIu64 "  %9s\n", s->sums[i].dtype, s->sums[i].tensors,
               s->sums[i].elements, weir_format_size(size, sizeof size, s->sums[i].bytes));
    if (s->info->meta)
        print_meta(s->info->meta);
    if (opts.list || opts.filter)
        print_tensors(s);
}

/* ---- as JSON, written while it is read: there may be millions of tensors ---- */

static void flush(struct weir_json_out *out, bool always)
{
    if (!always && out->size < OUT_BYTES_MAX)
        return;
    fwrite(out->text, 1, out->size, stdout);
    out->size = 0;
}

static void put_field(struct weir_json_out *out, const char *before, uint64_t value)
{
    weir_json_puts(out, before);
    weir_json_put_uint(out, value);
}

static void put_dims(struct weir_json_out *out, const char *before, const uint64_t *dims,
                     uint32_t ndim)
{
    weir_json_puts(out, before);
    weir_json_puts(out, "[");
    for (uint32_t i = 0; i < ndim; i++)
        put_field(out, i ? "," : "", dims[i]);
    weir_json_puts(out, "]");
}

static void put_sum(struct weir_json_out *out, const struct sum *sum)
{
    put_field(out, "\"tensors\":", sum->tensors);
    put_field(out, ",\"parameters\":", sum->elements);
    put_field(out, ",\"size_bytes\":", sum->bytes);
}

static void put_tensor(struct weir_json_out *out, weir_restore *restore, size_t number,
                       const weir_tensor_info *t)
{
    weir_piece_info piece;
    weir_json_puts(out, "{\"name\":");
    weir_json_put_string(out, t->name, strlen(t->name));
    weir_json_puts(out, ",\"dtype\":\"");
    weir_json_puts(out, t->dtype);
    put_dims(out, "\",\"shape\":", t->shape, t->ndim);
    put_field(out, ",\"size_bytes\":", t->size_bytes);
    weir_json_puts(out, ",\"pieces\":[");
    for (uint32_t i = 0; i < t->pieces && !weir_restore_piece(restore, number, i, &piece); i++) {
        weir_json_puts(out, i ? ",{\"file\":" : "{\"file\":");
        weir_json_put_string(out, piece.file, strlen(piece.file));
        put_field(out, ",\"begin\":", piece.begin);
        put_field(out, ",\"size_bytes\":", piece.size_bytes);
        put_dims(out, ",\"offset\":", piece.offset, t->ndim);
        put_dims(out, ",\"shape\":", piece.shape, t->ndim);
        weir_json_puts(out, "}");
    }
    weir_json_puts(out, "]}");
}

/* What was given as JSON is JSON, and else a text. */
static void put_meta(struct weir_json_out *out, const char *meta)
{
    struct weir_json json;
    int code = 1;
    weir_json_begin(&json, meta, strlen(meta));
    while (code == 1)
        code = weir_json_next(&json);
    weir_json_puts(out, ",\n \"meta\":");
    if (code == 0)
        weir_json_puts(out, meta);
    else {
        char *text = cli_printable(meta);
        weir_json_put_string(out, text ? text : "", text ? strlen(text) : 0);
        free(text);
    }
}

static void put_head(struct weir_json_out *out, const struct shown *s)
{
    char when[FORMAT_TIME_BYTES];
    json_t *head = json_pack(
        "{s:o, s:I, s:I, s:I, s:s, s:i, s:O}", "prefix", cli_text_json(s->info->prefix), "step",
        (json_int_t)s->info->step, "attempt", (json_int_t)s->info->attempt, "save",
        (json_int_t)s->info->save, "time", format_time_json(when, s->info->time_ns), "ranks",
        (int)s->info->ranks, "names", s->names_json);
    char *text = json_dumps(head, JSON_COMPACT);
    weir_json_put(out, text ? text : "{", text ? strlen(text) - 1 : 1); /* more follows */
    free(text);
    json_decref(head);
    weir_json_puts(out, ",\n \"all\":{");
    put_sum(out, &s->all);
    weir_json_puts(out, "},\n \"dtypes\":{");
    for (size_t i = 0; i < s->sum_count; i++) {
        weir_json_puts(out, i ? ",\"" : "\"");
        weir_json_puts(out, s->sums[i].dtype);
        weir_json_puts(out, "\":{");
        put_sum(out, &s->sums[i]);
        weir_json_puts(out, "}");
    }
    weir_json_puts(out, "}");
    if (s->info->meta)
        put_meta(out, s->info->meta);
}

static int stream(struct shown *s)
{
    struct weir_json_out out = {0};
    weir_tensor_info t;
    bool any = false;
    put_head(&out, s);
    weir_json_puts(&out, ",\n \"tensors\":[");
    for (size_t i = 0; !out.failed && i < s->info->tensors; i++) {
        weir_restore_tensor(s->restore, i, &t);
        if (!is_wanted(&t))
            continue;
        weir_json_puts(&out, any ? ",\n  " : "\n  ");
        put_tensor(&out, s->restore, i, &t);
        any = true;
        flush(&out, false);
    }
    weir_json_puts(&out, "]}\n");
    flush(&out, true);
    free(out.text);
    return out.failed ? weir_fail_memory() : 0;
}

static int run(struct cli *cli)
{
    struct shown s = {.cli = cli};
    const char *which = cli->operand_count > 1 ? cli->operands[1] : NULL;
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = ckpt_open(cli, &s.restore, cli->operands[0], which);
    if (code)
        return code;
    s.info = weir_restore_info_get(s.restore);
    s.names_json = json_array();
    code = weir_ckpt_each(cli->store, cli->operands[0], 0, find_names, &s);
    if (!code)
        code = add_up(&s);
    if (!code && cli->json)
        code = stream(&s);
    else if (!code)
        print(&s);
    json_decref(s.names_json);
    weir_restore_close(s.restore);
    return code;
}

const struct command cmd_ckpt_show = {
    .name = "ckpt show",
    .operands = "RUN [STEP|NAME]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Show what is in a checkpoint",
    .about =
        "Of the newest checkpoint of RUN, the newest of STEP, or the one with that NAME: when and "
        "by which attempt it was made, how many parameters of which dtype it has, and what the "
        "program that saved it said of it. With --long or --filter the tensors are listed, with "
        "the file that each is in; a tensor that several ranks saved has several pieces.",
    .example = "weir ckpt show llama/pretrain\n"
               "weir ckpt show llama/pretrain best --filter '*.layers.0.*'\n"
               "weir ckpt show llama/pretrain 120000 --json | jq '.meta'",
    .json = "prefix, step, attempt, save, time, ranks, names, all and dtypes (tensors, parameters, "
            "size_bytes), meta, tensors: for each that matches name, dtype, shape, size_bytes, "
            "pieces (file, begin, size_bytes, offset, shape)",
    .options = options,
    .fields = &opts,
    .run = run,
};
