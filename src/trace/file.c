/* file.c - see file.h. */
#include "trace/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/path.h"
#include "util/err.h"
#include "util/sys.h"

enum { HASH_SLOTS = 1 << 18, ROOM_FIRST = 1024 };

const char *weir_trace_kind_name(enum weir_trace_kind kind)
{
    static const char *const names[] = {"open", "names", "read", "write", "sync", "map"};
    return names[kind];
}

int weir_trace_files_init(struct weir_trace_files *files)
{
    *files = (struct weir_trace_files){0};
    files->dir_by_hash = weir_alloc(HASH_SLOTS * sizeof(void *));
    files->file_by_hash = weir_alloc(HASH_SLOTS * sizeof(void *));
    if (files->dir_by_hash && files->file_by_hash)
        return 0;
    weir_trace_files_free(files);
    return weir_fail_memory();
}

void weir_trace_files_free(struct weir_trace_files *files)
{
    weir_arena_free(files->memory);
    free(files->dir_by_hash);
    free(files->file_by_hash);
    free(files->dirs);
    free(files->files);
    *files = (struct weir_trace_files){0};
}

static uint32_t hash_of(const char *text, size_t size, uint64_t seed)
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    hash ^= hash >> 33;
    return (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 40) & (HASH_SLOTS - 1);
}

/* Makes room for one more pointer. */
static bool grow(void **list, size_t count, size_t *room)
{
    if (count < *room)
        return true;
    size_t more = *room ? 2 * *room : ROOM_FIRST;
    void *bigger = weir_realloc(*list, more * sizeof(void *));
    if (!bigger)
        return false;
    *list = bigger;
    *room = more;
    return true;
}

/* ---- directories ---- */

static struct weir_trace_dir *dir_find(struct weir_trace_files *files, const char *path,
                                       size_t size)
{
    struct weir_trace_dir *dir = files->dir_by_hash[hash_of(path, size, 0)];
    while (dir && (strncmp(dir->path, path, size) || dir->path[size]))
        dir = dir->next;
    return dir;
}

/* How much of path is its directory: "/data" of "/data/a", "/" of "/a", "" of "a". */
static size_t dir_size(const char *path, size_t size)
{
    const char *slash = memrchr(path, '/', size);
    return slash ? (slash == path ? 1 : (size_t)(slash - path)) : 0;
}

static struct weir_trace_dir *dir_make(struct weir_trace_files *files, const char *path,
                                       size_t size, struct weir_trace_dir *parent)
{
    if (files->dir_count >= WEIR_TRACE_DIRS_MAX)
        return parent ? parent : files->dirs[0];
    struct weir_trace_dir *dir = weir_arena_take(&files->memory, sizeof *dir + size + 1);
    if (!dir || !grow((void **)&files->dirs, files->dir_count, &files->dir_room))
        return NULL;
    uint32_t hash = hash_of(path, size, 0);
    memcpy(dir->path, path, size);
    dir->parent = parent;
    dir->next = files->dir_by_hash[hash];
    files->dir_by_hash[hash] = dir;
    files->dirs[files->dir_count++] = dir;
    return dir;
}

/* From the root down, so that parents come first. */
static struct weir_trace_dir *dir_get(struct weir_trace_files *files, const char *path, size_t size)
{
    struct weir_trace_dir *dir = dir_find(files, path, size), *parent = NULL;
    if (dir)
        return dir;
    const size_t root = path[0] == '/';
    for (size_t at = root; at <= size; at++) {
        if (at != root && at != size && path[at] != '/')
            continue;
        dir = dir_find(files, path, at);
        if (!dir && !(dir = dir_make(files, path, at, parent)))
            return NULL;
        parent = dir;
    }
    return dir;
}

/* ---- files ---- */

void weir_trace_file_renew(struct weir_trace_files *files, struct weir_trace_file *file)
{
    file->number = files->numbers++;
}

