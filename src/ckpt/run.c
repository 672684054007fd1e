/* run.c - the runs of a store, and the checkpoints of a run as its log has them. */
#include "ckpt/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "store/view.h"
#include "util/err.h"
#include "util/sys.h"

#define RUNS "ckpt/"

/* ---- runs ---- */

struct runs {
    int (*fn)(void *arg, const char *run);
    void *arg;
};

static int on_ledger(void *arg, const char *name)
{
    struct runs *runs = arg;
    size_t size = strlen(RUNS);
    return strncmp(name, RUNS, size) ? 0 : runs->fn(runs->arg, name + size);
}

int weir_ckpt_runs(weir_store *store, int (*fn)(void *arg, const char *run), void *arg)
{
    struct runs runs = {fn, arg};
    return weir_ledger_each(store, on_ledger, &runs);
}

int weir_run_open(struct weir_ledger **out, weir_store *store, const char *run)
{
    char log[WEIR_KEY_BYTES_MAX + 1];
    int code = weir_ckpt_log_name(log, run);
    return code ? code : weir_ledger_open(out, store, log);
}

int weir_run_read(struct weir_ledger **out, struct weir_ledger_state *state, weir_store *store,
                  const char *run)
{
    struct weir_ledger *ledger;
    int code = weir_run_open(&ledger, store, run);
    if (code)
        return code;
    code = weir_ledger_read(ledger, state);
    if (!code && !state->record.number) /* unless that is behind a hole */
        code = weir_log_check_head(weir_ledger_log(ledger), &state->record);
    if (!code && !state->record.number)
        code = weir_fail(ENOENT, "there is no run '%s' in '%s'", run, store->url);
    if (code)
        weir_ledger_close(ledger);
    else
        *out = ledger;
    return code;
}

uint64_t weir_run_step(const struct weir_save *save)
{
    return strtoull(save->name, NULL, 10);
}

/* ---- what a checkpoint consists of ---- */

/* Of a table its object is looked at, and, if it shall be whole, all of it. */
static int look_at(struct weir_view *view, weir_store *store, const struct weir_ref *ref,
                   bool whole, uint64_t *size)
{
    char key[WEIR_KEY_BYTES_MAX + 256];
    struct weir_table *table;
    weir_object *obj;
    int code = 0;
    if (ref->kind != WEIR_REF_TABLE) {
        code = weir_view_object(view, ref, &obj);
    } else {
        snprintf(key, sizeof key, "%s/%s", weir_view_prefix(view), ref->name);
        if (whole && !(code = weir_view_table(view, ref, &table)))
            weir_table_close(table);
        if (!code)
            code = weir_object_open(&obj, store, key);
    }
    if (code)
        return code;
    *size += weir_object_info(obj)->size_bytes;
    weir_object_close(obj);
    return 0;
}

int weir_run_look(struct weir_ledger *ledger, const struct weir_ledger_entry *entry, bool whole,
                  uint64_t *size_bytes)
{
    struct weir_view *view;
    uint64_t size = 0;
    int worst = 0;
    char text[WEIR_TEXT_MAX];
    int code = weir_view_open_entry(&view, ledger, entry);
    if (code)
        return code;
    for (uint32_t i = 0; !code && i < entry->save.parts; i++) {
        struct weir_part part;
        code = weir_view_part(view, i, &part);
        const uint8_t *at = part.refs_at;
        for (uint32_t k = 0; !code && k < part.refs; k++) {
            struct weir_ref ref;
            weir_part_ref(&ref, &at);
            int bad = look_at(view, weir_ledger_store(ledger), &ref, whole, &size);
            if (bad && !worst) { /* the size is of what is there */
                worst = bad == -ENOENT ? -EBADMSG : bad;
                snprintf(text, sizeof text, "%s", weir_fail_last());
            }
        }
    }
    weir_view_close(view);
    *size_bytes = size;
    return code || !worst ? code : weir_fail_text(worst, text);
}

/* ---- listing ---- */

