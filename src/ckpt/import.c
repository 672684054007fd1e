/* import.c - see import.h. */
#include "ckpt/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/dcp.h"
#include "ckpt/hfdir.h"
#include "ckpt/torchfile.h"
#include "store/ledger.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/utf8.h"

enum { STAGING_BYTES = 32 << 20, MAGIC_BYTES = 8, ASK_NS = 100000000 };

/* A view may be larger than what it looks at; a source of a few bytes that makes terabytes is no
 * checkpoint. */
enum { GROWTH_MAX = 64 };
#define GROWTH_FREE_BYTES ((uint64_t)1 << 30)

/* ---- opening ---- */

static char *base_of(const char *path)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin && path[begin - 1] != '/';)
        begin--;
    char *base = weir_alloc(end - begin + 1);
    if (base)
        memcpy(base, path + begin, end - begin);
    return base;
}

static int load_file(struct weir_import *m, const char *path, struct weir_value **root)
{
    struct weir_source_file *file;
    char magic[MAGIC_BYTES] = "";
    uint64_t header;
    int code = weir_source_add(&m->source, path, &file);
    if (!code && file->size >= sizeof magic)
        code = weir_source_read(file, 0, magic, sizeof magic);
    if (code)
        return code;
    if (!memcmp(magic, "PK\3\4", 4)) {
        struct weir_extent span = {file, 0, file->size};
        m->format = "torch";
        return weir_torchfile_load(root, &m->arena, &span);
    }
    bool is_other = weir_st_header_size((const uint8_t *)magic, file->size, &header) != 0;
    if (is_other && magic[0] == '\x80' && magic[1] >= 2 && magic[1] <= 5)
        return weir_fail(ENOTSUP,
                         "'%s' is a bare pickle, as torch.save() wrote before version 1.6: load it "
                         "in Python and save it again",
                         path);
    if (is_other)
        return weir_fail_in(-EBADMSG, "'%s' is neither an archive of torch.save() nor safetensors",
                            path);
    m->format = "safetensors";
    return weir_stfile_load(root, &m->arena, &m->source, path, &m->metadata);
}

static int load_dir(struct weir_import *m, const char *path, struct weir_value **root)
{
    m->format = "dcp";
    int code = weir_dcp_load(root, &m->arena, &m->source, path);
    if (code != -ENOENT || m->source.count)
        return code;
    m->format = "huggingface";
    code = weir_hfdir_load(root, &m->arena, &m->source, path);
    if (code == -ENOENT && !m->source.count)
        code = weir_fail(ENOENT,
                         "'%s' is no checkpoint: it has no .metadata (torch.distributed), no "
                         "model.safetensors.index.json and no *.safetensors",
                         path);
    return code;
}

static int load(struct weir_import *m, const char *path, struct weir_value **root)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    int code = fd < 0 ? fd : weir_sys->fstat(fd, &st);
    if (fd >= 0)
        weir_sys->close(fd);
    if (code)
        return weir_fail(-code, "cannot open '%s': %s", path, weir_errno_text(code));
    return st.is_dir ? load_dir(m, path, root) : load_file(m, path, root);
}

/* How large it all is; what cannot be true is refused before anything is written. */
static int add_up(struct weir_import *m)
{
    for (size_t i = 0; i < m->tagged.count; i++) {
        const struct weir_tagged_tensor *t = &m->tagged.tensors[i];
        if (strlen(t->name) > WEIR_TABLE_KEY_BYTES_MAX)
            return weir_fail(ENAMETOOLONG, "tensor '%.200s…': its name is longer than %d bytes",
                             t->name, WEIR_TABLE_KEY_BYTES_MAX);
        if (__builtin_add_overflow(m->bytes, t->from->bytes, &m->bytes))
            return weir_fail(EFBIG, "its tensors are too large together");
    }
    if (m->bytes > GROWTH_FREE_BYTES &&
        (m->bytes - GROWTH_FREE_BYTES) / GROWTH_MAX > m->source.bytes)
        return weir_fail(EFBIG,
                         "its tensors would take %" PRIu64 " bytes, and its files have %" PRIu64
                         ": views are stored whole, and this is beyond all measure",
                         m->bytes, m->source.bytes);
    return 0;
}

int weir_import_open(struct weir_import **out, const char *path, bool skip)
{
    struct weir_import *m = weir_alloc(sizeof *m);
    struct weir_value *root;
    if (!m)
        return weir_fail_memory();
    m->base = base_of(path);
    int code = m->base ? load(m, path, &root) : weir_fail_memory();
    if (!code)
        code = weir_tagged_make(&m->tagged, &m->arena, root, skip);
    if (!code)
        code = add_up(m);
    if (code)
        weir_import_close(m);
    else
        *out = m;
    return code;
}

void weir_import_close(struct weir_import *m)
{
    if (!m)
        return;
    weir_tagged_free(&m->tagged);
    weir_windows_free(&m->windows);
    weir_source_close(&m->source);
    weir_arena_free(m->arena);
    free(m->metadata.text);
    free(m->base);
    free(m);
}

/* ---- saving ---- */

struct job {
    struct weir_import *import;
    weir_progress_fn progress;
    void *arg;
    uint64_t done;
};

