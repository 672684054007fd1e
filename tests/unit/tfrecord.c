/* TFRecords: Examples become fields, packed or not, other records stay bytes; lengths and checks
 * that are wrong are told; what is written is what protobuf writes, and reads back the same.
 */
#include <errno.h>

#include "data/protobuf.h"
#include "data/tfrecord.h"
#include "made.h"
#include "samples.h"

static const struct weir_format *tfrecord = &weir_format_tfrecord;

struct shard {
    uint8_t data[1 << 16];
    size_t size;
};

static void add_record(struct shard *shard, const void *data, size_t size)
{
    uint8_t *at = shard->data + shard->size;
    CHECK(shard->size + size + 16 <= sizeof shard->data);
    weir_store_le(at, size, 8);
    weir_store_le(at + 8, weir_tfrecord_check(at, 8), 4);
    memcpy(at + 12, data, size);
    weir_store_le(at + 12 + size, weir_tfrecord_check(data, size), 4);
    shard->size += size + 16;
}

/* A message of one length-delimited field around what is there. */
static size_t wrap(uint8_t *data, size_t size, uint32_t field)
{
    uint8_t head[16], *end = weir_pb_put_bytes(head, field, size);
    size_t more = (size_t)(end - head);
    memmove(data + more, data, size);
    memcpy(data, head, more);
    return size + more;
}

/* An Example with features of one-letter names; each is a Feature message. */
static size_t example(uint8_t *out, int count, const char *const *features, const size_t *sizes)
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        uint8_t entry[512];
        memcpy(entry, features[i], sizes[i]);
        size_t size = wrap(entry, sizes[i], 2);
        memmove(entry + 3, entry, size);
        entry[0] = 0x0a;
        entry[1] = 1;
        entry[2] = (uint8_t)('a' + i);
        size = wrap(entry, size + 3, 1);
        memcpy(out + used, entry, size);
        used += size;
    }
    return wrap(out, used, 1);
}

#define FEATURE(text) text, sizeof text - 1

static void add_feature(struct shard *shard, const char *feature, size_t size)
{
    uint8_t data[1024];
    add_record(shard, data, example(data, 1, &feature, &size));
}

static void the_frame_is_as_everybodys(void)
{
    static struct shard shard;
    static const uint8_t hello[] = "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19";
    add_record(&shard, "hello", 5);
    CHECK(shard.size == sizeof hello - 1 && !memcmp(shard.data, hello, shard.size));
    SAMPLES_ARE(tfrecord, shard.data, shard.size, "data=b:hello");
    SAMPLES_ARE(tfrecord, shard.data, 0, "");
    add_record(&shard, "", 0);
    SAMPLES_ARE(tfrecord, shard.data, shard.size, "data=b:hello; data=b:");
}

static void features_become_fields(void)
{
    static struct shard shard;
    add_feature(&shard, FEATURE("\x0a\x05\x0a\x03\x61\x62\x63"));               /* bytes */
    add_feature(&shard, FEATURE("\x0a\x06\x0a\x01x\x0a\x01y"));                 /* two of them */
    add_feature(&shard, FEATURE("\x0a\x00"));                                   /* none */
    add_feature(&shard, FEATURE("\x12\x06\x0a\x04\0\0\x80\x3f"));               /* packed float */
    add_feature(&shard, FEATURE("\x12\x0a\x0d\0\0\x80\x3f\x0d\0\0\0\x40"));     /* one by one */
    add_feature(&shard, FEATURE("\x12\x0b\x0a\x04\0\0\x80\x3f\x0d\0\0\0\x40")); /* both */
    add_feature(&shard, FEATURE("\x12\x00"));
    add_feature(&shard, FEATURE("\x1a\x05\x0a\x03\x01\xac\x02")); /* packed varints */
    add_feature(&shard, FEATURE("\x1a\x05\x08\x01\x08\xac\x02")); /* one by one */
    add_feature(&shard, FEATURE("\x1a\x0d\x0a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07"));
    add_feature(&shard, "", 0);
    SAMPLES_ARE(tfrecord, shard.data, shard.size,
                "a=b:abc; a/0=b:x a/1=b:y; a=0; a=<f4[1]:1; a=<f4[2]:1,2; a=<f4[2]:1,2; a=<f4[0]:; "
                "a=<i8[2]:1,300; a=<i8[2]:1,300; a=<i8[2]:-1,7; a=0");
}

/* Records that are no Example, although nearly. */
static void other_records_stay_bytes(void)
{
    static const struct {
        const char *data;
        size_t size;
    } cases[] = {
        {"\x0a\x05\x0a", 3},                                      /* a length beyond the end */
        {"\x0a\x00\x12\x00", 4},                                  /* a SequenceExample */
        {"\x08\x01", 2},                                          /* a number */
        {"\x0a\x02\x12\x00", 4},                                  /* not the map */
        {"\x0a\x06\x0a\x04\x0a\x02\xff\xfe", 8},                  /* a name that is not UTF-8 */
        {"\x0a\x08\x0a\x06\x12\x04\x22\x02\x0a\x00", 10},         /* a list of a fourth kind */
        {"\x0a\x08\x0a\x06\x12\x04\x0a\x00\x12\x00", 10},         /* two kinds at once */
        {"\x0a\x09\x0a\x07\x12\x05\x12\x03\x0a\x01\x00", 11},     /* a float of one byte */
        {"\x0a\x0a\x0a\x08\x12\x06\x1a\x04\x0a\x02\x80\x80", 12}, /* a varint without an end */
        {"\x0a\x08\x0a\x06\x12\x04\x0a\x02\x08\x01", 10},         /* a number among bytes */
        {"\x0a\x12\x0a\x10\x12\x0e\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
         20},        /* 65 bits */
        {"\x0b", 1}, /* a group */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct shard shard;
        static struct samples samples;
        shard.size = 0;
        add_record(&shard, cases[i].data, cases[i].size);
        OK(samples_scan(&samples, tfrecord, shard.data, shard.size));
        CHECK(samples.count == 1 && !strncmp(samples.text, "data=b:", 7));
    }
}

