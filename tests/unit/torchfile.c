/* Archives of torch.save(): their tensors come out row by row whatever their strides are, and an
 * archive, a pickle or a tensor that lies is refused, wherever it is cut or changed.
 */
#include <errno.h>

#include "ckpt/tagged.h"
#include "ckpt/torchfile.h"
#include "zips.h"

static struct weir_source source;
static struct weir_arena *arena;
static struct weir_tagged tagged;
static struct zip_maker zip;
static float storage[24];

/* A pickle being written. */
static char pickle[4096];
static size_t pickle_size;

static void add_text(const char *text)
{
    size_t size = strlen(text);
    CHECK(pickle_size + size < sizeof pickle);
    memcpy(pickle + pickle_size, text, size);
    pickle_size += size;
}

static void add_byte(int byte)
{
    pickle[pickle_size++] = (char)byte;
}

static void add_string(const char *text)
{
    add_byte('U');
    add_byte((int)strlen(text));
    add_text(text);
}

static void add_int(int64_t number)
{
    add_byte(0x8a);
    add_byte(8);
    CHECK(pickle_size + 8 < sizeof pickle);
    weir_store_le((uint8_t *)pickle + pickle_size, (uint64_t)number, 8);
    pickle_size += 8;
}

static void add_dims(const int64_t *dims, int ndim)
{
    add_byte('(');
    for (int i = 0; i < ndim; i++)
        add_int(dims[i]);
    add_byte('t');
}

struct tensor {
    const char *name, *class, *key;
    int64_t count, at;
    int ndim;
    int64_t shape[4], stride[4];
};

static void add_tensor(const struct tensor *t)
{
    add_string(t->name);
    add_text("ctorch._utils\n_rebuild_tensor_v2\n((");
    add_string("storage");
    add_text("ctorch\n");
    add_text(t->class);
    add_text("\n");
    add_string(t->key);
    add_string("cpu");
    add_int(t->count);
    add_text("tQ");
    add_int(t->at);
    add_dims(t->shape, t->ndim);
    add_dims(t->stride, t->ndim);
    add_text("\x89NtR");
}

/* An archive with one dict of these tensors. */
static void make(const struct tensor *tensors, size_t count, bool large)
{
    for (size_t i = 0; i < 24; i++)
        storage[i] = (float)i;
    pickle_size = 0;
    add_text("\x80\2}(");
    for (size_t i = 0; i < count; i++)
        add_tensor(&tensors[i]);
    add_text("u.");
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "a/data.pkl", pickle, pickle_size);
    zip_add(&zip, "a/byteorder", "little", 6);
    zip_add(&zip, "a/data/0", storage, sizeof storage);
    zip_add(&zip, "a/version", "3\n", 2);
    zip_end(&zip, large);
}

/* From a block of just that size. */
static int load(const void *bytes, size_t size)
{
    static uint8_t *copy;
    struct weir_source_file *file;
    struct weir_value *root;
    weir_tagged_free(&tagged);
    weir_arena_free(arena);
    arena = NULL;
    weir_source_close(&source);
    free(copy);
    copy = malloc(size + !size);
    CHECK(copy);
    if (size)
        memcpy(copy, bytes, size);
    OK(weir_source_add_bytes(&source, copy, size, &file));
    struct weir_extent span = {file, 0, size};
    int code = weir_torchfile_load(&root, &arena, &span);
    if (!code)
        code = weir_tagged_make(&tagged, &arena, root, false);
    if (!size) { /* the last one */
        free(copy);
        copy = NULL;
    }
    return code;
}

static void read_is(size_t i, const float *expected, size_t count)
{
    struct weir_windows windows = {0};
    const struct weir_from *from = tagged.tensors[i].from;
    float got[64];
    CHECK_EQ(from->bytes, count * 4);
    OK(weir_from_read(from, &windows, 0, got, count * 4));
    CHECK(!count || !memcmp(got, expected, count * 4));
    memset(got, 0, sizeof got);
    for (size_t at = 0; at < count * 4; at += 3) /* not even whole elements */
        OK(weir_from_read(from, &windows, at, (char *)got + at,
                          count * 4 - at < 3 ? count * 4 - at : 3));
    CHECK(!count || !memcmp(got, expected, count * 4));
    weir_windows_free(&windows);
}

