/* Rows of a checkpoint's manifest: the pieces of one that decodes lie within their tensor, and
 * encoded again it is the same.
 */
#include "ckpt/manifest.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_manifest_tensor tensor;
    void *memory;
    uint8_t *bytes = exact_copy(data, size), *again;
    size_t again_size;
    if (weir_manifest_decode(&tensor, &memory, bytes, size) == 0) {
        for (size_t i = 0; i < tensor.count; i++)
            for (uint32_t d = 0; d < tensor.ndim; d++)
                PROMISE(tensor.pieces[i].offset[d] + tensor.pieces[i].shape[d] <= tensor.shape[d]);
        PROMISE(weir_manifest_encode(&tensor, &again, &again_size) == 0 && again_size == size);
        PROMISE(!memcmp(again, bytes, 8));
        free(again);
        free(memory);
    }
    free(bytes);
    return 0;
}
