/* Opening stores: made once, found again, refused with a reason; options of every generation. */
#include "store/marker.h"
#include "stores.h"
#include "util/bytes.h"
#include "util/hash.h"

static int open_code(const char *url, const weir_store_options *opts)
{
    weir_store *store = NULL;
    int code = weir_store_open(&store, url, opts);
    CHECK(!code == !!store);
    weir_store_close(store);
    return code;
}

static weir_store_options creating(void)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    return opts;
}

static void made_and_found(void)
{
    const char *dir = path_in(tmp_path("deep"), "er/store");
    weir_store_options opts = creating();
    weir_store_info info;
    weir_store *store;
    char uuid[40];
    CHECK_EQ(open_code(dir, NULL), -ENOENT);
    CHECK(strstr(weir_error_text(), "there is no store at") && strstr(weir_error_text(), dir));
    opts.grace_s = 1234;
    OK(weir_store_open(&store, dir, &opts));
    OK(weir_store_info_get(store, &info));
    CHECK(strlen(info.uuid) == 36 && !strcmp(info.tier, "file") && !strcmp(info.url, dir));
    CHECK(info.level == WEIR_LEVEL_HOME && info.grace_s == 1234);
    CHECK(info.free_bytes > 0 && info.total_bytes >= info.free_bytes);
    CHECK(!strcmp(info.io, "uring") || !strcmp(info.io, "threads"));
    snprintf(uuid, sizeof uuid, "%s", info.uuid);
    weir_store_close(store);
    /* Found again: the same store, whose grace was settled when it was made. */
    opts.grace_s = 99;
    OK(weir_store_open(&store, dir, &opts));
    OK(weir_store_info_get(store, &info));
    CHECK(!strcmp(info.uuid, uuid) && info.grace_s == 1234);
    weir_store_close(store);
    OK(open_code(dir, NULL));
    weir_store_close(NULL);
}

static void urls(void)
{
    char url[PATH_MAX];
    const char *dir = tmp_path("with space");
    weir_store_options opts = creating();
    snprintf(url, sizeof url, "file://%s/with%%20space-url", tmpdir());
    OK(open_code(url, &opts));
    CHECK(path_there(path_in(tmpdir(), "with space-url/.weir/store")));
    OK(open_code(dir, &opts));
    OK(open_code("mem:", &opts));
    OK(open_code("mem:?size=1M&stats=1&read_rate=1G", &opts));
    OK(open_code("null:", &opts));
    CHECK_EQ(open_code("", &opts), -EINVAL);
    CHECK_EQ(open_code("bogus://x", &opts), -ENOTSUP);
    CHECK(strstr(weir_error_text(), "bogus"));
    CHECK_EQ(open_code("mem:?colour=red", &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "colour"));
    CHECK_EQ(open_code("mem:?size=red", &opts), -EINVAL);
    CHECK_EQ(open_code("mem:?size=0", &opts), -EINVAL);
    CHECK_EQ(open_code("mem:?fault_rate=2", &opts), -EINVAL);
    CHECK_EQ(open_code("mem:?fault_nth=1&fault_error=ENONSENSE", &opts), -EINVAL);
    CHECK_EQ(open_code("mem:?fault_nth=1&fault_ops=juggle", &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "juggle"));
    snprintf(url, sizeof url, "file://%s?size=1G", dir);
    CHECK_EQ(open_code(url, &opts), -EINVAL); /* a directory has the size it has */
}

static void bad_options(void)
{
    weir_store_options opts = creating();
    opts.depth = 65;
    CHECK_EQ(open_code("mem:", &opts), -EINVAL);
    opts = creating();
    opts.pool_bytes_max = 1 << 20;
    CHECK_EQ(open_code("mem:", &opts), -EINVAL);
    opts = creating();
    opts.grace_s = 366 * 86400;
    CHECK_EQ(open_code("mem:", &opts), -EINVAL);
    opts = creating();
    opts.io = "bogus";
    CHECK_EQ(open_code("mem:", &opts), -EINVAL);
    opts = creating();
    opts.struct_size = 4;
    CHECK_EQ(open_code("mem:", &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "weir_store_options_init"));
    opts = creating();
    opts.depth = opts.grace_s = opts.pool_bytes_max = 0; /* the defaults */
    OK(open_code("mem:", &opts));
}

