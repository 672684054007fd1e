/* advice.h - what a storage engineer would say of a trace: each piece with its reason, and its gain
 * as a number with the model it comes from. Pure: the same trace gives the same advice.
 */
#ifndef WEIR_TRACE_ADVICE_H
#define WEIR_TRACE_ADVICE_H

#include "trace/trace.h"

enum weir_advice_weight {
    WEIR_ADVICE_NOTE,   /* good to know */
    WEIR_ADVICE_DO,     /* something is gained */
    WEIR_ADVICE_DANGER, /* data may be lost */
};

enum { WEIR_ADVICE_MAX = 24, WEIR_ADVICE_TEXT_MAX = 600 };

struct weir_advice {
    const char *kind; /* "pack", "cache", …: static, for scripts */
    enum weir_advice_weight weight;
    char what[WEIR_ADVICE_TEXT_MAX];
    char why[WEIR_ADVICE_TEXT_MAX];
    char *command; /* to type or to write, or NULL; owned */
    /* Seconds of waiting now, and then; now_s 0: no such figure. */
    double now_s, then_s;
    char model[WEIR_ADVICE_TEXT_MAX]; /* where the figure comes from, or "" */
    uint64_t bytes;                   /* the size that is advised, or 0 */
    uint64_t depth;                   /* the prefetch that is advised, in batches, or 0 */
};

/* What is known besides the trace; 0: not known. */
struct weir_advice_how {
    uint64_t memory_bytes; /* of the machine */
    uint64_t rate;         /* bytes/s of large reads */
    uint64_t batch;        /* samples in a batch */
};

struct weir_advices {
    struct weir_advice item[WEIR_ADVICE_MAX];
    size_t count;
};

void weir_advise(struct weir_advices *out, struct weir_trace *trace,
                 const struct weir_advice_how *how);
void weir_advices_free(struct weir_advices *advices);

/* A directory that is read as one dataset. */
enum { WEIR_TRACE_SETS_MAX = 8 };
struct weir_trace_set {
    const struct weir_trace_dir *dir;
    bool is_small; /* many small files: to be packed */
};
/* How many there are: the directories below which almost all of the data is read; "train" and
 * "val" side by side are two. After the end of the trace. */
size_t weir_trace_sets(const struct weir_trace *trace,
                       struct weir_trace_set sets[WEIR_TRACE_SETS_MAX]);

/* Bytes/s of large reads: as told, or as seen; 0 if neither. */
double weir_advice_rate(const struct weir_trace *trace, const struct weir_advice_how *how);
/* A new piece at the end, or NULL if there are enough. */
struct weir_advice *weir_advice_add(struct weir_advices *out, const char *kind,
                                    enum weir_advice_weight weight);
/* The parts: advice_read.c and advice_write.c. */
void weir_advise_reading(struct weir_advices *out, struct weir_trace *trace,
                         const struct weir_advice_how *how);
void weir_advise_writing(struct weir_advices *out, struct weir_trace *trace,
                         const struct weir_advice_how *how);

#endif
