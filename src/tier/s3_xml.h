/* s3_xml.h - reads XML from memory, one token at a time, without building a tree. Pure functions;
 * the reader takes any bytes.
 *
 *     struct weir_s3_xml xml;
 *     weir_s3_xml_begin(&xml, text, size);
 *     while ((code = weir_s3_xml_next(&xml)) == 1)
 *         … xml.token, xml.name, xml.path …
 *
 * It knows what servers send: elements, attributes (stepped over), namespaces (the prefix is cut
 * off), the five entities and numbers, CDATA, comments, an XML declaration. A DTD is refused, and
 * so are other entities: nothing grows. Texts must be UTF-8. After the first failure it stays
 * failed.
 */
#ifndef WEIR_TIER_S3_XML_H
#define WEIR_TIER_S3_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_S3_XML_DEPTH_MAX = 16, /* S3's answers have five levels */
    WEIR_S3_XML_NAME_MAX = 64,
};

enum weir_s3_xml_token {
    WEIR_S3_XML_OPEN,  /* <name …> ; <name/> is this and CLOSE */
    WEIR_S3_XML_CLOSE, /* </name>, after it was left; text is all that stood directly in it */
};

struct weir_s3_xml {
    enum weir_s3_xml_token token;
    char name[WEIR_S3_XML_NAME_MAX]; /* of the element, without its namespace */
    unsigned depth;                  /* around the token: the root opens and closes at 0 */
    /* Of a CLOSE whose element holds no other element: its text as written. */
    const char *text;
    size_t size;

    const char *begin, *at, *end; /* the reader's */
    const char *inside;           /* where the text of the innermost element begins, or NULL */
    bool leaf, closing, ended;
    int code;
    char names[WEIR_S3_XML_DEPTH_MAX][WEIR_S3_XML_NAME_MAX];
};

void weir_s3_xml_begin(struct weir_s3_xml *xml, const char *text, size_t size);
/* 1: a token; 0: the end; -EBADMSG with a text that names the byte. */
int weir_s3_xml_next(struct weir_s3_xml *xml);
/* The element's parent is `name` (NULL: it is the root). */
bool weir_s3_xml_in(const struct weir_s3_xml *xml, const char *name);
/* Copies the text of a CLOSE with its entities and CDATA resolved, without comments: its length,
 * which is at most xml->size; out has room for that and a NUL. */
size_t weir_s3_xml_text(const struct weir_s3_xml *xml, char *out);

/* The other way: writes a text with entities for what XML reads as its own, and a NUL (out NULL:
 * nothing): its length, or 0 if it has characters that XML has no way to say. */
size_t weir_s3_xml_escape(char *out, const char *text);

#endif
