/* s3_xml.c - see s3_xml.h. One pass over the bytes; nothing is allocated and nothing recurses. */
#include "tier/s3_xml.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/err.h"
#include "util/utf8.h"

void weir_s3_xml_begin(struct weir_s3_xml *xml, const char *text, size_t size)
{
    memset(xml, 0, sizeof *xml);
    xml->begin = xml->at = text;
    xml->end = text + size;
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        xml->at += 3;
    if (!weir_utf8_valid(text, size) || (size && memchr(text, 0, size)))
        xml->code = weir_fail(EBADMSG, "the XML is not UTF-8");
}

static int wrong(struct weir_s3_xml *xml, const char *what)
{
    return xml->code = weir_fail(EBADMSG, "the XML is wrong at byte %zu: %s",
                                 (size_t)(xml->at - xml->begin), what);
}

static bool looking_at(const char *at, const char *end, const char *what)
{
    size_t size = strlen(what);
    return (size_t)(end - at) >= size && !memcmp(at, what, size);
}

/* Behind the next `what`, or NULL. */
static const char *behind(const char *at, const char *end, const char *what)
{
    size_t size = strlen(what);
    const char *found = at < end ? memmem(at, (size_t)(end - at), what, size) : NULL;
    return found ? found + size : NULL;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* ---- entities ---- */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(c | (size == 2 ? 0xc0u : size == 3 ? 0xe0u : 0xf0u));
    return size;
}

/* The character of "#65" or "#x41"; 0 if it is none. */
static uint32_t numbered(const char *at, const char *end)
{
    unsigned base = 10;
    uint32_t value = 0;
    if (++at < end && *at == 'x')
        base = 16, at++;
    if (at == end)
        return 0;
    for (; at < end; at++) {
        int c = tolower((unsigned char)*at), digit = isdigit(c) ? c - '0' : c - 'a' + 10;
        if (!isxdigit(c) || (unsigned)digit >= base || value > 0x10ffff)
            return 0;
        value = value * base + (unsigned)digit;
    }
    return value > 0x10ffff || (value >= 0xd800 && value < 0xe000) ? 0 : value;
}

/* Reads the entity at `at`, which is an '&': where it ends, or NULL; *out is its character. */
static const char *entity(const char *at, const char *end, uint32_t *out)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    size_t room = (size_t)(end - ++at);
    const char *stop = memchr(at, ';', room < 16 ? room : 16);
    if (!stop || stop == at)
        return NULL;
    *out = *at == '#' ? numbered(at, stop) : 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == (size_t)(stop - at) &&
            !memcmp(names[i].name, at, (size_t)(stop - at)))
            *out = (uint32_t)names[i].c;
    return *out ? stop + 1 : NULL;
}

/* ---- tags ---- */

/* Reads a name, of which the part behind the last ':' counts; false with a text. */
static bool read_name(struct weir_s3_xml *xml, char out[WEIR_S3_XML_NAME_MAX])
{
    const char *begin = xml->at;
    for (; xml->at < xml->end; xml->at++) {
        unsigned char c = (unsigned char)*xml->at;
        if (c == ':')
            begin = xml->at + 1;
        else if (!isalnum(c) && !strchr("_-.", c) && c < 0x80)
            break;
    }
    size_t size = (size_t)(xml->at - begin);
    if (!size || size >= WEIR_S3_XML_NAME_MAX) {
        wrong(xml, "a name is missing or too long");
        return false;
    }
    memcpy(out, begin, size);
    out[size] = 0;
    return true;
}

/* Steps over attributes to the '>': quoted values may hold one. */
static bool skip_attributes(struct weir_s3_xml *xml)
{
    for (; xml->at < xml->end && *xml->at != '>' && *xml->at != '/'; xml->at++) {
        if (*xml->at == '<')
            break;
        if (*xml->at != '"' && *xml->at != '\'')
            continue;
        const char *stop = memchr(xml->at + 1, *xml->at, (size_t)(xml->end - xml->at - 1));
        if (!stop)
            break;
        xml->at = stop;
    }
    if (xml->at < xml->end && (*xml->at == '>' || *xml->at == '/'))
        return true;
    wrong(xml, "a tag does not end");
    return false;
}

static int open_tag(struct weir_s3_xml *xml)
{
    unsigned depth = xml->depth + (xml->inside != NULL);
    if (!xml->inside && xml->ended)
        return wrong(xml, "a second root");
    if (depth == WEIR_S3_XML_DEPTH_MAX)
        return wrong(xml, "it is nested too deeply");
    xml->at++;
    if (!read_name(xml, xml->names[depth]) || !skip_attributes(xml))
        return xml->code;
    if (*xml->at == '/') {
        if (++xml->at == xml->end || *xml->at != '>')
            return wrong(xml, "a '/' in a tag");
        xml->closing = true;
    }
    xml->at++;
    xml->depth = depth;
    xml->inside = xml->at;
    xml->leaf = xml->ended = true;
    xml->token = WEIR_S3_XML_OPEN;
    memcpy(xml->name, xml->names[depth], sizeof xml->name);
    return 1;
}

