/* A loader when things go wrong: a damaged sample is named, and fails where it stands in the order
 * and nowhere else; bounds hold; a child of fork() is told; what is not there is not guessed.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shards.h"
#include "util/hash.h"
#include "util/thread.h"

enum { SHARDS = 4, EACH = 25, N = SHARDS * EACH };

static const struct kind *const plain = &kinds[0], *const zipped = &kinds[1];

static weir_loader_options options(uint64_t batch_size)
{
    weir_loader_options opts;
    weir_loader_options_init(&opts);
    opts.flags = WEIR_LOADER_SHUFFLE;
    opts.lanes = 4;
    opts.window = 10;
    opts.batch_size = batch_size;
    opts.end = N;
    opts.threads = 2;
    return opts;
}

/* The numbers in their order; stops at the first failure, which it returns. */
static int numbers_of(weir_data *data, const weir_loader_options *opts, uint64_t *out,
                      uint64_t *count)
{
    weir_loader *loader = NULL;
    weir_batch *batch;
    int code;
    OK(weir_loader_open(&loader, data, opts));
    *count = 0;
    while ((code = weir_loader_next(loader, &batch, UINT64_MAX)) == 1) {
        const weir_batch_info *info = weir_batch_get(batch);
        memcpy(out + *count, info->numbers, info->samples * 8);
        *count += info->samples;
        weir_batch_release(batch);
    }
    if (code) { /* and again */
        char *text = strdup(weir_error_text());
        CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), code);
        CHECK(!strcmp(text, weir_error_text()));
        free(text);
    }
    weir_loader_close(loader);
    if (code)
        weir_fail_text(code, weir_error_text());
    return code;
}

/* Writes over a file as a failing disk does: its time stays. */
static void spoil(const char *path, uint64_t at, const char *bytes, size_t size)
{
    struct stat st;
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && !fstat(fd, &st));
    CHECK(pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size);
    CHECK(!futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}) && !close(fd));
}

/* Spoils the sample in its file, so that its own format notices. */
static void spoil_sample(const char *dir, weir_data *data, uint64_t number)
{
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, number));
    const weir_data_sample_info *info = weir_data_sample_get(sample);
    spoil(path_in(dir, info->key), info->off, "\xff\xff\xff\xff", 4);
    weir_data_sample_close(sample);
}

static void a_damaged_sample_fails_at_its_place(void)
{
    uint64_t all[N], some[N], count;
    for (uint64_t batch = 1; batch <= 9; batch += 4)
        for (uint64_t bad = 0; bad < N; bad += 33) {
            const char *dir = shards_make(plain, SHARDS, EACH);
            weir_data *data = shards_open(dir, plain);
            weir_loader_options opts = options(batch);
            CHECK_EQ(numbers_of(data, &opts, all, &count), 0);
            CHECK_EQ(count, N);
            spoil_sample(dir, data, bad);
            CHECK_EQ(numbers_of(data, &opts, some, &count), -EBADMSG);
            uint64_t at = 0;
            char named[64];
            while (all[at] != bad)
                at++;
            CHECK_EQ(count, at / batch * batch);
            CHECK(!memcmp(all, some, count * 8));
            snprintf(named, sizeof named, "sample %d of '", (int)bad);
            CHECK(strstr(weir_error_text(), named) && strstr(weir_error_text(), dir));
            snprintf(named, sizeof named, "(number %d in 'shard.0000%d.mds')", (int)bad % EACH,
                     (int)bad / EACH);
            CHECK(strstr(weir_error_text(), named));
            weir_data_close(data);
        }
}

/* Rows of 1 KiB in a store, four in a block; returns where they lie. */
static char *seal_rows(const char *dir, const char *key, void (*fill)(uint8_t row[1024], int i))
{
    weir_store *store = store_at(dir, NULL);
    uint8_t row[1024];
    weir_put *put;
    weir_put_options how;
    weir_put_options_init(&how);
    how.block_bytes = 4096;
    OK(weir_put_open(&put, store, key, &how));
    for (int i = 0; i < N; i++) {
        fill(row, i);
        OK(weir_put_write(put, row, sizeof row));
    }
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    char *path = data_path(store, dir, key);
    weir_store_close(store);
    CHECK(!chmod(path, 0600));
    return path;
}

