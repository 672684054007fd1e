/* proof.c - see proof.h. */
#include "cli/proof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/source.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "util/err.h"

int proof_place_open(struct proof_place *out, struct cli *cli, const char *where)
{
    struct proof_place place = {.cli = cli, .where = where};
    const char *url = cli->operands[0];
    int code = weir_within_find(&place.within, url);
    if (code)
        return code;
    if (place.within.only)
        code = weir_fail(ENOTDIR, "'%s' is a file: a manifest is that of a directory", url);
    cli->store_url = place.within.store_url;
    if (!code)
        code = cli_store_open(cli, CLI_READ, 0, NULL);
    cli->store_url = url; /* the other one ends with the place */
    if (code)
        proof_place_close(&place);
    else
        *out = place;
    return code;
}

void proof_place_close(struct proof_place *place)
{
    weir_within_free(&place->within);
}

void proof_total(void *arg, uint64_t files, uint64_t bytes)
{
    const struct proof_bar *bar = arg;
    (void)files;
    progress_start(bar->cli, bar->doing, bytes, 0, false);
}

int proof_progress(void *arg, uint64_t more)
{
    (void)arg;
    progress_bytes(more);
    return stop_asked();
}

/* ---- reading ---- */

int proof_key_read(char **pem, size_t *size, const char *path)
{
    struct source source;
    size_t got = 1;
    int code = source_open(&source, path);
    if (code)
        return code;
    char *text = malloc(WEIR_PEM_BYTES_MAX + 2);
    size_t fill = 0;
    if (!text)
        code = weir_fail_memory();
    while (!code && got && fill <= WEIR_PEM_BYTES_MAX) {
        code = source_read(&source, text + fill, WEIR_PEM_BYTES_MAX + 1 - fill, &got);
        fill += code ? 0 : got;
    }
    source_close(&source);
    if (!code && fill > WEIR_PEM_BYTES_MAX)
        code =
            weir_fail(EFBIG, "'%s' is no key: it has more than %d bytes", path, WEIR_PEM_BYTES_MAX);
    if (code) {
        free(text);
        return code;
    }
    text[fill] = 0;
    *pem = text;
    *size = fill;
    return 0;
}

int proof_read(struct weir_proof *out, const struct proof_place *place, const char *key)
{
    weir_store *other = NULL;
    char *pem = NULL;
    size_t pem_size = 0;
    int code = key ? proof_key_read(&pem, &pem_size, key) : 0;
    if (!code && place->where)
        code = weir_store_open(&other, place->where, NULL);
    if (!code)
        code = weir_proof_load(out, other ? other : place->cli->store,
                               other ? "" : place->within.prefix, pem, pem_size);
    weir_store_close(other);
    free(pem);
    return code == -EINVAL && key ? weir_fail_in(code, "'%s'", key) : code;
}

/* ---- writing ---- */

static int write_file(const char *dir, const char *name, const void *data, size_t size)
{
    struct target target;
    char *path;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        return weir_fail_memory();
    int code = target_open(&target, path, true);
    if (!code) {
        code = target_write(&target, data, size);
        if (!code)
            code = target_commit(&target);
        target_close(&target);
    }
    free(path);
    return code;
}

/* A signature of another list does not fit any more. */
static int remove_signature(const char *dir)
{
    char *path;
    if (asprintf(&path, "%s/" WEIR_PROOF_SIGNATURE, dir) < 0)
        return weir_fail_memory();
    int code = unlink(path) && errno != ENOENT
                   ? weir_fail(errno, "cannot remove '%s': %s", path, weir_errno_text(errno))
                   : 0;
    free(path);
    return code;
}

static int write_plain(const struct weir_proof *proof, const struct proof_place *place,
                       const char *dir)
{
    struct weir_proof old;
    bool same = false;
    if (!proof_read(&old, place, NULL)) {
        same = old.sums_size == proof->sums_size && !memcmp(old.sums, proof->sums, old.sums_size);
        weir_proof_free(&old);
    }
    int code = same ? 0 : remove_signature(dir);
    if (!code && proof->blocks && !same)
        code = write_file(dir, WEIR_PROOF_BLOCKS, proof->blocks, proof->blocks_size);
    if (!code && !same)
        code = write_file(dir, WEIR_PROOF_SUMS, proof->sums, proof->sums_size);
    if (!code && proof->is_signed)
        code = write_file(dir, WEIR_PROOF_SIGNATURE, proof->signature, WEIR_SIGNATURE_BYTES);
    return code;
}

static int fail_read_only(const struct proof_place *place, int code)
{
    return weir_fail(code,
                     "'%s' cannot be written to: %s: keep the manifest elsewhere, with "
                     "--output DIR",
                     place->cli->operands[0], weir_errno_text(code));
}

int proof_write_check(const struct proof_place *place)
{
    weir_store_info info;
    struct target target;
    char *path;
    int code = weir_store_info_get(place->cli->store, &info);
    if (code)
        return code;
    if (!place->where && strcmp(info.tier, "file"))
        return info.uuid[0] ? 0 : fail_read_only(place, EROFS);
    bool is_shut = !place->where && access(place->within.place, W_OK) &&
                   (errno == EROFS || errno == EACCES || errno == EPERM);
    if (!place->where)
        return is_shut ? fail_read_only(place, errno) : 0;
    if (asprintf(&path, "%s/" WEIR_PROOF_SUMS, place->where) < 0)
        return weir_fail_memory();
    code = target_open(&target, path, true);
    if (!code)
        target_close(&target);
    free(path);
    return code;
}

int proof_write(const struct weir_proof *proof, const struct proof_place *place)
{
    weir_store_info info;
    if (place->where)
        return write_plain(proof, place, place->where);
    int code = weir_store_info_get(place->cli->store, &info);
    if (!code && info.uuid[0])
        return weir_proof_keep(proof, place->cli->store, place->within.prefix);
    if (!code && strcmp(info.tier, "file"))
        code = fail_read_only(place, EROFS);
    return code ? code : write_plain(proof, place, place->within.place);
}
