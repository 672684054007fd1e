/* wds_name.c - see wds_name.h. The rule of the webdataset library is
 *
 *     ^((?:.*[/]|)[^.]+)[.]([^/]*)$
 *
 * so the suffix begins after the first dot of the last part, and what is before it must end in
 * something without dots that begins the name or follows a slash (which may reach over slashes).
 */
#include "data/wds_name.h"

#include <string.h>

/* Members about the shard itself: the first part of their name is like "__x__". */
static bool is_meta(const char *name, size_t size)
{
    const char *slash = memchr(name, '/', size);
    size_t part = slash ? (size_t)(slash - name) : size;
    return part >= 4 && !memcmp(name, "__", 2) && !memcmp(name + part - 2, "__", 2);
}

size_t weir_wds_stem(const char *path, size_t size)
{
    const char *slash = memrchr(path, '/', size), *base = slash ? slash + 1 : path;
    const char *dot = memchr(base, '.', size - (size_t)(base - path));
    return dot ? (size_t)(dot - path) : size;
}

bool weir_wds_split(struct weir_wds_name *out, const char *name, size_t size)
{
    const char *slash = memrchr(name, '/', size);
    const char *base = slash ? slash + 1 : name;
    const char *dot = memchr(base, '.', size - (size_t)(base - name));
    if (!dot || dot == name || is_meta(name, size))
        return false;
    /* Behind an earlier dot, the part without dots begins after the next slash. */
    const char *earlier = memrchr(name, '.', (size_t)(dot - name)), *begin = name;
    if (earlier) {
        const char *next = memchr(earlier, '/', (size_t)(dot - earlier));
        if (!next || next + 1 == dot)
            return false;
        begin = next + 1;
    }
    if (memchr(name, '\n', (size_t)(begin - name))) /* which "." does not match */
        return false;
    out->key = name;
    out->key_size = (size_t)(dot - name);
    out->suffix = dot + 1;
    out->suffix_size = size - out->key_size - 1;
    return true;
}

enum weir_wds_content weir_wds_content_of(const char *suffix, size_t size)
{
    static const struct {
        const char *name;
        enum weir_wds_content content;
    } known[] = {
        {"txt", WEIR_WDS_TEXT},   {"text", WEIR_WDS_TEXT},   {"transcript", WEIR_WDS_TEXT},
        {"cls", WEIR_WDS_NUMBER}, {"cls2", WEIR_WDS_NUMBER}, {"index", WEIR_WDS_NUMBER},
        {"inx", WEIR_WDS_NUMBER}, {"id", WEIR_WDS_NUMBER},   {"json", WEIR_WDS_JSON},
        {"jsn", WEIR_WDS_JSON},   {"npy", WEIR_WDS_NPY},
    };
    const char *dot = memrchr(suffix, '.', size);
    const char *last = dot ? dot + 1 : suffix;
    size -= (size_t)(last - suffix);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (size == strlen(known[i].name) && !memcmp(last, known[i].name, size))
            return known[i].content;
    return WEIR_WDS_BYTES;
}
