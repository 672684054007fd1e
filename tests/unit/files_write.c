/* A tree of plain files that is written: what was a file is that file again, other fields are files
 * named by their sample and themselves, and no name leads out of the tree, hides, or is taken
 * twice.
 */
#include <errno.h>

#include "data/files_write.h"
#include "made.h"
#include "util/err.h"

static const struct weir_format_writer *way = &weir_files_writer;
static void *writer;

/* The files of one sample, as "name=content name=content"; or why not. */
static const char *files_of(const char *key, const struct weir_field *fields, uint32_t count)
{
    static char text[8192];
    size_t used = 0;
    struct weir_made made;
    const char *name;
    int code = way->add(writer, 7, key, fields, count);
    text[0] = 0;
    while (!code && (code = way->file(writer, &name, &made)) == 1) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%.*s", used ? " " : "",
                                 name, (int)made.body_size, (const char *)made.body);
        code = 0;
    }
    if (code)
        CHECK_EQ(code, -EINVAL);
    return code ? weir_fail_last() : text;
}

#define ARE(expected, key, ...)                                                                    \
    do {                                                                                           \
        struct weir_field fields[] = {__VA_ARGS__};                                                \
        CHECK(!strcmp(files_of(key, fields, sizeof fields / sizeof *fields), expected));           \
    } while (0)

#define FAILS(why, key, ...)                                                                       \
    do {                                                                                           \
        struct weir_field fields[] = {__VA_ARGS__};                                                \
        CHECK(strstr(files_of(key, fields, sizeof fields / sizeof *fields), why));                 \
    } while (0)

/* A path of that size. */
static const char *name_of(size_t size)
{
    static char name[5000];
    memset(name, 'n', size);
    name[size] = 0;
    for (size_t part = 200; part < size - 1; part += 200)
        name[part] = '/';
    return name;
}

static void what_was_a_file(void)
{
    struct weir_field data = made_bytes("data", "raw");
    ARE("cat/1.seg.JPG=raw", "cat/1", data, made_text("path", "cat/1.seg.JPG"),
        made_text("label", "cat"));
    ARE("cat/README=raw", "cat/README", data, made_text("path", "cat/README"));
    ARE("a/b.c/d=raw", NULL, made_text("path", "a/b.c/d"), data);
    ARE("a.txt=raw", NULL, made_text("path", ".//./a.txt"), data);
    ARE("a.txt=raw", NULL, made_text("path", "/a.txt"), made_text("data", "raw"));
    ARE("a/b.txt=", NULL, made_text("path", "/a/b.txt"), made_text("data", ""),
        made_text("label", "a"));
    /* Another label says something, and so does another field. */
    ARE("cat/1.jpg=raw cat/1.label.txt=dog cat/1.caption.txt=hi", NULL, data,
        made_text("path", "cat/1.jpg"), made_text("label", "dog"), made_text("caption", "hi"));
    /* Only both are a file. */
    ARE("000000007.path.txt=a.jpg", NULL, made_text("path", "a.jpg"));
    ARE("x.data=raw", "x", data);
    ARE("x.path.json=null x.data=raw", "x", made_none("path"), data);
}

static void what_was_none(void)
{
    int16_t whole = -7;
    ARE("dir.d/a.jpg=raw dir.d/a.txt=words dir.d/a.image.caption.txt=more dir.d/a.meta.json={} "
        "dir.d/a.cls=-7 dir.d/a.gone.json=null",
        "dir.d/a", made_text("__key__", "dir.d/a"), made_bytes("JPG", "raw"),
        made_text("txt", "words"), made_text("image/caption", "more"),
        made("meta", WEIR_FIELD_JSON, "{}"), made_array("cls", "<i2", &whole, 0, 0, 0),
        made_none("gone"));
    ARE("000000007.x=1", NULL, made_bytes("x", "1"));
    ARE("000000007.x=1", "", made_bytes("x", "1"));
    ARE("000000007.x=1", "./", made_bytes("x", "1"));
    ARE("a/b.x=1", "./a/b", made_bytes("x", "1"));
    ARE("k.x=1", NULL, made_text("__key__", "k"), made_bytes("x", "1"));
    ARE("k.x=1", NULL, made_text("__key__", "./k"), made_bytes("x", "1"));
    /* One that names nothing is a field as others are. */
    ARE("a.__key__.txt=k a.x=1", "a", made_text("__key__", "k"), made_bytes("x", "1"));
    ARE("a=raw a.__key__.txt=k", NULL, made_bytes("data", "raw"), made_text("path", "a"),
        made_text("__key__", "k"));
    ARE("000000007.__key__.cls=-7 000000007.x=1", NULL,
        made_array("__key__", "<i2", &whole, 0, 0, 0), made_bytes("x", "1"));
    ARE("000000007.__key__.txt= 000000007.x=1", NULL, made_text("__key__", ""),
        made_bytes("x", "1"));
}

