/* WebDataset shards: members become samples and fields as the webdataset library has it, whatever
 * form of tar they are in; archives that are damaged, cut off or lie are refused with the place.
 */
#include <errno.h>

#include "data/tar.h"
#include "data/wds_name.h"
#include "samples.h"
#include "tars.h"

static struct tar tar;
static const struct weir_format *wds = &weir_format_wds;

#define ARE(expected)                                                                              \
    do {                                                                                           \
        tar_end(&tar);                                                                             \
        SAMPLES_ARE(wds, tar.data, tar.size, expected);                                            \
        tar.size = 0;                                                                              \
    } while (0)
#define FAIL(why)                                                                                  \
    do {                                                                                           \
        tar_end(&tar);                                                                             \
        SAMPLES_FAIL(wds, tar.data, tar.size, EBADMSG, why);                                       \
        tar.size = 0;                                                                              \
    } while (0)

static void names_are_taken_apart(void)
{
    static const struct {
        const char *name, *key, *suffix; /* NULL: dropped */
    } cases[] = {
        {"a.txt", "a", "txt"},
        {"a.b.txt", "a", "b.txt"},
        {"./x.jpg", "./x", "jpg"},
        {"d.e/x.jpg", "d.e/x", "jpg"},
        {"dir/.foo", "dir/", "foo"},
        {"dir/..foo", "dir/", ".foo"},
        {"a.b/y/.foo", "a.b/y/", "foo"},
        {"/.foo", "/", "foo"},
        {"a.", "a", ""},
        {"a\nb/c.txt", "a\nb/c", "txt"},
        {"a/__x__.txt", "a/__x__", "txt"},
        {"__x__.txt", "__x__", "txt"},
        {"a.b/.foo", NULL, NULL},
        {"./.foo", NULL, NULL},
        {".foo", NULL, NULL},
        {"..foo", NULL, NULL},
        {"plain", NULL, NULL},
        {"a.b/plain", NULL, NULL},
        {"a.b\n/c.txt", NULL, NULL},
        {"__x__", NULL, NULL},
        {"__x.y__", NULL, NULL},
        {"__x__/a.txt", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_wds_name name;
        bool is = weir_wds_split(&name, cases[i].name, strlen(cases[i].name));
        if (is != !!cases[i].key)
            fprintf(stderr, "%s\n", cases[i].name);
        CHECK_EQ(is, !!cases[i].key);
        if (!is)
            continue;
        CHECK(name.key_size == strlen(cases[i].key) &&
              !memcmp(name.key, cases[i].key, name.key_size));
        CHECK(name.suffix_size == strlen(cases[i].suffix) &&
              !memcmp(name.suffix, cases[i].suffix, name.suffix_size));
    }
}

static void members_are_grouped(void)
{
    tar_header(&tar, "dir/", 0, '5');
    tar_file(&tar, "__meta__", "x");
    tar_file(&tar, "a.txt", "one");
    tar_header(&tar, "dir/other/", 7, '5'); /* its size is no content */
    tar_file(&tar, "README", "dropped");
    tar_file(&tar, "a.CLS", " 12\n");
    tar_file(&tar, "b.txt", "two");
    tar_file(&tar, "a.txt", ""); /* the same key again is another sample */
    tar_file(&tar, "last", "dropped");
    ARE("__key__=t:a txt=t:one cls=<i8[]:12; __key__=t:b txt=t:two; __key__=t:a txt=t:");
    ARE("");
}

static void kinds_go_by_suffix(void)
{
    tar_file(&tar, "a.seg.txt", "\xff");
    tar_file(&tar, "a.json", "{\"x\": [1]}");
    tar_file(&tar, "a.b.json", "{");
    tar_file(&tar, "a.cls", "9223372036854775808");
    tar_file(&tar, "a.id", "-9223372036854775808");
    tar_file(&tar, "a.index", "1 2");
    tar_file(&tar, "a.jpg", "raw");
    tar_file(&tar, "a.", "none");
    tar_file(&tar, "a.pkl", "(lp0");
    ARE("__key__=t:a seg.txt=b:\xff json=j:{\"x\": [1]} b.json=b:{ cls=b:9223372036854775808 "
        "id=<i8[]:-9223372036854775808 index=b:1 2 jpg=b:raw =b:none pkl=b:(lp0");
}

static void add_npy(const char *name, uint8_t version, const char *header, size_t data_bytes)
{
    uint8_t file[512] = "\x93NUMPY";
    size_t at = version == 1 ? 10 : 12, length = strlen(header);
    file[6] = version;
    file[8] = (uint8_t)length;
    memcpy(file + at, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        file[at + length + i] = i % 4 ? 0 : (uint8_t)(i / 4 + 1);
    tar_header(&tar, name, at + length + data_bytes, '0');
    tar_content(&tar, file, at + length + data_bytes);
}

#define DICT(dtype, order, shape)                                                                  \
    "{'descr': '" dtype "', 'fortran_order': " order ", 'shape': " shape ", }   \n"

static void arrays_are_seen_in_place(void)
{
    add_npy("a.npy", 1, DICT("<i4", "False", "(2, 2)"), 16);
    ARE("__key__=t:a npy=<i4[2x2]:1,2,3,4");
    add_npy("a.npy", 2, DICT("<u4", "True", "(2,)"), 8);
    ARE("__key__=t:a npy=<u4[2]:1,2");
    add_npy("a.npy", 3, "{'shape':(),'fortran_order':False,'descr':'<i4'}", 4);
    ARE("__key__=t:a npy=<i4[]:1");
    add_npy("a.npy", 1, DICT("<f4", "False", "(0, 3)"), 0);
    ARE("__key__=t:a npy=<f4[0x3]:");
    static const struct {
        const char *header;
        size_t bytes;
    } raw[] = {
        {DICT("<i4", "True", "(2, 2)"), 16},
        {DICT(">i4", "False", "(2,)"), 8},
        {DICT("|O", "False", "(2,)"), 8},
        {DICT("<i4", "False", "(3,)"), 8},
        {DICT("<i4", "False", "(1,)"), 8},
        {DICT("<i4", "False", "(4611686018427387905,)"), 4},
        {DICT("<i4", "False", "(2"), 8},
        {"{'descr': '<i4'}", 8},
        {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }", 8},
        {"{'descr': '<i4', 'descr': '<i4', 'descr': '<i4', }", 8},
    };
    for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++) {
        static struct samples samples;
        add_npy("a.npy", 1, raw[i].header, raw[i].bytes);
        tar_end(&tar);
        OK(samples_scan(&samples, wds, tar.data, tar.size));
        CHECK(strstr(samples.text, "npy=b:"));
        tar.size = 0;
    }
}

static void long_names_of_every_form(void)
{
    char name[300], expected[400];
    memset(name, 'n', sizeof name);
    strcpy(name + 256, ".txt");
    snprintf(expected, sizeof expected, "__key__=t:%.256s txt=t:x", name);
    tar_extension(&tar, 'L', name, strlen(name) + 1);
    tar_file(&tar, "nnn", "x");
    ARE(expected);
    tar_pax(&tar, 'x', "mtime", "12.5");
    tar_pax(&tar, 'x', "path", name);
    tar_file(&tar, "nnn", "x");
    ARE(expected);
    tar_extension(&tar, 'K', "somewhere", 9);
    tar_extension(&tar, 'L', name, strlen(name)); /* without its NUL */
    tar_file(&tar, "nnn", "x");
    ARE(expected);

    tar_extension(&tar, 'L', "first.txt", 9);
    tar_pax(&tar, 'x', "path", "second.txt");
    tar_file(&tar, "nnn", "x");
    ARE("__key__=t:first txt=t:x");
    tar_pax(&tar, 'x', "path", "slashes.txt//");
    tar_file(&tar, "nnn", "x");
    ARE("__key__=t:slashes txt=t:x");

    uint8_t *block = tar_header(&tar, "b.txt", 1, '0');
    memcpy(block + 345, "some/dir", 8);
    tar_sum(block);
    tar_content(&tar, "x", 1);
    tar_file(&tar, "some/dir/b.TXT2", "y");
    ARE("__key__=t:some/dir/b txt=t:x txt2=b:y");
    block = tar_header(&tar, "b.txt", 1, '0'); /* GNU has times there */
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 345, "14000000000", 11);
    tar_sum(block);
    tar_content(&tar, "x", 1);
    ARE("__key__=t:b txt=t:x");
    tar_file(&tar, "\xe4.txt", "x"); /* not UTF-8 */
    ARE("__key__=b:\xe4 txt=t:x");
}

