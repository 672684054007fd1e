/* An index says where every sample is, whatever kinds of shards it has; and one that is damaged is
 * refused, or refuses the lookups that would touch the damage: it never says something else.
 */
#include "data/index_file.h"
#include "data/slab.h"
#include "stores.h"
#include "util/bytes.h"

enum { EACH = 100, SHARDS = 6, FILES = 3 };
#define HUGE_OFF ((uint64_t)5 << 32)
static const char schema[] = "{\"dtype\":\"<u2\",\"seq_len\":4,\"eot\":null,\"documents\":true}";

static weir_store *store;
static const char *dir;

static void numbers(uint8_t *out, const uint64_t *values, int count, unsigned width)
{
    for (int i = 0; i < count; i++)
        weir_store_le(out + i * width, values[i], width);
}

static size_t add_file(uint8_t *out, const char *key, uint64_t size)
{
    weir_store_le(out, size, 8);
    weir_store_le(out + 8, 77, 8);
    strcpy((char *)out + 16, key);
    return 16 + strlen(key) + 1;
}

static void put_rest(struct weir_index_put *put)
{
    uint8_t entries[256];
    struct weir_shard ranges = {.key = "ranges",
                                .codec = "",
                                .file_bytes = 100,
                                .raw_bytes = 100,
                                .samples = 2,
                                .kind = WEIR_ENTRIES_RANGES,
                                .width = 4,
                                .entries_bytes = 16};
    numbers(entries, (uint64_t[]){5, 10, 50, 50}, 4, 4);
    OK(weir_index_put_shard(put, &ranges, entries, NULL));
    uint64_t at[FILES + 1] = {0};
    uint8_t *records = entries + 4 * (FILES + 1);
    at[1] = add_file(records, "a", 1);
    at[2] = at[1] + add_file(records + at[1], "b/c", 0);
    at[3] = at[2] + add_file(records + at[2], "d", 12345);
    numbers(entries, at, FILES + 1, 4);
    struct weir_shard files = {.key = "a",
                               .codec = "",
                               .file_bytes = 12346,
                               .raw_bytes = 12346,
                               .samples = FILES,
                               .kind = WEIR_ENTRIES_FILES,
                               .width = 4,
                               .entries_bytes = 4 * (FILES + 1) + at[3]};
    OK(weir_index_put_shard(put, &files, entries, NULL));
    OK(weir_index_put_commit(put, NULL));
    weir_index_put_close(put);
}

/* One shard of each kind, and an empty one. */
static void put_index(const char *key)
{
    struct weir_index_put *put;
    uint8_t entries[32], marks[32];
    OK(weir_index_put_open(&put, store, key, "tokens", schema, strlen(schema)));
    struct weir_shard each = {.key = "each.bin",
                              .codec = "",
                              .file_bytes = 1000,
                              .time_ns = 1,
                              .raw_bytes = 1000,
                              .samples = 9,
                              .first_bytes = 20,
                              .each_bytes = EACH + 2,
                              .step_bytes = EACH,
                              .marks = 3,
                              .mark_width = 4};
    numbers(marks, (uint64_t[]){20, 130, 999}, 3, 4);
    OK(weir_index_put_shard(put, &each, NULL, marks));
    struct weir_shard none = {.key = "none",
                              .codec = "",
                              .raw_bytes = 0,
                              .kind = WEIR_ENTRIES_ENDS,
                              .width = 4,
                              .entries_bytes = 4};
    memset(entries, 0, 8);
    OK(weir_index_put_shard(put, &none, entries, NULL));
    struct weir_shard ends = {.key = "ends.tar",
                              .codec = "zstd",
                              .file_bytes = 50,
                              .raw_bytes = 300,
                              .samples = 3,
                              .kind = WEIR_ENTRIES_ENDS,
                              .width = 4,
                              .entries_bytes = 16};
    numbers(entries, (uint64_t[]){10, 20, 20, 300}, 4, 4);
    OK(weir_index_put_shard(put, &ends, entries, NULL));
    struct weir_shard wide = {.key = "wide",
                              .codec = "zstd",
                              .file_bytes = 8 << 20,
                              .raw_bytes = HUGE_OFF + 9,
                              .samples = 1,
                              .kind = WEIR_ENTRIES_ENDS,
                              .width = 8,
                              .entries_bytes = 16};
    numbers(entries, (uint64_t[]){HUGE_OFF, HUGE_OFF + 9}, 2, 8);
    OK(weir_index_put_shard(put, &wide, entries, NULL));
    put_rest(put);
}

