/* tokens.c - token files: long rows of numbers (token_file.h has the layouts). A sample is seq_len
 * tokens and the one behind them; the next begins seq_len tokens further, so that every token of a
 * file but the first is predicted once. The rest of a file that makes no whole sample is left out.
 * With overlap=0 every token of a file is in exactly one sample: seq_len in each, and the last one
 * has what remains. So they are packed.
 *
 * Fields: "tokens", and, where it is known where documents begin (Megatron's .idx, or the option
 * eot, the token with which one ends), "starts": at which tokens of the sample one does. With
 * overlap=0 it is always there, and what begins behind the last token counts, too: with nothing of
 * the next sample in this one, nobody else could say so.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/survey.h"
#include "data/token_file.h"
#include "data/tokens_put.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/opt.h"
#include "util/sys.h"

enum { SEQ_LEN_DEFAULT = 1024, SEQ_LEN_MAX = 1 << 24, SCHEMA_BYTES_MAX = 256 };

struct schema {
    char dtype[8];
    uint32_t width;
    uint64_t seq_len;
    bool has_eot, has_marks, is_apart; /* overlap=0 */
    uint64_t eot;
};

/* ---- finding shards ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), n = strlen(end);
    return size > n && !strcmp(text + size - n, end);
}

/* NAME.idx beside NAME.bin. */
static bool find_idx(const struct weir_survey *survey, const char *bin,
                     struct weir_survey_file *out)
{
    char name[WEIR_KEY_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s.idx", (int)strlen(bin) - 4, bin);
    return weir_survey_find(survey, name, out);
}

/* A word of the name, between what is no letter, says what such a file is for. */
static bool is_named_so(const char *name)
{
    static const char *const words[] = {"train", "val",  "valid", "validation",
                                        "test",  "eval", "dev",   "tokens"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (const char *at = name; *at; at++) {
        size_t size = strspn(at, letters);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (size == strlen(words[i]) && !memcmp(at, words[i], size))
                return true;
        at += size;
        if (!*at)
            break;
    }
    return false;
}

/* What ends with .bin may be anything: it is taken for tokens if there is an .idx beside it, if it
 * begins as a file of llm.c's does (of all of them, the first is looked at), if it lies at the top
 * and is named so, or is all there is; or if whoever opens it speaks of seq_len. */
static int match(const struct weir_survey *survey)
{
    uint8_t head[WEIR_LLMC_HEAD_BYTES];
    struct weir_survey_file file, other;
    struct weir_token_file looked;
    size_t got, bins = 0;
    bool is_said = weir_survey_given(survey, "seq_len") || !weir_survey_file(survey, 1, &other);
    bool found = false;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++) {
        if (!ends_with(file.key, ".bin"))
            continue;
        if (find_idx(survey, file.key, &other))
            return 2;
        if (!bins++ && !weir_survey_head(survey, file.key, head, sizeof head, &got) &&
            (weir_token_head(&looked, file.key, head, got, file.size_bytes) || looked.begin))
            return 2;
        found |= is_said || (!strchr(file.key, '/') && is_named_so(file.key));
    }
    return found;
}

/* The .bin ends where the last sequence of its .idx does. */
static int check_end(struct weir_survey *survey, const struct weir_survey_file *bin,
                     const struct weir_survey_file *idx, const struct weir_megatron *megatron)
{
    uint64_t end;
    int code = weir_megatron_end(survey, idx->key, megatron, &end);
    if (code || end == bin->size_bytes)
        return code;
    return weir_fail(EBADMSG,
                     "'%s' has %" PRIu64 " bytes, where '%s' counts tokens in %" PRIu64
                     ": %s; copy both anew from where they were made",
                     bin->key, bin->size_bytes, idx->key, end,
                     end > bin->size_bytes ? "it was cut off, or the .idx is another's"
                                           : "the .idx is another's, or was cut off");
}

static int look_megatron(struct weir_survey *survey, const struct weir_survey_file *bin,
                         const struct weir_survey_file *idx, struct weir_token_file *out)
{
    uint8_t head[WEIR_MEGATRON_HEAD_BYTES];
    struct weir_megatron megatron;
    size_t got = 0;
    int code = weir_survey_fault(idx);
    if (!code)
        code = weir_survey_head(survey, idx->key, head, sizeof head, &got);
    if (!code)
        code = weir_megatron_head(&megatron, idx->key, head,
                                  got < sizeof head ? got : idx->size_bytes);
    if (code)
        return code;
    *out = (struct weir_token_file){.tokens = bin->size_bytes};
    memcpy(out->dtype, megatron.dtype, sizeof out->dtype);
    return check_end(survey, bin, idx, &megatron);
}

/* What a .bin holds; *idx.key is NULL unless it is Megatron's. */
static int look(struct weir_survey *survey, const struct weir_survey_file *bin,
                struct weir_survey_file *idx, struct weir_token_file *out)
{
    uint8_t head[WEIR_LLMC_HEAD_BYTES];
    size_t got = 0;
    idx->key = NULL;
    int code = weir_survey_fault(bin);
    if (code)
        return code;
    if (find_idx(survey, bin->key, idx))
        return look_megatron(survey, bin, idx, out);
    code = weir_survey_head(survey, bin->key, head, sizeof head, &got);
    return code ? code : weir_token_head(out, bin->key, head, got, bin->size_bytes);
}

/* Either file may change. */
static uint64_t stamp(const struct weir_survey_file *idx)
{
    uint8_t numbers[16], sum[WEIR_SUM_BYTES];
    weir_store_le(numbers, idx->size_bytes, 8);
    weir_store_le(numbers + 8, (uint64_t)idx->time_ns, 8);
    weir_sum(sum, numbers, sizeof numbers);
    return weir_load_le(sum, 8);
}

static int add_shard(struct weir_survey *survey, const struct schema *schema,
                     const struct weir_survey_file *bin, const struct weir_survey_file *idx,
                     const struct weir_token_file *file)
{
    uint64_t count = file->begin ? file->tokens : file->tokens / schema->width;
    struct weir_shard_plan plan = {
        .key = bin->key,
        .codec = "",
        .file_bytes = bin->size_bytes,
        .time_ns = bin->time_ns,
        .raw_bytes = bin->size_bytes,
        .samples = count ? (count - 1) / schema->seq_len : 0,
        .first_bytes = file->begin,
        .each_bytes = (schema->seq_len + 1) * schema->width,
        .step_bytes = schema->seq_len * schema->width,
        .marks_key = idx->key,
    };
    if (idx->key)
        plan.marks_stamp = stamp(idx);
    if (schema->is_apart) { /* every token once: the last sample ends where they do */
        plan.raw_bytes = file->begin + count * schema->width;
        plan.samples = count / schema->seq_len + (count % schema->seq_len != 0);
        plan.each_bytes = plan.step_bytes;
    }
    return weir_survey_add(survey, &plan);
}

/* The type of the dataset: what the files say, else the option, else u16. */
static int agree(struct schema *schema, const struct weir_survey_file *bin,
                 const struct weir_token_file *file, const char *given)
{
    const char *dtype = *file->dtype ? file->dtype : given ? given : "<u2";
    if (!*schema->dtype) {
        strcpy(schema->dtype, dtype);
        schema->width = (uint32_t)weir_dtype_bytes(dtype);
    }
    if (strcmp(schema->dtype, dtype))
        return weir_fail(EINVAL, "'%s' has tokens of type %s, and others %s: they are two datasets",
                         bin->key, dtype, schema->dtype);
    return 0;
}

/* A token that is not all there was not written so. */
static int check_whole(const struct schema *schema, const struct weir_survey_file *bin,
                       const struct weir_token_file *file)
{
    uint64_t rest = (bin->size_bytes - file->begin) % schema->width;
    if (!rest)
        return 0;
    return weir_fail(EBADMSG,
                     "'%s' has %" PRIu64 " bytes, which are %" PRIu64
                     " tokens of %u bytes and %" PRIu64
                     " more: it was cut off, or has tokens of another type (dtype=…)",
                     bin->key, bin->size_bytes, (bin->size_bytes - file->begin) / schema->width,
                     schema->width, rest);
}

static int option_number(const struct weir_survey *survey, const char *name, uint64_t min,
                         uint64_t max, uint64_t *out, bool *given)
{
    const char *text = weir_survey_option(survey, name);
    int64_t number;
    *given = text;
    if (!text)
        return 0;
    if (!weir_text_i64(text, strlen(text), &number) || number < 0 || (uint64_t)number < min ||
        (uint64_t)number > max)
        return weir_fail(EINVAL, "%s=%s: a number from %" PRIu64 " to %" PRIu64 " is needed", name,
                         text, min, max);
    *out = (uint64_t)number;
    return 0;
}

static int read_options(const struct weir_survey *survey, struct schema *out, const char **dtype)
{
    bool given;
    const char *name = weir_survey_option(survey, "dtype");
    *dtype = name ? weir_token_dtype(name) : NULL;
    if (name && !*dtype)
        return weir_fail(EINVAL, "dtype=%s: one of u8, u16, u32, u64, i16, i32, i64 is needed",
                         name);
    uint64_t overlap = 1;
    int code = option_number(survey, "seq_len", 1, SEQ_LEN_MAX, &out->seq_len, &given);
    if (!code)
        code = option_number(survey, "overlap", 0, 1, &overlap, &given);
    out->is_apart = !overlap;
    return code ? code : option_number(survey, "eot", 0, UINT32_MAX, &out->eot, &out->has_eot);
}

static int add_schema(struct weir_survey *survey, const struct schema *s)
{
    char text[SCHEMA_BYTES_MAX], eot[32] = "null";
    if (s->has_eot)
        snprintf(eot, sizeof eot, "%" PRIu64, s->eot);
    int size = snprintf(text, sizeof text,
                        "{\"dtype\":\"%s\",\"seq_len\":%" PRIu64 ",\"eot\":%s,\"documents\":%s%s}",
                        s->dtype, s->seq_len, eot, s->has_marks ? "true" : "false",
                        s->is_apart ? ",\"overlap\":0" : "");
    return weir_survey_schema(survey, text, (size_t)size);
}

static int survey_tokens(struct weir_survey *survey)
{
    struct schema schema = {.seq_len = SEQ_LEN_DEFAULT};
    struct weir_survey_file bin, idx;
    const char *given;
    uint64_t longest = 0;
    int code = read_options(survey, &schema, &given);
    for (size_t i = 0; !code && weir_survey_file(survey, i, &bin); i++) {
        struct weir_token_file file;
        if (!ends_with(bin.key, ".bin"))
            continue;
        code = look(survey, &bin, &idx, &file);
        if (!code)
            code = agree(&schema, &bin, &file, given);
        if (!code)
            code = check_whole(&schema, &bin, &file);
        if (code)
            break;
        schema.has_marks |= idx.key != NULL;
        uint64_t count = file.begin ? file.tokens : file.tokens / schema.width;
        longest = count > longest ? count : longest;
        code = add_shard(survey, &schema, &bin, &idx, &file);
    }
    if (!code && !schema.is_apart && longest && longest <= schema.seq_len)
        code =
            weir_fail(EINVAL,
                      "the longest file has %" PRIu64 " tokens, which makes no sample of seq_len "
                      "%" PRIu64 " and the token behind it: give a smaller seq_len",
                      longest, schema.seq_len);
    return code ? code : add_schema(survey, &schema);
}

static int no_scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                   weir_sample_fn fn, void *arg)
{
    (void)flow, (void)schema, (void)fn, (void)arg;
    return weir_fail(EINVAL, "'%s' is not scanned: its samples are of one size", shard->key);
}

