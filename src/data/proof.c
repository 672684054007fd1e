/* proof.c - see proof.h. */
#include "data/proof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/blocks.h"
#include "data/hashing.h"
#include "data/roll.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/team.h"

/* Of one of the three files: they are held in memory. A billion files have a list of this size. */
#define FILE_BYTES_MAX ((uint64_t)64 << 30)

bool weir_proof_has(const char *name)
{
    return !strcmp(name, WEIR_PROOF_SUMS) || !strcmp(name, WEIR_PROOF_BLOCKS) ||
           !strcmp(name, WEIR_PROOF_SIGNATURE);
}

void weir_proof_free(struct weir_proof *proof)
{
    free(proof->sums);
    free(proof->blocks);
    *proof = (struct weir_proof){0};
}

static void key_of(char out[WEIR_NAME_BYTES_MAX], const char *prefix, const char *name)
{
    snprintf(out, WEIR_NAME_BYTES_MAX, "%s%s", prefix, name);
}

/* ---- making ---- */

struct making {
    weir_store *store;
    const struct weir_hashing *how;
    uint32_t block_bytes;
    struct weir_roll roll;
    struct weir_blocks blocks; /* of what is being made */
    uint8_t *sums;             /* of its blocks */
    uint8_t (*files)[WEIR_SHA256_BYTES];
};

static int keep_block(void *arg, uint64_t block, const uint8_t *sha256)
{
    uint8_t *to = arg;
    if (!sha256)
        return 1;
    memcpy(to + block * WEIR_SHA256_BYTES, sha256, WEIR_SHA256_BYTES);
    return 0;
}

static int hash_file(void *arg, uint64_t i)
{
    struct making *m = arg;
    const struct weir_blocks_entry *entry = &m->roll.entries[i];
    struct weir_blocks_file file;
    char key[WEIR_NAME_BYTES_MAX];
    weir_object *obj;
    key_of(key, m->how->prefix, entry->name);
    int code = weir_object_open(&obj, m->store, key);
    if (code)
        return code;
    weir_blocks_file(&m->blocks, i, &file);
    if (weir_object_info(obj)->size_bytes != entry->size_bytes)
        code = weir_fail(ESTALE, "'%s' was written to while it was read: try again", key);
    else
        code = weir_hash_object(obj, m->block_bytes, keep_block,
                                m->sums + file.first * WEIR_SHA256_BYTES, m->files[i],
                                m->how->progress, m->how->arg);
    weir_object_close(obj);
    return code;
}

/* SHA256BLOCKS stands among the others, where its name belongs. */
static int write_sums(struct weir_proof *proof, const struct making *m)
{
    struct weir_json_out text = {0};
    uint8_t sha256[WEIR_SHA256_BYTES];
    bool listed = false;
    weir_sha256(sha256, proof->blocks, proof->blocks_size);
    for (uint64_t i = 0; i <= m->roll.count; i++) {
        const char *name = i < m->roll.count ? m->roll.entries[i].name : NULL;
        if (!listed && (!name || strcmp(name, WEIR_PROOF_BLOCKS) > 0)) {
            weir_sums_add(&text, sha256, WEIR_PROOF_BLOCKS);
            listed = true;
        }
        if (name)
            weir_sums_add(&text, m->files[i], name);
    }
    proof->sums = text.text;
    proof->sums_size = text.size;
    return text.failed ? weir_fail_memory() : 0;
}

static int fail_empty(const struct making *m)
{
    weir_store_info info;
    int code = weir_store_info_get(m->store, &info);
    return code ? code
                : weir_fail(ENOENT, "there are no files in '%s%s%s'", info.url,
                            *m->how->prefix ? "/" : "", m->how->prefix);
}

static int make(struct weir_proof *proof, struct making *m)
{
    const struct weir_hashing *how = m->how;
    if (!m->roll.count)
        return fail_empty(m);
    if (how->total)
        how->total(how->arg, m->roll.count, m->roll.bytes);
    m->files = weir_alloc(m->roll.count * WEIR_SHA256_BYTES);
    if (!m->files)
        return weir_fail_memory();
    int code = weir_blocks_make(&proof->blocks, &proof->blocks_size, &m->sums, m->block_bytes,
                                m->roll.entries, m->roll.count);
    if (!code)
        code = weir_blocks_open(&m->blocks, proof->blocks, proof->blocks_size);
    if (!code)
        code = weir_team_run(how->threads, m->roll.count, hash_file, m);
    return code ? code : write_sums(proof, m);
}

