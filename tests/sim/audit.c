/* audit.c - what may be on the disk when gc has run: see sim_model_audit() in model.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "sim.h"
#include "store/seal.h"
#include "test.h"
#include "util/key.h"

static const struct sim_inode *at(const char *name)
{
    char path[2 * WEIR_NAME_BYTES_MAX];
    snprintf(path, sizeof path, "%s/%s", SIM_STORE, name);
    return sim_fs_at(sim.fs, path);
}

static void debris(const char *name, const char *what)
{
    fprintf(stderr, "after gc, '%s' is %s\n", name, what);
    exit(1);
}

/* The name of the data that key's seal names; false if it has no (object's) seal. */
static bool data_of(const char *key, char out[WEIR_NAME_BYTES_MAX])
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_seal seal;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    const struct sim_inode *inode = at(name);
    if (!inode)
        return false;
    uint8_t *record = sim_alloc(inode->live->size);
    sim_image_read(inode->live, record, inode->live->size, 0);
    if (weir_seal_decode(&seal, record, inode->live->size, key))
        debris(name, "a damaged seal");
    if (seal.kind != WEIR_SEAL_OBJECT)
        debris(name, "a void, or worse");
    snprintf(out, WEIR_NAME_BYTES_MAX, "%.*s", (int)seal.data_name_size, seal.data_name);
    const struct sim_inode *data = at(out);
    if (!data || data->live->size != seal.size)
        debris(name, "a seal without its data");
    free(record);
    return true;
}

/* A directory of that name, or a file above it, leaves no room for a plain name. */
static bool has_no_room(const char *key)
{
    char above[WEIR_NAME_BYTES_MAX];
    const struct sim_inode *there = at(key);
    if (there)
        return there->type == SIM_DIR;
    snprintf(above, sizeof above, "%s", key);
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = 0;
        there = at(above);
        if (there && there->type != SIM_DIR)
            return true;
    }
    return false;
}

static void audit_seal(const char *name)
{
    char key[WEIR_NAME_BYTES_MAX], data[WEIR_NAME_BYTES_MAX];
    if (!weir_key_of_name(key, name + strlen(WEIR_DIR_SEAL)) || !data_of(key, data))
        debris(name, "no seal");
    if (at(key) != at(data) && !has_no_room(key))
        debris(key, "missing as the plain name of an object");
}

static void audit_data(const char *name)
{
    char key[WEIR_NAME_BYTES_MAX], data[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    if (!weir_key_of_data_name(key, nonce, name + strlen(WEIR_DIR_DATA)) || !data_of(key, data) ||
        strcmp(data, name))
        debris(name, "unsealed data");
}

static void audit_learned(const char *name)
{
    char key[WEIR_NAME_BYTES_MAX];
    if (!weir_key_of_name(key, name + strlen(WEIR_DIR_LEARN)) || !at(key))
        debris(name, "learned of nothing");
}

static void audit_plain(struct sim_model *model, const char *name, const struct sim_inode *inode)
{
    char data[WEIR_NAME_BYTES_MAX];
    if (inode->type == SIM_LINK || (data_of(name, data) && at(data) == inode))
        return;
    if (!sim_model_fact(model, name)->foreign)
        debris(name, "a plain name of nothing");
}

static bool below(const char *name, const char *dir)
{
    return !strncmp(name, dir, strlen(dir));
}

static void audit_one(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    const struct sim_model *model = arg;
    (void)ino;
    if (model->saves &&
        (below(name, WEIR_DIR_LOG) || (below(name, WEIR_DIR_SET) && inode->type != SIM_DIR)))
        return;
    if (inode->type == SIM_DIR && !inode->names.count && strchr(name, '/') &&
        strchr(strchr(name, '/') + 1, '/') && below(name, ".weir/"))
        debris(name, "an empty directory");
    if (inode->type == SIM_DIR || !strcmp(name, WEIR_NAME_STORE) || !strcmp(name, ".weir/lock"))
        return;
    if (below(name, WEIR_DIR_SEAL))
        audit_seal(name);
    else if (below(name, WEIR_DIR_DATA))
        audit_data(name);
    else if (below(name, WEIR_DIR_LEARN))
        audit_learned(name);
    else if (below(name, ".weir/"))
        debris(name, "debris");
    else
        audit_plain(arg, name, inode);
}

void sim_model_audit(struct sim_model *model)
{
    sim_fs_each(sim.fs, SIM_STORE, audit_one, model);
}
