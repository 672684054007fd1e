/* WebDataset shards that are written: every kind of field reads as it was, names that need it have
 * a PAX header and others none, keys that could not be told apart are; the same samples make the
 * same bytes.
 */
#include <errno.h>

#include "data/tar.h"
#include "data/tar_write.h"
#include "made.h"
#include "samples.h"

static const struct weir_format *wds = &weir_format_wds;
static const struct weir_format_writer *way;
static void *writer;
static struct weir_growing out;

static void add(uint64_t number, const char *key, struct weir_field field)
{
    OK(way->add(writer, number, key, &field, 1));
}

#define ARE(expected)                                                                              \
    do {                                                                                           \
        out.size = 0;                                                                              \
        OK(made_whole(way, writer, &out));                                                         \
        SAMPLES_ARE(wds, out.data, out.size, expected);                                            \
    } while (0)

static void fields_of_every_kind(void)
{
    float floats[] = {0.5f, 1.5f, 2.5f, 3.5f};
    int16_t whole = -7;
    uint8_t truth = 1;
    struct weir_field fields[] = {
        made_text("__key__", "dir.d/a"),
        made_bytes("JPG", "raw"),
        made_text("txt", "words"),
        made_text("image/caption", "words"),
        made("json", WEIR_FIELD_JSON, "[1]"),
        made("meta", WEIR_FIELD_JSON, "{}"),
        made_array("cls", "<i2", &whole, 0, 0, 0),
        made_array("label", "|b1", &truth, 0, 0, 0),
        made_array("m", "<f4", floats, 2, 2, 2),
        made_array("one", "<f4", floats, 0, 0, 0),
        made_array("npy", "<f4", floats, 1, 0, 0),
        made_none("gone"),
    };
    char name[64];
    way->name(name, 3, "gz");
    CHECK(!strcmp(name, "shard-000003.tar.gz"));
    OK(way->add(writer, 0, "dir.d/a", fields, 12));
    ARE("__key__=t:dir.d/a jpg=b:raw txt=t:words image.caption.txt=t:words json=j:[1] "
        "meta.json=j:{} cls=<i8[]:-7 label.cls=<i8[]:1 m.npy=<f4[2x2]:0.5,1.5,2.5,3.5 "
        "one.npy=<f4[]:0.5 npy=<f4[0]: gone.json=j:null");
    ARE("");
    CHECK_EQ(out.size, 1024);
}

static void keys(void)
{
    add(7, NULL, made_bytes("x", "1"));
    add(8, "a", made_bytes("x", "2"));
    add(9, "a", made_bytes("x", "3")); /* would be one sample with the one before */
    add(10, "b.c", made_bytes("x", "4"));
    add(11, "__b__", made_bytes("x", "5"));
    add(12, "__b__/c", made_bytes("x", "6"));
    add(13, "", made_bytes("x", "7"));
    struct weir_field own[] = {made_text("__key__", "mine"), made_bytes("x", "8")};
    OK(way->add(writer, 14, NULL, own, 2));
    ARE("__key__=t:000000007 x=b:1; __key__=t:a x=b:2; __key__=t:a-9 x=b:3; "
        "__key__=t:000000010 x=b:4; __key__=t:__b__ x=b:5; __key__=t:000000012 x=b:6; "
        "__key__=t:000000013 x=b:7; __key__=t:mine x=b:8");
    add(0, "mine", made_bytes("x", "9")); /* another shard */
    ARE("__key__=t:mine x=b:9");
    own[0] = made_text("__key__", "b.c"); /* it cannot be the key, and is not lost */
    OK(way->add(writer, 15, NULL, own, 2));
    ARE("__key__=t:000000015 __key__.txt=t:b.c x=b:8");
    OK(way->add(writer, 16, "other", own, 2));
    ARE("__key__=t:other __key__.txt=t:b.c x=b:8");
    own[0] = made_bytes("__key__", "raw");
    OK(way->add(writer, 17, NULL, own, 2));
    OK(way->add(writer, 18, NULL, own, 2)); /* the same again: another sample */
    ARE("__key__=t:raw x=b:8; __key__=t:raw-18 __key__.txt=t:raw x=b:8");
}

static void plain_files_keep_their_names(void)
{
    struct weir_field fields[] = {made_bytes("data", "raw"), made_text("path", "cat/1.seg.JPG"),
                                  made_text("label", "cat")};
    OK(way->add(writer, 0, "cat/1", fields, 3));
    fields[1] = made_text("path", "cat/README");
    OK(way->add(writer, 1, "cat/README", fields, 3));
    ARE("__key__=t:cat/1 seg.jpg=b:raw label.txt=t:cat; "
        "__key__=t:cat/README data=b:raw path.txt=t:cat/README label.txt=t:cat");
}

