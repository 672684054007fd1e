/* Sizes, durations and option values. The first byte chooses what the text is taken for. */
#include "target.h"
#include "util/opt.h"

struct fields {
    bool flag;
    uint64_t number, size, duration, count, rate;
    double ratio;
    const char *text;
};

#define AT(field) offsetof(struct fields, field)
static const struct weir_opt table[] = {
    {"flag", 0, WEIR_OPT_FLAG, AT(flag), "1", NULL, "", 0, 0},
    {"number", 0, WEIR_OPT_NUMBER, AT(number), "5", "N", "", 1, 1000},
    {"size", 0, WEIR_OPT_SIZE, AT(size), "64K", "SIZE", "", 4096, 0},
    {"duration", 0, WEIR_OPT_DURATION, AT(duration), "30s", "TIME", "", 0, 60},
    {"ratio", 0, WEIR_OPT_RATIO, AT(ratio), "0.5", "P", "", 0, 1},
    {"count", 0, WEIR_OPT_COUNT, AT(count), "70B", "N", "", 1, 1e12},
    {"rate", 0, WEIR_OPT_RATE, AT(rate), "15GB/s", "RATE", "", 1, 1e12},
    {"text", 0, WEIR_OPT_TEXT, AT(text), "some", "TEXT", "", 0, 0},
    {0},
};
enum { OPTIONS = sizeof table / sizeof table[0] - 1 };

static void parse(const char *text)
{
    char out[32];
    uint64_t value;
    if (weir_parse_size(&value, text) == 0) {
        PROMISE(value < (uint64_t)1 << 63);
        weir_format_size(out, sizeof out, value);
        PROMISE(strchr(out, ' ') && strlen(out) < 12);
    }
    if (weir_parse_duration(&value, text) == 0)
        PROMISE(value < (uint64_t)1 << 63);
}

static void set(const struct weir_opt *opt, const char *text)
{
    struct fields fields;
    memset(&fields, 0, sizeof fields);
    weir_opt_defaults(table, &fields);
    if (weir_opt_set(opt, &fields, text))
        return;
    PROMISE(fields.number >= 1 && fields.number <= 1000);
    PROMISE(fields.size >= 4096);
    PROMISE(fields.duration <= 60000000000);
    PROMISE(fields.count >= 1 && fields.count <= 1000000000000);
    PROMISE(fields.rate >= 1 && fields.rate <= 1000000000000);
    PROMISE(fields.ratio >= 0 && fields.ratio <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *text = text_copy(data + 1, size - 1);
    if (data[0] % (OPTIONS + 1) == OPTIONS)
        parse(text);
    else
        set(&table[data[0] % (OPTIONS + 1)], text);
    weir_opt_find(table, text);
    free(text);
    return 0;
}
