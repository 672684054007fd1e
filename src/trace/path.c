/* path.c - see path.h. */
#include "trace/path.h"

#include <string.h>

/* Adds the parts of more to out, whose length is *used. */
static bool add_parts(char *out, size_t *used, const char *more)
{
    while (*more) {
        size_t size = strcspn(more, "/");
        if (size == 2 && !memcmp(more, "..", 2) && *used && out[0] == '/') {
            while (*used && out[*used - 1] != '/')
                --*used;
            *used -= *used > 0;
        } else if (size && !(size == 1 && *more == '.')) {
            if (*used + size + 2 > WEIR_TRACE_PATH_MAX)
                return false;
            if (*used && out[*used - 1] != '/')
                out[(*used)++] = '/';
            memcpy(out + *used, more, size);
            *used += size;
        }
        more += size + (more[size] == '/');
        if (!*used && out[0] == '/')
            *used = 1;
    }
    return true;
}

bool weir_trace_path_join(char out[WEIR_TRACE_PATH_MAX], const char *base, const char *path)
{
    size_t used = 0;
    const char *first = path[0] == '/' ? path : base;
    out[0] = 0;
    if (first[0] == '/') {
        out[0] = '/';
        used = 1;
    }
    if (!add_parts(out, &used, first) || (first != path && !add_parts(out, &used, path)))
        return false;
    if (!used)
        out[used++] = '.';
    out[used] = 0;
    return true;
}

uint64_t weir_trace_path_hash(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return hash ? hash : 1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && !strcmp(text + size - tail, end);
}

bool weir_trace_path_is_program(const char *path)
{
    static const char *const places[] = {"/proc/",  "/sys/", "/dev/",  "/run/", "/usr/",  "/lib/",
                                         "/lib64/", "/bin/", "/sbin/", "/etc/", "/memfd:"};
    static const char *const parts[] = {"/site-packages", "/dist-packages", "/__pycache__",
                                        "/lib/python3", ".so."};
    static const char *const ends[] = {".py", ".pyc", ".pyi", ".so", ".sh", "/pyvenv.cfg"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (!strncmp(path, places[i], strlen(places[i])))
            return true;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(path, parts[i]))
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(path, ends[i]))
            return true;
    return false;
}
