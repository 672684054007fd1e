/* Opening a dataset: the index is made once and found again, in the cache or beside the data; what
 * changed is noticed, and only that is looked into again; an index that is damaged is made anew.
 */
#include <sys/wait.h>

#include "datasets.h"

#define OPTIONS "seq_len=10"

/* Three shards whose documents have to be looked for. */
static const char *make_dataset(void)
{
    const char *dir = dataset_dir();
    tokens_megatron(dir, "a", (uint32_t[]){30, 30}, 2);
    tokens_megatron(dir, "b", (uint32_t[]){45}, 1);
    tokens_megatron(dir, "c", (uint32_t[]){15, 15, 15}, 3);
    return dir;
}

static void opened(const char *url, uint32_t flags, bool built, uint64_t scanned, uint64_t samples)
{
    weir_data *data = data_at(url, OPTIONS, flags);
    const weir_data_info *info = weir_data_info_get(data);
    CHECK_EQ(info->built, built);
    CHECK_EQ(info->scanned, scanned);
    CHECK_EQ(info->samples, samples);
    CHECK(!strcmp(info->format, "tokens"));
    weir_data_close(data);
}

static char *digest_of(const char *url)
{
    weir_data *data = data_at(url, OPTIONS, 0);
    char *digest = strdup(weir_data_info_get(data)->digest);
    weir_data_close(data);
    return digest;
}

static char *index_of(const char *url)
{
    weir_data *data = data_at(url, OPTIONS, 0);
    char *index = strdup(weir_data_info_get(data)->index);
    weir_data_close(data);
    return index;
}

static void an_index_is_made_once(void)
{
    const char *dir = make_dataset();
    opened(dir, 0, true, 3, 5 + 4 + 4);
    opened(dir, 0, false, 0, 13);
    opened(dir, WEIR_DATA_TRUST, false, 0, 13);
    opened(dir, WEIR_DATA_REBUILD, true, 3, 13);
    char *index = index_of(dir);
    CHECK(path_there(index)); /* people find it, also after it was removed and made again */
    free(index);
}

static void what_changed_is_noticed(void)
{
    const char *dir = make_dataset();
    weir_data *data;
    opened(dir, 0, true, 3, 13);
    char *before = digest_of(dir);
    tokens_megatron(dir, "b", (uint32_t[]){40, 40}, 2);
    CHECK_EQ(data_try(&data, dir, OPTIONS, WEIR_DATA_NO_BUILD), -ENOENT);
    CHECK(strstr(weir_error_text(), "as it is now"));
    opened(dir, 0, true, 1, 5 + 7 + 4);
    char *after = digest_of(dir);
    CHECK(strcmp(before, after));
    CHECK(unlink(path_in(dir, "c.bin")) == 0 && unlink(path_in(dir, "c.idx")) == 0);
    opened(dir, 0, true, 0, 5 + 7); /* one is gone */
    tokens_megatron(dir, "d", (uint32_t[]){11}, 1);
    opened(dir, 0, true, 1, 5 + 7 + 1); /* one is new */
    free(before);
    free(after);
}

/* Only the time of a file is another: it may be another file. The data has the same name. */
static void another_time_is_another_file(void)
{
    const char *dir = make_dataset();
    opened(dir, 0, true, 3, 13);
    char *before = digest_of(dir);
    struct timespec times[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    CHECK(utimensat(AT_FDCWD, path_in(dir, "a.bin"), times, 0) == 0);
    opened(dir, 0, true, 1, 13);
    char *after = digest_of(dir);
    CHECK(!strcmp(before, after));
    free(before);
    free(after);
}

static void set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* What says where documents begin is a file, too: its time and its size tell, whichever of the two
 * files is the newer one. */
static void another_idx_is_another_shard(void)
{
    const char *dir = make_dataset();
    char *bin = strdup(path_in(dir, "a.bin")), *idx = strdup(path_in(dir, "a.idx"));
    set_time(bin, 2000000000);
    set_time(idx, 1000000000);
    opened(dir, 0, true, 3, 13);
    set_time(idx, 1000000001);
    opened(dir, 0, true, 1, 13);
    opened(dir, 0, false, 0, 13);
    tokens_megatron(dir, "a", (uint32_t[]){20, 20, 20}, 3);
    set_time(bin, 2000000000);
    set_time(idx, 1000000001);
    opened(dir, 0, true, 1, 13);
    opened(dir, 0, false, 0, 13);
    free(bin);
    free(idx);
}

/* A copy of the dataset has other times: whoever trusts the index that came along reads it. */
static void a_trusted_index_knows_no_times(void)
{
    const char *dir = make_dataset();
    opened(dir, 0, true, 3, 13);
    set_time(path_in(dir, "a.bin"), 2000000000);
    weir_data *data = data_at(dir, OPTIONS, WEIR_DATA_TRUST);
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, 0));
    weir_data_sample_close(sample);
    weir_data_close(data);
}