static void damage_is_told(void)
{
    static struct shard shard;
    static struct samples samples;
    uint8_t data[512];
    add_record(&shard, "hello", 5);
    add_record(&shard, "world", 5);
    for (size_t cut = 1; cut < shard.size; cut++)
        if (cut != 21)
            CHECK_EQ(samples_scan(&samples, tfrecord, shard.data, cut), -EBADMSG);
    for (size_t at = 0; at < 21; at++) {
        shard.data[at] ^= 4;
        CHECK_EQ(samples_scan(&samples, tfrecord, shard.data, shard.size), -EBADMSG);
        CHECK(strstr(weir_fail_last(), "CRC"));
        shard.data[at] ^= 4;
    }
    /* A length that is right by its check, and a lie. */
    weir_store_le(shard.data, (uint64_t)1 << 40, 8);
    weir_store_le(shard.data + 8, weir_tfrecord_check(shard.data, 8), 4);
    SAMPLES_FAIL(tfrecord, shard.data, shard.size, EBADMSG, "the record of 1099511627776 bytes");
    weir_store_le(shard.data, UINT64_MAX, 8);
    weir_store_le(shard.data + 8, weir_tfrecord_check(shard.data, 8), 4);
    SAMPLES_FAIL(tfrecord, shard.data, shard.size, EBADMSG, "wrong CRC");

    size_t size = example(data, 1, (const char *const[]){""}, (const size_t[]){0});
    memcpy(data + size, data, size); /* the same feature twice */
    shard.size = 0;
    add_record(&shard, data, 2 * size);
    SAMPLES_FAIL(tfrecord, shard.data, shard.size, EBADMSG, "two features are named 'a'");
}

static void too_many_fields(void)
{
    static struct shard shard;
    static uint8_t data[8192];
    size_t size = 0;
    for (int i = 0; i <= WEIR_FIELDS_MAX; i++) { /* a list of so many values */
        memcpy(data + size, "\x0a\0", 2);
        size += 2;
    }
    for (const char *at = "\x01\x02\x01\x01"; *at; at++) /* Feature, value, entry, features */
        size = wrap(data, size, (uint32_t)*at);
    add_record(&shard, data, size);
    SAMPLES_FAIL(tfrecord, shard.data, shard.size, EBADMSG, "more than 1024 features");
}

/* ---- writing ---- */

static void written_and_read_again(void)
{
    void *writer;
    char name[64];
    struct weir_growing out = {0};
    struct weir_writing how = {.codec = ""};
    int8_t small[] = {-1, 2};
    uint16_t halves[] = {0x3c00, 0xc000}; /* 1, -2 */
    float floats[] = {0.5f, 1.5f, 2.5f, 3.5f};
    struct weir_field fields[] = {
        made_bytes("z", "last"),
        made_bytes("b/0", "x"),
        made_bytes("b/1", "y"),
        made_array("small", "|i1", small, 1, 2, 0),
        made_array("half", "<f2", halves, 1, 2, 0),
        made_array("m", "<f4", floats, 2, 2, 2),
        made_array("none", "<f4", NULL, 1, 0, 0),
        made_none("null"),
    };
    tfrecord->writer->name(name, 7, "zstd:3");
    CHECK(!strcmp(name, "shard-000007.tfrecord.zst"));
    OK(tfrecord->writer->open(&writer, &how));
    OK(tfrecord->writer->add(writer, 0, NULL, fields, 8));
    struct weir_field raw = made_bytes("data", "hello");
    OK(tfrecord->writer->add(writer, 1, NULL, &raw, 1));

    double wide = 0.1;
    uint64_t large = UINT64_MAX;
    struct weir_field wrong[] = {made_array("w", "<f8", &wide, 0, 0, 0),
                                 made_array("w", "<u8", &large, 0, 0, 0)};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(tfrecord->writer->add(writer, 2, NULL, &wrong[i], 1), -EINVAL);
        CHECK(strstr(weir_fail_last(), "'w'"));
    }
    wrong[0] = made_bytes("b", "x"), wrong[1] = made_bytes("b", "y");
    CHECK_EQ(tfrecord->writer->add(writer, 2, NULL, wrong, 2), -EINVAL);
    OK(tfrecord->writer->add(writer, 2, NULL, NULL, 0));
    OK(made_whole(tfrecord->writer, writer, &out));
    SAMPLES_ARE(tfrecord, out.data, out.size,
                "b/0=b:x b/1=b:y half=<f4[2]:1,-2 m=<f4[4]:0.5,1.5,2.5,3.5 m/shape=<i8[2]:2,2 "
                "none=<f4[0]: null=0 small=<i8[2]:-1,2 z=b:last; data=b:hello; ");
    out.size = 0;
    OK(made_whole(tfrecord->writer, writer, &out)); /* empty again */
    CHECK_EQ(out.size, 0);
    tfrecord->writer->close(writer);
    tfrecord->writer->close(NULL);
    weir_growing_free(&out);
}

int main(void)
{
    RUN(the_frame_is_as_everybodys);
    RUN(features_become_fields);
    RUN(other_records_stay_bytes);
    RUN(damage_is_told);
    RUN(too_many_fields);
    RUN(written_and_read_again);
    return TEST_RESULT;
}
