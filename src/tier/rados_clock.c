/* rados_clock.c - the cluster's clock, and its space. The clock is that of the OSD that has the
 * object WEIR_RADOS_CLOCK; Ceph's OSDs agree within parts of a second, or the cluster complains.
 * RADOS has no request for the time, but a class of functions for one-time passwords, which every
 * OSD loads, has.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/rados.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

/* Asked again after this: boot-time clocks are not that wrong. */
static const uint64_t clock_life_ns = 3600ull * 1000000000;

/* Ceph's encoding of a struct without fields: version, oldest version that understands, length. */
static const char no_fields[] = {1, 1, 0, 0, 0, 0};
enum { REPLY_BYTES = 6 + 8 }; /* the same, and seconds, nanoseconds */

/* The OSD's time; or 0, and whether it will never tell, as to users without the right to ask. */
static int64_t ask(struct rados_tier *t, bool *is_mute)
{
    uint8_t reply[REPLY_BYTES];
    int got = 0;
    for (int tries = 0; tries < 2; tries++) {
        got = t->lib->exec(t->pool, WEIR_RADOS_CLOCK, "otp", "get_current_time", no_fields,
                           sizeof no_fields, (char *)reply, sizeof reply);
        if (got != -ENOENT || tries)
            break;
        rados_write_op_t op = t->lib->create_write_op();
        t->lib->write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
        if (weir_rados_write_now(t, op, WEIR_RADOS_CLOCK, NULL))
            break;
    }
    *is_mute = got == -EPERM || got == -EACCES || got == -EOPNOTSUPP;
    if (got != REPLY_BYTES)
        return 0;
    return (int64_t)weir_load_le(reply + 6, 4) * 1000000000 + (int64_t)weir_load_le(reply + 10, 4);
}

int64_t weir_rados_now(struct rados_tier *t)
{
    uint64_t now = weir_sys->now_ns(WEIR_CLOCK_BOOT);
    pthread_mutex_lock(&t->lock);
    bool is_known = t->has_clock && now - t->clock_boot_ns < clock_life_ns;
    pthread_mutex_unlock(&t->lock);
    if (!is_known) {
        bool is_mute;
        int64_t there = ask(t, &is_mute);
        uint64_t after = weir_sys->now_ns(WEIR_CLOCK_BOOT);
        bool is_told = there || is_mute;
        if (!there)
            there = (int64_t)weir_sys->now_ns(WEIR_CLOCK_REAL);
        pthread_mutex_lock(&t->lock);
        /* What was known once is better than this machine's clock, which is better than none. */
        if (is_told ? !t->has_clock || after - t->clock_boot_ns >= clock_life_ns : !t->has_clock) {
            t->has_clock = is_told;
            t->clock_boot_ns = now + (after - now) / 2;
            t->clock_ns = there;
        }
        pthread_mutex_unlock(&t->lock);
        now = after;
    }
    pthread_mutex_lock(&t->lock);
    int64_t time_ns = t->clock_ns + (int64_t)(now - t->clock_boot_ns);
    pthread_mutex_unlock(&t->lock);
    return time_ns;
}

/* ---- space ---- */

static bool is_key(const struct weir_json *json, const char *key)
{
    return json->token == WEIR_JSON_KEY && json->size == strlen(key) &&
           !memcmp(json->text, key, json->size);
}

/* "pools": [{"name": …, "stats": {"stored": …, "max_avail": …}}, …] of `ceph df`. */
static int read_df(struct rados_tier *t, const char *text, size_t size, struct weir_space *space)
{
    struct weir_json json;
    bool is_pool = false;
    uint64_t value, stored = 0, avail = 0;
    int code;
    weir_json_begin(&json, text, size);
    while ((code = weir_json_next(&json)) == 1) {
        if (is_key(&json, "name")) {
            code = weir_json_next(&json);
            is_pool = code == 1 && json.token == WEIR_JSON_STRING &&
                      json.size == strlen(t->pool_name) &&
                      !memcmp(json.text, t->pool_name, json.size);
        } else if (is_pool && (is_key(&json, "stored") || is_key(&json, "max_avail"))) {
            bool is_stored = json.text[0] == 's';
            code = weir_json_next(&json);
            if (code == 1 && weir_json_uint(&json, &value))
                *(is_stored ? &stored : &avail) = value;
        }
        if (code != 1)
            break;
    }
    if (code < 0)
        return weir_fail(EPROTO, "%s: the monitor's answer cannot be read: %s", t->label,
                         weir_fail_last());
    if (!__builtin_add_overflow(stored, avail, &value) && value)
        *space = (struct weir_space){avail, value};
    return 0; /* else no manager runs, who would know */
}

int weir_rados_space(struct rados_tier *t, struct weir_req *req)
{
    const char *command[] = {"{\"prefix\":\"df\",\"format\":\"json\"}"};
    char *out = NULL, *status = NULL;
    size_t out_size = 0, status_size = 0;
    int code =
        t->lib->mon_command(t->cluster, command, 1, "", 0, &out, &out_size, &status, &status_size);
    req->space = (struct weir_space){UINT64_MAX, UINT64_MAX};
    if (code == -EACCES || code == -EPERM)
        code = 0; /* a user need not have the right to know */
    else if (code)
        code = weir_rados_fail(t, code, "ask for the space of", t->pool_name);
    else
        code = read_df(t, out, out_size, &req->space);
    t->lib->buffer_free(out);
    t->lib->buffer_free(status);
    return code;
}