/* What a caller's older header did not have is not looked at. */
static void older_callers(void)
{
    static const size_t sizes[] = {
        offsetof(weir_store_options, depth), offsetof(weir_store_options, io),
        offsetof(weir_store_options, pool_bytes_max), offsetof(weir_store_options, grace_s)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weir_store_options opts = creating();
        memset((char *)&opts + sizes[i], 0xff, sizeof opts - sizes[i]);
        opts.struct_size = sizes[i];
        OK(open_code("mem:", &opts));
    }
}

static void markers(void)
{
    const char *dir = tmp_path("marker");
    weir_store_options opts = creating();
    size_t size;
    OK(open_code(dir, &opts));
    const char *path = path_in(dir, ".weir/store");
    uint8_t *record = file_read(path, &size);
    CHECK_EQ(size, WEIR_MARKER_BYTES);
    CHECK(chmod(path, 0644) == 0);
    record[20] ^= 1;
    file_write(path, record, size);
    CHECK_EQ(open_code(dir, &opts), -EBADMSG);
    CHECK(strstr(weir_error_text(), dir) && strstr(weir_error_text(), "damaged"));
    record[20] ^= 1;
    weir_store_le(record + 8, 9, 2);
    file_write(path, record, size);
    CHECK_EQ(open_code(dir, &opts), -EPROTO);
    CHECK(strstr(weir_error_text(), "newer"));
    weir_store_le(record + 8, 1, 2);
    file_write(path, record, size);
    OK(open_code(dir, NULL));
    char *large = calloc(1, 10000);
    file_write(path, large, 10000);
    CHECK(open_code(dir, NULL) < 0);
    free(large);
    free(record);
}

static void not_directories(void)
{
    weir_store_options opts = creating();
    const char *file = tmp_path("file");
    file_write(file, "x", 1);
    CHECK_EQ(open_code(file, &opts), -ENOTDIR);
    CHECK(strstr(weir_error_text(), file));
    const char *dir = tmp_path("linked");
    CHECK(mkdir(dir, 0755) == 0 && symlink("/tmp", path_in(dir, ".weir")) == 0);
    CHECK_EQ(open_code(dir, &opts), -ELOOP);
}

/* A null store takes everything and has nothing; its level says so. */
static void null_store(void)
{
    weir_store *store = store_at("null:", NULL);
    weir_put *put;
    weir_put_result result;
    weir_store_info info;
    OK(weir_store_info_get(store, &info));
    CHECK(info.level == WEIR_LEVEL_NONE && !strcmp(info.tier, "null") && !strcmp(info.io, "none"));
    OK(weir_put_open(&put, store, "k", NULL));
    OK(weir_put_write(put, "x", 1));
    OK(weir_put_commit(put, &result));
    CHECK(result.level == WEIR_LEVEL_NONE && result.size_bytes == 1);
    weir_put_close(put);
    CHECK_EQ(get_code(store, "k"), -ENOENT);
    weir_store_close(store);
}

static int stop_after(void *arg, uint64_t more)
{
    uint64_t *seen = arg;
    *seen += more;
    return *seen > 70 << 20;
}

static void verify_can_be_stopped(void)
{
    weir_store *store = store_at("mem:", NULL);
    uint64_t seen = 0;
    put_seed(store, "k", 200 << 20, 1);
    CHECK_EQ(weir_verify(store, "k", stop_after, &seen), -ECANCELED);
    CHECK(seen > 70 << 20 && seen < 200 << 20);
    CHECK_EQ(weir_verify(store, "none", NULL, NULL), -ENOENT);
    weir_store_close(store);
}

int main(void)
{
    unsetenv("WEIR_IO");
    RUN(made_and_found);
    RUN(urls);
    RUN(bad_options);
    RUN(older_callers);
    RUN(markers);
    RUN(not_directories);
    RUN(null_store);
    RUN(verify_can_be_stopped);
    return TEST_RESULT;
}