struct want {
    uint64_t shard, off, size;
    const char *key;
};

static void all_is_found(const struct weir_index *index)
{
    static const struct want wants[] = {
        {2, 10, 10, "ends.tar"},  {2, 20, 0, "ends.tar"}, {2, 20, 280, "ends.tar"},
        {3, HUGE_OFF, 9, "wide"}, {4, 5, 10, "ranges"},   {4, 50, 50, "ranges"},
        {5, 0, 1, "a"},           {5, 0, 0, "b/c"},       {5, 0, 12345, "d"},
    };
    struct weir_place place;
    CHECK_EQ(weir_index_count(index), 9 + 9);
    CHECK_EQ(weir_index_shards(index), SHARDS);
    CHECK_EQ(weir_index_bytes_max(index), 12345);
    for (uint64_t i = 0; i < 9; i++) {
        OK(weir_index_find(index, i, &place));
        CHECK(place.shard == 0 && place.off == 20 + i * EACH && place.size == EACH + 2);
    }
    for (size_t i = 0; i < 9; i++) {
        OK(weir_index_find(index, 9 + i, &place));
        CHECK_EQ(place.shard, wants[i].shard);
        CHECK_EQ(place.off, wants[i].off);
        CHECK_EQ(place.size, wants[i].size);
        CHECK(!strcmp(place.key, wants[i].key) && !place.marks.count);
    }
    CHECK_EQ(weir_index_find(index, 18, &place), -EINVAL);
}

static void every_kind_of_shard(void)
{
    struct weir_index *index;
    put_index("index");
    OK(weir_index_open(&index, store, "index"));
    all_is_found(index);
    weir_index_close(index);
}

static void marks_are_those_within_the_sample(void)
{
    struct weir_index *index;
    struct weir_place place;
    OK(weir_index_open(&index, store, "index"));
    OK(weir_index_find(index, 0, &place)); /* [20, 122) */
    CHECK(place.marks.count == 1 && weir_load_le(place.marks.data, 4) == 20);
    OK(weir_index_find(index, 1, &place)); /* [120, 222) */
    CHECK(place.marks.count == 1 && weir_load_le(place.marks.data, 4) == 130);
    OK(weir_index_find(index, 2, &place));
    CHECK_EQ(place.marks.count, 0);
    weir_index_close(index);
}

static uint8_t *bytes_of(const char *key, size_t *size)
{
    char *path = data_path(store, dir, key);
    uint8_t *bytes = file_read(path, size);
    free(path);
    return bytes;
}

/* The digest names the data: neither the fingerprint nor times change it, a size does. */
static void digest_is_of_the_data(void)
{
    struct weir_index *a, *b;
    put_index("again");
    OK(weir_index_open(&a, store, "index"));
    OK(weir_index_open(&b, store, "again"));
    CHECK(!memcmp(weir_index_digest(a), weir_index_digest(b), WEIR_SHA256_BYTES));
    weir_index_close(a);
    weir_index_close(b);
}

static void look_everywhere(const uint8_t *bytes, size_t size)
{
    struct weir_index *index;
    struct weir_place place;
    if (weir_index_open_bytes(&index, bytes, size))
        return;
    for (uint64_t i = 0; i < weir_index_count(index) && i < 32; i++)
        if (!weir_index_find(index, i, &place))
            CHECK(place.off + place.size >= place.off && strlen(place.key) <= WEIR_KEY_BYTES_MAX);
    weir_index_close(index);
}

static void no_byte_can_hurt(void)
{
    size_t size;
    uint8_t *bytes = bytes_of("index", &size);
    uint64_t shards_at = weir_load_le(bytes + size - WEIR_INDEX_TAIL_BYTES + 40, 8);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            struct weir_index *none;
            bytes[i] ^= (uint8_t)(1 << bit);
            look_everywhere(bytes, size);
            if (i >= shards_at) /* its own sum sees it, also where there is no seal */
                CHECK(weir_index_open_bytes(&none, bytes, size) < 0);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    struct weir_index *index;
    for (size_t cut = 0; cut < size; cut++)
        CHECK(weir_index_open_bytes(&index, bytes, cut) < 0);
    OK(weir_index_open_bytes(&index, bytes, size));
    all_is_found(index);
    weir_index_close(index);
    free(bytes);
}