/* The file in which the bytes of the index are. */
static char *index_path(const char *url)
{
    weir_data *data = data_at(url, OPTIONS, 0);
    weir_store *cache = store_at(data_cache(), NULL);
    char *path =
        data_path(cache, data_cache(), weir_data_info_get(data)->index + strlen(data_cache()) + 1);
    weir_store_close(cache);
    weir_data_close(data);
    return path;
}

static void a_damaged_index_is_made_anew(void)
{
    const char *dir = make_dataset();
    opened(dir, 0, true, 3, 13);
    char *path = index_path(dir);
    CHECK(chmod(path, 0644) == 0 && truncate(path, 100) == 0);
    free(path);
    opened(dir, 0, true, 3, 13);
    opened(dir, 0, false, 0, 13);
    path = index_path(dir);
    int fd = file_force_open(path);
    fd_flip(fd, 8 * 20);
    close(fd);
    free(path);
    opened(dir, 0, true, 3, 13);
    opened(dir, 0, false, 0, 13);
}

static void beside_the_data_in_a_store(void)
{
    const char *dir = tmp_path("store");
    weir_store *store = store_at(dir, NULL);
    char sub[PATH_MAX];
    snprintf(sub, sizeof sub, "%s/corpora/one", dir);
    CHECK(mkdir(path_in(dir, "corpora"), 0777) == 0 && mkdir(sub, 0777) == 0);
    tokens_megatron(sub, "a", (uint32_t[]){30, 30}, 2);
    opened(sub, WEIR_DATA_BESIDE, true, 1, 5);
    CHECK(path_there(path_in(sub, "index.weir")));
    opened(sub, 0, false, 0, 5);
    opened(sub, WEIR_DATA_TRUST, false, 0, 5);
    char *index = index_of(sub);
    CHECK(strstr(index, "corpora/one/index.weir"));
    free(index);
    tokens_megatron(sub, "b", (uint32_t[]){30, 30}, 2);
    opened(sub, WEIR_DATA_BESIDE, true, 1, 10); /* what it knew of a is still good */
    opened(sub, WEIR_DATA_BESIDE, false, 0, 10);
    weir_store_close(store);
}

/* Somebody copied a dataset with its index, as files: it is good, where the times are the same. */
static void an_index_that_came_along(void)
{
    const char *dir = tmp_path("store"), *copy = dataset_dir();
    weir_store *store = store_at(dir, NULL);
    char command[4 * PATH_MAX];
    tokens_megatron(dir, "a", (uint32_t[]){30, 30}, 2);
    opened(dir, WEIR_DATA_BESIDE, true, 1, 5);
    snprintf(command, sizeof command, "cp -p %s/a.* %s/index.weir %s", dir, dir, copy);
    CHECK(system(command) == 0);
    opened(copy, 0, false, 0, 5);
    char *index = index_of(copy);
    CHECK(!strncmp(index, data_cache(), strlen(data_cache()))); /* where it can be mapped */
    free(index);
    CHECK(truncate(path_in(copy, "index.weir"), 50) == 0); /* nobody looks there any more */
    opened(copy, 0, false, 0, 5);
    weir_store_close(store);
}

/* Every request fails once, of the dataset's store and of the cache's: it is said, or made good. */
static void any_request_may_fail(void)
{
    const char *dir = make_dataset();
    for (int which = 0; which < 2; which++)
        for (int nth = 1, code = -1; code || nth < 30; nth += 1 + nth / 4) {
            char faulty[PATH_MAX + 64], plain[PATH_MAX];
            snprintf(plain, sizeof plain, "%s", tmp_path("faulty"));
            snprintf(faulty, sizeof faulty, "file:%s?fault_nth=%d", which ? plain : dir, nth);
            weir_data_options opts;
            weir_data *data;
            weir_data_options_init(&opts);
            opts.options = OPTIONS;
            opts.cache = which ? faulty : plain;
            code = weir_data_open(&data, which ? dir : faulty, &opts);
            CHECK(!code || *weir_error_text());
            if (!code) {
                CHECK_EQ(weir_data_count(data), 13);
                weir_data_close(data);
            }
            opts.cache = plain;
            OK(weir_data_open(&data, dir, &opts)); /* and nothing is wrong afterwards */
            CHECK_EQ(weir_data_count(data), 13);
            weir_data_close(data);
            CHECK(nth < 1000);
        }
}