static void global_headers_belong_to_nobody(void)
{
    tar_pax(&tar, 'g', "comment", "git");
    tar_file(&tar, "a.txt", "x");
    tar_pax(&tar, 'g', "mtime", "1");
    tar_file(&tar, "a.cls", "1");
    ARE("__key__=t:a txt=t:x cls=<i8[]:1");
    tar_pax(&tar, 'g', "path", "b.txt");
    tar_file(&tar, "a.txt", "x");
    FAIL("sets the name");
}

static void sizes(void)
{
    tar_pax(&tar, 'x', "size", "3"); /* what the header says is too small for its field */
    tar_header(&tar, "a.txt", 0, '0');
    tar_content(&tar, "abc", 3);
    uint8_t *block = tar_header(&tar, "a.jpg", 0, '0');
    memset(block + 124, 0, 12);
    block[124] = 0x80;
    block[135] = 4;
    tar_sum(block);
    tar_content(&tar, "abcd", 4);
    ARE("__key__=t:a txt=t:abc jpg=b:abcd");

    tar_pax(&tar, 'x', "size", "700");
    tar_file(&tar, "a.txt", "abc");
    tar_file(&tar, "b.txt", "abc");
    FAIL("wrong checksum");
    tar_pax(&tar, 'x', "size", "9223372036854775807");
    tar_file(&tar, "a.txt", "abc");
    FAIL("PAX size");
    tar_pax(&tar, 'x', "size", "-1");
    tar_file(&tar, "a.txt", "abc");
    FAIL("PAX size");
    block = tar_header(&tar, "a.txt", 0, '0');
    memset(block + 124, 0xff, 12);
    tar_sum(block);
    FAIL("wrong size");
    tar_header(&tar, "a.txt", (uint64_t)1 << 32, '0'); /* larger than the shard */
    FAIL("ends");
}

