/* SHA256SUMS: the lines of one that is read, written again, are read as the same. */
#include "data/proof.h"
#include "target.h"

static void write_again(struct weir_json_out *text, const struct weir_proof_line *lines,
                        uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        weir_sums_add(text, lines[i].sha256, lines[i].name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_proof proof = {.sums = (char *)exact_copy(data, size), .sums_size = size}, again;
    struct weir_proof_line *lines, *lines_again;
    uint64_t count, count_again;
    if (!weir_proof_lines(&lines, &count, &proof)) {
        struct weir_json_out text = {0};
        write_again(&text, lines, count);
        again = (struct weir_proof){.sums = text.text, .sums_size = text.size};
        PROMISE(!text.failed && !weir_proof_lines(&lines_again, &count_again, &again));
        PROMISE(count == count_again);
        for (uint64_t i = 0; i < count; i++)
            PROMISE(!strcmp(lines[i].name, lines_again[i].name) &&
                    !memcmp(lines[i].sha256, lines_again[i].sha256, WEIR_SHA256_BYTES));
        free(lines_again);
        free(lines);
        weir_proof_free(&again);
    }
    weir_proof_free(&proof);
    return 0;
}
