/* wds.c - WebDataset: tar archives in which the members of a sample follow each other and differ
 * only in their suffix. A sample is everything from its first member's first header to the end of
 * its last member; what lies between and is none of it (directories, names without a suffix) is
 * skipped again when it is taken apart.
 *
 * Kinds go by the last part of the suffix, as webdataset's own decoders do, but only where that is
 * safe: what does not parse stays bytes, and nothing is unpickled.
 */
#include <errno.h>
#include <string.h>

#include "data/field.h"
#include "data/format.h"
#include "data/npy.h"
#include "data/shards.h"
#include "data/tar.h"
#include "data/wds_name.h"
#include "data/wds_write.h"
#include "util/err.h"

static bool is_tar(const char *name, size_t size)
{
    return weir_name_ends(name, size, ".tar") || weir_name_ends(name, size, ".tgz");
}

static int match(const struct weir_survey *survey)
{
    return weir_shards_match(survey, is_tar);
}

static int survey_tars(struct weir_survey *survey)
{
    return weir_shards_survey(survey, is_tar, "*.tar, *.tar.gz, *.tgz, *.tar.zst or *.tar.bz2");
}

/* ---- samples of a shard ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool same_suffix(const char *a, size_t a_size, const char *b, size_t b_size)
{
    if (a_size != b_size)
        return false;
    for (size_t i = 0; i < a_size; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static int fail_twice(const struct weir_wds_name *name)
{
    return weir_fail(EBADMSG, "two members '%.*s.%.*s': a sample has each suffix once",
                     (int)name->key_size, name->key, (int)name->suffix_size, name->suffix);
}

static int fail_many(const struct weir_wds_name *name)
{
    return weir_fail(EBADMSG, "more than %d members of the sample '%.*s'", WEIR_FIELDS_MAX - 1,
                     (int)name->key_size, name->key);
}

/* The sample that is being collected. */
struct group {
    bool open;
    uint64_t begin, end;
    size_t key_size;
    uint32_t count;
    struct weir_growing suffixes; /* u16 length and text of each */
    char key[WEIR_TAR_NAME_MAX];
};

static int add_suffix(struct group *group, const struct weir_wds_name *name)
{
    const struct weir_growing *known = &group->suffixes;
    if (same_suffix("__key__", 7, name->suffix, name->suffix_size))
        return fail_twice(name);
    for (size_t at = 0; at < known->size;) {
        uint16_t size;
        memcpy(&size, known->data + at, sizeof size);
        at += sizeof size;
        if (same_suffix((const char *)known->data + at, size, name->suffix, name->suffix_size))
            return fail_twice(name);
        at += size;
    }
    if (++group->count >= WEIR_FIELDS_MAX)
        return fail_many(name);
    uint16_t size = (uint16_t)name->suffix_size;
    int code = weir_growing_add(&group->suffixes, &size, sizeof size);
    return code ? code : weir_growing_add(&group->suffixes, name->suffix, name->suffix_size);
}

static int end_group(struct group *group, weir_sample_fn fn, void *arg)
{
    if (!group->open)
        return 0;
    group->open = false;
    return fn(arg, group->begin, group->end - group->begin);
}

static int add_member(struct group *group, const struct weir_tar_member *member,
                      const struct weir_wds_name *name, weir_sample_fn fn, void *arg)
{
    if (!group->open || group->key_size != name->key_size ||
        memcmp(group->key, name->key, name->key_size)) {
        int code = end_group(group, fn, arg);
        if (code)
            return code;
        group->open = true;
        group->begin = member->begin;
        group->key_size = name->key_size;
        memcpy(group->key, name->key, name->key_size);
        group->count = 0;
        group->suffixes.size = 0;
    }
    group->end = member->end;
    return add_suffix(group, name);
}

static int scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg)
{
    (void)shard;
    (void)schema;
    struct weir_tar tar;
    struct weir_tar_member member;
    struct weir_wds_name name;
    struct group group;
    int code;
    group.open = false;
    group.suffixes = (struct weir_growing){0};
    weir_tar_begin_flow(&tar, flow);
    while ((code = weir_tar_next(&tar, &member)) == 1) {
        if (!member.is_file || !weir_wds_split(&name, member.name, member.name_size))
            continue;
        code = add_member(&group, &member, &name, fn, arg);
        if (code)
            break;
    }
    if (!code)
        code = end_group(&group, fn, arg);
    weir_growing_free(&group.suffixes);
    return code ? code : weir_flow_finish(flow); /* what a writer left behind its end */
}

/* ---- fields of a sample ---- */

/* The suffix in lower case: where it is, if it is so already. */
static int lower_suffix(const struct weir_wds_name *name, struct weir_arena **scratch,
                        const char **out)
{
    size_t i = 0;
    while (i < name->suffix_size && lower(name->suffix[i]) == name->suffix[i])
        i++;
    *out = name->suffix;
    if (i == name->suffix_size)
        return 0;
    char *copy = weir_arena_take(scratch, name->suffix_size);
    if (!copy)
        return weir_fail_memory();
    for (i = 0; i < name->suffix_size; i++)
        copy[i] = lower(name->suffix[i]);
    *out = copy;
    return 0;
}

