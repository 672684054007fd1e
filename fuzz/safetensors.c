/* Headers of safetensors files: what is taken lies within the file without holes, and written again
 * it says the same.
 */
#include "ckpt/safetensors.h"
#include "target.h"

static void write_again(struct weir_st *st)
{
    struct weir_st back;
    uint8_t *bytes;
    size_t size;
    uint64_t data = st->count ? st->tensors[st->count - 1].end : 0;
    for (size_t i = 0; i < st->count; i++) /* of no length: where it is, is free to choose */
        if (st->tensors[i].begin == st->tensors[i].end)
            return;
    if (weir_st_make(st->tensors, st->count, st->metadata, st->pairs, &bytes, &size))
        return; /* a name we do not write */
    PROMISE(size % WEIR_ST_ALIGN == 0);
    PROMISE(weir_st_parse(&back, (char *)bytes + 8, size - 8, size + data) == 0);
    PROMISE(back.count == st->count && back.pairs == st->pairs);
    for (size_t i = 0; i < st->count; i++)
        PROMISE(!strcmp(back.tensors[i].name, st->tensors[i].name) &&
                back.tensors[i].end == st->tensors[i].end);
    weir_st_free(&back);
    free(bytes);
}

/* The first 4 bytes say how long the data is, the rest is the header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_st st;
    if (size < 4)
        return 0;
    uint64_t data_bytes = data[0] | (uint64_t)data[1] << 8 | (uint64_t)data[2] << 16;
    char *text = (char *)exact_copy(data + 4, size - 4);
    if (weir_st_parse(&st, text, size - 4, size - 4 + 8 + data_bytes) == 0) {
        uint64_t at = 0;
        for (size_t i = 0; i < st.count; i++) {
            PROMISE(st.tensors[i].begin == at && st.tensors[i].end >= at);
            at = st.tensors[i].end;
        }
        PROMISE(at == data_bytes);
        write_again(&st);
        weir_st_free(&st);
    }
    free(text);
    return 0;
}