int weir_proof_make(struct weir_proof *out, weir_store *store, uint32_t block_bytes,
                    const struct weir_hashing *how)
{
    struct making m = {.store = store, .how = how, .block_bytes = block_bytes};
    struct weir_proof proof = {0};
    int code = weir_roll_call(&m.roll, store, how->prefix);
    if (!code)
        code = make(&proof, &m);
    if (code)
        weir_proof_free(&proof);
    else
        *out = proof;
    free(m.files);
    weir_roll_free(&m.roll);
    return code;
}

/* ---- keeping ---- */

/* The whole of a small object; the caller frees it. */
static int load(weir_store *store, const char *prefix, const char *name, void **out, size_t *size)
{
    char key[WEIR_NAME_BYTES_MAX];
    weir_object *obj;
    key_of(key, prefix, name);
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    uint64_t bytes = weir_object_info(obj)->size_bytes;
    void *data = NULL;
    if (bytes > FILE_BYTES_MAX)
        code = weir_fail(EFBIG, "'%s' has %llu bytes", key, (unsigned long long)bytes);
    else if (!(data = weir_alloc(bytes)))
        code = weir_fail_memory();
    if (!code)
        code = weir_object_read(obj, data, bytes, 0, size);
    weir_object_close(obj);
    if (code)
        free(data);
    else
        *out = data;
    return code;
}

/* SHA256BLOCKS is what the line says, or not there although there is none. */
static int load_blocks(struct weir_proof *proof, weir_store *store, const char *prefix)
{
    const char *at = proof->sums, *end = proof->sums + proof->sums_size;
    struct weir_sums_line line;
    uint8_t sha256[WEIR_SHA256_BYTES];
    void *data;
    int code;
    while ((code = weir_sums_next(proof->sums, &at, end, &line)) == 1)
        if (!strcmp(line.name, WEIR_PROOF_BLOCKS))
            break;
    if (code != 1)
        return code ? weir_fail_in(code, "%s%s", prefix, WEIR_PROOF_SUMS) : 0;
    code = load(store, prefix, WEIR_PROOF_BLOCKS, &data, &proof->blocks_size);
    if (code)
        return code;
    proof->blocks = data;
    weir_sha256(sha256, data, proof->blocks_size);
    if (memcmp(sha256, line.sha256, sizeof sha256))
        return weir_fail(EBADMSG, "%s%s is not what %s says: it was changed, or belongs to another",
                         prefix, WEIR_PROOF_BLOCKS, WEIR_PROOF_SUMS);
    return 0;
}

static int load_signature(struct weir_proof *proof, weir_store *store, const char *prefix)
{
    void *data;
    size_t size;
    int code = load(store, prefix, WEIR_PROOF_SIGNATURE, &data, &size);
    if (code)
        return code == -ENOENT ? 0 : code;
    proof->is_signed = size == WEIR_SIGNATURE_BYTES;
    if (proof->is_signed)
        memcpy(proof->signature, data, size);
    else
        code = weir_fail(EBADMSG, "%s%s has %zu bytes: an Ed25519 signature has %d", prefix,
                         WEIR_PROOF_SIGNATURE, size, WEIR_SIGNATURE_BYTES);
    free(data);
    return code;
}

static int check_signature(struct weir_proof *proof, const char *prefix, const char *pem,
                           size_t pem_size)
{
    if (!proof->is_signed)
        return weir_fail(EKEYREJECTED,
                         "%s" WEIR_PROOF_SUMS " is not signed: there is no " WEIR_PROOF_SIGNATURE
                         " (weir data sign makes one)",
                         prefix);
    int code = weir_sign_check(proof->signature, proof->key_id, pem, pem_size, proof->sums,
                               proof->sums_size);
    return code == -EKEYREJECTED ? weir_fail_in(code, "%s" WEIR_PROOF_SUMS, prefix) : code;
}

int weir_proof_load(struct weir_proof *out, weir_store *store, const char *prefix, const char *pem,
                    size_t pem_size)
{
    struct weir_proof proof = {0};
    void *data;
    int code = load(store, prefix, WEIR_PROOF_SUMS, &data, &proof.sums_size);
    if (code == -ENOENT)
        return weir_fail_in(code, "there is no manifest (weir data manifest makes one)");
    if (code)
        return code;
    proof.sums = data;
    code = load_signature(&proof, store, prefix);
    if (!code && pem)
        code = check_signature(&proof, prefix, pem, pem_size);
    if (!code)
        code = load_blocks(&proof, store, prefix);
    if (code)
        weir_proof_free(&proof);
    else
        *out = proof;
    return code;
}

