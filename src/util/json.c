/* json.c - see json.h. */
#include "util/json.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"
#include "util/utf8.h"

_Static_assert(WEIR_JSON_DEPTH_MAX <= 64, "a level is a bit");

/* What may come next. */
enum want {
    VALUE,        /* a value */
    VALUE_OR_END, /* of an array that has just begun */
    KEY,          /* of an object, after a comma */
    KEY_OR_END,   /* of an object that has just begun */
    COMMA_OR_END, /* after a value */
    NOTHING,      /* after the outermost value */
};

void weir_json_begin(struct weir_json *json, const char *text, size_t size)
{
    *json = (struct weir_json){.begin = text, .at = text, .end = text + size, .want = VALUE};
}

static int bad(struct weir_json *json, const char *why)
{
    json->code =
        weir_fail(EINVAL, "it is not JSON: %s at byte %zu", why, (size_t)(json->at - json->begin));
    return json->code;
}

static bool in_object(const struct weir_json *json)
{
    return json->depth && json->objects >> (json->depth - 1) & 1;
}

static void skip_space(struct weir_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

static int after_value(struct weir_json *json, enum weir_json_token token)
{
    json->token = token;
    json->want = json->depth ? COMMA_OR_END : NOTHING;
    return 1;
}

/* ---- tokens ---- */

static bool is_hex4(const char *at, const char *end)
{
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (!memchr("0123456789abcdefABCDEF", at[i], 22))
            return false;
    return true;
}

/* Over characters that mean themselves, eight at a time: most of a text is ASCII without quotes,
 * backslashes and controls. It may stop earlier than it must. */
static const char *skip_plain(const char *at, const char *end)
{
    static const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';
        if (((word - ones * 0x20) | (quotes - ones) | (slashes - ones) | word) & tops)
            break;
    }
    return at;
}

/* The characters of a string, up to its closing quote, which is stepped over. */
static int read_string(struct weir_json *json)
{
    const char *text = ++json->at;
    json->escaped = false;
    while ((json->at = skip_plain(json->at, json->end)) < json->end && *json->at != '"') {
        unsigned char c = (unsigned char)*json->at;
        if (c < 0x20)
            return bad(json, "a control character in a string");
        if (c == '\\') {
            json->escaped = true;
            const char *escape = json->at + 1;
            if (escape < json->end && *escape == 'u' && is_hex4(escape + 1, json->end))
                json->at += 6;
            else if (escape < json->end && memchr("\"\\/bfnrt", *escape, 8))
                json->at += 2;
            else
                return bad(json, "a wrong escape");
            continue;
        }
        size_t length =
            weir_utf8_length((const unsigned char *)json->at, (size_t)(json->end - json->at));
        if (!length)
            return bad(json, "a string that is not UTF-8");
        json->at += length;
    }
    if (json->at == json->end)
        return bad(json, "a string without an end");
    json->text = text;
    json->size = (size_t)(json->at++ - text);
    return 0;
}

static size_t digits(const char *at, const char *end)
{
    const char *begin = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return (size_t)(at - begin);
}

static int read_number(struct weir_json *json)
{
    const char *at = json->at, *end = json->end;
    at += *at == '-';
    size_t whole = digits(at, end);
    if (!whole || (whole > 1 && *at == '0'))
        return bad(json, "a wrong number");
    at += whole;
    if (at < end && *at == '.') {
        size_t n = digits(at + 1, end);
        if (!n)
            return bad(json, "a wrong number");
        at += 1 + n;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        size_t n = digits(at, end);
        if (!n)
            return bad(json, "a wrong number");
        at += n;
    }
    json->text = json->at;
    json->size = (size_t)(at - json->at);
    json->at = at;
    return after_value(json, WEIR_JSON_NUMBER);
}

static int read_word(struct weir_json *json, const char *word, enum weir_json_token token)
{
    size_t size = strlen(word);
    if ((size_t)(json->end - json->at) < size || memcmp(json->at, word, size))
        return bad(json, "an unknown word");
    json->at += size;
    return after_value(json, token);
}

static int enter(struct weir_json *json, bool object)
{
    if (json->depth == WEIR_JSON_DEPTH_MAX)
        return bad(json, "too many levels");
    uint64_t bit = (uint64_t)1 << json->depth++;
    json->objects = object ? json->objects | bit : json->objects & ~bit;
    json->at++;
    json->token = object ? WEIR_JSON_OBJECT : WEIR_JSON_ARRAY;
    json->want = object ? KEY_OR_END : VALUE_OR_END;
    return 1;
}

static int leave(struct weir_json *json)
{
    json->at++;
    json->depth--;
    return after_value(json, WEIR_JSON_END);
}

static int read_key(struct weir_json *json)
{
    if (json->at == json->end || *json->at != '"')
        return bad(json, "a name is missing");
    int code = read_string(json);
    if (code)
        return code;
    skip_space(json);
    if (json->at == json->end || *json->at != ':')
        return bad(json, "a colon is missing");
    json->at++;
    json->token = WEIR_JSON_KEY;
    json->want = VALUE;
    return 1;
}

static int read_value(struct weir_json *json)
{
    if (json->at == json->end)
        return bad(json, "it ends too early");
    int code;
    switch (*json->at) {
    case '{':
        return enter(json, true);
    case '[':
        return enter(json, false);
    case '"':
        code = read_string(json);
        return code ? code : after_value(json, WEIR_JSON_STRING);
    case 't':
        return read_word(json, "true", WEIR_JSON_TRUE);
    case 'f':
        return read_word(json, "false", WEIR_JSON_FALSE);
    case 'n':
        return read_word(json, "null", WEIR_JSON_NULL);
    default:
        return read_number(json);
    }
}

