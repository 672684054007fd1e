/* mds_image.c - see mds_image.h. */
#include "data/mds_image.h"

#include <string.h>

#include "util/bytes.h"

enum {
    PIL_HEAD_BYTES = 12,
    PIL_MODE_MAX = 8,
};

static const struct {
    const char *mode;
    unsigned bytes; /* of a pixel */
} modes[] = {
    {"L", 1},    {"P", 1},    {"LA", 2},  {"La", 2},   {"PA", 2},   {"I;16", 2},
    {"RGB", 3},  {"LAB", 3},  {"HSV", 3}, {"RGBA", 4}, {"RGBa", 4}, {"YCbCr", 3},
    {"RGBX", 4}, {"CMYK", 4}, {"I", 4},   {"F", 4},
};

/* u32 width, height, size of the mode's name | mode | pixels */
static bool is_pil(const uint8_t *data, size_t size)
{
    if (size < PIL_HEAD_BYTES)
        return false;
    uint64_t width = weir_load_le(data, 4), height = weir_load_le(data + 4, 4), bytes;
    uint64_t name = weir_load_le(data + 8, 4);
    const char *mode = (const char *)data + PIL_HEAD_BYTES;
    if (name > PIL_MODE_MAX || name > size - PIL_HEAD_BYTES)
        return false;
    uint64_t rest = size - PIL_HEAD_BYTES - name;
    if (name == 1 && *mode == '1') /* eight pixels a byte */
        return (width + 7) / 8 * height == rest;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strlen(modes[i].mode) == name && !memcmp(modes[i].mode, mode, name))
            return !__builtin_mul_overflow(width * height, modes[i].bytes, &bytes) && bytes == rest;
    return false;
}

static bool is_jpeg(const uint8_t *data, size_t size)
{
    return size > 3 && !memcmp(data, "\xff\xd8\xff", 3);
}

static bool is_png(const uint8_t *data, size_t size)
{
    return size > 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8);
}

/* u32 n | u32 sizes[n] | elements, behind so many bytes. */
static bool is_list(const uint8_t *data, size_t size, size_t behind,
                    bool (*is_element)(const uint8_t *data, size_t size))
{
    if (size < behind + 4)
        return false;
    uint64_t count = weir_load_le(data + behind, 4);
    const uint8_t *sizes = data + behind + 4;
    size_t at = behind + 4;
    if (count > (size - at) / 4)
        return false;
    at += 4 * (size_t)count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bytes = weir_load_le(sizes + 4 * i, 4);
        if (bytes > size - at || !is_element(data + at, (size_t)bytes))
            return false;
        at += (size_t)bytes;
    }
    return at == size && (behind || count); /* an array of JPEGs has one at least */
}

bool weir_mds_is_image(enum weir_mds_value value, const uint8_t *data, size_t size)
{
    switch (value) {
    case WEIR_MDS_JPEG:
        return is_jpeg(data, size);
    case WEIR_MDS_PNG:
        return is_png(data, size);
    case WEIR_MDS_PIL:
        return is_pil(data, size);
    case WEIR_MDS_JPEG_ARRAY:
        return is_list(data, size, 0, is_jpeg);
    case WEIR_MDS_LIST_JPEG:
        return is_list(data, size, 4, is_jpeg);
    case WEIR_MDS_LIST_PNG:
        return is_list(data, size, 4, is_png);
    default:
        return is_list(data, size, 4, is_pil);
    }
}