/* After the last byte the files must be what they were at first: else it is a mixture. */
static int read_tensor(void *arg, const weir_tensor *tensor, uint64_t begin, void *buf, size_t size)
{
    struct job *job = arg;
    struct weir_import *m = job->import;
    int code = weir_from_read(tensor->data, &m->windows, begin, buf, size);
    job->done += size;
    if (!code && job->done == m->bytes)
        code = weir_source_check(&m->source);
    if (code)
        return weir_fail_in(code, "tensor '%.200s'", tensor->name);
    if (job->progress && job->progress(job->arg, size))
        return weir_fail(ECANCELED, "the import of '%s' was stopped", m->base);
    return 0;
}

static int check_step(weir_store *store, const char *run, uint64_t step)
{
    char log[WEIR_KEY_BYTES_MAX + 1], name[24];
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    int code = weir_ckpt_log_name(log, run);
    if (!code)
        code = weir_ledger_open(&ledger, store, log);
    if (code)
        return code;
    code = weir_ledger_read(ledger, &state);
    weir_ledger_close(ledger);
    if (code)
        return code;
    snprintf(name, sizeof name, "%" PRIu64, step);
    bool taken = weir_ledger_find(&state, name) != NULL;
    weir_state_free(&state);
    return taken ? weir_fail(EEXIST,
                             "run '%s' has a checkpoint of step %s already: choose another run, or "
                             "another --step",
                             run, name)
                 : 0;
}

/* checkpoint.json; the caller frees it. NULL: no memory. */
static char *make_meta(const struct weir_import *m, uint64_t step)
{
    struct weir_json_out json = {0};
    size_t size = strlen(m->base);
    weir_json_puts(&json, "{\"weir\":\"checkpoint/1\",\"step\":");
    weir_json_put_uint(&json, step);
    weir_json_puts(&json, ",\"user\":{},\"lineage\":{\"imported_from\":");
    bool utf8 = true;
    for (size_t i = 0, n; utf8 && i < size; i += n)
        utf8 = (n = weir_utf8_length((const unsigned char *)m->base + i, size - i)) > 0;
    weir_json_put_string(&json, utf8 ? m->base : "?", utf8 ? size : 1);
    weir_json_puts(&json, ",\"format\":\"");
    weir_json_puts(&json, m->format);
    weir_json_puts(&json, "\"");
    if (m->metadata.size) {
        weir_json_puts(&json, ",\"metadata\":");
        weir_json_put(&json, m->metadata.text, m->metadata.size);
    }
    weir_json_put(&json, "}}", 3); /* with the zero */
    if (json.failed) {
        free(json.text);
        return NULL;
    }
    return json.text;
}

/* Until it is committed, or has failed; whether to go on is asked ten times a second. */
static int wait_for(struct job *job, weir_saving *saving)
{
    for (;;) {
        uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
        int code = weir_saving_wait(saving, WEIR_LEVEL_HOME, ASK_NS);
        /* A store may have failed with this code, too: that is answered at once. */
        if (code != -ETIMEDOUT || weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns < ASK_NS / 2)
            return code;
        if (job->progress && job->progress(job->arg, 0))
            weir_saving_cancel(saving);
    }
}

static int save(struct job *job, weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors,
                const char *meta)
{
    const struct weir_ckpt_reader reader = {read_tensor, job};
    struct weir_import *m = job->import;
    weir_saving *saving;
    weir_save_options opts;
    weir_save_options_init(&opts);
    opts.meta = meta;
    opts.state = m->tagged.text;
    opts.is_waited_for = 1;
    int code = weir_ckpt_save_read(ckpt, step, tensors, m->tagged.count, &opts, &reader, &saving);
    if (code)
        return code;
    code = wait_for(job, saving);
    weir_saving_close(saving);
    return code;
}

int weir_import_save(struct weir_import *m, weir_store *store, const char *run, uint64_t step,
                     weir_progress_fn progress, void *arg)
{
    struct job job = {.import = m, .progress = progress, .arg = arg};
    weir_ckpt_options opts;
    weir_ckpt *ckpt = NULL;
    int code = check_step(store, run, step);
    if (code)
        return code;
    weir_tensor *tensors = weir_alloc(m->tagged.count * sizeof *tensors + 1);
    char *meta = make_meta(m, step);
    for (size_t i = 0; tensors && i < m->tagged.count; i++) {
        const struct weir_from *from = m->tagged.tensors[i].from;
        tensors[i] = (weir_tensor){.name = m->tagged.tensors[i].name,
                                   .dtype = from->dtype,
                                   .ndim = from->ndim,
                                   .shape = from->shape,
                                   .data = from};
    }
    if (!tensors || !meta)
        code = weir_fail_memory();
    weir_ckpt_options_init(&opts);
    opts.staging_bytes_max = STAGING_BYTES;
    opts.keep_last = 0; /* an import retires nothing */
    if (!code)
        code = weir_ckpt_open(&ckpt, store, run, &opts);
    if (!code)
        code = save(&job, ckpt, step, tensors, meta);
    if (ckpt)
        weir_ckpt_close(ckpt);
    free(tensors);
    free(meta);
    return code;
}
