/* suggest.h - "did you mean …?" */
#ifndef WEIR_UTIL_SUGGEST_H
#define WEIR_UTIL_SUGGEST_H

/* The nearest of the names seen so far to what was typed. */
struct weir_suggestion {
    const char *typed;
    const char *best; /* NULL: none is near */
    unsigned distance;
};

void weir_suggest_add(struct weir_suggestion *s, const char *name);

#endif
