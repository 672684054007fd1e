/* state.c - see state.h. The decoder takes any bytes. */
#include "store/state.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/node.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    HEAD_BYTES = 48,
    ENTRY_BYTES = 72, /* without the name */
    LABEL_BYTES = 8,  /* without the label */
    VERSION = 1,
    VERSION_LABELS = 2,
};

/* ---- saves ---- */

int weir_save_name_check(const char *name)
{
    assert(name); /* which gcc doubts when it builds for UBSan */
    int code = weir_key_check(name);
    if (!code && (strchr(name, '/') || strlen(name) > WEIR_SAVE_NAME_BYTES_MAX)) {
        code = weir_fail(EINVAL, "it is one part of a key, of at most %d bytes",
                         WEIR_SAVE_NAME_BYTES_MAX);
        weir_fail_in(code, "the name '%.*s'", WEIR_SAVE_NAME_BYTES_MAX, name);
    }
    return code;
}

int weir_label_check(const char *label)
{
    const char *why = NULL;
    if (strlen(label) > WEIR_LABEL_BYTES_MAX)
        why = "it has at most 64 bytes";
    else if (strpbrk(label, ",:"))
        why = "it has no comma and no colon";
    else if (*label && label[strspn(label, "0123456789")] == 0)
        why = "a number is a step, not a name";
    else if (!strcmp(label, "newest"))
        why = "it is always that of the newest";
    if (!why)
        return weir_save_name_check(label);
    int code = weir_fail(EINVAL, "%s", why);
    return weir_fail_in(code, "the name '%.*s'", WEIR_LABEL_BYTES_MAX, label);
}

bool weir_save_same(const struct weir_save *a, const struct weir_save *b)
{
    return a->attempt == b->attempt && a->number == b->number && !strcmp(a->name, b->name);
}

void weir_save_text(char out[WEIR_SAVE_TEXT_BYTES], const struct weir_save *save)
{
    snprintf(out, WEIR_SAVE_TEXT_BYTES, "%s-%" PRIu64 ".%" PRIu64, save->name, save->attempt,
             save->number);
}

/* Digits up to `end` as weir_save_text() writes them; 0 if it is something else. */
static uint64_t number_of(const char *at, const char *end)
{
    uint64_t value = 0;
    if (at == end || *at == '0')
        return 0;
    for (; at < end; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return 0;
    return value;
}

bool weir_save_of_text(struct weir_save *out, const char *text, size_t size)
{
    const char *end = text + size, *dash = memrchr(text, '-', size);
    const char *dot = dash ? memchr(dash, '.', (size_t)(end - dash)) : NULL;
    if (!dot || dash == text || dash - text > WEIR_SAVE_NAME_BYTES_MAX)
        return false;
    struct weir_save save = {.attempt = number_of(dash + 1, dot),
                             .number = number_of(dot + 1, end)};
    if (!save.attempt || !save.number)
        return false;
    memcpy(save.name, text, (size_t)(dash - text));
    *out = save;
    return true;
}

/* ---- the state ---- */

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the state is damaged: %s", why);
}

/* Reads one entry at *at and steps over it. */
static const char *entry_fault(struct weir_ledger_entry *e, const uint8_t **at, const uint8_t *end)
{
    if (end - *at < ENTRY_BYTES)
        return "an entry is cut short";
    const uint8_t *p = *at;
    size_t size = (size_t)weir_load_le(p, 4);
    if (size > WEIR_SAVE_NAME_BYTES_MAX || size > (size_t)(end - p) - ENTRY_BYTES)
        return "the name of an entry is cut short";
    *e = (struct weir_ledger_entry){
        .save = {.parts = (uint32_t)weir_load_le(p + 4, 4),
                 .attempt = weir_load_le(p + 8, 8),
                 .number = weir_load_le(p + 16, 8)},
        .time_ns = weir_load_le(p + 24, 8),
        .retired_ns = weir_load_le(p + 32, 8),
    };
    memcpy(e->root, p + 40, WEIR_SHA256_BYTES);
    memcpy(e->save.name, p + ENTRY_BYTES, size);
    *at = p + ENTRY_BYTES + size;
    if (!e->save.parts || e->save.parts > WEIR_SET_PARTS_MAX || !e->save.attempt || !e->save.number)
        return "an entry is of no save";
    return weir_save_name_check(e->save.name) || strlen(e->save.name) != size
               ? "the name of an entry is not one"
               : NULL;
}

static size_t entry_index(const struct weir_ledger_state *s, const struct weir_save *save)
{
    size_t i = s->count;
    while (i-- > 0 && !weir_save_same(&s->entries[i].save, save))
        ;
    return i;
}

/* Reads the labels at *at, of which there are `count`. */
static const char *labels_fault(struct weir_ledger_state *s, size_t count, const uint8_t **at,
                                const uint8_t *end)
{
    for (; s->label_count < count; s->label_count++) {
        struct weir_label *label = &s->labels[s->label_count];
        if (end - *at < LABEL_BYTES)
            return "a label is cut short";
        size_t index = (size_t)weir_load_le(*at, 4), size = (size_t)weir_load_le(*at + 4, 4);
        if (size > WEIR_LABEL_BYTES_MAX || size > (size_t)(end - *at) - LABEL_BYTES)
            return "a label is cut short";
        memcpy(label->name, *at + LABEL_BYTES, size);
        *at += LABEL_BYTES + size;
        if (index >= s->count || s->entries[index].retired_ns)
            return "a label is of no live entry";
        label->save = s->entries[index].save;
        if (entry_index(s, &label->save) != index)
            return "a label is of an entry that is there twice";
        if (strlen(label->name) != size || weir_label_check(label->name))
            return "a label is not one";
        if (s->label_count && strcmp(label[-1].name, label->name) >= 0)
            return "the labels are not sorted";
    }
    return NULL;
}

