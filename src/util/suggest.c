/* suggest.c - the number of letters to insert, drop, change or swap between two words. */
#include "util/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 32 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

static unsigned distance(const char *a, const char *b)
{
    unsigned rows[WORD_MAX + 1][WORD_MAX + 1];
    size_t m = strnlen(a, WORD_MAX), n = strnlen(b, WORD_MAX);
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            if (!i || !j) {
                rows[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned change = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && rows[i - 2][j - 2] + 1 < rows[i][j])
                rows[i][j] = rows[i - 2][j - 2] + 1;
        }
    return rows[m][n];
}

/* How long the words are that both begin with: of "ckpt foo" and "ckpt ls" only the last counts. */
static size_t same_words(const char *a, const char *b)
{
    size_t same = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == ' ')
            same = i + 1;
    return same;
}

void weir_suggest_add(struct weir_suggestion *s, const char *name)
{
    /* Something that shares less than half its letters is not what was meant; the beginning of
     * a longer name is. */
    size_t typed = strlen(s->typed);
    unsigned d = typed > 1 && !strncmp(s->typed, name, typed) ? 1 : distance(s->typed, name);
    if (2 * d <= strlen(name + same_words(s->typed, name)) && (!s->best || d < s->distance)) {
        s->best = name;
        s->distance = d;
    }
}
