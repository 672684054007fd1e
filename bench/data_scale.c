/* data_scale.c - one measurement of a dataset of many samples, for bench/data_scale.py.
 *
 *   data_scale make DIR SAMPLES   an index of that many, and files that look like its shards
 *   data_scale open DIR SAMPLES   opens the dataset and looks samples up; one line of JSON
 *
 * Two programs, so that what making it takes is not counted. The shards are tars that nobody reads:
 * files of the right size without any blocks. 4,096 samples of about 16 KiB make one of 64 MiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/cache.h"
#include "data/dataset.h"
#include "data/index_file.h"
#include "data/order.h"
#include "data/survey.h"
#include "util/bytes.h"

enum { PER_SHARD = 4096, SAMPLE_BYTES = 16384, LOOKS = 1000000, LANES = 64 };

static char shards_dir[4096], cache_dir[4096];

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "data_scale: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* What this process has in memory now, but for pages of files. */
static uint64_t memory_kib(const char *field)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, field, strlen(field)))
            sscanf(line + strlen(field), ":%llu", &kib);
    fclose(file);
    return kib;
}

/* ---- making ---- */

static void make_files(uint64_t shards, uint64_t samples)
{
    char path[8192];
    if (mkdir(shards_dir, 0777) && errno != EEXIST)
        die(shards_dir);
    for (uint64_t i = 0; i < shards; i++) {
        uint64_t left = samples - i * PER_SHARD, n = left < PER_SHARD ? left : PER_SHARD;
        snprintf(path, sizeof path, "%s/shard-%06llu.tar", shards_dir, (unsigned long long)i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || ftruncate(fd, (off_t)(n * SAMPLE_BYTES + 1024)))
            die(path);
        close(fd);
    }
}

static void put_shards(struct weir_index_put *put, const struct weir_survey *survey,
                       uint64_t samples)
{
    static uint8_t entries[4 * (PER_SHARD + 1)];
    for (size_t i = 0; i < weir_survey_shards(survey); i++) {
        const struct weir_shard_plan *plan = weir_survey_shard(survey, i);
        uint64_t left = samples - i * PER_SHARD, n = left < PER_SHARD ? left : PER_SHARD;
        for (uint64_t k = 0; k <= n; k++) /* sizes differ a little */
            weir_store_le(entries + 4 * k, k * SAMPLE_BYTES + k * 7919 % 512 * (k < n), 4);
        struct weir_shard shard = {.key = plan->key,
                                   .codec = "",
                                   .file_bytes = plan->file_bytes,
                                   .time_ns = plan->time_ns,
                                   .raw_bytes = plan->file_bytes,
                                   .samples = n,
                                   .kind = WEIR_ENTRIES_ENDS,
                                   .width = 4,
                                   .entries_bytes = 4 * (n + 1)};
        if (weir_index_put_shard(put, &shard, entries, NULL))
            die("put_shard");
    }
}

static void make(uint64_t samples)
{
    struct weir_survey *survey;
    struct weir_cache cache;
    struct weir_index_put *put;
    weir_store *store;
    uint8_t fingerprint[WEIR_SHA256_BYTES];
    char key[WEIR_KEY_BYTES_MAX], place[4096];
    make_files((samples + PER_SHARD - 1) / PER_SHARD, samples);
    if (!realpath(shards_dir, place) || weir_store_open(&store, shards_dir, NULL) ||
        weir_survey_open(&survey, store, "", NULL, NULL, NULL) ||
        weir_survey_run(survey, &weir_format_wds) || weir_survey_fingerprint(survey, fingerprint) ||
        weir_cache_open(&cache, cache_dir, place, NULL))
        die("survey");
    size_t size;
    const char *schema = weir_survey_schema_get(survey, &size);
    weir_cache_key(&cache, "wds", fingerprint, key);
    if (weir_index_put_open(&put, cache.store, key, "wds", schema, size))
        die("index");
    put_shards(put, survey, samples);
    if (weir_index_put_commit(put, fingerprint))
        die("commit");
    weir_index_put_close(put);
    weir_survey_close(survey);
    weir_cache_close(&cache);
    weir_store_close(store);
}

