/* Token files of all three layouts: samples overlap by one token, documents are found by the index
 * of Megatron or by a token, and what is cut off, mixed or too short is refused with a reason.
 */
#include "data/format.h"
#include "datasets.h"
#include "made.h"

static uint64_t number(const weir_field *field, uint64_t i)
{
    unsigned width = (unsigned)atoi(field->dtype + 2);
    return weir_load_le((const uint8_t *)field->data + i * width, width);
}

/* Sample n is `count` tokens from `first` on. */
static void sample_is(weir_data *data, uint64_t n, uint64_t first, uint64_t count,
                      const char *dtype)
{
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, n));
    const weir_field *tokens = field_of(sample, "tokens");
    CHECK(tokens && tokens->kind == WEIR_FIELD_ARRAY && !strcmp(tokens->dtype, dtype));
    CHECK(tokens->ndim == 1 && tokens->shape[0] == count);
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(number(tokens, i), first + i);
    weir_data_sample_close(sample);
}

static void starts_are(weir_data *data, uint64_t n, const int *want, uint64_t count)
{
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, n));
    const weir_field *starts = field_of(sample, "starts");
    CHECK(starts && !strcmp(starts->dtype, "<i4"));
    CHECK_EQ(starts->shape[0], count);
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(number(starts, i), want[i]);
    weir_data_sample_close(sample);
}

static void nanogpt(void)
{
    const char *dir = dataset_dir();
    tokens_bare(path_in(dir, "train.bin"), 100, 1000, 2);
    tokens_bare(path_in(dir, "val.bin"), 5000, 101, 2);
    weir_data *data = data_at(dir, "seq_len=100", 0);
    CHECK_EQ(weir_data_count(data), 9 + 1); /* 999 / 100, and 100 / 100 */
    sample_is(data, 0, 100, 101, "<u2");
    sample_is(data, 8, 900, 101, "<u2");
    sample_is(data, 9, 5000, 101, "<u2");
    weir_data_sample *sample;
    OK(weir_data_sample_open(&sample, data, 0));
    CHECK(!field_of(sample, "starts")); /* nobody knows */
    weir_data_sample_close(sample);
    CHECK_EQ(weir_data_sample_open(&sample, data, 10), -EINVAL);
    weir_data_close(data);
}

/* Every token once: the last sample of a file has what remains, and belongs to its shard. */
static void every_token_once(void)
{
    const char *dir = dataset_dir();
    weir_data_shard shard;
    tokens_llmc(path_in(dir, "a.bin"), 100, 1001, 2, 1000); /* one more than it counts */
    tokens_llmc(path_in(dir, "b.bin"), 5000, 300, 2, 300);
    tokens_llmc(path_in(dir, "c.bin"), 9000, 7, 2, 7);
    weir_data *data = data_at(dir, "seq_len=300&overlap=0", 0);
    CHECK_EQ(weir_data_count(data), 4 + 1 + 1);
    CHECK_EQ(weir_data_info_get(data)->shards, 3);
    CHECK_EQ(weir_data_info_get(data)->file_bytes, 3 * 1024 + 2 * (1001 + 300 + 7));
    CHECK_EQ(weir_data_info_get(data)->sample_bytes, 2 * (1000 + 300 + 7));
    CHECK_EQ(weir_data_info_get(data)->sample_bytes_max, 2 * 300);
    sample_is(data, 2, 700, 300, "<u2");
    sample_is(data, 3, 1000, 100, "<u2");
    sample_is(data, 4, 5000, 300, "<u2");
    sample_is(data, 5, 9000, 7, "<u2");
    OK(weir_data_shard_get(data, 0, &shard));
    CHECK_EQ(shard.samples, 4);
    CHECK_EQ(shard.file_bytes, 1024 + 2 * 1001);
    weir_data_close(data);
    data = data_at(dir, "seq_len=1000&overlap=0", 0);
    CHECK_EQ(weir_data_count(data), 3);
    CHECK_EQ(weir_data_info_get(data)->sample_bytes_max, 2 * 1000);
    sample_is(data, 1, 5000, 300, "<u2");
    weir_data_close(data);
}