static void fill_line(uint8_t row[1024], int i)
{
    memset(row, ' ', 1024);
    snprintf((char *)row, 1024, "{\"n\":%d}", i);
    row[strlen((char *)row)] = ' ';
    row[1023] = '\n';
}

static char *seal_lines(const char *dir)
{
    return seal_rows(dir, "lines/a.jsonl", fill_line);
}

/* Brings it into the page cache. */
static void warm(const char *path)
{
    uint8_t all[N * 1024];
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, all, sizeof all) == (ssize_t)sizeof all && !close(fd));
}

/* A window that cannot be read as a whole: what of it is intact is delivered. */
static void a_damaged_block_spoils_only_its_samples(void)
{
    static const uint32_t ways[] = {WEIR_LOADER_BUFFERED, WEIR_LOADER_DIRECT};
    const char *dir = tmp_path("store");
    char *path = seal_lines(dir);
    weir_data *data = data_at(path_in(dir, "lines"), NULL, 0);
    CHECK_EQ(weir_data_count(data), N);
    spoil(path, 40 * 1024 + 100, "x", 1);
    warm(path);
    weir_loader_options opts = options(1);
    for (uint64_t at = 0; at < 2 * N; at++) {
        uint64_t numbers[N], count;
        opts.flags = ways[at / N];
        opts.position = at % N;
        opts.end = at % N + 1;
        int code = numbers_of(data, &opts, numbers, &count);
        CHECK_EQ(code, at % N >= 40 && at % N < 44 ? -EBADMSG : 0);
    }
    free(path);
    weir_data_close(data);
}

/* Weir's own shards that are in the page cache are not read; nobody sees a difference. */
static void what_is_in_memory_is_mapped(void)
{
    static const uint32_t ways[] = {WEIR_LOADER_BUFFERED, WEIR_LOADER_DIRECT};
    const char *dir = tmp_path("store");
    char *path = seal_lines(dir);
    weir_data *data = data_at(path_in(dir, "lines"), NULL, 0);
    weir_loader_part parts[2];
    warm(path);
    for (int i = 0; i < 2; i++) {
        weir_loader *loader;
        weir_batch *batch;
        weir_loader_stats stats;
        weir_loader_options opts = options(7);
        opts.flags |= ways[i];
        opts.end = 3 * N;
        OK(weir_loader_open(&loader, data, &opts));
        while (weir_loader_next(loader, &batch, UINT64_MAX) == 1)
            weir_batch_release(batch);
        weir_loader_stats_get(loader, &stats);
        CHECK_EQ(stats.samples, 3 * N);
        CHECK_EQ(stats.mapped_bytes > 0, i == 0);
        CHECK_EQ(stats.reads > 0, i == 1);
        OK(weir_loader_part_get(loader, 0, &parts[i]));
        weir_loader_close(loader);
    }
    CHECK_EQ(parts[0].tallies_count, parts[1].tallies_count);
    for (uint32_t i = 0; i < parts[0].tallies_count; i++)
        CHECK(!memcmp(parts[0].tallies[i].digest, parts[1].tallies[i].digest, 16));
    free(path);
    weir_data_close(data);
}

static void fill_tokens(uint8_t row[1024], int i)
{
    memset(row, i, 1024);
}

/* Sequences of 512 tokens. Each has the token behind it, too: there is one less. Of tokens all is
 * mapped. */
static char *seal_tokens(const char *dir)
{
    return seal_rows(dir, "tokens/a.bin", fill_tokens);
}

static weir_data *open_tokens(const char *dir)
{
    return data_at(path_in(dir, "tokens"), "seq_len=512&dtype=uint16", 0);
}

