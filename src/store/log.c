/* log.c - see log.h. */
#include "store/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { HEAD_BYTES = 88, VERSION = 1 };
#define RECORD_BYTES_MAX (HEAD_BYTES + WEIR_LOG_STATE_BYTES_MAX + WEIR_SUM_BYTES)
static const char magic[8] = {'W', 'E', 'I', 'R', 'L', 'O', 'G', 'R'};

struct weir_log {
    weir_store *store;
    uint64_t known; /* a number that is there: where the search begins */
    uint64_t head;  /* what the last search found, with nothing behind it; UINT64_MAX: no search */
    uint64_t durable; /* a number that survives a power loss, and with it all before */
    char name[WEIR_KEY_BYTES_MAX + 1];
};

int weir_log_open(struct weir_log **out, weir_store *store, const char *name)
{
    int code = weir_store_check(store);
    if (!code)
        code = weir_key_check(name);
    if (code)
        return code;
    struct weir_log *log = weir_alloc(sizeof *log);
    if (!log)
        return weir_fail_memory();
    log->store = store;
    log->head = UINT64_MAX;
    strcpy(log->name, name);
    *out = log;
    return 0;
}

void weir_log_close(struct weir_log *log)
{
    free(log);
}

const char *weir_log_name(const struct weir_log *log)
{
    return log->name;
}

static void record_name(char out[WEIR_NAME_BYTES_MAX], const struct weir_log *log, uint64_t number)
{
    snprintf(out, WEIR_NAME_BYTES_MAX, "%s%s~/%020" PRIu64, WEIR_DIR_LOG, log->name, number);
}

/* ---- records ---- */

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the record is damaged: %s", why);
}

static int missing(const struct weir_log *log, uint64_t number)
{
    return weir_fail(EBADMSG,
                     "record %" PRIu64 " of log '%s' is missing: restore it from a copy of the "
                     "store (weir log verify checks the whole chain)",
                     number, log->name);
}

int weir_log_record_decode(struct weir_log_record *out, const uint8_t *bytes, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    if (size < HEAD_BYTES + WEIR_SUM_BYTES)
        return damaged("it is too short");
    if (memcmp(bytes, magic, sizeof magic))
        return damaged("it does not begin like one");
    weir_sum(sum, bytes, size - WEIR_SUM_BYTES);
    if (memcmp(sum, bytes + size - WEIR_SUM_BYTES, WEIR_SUM_BYTES))
        return damaged("its bytes do not match its own sum");
    if (weir_load_le(bytes + 8, 2) != VERSION)
        return weir_fail(EPROTO, "the record was written by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(bytes + 8, 2));
    struct weir_log_record r = {
        .number = weir_load_le(bytes + 16, 8),
        .time_ns = weir_load_le(bytes + 72, 8),
        .state = bytes + HEAD_BYTES,
        .state_size = size - HEAD_BYTES - WEIR_SUM_BYTES,
        .size = size,
    };
    if (!r.number || weir_load_le(bytes + 80, 8) != r.state_size ||
        r.state_size > WEIR_LOG_STATE_BYTES_MAX)
        return damaged("its length is wrong");
    memcpy(r.parent, bytes + 24, sizeof r.parent);
    memcpy(r.nonce, bytes + 56, sizeof r.nonce);
    weir_sha256(r.digest, bytes, size);
    *out = r;
    return 0;
}

static uint8_t *record_encode(const struct weir_log_record *parent, const uint8_t *nonce,
                              const void *state, size_t state_size, size_t *size)
{
    *size = HEAD_BYTES + state_size + WEIR_SUM_BYTES;
    uint8_t *bytes = weir_alloc(*size);
    if (!bytes)
        return NULL;
    memcpy(bytes, magic, sizeof magic);
    weir_store_le(bytes + 8, VERSION, 2);
    weir_store_le(bytes + 16, parent->number + 1, 8);
    memcpy(bytes + 24, parent->digest, WEIR_SHA256_BYTES);
    memcpy(bytes + 56, nonce, WEIR_NONCE_BYTES);
    weir_store_le(bytes + 72, weir_sys->now_ns(WEIR_CLOCK_REAL), 8);
    weir_store_le(bytes + 80, state_size, 8);
    if (state_size)
        memcpy(bytes + HEAD_BYTES, state, state_size);
    weir_sum(bytes + *size - WEIR_SUM_BYTES, bytes, *size - WEIR_SUM_BYTES);
    return bytes;
}

void weir_log_record_free(struct weir_log_record *record)
{
    free(record->bytes);
    *record = (struct weir_log_record){0};
}

int weir_log_read(struct weir_log *log, uint64_t number, struct weir_log_record *out)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_log_record record;
    uint8_t *bytes;
    size_t size;
    record_name(name, log, number);
    int code = weir_record_load(log->store, name, RECORD_BYTES_MAX, &bytes, &size, NULL);
    if (code)
        return code != -EFBIG ? code
                              : weir_fail(EBADMSG,
                                          "record %" PRIu64 " of log '%s' is "
                                          "damaged: it is too long",
                                          number, log->name);
    code = weir_log_record_decode(&record, bytes, size);
    if (!code && record.number != number)
        code = damaged("it has another number");
    if (code) {
        free(bytes);
        return weir_fail_in(code, "record %" PRIu64 " of log '%s'", number, log->name);
    }
    if (number > log->known)
        log->known = number;
    record.bytes = bytes;
    *out = record;
    return 0;
}

