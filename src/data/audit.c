/* audit.c - see audit.h.
 *
 * The names of the proof and those of the dataset are sorted: one walk over both says what is
 * missing and what was added; what both have is read, several files at once.
 */
#include "data/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/blocks.h"
#include "data/hashing.h"
#include "data/roll.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/team.h"

struct task {
    const char *name;
    const struct weir_proof_line *line;    /* NULL: it was added */
    const struct weir_blocks_entry *entry; /* NULL: it is missing */
    struct weir_flaw *flaw;                /* what was found; NULL: nothing */
};

struct auditing {
    weir_store *store;
    const struct weir_hashing *how;
    const struct weir_proof *proof;
    struct weir_blocks blocks;
    bool has_blocks;
    struct weir_roll roll;
    struct weir_proof_line *lines;
    uint64_t line_count;
    struct task *tasks;
    uint64_t count;
};

/* ---- one file ---- */

struct reading {
    struct auditing *a;
    struct task *task;
    struct weir_blocks_file known; /* count 0 without blocks */
    uint64_t size;
    uint32_t block_bytes;
};

static struct weir_flaw *flaw_of(struct task *task, enum weir_flaw_kind kind)
{
    if (!task->flaw && (task->flaw = weir_alloc(sizeof *task->flaw))) {
        task->flaw->kind = kind;
        task->flaw->name = task->name;
    }
    return task->flaw;
}

static void add_range(struct weir_flaw *flaw, uint64_t begin, uint64_t end)
{
    flaw->blocks++;
    if (flaw->count && flaw->ranges[flaw->count - 1].end == begin) {
        flaw->ranges[flaw->count - 1].end = end;
    } else if (flaw->count < WEIR_FLAW_RANGES_MAX) {
        flaw->ranges[flaw->count].begin = begin;
        flaw->ranges[flaw->count++].end = end;
    }
}

static int on_block(void *arg, uint64_t block, const uint8_t *sha256)
{
    struct reading *r = arg;
    bool has = block < r->known.count;
    const uint8_t *known = r->a->blocks.sums + (r->known.first + block) * WEIR_SHA256_BYTES;
    if (sha256 && (!has || !memcmp(sha256, known, WEIR_SHA256_BYTES)))
        return 0;
    struct weir_flaw *flaw = flaw_of(r->task, WEIR_FLAW_CHANGED);
    if (!flaw)
        return weir_fail_memory();
    uint64_t begin = block * r->block_bytes, end = begin + r->block_bytes;
    add_range(flaw, begin, end < r->size ? end : r->size);
    flaw->is_unreadable |= !sha256;
    return 0;
}

/* The file is open and can be read. */
static int check_object(struct reading *r, weir_object *obj)
{
    struct task *task = r->task;
    uint8_t whole[WEIR_SHA256_BYTES] = {0};
    r->size = weir_object_info(obj)->size_bytes;
    int code = weir_hash_object(obj, r->block_bytes, on_block, r, whole, r->a->how->progress,
                                r->a->how->arg);
    if (code)
        return code;
    bool other_size = r->a->has_blocks && r->size != r->known.size_bytes;
    if (!task->flaw && !other_size && !memcmp(whole, task->line->sha256, sizeof whole))
        return 0;
    struct weir_flaw *flaw = flaw_of(task, WEIR_FLAW_CHANGED);
    if (!flaw)
        return weir_fail_memory();
    flaw->size = r->size;
    flaw->size_known = r->a->has_blocks ? r->known.size_bytes : r->size;
    return 0;
}

/* What cannot be opened is as bad as one that was changed; what went away just now is missing. */
static int not_opened(struct task *task, int code)
{
    if (code != -ENOENT && code != -EBADMSG && code != -EIO && code != -EACCES && code != -EINVAL)
        return code;
    struct weir_flaw *flaw =
        flaw_of(task, code == -ENOENT || code == -EINVAL ? WEIR_FLAW_MISSING : WEIR_FLAW_CHANGED);
    if (!flaw)
        return weir_fail_memory();
    flaw->is_unreadable = true;
    return 0;
}

