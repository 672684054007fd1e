/* tfrecord.c - TFRecord files. A sample is a whole record with its checks: that of the length is
 * looked at when a shard is scanned, that of the data when the sample is taken apart. A record that
 * is no tf.Example is one field "data".
 */
#include "data/tfrecord.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "data/example.h"
#include "data/field.h"
#include "data/shards.h"
#include "util/bytes.h"
#include "util/crc32c.h"
#include "util/err.h"

uint32_t weir_tfrecord_check(const void *data, size_t size)
{
    uint32_t crc = weir_crc32c(0, data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static size_t skip_digits(const char *name, size_t size)
{
    while (size && name[size - 1] >= '0' && name[size - 1] <= '9')
        size--;
    return size;
}

/* Without "-00000-of-00010" at its end; the same size if it has none. */
static size_t without_number(const char *name, size_t size)
{
    size_t at = skip_digits(name, size);
    if (at == size || !weir_name_ends(name, at, "-of-"))
        return size;
    at -= 4;
    size_t before = skip_digits(name, at);
    return before < at && before && name[before - 1] == '-' ? before - 1 : size;
}

/* "a.tfrecord", "a.tfrecord-00000-of-00010", and "train-00000-of-01024" as ImageNet has it. */
static bool is_tfrecord(const char *name, size_t size)
{
    size_t stem = without_number(name, size);
    if (weir_name_ends(name, stem, ".tfrecord") || weir_name_ends(name, stem, ".tfrecords") ||
        weir_name_ends(name, stem, ".tfrec"))
        return true;
    return stem < size;
}

static int match(const struct weir_survey *survey)
{
    return weir_shards_match(survey, is_tfrecord);
}

static int survey_records(struct weir_survey *survey)
{
    return weir_shards_survey(survey, is_tfrecord,
                              "*.tfrecord, *.tfrecords, *.tfrec or *-00000-of-00010");
}

/* The length in a record's head, if its check is right. */
static bool head_is_right(const uint8_t *head, uint64_t *size)
{
    *size = weir_load_le(head, 8);
    return weir_tfrecord_check(head, 8) == weir_load_le(head + 8, 4) &&
           *size <= INT64_MAX - WEIR_TFRECORD_FRAME;
}

static int scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg)
{
    (void)shard;
    (void)schema;
    for (;;) {
        const uint8_t *head;
        size_t got;
        uint64_t size, off = weir_flow_at(flow);
        int code = weir_flow_peek(flow, WEIR_TFRECORD_HEAD, &head, &got);
        if (code || !got)
            return code;
        if (got < WEIR_TFRECORD_HEAD)
            return weir_fail(EBADMSG, "it is cut off within the head of a record at byte %" PRIu64,
                             off);
        if (!head_is_right(head, &size))
            return weir_fail(EBADMSG,
                             "at byte %" PRIu64 ": the length of a record has a wrong CRC: it is "
                             "damaged, compressed, or no TFRecord",
                             off);
        code = weir_flow_skip(flow, WEIR_TFRECORD_FRAME + size);
        if (code)
            return weir_fail_in(code, "the record of %" PRIu64 " bytes at byte %" PRIu64, size,
                                off);
        code = fn(arg, off, WEIR_TFRECORD_FRAME + size);
        if (code)
            return code;
    }
}

/* The record without its frame. */
static int content(const struct weir_sample *sample, const uint8_t **out, size_t *out_size)
{
    uint64_t size;
    if (sample->size < WEIR_TFRECORD_FRAME || !head_is_right(sample->data, &size) ||
        size != sample->size - WEIR_TFRECORD_FRAME)
        return weir_fail(EBADMSG, "the length of the record is wrong");
    const uint8_t *data = sample->data + WEIR_TFRECORD_HEAD;
    if (weir_tfrecord_check(data, (size_t)size) != weir_load_le(data + size, 4))
        return weir_fail(EBADMSG, "the record of %" PRIu64 " bytes has a wrong CRC: it is damaged",
                         size);
    *out = data;
    *out_size = (size_t)size;
    return 0;
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    (void)schema;
    const uint8_t *data;
    size_t size;
    int code = content(sample, &data, &size);
    if (code)
        return code;
    code = weir_example_fields(data, size, scratch, fields, count);
    if (code)
        return code < 0 ? code : 0;
    if (!*count)
        return weir_fail(EBADMSG, "more than 0 fields");
    weir_field_set(&fields[0], "data", 4, WEIR_FIELD_BYTES, data, size);
    *count = 1;
    return 0;
}

const struct weir_format weir_format_tfrecord = {
    .name = "tfrecord",
    .about = "TFRecord: records with checksums, mostly of tf.Example",
    .match = match,
    .survey = survey_records,
    .scan = scan,
    .fields = fields,
    .content = content,
    .writer = &weir_tfrecord_writer,
};