/* What Weir sealed is read through its store, and verified. */
static void sealed_shards_are_verified(void)
{
    const char *dir = tmp_path("store");
    weir_store *store = store_at(dir, NULL);
    OK(put_try(store, "corpus/x.bin", 1 << 20, 1, 65536));
    char url[PATH_MAX];
    snprintf(url, sizeof url, "%s/corpus", dir);
    weir_data *data = data_at(url, "seq_len=1000", 0);
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, 0));
    CHECK(data_is(weir_data_sample_get(sample)->data, 2002, 1, 0));
    weir_data_sample_close(sample);
    char *path = data_path(store, dir, "corpus/x.bin");
    int fd = file_force_open(path);
    fd_flip(fd, 8 * 500000);
    close(fd);
    OK(weir_data_sample_open(&sample, data, 0));
    weir_data_sample_close(sample);
    CHECK_EQ(weir_data_sample_open(&sample, data, 250), -EBADMSG);
    free(path);
    weir_data_close(data);
    weir_store_close(store);
}

static void a_plain_directory_stays_as_it_is(void)
{
    const char *dir = make_dataset();
    weir_data *data;
    CHECK(chmod(dir, 0555) == 0);
    opened(dir, 0, true, 3, 13);
    CHECK_EQ(data_try(&data, dir, OPTIONS, WEIR_DATA_BESIDE), -EROFS);
    CHECK(!path_there(path_in(dir, "index.weir")) && !path_there(path_in(dir, ".weir")));
    CHECK(chmod(dir, 0755) == 0);
}

static void a_shard_that_shrinks_under_us(void)
{
    const char *dir = make_dataset();
    weir_data *data = data_at(dir, OPTIONS, 0);
    weir_data_sample *sample;
    CHECK(truncate(path_in(dir, "a.bin"), 10) == 0);
    CHECK_EQ(weir_data_sample_open(&sample, data, 4), -ESTALE);
    weir_data_close(data);
}

static void one_file_is_a_dataset(void)
{
    const char *dir = dataset_dir();
    tokens_bare(path_in(dir, "a.bin"), 0, 100, 2);
    tokens_bare(path_in(dir, "b.bin"), 0, 100, 2);
    opened(path_in(dir, "b.bin"), 0, true, 0, 9);
}

static void nothing_is_no_dataset(void)
{
    weir_data *data;
    const char *dir = dataset_dir();
    CHECK_EQ(data_try(&data, dir, NULL, 0), -ENOENT);
    CHECK(strstr(weir_error_text(), "no files"));
    CHECK_EQ(data_try(&data, path_in(dir, "nowhere"), NULL, 0), -ENOENT);
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.format = "parkett";
    CHECK_EQ(weir_data_open(&data, dir, &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "parkett"));
}

/* Whoever forgets the key is not to read what nobody has checked. */
static void a_manifest_without_a_key_is_refused(void)
{
    const char *dir = dataset_dir();
    weir_data *data;
    weir_data_options opts;
    tokens_bare(path_in(dir, "train.bin"), 0, 5000, 2);
    weir_data_options_init(&opts);
    opts.proof = dir;
    CHECK_EQ(weir_data_open(&data, dir, &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "is checked with a public key"));
}

