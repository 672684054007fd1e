/* SHA256BLOCKS: every file of one that is opened is found by its name, and has its hashes within.
 */
#include "data/blocks.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_blocks blocks;
    uint8_t *bytes = exact_copy(data, size);
    if (!weir_blocks_open(&blocks, bytes, size)) {
        for (uint64_t i = 0; i < blocks.files; i++) {
            struct weir_blocks_file file;
            weir_blocks_file(&blocks, i, &file);
            char *name = strndup(file.name, file.name_size);
            PROMISE(name && weir_blocks_find(&blocks, name) == (int64_t)i);
            PROMISE(file.first + file.count <= blocks.blocks);
            if (file.count) {
                const uint8_t *last = blocks.sums + (file.first + file.count) * WEIR_SHA256_BYTES;
                PROMISE(last <= bytes + size && last[-1] <= UINT8_MAX);
            }
            free(name);
        }
        PROMISE(weir_blocks_find(&blocks, "") < 0);
    }
    free(bytes);
    return 0;
}
