/* cmd_log_verify.c - weir log verify: is each log one chain, and is there what it names? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "store/view.h"
#include "util/err.h"

struct tally {
    struct cli *cli;
    json_t *errors;
    uint64_t records, saves, parts, refs;
    bool failed;
};

/* What is damaged is named; the rest is looked at all the same. */
static void note_failure(struct tally *sum, int code)
{
    cli_error(sum->cli, weir_error_text());
    if (sum->cli->json)
        json_array_append_new(sum->errors, cli_error_json(code, weir_error_text()));
    sum->failed = true;
}

static int verify_ref(struct weir_view *view, const struct weir_ref *ref)
{
    weir_object *obj;
    struct weir_table *table;
    int code;
    if (ref->kind == WEIR_REF_TABLE) {
        code = weir_view_table(view, ref, &table);
        if (!code)
            weir_table_close(table);
    } else {
        code = weir_view_object(view, ref, &obj);
        if (!code)
            weir_object_close(obj);
    }
    return code;
}

/* 0: what was bad is noted; -ESTALE: the save was retired since, which is no damage. */
static int verify_part(struct weir_view *view, uint32_t number, struct tally *sum)
{
    struct weir_part part;
    bool good = true;
    int code = weir_view_part(view, number, &part);
    if (code) {
        note_failure(sum, code);
        return 0;
    }
    const uint8_t *at = part.refs_at;
    for (uint32_t i = 0; i < part.refs; i++) {
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        code = verify_ref(view, &ref);
        if (code == -ESTALE)
            return code;
        if (code)
            note_failure(sum, code);
        good &= !code;
        sum->refs += !code;
    }
    sum->parts += good;
    return 0;
}

/* given: the log itself is damaged, and the entry all there is. */
static void verify_save(struct weir_ledger *ledger, const struct weir_ledger_entry *entry,
                        bool given, struct tally *sum)
{
    struct weir_view *view;
    uint64_t parts = sum->parts;
    int code = given ? weir_view_open_entry(&view, ledger, entry)
                     : weir_view_open_save(&view, ledger, &entry->save);
    if (code) {
        if (code != -ESTALE)
            note_failure(sum, code);
        return;
    }
    for (uint32_t i = 0; !code && i < entry->save.parts; i++)
        code = verify_part(view, i, sum);
    sum->saves += sum->parts - parts == entry->save.parts;
    weir_view_close(view);
}

/* A log whose head cannot be found or read has the saves of the newest record that can be. */
static void verify_saves(struct weir_ledger *ledger, struct tally *sum)
{
    struct weir_ledger_state state;
    int code = weir_ledger_read(ledger, &state);
    bool given = code != 0;
    if (given && !sum->failed) /* else it was said what is wrong */
        note_failure(sum, code);
    if (given && weir_ledger_read_newest(ledger, &state))
        return; /* there is nothing to be looked at */
    if (given)
        cli_note(sum->cli, "%s: checking the saves that record %" PRIu64 " names",
                 weir_ledger_name(ledger), state.record.number);
    for (size_t i = 0; i < state.count; i++)
        if (!state.entries[i].retired_ns)
            verify_save(ledger, &state.entries[i], given, sum);
    weir_state_free(&state);
}

/* False if there is no such log. */
static bool verify_chain(const char *name, struct tally *sum)
{
    struct weir_ledger *ledger;
    int code = weir_ledger_open(&ledger, sum->cli->store, name);
    if (code) {
        note_failure(sum, code);
        return false;
    }
    code = weir_log_verify(weir_ledger_log(ledger), &sum->records);
    bool none = !code && !sum->records;
    if (none)
        code = weir_fail(ENOENT, "there is no log '%s' (weir log ls lists them)", name);
    if (code)
        note_failure(sum, code);
    if (!none)
        verify_saves(ledger, sum);
    weir_ledger_close(ledger);
    return !none;
}

static int verify_log(void *arg, const char *name)
{
    struct tally *all = arg, sum = {.cli = all->cli};
    sum.errors = sum.cli->json ? json_array() : NULL;
    bool there = verify_chain(name, &sum);
    if (sum.cli->json)
        json_array_append_new(sum.cli->doc,
                              json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:o}", "name",
                                        cli_text_json(name), "records", (json_int_t)sum.records,
                                        "saves", (json_int_t)sum.saves, "parts",
                                        (json_int_t)sum.parts, "refs", (json_int_t)sum.refs, "ok",
                                        !sum.failed, "errors", sum.errors));
    if (there)
        cli_say(sum.cli,
                "%s %s: %" PRIu64 " records, %" PRIu64 " live saves of %" PRIu64
                " parts with %" PRIu64 " objects",
                sum.failed ? "damaged" : "verified", name, sum.records, sum.saves, sum.parts,
                sum.refs);
    all->failed |= sum.failed;
    return 0;
}

static int run(struct cli *cli)
{
    struct tally all = {.cli = cli};
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    if (!cli->operand_count)
        code = weir_ledger_each(cli->store, verify_log, &all);
    for (int i = 0; !code && i < cli->operand_count; i++)
        code = verify_log(&all, cli->operands[i]);
    return code ? code : all.failed ? CLI_FAILED : 0;
}

const struct command cmd_log_verify = {
    .name = "log verify",
    .operands = "[NAME…]",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Check that logs are unbroken and what they name is there",
    .about =
        "Walks each log (all, or those named) from its first record: every record must name the "
        "SHA-256 of the one before it. Then every live save: its parts, the seals of its objects, "
        "and the bytes of its tables must have the SHA-256 that the log names. What is damaged is "
        "named on standard error, the rest is checked all the same, and the exit code is 1. If the "
        "newest record cannot be read, the saves are those of the newest that can be.\n\n"
        "The bytes of objects are checked by weir verify.",
    .example = "weir log verify\n"
               "weir log verify ckpt/run",
    .json = "an array: for each log name, records, saves, parts, refs, ok, errors",
    .run = run,
};