static void a_child_is_told(void)
{
    weir_data *data = data_at(make_dataset(), OPTIONS, 0);
    pid_t pid = fork();
    if (!pid) {
        weir_data_sample *sample;
        int code = weir_data_sample_open(&sample, data, 0);
        weir_data_close(data);
        _exit(code == -ECHILD ? 0 : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    weir_data_close(data);
}

/* Stopping keeps what was found: nothing is wrong the next time. */
static int stop_at_once(void *arg, uint64_t more, uint64_t total)
{
    *(uint64_t *)arg += more;
    return total > 0;
}

static void whoever_asks_is_stopped(void)
{
    const char *dir = make_dataset();
    uint64_t told = 0;
    weir_data *data;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.options = OPTIONS;
    opts.cache = tmp_path("cache");
    opts.progress = stop_at_once;
    opts.progress_arg = &told;
    CHECK_EQ(weir_data_open(&data, dir, &opts), -ECANCELED);
    CHECK(told > 0);
    opened(dir, 0, true, 3, 13);
}

static int stop_listing(void *arg)
{
    return ++*(int *)arg == 4;
}

static void files_are_told_as_they_are_listed(void)
{
    const char *dir = make_dataset();
    int told = 0;
    weir_data *data;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.options = OPTIONS;
    opts.cache = tmp_path("cache");
    opts.listed = stop_listing;
    opts.progress_arg = &told;
    CHECK_EQ(weir_data_open(&data, dir, &opts), -ECANCELED);
    CHECK_EQ(told, 4);
    OK(weir_data_open(&data, dir, &opts));
    CHECK_EQ(told, 4 + 6);
    weir_data_close(data);
}

/* Without any place for a cache the index is in memory. */
static void without_a_cache(void)
{
    const char *dir = make_dataset();
    weir_data *data;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.options = OPTIONS;
    unsetenv("WEIR_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/proc/nowhere", 1);
    for (int i = 0; i < 2; i++) {
        OK(weir_data_open(&data, dir, &opts));
        CHECK(weir_data_info_get(data)->built && weir_data_count(data) == 13);
        CHECK(!strncmp(weir_data_info_get(data)->index, "mem:/data/", 10));
        weir_data_close(data);
    }
}

/* A cache that is full, or may not be written to, from its n-th request on: the index is in memory,
 * unless it is to be kept. */
static void a_cache_that_takes_nothing(void)
{
    static const char *const errors[] = {"ENOSPC", "EDQUOT", "EROFS", "EACCES"};
    const char *dir = make_dataset();
    int in_memory = 0, refused = 0;
    for (int i = 0; i < 4; i++)
        for (int nth = 1; nth < 30; nth++) {
            char cache[PATH_MAX + 96];
            snprintf(cache, sizeof cache,
                     "file:%s?fault_nth=%d&fault_lasting=1&fault_error=%s&fault_ops=create,"
                     "write,commit,put,remove,list",
                     tmp_path("shut"), nth, errors[i]);
            weir_data_options opts;
            weir_data *data;
            weir_data_options_init(&opts);
            opts.options = OPTIONS;
            opts.cache = cache;
            opts.flags = WEIR_DATA_KEEP;
            if (weir_data_open(&data, dir, &opts)) {
                CHECK(
                    strstr(weir_error_text(), "cannot keep the index (name another with --cache"));
                CHECK(strstr(weir_error_text(), "/shut"));
                refused++;
            } else {
                weir_data_close(data);
            }
            opts.flags = WEIR_DATA_REBUILD;
            OK(weir_data_open(&data, dir, &opts));
            CHECK_EQ(weir_data_count(data), 13);
            in_memory += !strncmp(weir_data_info_get(data)->index, "mem:", 4);
            weir_data_close(data);
        }
    CHECK(in_memory > 0 && refused > 0);
}

/* What is not the cache's is still an error: a shard that may not be read is one. */
static void a_shard_that_may_not_be_read(void)
{
    const char *dir = make_dataset();
    char faulty[PATH_MAX + 96];
    int failed = 0;
    for (int nth = 1; nth < 8; nth++) {
        weir_data *data = NULL;
        snprintf(faulty, sizeof faulty,
                 "file:%s?fault_nth=%d&fault_lasting=1&fault_error=EACCES&fault_ops=read", dir,
                 nth);
        if (data_try(&data, faulty, OPTIONS, WEIR_DATA_REBUILD | WEIR_DATA_KEEP)) {
            CHECK(!strstr(weir_error_text(), "--cache"));
            failed++;
        }
        weir_data_close(data);
    }
    CHECK(failed > 0);
}

int main(void)
{
    RUN(an_index_is_made_once);
    RUN(what_changed_is_noticed);
    RUN(another_time_is_another_file);
    RUN(another_idx_is_another_shard);
    RUN(a_trusted_index_knows_no_times);
    RUN(a_damaged_index_is_made_anew);
    RUN(beside_the_data_in_a_store);
    RUN(an_index_that_came_along);
    RUN(any_request_may_fail);
    RUN(sealed_shards_are_verified);
    RUN(a_plain_directory_stays_as_it_is);
    RUN(a_shard_that_shrinks_under_us);
    RUN(one_file_is_a_dataset);
    RUN(nothing_is_no_dataset);
    RUN(a_manifest_without_a_key_is_refused);
    RUN(a_child_is_told);
    RUN(whoever_asks_is_stopped);
    RUN(files_are_told_as_they_are_listed);
    RUN(a_cache_that_takes_nothing);
    RUN(a_shard_that_may_not_be_read);
    RUN(without_a_cache);
    return TEST_RESULT;
}
