/* filters.c - what filters do on purpose: the faulty one fails, loses, cuts, flips and delays
 * exactly as told and the same each time; the limit keeps a rate, by a clock that the test moves.
 */
#include "stores.h"
#include "tier_calls.h"
#include "util/sys.h"

static void open_url(const char *text)
{
    struct weir_url url;
    OK(weir_url_parse(&url, text));
    OK(weir_tier_open(&tier, &url, NULL, true));
    weir_url_free(&url);
}

static void open_faulty(const struct weir_faults *faults)
{
    struct weir_tier *mem;
    OK(weir_tier_mem_open(&mem, 64 << 20));
    OK(weir_tier_faulty_open(&tier, mem, faults));
}

static void close_tier(void)
{
    weir_tier_close(tier);
    tier = NULL;
}

/* ---- failing ---- */

static void nth(void)
{
    open_url("mem:?fault_nth=3&fault_ops=put&fault_error=ENOSPC");
    OK(t_put("a", "1", 1));
    CHECK_EQ(t_stat("b", NULL, NULL), -ENOENT); /* not one of those that count */
    OK(t_put("b", "1", 1));
    CHECK_EQ(t_put("c", "1", 1), -ENOSPC);
    CHECK_EQ(t_stat("c", NULL, NULL), -ENOENT); /* it was not done */
    OK(t_put("c", "2", 1));
    for (int i = 0; i < 50; i++)
        OK(t_put(fresh("", ""), "x", 1));
    record_is("c", "2");
    close_tier();
}

static void text_tells(void)
{
    struct weir_req req;
    open_url("mem:?fault_nth=1&fault_ops=stat,load");
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = "some-name";
    CHECK_EQ(call(&req), -EIO);
    CHECK(strstr(req.text, "injected fault") && strstr(req.text, "some-name"));
    close_tier();
}

/* Once failed, everything that counts fails. */
static void lasting(void)
{
    open_url("mem:?fault_nth=2&fault_lasting=1&fault_ops=put,stat");
    OK(t_put("a", "1", 1));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(t_put("b", "1", 1), -EIO);
        CHECK_EQ(t_stat("a", NULL, NULL), -EIO);
        record_is("a", "1"); /* loads do not count */
    }
    close_tier();
}

/* Which of 2,000 requests fail, as a set of bits. */
static unsigned failures(uint64_t seed, double rate, uint8_t bits[250])
{
    struct weir_faults faults = {.seed = seed, .rate = rate, .error = "EIO", .ops = "stat"};
    unsigned count = 0;
    memset(bits, 0, 250);
    open_faulty(&faults);
    for (unsigned i = 0; i < 2000; i++)
        if (t_stat("x", NULL, NULL) == -EIO) {
            bits[i / 8] |= (uint8_t)(1u << i % 8);
            count++;
        }
    close_tier();
    return count;
}

static void rate(void)
{
    uint8_t one[250], again[250], other[250];
    unsigned count = failures(1, 0.25, one);
    CHECK(count > 400 && count < 600);
    CHECK_EQ(failures(1, 0.25, again), count);
    CHECK(!memcmp(one, again, sizeof one)); /* the same seed, the same faults */
    failures(2, 0.25, other);
    CHECK(memcmp(one, other, sizeof one));
    CHECK_EQ(failures(3, 1, one), 2000);
    CHECK_EQ(failures(3, 0, one), 0);
}

/* ---- losing answers ---- */

static void lost_answers(void)
{
    struct weir_faults faults = {.nth = 1, .after = true, .error = "ETIMEDOUT", .ops = "put"};
    struct weir_req req;
    open_faulty(&faults);
    weir_req_init(&req, WEIR_OP_PUT);
    req.name = "a";
    req.buf = "1";
    req.len = 1;
    CHECK_EQ(call(&req), -ETIMEDOUT);
    CHECK_EQ(req.doubt, WEIR_DOUBT_LOST);
    CHECK(strstr(req.text, "lost"));
    record_is("a", "1"); /* it was done */
    close_tier();
    faults.ops = "remove-if";
    open_faulty(&faults);
    OK(t_put("a", "1", 1));
    weir_req_init(&req, WEIR_OP_REMOVE_IF);
    req.name = "a";
    req.buf = "1";
    req.len = 1;
    CHECK_EQ(call(&req), -ETIMEDOUT);
    CHECK_EQ(req.doubt, WEIR_DOUBT_LOST);
    CHECK_EQ(t_stat("a", NULL, NULL), -ENOENT);
    close_tier();
}

