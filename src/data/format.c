/* format.c - the formats there are: see format.h. */
#include "data/format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "util/err.h"

/* What looks like two of them is the first; everything looks like plain files. */
static const struct weir_format *const formats[] = {
    &weir_format_mds,      &weir_format_litdata, &weir_format_wds,   &weir_format_tokens,
    &weir_format_tfrecord, &weir_format_jsonl,   &weir_format_files,
};
enum { FORMATS = sizeof formats / sizeof *formats };

const struct weir_format *weir_format_at(size_t i)
{
    return i < FORMATS ? formats[i] : NULL;
}

const struct weir_format *weir_format_find(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(formats[i]->name, name))
            return formats[i];
    return NULL;
}

int weir_format_fail(const char *name, bool to_write)
{
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < FORMATS && used < sizeof names; i++)
        if (!to_write || formats[i]->writer)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     formats[i]->name);
    return weir_fail(EINVAL, "there is no format '%s'%s: there are %s", name,
                     to_write ? " to write" : "", names);
}

int weir_format_raw(const struct weir_format *format, const struct weir_sample *sample,
                    struct weir_field *field)
{
    const uint8_t *data = sample->data;
    size_t size = sample->size;
    int code = format->content ? format->content(sample, &data, &size) : 0;
    if (!code)
        weir_field_set(field, "raw", strlen("raw"), WEIR_FIELD_BYTES, data, size);
    return code;
}

static int looks_like_none(const struct weir_survey *survey)
{
    struct weir_survey_file first, second = {.key = ""};
    if (!weir_survey_file(survey, 0, &first))
        return weir_fail(EINVAL, "there are no files in '%s'", weir_survey_prefix(survey));
    bool several = weir_survey_file(survey, 1, &second);
    return weir_fail(
        EINVAL,
        "the files in '%s' ('%.200s'%s%.200s%s) are of no format that Weir knows by its "
        "looks: name the format",
        weir_survey_prefix(survey), first.key, several ? ", '" : "", second.key,
        several ? "', …" : "");
}

int weir_format_detect(const struct weir_format **out, const struct weir_survey *survey)
{
    const struct weir_format *best = NULL;
    int most = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        int sure = formats[i]->match(survey);
        if (sure > most) {
            most = sure;
            best = formats[i];
        }
    }
    if (best) {
        *out = best;
        return 0;
    }
    return looks_like_none(survey);
}
