/* cmd_ckpt_diff.c - weir ckpt diff: what changed from one checkpoint to another. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"

static struct {
    bool all;
} opts;

static const struct weir_opt options[] = {
    {"long", 'l', WEIR_OPT_FLAG, offsetof(typeof(opts), all), "no", NULL,
     "list the tensors that are the same, too", 0, 0},
    {0},
};

enum { CHANGES = WEIR_CHANGE_BYTES + 1, VALUE_COLUMNS = 40 };
#define META_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
static const char *const changes[CHANGES] = {"same", "added", "removed", "type", "bytes"};

struct shown {
    struct cli *cli;
    weir_restore *a, *b;
    uint64_t count[CHANGES];
    bool begun; /* something was printed */
};

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    progress_bytes(more);
    return stop_asked();
}

/* ---- tensors ---- */

static json_t *info_json(const weir_tensor_info *t)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < t->ndim; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    return json_pack("{s:s, s:o}", "dtype", t->dtype, "shape", shape);
}

static json_t *diff_json(const weir_tensor_diff *d)
{
    json_t *object =
        json_pack("{s:o, s:s}", "name", cli_text_json(d->name), "change", changes[d->change]);
    if (d->a.name)
        json_object_set_new(object, "a", info_json(&d->a));
    if (d->b.name)
        json_object_set_new(object, "b", info_json(&d->b));
    if (d->change != WEIR_CHANGE_BYTES)
        return object;
    json_object_set_new(object, "elements", json_integer((json_int_t)d->elements));
    json_object_set_new(object, "differing", json_integer((json_int_t)d->differing));
    if (d->is_number) {
        json_object_set_new(object, "not_finite", json_integer((json_int_t)d->not_finite));
        json_object_set_new(object, "max_abs", json_real(d->max_abs));
    }
    return object;
}

/* One after the other: there may be more than should be in memory. */
static void put_json(struct shown *s, const weir_tensor_diff *d)
{
    json_t *object = diff_json(d);
    printf(s->begun ? ",\n  " : "\n  ");
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
}

static void type_text(char *out, size_t size, const weir_tensor_info *t)
{
    size_t used = (size_t)snprintf(out, size, "%s[", t->dtype);
    for (uint32_t i = 0; i < t->ndim && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i ? "," : "", t->shape[i]);
    if (used < size)
        snprintf(out + used, size - used, "]");
}

static void percent(char *out, size_t size, double part)
{
    if (part < 0.0001)
        snprintf(out, size, "<0.01%%");
    else
        snprintf(out, size, "%.2f%%", 100 * part);
}

static void put_line(const struct shown *s, const weir_tensor_diff *d)
{
    char a[160] = "", b[160] = "", part[32] = "-", max[32] = "-";
    if (!s->begun)
        printf("%-8s  %9s  %10s  %s\n", "change", "differing", "max abs", "tensor");
    if (d->a.name)
        type_text(a, sizeof a, &d->a);
    if (d->b.name)
        type_text(b, sizeof b, &d->b);
    if (d->change == WEIR_CHANGE_BYTES)
        percent(part, sizeof part, (double)d->differing / (double)d->elements);
    if (d->change == WEIR_CHANGE_BYTES && d->is_number)
        snprintf(max, sizeof max, "%.3g", d->max_abs);
    char *name = cli_printable(d->name);
    printf("%-8s  %9s  %10s  %s  %s%s%s", changes[d->change], part, max, name ? name : "",
           *a ? a : b, d->change == WEIR_CHANGE_TYPE ? " -> " : "",
           d->change == WEIR_CHANGE_TYPE ? b : "");
    if (d->not_finite)
        printf("  %" PRIu64 " not finite", d->not_finite);
    printf("\n");
    free(name);
}

static int on_diff(void *arg, const weir_tensor_diff *d)
{
    struct shown *s = arg;
    s->count[d->change]++;
    if (d->change == WEIR_CHANGE_NONE && !opts.all)
        return 0;
    if (s->cli->json) {
        put_json(s, d);
    } else if (!s->cli->quiet) {
        progress_pause();
        put_line(s, d);
        progress_resume();
    }
    s->begun = true;
    return stop_asked();
}

/* ---- what the programs said of them ---- */

static json_t *load_meta(weir_restore *restore)
{
    const char *meta = weir_restore_info_get(restore)->meta;
    json_t *json = meta ? json_loads(meta, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_object(json))
        return json;
    json_t *object = json_object();
    if (json || meta)
        json_object_set_new(object, "", json ? json : cli_text_json(meta));
    return object;
}

/* {"key": [of a, of b]} of what is not the same; null: it is not there. */
static json_t *meta_diff(struct shown *s)
{
    json_t *a = load_meta(s->a), *b = load_meta(s->b), *diff = json_object(), *value;
    const char *key;
    json_object_foreach(a, key, value)
    {
        json_t *other = json_object_get(b, key);
        if (!other || !json_equal(value, other))
            json_object_set_new(
                diff, key, json_pack("[O, o]", value, other ? json_incref(other) : json_null()));
    }
    json_object_foreach(b, key, value)
    {
        if (!json_object_get(a, key))
            json_object_set_new(diff, key, json_pack("[n, O]", value));
    }
    json_decref(a);
    json_decref(b);
    return diff;
}