static void strides(void)
{
    static const struct tensor tensors[] = {
        {"all", "FloatStorage", "0", 24, 0, 2, {4, 6}, {6, 1}},
        {"transposed", "FloatStorage", "0", 24, 0, 2, {3, 2}, {1, 6}},
        {"inner", "FloatStorage", "0", 24, 7, 2, {2, 3}, {6, 1}},
        {"same", "FloatStorage", "0", 24, 5, 2, {2, 3}, {0, 0}},
        {"scalar", "FloatStorage", "0", 24, 23, 0, {0}, {0}},
        {"none", "FloatStorage", "0", 24, 99, 2, {0, 3}, {1, 1}},
        {"one", "FloatStorage", "0", 24, 2, 3, {1, 2, 1}, {99, 1, 77}},
    };
    for (int large = 0; large < 2; large++) {
        make(tensors, 7, large);
        OK(load(zip.bytes, zip.size));
        CHECK_EQ(tagged.count, 7);
        read_is(0, storage, 24);
        read_is(1, (float[]){0, 6, 1, 7, 2, 8}, 6);
        read_is(2, (float[]){7, 8, 9, 13, 14, 15}, 6);
        read_is(3, (float[]){5, 5, 5, 5, 5, 5}, 6);
        read_is(4, (float[]){23}, 1);
        read_is(5, NULL, 0);
        read_is(6, (float[]){2, 3}, 2);
        CHECK(tagged.tensors[0].from->flat && !tagged.tensors[1].from->flat);
    }
}

