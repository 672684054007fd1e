/* model.h - what a store must hold: for each key the values it may have. One value is certain;
 * more than one stands for an operation whose outcome nobody was told (a crash, or
 * WEIR_EUNKNOWN), until somebody looks.
 */
#ifndef WEIR_SIM_MODEL_H
#define WEIR_SIM_MODEL_H

#include "objects.h"

enum { SIM_FACTS_MAX = 64, SIM_MAY_MAX = 8 };

struct sim_fact {
    char key[64];
    uint64_t may[SIM_MAY_MAX];
    unsigned count;
    bool foreign; /* somebody else's file */
};

struct sim_model {
    struct sim_fact facts[SIM_FACTS_MAX];
    unsigned count;
    bool saves; /* there are logs and sets, too, which saves.h looks after */
};

/* The fact about a key; absent if nothing was known. */
struct sim_fact *sim_model_fact(struct sim_model *model, const char *key);
void sim_fact_set(struct sim_fact *fact, uint64_t value);
void sim_fact_add(struct sim_fact *fact, uint64_t value);
bool sim_fact_may(const struct sim_fact *fact, uint64_t value);

/* Do it, take note of what the answer means, and check that it came with a text. */
int sim_model_put(struct sim_model *model, weir_store *store, const char *key,
                  const struct sim_put *how);
int sim_model_remove(struct sim_model *model, weir_store *store, const char *key);

/* Reads every key and lists the store; ends the test unless it is as the model says. What was
 * uncertain is certain afterwards. */
void sim_model_check(struct sim_model *model, weir_store *store);
/* After weir_gc(WEIR_GC_NOW): nothing is on the disk but objects, their plain names, other
 * people's files, and the engine's few own ones. */
void sim_model_audit(struct sim_model *model);

#endif
