/* ~/.aws/credentials and config: an answer is a piece of the text, without blanks around it. */
#include "target.h"
#include "tier/s3_ini.h"

static void ask(const char *text, size_t size, bool is_config, const char *profile)
{
    static const char *const names[] = {"aws_access_key_id", "region", "role_arn", "a"};
    bool there = weir_s3_ini_has(text, size, is_config, profile);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int raw = 0; raw < 2; raw++) {
            struct weir_s3_span value =
                weir_s3_ini_get(text, size, is_config, profile, names[i], raw);
            if (!value.at)
                continue;
            PROMISE(there);
            PROMISE(value.at >= text && value.size <= size &&
                    (size_t)(value.at - text) <= size - value.size);
            PROMISE(!memchr(value.at, '\n', value.size));
            PROMISE(!value.size || (value.at[0] != ' ' && value.at[value.size - 1] != ' '));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)exact_copy(data, size);
    for (int is_config = 0; is_config < 2; is_config++) {
        ask(text, size, is_config, "default");
        ask(text, size, is_config, "other");
        ask(text, size, is_config, "a b");
    }
    free(text);
    return 0;
}
