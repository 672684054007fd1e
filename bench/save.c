/* save.c - what a checkpoint costs: how long weir_ckpt_save() keeps its caller, beside a memcpy of
 * as many bytes between two warm buffers; and how fast it is durable. One line a save, as JSON.
 *
 *   bench-save STORE BYTES SAVES [URL OPTIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "weir.h"

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Of this thread alone: it says the same on a busy machine. */
static double cpu_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must(int code)
{
    if (!code)
        return;
    fprintf(stderr, "bench-save: %s\n", weir_error_text());
    exit(1);
}

static char *state_new(size_t size)
{
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        must(-1);
    madvise(data, size, MADV_HUGEPAGE);
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(data + i, &x, 8);
    }
    return data;
}

/* The best of a few: what the machine can do. */
static double copy_s(const char *from, size_t size)
{
    char *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double best = 1e9;
    madvise(to, size, MADV_HUGEPAGE);
    memcpy(to, from, size);
    for (int i = 0; i < 5; i++) {
        double start = cpu_s();
        memcpy(to, from, size);
        double took = cpu_s() - start;
        best = took < best ? took : best;
    }
    munmap(to, size);
    return best;
}

enum { TENSORS = 64 };

int main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "usage: bench-save STORE BYTES SAVES\n"), 2;
    size_t size = strtoull(argv[2], NULL, 10) / TENSORS * TENSORS;
    unsigned saves = (unsigned)strtoul(argv[3], NULL, 10);
    char *data = state_new(size), names[TENSORS][16];
    uint64_t shape = size / TENSORS;
    weir_tensor tensors[TENSORS];
    for (unsigned i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "layer.%u", i);
        tensors[i] = (weir_tensor){
            .name = names[i], .dtype = "U8", .ndim = 1, .shape = &shape, .data = data + i * shape};
    }
    double copy = copy_s(data, size);
    weir_store_options sopts;
    weir_ckpt_options copts;
    weir_store *store;
    weir_ckpt *ckpt;
    weir_store_options_init(&sopts);
    sopts.flags = WEIR_STORE_CREATE;
    must(weir_store_open(&store, argv[1], &sopts));
    weir_ckpt_options_init(&copts);
    copts.keep_last = 1;
    copts.retired_grace_s = 0;
    must(weir_ckpt_open(&ckpt, store, "bench", &copts));
    for (unsigned i = 1; i <= saves; i++) {
        weir_saving *saving;
        double start = now_s(), start_cpu = cpu_s();
        must(weir_ckpt_save(ckpt, i, tensors, TENSORS, NULL, &saving));
        double blocked = now_s() - start, blocked_cpu = cpu_s() - start_cpu;
        must(weir_saving_wait(saving, WEIR_LEVEL_HOME, 600000000000ull));
        double home = now_s() - start;
        weir_saving_close(saving);
        struct timespec pause = {1, 0};
        nanosleep(&pause, NULL); /* a step of training */
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"save\": %u, \"memcpy_s\": %.4f, \"blocked_s\": %.4f, \"home_s\": %.4f, "
               "\"blocked_to_memcpy\": %.3f, \"cpu_to_memcpy\": %.3f, \"gb_s\": %.3f, \"rss_mib\": "
               "%ld}\n",
               i, copy, blocked, home, blocked / copy, blocked_cpu / copy,
               (double)size / home / 1e9, usage.ru_maxrss / 1024);
        fflush(stdout);
    }
    weir_ckpt_close(ckpt);
    weir_store_close(store);
    return 0;
}