/* ---- schema ---- */

static const char *schema_member(struct weir_json *json, const char *name, size_t size,
                                 struct schema *s)
{
    char text[64];
    if (size == 5 && !memcmp(name, "dtype", 5)) {
        if (json->token != WEIR_JSON_STRING || json->size >= sizeof text)
            return "its dtype is no text";
        text[weir_json_text(json, text)] = 0;
        const char *dtype = weir_token_dtype(text);
        if (!dtype)
            return "its dtype is none of tokens";
        strcpy(s->dtype, dtype);
        s->width = (uint32_t)weir_dtype_bytes(dtype);
    } else if (size == 7 && !memcmp(name, "seq_len", 7)) {
        if (json->token != WEIR_JSON_NUMBER || !weir_json_uint(json, &s->seq_len) || !s->seq_len ||
            s->seq_len > SEQ_LEN_MAX)
            return "its seq_len is impossible";
    } else if (size == 3 && !memcmp(name, "eot", 3)) {
        s->has_eot = json->token == WEIR_JSON_NUMBER;
        if (s->has_eot && !weir_json_uint(json, &s->eot))
            return "its eot is impossible";
    } else if (size == 9 && !memcmp(name, "documents", 9)) {
        s->has_marks = json->token == WEIR_JSON_TRUE;
    } else if (size == 7 && !memcmp(name, "overlap", 7)) {
        uint64_t overlap = 1;
        if (json->token != WEIR_JSON_NUMBER || !weir_json_uint(json, &overlap) || overlap > 1)
            return "its overlap is impossible";
        s->is_apart = !overlap;
    }
    return NULL;
}

