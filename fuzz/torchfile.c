/* Archives of torch.save(): zip, the pickle in it, and the tensors that it describes. */
#include "ckpt/torchfile.h"
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_source source = {0};
    struct weir_source_file *file;
    struct weir_arena *arena = NULL;
    struct weir_value *root;
    uint8_t *bytes = exact_copy(data, size);
    PROMISE(weir_source_add_bytes(&source, bytes, size, &file) == 0);
    struct weir_extent span = {file, 0, size};
    if (weir_torchfile_load(&root, &arena, &span) == 0)
        check_value(root, &arena);
    weir_source_close(&source);
    weir_arena_free(arena);
    free(bytes);
    return 0;
}