static void wrong_tensors(void)
{
    static const struct {
        struct tensor tensor;
        int code;
        const char *why;
    } cases[] = {
        {{"x", "FloatStorage", "0", 24, 1, 1, {24}, {1}}, -EBADMSG, "not within its storage"},
        {{"x", "FloatStorage", "0", 24, 0, 2, {2, 2}, {23, 1}}, -EBADMSG, "not within"},
        {{"x", "FloatStorage", "0", 24, 24, 0, {0}, {0}}, -EBADMSG, "not within"},
        {{"x", "FloatStorage", "0", 24, INT64_MAX, 1, {2}, {INT64_MAX}}, -EBADMSG, "not within"},
        {{"x", "FloatStorage", "0", 24, 0, 2, {3, 3}, {INT64_MAX, INT64_MAX}}, -EBADMSG, "within"},
        {{"x", "FloatStorage", "0", 24, 0, 2, {INT64_MAX, 8}, {0, 0}}, -EINVAL, "too large"},
        {{"x", "FloatStorage", "0", 24, -1, 1, {1}, {1}}, -EBADMSG, "begins"},
        {{"x", "FloatStorage", "0", 24, 0, 1, {-1}, {1}}, -EBADMSG, "no whole number"},
        {{"x", "FloatStorage", "0", 24, 0, 1, {1}, {-1}}, -EBADMSG, "no whole number"},
        {{"x", "FloatStorage", "0", 25, 0, 1, {1}, {1}}, -EBADMSG, "as many as it says"},
        {{"x", "FloatStorage", "0", 23, 0, 1, {1}, {1}}, -EBADMSG, "as many as it says"},
        {{"x", "DoubleStorage", "0", 24, 0, 1, {1}, {1}}, -EBADMSG, "as many as it says"},
        {{"x", "FloatStorage", "1", 24, 0, 1, {1}, {1}}, -EBADMSG, "'1' is missing"},
        {{"x", "FloatStorage", "../version", 24, 0, 1, {1}, {1}}, -EBADMSG, "is missing"},
        {{"x", "ComplexDoubleStorage", "0", 6, 0, 1, {1}, {1}}, -ENOTSUP, "ComplexDouble"},
        {{"x", "OtherStorage", "0", 24, 0, 1, {1}, {1}}, -ENOTSUP, "torch.OtherStorage"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(&cases[i].tensor, 1, false);
        int code = load(zip.bytes, zip.size);
        if (code != cases[i].code || !strstr(weir_fail_last(), cases[i].why))
            fprintf(stderr, "case %zu\n", i);
        CHECK_EQ(code, cases[i].code);
        CHECK(strstr(weir_fail_last(), cases[i].why) && strstr(weir_fail_last(), "'x'"));
    }
}

static const struct tensor small = {"w", "FloatStorage", "0", 24, 0, 1, {24}, {1}};

static void cut_short(void)
{
    for (int large = 0; large < 2; large++) {
        make(&small, 1, large);
        OK(load(zip.bytes, zip.size));
        for (size_t size = 0; size < zip.size; size++)
            CHECK_EQ(load(zip.bytes, size), -EBADMSG);
    }
}

/* Every byte changed: refused, or the tensor is still within the file (a sanitizer would tell). */
static void changed(void)
{
    static const uint8_t flips[] = {0xff, 0x01, 0x80};
    for (int large = 0; large < 2; large++) {
        make(&small, 1, large);
        for (size_t at = 0; at < zip.size; at++) {
            for (size_t k = 0; k < sizeof flips; k++) {
                zip.bytes[at] ^= flips[k];
                if (!load(zip.bytes, zip.size) && tagged.count) {
                    struct weir_windows windows = {0};
                    char got[96];
                    const struct weir_from *from = tagged.tensors[0].from;
                    OK(weir_from_read(from, &windows, 0, got, from->bytes < 96 ? from->bytes : 96));
                    weir_windows_free(&windows);
                }
                zip.bytes[at] ^= flips[k];
            }
        }
    }
}

/* A field of the archive is set to something else. */
static void lie(bool large, size_t at, unsigned bytes, uint64_t value, const char *why)
{
    make(&small, 1, large);
    size_t where = at;
    if (at >= 3000)
        where = zip.end - 76 + at - 3000; /* from the zip64 record on */
    else if (at >= 2000)
        where = zip.end + at - 2000;
    else if (at >= 1000)
        where = zip.directory + at - 1000;
    weir_store_le(zip.bytes + where, value, bytes);
    int code = load(zip.bytes, zip.size);
    if (!code || !strstr(weir_fail_last(), why))
        fprintf(stderr, "%zu, %u bytes: %s\n", at, bytes, why);
    CHECK(code == -EBADMSG || code == -ENOTSUP);
    CHECK(strstr(weir_fail_last(), why));
}

static void lies(void)
{
    enum { DIRECTORY = 1000, END = 2000, END64 = 3000 };
    lie(false, DIRECTORY + 10, 2, 8, "compressed");
    lie(false, DIRECTORY + 8, 2, 1, "encrypted");
    lie(false, DIRECTORY + 24, 4, 1, "two sizes");
    lie(false, DIRECTORY + 28, 2, 60000, "cut short");
    lie(false, DIRECTORY + 42, 4, 1, "not where the directory says");
    lie(false, DIRECTORY + 42, 4, 0x7fffffff, "are needed");
    lie(false, END + 10, 2, 3, "another length");
    lie(false, END + 10, 2, 5, "as many entries");
    lie(false, END + 10, 2, 0, "as many entries");
    lie(false, END + 10, 2, 60000, "as many entries");
    lie(false, END + 12, 4, 0x7fffffff, "not where it should be");
    lie(false, END + 16, 4, 0x7fffffff, "not where it should be");
    lie(false, END + 16, 4, 0, "cut short");
    lie(false, END + 16, 4, UINT32_MAX, "zip64 record is missing");
    lie(false, END + 20, 2, 1, "no end");
    lie(true, DIRECTORY + 56, 2, 7, "zip64 field is missing");
    lie(true, DIRECTORY + 58, 2, 16, "cut short");
    lie(true, DIRECTORY + 60, 8, UINT64_MAX, "two sizes");
    lie(true, DIRECTORY + 76, 8, UINT64_MAX, "are needed");
    lie(true, END64 + 0, 4, 0, "zip64 record is missing");
    lie(true, END64 + 32, 8, UINT64_MAX, "as many entries");
    lie(true, END64 + 40, 8, UINT64_MAX, "not where it should be");
    lie(true, END64 + 48, 8, UINT64_MAX, "not where it should be");
    lie(true, END64 + 64, 8, UINT64_MAX, "not where it should be");
    lie(true, END64 + 64, 8, 0, "zip64 record is missing");
}

static void other_archives(void)
{
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "word/document.xml", "x", 1);
    zip_end(&zip, false);
    CHECK_EQ(load(zip.bytes, zip.size), -EBADMSG);
    CHECK(strstr(weir_fail_last(), "data.pkl"));
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "a/data.pkl", "N.", 2);
    zip_add(&zip, "a/byteorder", "big", 3);
    zip_end(&zip, false);
    CHECK_EQ(load(zip.bytes, zip.size), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "big-endian"));
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "a/data.pkl", "N.", 2);
    zip_add(&zip, "a/data.pkl", "N.", 2);
    zip_end(&zip, false);
    CHECK_EQ(load(zip.bytes, zip.size), -EBADMSG);
    CHECK(strstr(weir_fail_last(), "one name"));
}

