/* A dataset being looked at: its files in order whatever directories they are in, without Weir's
 * own and what is beside it; options; and what a format says of it, kept as it was said.
 */
#include "data/survey.h"

#include "stores.h"

static weir_store *store;

static void put(const char *key, const char *text)
{
    weir_put *put;
    OK(weir_put_open(&put, store, key, NULL));
    OK(weir_put_write(put, text, strlen(text)));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

static void files(void)
{
    static const char *const expected[] = {"a-b", "a.txt", "a/b", "a/c/d", "index.json"};
    struct weir_survey *survey;
    struct weir_survey_file file;
    OK(weir_survey_open(&survey, store, "set/", NULL, NULL, NULL));
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(weir_survey_file(survey, i, &file), 1);
        CHECK(!strcmp(file.key, expected[i]));
        CHECK_EQ(file.size_bytes, strlen("some text"));
    }
    CHECK_EQ(weir_survey_file(survey, 5, &file), 0);
    CHECK(weir_survey_find(survey, "a/b", &file) && !strcmp(file.key, "a/b"));
    CHECK(!weir_survey_find(survey, "a/bb", &file));
    CHECK(!weir_survey_option(survey, "x"));
    weir_survey_close(survey);
    CHECK_EQ(weir_survey_open(&survey, store, "nothing/", "", NULL, NULL), -ENOENT);
}

static void contents(void)
{
    struct weir_survey *survey;
    uint8_t *data;
    size_t size;
    OK(weir_survey_open(&survey, store, "set/", "eot=5&name=a%20b", NULL, NULL));
    CHECK(!strcmp(weir_survey_option(survey, "eot"), "5"));
    CHECK(!strcmp(weir_survey_option(survey, "name"), "a b"));
    OK(weir_survey_load(survey, "index.json", 100, &data, &size));
    CHECK(size == 9 && !memcmp(data, "some text", 9));
    free(data);
    CHECK_EQ(weir_survey_load(survey, "index.json", 8, &data, &size), -EFBIG);
    CHECK(strstr(weir_error_text(), "set/index.json"));
    CHECK_EQ(weir_survey_load(survey, "other.json", 8, &data, &size), -ENOENT);
    weir_survey_close(survey);
    CHECK_EQ(weir_survey_open(&survey, store, "set/", "eot=%zz", NULL, NULL), -EINVAL);
}

static void said(void)
{
    struct weir_survey *survey;
    size_t size;
    OK(weir_survey_open(&survey, store, "", NULL, NULL, NULL));
    weir_survey_schema_get(survey, &size);
    CHECK_EQ(size, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        char key[16], codec[] = "zstd";
        snprintf(key, sizeof key, "shard.%u", i);
        OK(weir_survey_add(survey,
                           &(struct weir_shard_plan){.key = key, .codec = codec, .samples = i}));
        memset(codec, 'x', 4);
    }
    CHECK_EQ(weir_survey_shards(survey), 1000);
    CHECK_EQ(weir_survey_shard(survey, 999)->samples, 999);
    CHECK(!strcmp(weir_survey_shard(survey, 7)->key, "shard.7"));
    CHECK(!strcmp(weir_survey_shard(survey, 7)->codec, "zstd"));
    OK(weir_survey_schema(survey, "{}", 2));
    CHECK(!memcmp(weir_survey_schema_get(survey, &size), "{}", 2) && size == 2);
    weir_survey_close(survey);
}

int main(void)
{
    static const char *const keys[] = {"set/a.txt",      "set/a/b",        "set/a/c/d", "set/a-b",
                                       "set/index.json", "set/index.weir", "settle",    "set2/x"};
    store = store_at("mem:", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put(keys[i], "some text");
    RUN(files);
    RUN(contents);
    RUN(said);
    weir_store_close(store);
    return TEST_RESULT;
}
