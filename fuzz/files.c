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

/* The files of one sample, in their order; false if it was refused. */
static bool add_sample(void *writer, const char *key, const struct weir_field *fields,
                       uint32_t count, char **names, uint32_t *files)
{
    struct weir_made made;
    const char *name;
    int code = weir_files_writer.add(writer, 7, key, fields, count);
    while (!code && (code = weir_files_writer.file(writer, &name, &made)) == 1) {
        check_name(name);
        PROMISE(*files < count);
        names[(*files)++] = text_copy((const uint8_t *)name, strlen(name));
        code = 0;
    }
    PROMISE(!code || code == -EINVAL);
    return !code;
}

/* Twice by one writer, as long as its key may be: nothing is left of the sample before. */
static void write_files(const char *key, const struct weir_field *fields, uint32_t count)
{
    static char *names[WEIR_FIELDS_MAX];
    struct weir_writing how = {.codec = ""};
    struct weir_made list;
    void *writer;
    PROMISE(weir_files_writer.open(&writer, &how) == 0);
    for (int turn = 0; turn < 2; turn++) {
        uint32_t files = 0;
        if (add_sample(writer, key, fields, count, names, &files))
            check_list(writer, names, files);
        else
            PROMISE(weir_files_writer.finish(writer, &list) == 0);
        while (files)
            free(names[--files]);
    }
    weir_files_writer.close(writer);
}

/* Up to the first NUL: the sample's key, each byte of it sixteen times where the first is '*'; then
 * the line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    static char key[16 * 4096 + 1];
    struct weir_arena *scratch = NULL;
    uint32_t count = WEIR_FIELDS_MAX;
    const uint8_t *end = size <= 4096 ? memchr(data, 0, size) : NULL;
    size_t used = 0, times = size && *data == '*' ? 16 : 1;
    for (const uint8_t *at = data; end && at < end; at++)
        for (size_t i = 0; i < times; i++)
            key[used++] = (char)*at;
    key[used] = 0;
    size_t skip = end ? (size_t)(end - data) + 1 : 0;
    uint8_t *copy = exact_copy(data + skip, size - skip);
    struct weir_sample sample = {.data = copy, .size = size - skip, .file = "x"};
    if (weir_format_jsonl.fields(NULL, &sample, &scratch, fields, &count) == 0)
        write_files(end ? key : NULL, fields, count);
    weir_arena_free(scratch);
    free(copy);
    return 0;
}
