/* profile.c - see profile.h. */
#include "util/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

#define VERSION_NAME "weir_profile"

enum { NAME_BYTES_MAX = 64, NUMBER_BYTES_MAX = 64 };

#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct weir_profile, name), true, 0                                        \
    }
#define FIGURE(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct weir_profile, name), false, 0                                       \
    }
#define DEPTH(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct weir_profile, name), false, WEIR_PROFILE_DEPTH_MAX                  \
    }

static const struct field {
    const char *name;
    size_t at;
    bool is_text;
    double max; /* a whole number up to this; 0: any that is not negative */
} fields[] = {
    TEXT(url),
    TEXT(kind),
    TEXT(time),
    FIGURE(read_bytes_per_s),
    FIGURE(read_block_bytes),
    DEPTH(read_depth),
    FIGURE(read_latency_s_p50),
    FIGURE(read_latency_s_p99),
    FIGURE(write_bytes_per_s),
    FIGURE(write_block_bytes),
    DEPTH(write_depth),
    FIGURE(write_latency_s_p50),
    FIGURE(write_latency_s_p99),
    FIGURE(random_read_iops),
    FIGURE(random_read_block_bytes),
    DEPTH(random_read_depth),
    FIGURE(random_read_latency_s_p50),
    FIGURE(random_read_latency_s_p99),
    FIGURE(random_write_iops),
    FIGURE(random_write_block_bytes),
    DEPTH(random_write_depth),
    FIGURE(random_write_latency_s_p50),
    FIGURE(random_write_latency_s_p99),
    FIGURE(checkpoint_bytes_per_s),
    DEPTH(checkpoint_writers),
    FIGURE(shards_bytes_per_s),
    DEPTH(shards_readers),
    FIGURE(lookup_iops),
    FIGURE(lookup_latency_s_p50),
    FIGURE(lookup_latency_s_p99),
    FIGURE(long_write_bytes),
    FIGURE(long_write_bytes_per_s),
    FIGURE(cliff_at_bytes),
    FIGURE(cliff_before_bytes_per_s),
    FIGURE(cliff_after_bytes_per_s),
    FIGURE(best_block_bytes),
    DEPTH(best_depth),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static void *place_of(const struct field *field, const struct weir_profile *profile)
{
    return (char *)profile + field->at;
}

/* ---- reading ---- */

static int bad(const char *name, const char *what)
{
    return weir_fail(EINVAL, "'%s' of the profile %s", name, what);
}

static int read_text(const struct field *field, const struct weir_json *json,
                     struct weir_profile *out)
{
    if (json->token != WEIR_JSON_STRING)
        return bad(field->name, "is not a text");
    if (json->size >= WEIR_PROFILE_TEXT_BYTES)
        return bad(field->name, "is too long");
    char *at = place_of(field, out);
    at[weir_json_text(json, at)] = 0;
    return 0;
}

static int read_number(const char *name, const struct weir_json *json, double *out)
{
    char text[NUMBER_BYTES_MAX];
    if (json->token != WEIR_JSON_NUMBER || json->size >= sizeof text)
        return bad(name, "is not a number");
    memcpy(text, json->text, json->size);
    text[json->size] = 0;
    double value = strtod(text, NULL);
    if (!isfinite(value) || value < 0)
        return bad(name, "is not a number of zero or more");
    *out = value;
    return 0;
}

static int read_field(const struct field *field, const struct weir_json *json,
                      struct weir_profile *out)
{
    if (field->is_text)
        return read_text(field, json, out);
    double value = 0;
    int code = read_number(field->name, json, &value);
    if (!code && field->max > 0 && (value > field->max || value != floor(value)))
        return bad(field->name, "is not a whole number that can be");
    if (!code)
        *(double *)place_of(field, out) = value;
    return code;
}

/* The member whose key is the current token; the next one is its value. */
static int read_member(struct weir_json *json, struct weir_profile *out, bool *has_version,
                       bool seen[FIELDS])
{
    char name[NAME_BYTES_MAX + 1];
    size_t i = 0;
    if (json->size > NAME_BYTES_MAX)
        return weir_json_skip(json);
    name[weir_json_text(json, name)] = 0;
    bool is_version = !strcmp(name, VERSION_NAME);
    while (i < FIELDS && strcmp(fields[i].name, name))
        i++;
    if (!is_version && i == FIELDS)
        return weir_json_skip(json);
    if (is_version ? *has_version : seen[i])
        return bad(name, "is there twice");
    int code = weir_json_next(json);
    if (code != 1)
        return code;
    if (!is_version) {
        seen[i] = true;
        return read_field(&fields[i], json, out);
    }
    double version = 0;
    code = read_number(name, json, &version);
    if (!code && version != WEIR_PROFILE_VERSION)
        return weir_fail(EINVAL, "the profile is of version %g: this weir reads version %d",
                         version, WEIR_PROFILE_VERSION);
    *has_version = true;
    return code;
}

int weir_profile_parse(struct weir_profile *out, const char *text, size_t size)
{
    struct weir_profile profile = {0};
    struct weir_json json;
    bool has_version = false, seen[FIELDS] = {0};
    int code = weir_json_check(text, size);
    if (code)
        return code;
    weir_json_begin(&json, text, size);
    code = weir_json_next(&json);
    if (code == 1 && json.token != WEIR_JSON_OBJECT)
        return weir_fail(EINVAL, "it is not a profile (weir bench --save makes one)");
    while (code >= 0 && (code = weir_json_next(&json)) == 1 && json.token == WEIR_JSON_KEY)
        code = read_member(&json, &profile, &has_version, seen);
    if (code < 0)
        return code;
    if (!has_version)
        return weir_fail(EINVAL,
                         "it is not a profile: it has no '%s' (weir bench --save makes one)",
                         VERSION_NAME);
    *out = profile;
    return 0;
}

static int read_file(const char *path, char *text, size_t room, size_t *size)
{
    int fd = weir_sys->open(AT_FDCWD, path, O_RDONLY, 0), code = fd < 0 ? fd : 0;
    ssize_t n = 1;
    *size = 0;
    while (!code && n > 0 && *size < room) {
        n = weir_sys->pread(fd, text + *size, room - *size, *size);
        if (n < 0 && n != -EINTR)
            code = (int)n;
        *size += n > 0 ? (size_t)n : 0;
        n = n == -EINTR ? 1 : n;
    }
    if (fd >= 0)
        weir_sys->close(fd);
    return code ? weir_fail(-code, "cannot read the profile '%s': %s", path, weir_errno_text(code))
                : 0;
}

int weir_profile_load(struct weir_profile *out, const char *path)
{
    size_t size = 0;
    char *text = weir_alloc(WEIR_PROFILE_BYTES_MAX);
    if (!text)
        return weir_fail_memory();
    int code = read_file(path, text, WEIR_PROFILE_BYTES_MAX, &size);
    if (!code && size == WEIR_PROFILE_BYTES_MAX)
        code = weir_fail(EFBIG, "the profile '%s' is too large to be one", path);
    else if (!code && (code = weir_profile_parse(out, text, size)))
        weir_fail_in(code, "cannot use the profile '%s'", path);
    free(text);
    return code;
}

/* ---- writing ---- */

static void put_name(struct weir_json_out *out, const char *name)
{
    weir_json_puts(out, ",\n  ");
    weir_json_put_string(out, name, strlen(name));
    weir_json_puts(out, ": ");
}

void weir_profile_write(struct weir_json_out *out, const struct weir_profile *profile)
{
    weir_json_puts(out, "{\n  \"" VERSION_NAME "\": ");
    weir_json_put_uint(out, WEIR_PROFILE_VERSION);
    for (size_t i = 0; i < FIELDS; i++) {
        const void *at = place_of(&fields[i], profile);
        double value = fields[i].is_text ? 0 : *(const double *)at;
        put_name(out, fields[i].name);
        if (fields[i].is_text)
            weir_json_put_string(out, at, strlen(at));
        else if (value == floor(value) && value < 1e15)
            weir_json_put_uint(out, (uint64_t)value);
        else
            weir_json_put_double(out, value);
    }
    weir_json_puts(out, "\n}\n");
}
