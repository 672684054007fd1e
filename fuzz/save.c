/* The names of saves: whatever passes for one is just what is made of it again, and no two texts
 * are the same save.
 */
#include "store/state.h"
#include "target.h"
#include "weir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_save save, back;
    char text[WEIR_SAVE_TEXT_BYTES];
    uint8_t *bytes = exact_copy(data, size); /* it has a length, not an end */
    if (weir_save_of_text(&save, (const char *)bytes, size) && !memchr(bytes, 0, size)) {
        PROMISE(save.attempt && save.number && save.name[0]);
        PROMISE(strlen(save.name) <= WEIR_SAVE_NAME_BYTES_MAX);
        weir_save_text(text, &save);
        PROMISE(strlen(text) == size && !memcmp(text, bytes, size));
        PROMISE(weir_save_of_text(&back, text, size) && weir_save_same(&save, &back));
    }
    char *name = text_copy(data, size);
    if (weir_save_name_check(name) == 0) { /* and every name makes one that leads back */
        struct weir_save made = {.attempt = size + 1, .number = UINT64_MAX - size};
        strcpy(made.name, name);
        weir_save_text(text, &made);
        PROMISE(strlen(text) <= WEIR_PART_BYTES_MAX);
        PROMISE(weir_save_of_text(&back, text, strlen(text)) && weir_save_same(&made, &back));
    }
    free(name);
    free(bytes);
    return 0;
}
