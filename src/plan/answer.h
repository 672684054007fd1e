/* answer.h - an answer of the planner: figures with their units, what was assumed, what limits it,
 * what would change it, and what others have published. Pure: the commands show it.
 */
#ifndef WEIR_PLAN_ANSWER_H
#define WEIR_PLAN_ANSWER_H

#include <stddef.h>

enum weir_plan_unit {
    WEIR_PLAN_BYTES,
    WEIR_PLAN_BYTES_PER_S,
    WEIR_PLAN_S,
    WEIR_PLAN_USD,
    WEIR_PLAN_USD_PER_MONTH,
    WEIR_PLAN_PER_S, /* operations, samples, tokens */
    WEIR_PLAN_COUNT,
    WEIR_PLAN_MANY, /* a count in short: 70B */
    WEIR_PLAN_NUMBER,
    WEIR_PLAN_SHARE, /* shown in % */
    WEIR_PLAN_CHANCE,
};

enum {
    WEIR_PLAN_FIGURES_MAX = 48,
    WEIR_PLAN_LINES_MAX = 16,
    WEIR_PLAN_LINE_MAX = 320,
    WEIR_PLAN_TEXT_MAX = 48,
};

/* Infinity is "never", or "no limit". */
struct weir_plan_figure {
    const char *key; /* in JSON: ends with its unit */
    const char *name;
    enum weir_plan_unit unit;
    double value;
};

struct weir_plan_lines {
    unsigned count;
    char at[WEIR_PLAN_LINES_MAX][WEIR_PLAN_LINE_MAX];
};

/* A figure others have published, beside ours. */
struct weir_plan_published {
    const char *what;
    enum weir_plan_unit unit;
    double said, is;
    const char *why;
};

struct weir_plan_answer {
    char question[WEIR_PLAN_LINE_MAX];
    struct weir_plan_figure figures[WEIR_PLAN_FIGURES_MAX];
    unsigned figure_count;
    struct weir_plan_lines assumptions, changes;
    struct weir_plan_published published[WEIR_PLAN_LINES_MAX];
    unsigned published_count;
    char bottleneck[WEIR_PLAN_LINE_MAX];
    const char *choice; /* what is recommended, in a word; NULL: the question is no choice */
};

void weir_plan_figure(struct weir_plan_answer *a, const char *key, const char *name,
                      enum weir_plan_unit unit, double value);
void weir_plan_assume(struct weir_plan_answer *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void weir_plan_change(struct weir_plan_answer *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void weir_plan_bottleneck(struct weir_plan_answer *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void weir_plan_publish(struct weir_plan_answer *a, struct weir_plan_published one);

/* -EINVAL: something that is needed was not told. why: a few words, or NULL. */
int weir_plan_missing(const char *option, const char *why);

/* "102.4 MB/s", "31.6 min", "$230,000", "3.20 %": four digits, powers of 1,000. */
const char *weir_plan_text(char out[WEIR_PLAN_TEXT_MAX], enum weir_plan_unit unit, double value);

/* The same for the arguments of a printf: each use is another of a few buffers, of this thread. */
const char *weir_plan_say(enum weir_plan_unit unit, double value);

#endif
