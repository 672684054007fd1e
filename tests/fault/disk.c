/* disk.c - see disk.h. */
#include "disk.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "util/key.h"

struct look {
    weir_store *store;
    const char *root;
    unsigned faults;
};

static void fault(struct look *look, const char *path, const char *why)
{
    printf("DEBRIS: %s/%s: %s\n", look->root, path, why);
    look->faults++;
}

static bool same_inode(const char *root, const char *a, const char *b)
{
    char full[4096];
    struct stat x, y;
    snprintf(full, sizeof full, "%s/%s", root, a);
    if (lstat(full, &x))
        return false;
    snprintf(full, sizeof full, "%s/%s", root, b);
    return !lstat(full, &y) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static void judge_data(struct look *look, const char *path)
{
    char key[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    weir_object *obj;
    if (!weir_key_of_data_name(key, nonce, path + strlen(WEIR_DIR_DATA))) {
        fault(look, path, "not a data name");
    } else if (weir_object_open(&obj, look->store, key)) {
        fault(look, path, "data of no object");
    } else {
        if (strcmp(weir_object_info(obj)->data_name, path))
            fault(look, path, "not the data that the seal names");
        weir_object_close(obj);
    }
}

static void judge_seal(struct look *look, const char *path)
{
    char key[WEIR_NAME_BYTES_MAX];
    weir_object *obj;
    if (!weir_key_of_name(key, path + strlen(WEIR_DIR_SEAL))) {
        fault(look, path, "not a seal's name");
        return;
    }
    int code = weir_object_open(&obj, look->store, key);
    if (code)
        fault(look, path, code == -ENOENT ? "a void seal" : weir_error_text());
    else
        weir_object_close(obj);
}

static void judge_learned(struct look *look, const char *path)
{
    char key[WEIR_NAME_BYTES_MAX];
    weir_object *obj;
    if (!weir_key_of_name(key, path + strlen(WEIR_DIR_LEARN)) ||
        weir_object_open(&obj, look->store, key)) {
        fault(look, path, "learned of nothing");
        return;
    }
    if (weir_object_info(obj)->kind != WEIR_KIND_FOREIGN)
        fault(look, path, "learned of what is an object");
    weir_object_close(obj);
}

static void judge_plain(struct look *look, const char *path)
{
    weir_object *obj;
    int code = weir_object_open(&obj, look->store, path);
    if (code) {
        fault(look, path, weir_error_text());
        return;
    }
    const weir_info *info = weir_object_info(obj);
    if (info->kind == WEIR_KIND_FOREIGN)
        fault(look, path, "a plain name without an object");
    else if (!same_inode(look->root, path, info->data_name))
        fault(look, path, "the plain name is not the object's data");
    weir_object_close(obj);
}

static bool begins(const char *path, const char *dir)
{
    return !strncmp(path, dir, strlen(dir));
}

static void judge_file(struct look *look, const char *path)
{
    if (!strcmp(path, WEIR_NAME_STORE) || !strcmp(path, ".weir/lock"))
        return;
    if (begins(path, WEIR_DIR_TMP))
        fault(look, path, "a temporary file");
    else if (begins(path, WEIR_DIR_DATA))
        judge_data(look, path);
    else if (begins(path, WEIR_DIR_SEAL))
        judge_seal(look, path);
    else if (begins(path, WEIR_DIR_LEARN))
        judge_learned(look, path);
    else if (begins(path, ".weir/"))
        fault(look, path, "not a file of the engine's");
    else
        judge_plain(look, path);
}

/* Directories of the engine's own that are below its fixed ones go when they are empty. */
static void judge_dir(struct look *look, const FTSENT *entry, const char *path)
{
    bool own =
        begins(path, WEIR_DIR_DATA) || begins(path, WEIR_DIR_SEAL) || begins(path, WEIR_DIR_LEARN);
    if (own && entry->fts_number == 0)
        fault(look, path, "an empty directory");
}

unsigned disk_debris(weir_store *store, const char *root)
{
    struct look look = {store, root, 0};
    char *const roots[] = {(char *)root, NULL};
    size_t skip = strlen(root) + 1;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    CHECK(fts);
    for (FTSENT *entry; (entry = fts_read(fts));) {
        if (entry->fts_level <= 0)
            continue;
        const char *path = entry->fts_path + skip;
        if (entry->fts_info != FTS_DP)
            entry->fts_parent->fts_number++;
        if (entry->fts_info == FTS_F)
            judge_file(&look, path);
        else if (entry->fts_info == FTS_DP)
            judge_dir(&look, entry, path);
        else if (entry->fts_info != FTS_D)
            fault(&look, path, "neither a file nor a directory");
    }
    fts_close(fts);
    fflush(stdout);
    return look.faults;
}

/* A plain name cannot be where a directory or a shorter key's plain name stands. */
static bool is_blocked(const char *root, const char *key)
{
    char full[4096];
    struct stat st;
    snprintf(full, sizeof full, "%s/%s", root, key);
    return lstat(full, &st) == 0 ? S_ISDIR(st.st_mode) : errno == ENOTDIR;
}

unsigned disk_plain_missing(weir_store *store, const char *root)
{
    weir_list *list;
    const weir_entry *entry;
    unsigned missing = 0;
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE));
    while (weir_list_next(list, &entry) == 1) {
        weir_object *obj;
        if (entry->is_dir || weir_object_open(&obj, store, entry->key))
            continue;
        if (!same_inode(root, entry->key, weir_object_info(obj)->data_name) &&
            !is_blocked(root, entry->key)) {
            printf("MISSING: the plain name of '%s'\n", entry->key);
            missing++;
        }
        weir_object_close(obj);
    }
    weir_list_close(list);
    return missing;
}

bool disk_is_bare(const char *root)
{
    char *const roots[] = {(char *)root, NULL};
    size_t skip = strlen(root) + 1;
    bool bare = true;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    CHECK(fts);
    for (FTSENT *entry; (entry = fts_read(fts));) {
        const char *path = entry->fts_level > 0 ? entry->fts_path + skip : "";
        bool own = !strcmp(path, WEIR_NAME_STORE) || !strcmp(path, ".weir/lock");
        if (entry->fts_info == FTS_F && !own) {
            printf("LEFT: %s\n", entry->fts_path);
            bare = false;
        }
    }
    fts_close(fts);
    return bare;
}

void disk_remove(const char *root)
{
    char *const roots[] = {(char *)root, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    CHECK(fts);
    for (FTSENT *entry; (entry = fts_read(fts));) {
        if (entry->fts_info == FTS_DP)
            rmdir(entry->fts_accpath);
        else if (entry->fts_info != FTS_D)
            unlink(entry->fts_accpath);
    }
    fts_close(fts);
}