static void what_is_wrong_is_told(void)
{
    tar_file(&tar, "a.txt", "x");
    tar_file(&tar, "a.TXT", "y");
    FAIL("'a.TXT'");
    tar_file(&tar, "a.__key__", "x");
    FAIL("'a.__key__'");
    tar_file(&tar, "a.txt", "x");
    tar.data[3] ^= 1;
    FAIL("wrong checksum");
    tar_header(&tar, "a.txt", 0, 'S');
    FAIL("sparse");
    tar_pax(&tar, 'x', "GNU.sparse.major", "1");
    tar_file(&tar, "a.txt", "x");
    FAIL("sparse");
    tar_pax(&tar, 'x', "path", "b.txt");
    FAIL("behind the header");
    tar_extension(&tar, 'x', "99 path=b\n", 10);
    FAIL("wrong record");
    tar_extension(&tar, 'x', "9 path b\n", 9);
    FAIL("without '='");
    tar_extension(&tar, 'x', "11 path=a\0b\n", 12);
    tar_file(&tar, "a.txt", "x");
    FAIL("wrong record");
    tar_extension(&tar, 'x', "12 path=a\0b\n", 12);
    tar_file(&tar, "a.txt", "x");
    FAIL("NUL");
    tar_header(&tar, "././@x", 1 << 21, 'x');
    FAIL("the limit is");
    for (int i = 0; i <= WEIR_TAR_EXTENSIONS_MAX; i++)
        tar_pax(&tar, 'x', "mtime", "1");
    FAIL("headers for one member");
    static char name[WEIR_TAR_NAME_MAX + 2];
    memset(name, 'n', WEIR_TAR_NAME_MAX + 1);
    tar_pax(&tar, 'x', "path", name);
    tar_file(&tar, "a.txt", "x");
    FAIL("the limit is");
}

