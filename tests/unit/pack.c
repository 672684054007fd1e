/* Packing makes the same bytes with one job and with many, goes on from what is there, stops when
 * it is told to, and shares the work with another that begins at the same time.
 */
#include <stdatomic.h>

#include "data/pack.h"
#include "stores.h"
#include "util/sys.h"

enum { FILES = 200, SHARD = 65536 };

static const char *make_files(int count, size_t below)
{
    const char *dir = tmp_path("tree");
    uint8_t data[4096];
    CHECK(!mkdir(dir, 0755));
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%04d.png", i);
        data_fill(data, sizeof data, (uint64_t)i, 0);
        file_write(path_in(dir, name), data, (size_t)(i * 37) % below);
    }
    return dir;
}

static const char *make_tree(void)
{
    return make_files(FILES, 4096);
}

static weir_data *open_data(const char *dir)
{
    weir_data *data;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.cache = "mem:";
    OK(weir_data_open(&data, dir, &opts));
    return data;
}

static const struct weir_pack_options plain = {
    .format = "mds", .codec = "", .shard_bytes = SHARD, .jobs = 1};

static void *load(weir_store *store, const char *key, size_t *size)
{
    weir_object *obj;
    OK(weir_object_open(&obj, store, key));
    void *data = malloc(weir_object_info(obj)->size_bytes + 1);
    OK(weir_object_read(obj, data, weir_object_info(obj)->size_bytes, 0, size));
    weir_object_close(obj);
    return data;
}

/* Every object of one is in the other, with the same bytes. */
static void check_same(weir_store *a, weir_store *b, uint64_t count)
{
    weir_list *list;
    const weir_entry *entry;
    uint64_t found = 0;
    OK(weir_list_open(&list, a, "", WEIR_LIST_RECURSIVE));
    while (weir_list_next(list, &entry) == 1) {
        size_t x_size, y_size;
        void *x = load(a, entry->key, &x_size), *y = load(b, entry->key, &y_size);
        CHECK(x_size == y_size && !memcmp(x, y, x_size));
        free(x);
        free(y);
        found++;
    }
    weir_list_close(list);
    CHECK_EQ(found, count);
}

static void same_bytes(void)
{
    weir_data *data = open_data(make_tree());
    weir_store *one = store_at("mem:", NULL), *many = store_at(tmp_path("many"), NULL);
    struct weir_pack_options opts = plain;
    struct weir_pack_result result;
    OK(weir_pack_run(&result, data, one, "", &opts));
    CHECK(result.samples == FILES && result.shards > 4 && !result.shards_kept);
    opts.jobs = 4;
    OK(weir_pack_run(&result, data, many, "", &opts));
    check_same(one, many, result.shards + 2);
    OK(weir_remove(many, "shard.00002.mds"));
    OK(weir_remove(many, "index.json"));
    OK(weir_pack_run(&result, data, many, "", &opts));
    CHECK_EQ(result.shards_kept, result.shards - 1);
    check_same(one, many, result.shards + 2);
    opts.codec = "zstd:3";
    CHECK_EQ(weir_pack_run(&result, data, many, "", &opts), -EEXIST);
    OK(weir_pack_run(&result, data, many, "other/", &opts));
    weir_store_close(one);
    weir_store_close(many);
    weir_data_close(data);
}

static int stop_after(void *arg, uint64_t more)
{
    atomic_int *left = arg;
    (void)more;
    return --*left <= 0;
}

/* Stops when it was told of progress 3 times, then 4 times, and so on. */
static void stop_and_go_on(const char *tree, const char *format, const char *at)
{
    weir_data *data = open_data(tree);
    weir_store *whole = store_at("mem:", NULL), *parts = store_at(at, NULL);
    struct weir_pack_options opts = plain;
    struct weir_pack_result result;
    atomic_int left;
    opts.format = format;
    OK(weir_pack_run(&result, data, whole, "", &opts));
    opts.jobs = 3;
    opts.progress = stop_after;
    opts.arg = &left;
    int tries = 0, code;
    do {
        left = 3 + tries;
        code = weir_pack_run(&result, data, parts, "", &opts);
        CHECK(!code || code == -ECANCELED);
    } while (code && ++tries < 100);
    CHECK(!code && tries);
    check_same(whole, parts, result.files ? result.shards + result.files + 1 : result.shards + 2);
    weir_store_close(whole);
    weir_store_close(parts);
    weir_data_close(data);
}

static void stopped_and_gone_on(void)
{
    stop_and_go_on(make_tree(), "mds", "mem:");
}

/* A shard that many pieces are read for, each of 96 files at most: they come in their order, and
 * who stops leaves some that are loaded, or being loaded. */
static void many_pieces(void)
{
    stop_and_go_on(make_files(5000, 97), "mds", "mem:");
}