/* Just these bytes under that name, whatever was there. */
static int keep(weir_store *store, const char *prefix, const char *name, const void *data,
                size_t size)
{
    char key[WEIR_NAME_BYTES_MAX];
    weir_put *put;
    void *old;
    size_t old_size;
    weir_put_options opts;
    int code = load(store, prefix, name, &old, &old_size);
    if (!code) {
        bool same = old_size == size && !memcmp(old, data, size);
        free(old);
        if (same)
            return 0;
    }
    key_of(key, prefix, name);
    if (code != -ENOENT) /* also what is damaged goes */
        code = weir_remove(store, key);
    if (code && code != -ENOENT)
        return code;
    weir_put_options_init(&opts);
    opts.size_bytes = size;
    code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = weir_put_write(put, data, size);
    if (!code)
        code = weir_put_commit(put, NULL);
    weir_put_close(put);
    return code;
}

/* Takes away a signature that does not fit what is to come; what nobody has signed can stay. */
static int drop_signature(const struct weir_proof *proof, weir_store *store, const char *prefix)
{
    char key[WEIR_NAME_BYTES_MAX];
    void *old;
    size_t size;
    bool fits = false;
    int code = load(store, prefix, WEIR_PROOF_SUMS, &old, &size);
    if (!code) {
        fits = size == proof->sums_size && !memcmp(old, proof->sums, size);
        free(old);
    }
    if (fits)
        return 0;
    key_of(key, prefix, WEIR_PROOF_SIGNATURE);
    code = weir_remove(store, key);
    return code == -ENOENT ? 0 : code;
}

/* The list comes last: what it names is there. */
int weir_proof_keep(const struct weir_proof *proof, weir_store *store, const char *prefix)
{
    int code = drop_signature(proof, store, prefix);
    if (!code && proof->blocks)
        code = keep(store, prefix, WEIR_PROOF_BLOCKS, proof->blocks, proof->blocks_size);
    if (!code)
        code = keep(store, prefix, WEIR_PROOF_SUMS, proof->sums, proof->sums_size);
    if (!code && proof->is_signed)
        code = keep(store, prefix, WEIR_PROOF_SIGNATURE, proof->signature, WEIR_SIGNATURE_BYTES);
    return code;
}

/* ---- looking into it ---- */

static int by_name(const void *a, const void *b)
{
    const struct weir_proof_line *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int read_lines(struct weir_proof_line *lines, char *names, uint64_t *count,
                      const struct weir_proof *proof)
{
    const char *at = proof->sums, *end = proof->sums + proof->sums_size;
    struct weir_sums_line line;
    int code;
    while ((code = weir_sums_next(proof->sums, &at, end, &line)) == 1) {
        struct weir_proof_line *to = &lines[(*count)++];
        memcpy(to->sha256, line.sha256, sizeof to->sha256);
        to->name = strcpy(names, line.name);
        names += strlen(names) + 1;
    }
    if (code)
        return weir_fail_in(code, WEIR_PROOF_SUMS);
    if (*count)
        qsort(lines, *count, sizeof *lines, by_name);
    for (uint64_t i = 1; i < *count; i++)
        if (!strcmp(lines[i - 1].name, lines[i].name))
            return weir_fail(EBADMSG, WEIR_PROOF_SUMS " has '%s' twice", lines[i].name);
    return 0;
}

/* A line is longer than its name, with or without escapes: so the names find room in as many bytes
 * as the text has. */
int weir_proof_lines(struct weir_proof_line **out, uint64_t *count, const struct weir_proof *proof)
{
    uint64_t rows = 1, found = 0;
    for (size_t i = 0; i < proof->sums_size; i++)
        rows += proof->sums[i] == '\n';
    struct weir_proof_line *lines = weir_alloc(rows * sizeof *lines + proof->sums_size);
    if (!lines)
        return weir_fail_memory();
    int code = read_lines(lines, (char *)(lines + rows), &found, proof);
    if (code) {
        free(lines);
        return code;
    }
    *out = lines;
    *count = found;
    return 0;
}