static int set_field(struct weir_field *field, const char *suffix, size_t suffix_size,
                     const uint8_t *data, size_t size, struct weir_arena **scratch)
{
    int64_t number;
    weir_field_set(field, suffix, suffix_size, WEIR_FIELD_BYTES, data, size);
    switch (weir_wds_content_of(suffix, suffix_size)) {
    case WEIR_WDS_TEXT:
        weir_field_set_text(field, suffix, suffix_size, data, size);
        break;
    case WEIR_WDS_JSON:
        weir_field_set_json(field, suffix, suffix_size, data, size);
        break;
    case WEIR_WDS_NPY:
        (void)weir_npy_parse(field, data, size);
        break;
    case WEIR_WDS_NUMBER:
        if (weir_text_i64((const char *)data, size, &number))
            return weir_field_put_i64(field, suffix, suffix_size, number, scratch);
        break;
    case WEIR_WDS_BYTES:
        break;
    }
    return 0;
}

/* A sample's range, member by member: 1, 0 at the end, or an error. */
static int next_member(struct weir_tar *tar, struct weir_tar_member *member,
                       struct weir_wds_name *name)
{
    int code;
    do
        code = weir_tar_next(tar, member);
    while (code == 1 &&
           (!member->is_file || !weir_wds_split(name, member->name, member->name_size)));
    return code;
}

/* The key lies in a header, or it was put together from two parts of one. */
static int keep_key(const struct weir_tar *tar, struct weir_wds_name *name,
                    struct weir_arena **scratch)
{
    if (name->key != tar->joined)
        return 0;
    size_t size = name->key_size + 1 + name->suffix_size;
    char *copy = weir_arena_take(scratch, size);
    if (!copy)
        return weir_fail_memory();
    memcpy(copy, name->key, size);
    name->key = copy;
    name->suffix = copy + name->key_size + 1;
    return 0;
}

static int add_field(const struct weir_sample *sample, const struct weir_tar_member *member,
                     const struct weir_wds_name *name, struct weir_arena **scratch,
                     struct weir_field *fields, uint32_t used, bool as_bytes)
{
    const uint8_t *data = sample->data + member->data_off;
    const char *suffix;
    int code = lower_suffix(name, scratch, &suffix);
    if (code)
        return code;
    for (uint32_t i = 0; i < used; i++)
        if (fields[i].name_size == name->suffix_size &&
            !memcmp(fields[i].name, suffix, name->suffix_size))
            return fail_twice(name);
    if (!as_bytes)
        return set_field(&fields[used], suffix, name->suffix_size, data, (size_t)member->size,
                         scratch);
    weir_field_set(&fields[used], suffix, name->suffix_size, WEIR_FIELD_BYTES, data,
                   (size_t)member->size);
    return 0;
}

static int take_apart(const struct weir_sample *sample, struct weir_arena **scratch,
                      struct weir_field *fields, uint32_t *count, bool as_bytes)
{
    struct weir_tar tar;
    struct weir_tar_member member;
    struct weir_wds_name name;
    uint32_t used = 0, room = *count;
    int code;
    weir_tar_begin(&tar, sample->data, sample->size);
    while ((code = next_member(&tar, &member, &name)) == 1) {
        code = keep_key(&tar, &name, scratch);
        if (code)
            return code;
        if (!used && room)
            weir_field_set_text(&fields[used++], "__key__", 7, name.key, name.key_size);
        if (used >= room)
            return fail_many(&name);
        if (name.key_size != fields[0].size || memcmp(name.key, fields[0].data, name.key_size))
            return weir_fail(EBADMSG, "members of several samples, of which one is '%.*s'",
                             (int)name.key_size, name.key);
        code = add_field(sample, &member, &name, scratch, fields, used++, as_bytes);
        if (code)
            return code;
    }
    if (!code && !used)
        return weir_fail(EBADMSG, "there is no member with a suffix in it");
    *count = used;
    return code;
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    (void)schema;
    return take_apart(sample, scratch, fields, count, false);
}

static int members(const void *schema, const struct weir_sample *sample,
                   struct weir_arena **scratch, struct weir_field *fields, uint32_t *count)
{
    (void)schema;
    return take_apart(sample, scratch, fields, count, true);
}

static int key(const struct weir_sample *sample, struct weir_arena **scratch, const char **out)
{
    struct weir_tar tar;
    struct weir_tar_member member;
    struct weir_wds_name name;
    weir_tar_begin(&tar, sample->data, sample->size);
    int code = next_member(&tar, &member, &name);
    if (code <= 0)
        return code ? code : weir_fail(EBADMSG, "there is no member with a suffix in it");
    char *copy = weir_arena_take(scratch, name.key_size + 1);
    if (!copy)
        return weir_fail_memory();
    memcpy(copy, name.key, name.key_size);
    *out = copy;
    return 0;
}

const struct weir_format weir_format_wds = {
    .name = "wds",
    .about = "WebDataset: tar archives, members of a sample side by side",
    .match = match,
    .survey = survey_tars,
    .scan = scan,
    .fields = fields,
    .members = members,
    .key = key,
    .writer = &weir_wds_writer,
};
