/* Credentials in JSON: what is taken is whole, bounded, and one word each. */
#include "target.h"
#include "tier/s3_got.h"

static void is_word(const char *text, size_t room)
{
    PROMISE(strnlen(text, room) < room);
    for (; *text; text++)
        PROMISE((unsigned char)*text > 0x20 && (unsigned char)*text < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)exact_copy(data, size);
    for (int versioned = 0; versioned < 2; versioned++) {
        static struct weir_s3_got got;
        memset(&got, 'x', sizeof got);
        if (weir_s3_got_json(&got, text, size, versioned)) {
            PROMISE(got.id[0] == 'x' && got.token[WEIR_S3_TOKEN_MAX - 1] == 'x'); /* untouched */
            continue;
        }
        PROMISE(got.id[0] && got.secret[0]);
        is_word(got.id, sizeof got.id);
        is_word(got.secret, sizeof got.secret);
        is_word(got.token, sizeof got.token);
        PROMISE(got.until_ns >= 0);
    }
    free(text);
    return 0;
}
