/* A keyed bijection: every value once, the same for ever, and as good as chance. */
#include <math.h>
#include <stdbool.h>

#include "test.h"
#include "util/perm.h"

static void check_bijection(uint64_t key, uint64_t n)
{
    struct weir_perm perm;
    bool *seen = calloc(n, 1);
    CHECK(seen);
    weir_perm_init(&perm, key, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = weir_perm_at(&perm, i);
        CHECK(at < n && !seen[at]);
        seen[at] = true;
    }
    free(seen);
}

static void every_value_once(void)
{
    static const uint64_t sizes[] = {1000, 1023, 1024, 1025, 65535, 65536, 65537, 300000};
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t key = 0; key < 5; key++)
            check_bijection(key, n);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_bijection(weir_perm_key(1, i), sizes[i]);
}

static void huge(void)
{
    static const uint64_t sizes[] = {1000000000000u, INT64_MAX, UINT64_MAX};
    for (size_t s = 0; s < 3; s++) {
        struct weir_perm perm;
        uint64_t seen[512];
        weir_perm_init(&perm, 9, sizes[s]);
        for (uint64_t i = 0; i < 512; i++) {
            seen[i] = weir_perm_at(&perm, sizes[s] - 1 - i);
            CHECK(seen[i] < sizes[s]);
            for (uint64_t k = 0; k < i; k++)
                CHECK(seen[k] != seen[i]);
        }
    }
}

/* What a saved state relies on: written down once, never another. */
static void same_for_ever(void)
{
    static const struct {
        uint64_t key, n, at, is;
    } known[] = {
        {0, 1, 0, 0},
        {1, 10, 0, 0},
        {1, 10, 9, 7},
        {2, 50, 49, 0},
        {3, 1000, 7, 52},
        {4, 65536, 65535, 7105},
        {5, 100000000, 12345678, 74624308},
        {6, 1000000000000, 1, 488209123115},
        {7, UINT64_MAX, 0, 16306824056446670834u},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct weir_perm perm;
        weir_perm_init(&perm, known[i].key, known[i].n);
        CHECK_EQ(weir_perm_at(&perm, known[i].at), known[i].is);
    }
    CHECK_EQ(weir_perm_key(0, 0), 5197578548964807871u);
    CHECK_EQ(weir_perm_key(1, 2), 17405687883870564846u);
}

/* How far counts are from equal ones, in standard deviations of what chance gives. */
static double away(const uint32_t *counts, uint64_t bins, double total, double possible)
{
    double expect = total / possible, sum = 0;
    for (uint64_t i = 0; i < bins; i++)
        sum += counts[i] ? (counts[i] - expect) * (counts[i] - expect) / expect : 0;
    uint64_t empty = 0;
    for (uint64_t i = 0; i < bins; i++)
        empty += !counts[i];
    sum += ((double)empty - ((double)bins - possible)) * expect; /* possible ones never seen */
    return fabs(sum - (possible - 1)) / sqrt(2 * (possible - 1));
}

/* All orders of few things are equally frequent, for keys in a row and for derived ones. */
static void all_orders_of_few(void)
{
    uint64_t orders = 1;
    for (uint64_t n = 2; n <= 6; n++) {
        orders *= n;
        uint64_t keys = orders * 100 < 10000 ? 10000 : orders * 100;
        for (int derived = 0; derived < 2; derived++) {
            uint32_t counts[720] = {0};
            for (uint64_t key = 0; key < keys; key++) {
                struct weir_perm perm;
                uint64_t order = 0;
                weir_perm_init(&perm, derived ? weir_perm_key(42, key) : key, n);
                for (uint64_t i = 0; i < n; i++) {
                    uint64_t smaller = 0;
                    for (uint64_t k = i + 1; k < n; k++)
                        smaller += weir_perm_at(&perm, k) < weir_perm_at(&perm, i);
                    order = order * (n - i) + smaller;
                }
                counts[order]++;
            }
            CHECK(away(counts, orders, (double)keys, (double)orders) < 4);
        }
    }
}

/* Three in a row go to any three equally often: the network at its narrowest, and the word. */
static void any_three(void)
{
    static const uint64_t sizes[] = {9, 16, 17, 31, 32, 33};
    static uint32_t counts[33 * 33 * 33];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t n = sizes[s], keys = n * n * n * 60;
        memset(counts, 0, sizeof counts);
        for (uint64_t key = 0; key < keys; key++) {
            struct weir_perm perm;
            weir_perm_init(&perm, weir_perm_key(7, key), n);
            uint64_t a = weir_perm_at(&perm, n - 3), b = weir_perm_at(&perm, n - 2);
            counts[(a * n + b) * n + weir_perm_at(&perm, n - 1)]++;
        }
        double possible = (double)(n * (n - 1) * (n - 2));
        CHECK(away(counts, n * n * n, (double)keys, possible) < 4);
    }
}

/* Two in a row, where the network has fewer rounds. */
static void any_two(void)
{
    static const uint64_t sizes[] = {65, 100, 128, 300};
    static uint32_t counts[300 * 300];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t n = sizes[s], keys = n * n * 10;
        memset(counts, 0, sizeof counts);
        for (uint64_t key = 0; key < keys; key++) {
            struct weir_perm perm;
            weir_perm_init(&perm, weir_perm_key(8, key), n);
            counts[weir_perm_at(&perm, 0) * n + weir_perm_at(&perm, 1)]++;
        }
        CHECK(away(counts, n * n, (double)keys, (double)(n * (n - 1))) < 4);
    }
}

int main(void)
{
    RUN(every_value_once);
    RUN(huge);
    RUN(same_for_ever);
    RUN(all_orders_of_few);
    RUN(any_three);
    RUN(any_two);
    return TEST_RESULT;
}
