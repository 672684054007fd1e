/* Keys: whatever passes for one is safe as a path, and the names made from it lead back to it. */
#include "target.h"
#include "util/err.h"
#include "util/key.h"
#include "weir.h"

static void is_safe(const char *key)
{
    char padded[WEIR_KEY_BYTES_MAX + 3];
    size_t size = strlen(key);
    PROMISE(size > 0 && size <= WEIR_KEY_BYTES_MAX);
    for (const unsigned char *s = (const unsigned char *)key; *s; s++)
        PROMISE(*s >= 0x20 && *s != 0x7f);
    snprintf(padded, sizeof padded, "/%s/", key);
    PROMISE(!strstr(padded, "//") && !strstr(padded, "/./") && !strstr(padded, "/../"));
    PROMISE(!strstr(padded, "~/"));
    PROMISE(strncmp(padded, "/.weir/", 7));
    for (const char *part = padded + 1, *end; *part; part = end + 1) {
        end = strchr(part, '/');
        PROMISE(end - part <= WEIR_PART_BYTES_MAX);
    }
}

static void names_lead_back(const char *key)
{
    static const uint8_t nonce[WEIR_NONCE_BYTES] = {1, 2, 0xff};
    uint8_t found[WEIR_NONCE_BYTES];
    char name[WEIR_NAME_BYTES_MAX], back[WEIR_NAME_BYTES_MAX];
    weir_key_name(name, WEIR_DIR_SEAL, key);
    PROMISE(weir_key_of_name(back, name + strlen(WEIR_DIR_SEAL)) && !strcmp(back, key));
    weir_key_data_name(name, key, nonce);
    PROMISE(weir_key_of_data_name(back, found, name + strlen(WEIR_DIR_DATA)));
    PROMISE(!strcmp(back, key) && !memcmp(found, nonce, sizeof nonce));
    PROMISE(weir_key_check(name + strlen(WEIR_DIR_DATA)) < 0); /* no key looks like a data name */
    PROMISE(weir_name_is_own(name) && !weir_name_is_own(key));
}

/* And a name that leads to a key is the one made from it. */
static void names_lead_there(const char *name)
{
    char key[WEIR_NAME_BYTES_MAX], again[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    if (weir_key_of_name(key, name)) {
        is_safe(key);
        weir_key_name(again, "", key);
        PROMISE(!strcmp(again, name));
    }
    if (weir_key_of_data_name(key, nonce, name)) {
        is_safe(key);
        weir_key_data_name(again, key, nonce);
        PROMISE(!strcmp(again + strlen(WEIR_DIR_DATA), name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_copy(data, size);
    int code = weir_key_check(text);
    if (code == 0) {
        is_safe(text);
        names_lead_back(text);
        PROMISE(weir_prefix_check(text) == 0);
    } else {
        for (const char *s = weir_fail_last(); *s; s++)
            PROMISE(*s >= 0x20 && *s < 0x7f); /* fit for a terminal */
    }
    names_lead_there(text);
    size_t length = strlen(text);
    if (weir_prefix_check(text) == 0 && length && text[length - 1] == '/') {
        text[length - 1] = 0;
        is_safe(text);
    }
    free(text);
    return 0;
}