static void refused(void)
{
    uint64_t large = UINT64_MAX;
    struct weir_field twice[] = {made_bytes("a", "x"), made_bytes("A", "y")};
    add(0, "before", made_bytes("x", "1"));
    CHECK_EQ(way->add(writer, 1, NULL, twice, 2), -EINVAL);
    CHECK(strstr(weir_fail_last(), "'A'"));
    struct weir_field own[] = {made_bytes("__key__", "\xff.c"), made_bytes("x", "1")};
    CHECK_EQ(way->add(writer, 1, NULL, own, 2), -EINVAL); /* it would be read as the key */
    CHECK(strstr(weir_fail_last(), "field '__key__' is not what its sample is called"));
    struct weir_field nul = {.name = "a\0b", .name_size = 3, .data = "", .kind = WEIR_FIELD_BYTES};
    CHECK_EQ(way->add(writer, 1, NULL, &nul, 1), -EINVAL);
    struct weir_field number = made_array("n", "<u8", &large, 0, 0, 0);
    CHECK_EQ(way->add(writer, 1, NULL, &number, 1), -EINVAL);
    CHECK_EQ(way->add(writer, 1, NULL, NULL, 0), -EINVAL);
    ARE("__key__=t:before x=b:1"); /* nothing of them is left */
}

static size_t count_of(char type)
{
    size_t count = 0;
    for (size_t at = 0; at + 512 <= out.size; at += 512)
        count += !memcmp(out.data + at + 257, "ustar", 6) && out.data[at + 156] == type;
    return count;
}

/* A key of that size, with a slash there if that is not 0. */
static void add_name(size_t size, size_t slash)
{
    static char name[WEIR_TAR_NAME_MAX + 1], expected[WEIR_TAR_NAME_MAX + 32];
    memset(name, 'n', size);
    name[size] = 0;
    if (slash)
        name[slash] = '/';
    add(0, name, made_bytes("x", "1"));
    snprintf(expected, sizeof expected, "__key__=t:%s x=b:1", name);
    ARE(expected);
    bool fits = size + 2 <= 100 || (slash && slash <= 155 && size + 2 - slash - 1 <= 100);
    CHECK_EQ(count_of('x'), !fits);
}

static void names_of_every_length(void)
{
    for (size_t size = 1; size < 600; size += size < 80 || size > 280 ? 37 : 3)
        for (size_t slash = 0; slash < size - 1; slash += 50)
            add_name(size, slash);
    for (size_t size = 95; size < 105; size++)
        add_name(size, 0);
    for (size_t size = 245; size < 260; size++)
        for (size_t slash = 150; slash < 160; slash++)
            add_name(size, slash);
    add(0, "\xc3\xa4", made_bytes("x", "1"));
    ARE("__key__=t:\xc3\xa4 x=b:1");
    CHECK_EQ(count_of('x'), 1);
    add(0, "\xe4", made_bytes("x", "1"));
    ARE("__key__=b:\xe4 x=b:1");
    CHECK(memmem(out.data, out.size, "21 hdrcharset=BINARY\n", 21));
}

/* Beyond 8 GiB a header has no room for the size. */
static void large_sizes(void)
{
    static const uint64_t limit = (uint64_t)1 << 33;
    const uint64_t sizes[] = {0, 1, limit - 1, limit, (uint64_t)1 << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_tar tar;
        struct weir_tar_member member;
        out.size = 0;
        OK(weir_tar_put_header(&out, "a.x", 3, sizes[i]));
        CHECK_EQ(count_of('x'), sizes[i] >= limit);
        weir_tar_begin(&tar, out.data, out.size);
        int code = weir_tar_next(&tar, &member);
        CHECK_EQ(code, sizes[i] ? -EBADMSG : 1); /* the content is missing, but its size is known */
        CHECK_EQ(member.size, sizes[i]);
    }
}

int main(void)
{
    struct weir_writing how = {.codec = ""};
    way = wds->writer;
    OK(way->open(&writer, &how));
    RUN(fields_of_every_kind);
    RUN(keys);
    RUN(plain_files_keep_their_names);
    RUN(refused);
    RUN(names_of_every_length);
    RUN(large_sizes);
    way->close(writer);
    way->close(NULL);
    weir_growing_free(&out);
    return TEST_RESULT;
}
