/* Logs: one winner a number, a head that is found with few requests, and damage that is named. */
#include <pthread.h>

#include "stores.h"

#include "store/log.h"
#include "util/sys.h"

enum { MANY = 100000, RACERS = 4, RACE_RECORDS = 60 };

static void append_text(struct weir_log *log, const char *text)
{
    struct weir_log_record head;
    OK(weir_log_head(log, &head));
    OK(weir_log_append(log, &head, text, strlen(text)));
    weir_log_record_free(&head);
}

static bool state_is(const struct weir_log_record *record, const char *text)
{
    size_t size = strlen(text);
    return record->state_size == size && (!size || !memcmp(record->state, text, size));
}

static void check_head(struct weir_log *log, uint64_t number, const char *text)
{
    struct weir_log_record head;
    OK(weir_log_head(log, &head));
    CHECK_EQ(head.number, number);
    CHECK(state_is(&head, text));
    weir_log_record_free(&head);
}

static void appends_and_heads(void)
{
    weir_store *store = store_at(tmp_path("store"), "inline");
    struct weir_log *log, *other;
    struct weir_log_record record;
    uint64_t records;
    OK(weir_log_open(&log, store, "a/b"));
    OK(weir_log_open(&other, store, "a/b"));
    CHECK(!strcmp(weir_log_name(log), "a/b"));
    check_head(log, 0, "");
    CHECK_EQ(weir_log_moved(log), 0);
    CHECK_EQ(weir_log_read(log, 1, &record), -ENOENT);
    OK(weir_log_verify(log, &records));
    CHECK_EQ(records, 0);
    for (unsigned i = 1; i <= 70; i++) { /* whatever the number, a fresh handle finds it */
        struct weir_log *fresh;
        char text[32];
        snprintf(text, sizeof text, "state %u", i);
        append_text(log, text);
        OK(weir_log_open(&fresh, store, "a/b"));
        check_head(fresh, i, text);
        CHECK_EQ(weir_log_moved(fresh), 0);
        weir_log_close(fresh);
    }
    CHECK_EQ(weir_log_moved(other), 1);
    check_head(other, 70, "state 70");
    CHECK_EQ(weir_log_moved(other), 0);
    OK(weir_log_read(other, 7, &record));
    CHECK(record.number == 7 && state_is(&record, "state 7"));
    weir_log_record_free(&record);
    CHECK_EQ(weir_log_read(other, 71, &record), -ENOENT);
    OK(weir_log_verify(other, &records));
    CHECK_EQ(records, 70);
    weir_log_close(log);
    weir_log_close(other);
    weir_store_close(store);
}

/* ---- what it costs ---- */

static uint64_t requests(weir_store *store, const char *op)
{
    weir_stat_row rows[32];
    int count = weir_store_stats(store, rows, 32);
    CHECK(count >= 0);
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        if (!op || !strcmp(rows[i].op, op))
            sum += rows[i].count;
    return sum;
}

/* The chain of these records is not one; the head is found by their numbers alone. */
static void head_takes_few_requests(void)
{
    weir_store *store = store_at("mem:?size=1G&stats=1", "inline");
    struct weir_log *log, *fresh;
    struct weir_log_record head;
    OK(weir_log_open(&log, store, "long"));
    for (uint64_t i = 0; i < MANY; i++) {
        struct weir_log_record parent = {.number = i};
        OK(weir_log_append(log, &parent, &i, sizeof i));
    }
    uint64_t before = requests(store, NULL);
    OK(weir_log_open(&fresh, store, "long"));
    CHECK_EQ(requests(store, NULL), before);
    OK(weir_log_head(fresh, &head));
    CHECK_EQ(head.number, MANY);
    weir_log_record_free(&head);
    CHECK(requests(store, NULL) - before <= 2 * 17 + 3); /* 2^17 > MANY */
    CHECK_EQ(requests(store, "list"), 0);
    before = requests(store, NULL);
    OK(weir_log_head(fresh, &head)); /* nothing was appended since */
    weir_log_record_free(&head);
    CHECK_EQ(requests(store, NULL) - before, 2);
    CHECK_EQ(weir_log_moved(fresh), 0);
    CHECK_EQ(requests(store, NULL) - before, 3);
    for (uint64_t i = MANY; i < MANY + 10; i++) {
        struct weir_log_record parent = {.number = i};
        OK(weir_log_append(log, &parent, &i, sizeof i));
    }
    before = requests(store, NULL);
    OK(weir_log_head(fresh, &head)); /* ten were */
    CHECK_EQ(head.number, MANY + 10);
    weir_log_record_free(&head);
    CHECK(requests(store, NULL) - before <= 2 * 4 + 3);
    weir_log_close(log);
    weir_log_close(fresh);
    weir_store_close(store);
}

