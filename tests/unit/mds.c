/* MDS: what is written is read; every cut and every lie of a header is refused with the place, and
 * so is a sample whose columns do not fit it. (That it is MosaicML Streaming's MDS, tests/interop
 * shows with that library.)
 */
#include "data/codec.h"
#include "data/field.h"
#include "data/survey.h"
#include "made.h"
#include "stores.h"
#include "util/bytes.h"
#include "util/hash.h"

static const struct weir_format_writer *writer;
static const char schema_text[] = "{\"columns\": [[[\"a\", \"int64\"], [\"b\", \"str\"], "
                                  "[\"c\", \"ndarray:uint8\"]]]}";
static void *schema;

/* ---- making shards ---- */

static void add(void *w, int64_t a, const char *b, const char *c)
{
    struct weir_field fields[3];
    weir_field_set(&fields[0], "c", 1, WEIR_FIELD_ARRAY, c, strlen(c));
    strcpy(fields[0].dtype, "|u1");
    fields[0].ndim = 1;
    fields[0].shape[0] = strlen(c);
    weir_field_set_number(&fields[1], "a", 1, "<i8", &a);
    weir_field_set(&fields[2], "b", 1, WEIR_FIELD_TEXT, b, strlen(b));
    OK(writer->add(w, 0, NULL, fields, 3));
}

static struct weir_growing make_shard(const char *codec, const struct weir_written **written,
                                      struct weir_growing *index)
{
    static struct weir_written one;
    struct weir_growing raw = {0}, file = {0};
    void *w;
    struct weir_writing how = {.codec = codec};
    OK(writer->open(&w, &how));
    add(w, 1, "one", "x");
    add(w, -2, "", "yyy");
    add(w, 3, "three", "zz");
    OK(made_whole(writer, w, &raw));
    OK(weir_codec_encode(codec, raw.data, raw.size, &file));
    writer->name(one.name, 0, codec);
    one.samples = 3;
    one.raw_bytes = raw.size;
    one.file_bytes = file.size;
    OK(writer->index(&how, w, &one, 1, index));
    writer->close(w);
    if (written)
        *written = &one;
    weir_growing_free(&raw);
    return file;
}

/* ---- reading them ---- */

struct sum {
    const uint8_t *shard;
    uint32_t samples;
    int64_t a;
    size_t b, c;
    int code;
};

static int take(void *arg, uint64_t off, uint64_t size)
{
    struct sum *sum = arg;
    struct weir_field fields[4];
    struct weir_arena *scratch = NULL;
    uint32_t count = 4;
    int64_t a;
    uint8_t *copy = malloc(size + 1);
    CHECK(copy);
    memcpy(copy, sum->shard + off, size);
    struct weir_sample sample = {.data = copy, .size = size, .file = "shard.00000.mds"};
    sum->code = weir_format_mds.fields(schema, &sample, &scratch, fields, &count);
    if (!sum->code) {
        CHECK(count == 3 && weir_field_is(&fields[0], "a") && fields[1].kind == WEIR_FIELD_TEXT &&
              fields[2].ndim == 1 && fields[2].shape[0] == fields[2].size);
        memcpy(&a, fields[0].data, 8);
        sum->samples++;
        sum->a += a;
        sum->b += fields[1].size;
        sum->c += fields[2].size;
    }
    weir_arena_free(scratch);
    free(copy);
    return sum->code;
}

static int read_shard(struct sum *sum, const uint8_t *data, size_t size, uint64_t samples,
                      uint64_t raw_bytes)
{
    struct weir_flow *flow;
    struct weir_shard_plan plan = {
        .key = "shard.00000.mds", .codec = "", .raw_bytes = raw_bytes, .samples = samples};
    *sum = (struct sum){.shard = data};
    OK(weir_flow_open_bytes(&flow, data, size, "", UINT64_MAX));
    int code = weir_format_mds.scan(flow, &plan, schema, take, sum);
    weir_flow_close(flow);
    return code;
}

