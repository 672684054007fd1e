/* data_order.c - the order of samples, for bench/data_order.py and the tests of shuffling.
 *
 *   data_order time SAMPLES SHARDS LANES WINDOW
 *       seconds to open an epoch, and to find positions, as one line of JSON
 *   data_order dump SAMPLES SHARDS LANES WINDOW SEED EPOCHS
 *       the samples of epochs 0, 1, … in their order, 8 bytes each, little-endian
 *
 * A WINDOW of 0 is everything: a full shuffle. Shards are as even as they can be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/order.h"
#include "util/bytes.h"
#include "util/perm.h"
#include "weir.h"

enum { FINDS = 1000000, BATCH = 4096, BATCHES = 256, RANKS = 8 };

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "data_order: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct weir_order *open_order(char **args, uint64_t seed)
{
    uint64_t samples = strtoull(args[0], NULL, 10), shards = strtoull(args[1], NULL, 10);
    uint64_t window = strtoull(args[3], NULL, 10);
    struct weir_order_options opts = {.shuffle = true,
                                      .seed = seed,
                                      .lanes = (uint32_t)strtoul(args[2], NULL, 10),
                                      .window = window ? window : UINT64_MAX};
    uint64_t *counts = calloc(shards + 1, sizeof *counts);
    if (!counts || !shards)
        die("SHARDS");
    for (uint64_t i = 0; i < shards; i++)
        counts[i] = samples / shards + (i < samples % shards);
    struct weir_order *order;
    if (weir_order_open(&order, counts, shards, &opts))
        die("cannot open the order");
    free(counts);
    return order;
}

static struct weir_epoch *open_epoch(const struct weir_order *order, uint64_t number)
{
    struct weir_epoch *epoch;
    if (weir_epoch_open(&epoch, order, number))
        die("cannot open an epoch");
    return epoch;
}

/* ---- time ---- */

static int measure(char **args)
{
    double start_s = now_s();
    struct weir_order *order = open_order(args, 1);
    double order_s = now_s() - start_s;
    start_s = now_s();
    struct weir_epoch *epoch = open_epoch(order, 0);
    double open_s = now_s() - start_s;

    /* Each place depends on what was found before: nothing is found ahead of time. */
    uint64_t n = weir_order_count(order), found = 0;
    start_s = now_s();
    for (uint64_t i = 0; i < FINDS; i++)
        found = weir_epoch_sample(epoch, (weir_perm_key(2, i) + found) % n);
    double find_s = (now_s() - start_s) / FINDS;
    struct weir_window window = {.first = found};
    start_s = now_s();
    for (uint64_t i = 0; i < FINDS; i++)
        weir_epoch_window(epoch, (weir_perm_key(3, i) + window.first) % n, &window);
    double window_s = (now_s() - start_s) / FINDS;
    static uint64_t out[BATCH];
    start_s = now_s();
    for (uint64_t i = 0; i < BATCHES; i++)
        weir_deal(order, i * BATCH, BATCH, (uint32_t)(i % RANKS), RANKS, out);
    double deal_s = (now_s() - start_s) / (BATCHES * BATCH / RANKS);

    printf("{\"samples\": %s, \"shards\": %s, \"lanes\": %s, \"window\": %s, \"order_s\": %.9f, "
           "\"open_s\": %.9f, \"find_s\": %.12f, \"window_s\": %.12f, \"deal_s\": %.12f}\n",
           args[0], args[1], args[2], args[3], order_s, open_s, find_s, window_s, deal_s);
    weir_epoch_close(epoch);
    weir_order_close(order);
    return 0;
}

/* ---- dump ---- */

static int dump(char **args)
{
    uint64_t epochs = strtoull(args[5], NULL, 10);
    struct weir_order *order = open_order(args, strtoull(args[4], NULL, 10));
    for (uint64_t number = 0; number < epochs; number++) {
        struct weir_epoch *epoch = open_epoch(order, number);
        for (uint64_t k = 0; k < weir_order_count(order); k++) {
            uint8_t bytes[8];
            weir_store_le(bytes, weir_epoch_sample(epoch, k), sizeof bytes);
            if (fwrite(bytes, 1, sizeof bytes, stdout) != sizeof bytes)
                die("cannot write");
        }
        weir_epoch_close(epoch);
    }
    weir_order_close(order);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "time"))
        return measure(argv + 2);
    if (argc == 8 && !strcmp(argv[1], "dump"))
        return dump(argv + 2);
    fprintf(stderr, "usage: data_order time|dump SAMPLES SHARDS LANES WINDOW [SEED EPOCHS]\n");
    return 2;
}
