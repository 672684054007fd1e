/* Plain files: whatever a line of JSON calls the fields of a sample, each file made of them has a
 * name of its own, safe below the root of a tree, which a reader of the tree would find.
 */
#include "data/files_write.h"
#include "data/jsonl.h"
#include "data/survey.h"
#include "target.h"
#include "util/key.h"

static void check_name(const char *name)
{
    PROMISE(weir_key_check(name) == 0 && !weir_survey_is_ours(name));
    PROMISE(name[0] != '.' && !strstr(name, "/."));
}

/* The list has a line for each of the names that were handed out, and none is there twice. */
static void check_list(void *writer, char **names, uint32_t count)
{
    struct weir_made list;
    PROMISE(weir_files_writer.finish(writer, &list) == 0);
    const char *at = (const char *)list.body, *end = at + list.body_size;
    for (uint32_t i = 0; i < count; i++, at++) {
        size_t size = strlen(names[i]);
        PROMISE((size_t)(end - at) > size && !memcmp(at, names[i], size) && at[size] == '\n');
        for (uint32_t k = 0; k < i; k++)
            PROMISE(strcmp(names[k], names[i]) != 0);
        at += size;
    }
    PROMISE(at == end);
}

static void write_files(const struct weir_field *fields, uint32_t count)
{
    static char *names[WEIR_FIELDS_MAX];
    struct weir_writing how = {.codec = ""};
    struct weir_made made;
    const char *name;
    uint32_t files = 0;
    void *writer;
    int code;
    PROMISE(weir_files_writer.open(&writer, &how) == 0);
    code = weir_files_writer.add(writer, 7, NULL, fields, count);
    while (!code && (code = weir_files_writer.file(writer, &name, &made)) == 1) {
        check_name(name);
        PROMISE(files < count);
        names[files++] = text_copy((const uint8_t *)name, strlen(name));
        code = 0;
    }
    if (!code)
        check_list(writer, names, files);
    while (files)
        free(names[--files]);
    weir_files_writer.close(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    struct weir_arena *scratch = NULL;
    uint32_t count = WEIR_FIELDS_MAX;
    uint8_t *copy = exact_copy(data, size);
    struct weir_sample sample = {.data = copy, .size = size, .file = "x"};
    if (weir_format_jsonl.fields(NULL, &sample, &scratch, fields, &count) == 0)
        write_files(fields, count);
    weir_arena_free(scratch);
    free(copy);
    return 0;
}