/* A loader needs memory for its samples, however large the file is that the last is a part of. */
static void the_rest_needs_no_more_memory(void)
{
    const char *dir = dataset_dir();
    weir_loader_options opts;
    weir_loader *loader;
    tokens_bare(path_in(dir, "train.bin"), 0, 1 << 20, 2);
    weir_data *data = data_at(dir, "seq_len=1000&overlap=0", 0);
    weir_loader_options_init(&opts);
    opts.flags = WEIR_LOADER_SHUFFLE;
    opts.lanes = 2;
    opts.window = 10;
    opts.memory_bytes_max = 256 << 10;
    OK(weir_loader_open(&loader, data, &opts));
    weir_loader_close(loader);
    weir_data_close(data);
}

static void another_type(void)
{
    const char *dir = dataset_dir();
    tokens_bare(path_in(dir, "train.bin"), 70000, 100, 4);
    weir_data *data = data_at(dir, "seq_len=9&dtype=i32", 0);
    CHECK_EQ(weir_data_count(data), 11);
    sample_is(data, 10, 70090, 10, "<i4");
    weir_data_close(data);
}

static void llmc(void)
{
    const char *dir = dataset_dir();
    tokens_llmc(path_in(dir, "a.bin"), 7, 1025, 2, 1025);
    tokens_llmc(path_in(dir, "b.bin"), 9, 5000, 2, 2049); /* more than it counts: not tokens */
    weir_data *data = data_at(dir, NULL, 0);
    CHECK_EQ(weir_data_count(data), 1 + 2);
    sample_is(data, 0, 7, 1025, "<u2");
    sample_is(data, 2, 9 + 1024, 1025, "<u2");
    weir_data_close(data);
    const char *wide = dataset_dir();
    tokens_llmc(path_in(wide, "a.bin"), 70000, 2000, 4, 2000);
    data = data_at(wide, NULL, 0);
    sample_is(data, 0, 70000, 1025, "<u4");
    weir_data_close(data);
}

static void documents_by_a_token(void)
{
    const char *dir = dataset_dir();
    uint16_t tokens[21] = {1, 2, 0, 3, 0, 0, 4, 5, 6, 7, 0, 8, 0};
    file_write(path_in(dir, "x.bin"), tokens, sizeof tokens);
    weir_data *data = data_at(dir, "seq_len=10&eot=0", 0);
    starts_are(data, 0, (int[]){3, 5, 6}, 3); /* the token behind the last is not in the sample */
    starts_are(data, 1, (int[]){1, 3, 4, 5, 6, 7, 8, 9, 10}, 9);
    weir_data_close(data);
}

static void documents_by_megatron(void)
{
    const char *dir = dataset_dir();
    tokens_megatron(dir, "corpus_text", (uint32_t[]){5, 10, 6, 30}, 4);
    weir_data *data = data_at(dir, "seq_len=10", 0);
    CHECK_EQ(weir_data_count(data), 5);
    sample_is(data, 1, 10, 11, "<u2");
    starts_are(data, 0, (int[]){0, 5}, 2);
    starts_are(data, 1, (int[]){5}, 1);
    starts_are(data, 2, (int[]){1}, 1);
    starts_are(data, 3, NULL, 0);
    weir_data_close(data);
    data = data_at(dir, "seq_len=11&overlap=0", 0); /* its marks are taken over */
    CHECK_EQ(weir_data_count(data), 5);
    sample_is(data, 3, 33, 11, "<u2");
    sample_is(data, 4, 44, 7, "<u2");
    starts_are(data, 0, (int[]){0, 5}, 2);
    starts_are(data, 1, (int[]){4, 10}, 2);
    starts_are(data, 4, NULL, 0);
    weir_data_close(data);
}

/* 0 samples are no dataset; the texts say what to do. */
static void refused(const char *dir, const char *options, int code, const char *text)
{
    weir_data *data;
    CHECK_EQ(data_try(&data, dir, options, 0), code);
    if (!strstr(weir_error_text(), text)) {
        fprintf(stderr, "'%s' is not in: %s\n", text, weir_error_text());
        exit(1);
    }
}