static void print_meta(json_t *diff)
{
    const char *key;
    json_t *pair;
    json_object_foreach(diff, key, pair)
    {
        char *a = json_dumps(json_array_get(pair, 0), META_FLAGS);
        char *b = json_dumps(json_array_get(pair, 1), META_FLAGS);
        char *name = cli_printable(key);
        printf("meta      %s: %.*s -> %.*s\n", name ? name : "", VALUE_COLUMNS, a ? a : "",
               VALUE_COLUMNS, b ? b : "");
        free(a);
        free(b);
        free(name);
    }
}

/* ---- all of it ---- */

static bool is_unchanged(const struct shown *s)
{
    return !s->count[WEIR_CHANGE_ADDED] && !s->count[WEIR_CHANGE_REMOVED] &&
           !s->count[WEIR_CHANGE_TYPE] && !s->count[WEIR_CHANGE_BYTES];
}

static void begin_json(const char *a, const char *b)
{
    json_t *head = json_pack("{s:o, s:o}", "a", cli_text_json(a), "b", cli_text_json(b));
    char *text = json_dumps(head, JSON_COMPACT);
    printf("%.*s,\n \"tensors\":[", text ? (int)strlen(text) - 1 : 1, text ? text : "{");
    free(text);
    json_decref(head);
}

static void finish_json(struct shown *s, json_t *meta, int code)
{
    json_t *rest = json_object();
    for (int i = 0; i < CHANGES; i++)
        json_object_set_new(rest, changes[i], json_integer((json_int_t)s->count[i]));
    json_object_set(rest, "meta", meta);
    if (code)
        json_object_set_new(rest, "error", cli_error_json(code, weir_error_text()));
    char *text = json_dumps(rest, META_FLAGS);
    printf("],\n %s\n", text ? text + 1 : "}");
    free(text);
    json_decref(rest);
}

static int compare(struct shown *s)
{
    const weir_restore_info *a = weir_restore_info_get(s->a), *b = weir_restore_info_get(s->b);
    stop_politely();
    if (s->cli->json)
        begin_json(a->prefix, b->prefix);
    progress_start(s->cli, "comparing", a->size_bytes + b->size_bytes, 1, false);
    int code = weir_restore_diff(s->a, s->b, on_diff, on_progress, s);
    progress_end();
    if (code == -ECANCELED)
        code = stop_fail();
    json_t *meta = meta_diff(s);
    if (s->cli->json)
        finish_json(s, meta, code);
    else if (!code && !s->cli->quiet)
        print_meta(meta);
    json_decref(meta);
    if (code) {
        s->cli->reported = s->cli->json;
        return code;
    }
    cli_say(s->cli,
            "%" PRIu64 " differ, %" PRIu64 " the same, %" PRIu64 " added, %" PRIu64
            " removed, %" PRIu64 " of another type",
            s->count[WEIR_CHANGE_BYTES], s->count[WEIR_CHANGE_NONE], s->count[WEIR_CHANGE_ADDED],
            s->count[WEIR_CHANGE_REMOVED], s->count[WEIR_CHANGE_TYPE]);
    if (is_unchanged(s))
        cli_note(s->cli,
                 "warning: not one byte of a tensor is different: was what was trained saved?");
    return 0;
}

/* "RUN:STEP", "RUN:NAME", "RUN:" or "RUN". */
static int open_one(struct cli *cli, weir_restore **out, const char *text)
{
    char *run = strdup(text);
    if (!run)
        return weir_fail_memory();
    char *colon = strrchr(run, ':');
    if (colon)
        *colon = 0;
    int code = ckpt_open(cli, out, run, colon && colon[1] ? colon + 1 : NULL);
    free(run);
    return code;
}

static int run(struct cli *cli)
{
    struct shown s = {.cli = cli};
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = open_one(cli, &s.a, cli->operands[0]);
    if (!code)
        code = open_one(cli, &s.b, cli->operands[1]);
    if (!code)
        code = compare(&s);
    weir_restore_close(s.a);
    weir_restore_close(s.b);
    return code;
}

const struct command cmd_ckpt_diff = {
    .name = "ckpt diff",
    .operands = "RUN[:STEP] RUN[:STEP]",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Compare two checkpoints, tensor by tensor",
    .about =
        "A and B are checkpoints of one run or of two: RUN:STEP, RUN:NAME, or RUN for its newest. "
        "Tensors that both have with the same dtype and shape are read and compared, also if they "
        "were saved by other numbers of ranks: how many of the elements differ, and the largest "
        "difference; elements that are infinite or not a number in one of them are counted apart. "
        "Then come the fields that differ of what the programs said of them. If nothing changed at "
        "all there is a warning: a program that saves what it does not train looks like that.",
    .example = "weir ckpt diff llama/pretrain:110000 llama/pretrain:120000\n"
               "weir ckpt diff llama/pretrain:best llama/tuned",
    .json = "a, b (their prefixes), tensors: for each that changed name, change (added, removed, "
            "type, bytes; with --long same), a, b (dtype, shape), elements, differing, not_finite, "
            "max_abs; how many are same, added, removed, type, bytes; meta: for each field that "
            "differs both values",
    .options = options,
    .fields = &opts,
    .run = run,
};
