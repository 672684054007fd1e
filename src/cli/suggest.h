/* suggest.h - "did you mean …?" */
#ifndef WEIR_CLI_SUGGEST_H
#define WEIR_CLI_SUGGEST_H

/* The nearest of the names seen so far to what was typed. */
struct suggestion {
    const char *typed;
    const char *best; /* NULL: none is near */
    unsigned distance;
};

void suggest_add(struct suggestion *s, const char *name);

#endif