static void a_damaged_block_of_tokens_is_named(void)
{
    const char *dir = tmp_path("store");
    char *path = seal_tokens(dir);
    weir_data *data = open_tokens(dir);
    weir_loader_options opts = options(5);
    uint64_t all[N], some[N], count, at = 0;
    opts.end = N - 1;
    OK(numbers_of(data, &opts, all, &count));
    CHECK_EQ(count, N - 1);
    weir_data_close(data); /* with what it knows to be intact */
    spoil(path, 42 * 1024 + 7, "x", 1);
    data = open_tokens(dir);
    CHECK_EQ(numbers_of(data, &opts, some, &count), -EBADMSG);
    CHECK(strstr(weir_error_text(), "block 10") && strstr(weir_error_text(), "a.bin"));
    while (all[at] < 39 || all[at] >= 44) /* the first that reaches into the block */
        at++;
    CHECK_EQ(count, at / 5 * 5);
    CHECK(!memcmp(all, some, count * 8));
    free(path);
    weir_data_close(data);
}

/* Reads up to the end with any number of batches ahead, and ends with `code`. */
static void read_ahead(weir_data *data, uint32_t flags, uint64_t end, int code)
{
    uint64_t numbers[N], count;
    for (uint32_t prefetch = 1; prefetch <= 8; prefetch++)
        for (uint64_t batch = 1; batch <= 7; batch += 2) {
            weir_loader_options opts = options(batch);
            opts.flags |= flags;
            opts.end = end;
            opts.prefetch = prefetch;
            opts.threads = prefetch % 3;
            CHECK_EQ(numbers_of(data, &opts, numbers, &count), code);
            CHECK(code || count == end);
        }
}