static void more_members_than_fields(void)
{
    static struct tar many;
    static uint8_t data[(WEIR_FIELDS_MAX + 4) * 512];
    size_t size = 0;
    for (int i = 0; i < WEIR_FIELDS_MAX; i++) {
        char name[32];
        many.size = 0;
        snprintf(name, sizeof name, "a.s%d", i);
        tar_header(&many, name, 0, '0');
        memcpy(data + size, many.data, 512);
        size += 512;
        if (i == WEIR_FIELDS_MAX - 2) /* as many as fit, with the key */
        {
            static struct samples samples;
            OK(samples_scan(&samples, wds, data, size + 512));
            CHECK_EQ(samples.count, 1);
        }
    }
    SAMPLES_FAIL(wds, data, size + 512, EBADMSG, "more than 1023 members");
}

/* Cut off at any byte it is never shorter without an error. */
static void cut_off_anywhere(void)
{
    static struct samples samples;
    tar_pax(&tar, 'x', "path", "a.txt");
    tar_file(&tar, "nnn", "hello");
    tar_file(&tar, "b.txt", "hello");
    size_t size = tar.size;
    tar_end(&tar);
    for (size_t cut = 0; cut < size + 512; cut++) {
        int code = samples_scan(&samples, wds, tar.data, cut);
        if (code != -EBADMSG)
            fprintf(stderr, "cut at %zu\n", cut);
        CHECK_EQ(code, -EBADMSG);
    }
    OK(samples_scan(&samples, wds, tar.data, size + 512));
    CHECK_EQ(samples.count, 2);
    /* What is behind the end is not looked at. */
    memset(tar.data + size + 512, 'x', 512);
    OK(samples_scan(&samples, wds, tar.data, size + 1024));
    CHECK_EQ(samples.count, 2);
    tar.size = 0;
}

/* A sample's bytes that are not what the index thought. */
static void samples_that_are_none(void)
{
    struct weir_field fields[4];
    struct weir_arena *scratch = NULL;
    const char *key;
    tar_file(&tar, "a.txt", "x");
    tar_file(&tar, "b.txt", "x");
    struct weir_sample sample = {.data = tar.data, .size = tar.size};
    uint32_t count = 4;
    CHECK_EQ(wds->fields(NULL, &sample, &scratch, fields, &count), -EBADMSG);
    CHECK(strstr(weir_fail_last(), "several samples"));
    OK(wds->key(&sample, &scratch, &key));
    CHECK(!strcmp(key, "a"));
    sample.size = 512;
    CHECK_EQ(wds->fields(NULL, &sample, &scratch, fields, &count), -EBADMSG);
    sample.size = 0;
    CHECK_EQ(wds->fields(NULL, &sample, &scratch, fields, &count), -EBADMSG);
    CHECK_EQ(wds->key(&sample, &scratch, &key), -EBADMSG);
    sample.size = 1024;
    count = 1;
    CHECK_EQ(wds->fields(NULL, &sample, &scratch, fields, &count), -EBADMSG);
    weir_arena_free(scratch);
    tar.size = 0;
}

int main(void)
{
    RUN(names_are_taken_apart);
    RUN(members_are_grouped);
    RUN(kinds_go_by_suffix);
    RUN(arrays_are_seen_in_place);
    RUN(long_names_of_every_form);
    RUN(global_headers_belong_to_nobody);
    RUN(sizes);
    RUN(what_is_wrong_is_told);
    RUN(more_members_than_fields);
    RUN(cut_off_anywhere);
    RUN(samples_that_are_none);
    return TEST_RESULT;
}