/* A tensor of 4 by 6 in three boxes: its left third, and the rest in an upper and a lower half, the
 * last of them lying in its file column by column. */
static void boxes(void)
{
    static const float bytes[] = {0, 1, 6,  7,  12, 13, 18, 19, 2,  3,  4,  5,
                                  8, 9, 10, 11, 14, 20, 15, 21, 16, 22, 17, 23};
    static const uint64_t whole[] = {4, 6}, left[] = {4, 2}, half[] = {2, 4}, rows2[] = {2, 1},
                          rows4[] = {4, 1}, columns[] = {1, 2};
    static const uint64_t at[][2] = {{0, 0}, {0, 2}, {2, 2}};
    struct weir_source_file *file;
    struct weir_windows windows = {0};
    float got[24];
    load("", 0);
    OK(weir_source_add_bytes(&source, bytes, sizeof bytes, &file));
    const struct weir_box list[] = {{file, 0, at[0], left, rows2},
                                    {file, 32, at[1], half, rows4},
                                    {file, 64, at[2], half, columns}};
    struct weir_from from = {"F32", 2, whole, sizeof got, 4, list, 3, false};
    OK(weir_from_read(&from, &windows, 0, got, sizeof got));
    for (size_t i = 0; i < 24; i++)
        CHECK(got[i] == (float)i);
    for (size_t k = 0; k < sizeof got; k += 5) {
        size_t n = sizeof got - k < 5 ? sizeof got - k : 5;
        memset(got, 0xff, sizeof got);
        OK(weir_from_read(&from, &windows, k, (char *)got + k, n));
        for (size_t i = (k + 3) / 4; i < (k + n) / 4; i++)
            CHECK(got[i] == (float)i);
    }
    from.count = 2; /* what no box has */
    CHECK_EQ(weir_from_read(&from, &windows, 0, got, sizeof got), -EBADMSG);
    OK(weir_from_read(&from, &windows, 0, got, 2 * 6 * 4));
    weir_windows_free(&windows);
}

int main(void)
{
    RUN(strides);
    RUN(boxes);
    RUN(wrong_tensors);
    RUN(cut_short);
    RUN(changed);
    RUN(lies);
    RUN(other_archives);
    load("", 0);
    weir_source_close(&source);
    return TEST_RESULT;
}