/* A failure is not lost, and what a lost answer carried is not leaked. */
static void lost_handles(void)
{
    static const char *const ops[] = {"open", "create", "load"};
    for (int i = 0; i < 3; i++) {
        struct weir_faults faults = {.rate = 1, .after = true, .error = "EIO", .ops = ops[i]};
        struct weir_handle *handle = NULL;
        void *data;
        size_t size;
        open_faulty(&faults);
        OK(t_put("a", "1", 1));
        CHECK_EQ(t_open("a", &handle, NULL), i == 0 ? -EIO : 0);
        weir_handle_close(handle);
        handle = NULL;
        CHECK_EQ(t_create("b", 0, true, &handle), i == 1 ? -EIO : 0);
        weir_handle_close(handle);
        int code = t_load("a", 10, &data, &size);
        CHECK_EQ(code, i == 2 ? -EIO : 0);
        if (!code)
            free(data);
        if (i == 0)
            CHECK_EQ(t_open("none", &handle, NULL), -ENOENT);
        close_tier();
    }
}

/* ---- damaging what is read ---- */

static void truncated_reads(void)
{
    struct weir_faults faults = {.seed = 1, .truncate = 1, .error = "EIO"};
    struct weir_handle *blob;
    uint8_t buf[1000];
    void *data;
    size_t got, shorter = 0;
    open_faulty(&faults);
    blob_make("a", 1000, 1);
    OK(t_open("a", &blob, NULL));
    for (int i = 0; i < 50; i++) {
        OK(t_read(blob, buf, 1000, 0, &got));
        CHECK(got < 1000 && data_is(buf, got, 1, 0));
        shorter += got < 500;
    }
    CHECK(shorter > 10 && shorter < 40);
    weir_handle_close(blob);
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LOAD);
    req.name = "a";
    req.len = 1000;
    OK(call(&req));
    data = req.buf;
    CHECK(req.result < 1000);
    free(data);
    close_tier();
}

static void flipped_reads(void)
{
    struct weir_faults faults = {.seed = 5, .flip = 1, .error = "EIO", .ops = "read"};
    struct weir_handle *blob;
    uint8_t buf[1000], want[1000];
    size_t got;
    open_faulty(&faults);
    blob_make("a", 1000, 1);
    data_fill(want, 1000, 1, 0);
    OK(t_open("a", &blob, NULL));
    for (int i = 0; i < 50; i++) {
        unsigned bits = 0;
        OK(t_read(blob, buf, 1000, 0, &got));
        CHECK_EQ(got, 1000);
        for (int b = 0; b < 1000; b++)
            bits += (unsigned)__builtin_popcount(buf[b] ^ want[b]);
        CHECK_EQ(bits, 1);
    }
    weir_handle_close(blob);
    close_tier();
}

/* A store over such a tier never hands out what is wrong. */
static void store_over_bad_reads(void)
{
    static const char *const urls[] = {"mem:?fault_flip=0.5&fault_ops=read",
                                       "mem:?fault_truncate=0.5&fault_ops=read"};
    for (int i = 0; i < 2; i++) {
        weir_store *store = store_at(urls[i], "inline");
        weir_object *obj;
        uint8_t *buf = data_buffer(3 << 20, 0);
        unsigned good = 0, bad = 0;
        put_seed(store, "k", 3 << 20, 1);
        OK(weir_object_open(&obj, store, "k"));
        for (int round = 0; round < 40; round++) {
            size_t got;
            int code = weir_object_read(obj, buf, 1 << 20, (uint64_t)(round % 3) << 20, &got);
            CHECK(code == 0 || code == -EBADMSG);
            CHECK(code || (got == 1 << 20 && data_is(buf, got, 1, (uint64_t)(round % 3) << 20)));
            good += !code;
            bad += !!code;
        }
        CHECK(good > 5 && bad > 5);
        weir_object_close(obj);
        weir_store_close(store);
        data_free(buf, 0);
    }
}

/* ---- time ---- */

static uint64_t clock_ns = 1000000000, slept_ns;

static uint64_t test_now(enum weir_clock clock)
{
    (void)clock;
    return clock_ns;
}

static void test_sleep(uint64_t ns)
{
    clock_ns += ns;
    slept_ns += ns;
}

static void delay(void)
{
    open_url("mem:?fault_delay=5ms&fault_ops=put");
    slept_ns = 0;
    OK(t_put("a", "1", 1));
    OK(t_stat("a", NULL, NULL));
    OK(t_put("b", "1", 1));
    CHECK_EQ(slept_ns, 10000000);
    close_tier();
}