/* Each file is an object of its own; their lists say which are there. */
static void files_again(void)
{
    const char *tree = make_files(3000, 97);
    weir_data *data = open_data(tree);
    weir_store *store = store_at("mem:", NULL);
    struct weir_pack_options opts = plain;
    struct weir_pack_result result;
    stop_and_go_on(tree, "files", tmp_path("files"));
    opts.format = "files";
    OK(weir_pack_run(&result, data, store, "at/", &opts));
    CHECK(result.shards == 3 && result.samples == 3000 && result.files == 3000);
    CHECK(result.source_bytes == result.file_bytes && !result.files_kept);
    OK(weir_remove(store, "at/.pack/000001.weir")); /* it was killed before that */
    OK(weir_remove(store, "at/1500.png"));
    OK(weir_pack_run(&result, data, store, "at/", &opts));
    CHECK(result.shards_kept == 2 && result.files_kept == 3000 - 1024 && result.files == 3000);
    for (int i = 0; i < 3000; i += 250) {
        char name[32], path[32];
        size_t size, expected;
        snprintf(name, sizeof name, "at/%04d.png", i);
        snprintf(path, sizeof path, "%04d.png", i);
        void *got = load(store, name, &size), *was = file_read(path_in(tree, path), &expected);
        CHECK(size == expected && !memcmp(got, was, size));
        free(got);
        free(was);
    }
    opts.codec = "zstd:3";
    CHECK_EQ(weir_pack_run(&result, data, store, "other/", &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "no compression"));
    weir_store_close(store);
    weir_data_close(data);
}

/* In a directory, what is no file there is not done: a name, and one below it. */
static void names_in_the_way(void)
{
    static const char *const rows[] = {
        "{\"path\": \"a\", \"data\": \"1\"}\n{\"path\": \"a/b\", \"data\": \"2\"}\n",
        "{\"path\": \"a/b\", \"data\": \"1\"}\n{\"path\": \"a\", \"data\": \"2\"}\n",
    };
    struct weir_pack_options opts = plain;
    struct weir_pack_result result;
    opts.format = "files";
    for (int i = 0; i < 2; i++) {
        const char *dir = tmp_path(i ? "below-first" : "above-first");
        CHECK(!mkdir(dir, 0755));
        file_write(path_in(dir, "rows.jsonl"), rows[i], strlen(rows[i]));
        weir_data *data = open_data(dir);
        weir_store *store = store_at(tmp_path(i ? "above" : "below"), NULL);
        weir_store *memory = store_at("mem:", NULL);
        for (int again = 0; again < 2; again++) {
            CHECK(weir_pack_run(&result, data, store, "", &opts) < 0);
            CHECK(strstr(weir_error_text(), "sample 1 of"));
            CHECK(strstr(weir_error_text(), "another file or directory has its name"));
        }
        OK(weir_pack_run(&result, data, memory, "", &opts)); /* where no name is a file's */
        CHECK_EQ(result.files, 2);
        weir_store_close(memory);
        weir_store_close(store);
        weir_data_close(data);
    }
}

/* A source file that is gone is named, by whichever job came to it; when it is back, the same call
 * goes on. */
static void source_that_is_gone(void)
{
    const char *tree = make_tree();
    char *there = strdup(path_in(tree, "0150.png")), *away = strdup(tmp_path("away"));
    weir_data *data = open_data(tree);
    weir_store *whole = store_at("mem:", NULL), *parts = store_at("mem:", NULL);
    struct weir_pack_options opts = plain;
    struct weir_pack_result result;
    OK(weir_pack_run(&result, data, whole, "", &opts));
    opts.jobs = 4;
    CHECK(!rename(there, away));
    CHECK(weir_pack_run(&result, data, parts, "", &opts) < 0);
    CHECK(strstr(weir_error_text(), "0150.png"));
    CHECK(!rename(away, there));
    OK(weir_pack_run(&result, data, parts, "", &opts));
    check_same(whole, parts, result.shards + 2);
    weir_store_close(whole);
    weir_store_close(parts);
    weir_data_close(data);
    free(there);
    free(away);
}

/* ---- another process that begins meanwhile ---- */

static void (*overtaker)(void); /* comes when a place is next listed, once */
static weir_data *source;
static weir_store *place;

static ssize_t overtaken_getdents(int fd, void *buf, size_t size)
{
    void (*now)(void) = overtaker;
    overtaker = NULL;
    if (now)
        now();
    return weir_sys_real.getdents(fd, buf, size);
}

static void pack_the_same(void)
{
    struct weir_pack_result result;
    OK(weir_pack_run(&result, source, place, "", &plain));
}

static void put_a_file(void)
{
    put_seed(place, "notes", 100, 1);
}

static void overtaken(void)
{
    struct weir_pack_result result;
    source = open_data(make_tree());
    place = store_at(tmp_path("same"), NULL);
    overtaker = pack_the_same;
    OK(weir_pack_run(&result, source, place, "", &plain));
    CHECK(!overtaker && result.shards_kept == result.shards);
    weir_store_close(place);

    place = store_at(tmp_path("taken"), NULL);
    overtaker = put_a_file;
    CHECK_EQ(weir_pack_run(&result, source, place, "", &plain), -ENOTEMPTY);
    CHECK(!overtaker && strstr(weir_error_text(), "'notes' is there already"));
    weir_store_close(place);
    weir_data_close(source);
}

int main(void)
{
    struct weir_sys table = weir_sys_real;
    table.getdents = overtaken_getdents;
    weir_sys = &table; /* before there is a thread */
    RUN(same_bytes);
    RUN(stopped_and_gone_on);
    RUN(many_pieces);
    RUN(files_again);
    RUN(names_in_the_way);
    RUN(source_that_is_gone);
    RUN(overtaken);
    return TEST_RESULT;
}