static void put(weir_store *store, const char *key, const struct weir_growing *bytes)
{
    weir_put *put;
    OK(weir_put_open(&put, store, key, NULL));
    OK(weir_put_write(put, bytes->data, bytes->size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

/* ---- tests ---- */

static void written_is_read(void)
{
    static const char *const codecs[] = {"", "zstd:2", "gz", "snappy"};
    for (size_t i = 0; i < 4; i++) {
        weir_store *store = store_at("mem:", NULL);
        struct weir_growing index = {0};
        const struct weir_written *written;
        struct weir_growing file = make_shard(codecs[i], &written, &index);
        struct weir_survey *survey;
        const struct weir_format *format;
        size_t size;
        put(store, "set/index.json", &index);
        char key[80];
        snprintf(key, sizeof key, "set/%s", written->name);
        put(store, key, &file);
        OK(weir_survey_open(&survey, store, "set/", NULL, NULL, NULL));
        OK(weir_format_detect(&format, survey));
        CHECK(format == &weir_format_mds);
        OK(format->survey(survey));
        CHECK_EQ(weir_survey_shards(survey), 1);
        const struct weir_shard_plan *plan = weir_survey_shard(survey, 0);
        CHECK(!strcmp(plan->key, written->name) && plan->samples == 3);
        CHECK_EQ(plan->raw_bytes, written->raw_bytes);
        const char *json = weir_survey_schema_get(survey, &size);
        CHECK(size == strlen(schema_text) && !memcmp(json, schema_text, size));
        weir_survey_close(survey);
        weir_store_close(store);
        weir_growing_free(&index);
        weir_growing_free(&file);
    }
}

static void samples_are_what_they_were(void)
{
    struct sum sum;
    struct weir_growing index = {0}, shard = make_shard("", NULL, &index);
    OK(read_shard(&sum, shard.data, shard.size, 3, shard.size));
    CHECK_EQ(sum.samples, 3);
    CHECK_EQ(sum.a, 2);
    CHECK_EQ(sum.b, 8);
    CHECK_EQ(sum.c, 6);
    weir_growing_free(&index);
    weir_growing_free(&shard);
}

/* Wherever it is cut, and whatever the index says of its size then. */
static void every_cut_is_refused(void)
{
    struct sum sum;
    struct weir_growing index = {0}, shard = make_shard("", NULL, &index);
    for (size_t size = 0; size < shard.size; size++) {
        uint8_t *cut = malloc(size + 1);
        CHECK(cut);
        memcpy(cut, shard.data, size);
        CHECK_EQ(read_shard(&sum, cut, size, 3, size), -EBADMSG);
        free(cut);
    }
    CHECK_EQ(read_shard(&sum, shard.data, shard.size, 2, shard.size), -EBADMSG);
    CHECK(strstr(weir_error_text(), "has 3 samples, where index.json says 2"));
    weir_growing_free(&index);
    weir_growing_free(&shard);
}

/* Each offset, moved anywhere; and each size within a sample. */
static void every_lie_is_refused(void)
{
    static const uint32_t lies[] = {0, 19, UINT32_MAX, 1 << 20};
    struct sum sum;
    struct weir_growing index = {0}, shard = make_shard("", NULL, &index);
    for (size_t at = 4; at < 20; at += 4) {
        for (size_t i = 0; i < 4; i++) {
            uint64_t was = weir_load_le(shard.data + at, 4);
            weir_store_le(shard.data + at, lies[i], 4);
            CHECK_EQ(read_shard(&sum, shard.data, shard.size, 3, shard.size), -EBADMSG);
            weir_store_le(shard.data + at, was, 4);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        size_t begin = weir_load_le(shard.data + 4 + 4 * i, 4);
        for (size_t at = begin; at < begin + 8; at += 4) {
            uint64_t was = weir_load_le(shard.data + at, 4);
            weir_store_le(shard.data + at, was + 1, 4);
            CHECK_EQ(read_shard(&sum, shard.data, shard.size, 3, shard.size), -EBADMSG);
            weir_store_le(shard.data + at, UINT32_MAX, 4);
            CHECK_EQ(read_shard(&sum, shard.data, shard.size, 3, shard.size), -EBADMSG);
            CHECK(strstr(weir_error_text(), "ends behind the sample"));
            weir_store_le(shard.data + at, was, 4);
        }
    }
    OK(read_shard(&sum, shard.data, shard.size, 3, shard.size));
    weir_growing_free(&index);
    weir_growing_free(&shard);
}

static void values_that_are_damaged(void)
{
    static const struct {
        const char *encoding, *data;
        size_t size;
        const char *says;
    } bad[] = {
        {"str", "\xff", 1, "is not UTF-8"},
        {"json", "\xff", 1, "is not UTF-8"},
        {"str_int", "\xff", 1, "is not UTF-8"},
        {"int", "1234567", 7, "ends behind the sample"},
        {"int", "123456789", 9, "its columns have 8 bytes, it has 9"},
        {"ndarray", "", 0, "lacks its dtype"},
        {"ndarray", "\7", 1, "is of no dtype there is"},
        {"ndarray", "\x08", 1, "lacks its shape"},
        {"ndarray", "\x08\x05", 2, "ends within its shape"},
        {"ndarray", "\x08\x04\x02x", 4, "as many numbers as its shape says"},
        {"ndarray", "\x08\x84\x01x", 4, "more than 32 dimensions"},
        {"ndarray:float32", "\x07\xff\xff\xff\xff\xff\xff\xff\xff", 9, "as many numbers"},
        {"ndarray:int16:2,2", "1234567", 7, "ends behind the sample"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[100];
        uint8_t sample_bytes[64];
        void *one;
        struct weir_field field;
        struct weir_arena *scratch = NULL;
        uint32_t count = 1;
        bool sized = strncmp(bad[i].encoding, "int", 3) && !strstr(bad[i].encoding, ":2");
        snprintf(json, sizeof json, "{\"columns\": [[[\"x\", \"%s\"]]]}", bad[i].encoding);
        OK(weir_format_mds.schema_open(&one, json, strlen(json)));
        weir_store_le(sample_bytes, bad[i].size, 4);
        memcpy(sample_bytes + (sized ? 4 : 0), bad[i].data, bad[i].size);
        struct weir_sample sample = {
            .data = sample_bytes, .size = bad[i].size + (sized ? 4 : 0), .file = "x"};
        CHECK_EQ(weir_format_mds.fields(one, &sample, &scratch, &field, &count), -EBADMSG);
        if (!strstr(weir_error_text(), bad[i].says))
            fprintf(stderr, "%s: %s\n", bad[i].encoding, weir_error_text());
        CHECK(strstr(weir_error_text(), bad[i].says));
        weir_arena_free(scratch);
        weir_format_mds.schema_close(one);
    }
}

static void schemas_that_are_none(void)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"columns\": []}",
        "{\"columns\": [[]]}",
        "{\"columns\": [[[\"a\"]]]}",
        "{\"columns\": [[[\"a\", \"int\", 8]]]}",
        "{\"columns\": [[[\"a\", \"int\"], [\"a\", \"str\"]]]}",
        "{\"columns\": [[[\"a\", \"integer\"]]]}",
        "{\"columns\": [[[\"a\", \"pkl\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:float33\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:int8:\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:int8:0\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:int8:3,\"]]]}",
        "{\"columns\": [[[\"a\", \"ndarray:int8:65536,65536\"]]]}",
        "{\"columns\": [[[\"a\", \"int\"]]], \"shards\": {\"x\": 1}}",
        "{\"columns\": [[[\"a\", \"int\"]]]} x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *none;
        int code = weir_format_mds.schema_open(&none, bad[i], strlen(bad[i]));
        if (code != -EINVAL && code != -ENOTSUP)
            fprintf(stderr, "%s: %d\n", bad[i], code);
        CHECK(code == -EINVAL || code == -ENOTSUP);
    }
}

/* What MDS does not hold is named, and what was added before stays as it was. */
static void fields_that_do_not_fit(void)
{
    struct weir_growing shard = {0};
    struct weir_field field;
    struct sum sum;
    void *w;
    int32_t number = 5;
    struct weir_writing how = {.codec = "", .schema = schema_text};
    OK(writer->open(&w, &how));
    add(w, 7, "seven", "x");
    weir_field_set(&field, "a", 1, WEIR_FIELD_BYTES, "x", 1);
    CHECK_EQ(writer->add(w, 1, NULL, &field, 1), -EINVAL);
    CHECK(strstr(weir_error_text(), "it has 1 fields"));
    struct weir_field three[3] = {field, field, field};
    weir_field_set_number(&three[0], "a", 1, "<i4", &number);
    CHECK_EQ(writer->add(w, 1, NULL, three, 3), -EINVAL);
    CHECK(strstr(weir_error_text(), "field 'a' does not fit its column"));
    OK(made_whole(writer, w, &shard));
    OK(read_shard(&sum, shard.data, shard.size, 1, shard.size));
    CHECK_EQ(sum.a, 7);
    writer->close(w);
    weir_growing_free(&shard);

    how.schema = NULL;
    OK(writer->open(&w, &how));
    weir_field_set(&field, "x", 1, WEIR_FIELD_NONE, NULL, 0);
    CHECK_EQ(writer->add(w, 0, NULL, &field, 1), -EINVAL);
    CHECK(strstr(weir_error_text(), "field 'x' is null"));
    weir_field_set_number(&field, "x", 1, "<c8", &number);
    CHECK_EQ(writer->add(w, 0, NULL, &field, 1), -EINVAL);
    CHECK(strstr(weir_error_text(), "dtype '<c8', which MDS does not have"));
    weir_field_set(&field, "\xff", 1, WEIR_FIELD_BYTES, "x", 1);
    CHECK_EQ(writer->add(w, 0, NULL, &field, 1), -EINVAL);
    CHECK(strstr(weir_error_text(), "not UTF-8"));
    CHECK_EQ(made_whole(writer, w, &shard), -EINVAL);
    writer->close(w);
    how.schema = "{\"columns\": []}";
    CHECK_EQ(writer->open(&w, &how), -EINVAL);
    how.schema = NULL;
    how.codec = "zip";
    CHECK_EQ(writer->open(&w, &how), -EINVAL);
}

static void hand_over(void *w, struct weir_growing *out)
{
    struct weir_made made;
    writer->drain(w, &made);
    CHECK(!made.head_size);
    OK(weir_made_join(&made, out));
}

/* The same bytes, whenever they are handed over; and as many in front as were expected. */
static void handed_over_in_parts(void)
{
    struct weir_writing how = {.schema = schema_text, .codec = ""};
    struct weir_growing shards[8] = {0};
    void *w;
    OK(writer->open(&w, &how));
    for (unsigned when = 0; when < 8; when++) { /* a bit for each sample */
        struct weir_growing body = {0};
        struct weir_made made;
        uint64_t expected;
        OK(writer->expect(w, 3, &expected));
        add(w, 1, "one", "x");
        if (when & 1)
            hand_over(w, &body);
        add(w, 2, "", "yy");
        if (when & 2)
            hand_over(w, &body);
        add(w, 3, "three", "z");
        if (when & 4)
            hand_over(w, &body);
        OK(writer->finish(w, &made));
        CHECK_EQ(made.head_size, expected);
        OK(weir_growing_add(&shards[when], made.head, made.head_size));
        OK(weir_growing_add(&shards[when], body.data, body.size));
        OK(weir_growing_add(&shards[when], made.body, made.body_size));
        CHECK(shards[when].size == shards[0].size &&
              !memcmp(shards[when].data, shards[0].data, shards[0].size));
        weir_growing_free(&body);
    }
    for (int i = 0; i < 8; i++)
        weir_growing_free(&shards[i]);
    writer->close(w);
}

static void booleans_are_bytes(void)
{
    struct weir_growing shard = {0};
    struct weir_field fields[2];
    void *w;
    struct weir_writing how = {.codec = ""};
    OK(writer->open(&w, &how));
    weir_field_set_number(&fields[0], "b", 1, "|b1", "\1");
    fields[1] = fields[0];
    fields[1].name = "c";
    fields[1].ndim = fields[1].shape[0] = 1;
    OK(writer->add(w, 0, NULL, fields, 2));
    OK(made_whole(writer, w, &shard));
    CHECK(memmem(shard.data, shard.size, "[\"uint8\", \"ndarray:uint8\"]", 26));
    CHECK(!memcmp(shard.data + shard.size - 4, "\1\4\1\1", 4));
    writer->close(w);
    weir_growing_free(&shard);
}

/* Encodings that were asked for; the others go by their fields. */
static void chosen_columns(void)
{
    static const char sample[] = "\2\0\0\0\3\0\0\0-7six\1\0\2\0";
    struct weir_writing how = {.codec = "", .columns = "c:ndarray:int16:2,a:str_int"};
    struct weir_growing text = {0};
    struct weir_made made;
    void *w;
    OK(writer->open(&w, &how));
    add(w, -7, "six", "\1\2");
    OK(writer->schema(w, &text));
    OK(weir_growing_add(&text, "", 1));
    CHECK(strstr((char *)text.data, "[[\"a\", \"str_int\"], [\"b\", \"str\"], "
                                    "[\"c\", \"ndarray:int16:2\"]]"));
    writer->drain(w, &made);
    CHECK(made.body_size == sizeof sample - 1 && !memcmp(made.body, sample, made.body_size));
    writer->close(w);
    weir_growing_free(&text);
    static const char *const bad[] = {"",
                                      "a",
                                      "a:",
                                      ":int",
                                      "a:int,",
                                      "a:int,a:str",
                                      "a:pkl",
                                      "a:ndarray:int8:2,,3",
                                      "a:ndarray:int8,3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        how.columns = bad[i];
        CHECK(writer->open(&w, &how) < 0);
        CHECK(!strncmp(weir_error_text(), "--columns", 9));
    }
}

/* MDS that becomes MDS is not decoded: even what could not be stays what it is. */
static void stored_as_it_stands(void)
{
    static const char json[] = "{\"columns\": [[[\"j\", \"json\"], [\"x\", \"ndarray\"]]]}";
    static const char bytes[] = "\3\0\0\0\2\0\0\0NaN\x08\x05";
    struct weir_sample sample = {
        .data = (const uint8_t *)bytes, .size = sizeof bytes - 1, .file = "x"};
    struct weir_field fields[2];
    struct weir_arena *scratch = NULL;
    struct weir_writing how = {.codec = ""};
    struct weir_made made;
    uint32_t count = 2;
    void *own, *w;
    OK(weir_format_mds.schema_open(&own, json, strlen(json)));
    CHECK_EQ(weir_format_mds.fields(own, &sample, &scratch, fields, &count), -EBADMSG);
    OK(weir_format_mds.stored(own, &sample, fields, &count));
    OK(writer->open(&w, &how));
    OK(writer->add_stored(w, own, &sample, &scratch, fields, count));
    writer->drain(w, &made);
    CHECK(made.body_size == sample.size && !memcmp(made.body, bytes, sample.size));
    writer->close(w);
    how.columns = "x:bytes"; /* which it must be decoded for */
    OK(writer->open(&w, &how));
    CHECK_EQ(writer->add_stored(w, own, &sample, &scratch, fields, count), -EBADMSG);
    writer->close(w);
    weir_arena_free(scratch);
    weir_format_mds.schema_close(own);
}

int main(void)
{
    writer = weir_format_mds.writer;
    OK(weir_format_mds.schema_open(&schema, schema_text, strlen(schema_text)));
    RUN(written_is_read);
    RUN(samples_are_what_they_were);
    RUN(every_cut_is_refused);
    RUN(every_lie_is_refused);
    RUN(values_that_are_damaged);
    RUN(schemas_that_are_none);
    RUN(fields_that_do_not_fit);
    RUN(booleans_are_bytes);
    RUN(handed_over_in_parts);
    RUN(chosen_columns);
    RUN(stored_as_it_stands);
    weir_format_mds.schema_close(schema);
    return TEST_RESULT;
}