static void what_is_wrong_is_said(void)
{
    const char *dir = dataset_dir();
    tokens_llmc(path_in(dir, "a.bin"), 0, 100, 2, 101);
    refused(dir, NULL, -EBADMSG, "cut off");
    tokens_llmc(path_in(dir, "a.bin"), 0, 100, 2, 100);
    refused(dir, NULL, -EINVAL, "smaller seq_len");
    refused(dir, "seq_len=0", -EINVAL, "seq_len=0");
    refused(dir, "seq_len=ten", -EINVAL, "seq_len=ten");
    refused(dir, "seq_len=10&seqlen=10", -EINVAL, "no option 'seqlen'");
    refused(dir, "dtype=float", -EINVAL, "dtype=float");
    tokens_llmc(path_in(dir, "b.bin"), 0, 100, 4, 100);
    refused(dir, "seq_len=10", -EINVAL, "two datasets");
}

static void a_bad_idx_is_refused(void)
{
    const char *dir = dataset_dir();
    size_t size;
    tokens_megatron(dir, "x", (uint32_t[]){50, 30, 20}, 3);
    const char *path = strdup(path_in(dir, "x.idx"));
    uint8_t *idx = file_read(path, &size);
    file_write(path, idx, size - 1);
    refused(dir, "seq_len=10", -EBADMSG, "cut off");
    file_write(path, idx, 20);
    refused(dir, "seq_len=10", -EBADMSG, "x.idx");
    idx[17] = 7;
    file_write(path, idx, size);
    refused(dir, "seq_len=10", -EBADMSG, "no tokens");
    idx[17] = 8;
    weir_store_le(idx + 34 + 12 + 8, 1 << 20, 8); /* the second one begins far behind the end */
    file_write(path, idx, size);
    refused(dir, "seq_len=10", -EBADMSG, "behind the end");
    weir_store_le(idx + 34 + 12 + 8, 100, 8);
    weir_store_le(idx + 34 + 36 + 8, 99, 8); /* a document of no sequence */
    file_write(path, idx, size);
    refused(dir, "seq_len=10", -EBADMSG, "no sequence");
    weir_store_le(idx + 18, UINT64_MAX / 2, 8);
    file_write(path, idx, size);
    refused(dir, "seq_len=10", -EBADMSG, "cut off");
    free(idx);
    free((char *)path);
}

/* A .bin of another size than its .idx says, half a token, and a head that nobody knows. */
static void a_size_that_is_not_so_is_refused(void)
{
    const char *dir = dataset_dir();
    uint8_t bytes[4200] = {0};
    tokens_megatron(dir, "x", (uint32_t[]){1000, 3000}, 2);
    weir_data_close(data_at(dir, "seq_len=10", 0));
    const size_t sizes[] = {0, 2100, 2101, 7998, 7999, 8001, 8002};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[128];
        CHECK(truncate(path_in(dir, "x.bin"), (off_t)sizes[i]) == 0);
        snprintf(text, sizeof text, "'x.bin' has %zu bytes, where 'x.idx' counts tokens in 8000",
                 sizes[i]);
        refused(dir, "seq_len=10", -EBADMSG, text);
    }
    const char *one = dataset_dir();
    tokens_megatron(one, "x", (uint32_t[]){2000}, 1);
    CHECK(truncate(path_in(one, "x.bin"), 1000) == 0);
    refused(one, "seq_len=10", -EBADMSG, "copy both anew");
    const char *bare = dataset_dir();
    file_write(path_in(bare, "train.bin"), bytes, 1999);
    refused(bare, "seq_len=10", -EBADMSG, "has 1999 bytes, which are 999 tokens of 2 bytes and 1");
    file_write(path_in(bare, "train.bin"), bytes, 1998);
    refused(bare, "seq_len=10&dtype=u32", -EBADMSG, "another type (dtype=");
    const char *llmc = dataset_dir();
    tokens_llmc(path_in(llmc, "a.bin"), 0, 100, 2, 101);
    refused(llmc, NULL, -EBADMSG, "has 1224 bytes, where the 101 tokens that its head counts need");
    tokens_llmc(path_in(llmc, "a.bin"), 0, 1502, 2, 1500);
    CHECK(truncate(path_in(llmc, "a.bin"), 4027) == 0); /* more than it counts, and half a token */
    refused(llmc, NULL, -EBADMSG, "2 bytes and 1 more");
    weir_store_le(bytes, 20240520, 4);
    weir_store_le(bytes + 4, 9, 4);
    file_write(path_in(llmc, "a.bin"), bytes, sizeof bytes);
    refused(llmc, NULL, -EBADMSG, "'a.bin': it begins as a file of llm.c's does, but of version 9");
}

