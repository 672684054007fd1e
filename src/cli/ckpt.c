/* ckpt.c - see ckpt.h. */
#include "cli/ckpt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format.h"
#include "util/err.h"

/* Digits that are a step; false if it is something else. */
static bool read_step(uint64_t *step, const char *text)
{
    uint64_t value = 0;
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    for (; *text; text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *step = value;
    return value != WEIR_STEP_NEWEST;
}

int ckpt_step(struct cli *cli, uint64_t *step, const char *text)
{
    if (!strcmp(text, "newest"))
        *step = WEIR_STEP_NEWEST;
    else if (!read_step(step, text))
        return cli_usage(cli, "'%s' is no step", text);
    return 0;
}

/* What is not there: the run, or the step; 0 if both are. */
struct lookup {
    uint64_t step;
    bool found;
};

static int is_it(void *arg, const weir_ckpt_info *info)
{
    struct lookup *l = arg;
    l->found |= l->step == WEIR_STEP_NEWEST || l->step == info->step;
    return 0;
}

static int say_missing(struct cli *cli, const char *run, uint64_t step)
{
    struct lookup l = {.step = step};
    int code = weir_ckpt_each(cli->store, run, 0, is_it, &l);
    if (code || l.found)
        return code;
    return step == WEIR_STEP_NEWEST
               ? weir_fail(ENOENT, "run '%s' has no checkpoint", run)
               : weir_fail(ENOENT, "run '%s' has no checkpoint of step %" PRIu64, run, step);
}

int ckpt_open(struct cli *cli, weir_restore **out, const char *run, const char *which)
{
    char why[WEIR_TEXT_MAX];
    uint64_t step = WEIR_STEP_NEWEST;
    bool named = which && strcmp(which, "newest") && !read_step(&step, which);
    int code = named ? weir_restore_open_named(out, cli->store, run, which)
                     : weir_restore_open(out, cli->store, run, step);
    if (code != -ENOENT)
        return code;
    snprintf(why, sizeof why, "%s", weir_error_text());
    return say_missing(cli, run, named ? WEIR_STEP_NEWEST : step) == -ENOENT
               ? -ENOENT
               : weir_fail_text(code, why);
}

const char *ckpt_names(char *out, size_t size, const weir_ckpt_info *info)
{
    size_t used = 0;
    *out = 0;
    for (uint32_t i = 0; i < info->name_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", info->names[i]);
    return out;
}

json_t *ckpt_json(const weir_ckpt_info *info)
{
    char when[FORMAT_TIME_BYTES];
    json_t *names = json_array();
    for (uint32_t i = 0; i < info->name_count; i++)
        json_array_append_new(names, cli_text_json(info->names[i]));
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:s, s:i, s:I, s:o, s:o, s:b}", "step", (json_int_t)info->step,
                  "attempt", (json_int_t)info->attempt, "save", (json_int_t)info->save, "time",
                  format_time_json(when, info->time_ns), "ranks", (int)info->ranks, "size_bytes",
                  (json_int_t)info->size_bytes, "names", names, "prefix",
                  cli_text_json(info->prefix), "live", !info->retired_ns);
    if (info->retired_ns)
        json_object_set_new(object, "retired",
                            json_string(format_time_json(when, info->retired_ns)));
    if (info->error)
        json_object_set_new(object, "error", cli_error_json(info->error, weir_error_text()));
    return object;
}

/* ---- several ---- */

int ckpt_rows_add(void *arg, const weir_ckpt_info *info)
{
    struct ckpt_rows *rows = arg;
    struct ckpt_row *more = realloc(rows->row, (rows->count + 1) * sizeof *more);
    if (!more)
        return weir_fail_memory();
    rows->row = more;
    more[rows->count] = (struct ckpt_row){*info, strdup(info->prefix), ckpt_json(info)};
    more[rows->count].info.prefix = more[rows->count].prefix;
    more[rows->count].info.names = NULL;
    return more[rows->count++].prefix ? 0 : weir_fail_memory();
}

void ckpt_rows_free(struct ckpt_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->row[i].prefix);
        json_decref(rows->row[i].json);
    }
    free(rows->row);
    *rows = (struct ckpt_rows){0};
}

static json_t *report_json(const struct ckpt_rows *rows, const weir_prune_result *r, bool dry_run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append(list, rows->row[i].json);
    return json_pack("{s:b, s:o, s:I, s:I, s:I, s:I, s:I}", "dry_run", dry_run, "checkpoints", list,
                     "retired", (json_int_t)r->retired, "retired_bytes",
                     (json_int_t)r->retired_bytes, "deleted", (json_int_t)r->deleted,
                     "deleted_bytes", (json_int_t)r->deleted_bytes, "waiting",
                     (json_int_t)r->waiting);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void ckpt_report(struct cli *cli, const struct ckpt_rows *rows, const weir_prune_result *r,
                 bool dry_run, uint64_t grace_s)
{
    char size[32], when[FORMAT_TIME_BYTES];
    if (cli->json)
        cli->doc = report_json(rows, r, dry_run);
    for (size_t i = 0; i < rows->count; i++) {
        const weir_ckpt_info *info = &rows->row[i].info;
        cli_say(cli, "%s step %" PRIu64 " of %s (%s)", dry_run ? "would retire" : "retired",
                info->step, format_time(when, info->time_ns),
                weir_format_size(size, sizeof size, info->size_bytes));
    }
    cli_say(cli, "%s %" PRIu64 " checkpoint%s (%s)", dry_run ? "would retire" : "retired",
            r->retired, plural(r->retired), weir_format_size(size, sizeof size, r->retired_bytes));
    if (dry_run)
        return;
    if (r->deleted)
        cli_say(cli, "deleted %" PRIu64 " (%s)", r->deleted,
                weir_format_size(size, sizeof size, r->deleted_bytes));
    if (r->waiting)
        cli_say(cli, "%" PRIu64 " stay%s until the grace of %s is over, or the last reader gone",
                r->waiting, r->waiting == 1 ? "s" : "", format_duration(when, grace_s));
}