/* ---- the head ---- */

/* 1 if the record is there, 0 if not. */
static int exists(struct weir_log *log, uint64_t number)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_blob_stat stat;
    record_name(name, log, number);
    int code = weir_store_stat(log->store, name, &stat);
    return code == -ENOENT ? 0 : code ? code : 1;
}

/* A search takes the first number that is absent for the end. One that was lost looks the same, but
 * the record behind it is there. */
static int check_behind(struct weir_log *log, uint64_t head)
{
    int there = exists(log, head + 2);
    if (there == 1) {
        there = exists(log, head + 1); /* both may have been appended since the search */
        if (there >= 0)
            return there ? 0 : missing(log, head + 1);
    }
    if (there < 0)
        return there;
    log->head = head;
    return 0;
}

/* Gallops: known + 1, + 2, + 4 … until one is absent, then halves the gap. Records are appended in
 * order and never removed, so what is there is a prefix of the numbers. */
static int find_head(struct weir_log *log)
{
    uint64_t low = log->known, step = 1;
    int there;
    while ((there = exists(log, low + step)) == 1) {
        low += step;
        step *= 2;
    }
    uint64_t high = low + step; /* absent */
    while (there >= 0 && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        there = exists(log, middle);
        if (there == 1)
            low = middle;
        else
            high = middle;
    }
    if (there < 0)
        return there;
    log->known = low;
    return low == log->head ? 0 : check_behind(log, low);
}

int weir_log_advise(const struct weir_log *log, uint64_t number, int code)
{
    char why[WEIR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", weir_fail_last());
    if (number > 1)
        weir_fail(-code,
                  "%s: restore it from a copy of the store (weir log show %s --record %" PRIu64
                  " shows what was there before)",
                  why, log->name, number - 1);
    else
        weir_fail(-code, "%s: restore it from a copy of the store", why);
    return code;
}

int weir_log_head(struct weir_log *log, struct weir_log_record *out)
{
    int code = weir_store_check(log->store);
    if (!code)
        code = find_head(log);
    if (code)
        return weir_fail_in(code, "cannot find the head of log '%s'", log->name);
    if (log->known) {
        code = weir_log_read(log, log->known, out);
        return code == -ENOENT    ? missing(log, log->known)
               : code == -EBADMSG ? weir_log_advise(log, log->known, code)
                                  : code;
    }
    *out = (struct weir_log_record){0};
    return 0;
}

int weir_log_moved(struct weir_log *log)
{
    int code = weir_store_check(log->store);
    return code ? code : exists(log, log->known + 1);
}

/* ---- appending ---- */

/* The number is taken, but not by a record that can be read. sure: nor by ours, then. */
static int unreadable(struct weir_log *log, uint64_t number, int code, bool sure, const char *why)
{
    if (!sure) {
        weir_fail(EIO, "the outcome of appending record %" PRIu64 " to log '%s' is unknown: %s",
                  number, log->name, why);
        return -WEIR_EUNKNOWN;
    }
    if (code != -ENOENT && code != -ELOOP)
        return weir_fail_in(code, "cannot append to log '%s'", log->name);
    return weir_fail(EBADMSG,
                     "cannot append record %" PRIu64 " to log '%s': something else has its name, "
                     "a directory or a link; remove it",
                     number, log->name);
}

/* Whose record stands at number? A lost answer may have been a yes, unless sure. */
static int whose(struct weir_log *log, uint64_t number, const uint8_t *nonce, bool sure,
                 const char *why)
{
    struct weir_log_record there;
    int read = weir_log_read(log, number, &there);
    if (read)
        return unreadable(log, number, read, sure, why);
    /* Ours, but whoever said so only saw it: it must also stay. */
    bool ours = !memcmp(there.nonce, nonce, WEIR_NONCE_BYTES);
    int code = ours ? weir_log_settle(log, &there)
                    : weir_fail(EAGAIN, "record %" PRIu64 " of log '%s' is somebody else's", number,
                                log->name);
    weir_log_record_free(&there);
    return ours && code ? -WEIR_EUNKNOWN : code;
}

int weir_log_append(struct weir_log *log, const struct weir_log_record *parent, const void *state,
                    size_t size)
{
    char name[WEIR_NAME_BYTES_MAX], why[WEIR_TEXT_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    enum weir_doubt doubt;
    int code = weir_store_check_writable(log->store);
    if (!code && size > WEIR_LOG_STATE_BYTES_MAX)
        code = weir_fail(E2BIG, "the state of log '%s' has %zu bytes, the limit is %zu", log->name,
                         size, WEIR_LOG_STATE_BYTES_MAX);
    if (code)
        return code;
    /* What another process wrote may not be durable yet: if it went and this stayed, there would
     * be a hole. */
    code = parent->number > log->durable ? weir_log_settle(log, parent) : 0;
    if (code)
        return code;
    code = weir_sys->random(nonce, sizeof nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    size_t bytes_size;
    uint8_t *bytes = record_encode(parent, nonce, state, size, &bytes_size);
    if (!bytes)
        return weir_fail_memory();
    record_name(name, log, parent->number + 1);
    code = weir_record_put(log->store, name, bytes, bytes_size, 0, &doubt);
    free(bytes);
    if (!code) {
        log->known = log->head = log->durable = parent->number + 1;
        return 0;
    }
    if (doubt == WEIR_DOUBT_SYNC) {
        weir_fail_in(code, "the outcome of appending to log '%s' is unknown", log->name);
        return -WEIR_EUNKNOWN;
    }
    if (doubt == WEIR_SURE && code != -EEXIST)
        return weir_fail_in(code, "cannot append to log '%s'", log->name);
    snprintf(why, sizeof why, "%s", weir_fail_last());
    return whose(log, parent->number + 1, nonce, doubt == WEIR_SURE, why);
}

int weir_log_settle(struct weir_log *log, const struct weir_log_record *record)
{
    char name[WEIR_NAME_BYTES_MAX];
    if (record->number <= log->durable)
        return 0;
    record_name(name, log, record->number);
    int code = weir_store_settle(log->store, name);
    if (code == -ENOENT)
        return weir_fail(EBADMSG, "record %" PRIu64 " of log '%s' has disappeared", record->number,
                         log->name);
    if (code)
        return weir_fail_in(code, "cannot make sure of record %" PRIu64 " of log '%s'",
                            record->number, log->name);
    log->durable = record->number;
    return 0;
}

/* ---- the chain ---- */

bool weir_log_record_number(const char *name, uint64_t *number)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WEIR_LOG_DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(name[i] - '0'), &sum))
            return false;
    }
    if (name[WEIR_LOG_DIGITS] || !sum)
        return false;
    *number = sum;
    return true;
}

