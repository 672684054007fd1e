/* scalar.c - see scalar.h. */
#include "ckpt/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/pickle.h"
#include "ckpt/torchfile.h"
#include "util/bytes.h"

static const char *special_name(double real)
{
    return isnan(real) ? "nan" : real < 0 ? "-inf" : "inf";
}

static void put_float(struct weir_json_out *out, double real)
{
    if (isfinite(real)) {
        weir_json_put_double(out, real);
        return;
    }
    weir_json_puts(out, "{\"$\":\"float\",\"value\":\"");
    weir_json_puts(out, special_name(real));
    weir_json_puts(out, "\"}");
}

static void put_int(struct weir_json_out *out, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    weir_json_puts(out, text);
}

enum { LIMBS_MAX = WEIR_PICKLE_INT_BYTES_MAX / 4 + 1, DIGITS = 9 };

/* Two's complement, little-endian, of any length: nine decimal digits at a time. */
static void put_long(struct weir_json_out *out, const struct weir_value *value)
{
    uint32_t limbs[LIMBS_MAX] = {0};
    char text[10 * LIMBS_MAX + 2 * DIGITS], *at = text + sizeof text;
    size_t size = value->text.size, count = (size + 3) / 4;
    const uint8_t *bytes = (const uint8_t *)value->text.at;
    bool negative = bytes[size - 1] & 0x80;
    uint64_t carry = 1;
    for (size_t i = 0; i < count; i++) {
        unsigned n = size - 4 * i < 4 ? (unsigned)(size - 4 * i) : 4;
        limbs[i] = (uint32_t)weir_load_le(bytes + 4 * i, n);
        if (!negative)
            continue;
        uint64_t flipped =
            (uint64_t)(uint32_t)(~limbs[i] & (n == 4 ? UINT32_MAX : (1u << (8 * n)) - 1));
        carry += flipped;
        limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    while (count) {
        uint64_t rest = 0;
        for (size_t i = count; i-- > 0;) {
            rest = rest << 32 | limbs[i];
            limbs[i] = (uint32_t)(rest / 1000000000);
            rest %= 1000000000;
        }
        while (count && !limbs[count - 1])
            count--;
        for (int i = 0; i < DIGITS; i++, rest /= 10)
            *--at = (char)('0' + rest % 10);
    }
    while (at < text + sizeof text - 1 && *at == '0')
        at++;
    weir_json_puts(out, negative ? "-" : "");
    weir_json_put(out, at, (size_t)(text + sizeof text - at));
}

static void put_base64(struct weir_json_out *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t word = (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (n > 2 ? bytes[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63],
                        n > 1 ? digits[word >> 6 & 63] : '=', n > 2 ? digits[word & 63] : '='};
        weir_json_put(out, four, 4);
    }
}

/* torch.device("cuda", 0) and torch.device("cpu"). */
static bool put_device(struct weir_json_out *out, const struct weir_value *value)
{
    const struct weir_value *args = value->object.args;
    if (!args->items.count || args->items.count > 2 || args->items.at[0]->kind != WEIR_VALUE_TEXT ||
        (args->items.count == 2 && args->items.at[1]->kind != WEIR_VALUE_INT))
        return false;
    weir_json_puts(out, "{\"$\":\"device\",\"name\":");
    weir_json_put_string(out, args->items.at[0]->text.at, args->items.at[0]->text.size);
    if (args->items.count == 2 && !out->failed) {
        out->size--; /* within the quotes */
        weir_json_puts(out, ":");
        put_int(out, args->items.at[1]->number);
        weir_json_puts(out, "\"");
    }
    weir_json_puts(out, "}");
    return true;
}

bool weir_scalar_put(struct weir_json_out *out, const struct weir_value *value)
{
    switch (value->kind) {
    case WEIR_VALUE_NONE:
        weir_json_puts(out, "null");
        return true;
    case WEIR_VALUE_BOOL:
        weir_json_puts(out, value->number ? "true" : "false");
        return true;
    case WEIR_VALUE_INT:
        put_int(out, value->number);
        return true;
    case WEIR_VALUE_LONG:
        put_long(out, value);
        return true;
    case WEIR_VALUE_FLOAT:
        put_float(out, value->real[0]);
        return true;
    case WEIR_VALUE_COMPLEX:
        weir_json_puts(out, "{\"$\":\"complex\",\"re\":");
        put_float(out, value->real[0]);
        weir_json_puts(out, ",\"im\":");
        put_float(out, value->real[1]);
        weir_json_puts(out, "}");
        return true;
    case WEIR_VALUE_TEXT:
        weir_json_put_string(out, value->text.at, value->text.size);
        return true;
    case WEIR_VALUE_BYTES:
        weir_json_puts(out, "{\"$\":\"bytes\",\"base64\":\"");
        put_base64(out, (const uint8_t *)value->text.at, value->text.size);
        weir_json_puts(out, "\"}");
        return true;
    case WEIR_VALUE_GLOBAL:
        if (!weir_torch_is_dtype(value))
            return false;
        weir_json_puts(out, "{\"$\":\"dtype\",\"name\":");
        weir_json_put_string(out, value->text.at, value->text.size);
        weir_json_puts(out, "}");
        return true;
    default:
        return weir_value_is_object(value, "torch.device") && put_device(out, value);
    }
}

bool weir_scalar_str(struct weir_json_out *out, const struct weir_value *value)
{
    switch (value->kind) {
    case WEIR_VALUE_NONE:
        weir_json_puts(out, "None");
        return true;
    case WEIR_VALUE_BOOL:
        weir_json_puts(out, value->number ? "True" : "False");
        return true;
    case WEIR_VALUE_INT:
    case WEIR_VALUE_LONG:
        return weir_scalar_put(out, value);
    case WEIR_VALUE_FLOAT:
        if (isfinite(value->real[0]))
            weir_json_put_double(out, value->real[0]);
        else
            weir_json_puts(out, special_name(value->real[0]));
        return true;
    case WEIR_VALUE_TEXT:
        weir_json_put(out, value->text.at, value->text.size);
        return true;
    default:
        return false;
    }
}
