/* deeds.h - what simulated processes asked of a ledger and were told, each with the heads of the
 * log at its begin and at its end; and whether the log (saves.h) explains every answer. A log is
 * one order of all changes: so an answer is linearizable if a state between those heads gives it.
 */
#ifndef WEIR_SIM_DEEDS_H
#define WEIR_SIM_DEEDS_H

#include "saves.h"

enum sim_deed_kind {
    SIM_JOIN,   /* answered: an attempt */
    SIM_COMMIT, /* a put, finish or wait: did it say that the save is committed? */
    SIM_RETIRE, /* all live entries before save */
    SIM_VIEW,   /* opened by name, or the newest; showed save */
    SIM_READ,   /* the state; attempt is the number of its record */
};

enum { SIM_DEEDS_MAX = 512 };

struct sim_deed {
    enum sim_deed_kind kind;
    const char *who, *name;
    struct weir_save save;
    unsigned incarnation;
    uint64_t attempt, from, to;
    int code;
    bool open;     /* it was never answered */
    bool claims;   /* it said: committed */
    bool complete; /* all parts were there when it began */
};

struct sim_deeds {
    struct sim_deed at[SIM_DEEDS_MAX];
    unsigned count;
};

struct sim_deed *sim_deed_begin(struct sim_deeds *deeds, const char *who, enum sim_deed_kind kind,
                                const struct weir_save *save);
void sim_deed_end(struct sim_deed *deed, int code, bool open);
/* Ends the test unless the book explains all answers. */
void sim_deeds_check(const struct sim_deeds *deeds, const struct sim_book *book);
/* Ends the test unless all that was acknowledged is in a book that may be shorter. */
void sim_deeds_check_durable(const struct sim_deeds *deeds, const struct sim_book *book);

#endif