/* ---- by somebody who knows how sums are made ---- */

static uint8_t *tail_of(uint8_t *bytes, size_t size)
{
    return bytes + size - WEIR_INDEX_TAIL_BYTES;
}

static uint8_t *row_of(uint8_t *bytes, size_t size, uint64_t shard)
{
    return bytes + weir_load_le(tail_of(bytes, size) + 40, 8) + shard * WEIR_SHARD_ROW_BYTES;
}

static void sum_again(uint8_t *bytes, size_t size)
{
    uint8_t *from = row_of(bytes, size, 0), *sum = tail_of(bytes, size) + 160;
    weir_sum(sum, from, (size_t)(sum - from));
}

/* With that number in a row, or in the tail, it does not open. */
static void refused_with(uint64_t shard, size_t at, uint64_t number, unsigned width)
{
    size_t size;
    struct weir_index *index;
    uint8_t *bytes = bytes_of("index", &size);
    OK(weir_index_open_bytes(&index, bytes, size));
    weir_index_close(index);
    uint8_t *to = shard == SHARDS ? tail_of(bytes, size) : row_of(bytes, size, shard);
    weir_store_le(to + at, number, width);
    sum_again(bytes, size);
    CHECK_EQ(weir_index_open_bytes(&index, bytes, size), -EBADMSG);
    free(bytes);
}

static void impossible_sizes_are_refused(void)
{
    refused_with(0, 89, 4, 1);                                /* numbers, without entries */
    refused_with(0, 112, 0, 8);                               /* all samples at one place */
    refused_with(0, 16, 999, 8);                              /* more in it than in its file */
    refused_with(0, 32, 820, 8);                              /* nothing of its last sample, */
    refused_with(0, 32, 821, 8);                              /* not all of the last but one */
    refused_with(0, 0, (uint64_t)1 << 40, 8);                 /* its name, far away, */
    refused_with(5, 8, UINT64_MAX, 8);                        /* and its codec's */
    refused_with(1, 40, 1, 8);                                /* the first sample */
    refused_with(1, 48, UINT64_MAX, 8);                       /* how many there are */
    refused_with(1, 56, UINT64_MAX - 7, 8);                   /* where its entries are, */
    refused_with(5, 64, UINT64_MAX, 8);                       /* and how long */
    refused_with(1, 88, 4, 1);                                /* entries of no kind */
    refused_with(1, 72, (uint64_t)1 << 40, 8);                /* no marks, but far away */
    refused_with(2, 16, WEIR_OBJECT_BYTES_MAX + 1, 8);        /* the file */
    refused_with(2, 32, UINT64_MAX, 8);                       /* decompressed */
    refused_with(5, 16, WEIR_OBJECT_BYTES_MAX * 1024 + 1, 8); /* all files */
    refused_with(SHARDS, 24, UINT64_MAX, 8);                  /* all samples */
    refused_with(SHARDS, 24, 12344, 8);                       /* less than the largest */
    refused_with(SHARDS, 32, 1, 8);                           /* less than the average */
    refused_with(SHARDS, 32, WEIR_OBJECT_BYTES_MAX + 1, 8);   /* the largest */
}

static uint8_t *record_of_d(uint8_t *bytes, size_t size)
{
    uint8_t *at = bytes + weir_load_le(row_of(bytes, size, 5) + 56, 8);
    return at + 4 * (FILES + 1) + weir_load_le(at + 8, 4);
}

static void a_file_of_an_impossible_size(void)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - (1 << 20), (uint64_t)1 << 63,
                                     WEIR_OBJECT_BYTES_MAX + 1};
    size_t size;
    struct weir_index *index;
    struct weir_place place;
    uint8_t *bytes = bytes_of("index", &size), *record = record_of_d(bytes, size);
    CHECK_EQ(weir_load_le(record, 8), 12345);
    weir_store_le(row_of(bytes, size, 5) + 92, 0, 4); /* as one that has no sum */
    sum_again(bytes, size);
    for (int i = 0; i < 4; i++) {
        weir_store_le(record, sizes[i], 8);
        OK(weir_index_open_bytes(&index, bytes, size));
        OK(weir_index_find(index, 16, &place));
        CHECK_EQ(weir_index_find(index, 17, &place), -EBADMSG);
        CHECK(strstr(weir_error_text(), "larger than one can be"));
        CHECK_EQ(weir_index_check(index), -EBADMSG);
        weir_index_close(index);
    }
    weir_store_le(record, 12344, 8); /* not what the tail says */
    OK(weir_index_open_bytes(&index, bytes, size));
    CHECK_EQ(weir_index_check(index), -EBADMSG);
    weir_index_close(index);
    free(bytes);
}