/* After a value within something: a comma and what follows it, or the end. */
static int read_more(struct weir_json *json)
{
    bool object = in_object(json);
    if (json->at == json->end)
        return bad(json, "it ends too early");
    if (*json->at == (object ? '}' : ']'))
        return leave(json);
    if (*json->at != ',')
        return bad(json, "a comma is missing");
    json->at++;
    skip_space(json);
    return object ? read_key(json) : read_value(json);
}

int weir_json_next(struct weir_json *json)
{
    if (json->code)
        return json->code;
    skip_space(json);
    char c = json->at < json->end ? *json->at : 0;
    switch ((enum want)json->want) {
    case VALUE:
        return read_value(json);
    case VALUE_OR_END:
        return c == ']' ? leave(json) : read_value(json);
    case KEY:
        return read_key(json);
    case KEY_OR_END:
        return c == '}' ? leave(json) : read_key(json);
    case COMMA_OR_END:
        return read_more(json);
    case NOTHING:
        break;
    }
    return json->at == json->end ? 0 : bad(json, "there is more after it");
}

int weir_json_skip(struct weir_json *json)
{
    int code = 1;
    if (json->token == WEIR_JSON_KEY)
        code = weir_json_next(json);
    if (code < 0 || (json->token != WEIR_JSON_OBJECT && json->token != WEIR_JSON_ARRAY))
        return code;
    unsigned depth = json->depth - 1;
    while (code == 1 && json->depth > depth)
        code = weir_json_next(json);
    return code;
}

int weir_json_check(const char *text, size_t size)
{
    struct weir_json json;
    int code;
    weir_json_begin(&json, text, size);
    while ((code = weir_json_next(&json)) == 1)
        ;
    return code;
}

/* ---- values ---- */

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)at[i];
        value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static size_t put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* The character that \uXXXX at `at`, and perhaps a second half behind it, stands for; half of a
 * pair alone becomes U+FFFD. */
static unsigned unescape(const char **at, const char *end)
{
    unsigned c = hex4(*at + 2);
    *at += 6;
    if (c >= 0xdc00 && c < 0xe000)
        return 0xfffd;
    if (c < 0xd800 || c >= 0xdc00)
        return c;
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return 0xfffd;
    unsigned low = hex4(*at + 2);
    if (low < 0xdc00 || low >= 0xe000)
        return 0xfffd;
    *at += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

size_t weir_json_text(const struct weir_json *json, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    assert(json->token == WEIR_JSON_KEY || json->token == WEIR_JSON_STRING);
    const char *at = json->text, *end = at + json->size;
    size_t size = 0;
    while (at < end) {
        if (*at != '\\') {
            out[size++] = *at++;
        } else if (at[1] == 'u') {
            size += put_utf8(out + size, unescape(&at, end));
        } else {
            out[size++] = to[strchr(from, at[1]) - from];
            at += 2;
        }
    }
    out[size] = 0;
    return size;
}

bool weir_json_uint(const struct weir_json *json, uint64_t *out)
{
    uint64_t value = 0;
    if (json->token != WEIR_JSON_NUMBER ||
        digits(json->text, json->text + json->size) != json->size)
        return false;
    for (size_t i = 0; i < json->size; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(json->text[i] - '0'), &value))
            return false;
    *out = value;
    return true;
}

/* ---- writing ---- */

void weir_json_put(struct weir_json_out *out, const char *text, size_t size)
{
    if (out->failed || !size)
        return;
    if (size > out->room - out->size) {
        size_t room = out->room ? out->room : 256;
        while (room - out->size < size)
            room *= 2;
        char *more = weir_realloc(out->text, room);
        if (!more) {
            out->failed = true;
            return;
        }
        out->text = more;
        out->room = room;
    }
    memcpy(out->text + out->size, text, size);
    out->size += size;
}

void weir_json_puts(struct weir_json_out *out, const char *text)
{
    weir_json_put(out, text, strlen(text));
}

void weir_json_put_string(struct weir_json_out *out, const char *text, size_t size)
{
    weir_json_put(out, "\"", 1);
    for (size_t i = 0, plain = 0; i <= size; i++) {
        unsigned char c = i < size ? (unsigned char)text[i] : 0;
        if (i < size && c >= 0x20 && c != '"' && c != '\\')
            continue;
        weir_json_put(out, text + plain, i - plain);
        plain = i + 1;
        if (i == size)
            break;
        char escape[8];
        int n = c < 0x20 ? snprintf(escape, sizeof escape, "\\u%04x", c)
                         : snprintf(escape, sizeof escape, "\\%c", c);
        weir_json_put(out, escape, (size_t)n);
    }
    weir_json_put(out, "\"", 1);
}

void weir_json_put_uint(struct weir_json_out *out, uint64_t value)
{
    char text[24], *end = text + sizeof text, *at = end; /* documents have millions of them */
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    weir_json_put(out, at, (size_t)(end - at));
}

void weir_json_put_double(struct weir_json_out *out, double value)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    weir_json_puts(out, text);
    if (!strpbrk(text, ".e"))
        weir_json_puts(out, ".0");
}