static int schema_read(struct schema *s, const char *text, size_t size)
{
    struct weir_json json;
    int code;
    weir_json_begin(&json, text, size);
    if (weir_json_next(&json) != 1 || json.token != WEIR_JSON_OBJECT)
        return weir_fail(EBADMSG, "the schema of a tokens dataset is no JSON object");
    while ((code = weir_json_next(&json)) == 1 && json.token == WEIR_JSON_KEY) {
        const char *name = json.text, *fault;
        size_t name_size = json.size;
        if ((code = weir_json_next(&json)) != 1)
            break;
        fault = schema_member(&json, name, name_size, s);
        if (fault)
            return weir_fail(EBADMSG, "the schema of a tokens dataset: %s", fault);
        if (json.token == WEIR_JSON_OBJECT || json.token == WEIR_JSON_ARRAY)
            if ((code = weir_json_skip(&json)) < 0)
                break;
    }
    if (code < 0)
        return weir_fail_in(-EBADMSG, "the schema of a tokens dataset");
    if (!s->width || !s->seq_len)
        return weir_fail(EBADMSG, "the schema of a tokens dataset lacks dtype or seq_len");
    return 0;
}

static int schema_open(void **out, const char *json, size_t size)
{
    struct schema *s = weir_alloc(sizeof *s);
    if (!s)
        return weir_fail_memory();
    int code = schema_read(s, json, size);
    if (code)
        free(s);
    else
        *out = s;
    return code;
}