/* ---- writing ---- */

static int add(void *writer, const struct weir_format_writer *w, uint64_t n, const char *dtype,
               const void *data, uint64_t count)
{
    unsigned width = (unsigned)atoi(dtype + 2);
    struct weir_field field = {.name = "tokens",
                               .name_size = 6,
                               .kind = WEIR_FIELD_ARRAY,
                               .ndim = 1,
                               .shape = {count},
                               .data = data,
                               .size = count * width};
    strcpy(field.dtype, dtype);
    return w->add(writer, n, NULL, &field, 1);
}

static void written_is_read(const char *schema, const char *options, const char *dtype)
{
    const struct weir_format_writer *w = weir_format_tokens.writer;
    const char *dir = dataset_dir();
    struct weir_growing out = {0};
    char name[64];
    void *writer;
    uint64_t tokens[300];
    for (uint64_t i = 0; i < 300; i++)
        tokens[i] = 40 + i;
    OK(w->open(&writer, &(struct weir_writing){.schema = schema}));
    OK(add(writer, w, 0, "<i8", tokens, 200));
    OK(add(writer, w, 1, "<i8", tokens + 200, 100));
    OK(made_whole(w, writer, &out));
    w->name(name, 3, "");
    CHECK(!strcmp(name, "tokens_000003.bin"));
    file_write(path_in(dir, name), out.data, out.size);
    weir_growing_free(&out);
    w->close(writer);
    weir_data *data = data_at(dir, options, 0);
    CHECK_EQ(weir_data_count(data), 2);
    sample_is(data, 1, 140, 101, dtype);
    weir_data_close(data);
}

static void what_is_written_is_read(void)
{
    written_is_read(NULL, "seq_len=100", "<u4");
    written_is_read("{\"dtype\":\"u16\"}", "seq_len=100", "<u2");
    written_is_read("{\"dtype\":\"u16\",\"layout\":\"nanogpt\"}", "seq_len=100", "<u2");
}

static void what_does_not_fit_is_not_written(void)
{
    const struct weir_format_writer *w = weir_format_tokens.writer;
    void *writer;
    OK(w->open(&writer, &(struct weir_writing){.schema = "{\"dtype\":\"u16\"}"}));
    CHECK_EQ(add(writer, w, 0, "<i4", (int32_t[]){1, 65536}, 2), -EINVAL);
    CHECK_EQ(add(writer, w, 0, "<i4", (int32_t[]){1, -1}, 2), -EINVAL);
    CHECK_EQ(add(writer, w, 0, "<f4", (float[]){1, 2}, 2), -EINVAL);
    w->close(writer);
    CHECK_EQ(w->open(&writer, &(struct weir_writing){.schema = "{\"dtype\":\"i8\"}"}), -EINVAL);
    CHECK_EQ(w->open(&writer, &(struct weir_writing){.codec = "zstd"}), -EINVAL);
}

int main(void)
{
    RUN(nanogpt);
    RUN(every_token_once);
    RUN(the_rest_needs_no_more_memory);
    RUN(another_type);
    RUN(llmc);
    RUN(documents_by_a_token);
    RUN(documents_by_megatron);
    RUN(what_is_wrong_is_said);
    RUN(a_bad_idx_is_refused);
    RUN(a_size_that_is_not_so_is_refused);
    RUN(what_is_written_is_read);
    RUN(what_does_not_fit_is_not_written);
    return TEST_RESULT;
}
