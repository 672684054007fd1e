/* cmd_log_show.c - weir log show: what a log says, what a save consists of, what a table holds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "store/view.h"
#include "util/err.h"

static struct {
    uint64_t record;
} opts;

static const struct weir_opt options[] = {
    {"record", 0, WEIR_OPT_NUMBER, offsetof(typeof(opts), record), "0", "N",
     "the log as it was at record N, instead of the newest", 0, 1e18},
    {0},
};

enum { DIGEST_DIGITS = 2 * WEIR_SHA256_BYTES, SHORT_DIGITS = 12 };

/* Text as it is, other bytes as {"hex": "…"}. */
static json_t *bytes_json(const void *bytes, size_t size)
{
    json_t *text = memchr(bytes, 0, size) ? NULL : json_stringn(bytes, size);
    if (text)
        return text;
    char *digits = malloc(2 * size + 1);
    if (!digits)
        return NULL;
    weir_hex(digits, bytes, size);
    json_t *object = json_pack("{s:s}", "hex", digits);
    free(digits);
    return object;
}

/* ---- a log ---- */

/* Those that people gave it; NULL: none. */
static json_t *names_json(const struct weir_ledger_state *state, const struct weir_save *save)
{
    json_t *names = NULL;
    for (size_t i = 0; i < state->label_count; i++) {
        if (!weir_save_same(&state->labels[i].save, save))
            continue;
        names = names ? names : json_array();
        json_array_append_new(names, cli_text_json(state->labels[i].name));
    }
    return names;
}

static json_t *entry_json(const struct weir_ledger_entry *entry)
{
    char when[FORMAT_TIME_BYTES], digest[DIGEST_DIGITS + 1];
    weir_hex(digest, entry->root, WEIR_SHA256_BYTES);
    json_t *object = json_pack(
        "{s:o, s:I, s:I, s:i, s:s, s:s, s:b}", "name", cli_text_json(entry->save.name), "attempt",
        (json_int_t)entry->save.attempt, "save", (json_int_t)entry->save.number, "parts",
        (int)entry->save.parts, "time", format_time_json(when, entry->time_ns), "sha256", digest,
        "live", !entry->retired_ns);
    if (entry->retired_ns)
        json_object_set_new(object, "retired",
                            json_string(format_time_json(when, entry->retired_ns)));
    return object;
}

static void print_entry(const struct weir_ledger_state *state,
                        const struct weir_ledger_entry *entry)
{
    char when[FORMAT_TIME_BYTES], number[48], digest[DIGEST_DIGITS + 1];
    weir_hex(digest, entry->root, WEIR_SHA256_BYTES);
    snprintf(number, sizeof number, "%" PRIu64 ".%" PRIu64, entry->save.attempt,
             entry->save.number);
    bool named = weir_ledger_is_labelled(state, &entry->save);
    printf("%-12s  %-9s  %6u  %-19s  %-7s  %.*s\n", entry->save.name, number, entry->save.parts,
           format_time(when, entry->time_ns),
           entry->retired_ns ? "retired"
           : named           ? "named"
                             : "live",
           SHORT_DIGITS, digest);
}

static int show_log(struct cli *cli, struct weir_ledger *ledger)
{
    struct weir_ledger_state state;
    char when[FORMAT_TIME_BYTES], digest[DIGEST_DIGITS + 1];
    int code = opts.record ? weir_ledger_read_at(ledger, opts.record, &state)
                           : weir_ledger_read(ledger, &state);
    if (code)
        return code;
    if (!state.record.number)
        return weir_fail(ENOENT, "there is no log '%s' (weir log ls lists them)",
                         weir_ledger_name(ledger));
    weir_hex(digest, state.record.digest, WEIR_SHA256_BYTES);
    if (cli->json) {
        json_t *saves = json_array();
        for (size_t i = 0; i < state.count; i++) {
            json_t *save = entry_json(&state.entries[i]);
            json_t *names = names_json(&state, &state.entries[i].save);
            if (names)
                json_object_set_new(save, "names", names);
            json_array_append_new(saves, save);
        }
        cli->doc = json_pack(
            "{s:o, s:I, s:s, s:s, s:I, s:I, s:o}", "name", cli_text_json(weir_ledger_name(ledger)),
            "record", (json_int_t)state.record.number, "sha256", digest, "time",
            format_time_json(when, state.record.time_ns), "attempt", (json_int_t)state.attempt,
            "floor", (json_int_t)state.floor, "saves", saves);
    } else {
        format_field("log", "%s", weir_ledger_name(ledger));
        format_field("record", "%" PRIu64 " (%s)", state.record.number,
                     format_time(when, state.record.time_ns));
        format_field("sha256", "%s", digest);
        format_field("attempt", "%" PRIu64, state.attempt);
        if (state.count)
            printf("\n%-12s  %-9s  %6s  %-19s  %-7s  %s\n", "save", "attempt", "parts", "committed",
                   "state", "sha256");
        for (size_t i = 0; i < state.count; i++)
            print_entry(&state, &state.entries[i]);
    }
    weir_state_free(&state);
    return 0;
}

/* ---- a save ---- */

static json_t *part_json(const struct weir_part *part)
{
    json_t *refs = json_array();
    const uint8_t *at = part->refs_at;
    for (uint32_t i = 0; i < part->refs; i++) {
        char digest[DIGEST_DIGITS + 1];
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        weir_hex(digest, ref.digest, WEIR_SHA256_BYTES);
        json_array_append_new(refs, json_pack("{s:s, s:o, s:s}", "kind",
                                              ref.kind == WEIR_REF_TABLE ? "table" : "object",
                                              "name", cli_text_json(ref.name), "sha256", digest));
    }
    json_t *object = json_pack("{s:i, s:o}", "part", (int)part->number, "refs", refs);
    if (part->note_size)
        json_object_set_new(object, "note", bytes_json(part->note, part->note_size));
    return object;
}

