/* The marker of a store: nothing but what was written is taken for one. */
#include <errno.h>
#include <stdbool.h>

#include "store/marker.h"
#include "test.h"
#include "util/bytes.h"
#include "util/hash.h"

static const struct weir_marker example = {
    .uuid = "\x01\x23\x45\x67\x89\xab\xcd\xef\x10\x32\x54\x76\x98\xba\xdc\xfe",
    .grace_ns = 86400000000000,
    .time_ns = 0x1122334455667788,
};

static void refused(const uint8_t *record, size_t size)
{
    struct weir_marker out = {.grace_ns = 77};
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, record, size);
    CHECK_EQ(weir_marker_decode(&out, copy, size), -EBADMSG);
    CHECK_EQ(out.grace_ns, 77);
    CHECK(strstr(weir_fail_last(), "damaged"));
    free(copy);
}

static void round_trip(void)
{
    uint8_t record[WEIR_MARKER_BYTES];
    struct weir_marker back;
    weir_marker_encode(record, &example);
    CHECK(!memcmp(record, "WEIRSTOR\x01\0\0\0\0\0\0\0", 16));
    CHECK(!memcmp(record + 16, example.uuid, 16));
    OK(weir_marker_decode(&back, record, sizeof record));
    CHECK(!memcmp(back.uuid, example.uuid, 16));
    CHECK(back.grace_ns == example.grace_ns && back.time_ns == example.time_ns);
}

static void damage(void)
{
    uint8_t record[2 * WEIR_MARKER_BYTES] = {0};
    weir_marker_encode(record, &example);
    for (size_t size = 0; size < WEIR_MARKER_BYTES; size++)
        refused(record, size);
    for (size_t size = WEIR_MARKER_BYTES + 1; size <= sizeof record; size++)
        refused(record, size);
    for (size_t bit = 0; bit < WEIR_MARKER_BYTES * 8; bit++) {
        struct weir_marker out;
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int code = weir_marker_decode(&out, record, WEIR_MARKER_BYTES);
        /* The version speaks first: what a newer Weir writes may look like anything. */
        bool version = bit / 8 == 8 || bit / 8 == 9;
        CHECK(code == -EBADMSG || (version && code == -EPROTO));
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void versions(void)
{
    uint8_t record[2 * WEIR_MARKER_BYTES] = {0};
    struct weir_marker out;
    weir_marker_encode(record, &example);
    weir_store_le(record + 8, 2, 2);
    CHECK_EQ(weir_marker_decode(&out, record, WEIR_MARKER_BYTES), -EPROTO);
    CHECK_EQ(weir_marker_decode(&out, record, sizeof record), -EPROTO);
    CHECK(strstr(weir_fail_last(), "newer"));
    weir_store_le(record + 8, 0, 2);
    weir_sum(record + 48, record, 48);
    refused(record, WEIR_MARKER_BYTES);
}

static void uuid_text(void)
{
    char text[40];
    weir_uuid_text(text, example.uuid);
    CHECK(!strcmp(text, "01234567-89ab-cdef-1032-547698badcfe"));
}

int main(void)
{
    RUN(round_trip);
    RUN(damage);
    RUN(versions);
    RUN(uuid_text);
    return TEST_RESULT;
}
