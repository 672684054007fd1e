/* Plan files. What is read has known keys, each once, and can be set. */
#include "plan/file.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_plan_file file;
    static struct weir_plan_in in;
    uint8_t *text = exact_copy(data, size);
    if (weir_plan_file_read(&file, (const char *)text, size) == 0) {
        PROMISE(file.count <= WEIR_PLAN_VALUES_MAX);
        for (unsigned i = 0; i < file.count; i++) {
            PROMISE(file.at[i].line >= 1);
            PROMISE(weir_opt_set(&file.at[i].key->opt, &in, file.at[i].text) == 0);
            for (unsigned j = 0; j < i; j++)
                PROMISE(file.at[i].key != file.at[j].key);
        }
    }
    free(text);
    return 0;
}
