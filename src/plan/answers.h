/* answers.h - the questions: each takes what was told and fills an answer (which begins as zeros).
 * They return 0, or -EINVAL with a text that names what is missing or makes no sense. Pure.
 */
#ifndef WEIR_PLAN_ANSWERS_H
#define WEIR_PLAN_ANSWERS_H

#include "plan/answer.h"
#include "plan/catalog.h"
#include "plan/keys.h"

int weir_plan_ask_read(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_checkpoint(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_interval(struct weir_plan_answer *a, const struct weir_plan_in *in);
/* device: the one that is told, or what was measured. */
int weir_plan_ask_raid(struct weir_plan_answer *a, const struct weir_plan_in *in,
                       const struct weir_plan_device *device);
int weir_plan_ask_cliff(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_endurance(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_durability(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_cost(struct weir_plan_answer *a, const struct weir_plan_in *in);
int weir_plan_ask_format(struct weir_plan_answer *a, const struct weir_plan_in *in);

/* ---- what several of them need ---- */

static inline double weir_plan_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}
/* The size of a checkpoint: as told, or of the model. */
struct weir_plan_save {
    double bytes, weight_bytes, optimizer_bytes; /* the last two 0: not known */
    const char *state;                           /* NULL: not of the catalog */
};
int weir_plan_save_of(struct weir_plan_save *out, const struct weir_plan_in *in);
/* Bytes/s that the shared storage reads and writes, for plans that need it and were not told. */
#define WEIR_PLAN_SHARED_RATE 100e9
double weir_plan_nodes(const struct weir_plan_in *in); /* rounded up; 0: gpus were not told */
/* The rate at which nodes can write to the shared storage, what limits it, and the other limit (0:
 * there is none). */
double weir_plan_write_rate(const struct weir_plan_in *in, const char **name, double *next);
/* The mean time between failures of the job. */
int weir_plan_mtbf_of(double *out_s, const struct weir_plan_in *in);

#endif
