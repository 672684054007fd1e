/* engine.c - one measurement of the engine, for bench/engine.py: a durable, fingerprinted put of a
 * large object held in memory, a verified cold get into memory, or small objects by several
 * threads. Prints one line of JSON.
 *
 *   engine put DIR KEY BYTES | engine get DIR KEY
 *   engine stream DIR KEY BYTES           a put and a get through a small window, for peak memory
 *   engine small DIR BYTES COUNT THREADS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "engine: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static long rss_kib(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* Page-aligned memory, as tensors have it. */
static void *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
        die("mmap");
    return at;
}

/* Incompressible: xorshift64*. */
static void fill(void *buf, size_t size, uint64_t seed)
{
    uint64_t x = seed * 2 + 1, *out = buf;
    for (size_t i = 0; i < size / 8; i++) {
        x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
        out[i] = x * 0x2545f4914f6cdd1d;
    }
}

static weir_store *open_store(const char *dir)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    const char *depth = getenv("WEIR_BENCH_DEPTH");
    if (depth)
        opts.depth = (uint32_t)atoi(depth);
    weir_store *store;
    if (weir_store_open(&store, dir, &opts))
        die("open");
    return store;
}

static int put_one(weir_store *store, const char *key, const void *data, size_t size)
{
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.size_bytes = size;
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = weir_put_write(put, data, size);
    if (!code)
        code = weir_put_commit(put, NULL);
    weir_put_close(put);
    return code;
}

static void report(size_t bytes, double seconds, double cpu, long held_kib)
{
    printf("{\"bytes\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"rss_kib\": %ld}\n", bytes,
           seconds, cpu, rss_kib() - held_kib);
}

static int bench_put(const char *dir, const char *key, size_t size)
{
    char *data = map(size);
    fill(data, size, (uint64_t)time(NULL));
    long held = (long)(size >> 10);
    weir_store *store = open_store(dir);
    double wall = now_s(), cpu = cpu_s();
    if (put_one(store, key, data, size))
        die("put");
    wall = now_s() - wall;
    cpu = cpu_s() - cpu;
    weir_store_close(store);
    report(size, wall, cpu, held);
    return 0;
}

static int bench_get(const char *dir, const char *key)
{
    weir_store *store = open_store(dir);
    weir_object *obj;
    if (weir_object_open(&obj, store, key))
        die("open object");
    size_t size = weir_object_info(obj)->size_bytes, got = 0;
    weir_object_close(obj);
    char *data = map(size);
    double wall = now_s(), cpu = cpu_s();
    if (weir_object_open(&obj, store, key) || weir_object_read(obj, data, size, 0, &got))
        die("get");
    weir_object_close(obj);
    wall = now_s() - wall;
    cpu = cpu_s() - cpu;
    weir_store_close(store);
    report(got, wall, cpu, (long)(size >> 10));
    return 0;
}

/* An object much larger than the memory given to it. */
static int bench_stream(const char *dir, const char *key, size_t size)
{
    enum { WINDOW_BYTES = 32 << 20 };
    weir_store *store = open_store(dir);
    weir_put *put;
    weir_object *obj;
    char *window = map(WINDOW_BYTES);
    size_t got = 1;
    if (weir_put_open(&put, store, key, NULL))
        die("put");
    double wall = now_s(), cpu = cpu_s();
    for (size_t done = 0; done < size;) {
        void *buf;
        size_t cap;
        if (weir_put_buffer(put, &buf, &cap))
            die("put");
        fill(buf, cap, done + 1);
        weir_put_advance(put, cap);
        done += cap;
    }
    if (weir_put_commit(put, NULL) || weir_object_open(&obj, store, key))
        die("commit");
    weir_put_close(put);
    for (size_t off = 0; got; off += got)
        if (weir_object_read(obj, window, WINDOW_BYTES, off, &got))
            die("get");
    weir_object_close(obj);
    weir_store_close(store);
    report(2 * size, now_s() - wall, cpu_s() - cpu, WINDOW_BYTES >> 10);
    return 0;
}

struct small {
    weir_store *store;
    size_t size;
    unsigned first, step, count;
};

static void *small_thread(void *arg)
{
    struct small *s = arg;
    char *data = map((s->size + 4095) / 4096 * 4096);
    fill(data, s->size, s->first + 1);
    for (unsigned i = s->first; i < s->count; i += s->step) {
        char key[64];
        snprintf(key, sizeof key, "small/%02x/%u", i % 16, i);
        if (put_one(s->store, key, data, s->size))
            die("put");
    }
    return NULL;
}

static int bench_small(const char *dir, size_t size, unsigned count, unsigned threads)
{
    pthread_t ids[64];
    struct small args[64];
    if (threads > 64)
        return 2;
    weir_store *store = open_store(dir);
    double wall = now_s(), cpu = cpu_s();
    for (unsigned i = 0; i < threads; i++) {
        args[i] = (struct small){store, size, i, threads, count};
        if (pthread_create(&ids[i], NULL, small_thread, &args[i]))
            die("thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    wall = now_s() - wall;
    cpu = cpu_s() - cpu;
    weir_store_close(store);
    printf("{\"count\": %u, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", count, wall, cpu);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "put"))
        return bench_put(argv[2], argv[3], strtoull(argv[4], NULL, 0));
    if (argc == 4 && !strcmp(argv[1], "get"))
        return bench_get(argv[2], argv[3]);
    if (argc == 5 && !strcmp(argv[1], "stream"))
        return bench_stream(argv[2], argv[3], strtoull(argv[4], NULL, 0));
    if (argc == 6 && !strcmp(argv[1], "small"))
        return bench_small(argv[2], strtoull(argv[3], NULL, 0), (unsigned)atoi(argv[4]),
                           (unsigned)atoi(argv[5]));
    fprintf(stderr, "usage: engine put|stream DIR KEY BYTES | get DIR KEY |"
                    " small DIR BYTES COUNT N\n");
    return 2;
}