/* Moves bytes through the limit; the clock says how long that took. */
static double rate_of(const char *url, bool reads, size_t request, unsigned count)
{
    uint8_t *data = data_buffer(request, 0);
    struct weir_handle *handle;
    size_t got;
    memset(data, 0, request);
    open_url(url);
    OK(t_create("a", 0, false, &handle));
    if (reads) {
        OK(t_write(handle, data, request, 0, true));
        OK(t_commit(handle, request, NULL));
        weir_handle_close(handle);
        OK(t_open("a", &handle, NULL));
    }
    uint64_t start = clock_ns;
    for (unsigned i = 0; i < count; i++)
        if (reads)
            OK(t_read(handle, data, request, 0, &got));
        else
            OK(t_write(handle, data, request, 0, false));
    double seconds = (double)(clock_ns - start) / 1e9;
    weir_handle_close(handle);
    close_tier();
    data_free(data, 0);
    return seconds;
}

/* Within 5 % of what the rate allows, or one request. */
static void limit_is(const char *url, bool reads, size_t request, unsigned count, double rate_bytes)
{
    double seconds = rate_of(url, reads, request, count);
    double ideal = (double)request * count / rate_bytes, one = (double)request / rate_bytes;
    double slack = ideal * 0.05 > one ? ideal * 0.05 : one;
    if (slack < 0.05) /* the burst: a twentieth of a second */
        slack = 0.05;
    CHECK(seconds <= ideal + 1e-6 && seconds >= ideal - slack - 1e-6);
}

static void limits(void)
{
    limit_is("mem:?read_rate=100M", true, 1 << 20, 500, 100 << 20);
    limit_is("mem:?write_rate=100M", false, 1 << 20, 500, 100 << 20);
    limit_is("mem:?write_rate=1M", false, 4096, 3000, 1 << 20);
    limit_is("mem:?read_rate=1M", true, 4 << 20, 10, 1 << 20);
    /* The other direction is free. */
    CHECK(rate_of("mem:?read_rate=1M", false, 1 << 20, 20) == 0);
    CHECK(rate_of("mem:?write_rate=1M&read_rate=0", true, 4096, 20) == 0);
}

/* Records count as well; a load is paid for by whoever comes next. */
static void limits_of_records(void)
{
    char record[1000] = {0};
    void *data;
    size_t size;
    open_url("mem:?read_rate=10000&write_rate=10000");
    uint64_t start = clock_ns;
    for (int i = 0; i < 20; i++)
        OK(t_put(fresh("", ""), record, sizeof record));
    double seconds = (double)(clock_ns - start) / 1e9;
    CHECK(seconds >= 1.85 && seconds <= 2.0001);
    OK(t_put("r", record, sizeof record));
    start = clock_ns;
    for (int i = 0; i < 20; i++) {
        OK(t_load("r", 1000, &data, &size));
        free(data);
    }
    seconds = (double)(clock_ns - start) / 1e9;
    CHECK(seconds >= 1.75 && seconds <= 2.0001);
    close_tier();
}

static void refused(void)
{
    struct weir_tier *mem, *out = NULL;
    struct weir_faults faults = {.nth = 1, .error = "EWHATEVER"};
    OK(weir_tier_mem_open(&mem, 1 << 20));
    CHECK_EQ(weir_tier_faulty_open(&out, mem, &faults), -EINVAL); /* and mem is closed */
    CHECK(strstr(weir_fail_last(), "EWHATEVER"));
    faults = (struct weir_faults){.nth = 1, .error = "EIO", .ops = "put,nonsense"};
    OK(weir_tier_mem_open(&mem, 1 << 20));
    CHECK_EQ(weir_tier_faulty_open(&out, mem, &faults), -EINVAL);
    CHECK(!out);
}

int main(void)
{
    RUN(nth);
    RUN(text_tells);
    RUN(lasting);
    RUN(rate);
    RUN(lost_answers);
    RUN(lost_handles);
    RUN(truncated_reads);
    RUN(flipped_reads);
    RUN(store_over_bad_reads);
    RUN(refused);
    struct weir_sys table = weir_sys_real;
    table.now_ns = test_now;
    table.sleep_ns = test_sleep;
    weir_sys = &table;
    RUN(delay);
    RUN(limits);
    RUN(limits_of_records);
    weir_sys = &weir_sys_real;
    return TEST_RESULT;
}
