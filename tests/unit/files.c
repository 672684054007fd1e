/* Which format a directory looks like, and which of its files are shards: by names alone. Plain
 * files are samples of their own, with path and label.
 */
#include "data/format.h"
#include "data/survey.h"
#include "stores.h"

/* Puts files named in one text into a place of their own, and looks at it. */
static struct weir_survey *look(weir_store *store, const char *names)
{
    static int number;
    struct weir_survey *survey;
    char prefix[32], key[256];
    snprintf(prefix, sizeof prefix, "set%d/", number++);
    while (*names) {
        size_t size = strcspn(names, " ");
        weir_put *put;
        snprintf(key, sizeof key, "%s%.*s", prefix, (int)size, names);
        OK(weir_put_open(&put, store, key, NULL));
        OK(weir_put_write(put, "0123456789", strstr(key, "small") ? 1 : 10));
        OK(weir_put_commit(put, NULL));
        weir_put_close(put);
        names += size + (names[size] == ' ');
    }
    OK(weir_survey_open(&survey, store, prefix, NULL, NULL, NULL));
    return survey;
}

static void by_names(void)
{
    static const struct {
        const char *names, *format, *shards;
    } cases[] = {
        {"a.tar b.tar README", "wds", "a.tar: b.tar:"},
        {"a.tar.gz b.tgz c.tar.zst d.tar.bz2", "wds",
         "a.tar.gz:gz b.tgz:gz c.tar.zst:zstd "
         "d.tar.bz2:bz2"},
        {"x/.a.tar.tmp x/.a.tar x/a.tar", "wds", "x/a.tar:"},
        {"a.tfrecord b.tfrecords.gz c.tfrecord-00000-of-00002 d.tfrec", "tfrecord",
         "a.tfrecord: b.tfrecords.gz:gz c.tfrecord-00000-of-00002: d.tfrec:"},
        {"train-00000-of-00002 train-00001-of-00002", "tfrecord",
         "train-00000-of-00002: train-00001-of-00002:"},
        {"a.jsonl b.ndjson.gz c.json", "jsonl", "a.jsonl: b.ndjson.gz:gz"},
        {"small.tar a.jsonl", "jsonl", "a.jsonl:"},
        {"cat/1.jpg cat/2.jpg dog/.DS_Store dog/1.jpg", "files",
         "cat/1.jpg: cat/2.jpg: dog/1.jpg:"},
        {"-of-2 1-of-2 x-1-of-", "files", "-of-2: 1-of-2: x-1-of-:"},
    };
    weir_store *store = store_at("mem:", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_survey *survey = look(store, cases[i].names);
        const struct weir_format *format;
        char text[512] = "";
        OK(weir_format_detect(&format, survey));
        if (strcmp(format->name, cases[i].format))
            fprintf(stderr, "%s: %s\n", cases[i].names, format->name);
        CHECK(!strcmp(format->name, cases[i].format));
        CHECK(weir_format_find(format->name) == format);
        OK(format->survey(survey));
        for (size_t j = 0; j < weir_survey_shards(survey); j++) {
            const struct weir_shard_plan *shard = weir_survey_shard(survey, j);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%s", j ? " " : "",
                     shard->key, shard->codec);
            CHECK_EQ(shard->file_bytes, 10);
            CHECK_EQ(shard->raw_bytes, shard->codec[0] ? UINT64_MAX : 10);
            CHECK_EQ(shard->samples, format->is_files ? 1 : UINT64_MAX);
        }
        if (strcmp(text, cases[i].shards))
            fprintf(stderr, "%s\n", text);
        CHECK(!strcmp(text, cases[i].shards));
        weir_survey_close(survey);
    }
    struct weir_survey *survey = look(store, "README");
    CHECK_EQ(weir_format_wds.match(survey), 0);
    CHECK_EQ(weir_format_wds.survey(survey), -EINVAL);
    CHECK(strstr(weir_fail_last(), "*.tar"));
    weir_survey_close(survey);
    survey = look(store, ".hidden");
    CHECK_EQ(weir_format_files.match(survey), 0);
    CHECK_EQ(weir_format_files.survey(survey), -EINVAL);
    weir_survey_close(survey);
    weir_store_close(store);
}

static void fields_of_a_file(void)
{
    struct weir_field fields[3];
    struct weir_arena *scratch = NULL;
    const char *key;
    uint32_t count = 3;
    struct weir_sample sample = {(const uint8_t *)"abc", 3, "cat/sub/1.tar.jpg", 0, {0}};
    OK(weir_format_files.fields(NULL, &sample, &scratch, fields, &count));
    CHECK(count == 3 && fields[0].size == 3 && fields[0].data == sample.data);
    CHECK(fields[1].size == 17 && !memcmp(fields[1].data, "cat/sub/1.tar.jpg", 17));
    CHECK(fields[2].size == 3 && !memcmp(fields[2].data, "cat", 3));
    OK(weir_format_files.key(&sample, &scratch, &key));
    CHECK(!strcmp(key, "cat/sub/1"));
    count = 2;
    CHECK_EQ(weir_format_files.fields(NULL, &sample, &scratch, fields, &count), -EINVAL);
    sample.file = "README";
    OK(weir_format_files.fields(NULL, &sample, &scratch, fields, &count));
    CHECK_EQ(count, 2);
    OK(weir_format_files.key(&sample, &scratch, &key));
    CHECK(!strcmp(key, "README"));
    weir_arena_free(scratch);
}

int main(void)
{
    RUN(by_names);
    RUN(fields_of_a_file);
    return TEST_RESULT;
}
