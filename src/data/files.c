/* files.c - a tree of plain files: every file is a sample. Its first directory, where it has one,
 * is its label, as torchvision's ImageFolder has it.
 */
#include <errno.h>
#include <string.h>

#include "data/field.h"
#include "data/files_write.h"
#include "data/format.h"
#include "data/survey.h"
#include "data/wds_name.h"
#include "util/err.h"

static int match(const struct weir_survey *survey)
{
    struct weir_survey_file file;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++)
        if (!weir_survey_is_hidden(file.key))
            return 1;
    return 0;
}

static int survey_files(struct weir_survey *survey)
{
    struct weir_survey_file file;
    bool any = false;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++) {
        struct weir_shard_plan shard = {
            .key = file.key,
            .codec = "",
            .file_bytes = file.size_bytes,
            .time_ns = file.time_ns,
            .raw_bytes = file.size_bytes,
            .samples = 1,
        };
        if (weir_survey_is_hidden(file.key))
            continue;
        int code = weir_survey_add(survey, &shard);
        if (code)
            return code;
        any = true;
    }
    return any ? 0 : weir_fail(EINVAL, "there is no file in it");
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    (void)schema;
    (void)scratch;
    const char *slash = strchr(sample->file, '/');
    uint32_t need = slash ? 3 : 2;
    if (*count < need)
        return weir_fail(EINVAL, "room for %u fields; a file has %u", *count, need);
    weir_field_set(&fields[0], "data", 4, WEIR_FIELD_BYTES, sample->data, sample->size);
    weir_field_set_text(&fields[1], "path", 4, sample->file, strlen(sample->file));
    if (slash)
        weir_field_set_text(&fields[2], "label", 5, sample->file, (size_t)(slash - sample->file));
    *count = need;
    return 0;
}

/* The path without the ending of the file: what a WebDataset calls it. */
static int key(const struct weir_sample *sample, struct weir_arena **scratch, const char **out)
{
    size_t size = weir_wds_stem(sample->file, strlen(sample->file));
    char *copy = weir_arena_take(scratch, size + 1);
    if (!copy)
        return weir_fail_memory();
    memcpy(copy, sample->file, size);
    *out = copy;
    return 0;
}

const struct weir_format weir_format_files = {
    .name = "files",
    .about = "plain files: each is a sample, its first directory is its label",
    .is_files = true,
    .match = match,
    .survey = survey_files,
    .fields = fields,
    .key = key,
    .writer = &weir_files_writer,
};
