/* Whatever happens to the bytes of an object is noticed, named, and never handed out: flipped bits,
 * cut and grown files, holes, lost and exchanged files, damaged seals.
 */
#include <inttypes.h>

#include "stores.h"

enum { BLOCK = 4096, SMALL = BLOCK + 777, MIB = 1 << 20, LARGE = 9 * MIB + 12345 };

static weir_store *store;
static const char *dir;

/* Reading [off, off + len) fails and the text names the object, the block and its bytes; no byte of
 * that block comes out, what was before the read stays or is wiped. */
static void read_names(weir_object *obj, uint64_t off, size_t len, uint64_t bad, size_t shift)
{
    const weir_info *info = weir_object_info(obj);
    uint64_t block = bad / info->block_bytes, begin = block * info->block_bytes;
    uint64_t end = begin + info->block_bytes;
    char want[256];
    size_t got = 4711;
    uint8_t *buf = data_buffer(len, shift);
    memset(buf, 0xee, len);
    CHECK_EQ(weir_object_read(obj, buf, len, off, &got), -EBADMSG);
    CHECK_EQ(got, 4711);
    end = end < info->size_bytes ? end : info->size_bytes;
    snprintf(want, sizeof want, "'%s' is damaged in block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64
             ")", info->key, block, begin, end - 1);
    if (strncmp(weir_error_text(), want, strlen(want)))
        fprintf(stderr, "the text should begin: %s\n", want);
    CHECK(!strncmp(weir_error_text(), want, strlen(want)));
    uint64_t from = begin > off ? begin : off, to = end < off + len ? end : off + len;
    const uint8_t *at = buf + (from - off);
    CHECK(data_all(at, to - from, 0xee) || data_all(at, to - from, 0));
    data_free(buf, shift);
}

/* A range that does not touch the bad block is as good as ever. */
static void read_others(weir_object *obj, uint64_t bad, uint64_t seed)
{
    const weir_info *info = weir_object_info(obj);
    uint64_t begin = bad / info->block_bytes * info->block_bytes, after = begin + info->block_bytes;
    uint8_t *buf = data_buffer(LARGE, 0);
    size_t got;
    OK(weir_object_read(obj, buf, begin, 0, &got));
    CHECK(got == begin && data_is(buf, got, seed, 0));
    if (after < info->size_bytes) {
        OK(weir_object_read(obj, buf, LARGE, after, &got));
        CHECK(got == info->size_bytes - after && data_is(buf, got, seed, after));
    }
    data_free(buf, 0);
}

static void every_byte_of_a_small_object(void)
{
    weir_object *obj;
    OK(put_try(store, "small", SMALL, 1, BLOCK));
    char *path = data_path(store, dir, "small");
    int fd = file_force_open(path);
    OK(weir_object_open(&obj, store, "small"));
    for (uint64_t at = 0; at < SMALL; at++) {
        uint64_t bit = at * 8 + at % 8;
        fd_flip(fd, bit);
        read_names(obj, 0, SMALL, at, at % 2);
        fd_flip(fd, bit);
    }
    weir_object_close(obj);
    get_seed(store, "small", SMALL, 1);
    close(fd);
    free(path);
}

/* Anywhere in a large one: found by whole reads, by ranges, hot and cold, by weir_verify. */
static void random_bytes_of_a_large_object(void)
{
    static const uint32_t blocks[] = {4096, 65536, MIB};
    struct rng rng = {1};
    for (int b = 0; b < 3; b++) {
        char key[16];
        weir_object *obj;
        snprintf(key, sizeof key, "large%d", b);
        OK(put_try(store, key, LARGE, 2, blocks[b]));
        char *path = data_path(store, dir, key);
        int fd = file_force_open(path);
        OK(weir_object_open(&obj, store, key));
        for (int i = 0; i < 12; i++) {
            uint64_t at = i == 0 ? 0 : i == 1 ? LARGE - 1 : rng_below(&rng, LARGE);
            fd_flip(fd, at * 8 + rng_below(&rng, 8));
            if (i % 2)
                fd_drop_cache(fd);
            read_names(obj, 0, LARGE, at, i % 3 ? 0 : 1);
            read_names(obj, at, 1, at, 0);
            read_names(obj, at / blocks[b] * blocks[b], blocks[b], at, 0);
            read_others(obj, at, 2);
            CHECK_EQ(weir_verify(store, key, NULL, NULL), -EBADMSG);
            uint8_t right = data_byte(2, at);
            CHECK_EQ(pwrite(fd, &right, 1, (off_t)at), 1);
        }
        weir_object_close(obj);
        OK(weir_verify(store, key, NULL, NULL));
        close(fd);
        free(path);
    }
}

static void fails_at_open(const char *key, const char *says)
{
    CHECK_EQ(get_code(store, key), -EBADMSG);
    CHECK(strstr(weir_error_text(), key) && strstr(weir_error_text(), says));
    CHECK_EQ(weir_verify(store, key, NULL, NULL), -EBADMSG);
}

static void wrong_length(void)
{
    static const long changes[] = {-1, -SMALL, -777, 1, 4096};
    OK(put_try(store, "length", SMALL, 3, BLOCK));
    char *path = data_path(store, dir, "length");
    int fd = file_force_open(path);
    uint8_t *data = data_buffer(SMALL, 0);
    data_fill(data, SMALL, 3, 0);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        CHECK(ftruncate(fd, SMALL + changes[i]) == 0);
        fails_at_open("length", "its seal says 4873");
        CHECK(ftruncate(fd, SMALL) == 0);
        CHECK_EQ(pwrite(fd, data, SMALL, 0), SMALL);
        get_seed(store, "length", SMALL, 3);
    }
    data_free(data, 0);
    close(fd);
    free(path);
}

