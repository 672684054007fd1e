/* What an object says of those before it, and what that says of a lost answer. */
#include "test.h"
#include "tier/s3_trip.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccc"
#define D "dddddddddddddddddddddddddddddddd"

static struct weir_s3_meta read_it(const char *text)
{
    struct weir_s3_meta meta = {0};
    weir_s3_meta_read(&meta, text, strlen(text));
    return meta;
}

static void round_trips(void)
{
    static const char *const good[] = {A, A "-" B, "gone-" A, "gone-" A "-" B "-" C};
    static const char *const bad[] = {"",
                                      "gone-",
                                      "gone",
                                      A "-",
                                      A B,
                                      A "-" B "x",
                                      "x" A,
                                      "gone-gone-" A,
                                      A "+" B,
                                      "-" A,
                                      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    char text[WEIR_S3_META_MAX];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct weir_s3_meta meta = read_it(good[i]);
        CHECK(meta.count && meta.is_gone == (good[i][0] == 'g'));
        weir_s3_meta_write(text, &meta);
        CHECK(!strcmp(text, good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!read_it(bad[i]).count && !read_it(bad[i]).is_gone);
}

static void old_ones_are_forgotten(void)
{
    struct weir_s3_meta meta = read_it(A), next;
    char text[WEIR_S3_META_MAX];
    for (int i = 0; i < 2 * WEIR_S3_IDS_MAX; i++) {
        weir_s3_meta_after(&next, i % 2 ? B : C, &meta);
        meta = next;
        weir_s3_meta_write(text, &meta);
        CHECK_EQ(read_it(text).count, meta.count);
    }
    CHECK_EQ(meta.count, WEIR_S3_IDS_MAX);
    CHECK(!strcmp(meta.id[0], B) && !strcmp(meta.id[1], C));
}

static enum weir_s3_tale tells(const char *there, const char *ours, const char *over)
{
    struct weir_s3_meta meta = read_it(there);
    return weir_s3_meta_tells(&meta, ours, over);
}

static void what_it_tells(void)
{
    CHECK_EQ(tells(A, A, ""), WEIR_S3_TALE_DONE);
    CHECK_EQ(tells("gone-" B "-" A, A, ""), WEIR_S3_TALE_DONE); /* and removed since */
    CHECK_EQ(tells(C "-" B "-" A, A, ""), WEIR_S3_TALE_DONE);
    CHECK_EQ(tells(B, A, ""), WEIR_S3_TALE_NOT_DONE); /* another made the first */
    CHECK_EQ(tells("gone-" C "-" B, A, ""), WEIR_S3_TALE_NOT_DONE);
    CHECK_EQ(tells(C "-" B, A, B), WEIR_S3_TALE_NOT_DONE); /* another took B's place */
    CHECK_EQ(tells(D "-" C "-" B, A, B), WEIR_S3_TALE_NOT_DONE);
    CHECK_EQ(tells(B, A, B), WEIR_S3_TALE_NONE);   /* it still stands: ours may yet come */
    CHECK_EQ(tells(C, A, B), WEIR_S3_TALE_NONE);   /* nothing known of B */
    CHECK_EQ(tells("", A, ""), WEIR_S3_TALE_NONE); /* somebody else's object */
    CHECK_EQ(tells("", A, B), WEIR_S3_TALE_NONE);
    struct weir_s3_meta full = {.count = WEIR_S3_IDS_MAX};
    for (int i = 0; i < WEIR_S3_IDS_MAX; i++)
        strcpy(full.id[i], B);
    CHECK_EQ(weir_s3_meta_tells(&full, A, ""), WEIR_S3_TALE_NONE); /* the first are forgotten */
}

static void checksums(void)
{
    char text[WEIR_S3_CRC_MAX];
    weir_s3_crc(text, 0xe3069283);
    CHECK(!strcmp(text, "4waSgw=="));
    weir_s3_crc(text, 0);
    CHECK(!strcmp(text, "AAAAAA=="));
}

int main(void)
{
    RUN(round_trips);
    RUN(old_ones_are_forgotten);
    RUN(what_it_tells);
    RUN(checksums);
    return TEST_RESULT;
}