static uint32_t names_of(const struct weir_ledger_state *state, const struct weir_save *save,
                         const char **names)
{
    uint32_t count = 0;
    for (size_t i = 0; i < state->label_count; i++)
        if (weir_save_same(&state->labels[i].save, save))
            names[count++] = state->labels[i].name;
    return count;
}

int weir_run_tell(struct weir_ledger *ledger, const struct weir_ledger_state *state,
                  const struct weir_ledger_entry *entry, uint32_t flags, weir_ckpt_fn fn, void *arg)
{
    const char *names[WEIR_LABELS_MAX];
    char prefix[WEIR_KEY_BYTES_MAX + 1];
    weir_ckpt_info info = {
        .step = weir_run_step(&entry->save),
        .attempt = entry->save.attempt,
        .save = entry->save.number,
        .time_ns = entry->time_ns,
        .retired_ns = entry->retired_ns,
        .ranks = entry->save.parts,
        .name_count = names_of(state, &entry->save, names),
        .names = names,
        .prefix = prefix,
    };
    weir_ledger_prefix(ledger, &entry->save, prefix);
    if (flags & WEIR_CKPT_SIZES) {
        int code = weir_run_look(ledger, entry, false, &info.size_bytes);
        info.error = entry->retired_ns ? 0 : code; /* some of a retired one may be gone */
    }
    return fn(arg, &info);
}

int weir_ckpt_each(weir_store *store, const char *run, uint32_t flags, weir_ckpt_fn fn, void *arg)
{
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    int code = weir_run_read(&ledger, &state, store, run);
    if (code)
        return code;
    for (size_t i = 0; !code && i < state.count; i++)
        if (!state.entries[i].retired_ns || (flags & WEIR_CKPT_RETIRED))
            code = weir_run_tell(ledger, &state, &state.entries[i], flags, fn, arg);
    weir_state_free(&state);
    weir_ledger_close(ledger);
    return code;
}

/* ---- names ---- */

int weir_run_find_label(struct weir_ledger *ledger, const char *label, struct weir_save *save)
{
    struct weir_ledger_state state;
    int code = weir_label_check(label);
    if (!code)
        code = weir_ledger_read(ledger, &state);
    if (code)
        return code;
    const struct weir_ledger_entry *entry = weir_ledger_find_label(&state, label);
    if (entry)
        *save = entry->save;
    else
        code = weir_fail(ENOENT, "nothing in run '%s' is named '%s'",
                         weir_ledger_name(ledger) + strlen(RUNS), label);
    weir_state_free(&state);
    return code;
}

static void tell_was(const struct weir_save *was, uint64_t *was_step)
{
    if (was_step)
        *was_step = was->parts ? weir_run_step(was) : WEIR_STEP_NEWEST;
}

int weir_ckpt_name(weir_store *store, const char *run, uint64_t step, const char *name,
                   uint64_t *was_step)
{
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    struct weir_save was;
    char text[32];
    int code = weir_label_check(name);
    if (!code)
        code = weir_run_read(&ledger, &state, store, run);
    if (code)
        return code;
    snprintf(text, sizeof text, "%" PRIu64, step);
    const struct weir_ledger_entry *entry =
        weir_ledger_find(&state, step == WEIR_STEP_NEWEST ? NULL : text);
    if (entry)
        code = weir_ledger_label(ledger, name, &entry->save, &was);
    else if (step == WEIR_STEP_NEWEST)
        code = weir_fail(ENOENT, "run '%s' has no checkpoint", run);
    else
        code = weir_fail(ENOENT, "run '%s' has no checkpoint of step %s", run, text);
    if (!code)
        tell_was(&was, was_step);
    weir_state_free(&state);
    weir_ledger_close(ledger);
    return code;
}

int weir_ckpt_unname(weir_store *store, const char *run, const char *name, uint64_t *was_step)
{
    struct weir_ledger *ledger;
    struct weir_save was;
    int code = weir_run_open(&ledger, store, run);
    if (code)
        return code;
    code = weir_ledger_unlabel(ledger, name, &was);
    weir_ledger_close(ledger);
    if (!code)
        tell_was(&was, was_step);
    return code;
}