/* ---- several at once ---- */

static void a_loser_is_told(void)
{
    weir_store *store = store_at(tmp_path("store"), "inline");
    struct weir_log *a, *b;
    struct weir_log_record head_a, head_b;
    uint64_t records;
    OK(weir_log_open(&a, store, "log"));
    OK(weir_log_open(&b, store, "log"));
    append_text(a, "first");
    OK(weir_log_head(a, &head_a));
    OK(weir_log_head(b, &head_b));
    OK(weir_log_append(a, &head_a, "a's", 3));
    CHECK_EQ(weir_log_append(b, &head_b, "b's", 3), -EAGAIN);
    CHECK(strstr(weir_error_text(), "record 2"));
    /* Also who is far behind. */
    append_text(a, "third");
    CHECK_EQ(weir_log_append(b, &head_b, "b's", 3), -EAGAIN);
    weir_log_record_free(&head_a);
    weir_log_record_free(&head_b);
    append_text(b, "b's");
    check_head(a, 4, "b's");
    OK(weir_log_verify(a, &records));
    CHECK_EQ(records, 4);
    weir_log_close(a);
    weir_log_close(b);
    weir_store_close(store);
}

struct racer {
    pthread_t thread;
    const char *dir;
    unsigned id, lost;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    weir_store *store = store_at(r->dir, "inline");
    struct weir_log *log;
    OK(weir_log_open(&log, store, "race"));
    for (unsigned i = 0; i < RACE_RECORDS;) {
        struct weir_log_record head;
        unsigned state[2] = {r->id, i};
        OK(weir_log_head(log, &head));
        int code = weir_log_append(log, &head, state, sizeof state);
        CHECK(code == 0 || code == -EAGAIN);
        weir_log_record_free(&head);
        i += !code;
        r->lost += code != 0;
    }
    weir_log_close(log);
    weir_store_close(store);
    return NULL;
}

/* Every append that was acknowledged stands in the log once, in its writer's order. */
static void racers_make_one_chain(void)
{
    const char *dir = tmp_path("store");
    weir_store *store = store_at(dir, "inline");
    struct racer racers[RACERS] = {0};
    unsigned next[RACERS] = {0};
    struct weir_log *log;
    uint64_t records;
    for (unsigned i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.dir = dir, .id = i};
        CHECK(pthread_create(&racers[i].thread, NULL, race, &racers[i]) == 0);
    }
    for (unsigned i = 0; i < RACERS; i++)
        pthread_join(racers[i].thread, NULL);
    OK(weir_log_open(&log, store, "race"));
    OK(weir_log_verify(log, &records));
    CHECK_EQ(records, RACERS * RACE_RECORDS);
    for (uint64_t i = 1; i <= records; i++) {
        struct weir_log_record record;
        unsigned state[2];
        OK(weir_log_read(log, i, &record));
        CHECK_EQ(record.state_size, sizeof state);
        memcpy(state, record.state, sizeof state);
        CHECK(state[0] < RACERS);
        CHECK_EQ(state[1], next[state[0]]++);
        weir_log_record_free(&record);
    }
    weir_log_close(log);
    weir_store_close(store);
}

/* The answer of every PUT is lost: the nonce tells whose record stands there. */
static void lost_answers_are_settled(void)
{
    char url[PATH_MAX + 128];
    const char *dir = tmp_path("store");
    weir_store *good = store_at(dir, "inline");
    snprintf(url, sizeof url, "file:%s?fault_rate=1&fault_after=1&fault_ops=put", dir);
    weir_store *store = store_at(url, "inline");
    struct weir_log *log, *other;
    struct weir_log_record head;
    uint64_t records;
    OK(weir_log_open(&log, store, "log"));
    OK(weir_log_open(&other, good, "log"));
    append_text(log, "one");
    OK(weir_log_head(log, &head));
    append_text(other, "two");
    CHECK_EQ(weir_log_append(log, &head, "mine", 4), -EAGAIN);
    weir_log_record_free(&head);
    append_text(log, "three");
    check_head(other, 3, "three");
    OK(weir_log_verify(other, &records));
    CHECK_EQ(records, 3);
    weir_log_close(log);
    weir_log_close(other);
    weir_store_close(store);
    weir_store_close(good);
}

/* ---- damage ---- */

