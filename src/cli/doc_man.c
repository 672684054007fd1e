/* doc_man.c - the manual as a man page. */
#include <ctype.h>
#include <stdio.h>

#include "cli/doc.h"

/* Text that roff takes literally; a blank line becomes a new paragraph. */
static void put(const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (text[0] == '\n' && text[1] == '\n') {
            printf("\n.PP\n");
            line_start = true;
            text++;
            continue;
        }
        if (line_start && (*text == '.' || *text == '\''))
            printf("\\&");
        line_start = *text == '\n';
        if (*text == '-')
            printf("\\-");
        else if (*text == '\\')
            printf("\\e");
        else if (*text == '\'')
            printf("\\(aq");
        else
            putchar(*text);
    }
}

static void begin(void)
{
    printf(".\\\" Made by: weir help --man\n"
           ".TH WEIR 1 \"\" \"weir %s\" \"User Commands\"\n"
           ".SH NAME\nweir \\- store, verify and get back immutable objects\n",
           weir_version());
}

static void heading(enum doc_level level, const char *text)
{
    if (level == DOC_CHAPTER) {
        printf(".SH ");
        for (; *text; text++)
            putchar(toupper((unsigned char)*text));
        printf("\n");
        return;
    }
    printf(level == DOC_SECTION ? ".SS " : ".PP\n.B ");
    put(text);
    printf("\n");
}

static void paragraph(const char *text)
{
    printf(".PP\n");
    put(text);
    printf("\n");
}

static void terms(const struct doc_term *term, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n.B ");
        put(term[i].name);
        printf("\n");
        put(term[i].text);
        printf("\n");
    }
}

static void code(const char *lines)
{
    printf(".PP\n.RS\n.nf\n");
    put(lines);
    printf("\n.fi\n.RE\n");
}

const struct doc_format doc_man = {begin, heading, paragraph, terms, code};