int weir_state_decode(struct weir_ledger_state *out, const uint8_t *bytes, size_t size)
{
    struct weir_ledger_state s = {0};
    if (size < HEAD_BYTES)
        return damaged("it is too short");
    unsigned version = (unsigned)weir_load_le(bytes, 2);
    if (version != VERSION && version != VERSION_LABELS)
        return weir_fail(EPROTO, "the state was written by a newer Weir (version %u): update",
                         version);
    size_t labels = version == VERSION_LABELS ? (size_t)weir_load_le(bytes + 4, 4) : 0;
    s.attempt = weir_load_le(bytes + 8, 8);
    memcpy(s.token, bytes + 16, sizeof s.token);
    s.floor = weir_load_le(bytes + 32, 8);
    s.past_count = (size_t)weir_load_le(bytes + 40, 4);
    size_t count = (size_t)weir_load_le(bytes + 44, 4);
    if (s.past_count > WEIR_TOKENS_MAX || count > WEIR_ENTRIES_MAX || labels > WEIR_LABELS_MAX ||
        (version == VERSION_LABELS && !labels) ||
        size - HEAD_BYTES < s.past_count * WEIR_TOKEN_BYTES + count * ENTRY_BYTES)
        return damaged("its counts are impossible");
    s.past = weir_alloc(s.past_count * WEIR_TOKEN_BYTES);
    s.entries = weir_alloc(count * sizeof *s.entries);
    s.labels = weir_alloc(labels * sizeof *s.labels);
    if (!s.past || !s.entries || !s.labels) {
        weir_state_free(&s);
        return weir_fail_memory();
    }
    if (s.past_count)
        memcpy(s.past, bytes + HEAD_BYTES, s.past_count * WEIR_TOKEN_BYTES);
    const uint8_t *at = bytes + HEAD_BYTES + s.past_count * WEIR_TOKEN_BYTES;
    const char *fault = NULL;
    while (!fault && s.count < count)
        fault = entry_fault(&s.entries[s.count++], &at, bytes + size);
    if (!fault)
        fault = labels_fault(&s, labels, &at, bytes + size);
    if (!fault && at != bytes + size)
        fault = "there is more than it says";
    if (fault) {
        weir_state_free(&s);
        return damaged(fault);
    }
    *out = s;
    return 0;
}

void weir_state_free(struct weir_ledger_state *s)
{
    free(s->entries);
    free(s->labels);
    free(s->past);
    weir_log_record_free(&s->record);
    *s = (struct weir_ledger_state){0};
}

static void put_labels(const struct weir_ledger_state *s, uint8_t *at)
{
    for (size_t i = 0; i < s->label_count; i++) {
        const struct weir_label *label = &s->labels[i];
        size_t size = strlen(label->name);
        weir_store_le(at, entry_index(s, &label->save), 4);
        weir_store_le(at + 4, size, 4);
        memcpy(at + LABEL_BYTES, label->name, size);
        at += LABEL_BYTES + size;
    }
}

uint8_t *weir_state_encode(const struct weir_ledger_state *s, size_t *size)
{
    *size = HEAD_BYTES + s->past_count * WEIR_TOKEN_BYTES;
    for (size_t i = 0; i < s->count; i++)
        *size += ENTRY_BYTES + strlen(s->entries[i].save.name);
    for (size_t i = 0; i < s->label_count; i++)
        *size += LABEL_BYTES + strlen(s->labels[i].name);
    uint8_t *bytes = weir_alloc(*size);
    if (!bytes)
        return NULL;
    weir_store_le(bytes, s->label_count ? VERSION_LABELS : VERSION, 2);
    weir_store_le(bytes + 4, s->label_count, 4);
    weir_store_le(bytes + 8, s->attempt, 8);
    memcpy(bytes + 16, s->token, sizeof s->token);
    weir_store_le(bytes + 32, s->floor, 8);
    weir_store_le(bytes + 40, s->past_count, 4);
    weir_store_le(bytes + 44, s->count, 4);
    uint8_t *at = bytes + HEAD_BYTES;
    if (s->past_count)
        memcpy(at, s->past, s->past_count * WEIR_TOKEN_BYTES);
    at += s->past_count * WEIR_TOKEN_BYTES;
    for (size_t i = 0; i < s->count; i++) {
        const struct weir_ledger_entry *e = &s->entries[i];
        size_t name_size = strlen(e->save.name);
        weir_store_le(at, name_size, 4);
        weir_store_le(at + 4, e->save.parts, 4);
        weir_store_le(at + 8, e->save.attempt, 8);
        weir_store_le(at + 16, e->save.number, 8);
        weir_store_le(at + 24, e->time_ns, 8);
        weir_store_le(at + 32, e->retired_ns, 8);
        memcpy(at + 40, e->root, WEIR_SHA256_BYTES);
        memcpy(at + ENTRY_BYTES, e->save.name, name_size);
        at += ENTRY_BYTES + name_size;
    }
    put_labels(s, at);
    return bytes;
}