static int look_at(void *arg, uint64_t i)
{
    struct auditing *a = arg;
    struct task *task = &a->tasks[i];
    struct reading r = {.a = a, .task = task, .block_bytes = WEIR_BLOCKS_BYTES};
    char key[2 * WEIR_NAME_BYTES_MAX];
    weir_object *obj;
    if (!task->line || !task->entry)
        return flaw_of(task, task->line ? WEIR_FLAW_MISSING : WEIR_FLAW_ADDED) ? 0
                                                                               : weir_fail_memory();
    if (a->has_blocks) {
        r.block_bytes = a->blocks.block_bytes;
        weir_blocks_file(&a->blocks, (uint64_t)weir_blocks_find(&a->blocks, task->name), &r.known);
    }
    snprintf(key, sizeof key, "%s%s", a->how->prefix, task->name);
    int code = weir_object_open(&obj, a->store, key);
    if (code)
        return not_opened(task, code);
    code = check_object(&r, obj);
    weir_object_close(obj);
    return code;
}

/* ---- all of them ---- */

/* Both name the same files, or one of them is of no use. */
static int check_proof(struct auditing *a)
{
    if (!a->proof->blocks)
        return 0;
    int code = weir_blocks_open(&a->blocks, a->proof->blocks, a->proof->blocks_size);
    if (code)
        return weir_fail_in(code, WEIR_PROOF_BLOCKS);
    a->has_blocks = true;
    for (uint64_t i = 0; i < a->line_count; i++)
        if (strcmp(a->lines[i].name, WEIR_PROOF_BLOCKS) &&
            weir_blocks_find(&a->blocks, a->lines[i].name) < 0)
            return weir_fail(EBADMSG,
                             "'%s' is in " WEIR_PROOF_SUMS " but not in " WEIR_PROOF_BLOCKS
                             ": make both again",
                             a->lines[i].name);
    if (a->line_count != a->blocks.files + 1)
        return weir_fail(EBADMSG,
                         WEIR_PROOF_BLOCKS " names %" PRIu64 " files, " WEIR_PROOF_SUMS " %" PRIu64
                                           ": make both again",
                         a->blocks.files, a->line_count - 1);
    return 0;
}

static int plan(struct auditing *a)
{
    uint64_t i = 0, j = 0;
    a->tasks = weir_alloc((a->line_count + a->roll.count) * sizeof *a->tasks);
    if (!a->tasks)
        return weir_fail_memory();
    while (i < a->line_count || j < a->roll.count) {
        const struct weir_proof_line *line = i < a->line_count ? &a->lines[i] : NULL;
        const struct weir_blocks_entry *entry = j < a->roll.count ? &a->roll.entries[j] : NULL;
        if (line && !strcmp(line->name, WEIR_PROOF_BLOCKS)) { /* looked at when it was loaded */
            i++;
            continue;
        }
        int order = !line ? 1 : !entry ? -1 : strcmp(line->name, entry->name);
        a->tasks[a->count++] = (struct task){
            .name = order <= 0 ? line->name : entry->name,
            .line = order <= 0 ? line : NULL,
            .entry = order >= 0 ? entry : NULL,
        };
        i += order <= 0;
        j += order >= 0;
    }
    return 0;
}

static int audit(struct auditing *a)
{
    int code = weir_proof_lines(&a->lines, &a->line_count, a->proof);
    if (!code)
        code = check_proof(a);
    if (!code)
        code = weir_roll_call(&a->roll, a->store, a->how->prefix);
    if (!code)
        code = plan(a);
    if (!code && a->how->total)
        a->how->total(a->how->arg, a->count, a->roll.bytes);
    if (!code)
        code = weir_team_run(a->how->threads, a->count, look_at, a);
    return code;
}

int weir_audit_run(struct weir_audit *out, weir_store *store, const struct weir_proof *proof,
                   const struct weir_hashing *how, weir_flaw_fn fn, void *arg)
{
    struct auditing a = {.store = store, .how = how, .proof = proof};
    int code = audit(&a);
    if (!code)
        *out = (struct weir_audit){.files = a.count, .bytes = a.roll.bytes};
    for (uint64_t i = 0; i < a.count; i++) {
        if (!code && a.tasks[i].flaw) {
            out->flaws++;
            fn(arg, a.tasks[i].flaw);
        }
        free(a.tasks[i].flaw);
    }
    free(a.tasks);
    free(a.lines);
    weir_roll_free(&a.roll);
    return code;
}
