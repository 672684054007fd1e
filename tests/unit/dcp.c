/* Checkpoints of torch.distributed.checkpoint, as it wrote them (fuzz/corpus/dcp): read, cut short
 * at every byte, changed at every byte.
 */
#include "ckpt/dcp.h"

#include <errno.h>

#include "ckpt/nest.h"
#include "ckpt/tagged.h"
#include "tmpdir.h"
#include "util/bytes.h"

static const char *corpus;
static struct weir_arena *arena;
static struct weir_tagged tagged;
static struct weir_source source;

/* Two bytes say how long the metadata is, which follows; then comes the file. */
struct seed {
    uint8_t *bytes;
    size_t size, metadata;
};

static struct seed seed_read(const char *name)
{
    struct seed seed;
    seed.bytes = file_read(path_in(corpus, name), &seed.size);
    seed.metadata = (size_t)weir_load_le(seed.bytes, 2);
    CHECK(seed.metadata + 2 < seed.size);
    return seed;
}

static void forget(void)
{
    weir_tagged_free(&tagged);
    weir_arena_free(arena);
    arena = NULL;
    weir_source_close(&source);
}

/* So much of the metadata, and so much of the file, in blocks of just that size. */
static int load(const struct seed *seed, size_t metadata, size_t file_size)
{
    struct weir_source_file *file;
    struct weir_value *root;
    static uint8_t *copies[2];
    forget();
    free(copies[0]);
    free(copies[1]);
    copies[0] = malloc(metadata + 1);
    copies[1] = malloc(file_size + 1);
    CHECK(copies[0] && copies[1]);
    memcpy(copies[0] + 1, seed->bytes + 2, metadata); /* the end of a block is watched */
    memcpy(copies[1] + 1, seed->bytes + 2 + seed->metadata, file_size);
    OK(weir_source_add_bytes(&source, copies[1] + 1, file_size, &file));
    int code = weir_dcp_load_bytes(&root, &arena, &source, copies[0] + 1, metadata);
    return code ? code : weir_tagged_make(&tagged, &arena, root, false);
}

static int load_all(const struct seed *seed)
{
    return load(seed, seed->metadata, seed->size - 2 - seed->metadata);
}

static void state_is(const char *name, const char *root)
{
    char expected[1024];
    struct seed seed = seed_read(name);
    snprintf(expected, sizeof expected, "{\"weir\":\"state/1\",\"root\":%s}", root);
    OK(load_all(&seed));
    if (strcmp(tagged.text, expected))
        fprintf(stderr, "%s\n", tagged.text);
    CHECK(!strcmp(tagged.text, expected));
    free(seed.bytes);
}

static void floats_are(size_t i, float first, float step, size_t count)
{
    struct weir_windows windows = {0};
    float got[16];
    CHECK_EQ(tagged.tensors[i].from->bytes, count * 4);
    OK(weir_from_read(tagged.tensors[i].from, &windows, 0, got, count * 4));
    for (size_t k = 0; k < count; k++)
        CHECK(got[k] == first + step * (float)k);
    weir_windows_free(&windows);
}

static void as_written(void)
{
    state_is("tensor", "{\"w\":{\"$\":\"tensor\",\"name\":\"w\"}}");
    floats_are(0, 0, 1, 12);
    state_is("nested", "{\"a\":{\"b\":{\"$\":\"tensor\",\"name\":\"a.b\"}},"
                       "\"l\":[{\"$\":\"tensor\",\"name\":\"l.0\"}]}");
    floats_are(0, 1, 0, 2);
    floats_are(1, 1, 0, 1);
    state_is("bytes", "{\"n\":7,\"t\":{\"$\":\"tuple\",\"items\":[1,\"x\"]}}");
    state_is("safetensors", "{\"w\":{\"$\":\"tensor\",\"name\":\"w\"},\"n\":7}");
    floats_are(0, 0, 1, 12);
}

static const char *const names[] = {"tensor", "nested", "bytes", "safetensors"};

static void cut_short(void)
{
    for (size_t i = 0; i < 4; i++) {
        struct seed seed = seed_read(names[i]);
        size_t file = seed.size - 2 - seed.metadata;
        for (size_t size = 0; size < seed.metadata; size++)
            CHECK_EQ(load(&seed, size, file), -EBADMSG);
        for (size_t size = 0; size < file; size++)
            CHECK_EQ(load(&seed, seed.metadata, size), -EBADMSG);
        free(seed.bytes);
    }
}

/* Refused, or what comes out is within the file. */
static void changed(void)
{
    for (size_t i = 0; i < 4; i++) {
        struct seed seed = seed_read(names[i]);
        for (size_t at = 2; at < seed.size; at++) {
            seed.bytes[at] ^= 0xff;
            int code = load_all(&seed);
            for (size_t k = 0; !code && k < tagged.count; k++) {
                struct weir_windows windows = {0};
                char got[64];
                const struct weir_from *from = tagged.tensors[k].from;
                weir_from_read(from, &windows, 0, got, from->bytes < 64 ? from->bytes : 64);
                weir_windows_free(&windows);
            }
            seed.bytes[at] ^= 0xff;
        }
        free(seed.bytes);
    }
}

/* "a" and 7: a key and a place. */
static struct weir_value *path(const char *parts)
{
    struct weir_value *tuple = weir_value_new(&arena, WEIR_VALUE_TUPLE);
    for (; *parts; parts++) {
        struct weir_value *part = weir_value_text(&arena, parts, 1);
        if (*parts >= '0' && *parts <= '9') {
            part = weir_value_new(&arena, WEIR_VALUE_INT);
            part->number = (*parts - '0') * (*parts == '9' ? 1000000 : 1);
        }
        CHECK(weir_value_add(&arena, tuple, part));
    }
    return tuple;
}

static void contradictions(void)
{
    static const struct {
        const char *first, *second;
        int code;
    } cases[] = {
        {"ab", "ac", 0},        {"a0", "a1", 0},        {"a3", "a1", 0},        {"a0b", "a0c", 0},
        {"a0", "a0", -EBADMSG}, {"a0", "ab", -EBADMSG}, {"ab", "a0", -EBADMSG}, {"a", "", -EBADMSG},
        {"a0", "a9", -EBADMSG}, /* far beyond the end */
        {"0", "a", -EBADMSG},
    };
    forget();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_nest nest;
        struct weir_value *value = weir_value_new(&arena, WEIR_VALUE_BOOL);
        OK(weir_nest_begin(&nest, &arena));
        int code = weir_nest_set(&nest, path(cases[i].first), value);
        if (!code)
            code = weir_nest_set(&nest, path(cases[i].second), value);
        CHECK_EQ(code, cases[i].code);
        weir_nest_end(&nest);
    }
    forget();
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    corpus = argv[1];
    RUN(as_written);
    RUN(cut_short);
    RUN(changed);
    RUN(contradictions);
    return TEST_RESULT;
}