/* Also one that would still lie within its shard. */
static void entries_have_a_sum(void)
{
    size_t size;
    struct weir_index *index;
    uint8_t *bytes = bytes_of("index", &size);
    OK(weir_index_open_bytes(&index, bytes, size));
    OK(weir_index_check(index));
    for (uint64_t shard = 0; shard < SHARDS; shard++) {
        uint8_t *row = row_of(bytes, size, shard);
        uint64_t entries = weir_load_le(row + 64, 8), marks = weir_load_le(row + 80, 8);
        uint8_t *from = bytes + weir_load_le(row + (entries ? 56 : 72), 8);
        for (uint64_t i = 0; i < (entries ? entries : 4 * marks); i++) {
            from[i] ^= 1;
            CHECK_EQ(weir_index_check(index), -EBADMSG);
            CHECK(strstr(weir_error_text(), "sum"));
            from[i] ^= 1;
        }
    }
    OK(weir_index_check(index));
    weir_index_close(index);
    free(bytes);
}

static void there_is_room_for_any_size(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        size_t size = (size_t)1 << bit;
        CHECK(weir_slab_room(size) >= size && weir_slab_room(~size) >= ~size);
    }
    /* One huge page, for what would else be in hundreds of single ones. */
    CHECK_EQ(weir_slab_room((1 << 20) + 1), 2 << 20);
    CHECK_EQ(weir_slab_room(2 << 20), 2 << 20);
    CHECK(weir_slab_room(1 << 20) < 2 << 20);
}

/* On disk a damaged entry is the seal's to see, when it is touched. */
static void a_damaged_entry_is_refused(void)
{
    struct weir_index *index;
    struct weir_place place;
    put_index("hurt");
    char *path = data_path(store, dir, "hurt");
    int fd = file_force_open(path);
    fd_flip(fd, 8 * WEIR_INDEX_HEAD_BYTES);
    close(fd);
    free(path);
    CHECK_EQ(weir_index_open(&index, store, "hurt"), -EBADMSG); /* one block: all of it */
    (void)place;
}

static void what_lies_outside_is_not_indexed(void)
{
    struct weir_index_put *put;
    uint8_t entries[8];
    struct weir_shard shard = {.key = "x",
                               .codec = "",
                               .raw_bytes = 10,
                               .samples = 1,
                               .kind = WEIR_ENTRIES_ENDS,
                               .width = 4,
                               .entries_bytes = 8};
    OK(weir_index_put_open(&put, store, "outside", "tokens", schema, strlen(schema)));
    numbers(entries, (uint64_t[]){0, 11}, 2, 4);
    CHECK_EQ(weir_index_put_shard(put, &shard, entries, NULL), -EBADMSG);
    numbers(entries, (uint64_t[]){8, 3}, 2, 4);
    CHECK_EQ(weir_index_put_shard(put, &shard, entries, NULL), -EBADMSG);
    weir_index_put_close(put);
}

static void memory_will_do(void)
{
    weir_store *files = store;
    struct weir_index *index;
    store = store_at("mem:", NULL);
    put_index("index");
    OK(weir_index_open(&index, store, "index"));
    all_is_found(index);
    weir_index_close(index);
    weir_store_close(store);
    store = files;
}

int main(void)
{
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(every_kind_of_shard);
    RUN(marks_are_those_within_the_sample);
    RUN(digest_is_of_the_data);
    RUN(no_byte_can_hurt);
    RUN(impossible_sizes_are_refused);
    RUN(a_file_of_an_impossible_size);
    RUN(entries_have_a_sum);
    RUN(there_is_room_for_any_size);
    RUN(a_damaged_entry_is_refused);
    RUN(what_lies_outside_is_not_indexed);
    RUN(memory_will_do);
    weir_store_close(store);
    return TEST_RESULT;
}
