/* history.h - what simulated processes asked for and were told, in the order in which it happened,
 * and whether one store could have answered so: whether there is an order of the operations on a
 * key, each at one instant between its call and its answer, that explains every answer
 * (linearizability). An operation whose process died may have happened before that, or not.
 */
#ifndef WEIR_SIM_HISTORY_H
#define WEIR_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum sim_op { SIM_PUT, SIM_GET, SIM_REMOVE };

enum { SIM_EVENTS_MAX = 256, SIM_KEY_EVENTS_MAX = 64 };

struct sim_event {
    enum sim_op op;
    const char *key, *who;
    uint64_t value; /* put; or read: SIM_ABSENT if there was none */
    uint64_t begin, end;
    int code;
    bool open; /* it was never answered */
};

struct sim_history {
    struct sim_event events[SIM_EVENTS_MAX];
    unsigned count;
    uint64_t tick;
};

/* Returns the event's number, for the end. */
unsigned sim_history_begin(struct sim_history *history, const char *who, enum sim_op op,
                           const char *key, uint64_t value);
void sim_history_end(struct sim_history *history, unsigned event, int code, uint64_t value,
                     bool open);
/* Was key there all the time from `since` until now, as far as those who asked were told? */
bool sim_history_certain(const struct sim_history *history, const char *key, uint64_t since);
/* Can the answers for the key be explained? durable: only what was acknowledged to writers counts;
 * what readers saw before a power loss may be lost. What "after" read is the end of the story. */
bool sim_history_holds(const struct sim_history *history, const char *key, bool durable);
/* Ends the test, with the history of the key, unless they can. */
void sim_history_check(const struct sim_history *history, const char *key, bool durable);

#endif