static struct {
    const char *dir;
    weir_store *store;
    struct weir_log *log;
} hurt;

static void fresh_log(void)
{
    hurt.dir = tmp_path("store");
    hurt.store = store_at(hurt.dir, "inline");
    OK(weir_log_open(&hurt.log, hurt.store, "run"));
    for (unsigned i = 1; i <= 6; i++) {
        char text[32];
        snprintf(text, sizeof text, "state %u", i);
        append_text(hurt.log, text);
    }
}

static const char *record_path(const char *log, unsigned number)
{
    char name[128];
    snprintf(name, sizeof name, ".weir/log/%s~/%020u", log, number);
    return path_in(hurt.dir, name);
}

/* Verifying names the record, and says how many before it are good. */
static void expect_damage(unsigned number, int code, const char *why)
{
    uint64_t records;
    char which[32];
    CHECK_EQ(weir_log_verify(hurt.log, &records), code);
    CHECK_EQ(records, number - 1);
    snprintf(which, sizeof which, "record %u ", number);
    CHECK(strstr(weir_error_text(), which) && strstr(weir_error_text(), "'run'"));
    CHECK(strstr(weir_error_text(), why));
    weir_log_close(hurt.log);
    weir_store_close(hurt.store);
}

static void flipped_bits_are_located(void)
{
    for (unsigned i = 0; i < 6; i++) {
        fresh_log();
        int fd = file_force_open(record_path("run", i + 1));
        fd_flip(fd, 8 * 17 * i + 3); /* magic, number, parent, nonce, … */
        close(fd);
        expect_damage(i + 1, -EBADMSG, "damaged");
    }
}

static void missing_and_short_records_are_located(void)
{
    fresh_log();
    CHECK(unlink(record_path("run", 3)) == 0);
    expect_damage(3, -EBADMSG, "missing");
    fresh_log();
    CHECK(unlink(record_path("run", 1)) == 0);
    expect_damage(1, -EBADMSG, "missing");
    fresh_log();
    int fd = file_force_open(record_path("run", 4));
    CHECK(ftruncate(fd, 100) == 0);
    close(fd);
    expect_damage(4, -EBADMSG, "damaged");
    fresh_log();
    fd = file_force_open(record_path("run", 2));
    CHECK(ftruncate(fd, (off_t)WEIR_LOG_STATE_BYTES_MAX + 4096) == 0);
    close(fd);
    expect_damage(2, -EBADMSG, "too long");
}

/* A record that was lost does not pass for the end, whichever it is: nobody appends in the hole. */
static void holes_are_not_the_end(void)
{
    for (unsigned lost = 1; lost <= 5; lost++) {
        struct weir_log_record head;
        struct weir_log *fresh;
        char which[32];
        fresh_log();
        CHECK(unlink(record_path("run", lost)) == 0);
        OK(weir_log_open(&fresh, hurt.store, "run"));
        int code = weir_log_head(fresh, &head);
        if (!code) { /* the search jumped over it and found the end */
            CHECK_EQ(head.number, 6);
            weir_log_record_free(&head);
        } else {
            CHECK_EQ(code, -EBADMSG);
            snprintf(which, sizeof which, "record %u of log 'run'", lost);
            CHECK(strstr(weir_error_text(), which) && strstr(weir_error_text(), "from a copy"));
            CHECK_EQ(weir_log_head(fresh, &head), -EBADMSG); /* and again */
        }
        CHECK(lost == 2 || lost == 4 ? code == 0 : code != 0);
        weir_log_close(fresh);
        expect_damage(lost, -EBADMSG, "missing");
    }
}

/* The newest one, lost since this handle saw it. */
static void a_lost_head_is_missing(void)
{
    struct weir_log_record head;
    fresh_log();
    CHECK(unlink(record_path("run", 6)) == 0);
    CHECK_EQ(weir_log_head(hurt.log, &head), -EBADMSG);
    CHECK(strstr(weir_error_text(), "record 6 of log 'run' is missing"));
    weir_log_close(hurt.log);
    weir_store_close(hurt.store);
}

