/* URLs and their options, up to the tiers that need nothing else to open. */
#include "target.h"
#include "tier/tier.h"
#include "util/url.h"

static void check(const struct weir_url *url)
{
    size_t bytes = strlen(url->scheme) + strlen(url->path);
    PROMISE(url->options <= WEIR_URL_OPTIONS_MAX);
    for (size_t i = 0; i < url->options; i++) {
        PROMISE(!strchr(url->option[i].name, '=') && !strchr(url->option[i].name, '&'));
        bytes += strlen(url->option[i].name) + strlen(url->option[i].value);
    }
    PROMISE(bytes < (size_t)1 << 40);
}

/* No directory, no server. */
static bool needs_nothing(const struct weir_url *url)
{
    for (size_t i = 0; i < url->options; i++)
        if (!strcmp(url->option[i].name, "commit"))
            return false;
    return !strcmp(url->scheme, "mem") || !strcmp(url->scheme, "null");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_url url;
    char *text = text_copy(data, size);
    if (weir_url_parse(&url, text) == 0) {
        struct weir_tier *tier;
        check(&url);
        if (needs_nothing(&url) && weir_tier_open(&tier, &url, NULL, true) == 0)
            weir_tier_close(tier);
        weir_url_free(&url);
    }
    free(text);
    return 0;
}
