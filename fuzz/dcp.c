/* Checkpoints of torch.distributed.checkpoint: two bytes say how long the metadata is, which
 * follows; the rest is a file in which all pieces are.
 */
#include "ckpt/dcp.h"
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_source source = {0};
    struct weir_source_file *file;
    struct weir_arena *arena = NULL;
    struct weir_value *root;
    if (size < 2)
        return 0;
    size_t length = data[0] | (size_t)data[1] << 8;
    length = length < size - 2 ? length : size - 2;
    uint8_t *metadata = exact_copy(data + 2, length);
    uint8_t *bytes = exact_copy(data + 2 + length, size - 2 - length);
    PROMISE(weir_source_add_bytes(&source, bytes, size - 2 - length, &file) == 0);
    if (weir_dcp_load_bytes(&root, &arena, &source, metadata, length) == 0)
        check_value(root, &arena);
    weir_source_close(&source);
    weir_arena_free(arena);
    free(metadata);
    free(bytes);
    return 0;
}
