/* keep.c - which checkpoints of a run stay; pruning and removing the others. Whatever is asked, the
 * newest complete one stays unless it is named outright: a run whose newest checkpoint is damaged
 * must not lose the one before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/run.h"
#include "util/err.h"

uint64_t weir_keep_grace_ns(uint64_t grace_s)
{
    uint64_t grace_ns;
    return __builtin_mul_overflow(grace_s, 1000000000, &grace_ns) ? UINT64_MAX : grace_ns;
}

bool weir_keep_is_surplus(void *arg, const struct weir_ledger_entry *entry)
{
    const struct weir_keep *keep = arg;
    uint64_t newer = 0, step = weir_run_step(&entry->save);
    if (!keep->last || (keep->every && step % keep->every == 0) ||
        weir_ledger_is_labelled(keep->state, &entry->save) ||
        (keep->good && weir_save_same(&keep->good->save, &entry->save)))
        return false;
    for (size_t i = keep->state->count; i-- > 0;) {
        const struct weir_ledger_entry *other = &keep->state->entries[i];
        if (weir_save_same(&other->save, &entry->save))
            return newer >= keep->last;
        newer += !other->retired_ns;
    }
    return false; /* it is newer than what we know */
}

/* A change of a run that is under way. */
struct pruning {
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    weir_ledger_fn retire;
    void *retire_arg;
    weir_ckpt_fn fn;
    void *arg;
    bool dry;
    weir_prune_result result;
};

static int pruning_open(struct pruning *p, weir_store *store, const char *run)
{
    int code = weir_store_check_writable(store);
    return code ? code : weir_run_read(&p->ledger, &p->state, store, run);
}

static void pruning_close(struct pruning *p)
{
    weir_state_free(&p->state);
    weir_ledger_close(p->ledger);
}

/* The newest live entry of which everything is there that the log names, or NULL. One that cannot
 * be looked at now may well be good: then nothing is decided. */
static int newest_good(const struct pruning *p, const struct weir_ledger_entry **out)
{
    uint64_t size;
    *out = NULL;
    for (size_t i = p->state.count; i-- > 0 && !*out;) {
        if (p->state.entries[i].retired_ns)
            continue;
        int code = weir_run_look(p->ledger, &p->state.entries[i], true, &size);
        if (!code)
            *out = &p->state.entries[i];
        else if (code != -EBADMSG && code != -EPROTO && code != -ENOENT)
            return weir_fail_in(code, "whether step %s is whole is not known",
                                p->state.entries[i].save.name);
    }
    return 0;
}

static int count_one(void *arg, const weir_ckpt_info *info)
{
    struct pruning *p = arg;
    p->result.retired++;
    p->result.retired_bytes += info->size_bytes;
    return p->fn ? p->fn(p->arg, info) : 0;
}

/* Tells of those that are chosen, while they can be looked at. */
static int tell(struct pruning *p)
{
    int code = 0;
    for (size_t i = 0; !code && i < p->state.count; i++) {
        const struct weir_ledger_entry *entry = &p->state.entries[i];
        if (!entry->retired_ns && p->retire(p->retire_arg, entry))
            code = weir_run_tell(p->ledger, &p->state, entry, WEIR_CKPT_SIZES, count_one, p);
    }
    return code ? weir_fail(ECANCELED, "pruning '%s' was stopped", weir_ledger_name(p->ledger)) : 0;
}

static int retire_and_collect(struct pruning *p, uint64_t grace_s)
{
    weir_gc_result gc = {0};
    size_t count;
    int code = tell(p);
    if (code || p->dry)
        return code;
    code = weir_ledger_retire(p->ledger, 0, p->retire, p->retire_arg, &count);
    if (code)
        return code;
    code = weir_ledger_collect(weir_ledger_store(p->ledger), weir_ledger_name(p->ledger),
                               weir_keep_grace_ns(grace_s), &gc);
    p->result.retired = count;
    p->result.deleted = gc.saves;
    p->result.deleted_bytes = gc.bytes;
    p->result.waiting = gc.young;
    return code;
}

/* ---- pruning ---- */

void weir_prune_options_init(weir_prune_options *opts)
{
    *opts = (weir_prune_options){
        .struct_size = sizeof *opts,
        .keep_last = WEIR_KEEP_LAST_DEFAULT,
        .retired_grace_s = WEIR_RETIRED_GRACE_S_DEFAULT,
    };
}