/* Leaves the innermost element, whose text ended at `stop`. */
static int leave(struct weir_s3_xml *xml, const char *stop)
{
    xml->token = WEIR_S3_XML_CLOSE;
    memcpy(xml->name, xml->names[xml->depth], sizeof xml->name);
    xml->text = xml->leaf ? xml->inside : NULL;
    xml->size = xml->leaf ? (size_t)(stop - xml->inside) : 0;
    xml->leaf = xml->closing = false;
    return 1;
}

static int close_tag(struct weir_s3_xml *xml)
{
    char name[WEIR_S3_XML_NAME_MAX];
    const char *stop = xml->at;
    xml->at += 2;
    if (!read_name(xml, name))
        return xml->code;
    while (xml->at < xml->end && blank(*xml->at))
        xml->at++;
    if (!xml->inside || strcmp(name, xml->names[xml->depth]))
        return wrong(xml, "an end without its beginning");
    if (xml->at == xml->end || *xml->at != '>')
        return wrong(xml, "a tag does not end");
    xml->at++;
    return leave(xml, stop);
}

/* Steps over what is no tag: text, comments, CDATA, processing instructions. True when a tag is
 * next; else it is the end, or wrong. */
static bool skip_to_tag(struct weir_s3_xml *xml)
{
    uint32_t c;
    while (xml->at < xml->end) {
        const char *next = xml->at + 1;
        if (looking_at(xml->at, xml->end, "<!--"))
            next = behind(xml->at + 4, xml->end, "-->");
        else if (looking_at(xml->at, xml->end, "<?"))
            next = behind(xml->at + 2, xml->end, "?>");
        else if (xml->inside && looking_at(xml->at, xml->end, "<![CDATA["))
            next = behind(xml->at + 9, xml->end, "]]>");
        else if (looking_at(xml->at, xml->end, "<!"))
            next = NULL; /* a DTD, or worse */
        else if (*xml->at == '<')
            return true;
        else if (!xml->inside && !blank(*xml->at))
            next = NULL;
        else if (*xml->at == '&')
            next = entity(xml->at, xml->end, &c);
        if (!next) {
            wrong(xml, "what is there does not belong there, or does not end");
            return false;
        }
        xml->at = next;
    }
    return false;
}

/* After a CLOSE the reader is in the parent; there `depth` still says where the element was. */
static void settle(struct weir_s3_xml *xml)
{
    if (xml->token != WEIR_S3_XML_CLOSE)
        return;
    if (xml->depth)
        xml->depth--;
    else
        xml->inside = NULL; /* that was the root */
    xml->token = WEIR_S3_XML_OPEN;
}

int weir_s3_xml_next(struct weir_s3_xml *xml)
{
    if (xml->code)
        return xml->code;
    if (xml->closing)
        return leave(xml, xml->at);
    settle(xml);
    if (skip_to_tag(xml))
        return looking_at(xml->at, xml->end, "</") ? close_tag(xml) : open_tag(xml);
    if (!xml->code && (xml->inside || !xml->ended))
        return wrong(xml, "it ends too early");
    return xml->code;
}

bool weir_s3_xml_in(const struct weir_s3_xml *xml, const char *name)
{
    if (!xml->depth)
        return !name;
    return name && !strcmp(xml->names[xml->depth - 1], name);
}

size_t weir_s3_xml_text(const struct weir_s3_xml *xml, char *out)
{
    const char *at = xml->text, *end = at ? at + xml->size : NULL;
    char *to = out;
    while (at < end) {
        uint32_t c = 0;
        if (*at == '&') {
            at = entity(at, end, &c); /* which was looked at before */
            to += put_utf8(to, c);
        } else if (looking_at(at, end, "<![CDATA[")) {
            const char *stop = behind(at + 9, end, "]]>");
            size_t size = (size_t)(stop - 3 - (at + 9));
            memcpy(to, at + 9, size);
            to += size;
            at = stop;
        } else if (*at == '<') {
            at = at[1] == '?' ? behind(at + 2, end, "?>") : behind(at + 4, end, "-->");
        } else {
            *to++ = *at++;
        }
    }
    *to = 0;
    return (size_t)(to - out);
}

/* ---- writing ---- */

static const char *entity_of(char c)
{
    return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : NULL;
}

size_t weir_s3_xml_escape(char *out, const char *text)
{
    size_t size = 0;
    if (!weir_utf8_valid(text, strlen(text)) || strstr(text, "\xef\xbf\xbe") ||
        strstr(text, "\xef\xbf\xbf"))
        return 0;
    for (const char *at = text; *at; at++) {
        const char *entity = entity_of(*at);
        size_t n = entity ? strlen(entity) : 1;
        if ((unsigned char)*at < 0x20)
            return 0;
        if (out)
            memcpy(out + size, entity ? entity : at, n);
        size += n;
    }
    if (out)
        out[size] = 0;
    return size;
}