/* What else stands beside the records is none, whatever a lenient parser makes of it. */
static void other_files_are_no_records(void)
{
    static const char *const none[] = {"-1",
                                       "+9",
                                       " 7",
                                       "0x7",
                                       "7",
                                       "00000000000000000000",
                                       "-0000000000000000001",
                                       "00000000000000000007~",
                                       "99999999999999999999",
                                       "000000000000000000007"};
    struct weir_log_record head;
    uint64_t number, records;
    fresh_log();
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        char name[64];
        CHECK(!weir_log_record_number(none[i], &number));
        snprintf(name, sizeof name, ".weir/log/run~/%s", none[i]);
        file_write(path_in(hurt.dir, name), "x", 1);
    }
    CHECK(weir_log_record_number("18446744073709551615", &number) && number == UINT64_MAX);
    OK(weir_log_verify(hurt.log, &records));
    CHECK_EQ(records, 6);
    OK(weir_log_head(hurt.log, &head));
    OK(weir_log_check_head(hurt.log, &head));
    weir_log_record_free(&head);
    weir_log_close(hurt.log);
    weir_store_close(hurt.store);
}

/* It is known that nothing was appended, and why: the caller need not ask again for ever. */
static void what_is_no_record_stands_in_the_way(void)
{
    for (unsigned link = 0; link < 2; link++) {
        struct weir_log_record head;
        fresh_log();
        const char *path = record_path("run", 7);
        CHECK((link ? symlink("nowhere", path) : mkdir(path, 0755)) == 0);
        OK(weir_log_head(hurt.log, &head));
        CHECK_EQ(head.number, 6);
        CHECK_EQ(weir_log_append(hurt.log, &head, "x", 1), -EBADMSG);
        CHECK(strstr(weir_error_text(), "record 7 to log 'run'"));
        CHECK(strstr(weir_error_text(), "remove it"));
        CHECK((link ? unlink(path) : rmdir(path)) == 0);
        OK(weir_log_append(hurt.log, &head, "x", 1));
        weir_log_record_free(&head);
        weir_log_close(hurt.log);
        weir_store_close(hurt.store);
    }
}

static void swapped_records_are_located(void)
{
    char from[2 * PATH_MAX], aside[2 * PATH_MAX + 8];
    fresh_log();
    snprintf(from, sizeof from, "%s", record_path("run", 4));
    snprintf(aside, sizeof aside, "%s.aside", hurt.dir);
    CHECK(rename(from, aside) == 0);
    CHECK(rename(record_path("run", 5), from) == 0);
    CHECK(rename(aside, record_path("run", 5)) == 0);
    expect_damage(4, -EBADMSG, "another number");
    /* A record of another log, good in itself, with the right number. */
    fresh_log();
    struct weir_log *other;
    OK(weir_log_open(&other, hurt.store, "other"));
    for (unsigned i = 0; i < 4; i++)
        append_text(other, "x");
    CHECK(rename(record_path("other", 4), record_path("run", 4)) == 0);
    weir_log_close(other);
    expect_damage(4, -EBADMSG, "does not follow record 3");
}

/* What a newer Weir wrote is not damage. */
static void newer_versions_are_told_apart(void)
{
    uint8_t sum[WEIR_SUM_BYTES];
    size_t size;
    fresh_log();
    const char *path = record_path("run", 6);
    uint8_t *bytes = file_read(path, &size);
    bytes[8] = 2;
    weir_sum(sum, bytes, size - sizeof sum);
    memcpy(bytes + size - sizeof sum, sum, sizeof sum);
    CHECK(unlink(path) == 0);
    file_write(path, bytes, size);
    free(bytes);
    struct weir_log_record head;
    CHECK_EQ(weir_log_head(hurt.log, &head), -EPROTO);
    expect_damage(6, -EPROTO, "newer Weir");
}

/* A record that was read and then disappeared is not called settled. */
static void settling(void)
{
    struct weir_log_record head, none = {0};
    struct weir_log *other; /* it does not know yet what is durable */
    fresh_log();
    OK(weir_log_open(&other, hurt.store, "run"));
    OK(weir_log_settle(hurt.log, &none));
    OK(weir_log_head(hurt.log, &head));
    OK(weir_log_settle(hurt.log, &head));
    OK(weir_log_settle(hurt.log, &head));
    CHECK(unlink(record_path("run", 6)) == 0);
    CHECK_EQ(weir_log_settle(other, &head), -EBADMSG);
    CHECK(strstr(weir_error_text(), "disappeared"));
    weir_log_close(other);
    weir_log_record_free(&head);
    weir_log_close(hurt.log);
    weir_store_close(hurt.store);
}

/* ---- overtaken while looking ---- */

static struct weir_log *appender;
static unsigned stats_until; /* the appender comes after that many calls of stat */

