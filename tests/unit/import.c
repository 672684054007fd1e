/* Foreign checkpoints become checkpoints of a run, once: what is committed is what the source had,
 * and if the source fails, changes or is given up on the way, nothing is.
 */
#include "ckpt/import.h"
#include "ckpt/safetensors.h"
#include "stores.h"
#include "util/sys.h"

enum { ROWS = 1500, COLUMNS = 1024 };

static weir_store *store;
static const char *dir;
static uint16_t matrix[ROWS][COLUMNS];

static const char *make_source(const char *name)
{
    static const uint64_t shape[] = {ROWS, COLUMNS}, three[] = {3};
    struct weir_st_tensor tensors[] = {
        {.name = "w", .dtype = "BF16", .ndim = 2, .shape = shape},
        {.name = "b", .dtype = "U8", .ndim = 1, .shape = three},
    };
    uint8_t *header;
    size_t size;
    const char *path = tmp_path(name);
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t k = 0; k < COLUMNS; k++)
            matrix[i][k] = (uint16_t)(i * 31 + k);
    OK(weir_st_make(tensors, 2, NULL, 0, &header, &size));
    char *all = malloc(size + sizeof matrix + 3);
    CHECK(all);
    memcpy(all, header, size);
    memcpy(all + size, matrix, sizeof matrix);
    memcpy(all + size + sizeof matrix, "xyz", 3);
    file_write(path, all, size + sizeof matrix + 3);
    free(all);
    free(header);
    return path;
}

static struct weir_import *open_source(const char *path)
{
    struct weir_import *import;
    OK(weir_import_open(&import, path, false));
    return import;
}

static void commits_what_it_reads(void)
{
    struct weir_import *import = open_source(make_source("good"));
    static uint16_t back[ROWS][COLUMNS];
    weir_restore *restore;
    char *state;
    CHECK_EQ(import->bytes, sizeof matrix + 3);
    OK(weir_import_save(import, store, "good", 5, NULL, NULL));
    CHECK_EQ(weir_import_save(import, store, "good", 5, NULL, NULL), -EEXIST);
    weir_import_close(import);
    OK(weir_restore_open(&restore, store, "good", 5));
    CHECK(strstr(weir_restore_info_get(restore)->meta, "\"imported_from\":\"good-"));
    int64_t w = weir_restore_find(restore, "w");
    CHECK(w >= 0);
    weir_slice slice = {.tensor = (size_t)w, .data = back};
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    CHECK(!memcmp(back, matrix, sizeof matrix));
    OK(weir_restore_state(restore, 0, &state));
    CHECK(!strcmp(state, "{\"weir\":\"state/1\",\"root\":{\"w\":{\"$\":\"tensor\",\"name\":\"w\"},"
                         "\"b\":{\"$\":\"tensor\",\"name\":\"b\"}}}"));
    free(state);
    weir_restore_close(restore);
}

static void absent(const char *run)
{
    weir_restore *restore;
    CHECK_EQ(weir_restore_open(&restore, store, run, WEIR_STEP_NEWEST), -ENOENT);
}

struct vandal {
    const char *path;
    uint64_t done;
    enum { STOP, CUT, WRITE } deed;
};

/* In the middle of the import something happens. */
static int on_progress(void *arg, uint64_t more)
{
    struct vandal *vandal = arg;
    bool before = vandal->done < sizeof matrix / 2;
    vandal->done += more;
    if (!before || vandal->done < sizeof matrix / 2)
        return 0;
    if (vandal->deed == CUT)
        CHECK(truncate(vandal->path, sizeof matrix / 2) == 0);
    if (vandal->deed == WRITE) {
        int fd = file_force_open(vandal->path);
        CHECK_EQ(pwrite(fd, "!", 1, 5000), 1);
        close(fd);
    }
    return vandal->deed == STOP;
}

static void fails_with(const char *run, int deed, int code, const char *why)
{
    struct vandal vandal = {.path = make_source(run), .deed = deed};
    struct weir_import *import = open_source(vandal.path);
    usleep(20000); /* so that the file gets another time, whatever the clock's grain is */
    CHECK_EQ(weir_import_save(import, store, run, 1, on_progress, &vandal), code);
    CHECK(strstr(weir_fail_last(), why));
    weir_import_close(import);
    absent(run);
    import = open_source(make_source(run)); /* and the run is as good as before */
    OK(weir_import_save(import, store, run, 1, NULL, NULL));
    weir_import_close(import);
}

static void is_stopped(void)
{
    fails_with("stopped", STOP, -ECANCELED, "was stopped");
}

static void is_cut_short(void)
{
    fails_with("cut", CUT, -ESTALE, "was changed meanwhile");
}

static void is_changed(void)
{
    fails_with("changed", WRITE, -ESTALE, "was changed meanwhile");
}

/* The n-th read of the source fails. */
static unsigned reads_left;
static int source_ino_fd = -1;
static ssize_t failing_pread(int fd, void *buf, size_t size, uint64_t off)
{
    struct stat st, mine;
    if (fstat(fd, &st) == 0 && fstat(source_ino_fd, &mine) == 0 && st.st_ino == mine.st_ino &&
        reads_left-- == 0)
        return -EIO;
    return weir_sys_real.pread(fd, buf, size, off);
}

static void read_errors(void)
{
    const char *path = make_source("unreadable");
    struct weir_sys sys = weir_sys_real;
    sys.pread = failing_pread;
    source_ino_fd = open(path, O_RDONLY | O_CLOEXEC);
    weir_store_close(store);
    weir_sys = &sys;
    store = store_at(dir, "threads");
    unsigned n = 0;
    for (int code = -EIO; code; n++) {
        struct weir_import *import = NULL;
        reads_left = n;
        code = weir_import_open(&import, path, false);
        if (!code)
            code = weir_import_save(import, store, "unreadable", 1, NULL, NULL);
        weir_import_close(import);
        CHECK(!code || code == -EIO);
        if (code)
            absent("unreadable");
    }
    CHECK(n > 4);
    weir_store_close(store);
    weir_sys = &weir_sys_real;
    close(source_ino_fd);
    store = store_at(dir, NULL);
}

static void other_sources(void)
{
    static const char json[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    char file[200];
    struct weir_import *import;
    const char *path = tmp_path("small");
    memset(file, 0, 8);
    file[0] = (char)(sizeof json - 1);
    memcpy(file + 8, json, sizeof json - 1);
    memcpy(file + 8 + sizeof json - 1, "abc", 3);
    file_write(path, file, 8 + sizeof json - 1 + 3);
    import = open_source(path);
    OK(weir_import_save(import, store, "small", 0, NULL, NULL));
    weir_import_close(import);
    file_write(path, file, 8 + sizeof json - 1 + 2);
    CHECK_EQ(weir_import_open(&import, path, false), -EBADMSG);
    CHECK_EQ(weir_import_open(&import, tmpdir(), false), -ENOENT);
    CHECK_EQ(weir_import_open(&import, "/dev/null", false), -EINVAL);
    import = open_source(make_source("x"));
    CHECK_EQ(weir_import_save(import, store, "../x", 0, NULL, NULL), -EINVAL);
    weir_import_close(import);
}

int main(void)
{
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(commits_what_it_reads);
    RUN(is_stopped);
    RUN(is_cut_short);
    RUN(is_changed);
    RUN(read_errors);
    RUN(other_sources);
    weir_store_close(store);
    return TEST_RESULT;
}