int weir_log_last(struct weir_log *log, uint64_t below, uint64_t *last)
{
    char dir[WEIR_NAME_BYTES_MAX];
    struct weir_walk *walk;
    const char *name;
    snprintf(dir, sizeof dir, "%s%s~/", WEIR_DIR_LOG, log->name);
    int code = weir_walk_open(&walk, log->store, dir, NULL);
    if (code)
        return code;
    *last = 0;
    while ((code = weir_walk_next(walk, &name)) == 1) {
        uint64_t number;
        if (weir_log_record_number(name, &number) && number > *last && number < below)
            *last = number;
    }
    weir_walk_close(walk);
    return code;
}

int weir_log_check_head(struct weir_log *log, const struct weir_log_record *head)
{
    uint64_t last = 0;
    int code = weir_log_last(log, UINT64_MAX, &last);
    if (code || last <= head->number)
        return code;
    int there = exists(log, head->number + 1); /* appended meanwhile */
    return there < 0 ? there : there ? 0 : missing(log, head->number + 1);
}

/* Does the record at number follow *before, which it then replaces? */
static int verify_next(struct weir_log *log, uint64_t number, struct weir_log_record *before)
{
    struct weir_log_record record;
    int code = weir_log_read(log, number, &record);
    if (code == -ENOENT)
        return missing(log, number);
    if (code)
        return code;
    if (memcmp(record.parent, before->digest, WEIR_SHA256_BYTES))
        code = weir_fail(EBADMSG,
                         "record %" PRIu64 " of log '%s' does not follow record %" PRIu64
                         ": the chain is broken there",
                         number, log->name, number - 1);
    weir_log_record_free(before);
    *before = record;
    return code;
}

int weir_log_verify(struct weir_log *log, uint64_t *records)
{
    struct weir_log_record before = {0};
    uint64_t last = 0;
    *records = 0;
    int code = weir_store_check(log->store);
    if (!code)
        code = weir_log_last(log, UINT64_MAX, &last);
    while (!code && *records < last) {
        code = verify_next(log, *records + 1, &before);
        *records += !code;
    }
    weir_log_record_free(&before);
    return code;
}
