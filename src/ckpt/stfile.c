/* stfile.c - see stfile.h. */
#include "ckpt/stfile.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

int weir_stfile_open(struct weir_stfile *out, const struct weir_extent *span)
{
    uint8_t first[8] = {0};
    uint64_t size = 0;
    char *json = NULL;
    int code = span->size >= 8 ? weir_extent_read(span, 0, first, 8) : 0;
    if (!code)
        code = weir_st_header_size(first, span->size, &size);
    if (!code && !(json = weir_alloc((size_t)size + 1)))
        code = weir_fail_memory();
    if (!code)
        code = weir_extent_read(span, 8, json, (size_t)size);
    if (!code)
        code = weir_st_parse(&out->st, json, (size_t)size, span->size);
    free(json);
    if (code)
        return weir_fail_in(code, "'%s'", span->file->path);
    out->span = *span;
    return 0;
}

void weir_stfile_close(struct weir_stfile *file)
{
    weir_st_free(&file->st);
}

int weir_stfile_tensor(const struct weir_stfile *file, size_t i, struct weir_arena **arena,
                       struct weir_from *out)
{
    const struct weir_st_tensor *t = &file->st.tensors[i];
    struct weir_extent data = {file->span.file, file->span.begin + file->st.data_at + t->begin,
                               t->end - t->begin};
    uint64_t *shape = weir_arena_take(arena, 8 * (size_t)t->ndim + 8);
    if (!shape)
        return weir_fail_memory();
    if (t->ndim)
        memcpy(shape, t->shape, 8 * (size_t)t->ndim);
    return weir_from_make(out, arena, t->dtype, shape, NULL, t->ndim, &data, 0);
}
