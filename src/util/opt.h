/* opt.h - options as data. An option is declared once, with its type, default, range and help;
 * command lines, URLs, --help, man pages and the reference are all made from that declaration.
 */
#ifndef WEIR_UTIL_OPT_H
#define WEIR_UTIL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_opt_type {
    WEIR_OPT_FLAG,     /* bool */
    WEIR_OPT_NUMBER,   /* uint64_t */
    WEIR_OPT_SIZE,     /* uint64_t bytes: 64K, 1.5G */
    WEIR_OPT_DURATION, /* uint64_t nanoseconds: 30s, 7d, 5ms */
    WEIR_OPT_COUNT,    /* uint64_t: 512, 100K, 70B (powers of 1,000) */
    WEIR_OPT_RATE,     /* uint64_t bytes a second: 15GB/s, 200M, 400Gbit/s */
    WEIR_OPT_RATIO,    /* double */
    WEIR_OPT_TEXT,     /* const char *, borrowed */
    WEIR_OPT_TEXTS,    /* struct weir_texts: may be given several times */
};

enum { WEIR_TEXTS_MAX = 64 };
struct weir_texts {
    size_t count;
    const char *text[WEIR_TEXTS_MAX]; /* borrowed */
};

struct weir_opt {
    const char *name;
    char letter;      /* of the command line, or 0 */
    enum weir_opt_type type;
    size_t at;        /* offsetof the field it sets */
    const char *def;  /* as a person would write it; NULL: none */
    const char *arg;  /* what --help calls its value */
    const char *help; /* one sentence, no full stop */
    double min, max;  /* of numbers of any kind, DURATION in seconds; max 0: no upper bound */
};

/* Sets the defaults of a table (ended by a NULL name) in *fields. */
void weir_opt_defaults(const struct weir_opt *table, void *fields);
/* Sets one option from text; the error names the option, the value and what is allowed. */
int weir_opt_set(const struct weir_opt *opt, void *fields, const char *value);
const struct weir_opt *weir_opt_find(const struct weir_opt *table, const char *name);

/* "64K", "1.5G", "100" -> bytes (powers of 1,024). -EINVAL with a text. */
int weir_parse_size(uint64_t *out, const char *text);
/* "30s", "5ms", "7d", "1.5h", "5y" (of 365 days), "10" (seconds) -> nanoseconds. */
int weir_parse_duration(uint64_t *out, const char *text);
/* "512", "100K", "1.5M", "70B", "2T" -> a whole number (powers of 1,000; G is B). */
int weir_parse_count(uint64_t *out, const char *text);
/* A size, or a number of bits (100Mbit, 400Gbit), with or without "/s" -> bytes a second. */
int weir_parse_rate(uint64_t *out, const char *text);
/* "1.5 GiB", "213 B". */
const char *weir_format_size(char *out, size_t size, uint64_t bytes);

#endif
