/* markup.h - texts within SVG and HTML, whatever bytes they are of: what is drawn is well-formed
 * XML, too.
 */
#ifndef WEIR_CLI_MARKUP_H
#define WEIR_CLI_MARKUP_H

#include <stdio.h>

/* As the content of an element, or of an attribute in either kind of quotes. What is not UTF-8, and
 * control characters, which no document may contain, are shown as U+FFFD; blanks of all kinds are
 * one. */
void markup_text(FILE *out, const char *text);
/* The same, but not more than so many characters; the last one is then "…". */
void markup_text_cut(FILE *out, const char *text, int characters_max);

#endif
