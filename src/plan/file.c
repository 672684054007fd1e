/* file.c - see file.h. */
#include "plan/file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/json.h"
#include "util/suggest.h"

enum { NAME_MAX_BYTES = 64 };

struct reader {
    struct weir_json json;
    struct weir_plan_file *out;
    char section[NAME_MAX_BYTES];
};

static unsigned line_of(const struct weir_json *json)
{
    unsigned line = 1;
    for (const char *at = json->begin; at < json->at; at++)
        line += *at == '\n';
    return line;
}

const char *weir_plan_key_name(char out[WEIR_PLAN_VALUE_MAX], const struct weir_plan_key *key)
{
    snprintf(out, WEIR_PLAN_VALUE_MAX, "%s", key->opt.name);
    for (char *at = out; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return out;
}

/* A text short enough to be a name or a value, with what would garble a terminal replaced. */
static int take_text(const struct reader *r, char *out, size_t room, const char *what)
{
    if (r->json.size >= room)
        return weir_fail(EINVAL, "line %u: a %s of %zu bytes is too long", line_of(&r->json), what,
                         r->json.size);
    size_t size = r->json.token == WEIR_JSON_NUMBER ? r->json.size : weir_json_text(&r->json, out);
    if (r->json.token == WEIR_JSON_NUMBER)
        memcpy(out, r->json.text, size);
    out[size] = 0;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
            out[i] = '?';
    return 0;
}

/* ---- names ---- */

static int find_section(const struct reader *r)
{
    struct weir_suggestion s = {.typed = r->section};
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++) {
        if (!strcmp(key->section, r->section))
            return 0;
        weir_suggest_add(&s, key->section);
    }
    if (s.best)
        return weir_fail(EINVAL, "line %u: there is no section '%s': did you mean '%s'?",
                         line_of(&r->json), r->section, s.best);
    return weir_fail(EINVAL,
                     "line %u: there is no section '%s': they are model, data, cluster, storage, "
                     "safety, cost and simulate",
                     line_of(&r->json), r->section);
}

static int no_such_key(const struct reader *r, const char *name)
{
    char names[2][WEIR_PLAN_VALUE_MAX];
    unsigned line = line_of(&r->json), at = 0;
    struct weir_suggestion s = {.typed = name};
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++) {
        const char *other = weir_plan_key_name(names[at], key);
        if (!strcmp(other, name))
            return weir_fail(EINVAL, "line %u: %s.%s: '%s' belongs to the section '%s'", line,
                             r->section, name, name, key->section);
        const char *best = s.best;
        if (!strcmp(key->section, r->section))
            weir_suggest_add(&s, other);
        at = s.best != best ? !at : at; /* the best one's name stays */
    }
    if (s.best)
        return weir_fail(EINVAL, "line %u: %s.%s: there is no such key: did you mean '%s'?", line,
                         r->section, name, s.best);
    return weir_fail(EINVAL, "line %u: %s.%s: there is no such key", line, r->section, name);
}

static int find_key(const struct reader *r, const char *name, const struct weir_plan_key **out)
{
    char other[WEIR_PLAN_VALUE_MAX];
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++)
        if (!strcmp(key->section, r->section) && !strcmp(weir_plan_key_name(other, key), name)) {
            *out = key;
            return 0;
        }
    return no_such_key(r, name);
}

/* ---- values ---- */

/* Options have no exponents: 7e10 becomes 70000000000. */
static int plain_number(struct weir_plan_value *value, const char *where)
{
    if (!strpbrk(value->text, "eE"))
        return 0;
    double number = strtod(value->text, NULL);
    if (!(fabs(number) < 1e30))
        return weir_fail(EINVAL, "line %u: %s: %s is too large", value->line, where, value->text);
    snprintf(value->text, sizeof value->text, "%.*f", fabs(number) < 1e6 ? 12 : 0, number);
    return 0;
}

static int check_value(const struct weir_plan_value *value, const char *where)
{
    struct weir_plan_in scratch;
    int code = weir_opt_set(&value->key->opt, &scratch, value->text);
    if (!code)
        return 0;
    const char *text = weir_fail_last(), *colon = strchr(text, ':');
    char why[WEIR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", colon ? colon + 2 : text); /* without the option's name */
    return weir_fail(EINVAL, "line %u: %s: %s", value->line, where, why);
}

static int take_value(struct reader *r, const char *name)
{
    const struct weir_plan_key *key = NULL;
    char where[2 * NAME_MAX_BYTES + 2];
    snprintf(where, sizeof where, "%s.%s", r->section, name);
    int code = find_key(r, name, &key);
    if (code)
        return code;
    for (unsigned i = 0; i < r->out->count; i++)
        if (r->out->at[i].key == key)
            return weir_fail(EINVAL, "line %u: %s is there already, in line %u", line_of(&r->json),
                             where, r->out->at[i].line);
    code = weir_json_next(&r->json);
    if (code < 0)
        return weir_fail_in(code, "line %u", line_of(&r->json));
    struct weir_plan_value *value = &r->out->at[r->out->count];
    *value = (struct weir_plan_value){.key = key, .line = line_of(&r->json)};
    if (r->json.token != WEIR_JSON_STRING && r->json.token != WEIR_JSON_NUMBER)
        return weir_fail(EINVAL, "line %u: %s is neither a text, such as \"30min\", nor a number",
                         value->line, where);
    code = take_text(r, value->text, sizeof value->text, "value");
    if (!code && r->json.token == WEIR_JSON_NUMBER)
        code = plain_number(value, where);
    if (!code)
        code = check_value(value, where);
    r->out->count += !code;
    return code;
}

/* ---- sections ---- */

static int next(struct reader *r)
{
    int code = weir_json_next(&r->json);
    return code < 0 ? weir_fail_in(code, "line %u", line_of(&r->json)) : code;
}

static int read_section(struct reader *r)
{
    char name[NAME_MAX_BYTES];
    int code = take_text(r, r->section, sizeof r->section, "name");
    if (!code)
        code = find_section(r);
    if (!code)
        code = next(r);
    if (code < 0)
        return code;
    if (r->json.token != WEIR_JSON_OBJECT)
        return weir_fail(EINVAL, "line %u: the section '%s' is not an object: {\"key\": value, …}",
                         line_of(&r->json), r->section);
    while ((code = next(r)) == 1 && r->json.token == WEIR_JSON_KEY) {
        code = take_text(r, name, sizeof name, "name");
        if (!code)
            code = take_value(r, name);
        if (code)
            return code;
    }
    return code < 0 ? code : 0;
}

int weir_plan_file_read(struct weir_plan_file *out, const char *text, size_t size)
{
    struct reader r = {.out = out};
    out->count = 0;
    weir_json_begin(&r.json, text, size);
    int code = next(&r);
    if (code == 1 && r.json.token != WEIR_JSON_OBJECT)
        return weir_fail(EINVAL, "line 1: a plan is an object: {\"model\": {…}, \"cluster\": {…}}");
    while (code == 1 && (code = next(&r)) == 1 && r.json.token == WEIR_JSON_KEY) {
        code = read_section(&r);
        code = code ? code : 1;
    }
    if (code == 1)
        code = next(&r); /* nothing may follow */
    return code < 0 ? code : 0;
}