/* ---- opening ---- */

static weir_data *open_data(uint32_t flags)
{
    weir_data *data;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.cache = cache_dir;
    opts.flags = WEIR_DATA_NO_BUILD | flags;
    if (weir_data_open(&data, shards_dir, &opts))
        die("open");
    return data;
}

static uint64_t mix(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 31;
}

/* ns to find a sample at random; the second round finds every block checked. */
static double look_up(const struct weir_index *index)
{
    struct weir_place place;
    uint64_t count = weir_index_count(index), sum = 0;
    double start = now_s();
    for (uint64_t i = 0; i < LOOKS; i++) {
        if (weir_index_find(index, mix(i) % count, &place))
            die("find");
        sum += place.off;
    }
    if (sum == 1)
        puts(""); /* it is used */
    return (now_s() - start) / LOOKS * 1e9;
}

/* ns from a position of a shuffled epoch to the bytes of its sample. */
static double look_up_positions(const struct weir_index *index)
{
    uint64_t shards = weir_index_shards(index), *samples = malloc(shards * sizeof *samples);
    struct weir_order_options opts = {
        .shuffle = true, .seed = 7, .lanes = LANES, .window = PER_SHARD / 4};
    struct weir_order *order;
    struct weir_epoch *epoch;
    struct weir_place place;
    for (uint64_t i = 0; samples && i < shards; i++) {
        struct weir_index_shard shard;
        weir_index_shard(index, i, &shard);
        samples[i] = shard.samples;
    }
    if (!samples || weir_order_open(&order, samples, shards, &opts) ||
        weir_epoch_open(&epoch, order, 3))
        die("order");
    double start = now_s();
    for (uint64_t i = 0; i < LOOKS; i++)
        if (weir_index_find(index, weir_epoch_sample(epoch, mix(i) % weir_index_count(index)),
                            &place))
            die("find");
    double ns = (now_s() - start) / LOOKS * 1e9;
    weir_epoch_close(epoch);
    weir_order_close(order);
    free(samples);
    return ns;
}

static void measure(uint64_t samples)
{
    uint64_t before_kib = memory_kib("VmRSS");
    double start = now_s();
    weir_data *data = open_data(0);
    double open_s = now_s() - start;
    uint64_t open_kib = memory_kib("VmHWM") - before_kib;
    const weir_data_info *info = weir_data_info_get(data);
    if (info->samples != samples)
        die("another number of samples");
    double first_ns = look_up(weir_data_index(data)), again_ns = look_up(weir_data_index(data));
    double position_ns = look_up_positions(weir_data_index(data));
    uint64_t own_kib = memory_kib("RssAnon");
    printf("{\"samples\": %llu, \"shards\": %llu, \"index_bytes\": %llu, \"open_s\": %.6f, "
           "\"open_kib\": %llu, ",
           (unsigned long long)info->samples, (unsigned long long)info->shards,
           (unsigned long long)info->index_bytes, open_s, (unsigned long long)open_kib);
    weir_data_close(data);
    start = now_s();
    data = open_data(WEIR_DATA_TRUST);
    printf("\"trust_s\": %.6f, \"first_ns\": %.1f, \"find_ns\": %.1f, \"position_ns\": %.1f, "
           "\"own_kib\": %llu}\n",
           now_s() - start, first_ns, again_ns, position_ns, (unsigned long long)own_kib);
    weir_data_close(data);
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "make") && strcmp(argv[1], "open"))) {
        fprintf(stderr, "usage: data_scale make|open DIR SAMPLES\n");
        return 2;
    }
    snprintf(shards_dir, sizeof shards_dir, "%s/shards", argv[2]);
    snprintf(cache_dir, sizeof cache_dir, "%s/cache", argv[2]);
    if (!strcmp(argv[1], "make"))
        make(strtoull(argv[3], NULL, 10));
    else
        measure(strtoull(argv[3], NULL, 10));
    return 0;
}
