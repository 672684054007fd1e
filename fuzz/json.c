/* JSON: whatever the reader takes has balanced levels, and texts that fit where they should. */
#include "target.h"
#include "util/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_json json;
    char *text = (char *)exact_copy(data, size), *out = malloc(size + 1);
    unsigned depth = 0;
    int code;
    weir_json_begin(&json, text, size);
    while ((code = weir_json_next(&json)) == 1) {
        uint64_t number;
        if (json.token == WEIR_JSON_OBJECT || json.token == WEIR_JSON_ARRAY)
            depth++;
        else if (json.token == WEIR_JSON_END)
            PROMISE(depth-- > 0);
        else if (json.token == WEIR_JSON_KEY || json.token == WEIR_JSON_STRING)
            PROMISE(weir_json_text(&json, out) <= json.size);
        else
            (void)weir_json_uint(&json, &number);
        PROMISE(json.depth == depth && depth <= WEIR_JSON_DEPTH_MAX);
    }
    PROMISE(code < 0 || depth == 0);
    PROMISE(weir_json_next(&json) == code);
    free(out);
    free(text);
    return 0;
}