static void print_part(const struct weir_part *part)
{
    const uint8_t *at = part->refs_at;
    for (uint32_t i = 0; i < part->refs; i++) {
        char digest[DIGEST_DIGITS + 1];
        struct weir_ref ref;
        weir_part_ref(&ref, &at);
        weir_hex(digest, ref.digest, WEIR_SHA256_BYTES);
        printf("%6u  %-6s  %.*s  %s\n", part->number,
               ref.kind == WEIR_REF_TABLE ? "table" : "object", SHORT_DIGITS, digest, ref.name);
    }
    if (!part->refs)
        printf("%6u  %-6s  %*s  %s\n", part->number, "-", SHORT_DIGITS, "", "-");
}

static int show_save(struct cli *cli, struct weir_view *view)
{
    const struct weir_ledger_entry *entry = weir_view_entry(view);
    json_t *parts = cli->json ? json_array() : NULL;
    struct weir_part part;
    int code = 0;
    if (!cli->json) {
        format_field("save", "%s", weir_view_prefix(view));
        printf("\n%6s  %-6s  %-*s  %s\n", "part", "kind", SHORT_DIGITS, "sha256", "name");
    }
    for (uint32_t i = 0; !code && i < entry->save.parts; i++) {
        code = weir_view_part(view, i, &part);
        if (!code && cli->json)
            json_array_append_new(parts, part_json(&part));
        else if (!code)
            print_part(&part);
    }
    if (!cli->json)
        return code;
    cli->doc = entry_json(entry);
    json_object_set_new(cli->doc, "prefix", cli_text_json(weir_view_prefix(view)));
    json_object_set_new(cli->doc, "list", parts);
    return code;
}

/* ---- a table ---- */

static int find_ref(struct weir_view *view, const char *name, struct weir_ref *ref)
{
    struct weir_part part;
    for (uint32_t i = 0; i < weir_view_entry(view)->save.parts; i++) {
        int code = weir_view_part(view, i, &part);
        if (code)
            return code;
        const uint8_t *at = part.refs_at;
        for (uint32_t k = 0; k < part.refs; k++) {
            weir_part_ref(ref, &at);
            if (strcmp(ref->name, name))
                continue;
            return ref->kind == WEIR_REF_TABLE
                       ? 0
                       : weir_fail(EINVAL, "'%s/%s' is an object, not a table: weir cat shows it",
                                   weir_view_prefix(view), name);
        }
    }
    return weir_fail(ENOENT, "'%s' refers to no '%s'", weir_view_prefix(view), name);
}

/* Row by row: a table may be larger than a document in memory should be. */
static int show_table(struct cli *cli, struct weir_view *view, const char *name)
{
    struct weir_table *table;
    struct weir_ref ref;
    int code = find_ref(view, name, &ref);
    if (!code)
        code = weir_view_table(view, &ref, &table);
    if (code)
        return code;
    uint64_t count = weir_table_count(table);
    if (cli->json)
        printf("[");
    for (uint64_t i = 0; !code && i < count; i++) {
        struct weir_row row;
        weir_table_row(table, i, &row);
        json_t *object = json_pack("{s:o, s:o}", "key", bytes_json(row.key, row.key_size), "value",
                                   bytes_json(row.value, row.value_size));
        if (json_dumpf(object, stdout, JSON_COMPACT))
            code = weir_fail_memory();
        json_decref(object);
        printf(cli->json && i + 1 < count ? ",\n" : "\n");
    }
    if (cli->json)
        printf("]\n");
    weir_table_close(table);
    return code;
}

static int run(struct cli *cli)
{
    struct weir_ledger *ledger;
    struct weir_view *view;
    if (opts.record && cli->operand_count > 1)
        return cli_usage(cli, "--record is for a log, not for a save of it");
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = weir_ledger_open(&ledger, cli->store, cli->operands[0]);
    if (code)
        return code;
    if (cli->operand_count == 1) {
        code = show_log(cli, ledger);
    } else {
        code = weir_view_open(&view, ledger, cli->operands[1]);
        if (!code) {
            code = cli->operand_count == 2 ? show_save(cli, view)
                                           : show_table(cli, view, cli->operands[2]);
            weir_view_close(view);
        }
    }
    weir_ledger_close(ledger);
    return code;
}

const struct command cmd_log_show = {
    .name = "log show",
    .operands = "NAME [SAVE [TABLE]]",
    .operands_min = 1,
    .operands_max = 3,
    .summary = "Show what a log says, a save consists of, or a table holds",
    .about =
        "With NAME alone: the newest record of the log, with the saves that are live, and those "
        "that are retired and wait to be deleted. With SAVE: the parts of the newest live save of "
        "that name, the objects and tables they refer to, and their SHA-256 (of an object's seal, "
        "of a table's bytes). With TABLE: its rows, a JSON object in each line.",
    .example = "weir log show ckpt/run\n"
               "weir log show ckpt/run 1000\n"
               "weir log show ckpt/run --record 7",
    .json =
        "of a log: name, record, sha256, time, attempt, floor, saves (name, attempt, save, "
        "parts, time, sha256, live, retired, names); of a save: the same, prefix, and list (part, "
        "refs: kind, name, sha256; note); of a table: an array of key and value, where bytes "
        "that are no text are an object with the field hex",
    .options = options,
    .fields = &opts,
    .run = run,
};