/* ---- fields ---- */

static uint64_t token_at(const struct schema *s, const struct weir_sample *sample, uint64_t i)
{
    return weir_load_le(sample->data + i * s->width, s->width);
}

/* By the index: every document that begins in the sample. */
static uint32_t starts_by_marks(const struct schema *s, const struct weir_sample *sample,
                                uint8_t *out)
{
    uint32_t count = 0;
    uint64_t tokens = sample->size / s->width;
    for (uint64_t i = 0; i < sample->marks.count; i++) {
        uint64_t mark =
            weir_load_le(sample->marks.data + i * sample->marks.width, sample->marks.width);
        uint64_t token = (mark - sample->off) / s->width;
        if (mark < sample->off || token >= tokens)
            continue; /* an index that is damaged there */
        if (out)
            weir_store_le(out + 4 * (size_t)count, token, 4);
        count++;
    }
    return count;
}

/* By the token that ends a document: the one behind it begins one. */
static uint32_t starts_by_eot(const struct schema *s, const struct weir_sample *sample,
                              uint8_t *out)
{
    uint32_t count = 0;
    uint64_t tokens = sample->size / s->width;
    if (!s->has_eot)
        return 0;
    for (uint64_t i = 0; i + !s->is_apart < tokens; i++) {
        if (token_at(s, sample, i) != s->eot)
            continue;
        if (out)
            weir_store_le(out + 4 * (size_t)count, i + 1, 4);
        count++;
    }
    return count;
}

static int add_starts(const struct schema *s, const struct weir_sample *sample,
                      struct weir_arena **scratch, struct weir_field *out)
{
    uint32_t (*find)(const struct schema *, const struct weir_sample *, uint8_t *) =
        s->has_marks ? starts_by_marks : starts_by_eot;
    uint32_t count = find(s, sample, NULL);
    uint8_t *starts = weir_arena_take(scratch, 4 * (size_t)count);
    if (!starts)
        return weir_fail_memory();
    find(s, sample, starts);
    weir_field_set(out, "starts", 6, WEIR_FIELD_ARRAY, starts, 4 * (size_t)count);
    strcpy(out->dtype, "<i4");
    out->ndim = 1;
    out->shape[0] = count;
    out->is_ragged = true;
    return 0;
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *out, uint32_t *count)
{
    const struct schema *s = schema;
    bool has_starts = s->has_marks || s->has_eot || s->is_apart;
    if (sample->size % s->width)
        return weir_fail(EBADMSG, "%zu bytes are no whole tokens of type %s", sample->size,
                         s->dtype);
    if (*count < 1u + has_starts)
        return weir_fail(E2BIG, "a sample of tokens has %u fields", 1u + has_starts);
    weir_field_set(&out[0], "tokens", 6, WEIR_FIELD_ARRAY, sample->data, sample->size);
    strcpy(out[0].dtype, s->dtype);
    out[0].ndim = 1;
    out[0].shape[0] = sample->size / s->width;
    int code = has_starts ? add_starts(s, sample, scratch, &out[1]) : 0;
    if (!code)
        *count = 1u + has_starts;
    return code;
}

const struct weir_format weir_format_tokens = {
    .name = "tokens",
    .about = "token files of nanoGPT, llm.c and Megatron (.bin, .bin and .idx)",
    .is_flat = true,
    .match = match,
    .survey = survey_tokens,
    .scan = no_scan,
    .marks = weir_megatron_marks,
    .schema_open = schema_open,
    .schema_close = free,
    .fields = fields,
    .writer = &weir_tokens_writer,
};