static int options_read(weir_prune_options *out, const weir_prune_options *given)
{
    weir_prune_options_init(out);
    if (!given)
        return 0;
    if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
        return weir_fail(EINVAL, "weir_prune_options: call weir_prune_options_init() first");
    memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    return out->keep_last ? 0 : weir_fail(EINVAL, "at least one checkpoint has to stay");
}

int weir_ckpt_prune(weir_store *store, const char *run, const weir_prune_options *given,
                    weir_ckpt_fn fn, void *arg, weir_prune_result *result)
{
    weir_prune_options opts;
    struct pruning p = {.fn = fn, .arg = arg};
    int code = options_read(&opts, given);
    if (!code)
        code = pruning_open(&p, store, run);
    if (code)
        return code;
    struct weir_keep keep = {opts.keep_last, opts.keep_every, &p.state, NULL};
    p.dry = opts.flags & WEIR_PRUNE_DRY_RUN;
    p.retire = weir_keep_is_surplus;
    p.retire_arg = &keep;
    code = newest_good(&p, &keep.good);
    if (!code)
        code = retire_and_collect(&p, opts.retired_grace_s);
    if (result)
        *result = p.result;
    pruning_close(&p);
    return code;
}

/* ---- removing ---- */

struct chosen {
    uint64_t step;
    bool all;
    const struct weir_ledger_state *state;
};

/* Only those that were there when it was asked: not what is committed meanwhile. */
static bool is_chosen(void *arg, const struct weir_ledger_entry *entry)
{
    const struct chosen *chosen = arg;
    return (chosen->all || weir_run_step(&entry->save) == chosen->step) &&
           weir_ledger_find_save(chosen->state, &entry->save);
}

/* What speaks against it, in a text; 0 if nothing does. */
static int objection(const struct pruning *p, struct chosen *chosen)
{
    for (size_t i = 0; i < p->state.label_count; i++) {
        const struct weir_label *label = &p->state.labels[i];
        if (is_chosen(chosen, weir_ledger_find_save(&p->state, &label->save)))
            return weir_fail(EPERM, "step %s of '%s' is kept as '%s': take the name off first",
                             label->save.name, weir_ledger_name(p->ledger), label->name);
    }
    const struct weir_ledger_entry *good;
    int code = newest_good(p, &good);
    if (!code && good && is_chosen(chosen, good))
        code = weir_fail(EPERM, "step %s is the newest good checkpoint of '%s'", good->save.name,
                         weir_ledger_name(p->ledger));
    return code;
}

static int take_names_off(struct pruning *p, struct chosen *chosen)
{
    int code = 0;
    for (size_t i = 0; !code && i < p->state.label_count; i++) {
        const struct weir_label *label = &p->state.labels[i];
        if (is_chosen(chosen, weir_ledger_find_save(&p->state, &label->save)))
            code = weir_ledger_unlabel(p->ledger, label->name, NULL);
        if (code == -ENOENT) /* somebody else did */
            code = 0;
    }
    return code;
}

static bool is_any_chosen(const struct pruning *p, struct chosen *chosen)
{
    for (size_t i = 0; i < p->state.count; i++)
        if (!p->state.entries[i].retired_ns && is_chosen(chosen, &p->state.entries[i]))
            return true;
    return false;
}

int weir_ckpt_remove(weir_store *store, const char *run, uint64_t step, uint32_t flags,
                     uint64_t retired_grace_s, weir_ckpt_fn fn, void *arg,
                     weir_prune_result *result)
{
    struct pruning p = {.fn = fn, .arg = arg, .dry = flags & WEIR_REMOVE_DRY_RUN};
    struct chosen chosen = {step, flags & WEIR_REMOVE_ALL, &p.state};
    int code = pruning_open(&p, store, run);
    if (code)
        return code;
    p.retire = is_chosen;
    p.retire_arg = &chosen;
    if (!chosen.all && !is_any_chosen(&p, &chosen))
        code = weir_fail(ENOENT, "run '%s' has no checkpoint of step %" PRIu64, run, step);
    else if (!(flags & WEIR_REMOVE_FORCE))
        code = objection(&p, &chosen);
    else if (!p.dry)
        code = take_names_off(&p, &chosen);
    if (!code)
        code = retire_and_collect(&p, retired_grace_s);
    if (result)
        *result = p.result;
    pruning_close(&p);
    return code;
}
