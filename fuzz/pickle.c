/* Pickles: whatever bytes they are, a value comes out or a reason why not. */
#include "ckpt/pickle.h"
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena *arena = NULL;
    struct weir_value *root;
    uint8_t *bytes = exact_copy(data, size);
    size_t used;
    if (weir_pickle_load(&root, &arena, bytes, size, NULL, &used) == 0) {
        PROMISE(used <= size);
        check_value(root, &arena);
    }
    weir_arena_free(arena);
    free(bytes);
    return 0;
}