/* Cut while it is open. */
static void cut_under_a_reader(void)
{
    weir_object *obj;
    size_t got = 0;
    uint8_t *buf = data_buffer(LARGE, 0);
    OK(put_try(store, "cut", LARGE, 4, 65536));
    char *path = data_path(store, dir, "cut");
    OK(weir_object_open(&obj, store, "cut"));
    CHECK(chmod(path, 0644) == 0 && truncate(path, 5 * MIB + 7) == 0);
    CHECK_EQ(weir_object_read(obj, buf, LARGE, 0, &got), -EBADMSG);
    CHECK(strstr(weir_error_text(), "'cut' is damaged: its data ends at byte"));
    CHECK_EQ(weir_object_read(obj, buf, 10, LARGE - 10, &got), -EBADMSG);
    OK(weir_object_read(obj, buf, 5 * MIB, 0, &got));
    CHECK(got == 5 * MIB && data_is(buf, got, 4, 0));
    weir_object_close(obj);
    data_free(buf, 0);
    free(path);
}

/* What a file system leaves that lost a block after a crash. */
static void hole_of_zeros(void)
{
    weir_object *obj;
    OK(put_try(store, "hole", LARGE, 5, 65536));
    char *path = data_path(store, dir, "hole");
    int fd = file_force_open(path);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * MIB, 4096) == 0);
    OK(weir_object_open(&obj, store, "hole"));
    read_names(obj, 0, LARGE, 3 * MIB, 0);
    read_names(obj, 3 * MIB + 10, 10, 3 * MIB, 1);
    read_others(obj, 3 * MIB, 5);
    weir_object_close(obj);
    close(fd);
    free(path);
}

static void missing_data(void)
{
    OK(put_try(store, "missing", SMALL, 6, 0));
    char *path = data_path(store, dir, "missing");
    CHECK(unlink(path) == 0);
    fails_at_open("missing", "missing"); /* although the plain name still holds them */
    CHECK(unlink(path_in(dir, "missing")) == 0);
    fails_at_open("missing", "missing");
    /* What is broken can still be removed. */
    OK(weir_remove(store, "missing"));
    CHECK_EQ(get_code(store, "missing"), -ENOENT);
    free(path);
}

static void swapped_data(void)
{
    OK(put_try(store, "swap/a", SMALL, 7, BLOCK));
    OK(put_try(store, "swap/b", SMALL, 8, BLOCK));
    char *a = data_path(store, dir, "swap/a"), *b = data_path(store, dir, "swap/b");
    const char *aside = path_in(dir, "aside");
    CHECK(rename(a, aside) == 0 && rename(b, a) == 0 && rename(aside, b) == 0);
    for (int i = 0; i < 2; i++) {
        weir_object *obj;
        OK(weir_object_open(&obj, store, i ? "swap/b" : "swap/a"));
        read_names(obj, 0, SMALL, 0, 0);
        weir_object_close(obj);
    }
    free(a);
    free(b);
}

/* A damaged seal: the object is not readable, not replaceable, and not collected. */
static void damaged_seals(void)
{
    OK(put_try(store, "seal/x", SMALL, 9, BLOCK));
    char *seal = seal_path(dir, "seal/x"), *data = data_path(store, dir, "seal/x");
    struct stat st;
    int fd = file_force_open(seal);
    CHECK(fstat(fd, &st) == 0);
    for (uint64_t at = 0; at < (uint64_t)st.st_size; at += 5) {
        fd_flip(fd, at * 8 + at % 8);
        fails_at_open("seal/x", "seal");
        fd_flip(fd, at * 8 + at % 8);
    }
    fd_flip(fd, 500);
    CHECK_EQ(put_try(store, "seal/x", 10, 1, 0), -EBADMSG);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(path_there(data));
    fd_flip(fd, 500);
    CHECK(ftruncate(fd, 0) == 0);
    fails_at_open("seal/x", "too short");
    close(fd);
    free(seal);
    free(data);
}

/* A seal copied from another object must not lend its bytes to this key. */
static void copied_seal(void)
{
    size_t size;
    OK(put_try(store, "from", SMALL, 10, BLOCK));
    OK(put_try(store, "to", SMALL, 11, BLOCK));
    char *from = seal_path(dir, "from"), *to = seal_path(dir, "to");
    void *record = file_read(from, &size);
    CHECK(unlink(to) == 0);
    file_write(to, record, size);
    fails_at_open("to", "another key");
    free(record);
    free(from);
    free(to);
}

/* Lists say which seals are damaged, and go on. */
static void lists_show_damage(void)
{
    weir_list *list;
    const weir_entry *entry;
    int bad = 0, good = 0, code;
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while ((code = weir_list_next(list, &entry)) == 1) {
        bad += entry->error == -EBADMSG;
        good += entry->error == 0;
        CHECK(entry->error == -EBADMSG || entry->size_bytes);
    }
    OK(code);
    CHECK(bad == 2 && good >= 5);
    weir_list_close(list);
}

int main(int argc, char **argv)
{
    const char *engine = engine_or_skip(argc, argv);
    dir = tmp_path("store");
    store = store_at(dir, engine);
    RUN(every_byte_of_a_small_object);
    RUN(random_bytes_of_a_large_object);
    RUN(wrong_length);
    RUN(cut_under_a_reader);
    RUN(hole_of_zeros);
    RUN(missing_data);
    RUN(swapped_data);
    RUN(damaged_seals);
    RUN(copied_seal);
    RUN(lists_show_damage);
    weir_store_close(store);
    return TEST_RESULT;
}
