/* The statistics of a store: every request is counted once, with its bytes, under a clock that the
 * test moves.
 */
#include "stores.h"
#include "util/sys.h"

static uint64_t clock_ns;
static uint64_t step_ns;

static uint64_t stepping_now(enum weir_clock clock)
{
    (void)clock;
    return clock_ns += step_ns;
}

static const weir_stat_row *row_of(weir_store *store, const char *op)
{
    static weir_stat_row rows[32];
    int count = weir_store_stats(store, rows, 32);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].op, op))
            return &rows[i];
    static const weir_stat_row none;
    return &none;
}

static void not_asked_for(void)
{
    weir_store *store = store_at("mem:", NULL);
    weir_stat_row row;
    CHECK_EQ(weir_store_stats(store, &row, 1), -ENOTSUP);
    CHECK(strstr(weir_error_text(), "?stats=1"));
    weir_store_close(store);
}

static void counts(void)
{
    weir_store *store = store_at("mem:?stats=1", NULL);
    uint64_t loads = row_of(store, "load")->count, puts = row_of(store, "put")->count;
    put_seed(store, "k", (2 << 20) + 100, 1);
    CHECK_EQ(row_of(store, "write")->count, 3);
    CHECK_EQ(row_of(store, "write")->bytes, (2 << 20) + 100);
    CHECK_EQ(row_of(store, "create")->count, 1);
    CHECK_EQ(row_of(store, "commit")->count, 1);
    CHECK_EQ(row_of(store, "put")->count, puts + 1);
    CHECK(row_of(store, "load")->count > loads);
    get_seed(store, "k", (2 << 20) + 100, 1);
    CHECK_EQ(row_of(store, "read")->bytes, (2 << 20) + 100);
    uint64_t errors = row_of(store, "load")->errors;
    CHECK_EQ(get_code(store, "nothing"), -ENOENT);
    CHECK(row_of(store, "load")->errors > errors);
    weir_stat_row two[2];
    CHECK_EQ(weir_store_stats(store, two, 2), 2);
    CHECK_EQ(weir_store_stats(store, two, 0), 0);
    weir_store_close(store);
}

/* Each request takes one step of the clock; percentiles are within an eighth. */
static void latencies(void)
{
    static const uint64_t steps_us[] = {1, 7, 8, 100, 12345, 3000000};
    struct weir_sys table = weir_sys_real;
    table.now_ns = stepping_now;
    weir_sys = &table;
    for (size_t i = 0; i < sizeof steps_us / sizeof steps_us[0]; i++) {
        step_ns = steps_us[i] * 1000;
        weir_store *store = store_at("mem:?stats=1", "inline");
        CHECK_EQ(get_code(store, "nothing"), -ENOENT);
        const weir_stat_row *row = row_of(store, "load");
        CHECK_EQ(row->latency_us_max, steps_us[i]);
        CHECK(row->latency_us_p50 <= steps_us[i] && row->latency_us_p50 >= steps_us[i] * 7 / 8);
        CHECK(row->latency_us_p99 <= steps_us[i] && row->latency_us_p99 >= row->latency_us_p50);
        weir_store_close(store);
    }
    weir_sys = &weir_sys_real;
}

int main(void)
{
    RUN(not_asked_for);
    RUN(counts);
    RUN(latencies);
    return TEST_RESULT;
}
