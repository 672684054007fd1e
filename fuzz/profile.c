/* Profiles: what is read can be written, and then reads back as the same. */
#include <string.h>

#include "target.h"
#include "util/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_profile first, second;
    struct weir_json_out out = {0};
    char *text = (char *)exact_copy(data, size);
    if (weir_profile_parse(&first, text, size) == 0) {
        weir_profile_write(&out, &first);
        PROMISE(!out.failed);
        PROMISE(weir_profile_parse(&second, out.text, out.size) == 0);
        PROMISE(second.best_depth == first.best_depth &&
                second.read_bytes_per_s == first.read_bytes_per_s &&
                second.cliff_at_bytes == first.cliff_at_bytes && !strcmp(second.url, first.url));
    }
    free(out.text);
    free(text);
    return 0;
}