static void refused(void)
{
    struct weir_field data = made_bytes("data", "raw"), nul = made_bytes("path", "");
    static const char *const bad[][2] = {
        {"", "empty part"},     {"../x", "'..'"},         {"a/../../x", "'..'"},
        {"a//b", "empty part"}, {"a/", "empty part"},     {".weir/x", "engine's"},
        {"a~", "engine's own"}, {".h", "hidden"},         {"a/.h/b", "hidden"},
        {"x.weir", "Weir's"},   {"SHA256SUMS", "Weir's"}, {"a\nb", "control character"},
        {"a\xff", "not UTF-8"}, {"/..", "'..'"},          {".", "'.'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(bad[i][1], NULL, data, made_bytes("path", bad[i][0]));
    FAILS("'..'", "../up", data);
    nul.data = "a\0b";
    nul.size = 3;
    FAILS("NUL", NULL, data, nul);
    FAILS("same name", NULL, made_bytes("a", "x"), made_bytes("A", "y"));
    FAILS("same name", NULL, data, made_text("path", "a.txt"), made_text("txt", "y"));
    FAILS("without fields", NULL, made_text("__key__", "k"));
    FAILS("without fields", "k", made_text("__key__", "k"));
    FAILS("4999 bytes", NULL, data, made_text("path", name_of(4999)));
    FAILS("longer than", NULL, made_bytes(name_of(2000), "x"));
    FAILS("too long", NULL, made_bytes(name_of(4999), "x"));
    FAILS("4999 bytes", name_of(4999), made_bytes("x", "1"));
}

/* Of every length: a key, a field's name behind it, and both. */
static void long_names(void)
{
    for (size_t size = 900; size < 5000; size += size % 4090 < 1040 ? 1 : 61) {
        const char *name = name_of(size);
        struct weir_field field = made_bytes("x", "1"), other = made_bytes(name, "2");
        bool is_made = strstr(files_of(name, &field, 1), "n.x=1");
        CHECK_EQ(is_made, size + 2 <= 1024);
        files_of("key", &other, 1);
        files_of(name, &other, 1);
    }
}

static void list_of_all(void)
{
    struct weir_made list;
    OK(way->finish(writer, &list)); /* what was refused is not in a list that anybody seals */
    ARE("a.x=1", "a", made_bytes("x", "1"));
    ARE("b/c.x=1 b/c.y.txt=2", "b/c", made_bytes("x", "1"), made_text("y", "2"));
    way->drain(writer, &list);
    CHECK(list.body_size == 20 && !memcmp(list.body, "a.x\nb/c.x\nb/c.y.txt\n", 20));
    OK(way->finish(writer, &list));
    CHECK_EQ(list.body_size, 0);
    char text[64];
    way->name(text, 12, "");
    CHECK(!strcmp(text, ".pack/000012.weir"));
}

int main(void)
{
    struct weir_writing how = {.codec = ""};
    OK(way->open(&writer, &how));
    RUN(what_was_a_file);
    RUN(what_was_none);
    RUN(refused);
    RUN(long_names);
    RUN(list_of_all);
    way->close(writer);
    way->close(NULL);
    return TEST_RESULT;
}