static struct weir_trace_file *file_make(struct weir_trace_files *files, struct weir_trace_dir *dir,
                                         const char *name, const char *path)
{
    size_t size = strlen(name);
    struct weir_trace_file *file = weir_arena_take(&files->memory, sizeof *file + size + 1);
    if (!file || !grow((void **)&files->files, files->file_count, &files->file_room))
        return NULL;
    memcpy(file->name, name, size);
    file->dir = dir;
    file->is_program = weir_trace_path_is_program(path);
    weir_trace_file_renew(files, file);
    files->files[files->file_count++] = file;
    return file;
}

static struct weir_trace_file *find_in(struct weir_trace_files *files, struct weir_trace_dir *dir,
                                       const char *name, uint32_t hash)
{
    struct weir_trace_file *file = files->file_by_hash[hash];
    while (file && (file->dir != dir || strcmp(file->name, name)))
        file = file->next;
    return file;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct weir_trace_file *weir_trace_file_find(struct weir_trace_files *files, const char *path)
{
    const char *name = name_of(path);
    struct weir_trace_dir *dir = dir_find(files, path, dir_size(path, strlen(path)));
    return dir ? find_in(files, dir, name, hash_of(name, strlen(name), (uintptr_t)dir)) : NULL;
}

struct weir_trace_file *weir_trace_file_get(struct weir_trace_files *files, const char *path)
{
    const char *name = name_of(path);
    struct weir_trace_dir *dir = dir_get(files, path, dir_size(path, strlen(path)));
    if (!dir)
        return NULL;
    uint32_t hash = hash_of(name, strlen(name), (uintptr_t)dir);
    struct weir_trace_file *file = find_in(files, dir, name, hash);
    if (file)
        return file;
    if (files->file_count >= WEIR_TRACE_FILES_MAX) {
        files->beyond++;
        if (!files->rest)
            files->rest = file_make(files, dir, "(other files)", "");
        return files->rest;
    }
    file = file_make(files, dir, name, path);
    if (file) {
        file->next = files->file_by_hash[hash];
        files->file_by_hash[hash] = file;
    }
    return file;
}

const char *weir_trace_file_path(const struct weir_trace_file *file, char *out, size_t size)
{
    const char *dir = file->dir->path;
    snprintf(out, size, "%s%s%s", dir, *dir && strcmp(dir, "/") ? "/" : "", file->name);
    return out;
}

/* ---- sums ---- */

void weir_trace_sum_add(struct weir_trace_sum *sum, const struct weir_trace_sum *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static struct weir_trace_sum sum_of(const struct weir_trace_file *file)
{
    bool used = file->reads || file->writes || file->mapped_bytes;
    return (struct weir_trace_sum){
        .files = used,
        .small_files = file->reads && file->size_bytes < WEIR_TRACE_SMALL_BYTES,
        .opens = file->is_dir ? 0 : file->opens,
        .reads = file->reads,
        .reads_empty = file->reads_empty,
        .writes = file->writes,
        .finds = file->finds,
        .calls = file->calls,
        .read_bytes = file->read_bytes,
        .write_bytes = file->write_bytes,
        .size_bytes = used ? file->size_bytes : 0,
        .mapped_bytes = file->mapped_bytes,
        .jumps = file->jumps,
        .ns = file->ns,
        .open_ns = file->open_ns,
        .read_ns = file->read_ns,
        .write_ns = file->write_ns,
    };
}

void weir_trace_files_sum(struct weir_trace_files *files, struct weir_trace_sum *data,
                          struct weir_trace_sum *program)
{
    *data = *program = (struct weir_trace_sum){0};
    for (size_t i = 0; i < files->dir_count; i++)
        files->dirs[i]->own = files->dirs[i]->all = (struct weir_trace_sum){0};
    for (size_t i = 0; i < files->file_count; i++) {
        struct weir_trace_file *file = files->files[i];
        struct weir_trace_sum sum = sum_of(file);
        weir_trace_sum_add(file->is_program ? program : data, &sum);
        if (!file->is_program)
            weir_trace_sum_add(&file->dir->own, &sum);
    }
    for (size_t i = files->dir_count; i-- > 0;) {
        struct weir_trace_dir *dir = files->dirs[i];
        weir_trace_sum_add(&dir->all, &dir->own);
        if (dir->parent)
            weir_trace_sum_add(&dir->parent->all, &dir->all);
    }
}