static int overtaken_stat(int dirfd, const char *path, struct weir_sys_stat *st)
{
    int code = weir_sys_real.stat(dirfd, path, st);
    if (appender && stats_until-- == 0) {
        struct weir_log *log = appender;
        appender = NULL;
        for (unsigned i = 0; i < 3; i++)
            append_text(log, "more");
    }
    return code;
}

/* Records that were appended between two probes leave no hole, whichever probes. */
static void appended_meanwhile_is_no_hole(void)
{
    struct weir_sys table = weir_sys_real;
    bool came = true;
    table.stat = overtaken_stat;
    for (unsigned at = 0; came; at++) {
        struct weir_log_record head;
        struct weir_log *fresh, *other;
        fresh_log();
        OK(weir_log_open(&other, hurt.store, "run"));
        OK(weir_log_open(&fresh, hurt.store, "run"));
        appender = other;
        stats_until = at;
        weir_sys = &table;
        OK(weir_log_head(fresh, &head));
        weir_sys = &weir_sys_real;
        came = !appender;
        appender = NULL;
        CHECK(head.number >= 6 && head.number <= (came ? 9 : 6));
        weir_log_record_free(&head);
        check_head(fresh, came ? 9 : 6, came ? "more" : "state 6");
        CHECK(came || at >= 6); /* it did look more often than that */
        weir_log_close(other);
        weir_log_close(fresh);
        weir_log_close(hurt.log);
        weir_store_close(hurt.store);
    }
}

/* ---- limits ---- */

static void names_at_their_limits(void)
{
    char name[WEIR_KEY_BYTES_MAX + 2];
    weir_store *store = store_at(tmp_path("store"), "inline");
    struct weir_log *log;
    uint64_t records;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % (WEIR_PART_BYTES_MAX + 1) == WEIR_PART_BYTES_MAX ? '/' : 'n';
    name[WEIR_KEY_BYTES_MAX + 1] = 0;
    CHECK_EQ(weir_log_open(&log, store, name), -ENAMETOOLONG);
    name[WEIR_KEY_BYTES_MAX] = 0;
    OK(weir_log_open(&log, store, name));
    append_text(log, "one");
    append_text(log, "two");
    check_head(log, 2, "two");
    OK(weir_log_verify(log, &records));
    CHECK_EQ(records, 2);
    weir_log_close(log);
    memset(name, 'n', WEIR_PART_BYTES_MAX + 1);
    name[WEIR_PART_BYTES_MAX + 1] = 0;
    CHECK_EQ(weir_log_open(&log, store, name), -ENAMETOOLONG);
    CHECK_EQ(weir_log_open(&log, store, ""), -EINVAL);
    CHECK_EQ(weir_log_open(&log, store, "a~"), -EINVAL);
    weir_store_close(store);
}

static void states_at_their_limits(void)
{
    weir_store *store = store_at("mem:", "inline");
    uint8_t *state = calloc(1, WEIR_LOG_STATE_BYTES_MAX + 1);
    struct weir_log_record head, none = {0};
    struct weir_log *log;
    OK(weir_log_open(&log, store, "log"));
    data_fill(state, WEIR_LOG_STATE_BYTES_MAX, 1, 0);
    CHECK_EQ(weir_log_append(log, &none, state, WEIR_LOG_STATE_BYTES_MAX + 1), -E2BIG);
    check_head(log, 0, "");
    OK(weir_log_append(log, &none, state, WEIR_LOG_STATE_BYTES_MAX));
    OK(weir_log_head(log, &head));
    CHECK_EQ(head.state_size, WEIR_LOG_STATE_BYTES_MAX);
    CHECK(data_is(head.state, head.state_size, 1, 0));
    OK(weir_log_append(log, &head, NULL, 0)); /* nothing is a state, too */
    weir_log_record_free(&head);
    check_head(log, 2, "");
    free(state);
    weir_log_close(log);
    weir_store_close(store);
}

int main(void)
{
    RUN(appends_and_heads);
    RUN(head_takes_few_requests);
    RUN(a_loser_is_told);
    RUN(racers_make_one_chain);
    RUN(lost_answers_are_settled);
    RUN(flipped_bits_are_located);
    RUN(missing_and_short_records_are_located);
    RUN(holes_are_not_the_end);
    RUN(a_lost_head_is_missing);
    RUN(other_files_are_no_records);
    RUN(what_is_no_record_stands_in_the_way);
    RUN(swapped_records_are_located);
    RUN(newer_versions_are_told_apart);
    RUN(settling);
    RUN(appended_meanwhile_is_no_hole);
    RUN(names_at_their_limits);
    RUN(states_at_their_limits);
    return TEST_RESULT;
}