/* Who waits makes batches, too, and then threads find every processor taken: none may sleep on. */
static void one_processor_is_enough(void)
{
    const char *dir = tmp_path("store"), *files = shards_make(plain, SHARDS, EACH);
    cpu_set_t all, one;
    int first = 0;
    CHECK(!sched_getaffinity(0, sizeof all, &all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
    free(seal_tokens(dir));
    weir_data *tokens = open_tokens(dir), *data = shards_open(files, plain);
    char *path = seal_lines(dir);
    weir_data *lines = data_at(path_in(dir, "lines"), NULL, 0);
    read_ahead(tokens, 0, N - 1, 0);
    read_ahead(data, 0, N, 0);
    spoil_sample(files, data, N / 2);
    read_ahead(data, 0, N, -EBADMSG);
    spoil(path, 60 * 1024 + 100, "x", 1); /* what was not read whole, only a thread reads */
    read_ahead(lines, WEIR_LOADER_DIRECT, N, -EBADMSG);
    free(path);
    weir_data_close(tokens);
    weir_data_close(data);
    weir_data_close(lines);
    CHECK(!sched_setaffinity(0, sizeof all, &all));
}

static void threads_are(weir_data *data, uint32_t expected)
{
    weir_loader_options opts = options(7);
    weir_loader_stats stats;
    weir_loader *loader;
    weir_batch *batch;
    opts.threads = 0;
    OK(weir_loader_open(&loader, data, &opts));
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    weir_loader_stats_get(loader, &stats);
    CHECK_EQ(stats.threads, expected);
    weir_batch_release(batch);
    weir_loader_close(loader);
    weir_data_close(data);
}

/* More wait for storage than take processors' time. */
static void as_many_threads_as_have_something_to_do(void)
{
    const char *dir = tmp_path("store");
    uint32_t processors = weir_processors();
    free(seal_tokens(dir));
    threads_are(open_tokens(dir), processors < 4 ? processors : 4);
    threads_are(shards_open(shards_make(plain, SHARDS, EACH), plain), 8);
    threads_are(shards_open(shards_make(zipped, SHARDS, EACH), zipped), 4);
}

/* Storage is waited for when something is first touched. */
static void what_was_touched_is_not_waited_for(void)
{
    const char *dir = tmp_path("store");
    free(seal_tokens(dir));
    weir_data *data = open_tokens(dir);
    weir_loader_options opts = options(5);
    weir_loader_stats stats = {0};
    weir_loader *loader;
    weir_batch *batch;
    uint64_t before_ns = 0, samples = 0;
    opts.end = 3 * (N - 1);
    opts.prefetch = 1;
    OK(weir_loader_open(&loader, data, &opts));
    while (weir_loader_next(loader, &batch, UINT64_MAX) == 1) {
        samples += weir_batch_get(batch)->samples;
        weir_batch_release(batch);
        weir_loader_stats_get(loader, &stats);
        if (samples < 2 * (N - 1))
            before_ns = stats.read_ns;
    }
    CHECK_EQ(samples, opts.end);
    CHECK_EQ(stats.read_ns, before_ns);
    weir_loader_close(loader);
    weir_data_close(data);
}

/* Whoever reads it next finds it open, with its seal; a foreign file is looked for every time. */
static void an_own_shard_stays_open(void)
{
    const char *dir = tmp_path("store"), *plain_dir = shards_make(plain, 1, N);
    char *path = seal_lines(dir);
    weir_data *own = data_at(path_in(dir, "lines"), NULL, 0);
    weir_data *foreign = shards_open(plain_dir, plain);
    weir_loader_options opts = options(7);
    uint64_t numbers[N], count;
    opts.flags |= WEIR_LOADER_DIRECT;
    opts.lanes = 1;
    opts.window = N; /* one read: several at once open it several times */
    OK(numbers_of(own, &opts, numbers, &count));
    OK(numbers_of(foreign, &opts, numbers, &count));
    CHECK(!unlink(path));
    CHECK(!unlink(path_in(plain_dir, "shard.00000.mds")));
    OK(numbers_of(own, &opts, numbers, &count));
    CHECK_EQ(count, N);
    CHECK_EQ(numbers_of(foreign, &opts, numbers, &count), -ENOENT);
    free(path);
    weir_data_close(own);
    weir_data_close(foreign);
}

static void what_is_left_of_a_compressed_shard_is_delivered(void)
{
    const char *dir = shards_make(zipped, 1, 2000);
    weir_data *data = shards_open(dir, zipped);
    weir_data_shard shard;
    OK(weir_data_shard_get(data, 0, &shard));
    spoil(path_in(dir, shard.key), shard.file_bytes - 20, "0123456789", 10);
    weir_loader_options opts = options(10);
    opts.flags = 0;
    opts.end = 2000;
    uint64_t numbers[2000], count;
    int code = numbers_of(data, &opts, numbers, &count);
    CHECK_EQ(code, -EBADMSG);
    CHECK(strstr(weir_error_text(), shard.key));
    weir_data_close(data);
}

static void a_file_that_changed_is_not_read(void)
{
    const char *dir = shards_make(plain, SHARDS, EACH);
    weir_data *data = shards_open(dir, plain);
    uint64_t numbers[N], count;
    weir_loader_options opts = options(5);
    file_write(path_in(dir, "shard.00002.mds"), "short", 5);
    CHECK_EQ(numbers_of(data, &opts, numbers, &count), -ESTALE);
    CHECK(strstr(weir_error_text(), "has changed"));
    CHECK(count < N);
    weir_data_close(data);
}

/* Of the same size: only its time tells. */
static void a_file_that_was_written_anew_is_not_read(void)
{
    const struct kind *of[] = {plain, zipped};
    for (int k = 0; k < 2; k++) {
        const char *dir = shards_make(of[k], SHARDS, EACH);
        weir_data *data = shards_open(dir, of[k]);
        weir_data_shard shard;
        weir_data_sample *sample;
        uint64_t numbers[N], count;
        weir_loader_options opts = options(5);
        OK(weir_data_shard_get(data, 2, &shard));
        struct timespec times[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
        CHECK(!utimensat(AT_FDCWD, path_in(dir, shard.key), times, 0));
        CHECK_EQ(numbers_of(data, &opts, numbers, &count), -ESTALE);
        CHECK(strstr(weir_error_text(), "has changed"));
        CHECK_EQ(weir_data_sample_open(&sample, data, shard.first), -ESTALE);
        weir_data_close(data);
    }
}

/* The first size in it that is `size`, made another; rows and tail keep their sum, for it is in the
 * entries. Without sums of those, as in an index that somebody made on purpose. */
static uint8_t *hostile_index(const char *path, uint64_t size, uint64_t other, size_t *bytes)
{
    uint8_t *data = file_read(path, bytes), *tail = data + *bytes - 192, *at = data;
    uint8_t *rows = data + weir_load_le(tail + 40, 8);
    while (weir_load_le(at, 8) != size)
        at++;
    CHECK(at < rows);
    weir_store_le(at, other, 8);
    weir_store_le(rows + 92, 0, 4);
    weir_sum(tail + 160, rows, (size_t)(tail + 160 - rows));
    return data;
}

static void seal(weir_store *store, const char *key, const void *data, size_t size)
{
    weir_put *put;
    OK(weir_remove(store, key));
    OK(weir_put_open(&put, store, key, NULL));
    OK(weir_put_write(put, data, size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

/* Three files, of which the index says that one has so many bytes that sums with it wrap around.
 * As a plain file it is not used, and a new one is made; where it is sealed nothing is loaded. */
static void an_index_that_lies_hurts_nobody(void)
{
    static const uint64_t sizes[] = {UINT64_MAX - (1 << 20) + 1, UINT64_MAX, (uint64_t)1 << 63};
    for (int i = 0; i < 3; i++)
        for (int sealed = 0; sealed < 2; sealed++) {
            const char *dir = tmp_path("store"), *copy = dataset_dir();
            weir_store *store = store_at(dir, NULL);
            char command[4 * PATH_MAX];
            uint64_t numbers[3], count;
            size_t size;
            uint8_t data[5000] = {0};
            file_write(path_in(dir, "a.raw"), data, 777);
            file_write(path_in(dir, "b.raw"), data, 5000);
            file_write(path_in(dir, "c.raw"), data, 5000);
            weir_data_close(data_at(dir, NULL, WEIR_DATA_BESIDE));
            uint8_t *index = hostile_index(path_in(dir, "index.weir"), 777, sizes[i], &size);
            snprintf(command, sizeof command, "cp -p %s/?.raw %s", dir, copy);
            CHECK(system(command) == 0);
            file_write(path_in(copy, "index.weir"), index, size);
            if (sealed)
                seal(store, "index.weir", index, size);
            weir_data *opened = data_at(sealed ? dir : copy, NULL, WEIR_DATA_TRUST);
            CHECK_EQ(weir_data_info_get(opened)->built, !sealed);
            weir_loader_options opts = options(3);
            opts.end = 3;
            for (int way = 0; way < 3; way++) { /* in order, in windows, from anywhere */
                opts.flags = way ? WEIR_LOADER_SHUFFLE : 0;
                opts.window = way == 2 ? UINT64_MAX : 10;
                CHECK_EQ(numbers_of(opened, &opts, numbers, &count), sealed ? -EBADMSG : 0);
                CHECK_EQ(count, sealed ? 0 : 3);
            }
            weir_data_close(opened);
            weir_store_close(store);
            free(index);
        }
}

/* Waits until as much is made ahead as is allowed: some is left for what is larger than planned. */
static void fill_memory(weir_loader *loader, uint64_t bytes_max)
{
    weir_loader_stats stats = {0};
    for (int i = 0; i < 60000 && stats.memory_bytes < bytes_max * 7 / 10; i++) {
        usleep(1000);
        weir_loader_stats_get(loader, &stats);
    }
    CHECK(stats.memory_bytes >= bytes_max * 7 / 10);
}

static void memory_is_bounded(void)
{
    const struct kind *of[] = {plain, zipped, &kinds[7]};
    for (int k = 0; k < 3; k++) {
        weir_data *data = shards_open(shards_make(of[k], 8, 2000), of[k]);
        weir_loader *loader;
        weir_loader_stats stats;
        weir_loader_options opts = options(64);
        uint64_t numbers[16000], count;
        opts.end = 16000;
        opts.window = 200;
        opts.memory_bytes_max = 4096;
        CHECK_EQ(weir_loader_open(&loader, data, &opts), -EINVAL);
        CHECK(strstr(weir_error_text(), "memory") && strstr(weir_error_text(), "lanes"));
        opts.memory_bytes_max = 2 << 20;
        opts.prefetch = 1000; /* if there were memory for that */
        CHECK_EQ(numbers_of(data, &opts, numbers, &count), 0);
        CHECK_EQ(count, 16000);
        OK(weir_loader_open(&loader, data, &opts));
        for (int i = 0; i < 250; i++) {
            weir_batch *batch;
            CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
            weir_batch_release(batch);
            if (!i)
                fill_memory(loader, opts.memory_bytes_max);
            weir_loader_stats_get(loader, &stats);
            CHECK(stats.memory_bytes <= opts.memory_bytes_max);
        }
        CHECK(stats.memory_bytes_peak <= opts.memory_bytes_max);
        weir_loader_close(loader);
        weir_data_close(data);
    }
}

/* The least that a loader opens with. */
static uint64_t least_memory(weir_data *data, weir_loader_options opts)
{
    uint64_t low = 0, high = 16 << 20;
    while (low + 4096 < high) {
        weir_loader *loader;
        opts.memory_bytes_max = (low + high) / 2;
        if (weir_loader_open(&loader, data, &opts)) {
            low = opts.memory_bytes_max;
            continue;
        }
        high = opts.memory_bytes_max;
        weir_loader_close(loader);
    }
    return high;
}

/* With the least memory that it opens with, a loader stays about within it where samples have much
 * the same size: also where a batch is drawn from more windows than there are lanes. */
static void the_least_memory_is_enough(void)
{
    static const struct {
        uint64_t batch, window;
        uint32_t lanes;
    } of[] = {{64, 200, 2}, {64, 100, 1}, {64, 50, 32}, {512, 10, 64}};
    const struct kind *as[] = {plain, &kinds[7]};
    for (size_t k = 0; k < 2; k++) {
        weir_data *data = shards_open(shards_make(as[k], 8, 250), as[k]);
        for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
            weir_loader *loader;
            weir_batch *batch;
            weir_loader_stats stats;
            weir_loader_options opts = options(of[i].batch);
            opts.window = of[i].window;
            opts.lanes = of[i].lanes;
            opts.end = 2 * 2000;
            opts.memory_bytes_max = least_memory(data, opts);
            OK(weir_loader_open(&loader, data, &opts));
            while (weir_loader_next(loader, &batch, UINT64_MAX) == 1)
                weir_batch_release(batch);
            weir_loader_stats_get(loader, &stats);
            CHECK(stats.memory_bytes_peak <= opts.memory_bytes_max * 9 / 8);
            weir_loader_close(loader);
        }
        weir_data_close(data);
    }
}

/* Those that the caller keeps are its own, and do not stop the others. */
static void batches_can_be_kept(void)
{
    weir_data *data = shards_open(shards_make(plain, SHARDS, EACH), plain);
    weir_loader *loader;
    weir_batch *batches[N];
    weir_loader_options opts = options(1);
    opts.memory_bytes_max = 1 << 20;
    OK(weir_loader_open(&loader, data, &opts));
    for (int i = 0; i < N; i++)
        CHECK_EQ(weir_loader_next(loader, &batches[i], UINT64_MAX), 1);
    weir_loader_close(loader);
    weir_data_close(data);
    for (int i = 0; i < N; i++) {
        const weir_batch_info *info = weir_batch_get(batches[i]);
        CHECK_EQ(info->columns_count, 2);
        CHECK(!strcmp(info->columns[0].name, "id") && !info->columns[0].values);
        CHECK_EQ(*(int64_t *)info->columns[0].data, info->numbers[0]);
        CHECK_EQ((uintptr_t)info->columns[0].data % 64, 0);
        char text[64];
        text_of(text, info->numbers[0]);
        CHECK_EQ(info->columns[1].kind, WEIR_FIELD_TEXT);
        CHECK_EQ(info->columns[1].size, strlen(text));
        CHECK(!memcmp(info->columns[1].data, text, strlen(text)));
        weir_batch_release(batches[i]);
    }
}

static void only_the_fields_that_are_wanted(void)
{
    weir_data *data = shards_open(shards_make(plain, SHARDS, EACH), plain);
    weir_loader *loader;
    weir_batch *batch;
    weir_loader_options opts = options(8);
    opts.fields = (const char *const[]){"text"};
    opts.fields_count = 1;
    OK(weir_loader_open(&loader, data, &opts));
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    CHECK_EQ(weir_batch_get(batch)->columns_count, 1);
    CHECK(!strcmp(weir_batch_get(batch)->columns[0].name, "text"));
    weir_batch_release(batch);
    weir_loader_close(loader);
    opts.fields = (const char *const[]){"texts"};
    OK(weir_loader_open(&loader, data, &opts));
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1); /* one that no sample has */
    const weir_column *column = weir_batch_get(batch)->columns;
    CHECK_EQ(column->kind, WEIR_FIELD_NONE);
    for (uint64_t i = 0; i < weir_batch_get(batch)->samples; i++)
        CHECK_EQ(column->values[i].kind, WEIR_FIELD_NONE);
    weir_batch_release(batch);
    weir_loader_close(loader);
    weir_data_close(data);
}

static void a_child_is_told(void)
{
    weir_data *data = shards_open(shards_make(plain, SHARDS, EACH), plain);
    weir_loader *loader;
    weir_batch *batch;
    weir_loader_options opts = options(8);
    OK(weir_loader_open(&loader, data, &opts));
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        weir_batch *other;
        int code = weir_loader_next(loader, &other, UINT64_MAX);
        weir_batch_release(batch);
        weir_loader_close(loader);
        _exit(code == -ECHILD ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    weir_batch_release(batch);
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    weir_batch_release(batch);
    weir_loader_close(loader);
    weir_data_close(data);
}

static void bad_options_are_refused(void)
{
    weir_data *data = shards_open(shards_make(plain, SHARDS, EACH), plain);
    weir_loader *loader;
    weir_loader_options opts = options(0);
    CHECK_EQ(weir_loader_open(&loader, data, &opts), -EINVAL);
    opts = options(1);
    opts.rank = 1;
    CHECK_EQ(weir_loader_open(&loader, data, &opts), -EINVAL);
    opts = options(1);
    opts.workers = 0;
    CHECK_EQ(weir_loader_open(&loader, data, &opts), -EINVAL);
    opts = options(1);
    opts.struct_size = 0;
    CHECK_EQ(weir_loader_open(&loader, data, &opts), -EINVAL);
    CHECK_EQ(weir_loader_open_mix(&loader, NULL, NULL, 0, NULL), -EINVAL);
    weir_data_close(data);
}

int main(void)
{
    RUN(a_damaged_sample_fails_at_its_place);
    RUN(a_damaged_block_spoils_only_its_samples);
    RUN(what_is_in_memory_is_mapped);
    RUN(a_damaged_block_of_tokens_is_named);
    RUN(one_processor_is_enough);
    RUN(as_many_threads_as_have_something_to_do);
    RUN(what_was_touched_is_not_waited_for);
    RUN(an_own_shard_stays_open);
    RUN(what_is_left_of_a_compressed_shard_is_delivered);
    RUN(a_file_that_changed_is_not_read);
    RUN(a_file_that_was_written_anew_is_not_read);
    RUN(an_index_that_lies_hurts_nobody);
    RUN(memory_is_bounded);
    RUN(the_least_memory_is_enough);
    RUN(batches_can_be_kept);
    RUN(only_the_fields_that_are_wanted);
    RUN(a_child_is_told);
    RUN(bad_options_are_refused);
    return TEST_RESULT;
}
