/* objects.h - what simulated processes put and get. Every put attempt writes bytes of its own, a
 * function of its value number, so that whoever reads can tell exactly whose bytes they are, and
 * a mixture of two is never taken for either.
 */
#ifndef WEIR_SIM_OBJECTS_H
#define WEIR_SIM_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

#define SIM_STORE "/mnt/store"
enum { SIM_ABSENT = 0, SIM_EMPTY = 1 }; /* values: no object; an object without bytes */

/* How many values there are; and back to so many (0: forgets all). */
uint64_t sim_values_mark(void);
void sim_values_rewind(uint64_t mark);
/* A new value of so many bytes (at least 8; 0: SIM_EMPTY). */
uint64_t sim_value_new(size_t size);
size_t sim_value_size(uint64_t value);
/* Bytes [off, off + size) of a value. */
void sim_value_fill(uint8_t *buf, uint64_t value, size_t off, size_t size);
/* Whose bytes are these? Ends the test if they are nobody's. */
uint64_t sim_value_of(const char *key, const uint8_t *buf, size_t size);

/* Opens the store on the simulated machine. create: with this grace, if it is not there. */
int sim_store_open(weir_store **out, uint64_t create_grace_s);
int sim_store_open_at(weir_store **out, const char *path, uint64_t create_grace_s);

struct sim_put {
    uint64_t value;
    uint32_t block_bytes;
    bool known;    /* the size is announced */
    bool in_place; /* filled where it will be written from, instead of copied */
    size_t piece;  /* bytes in each write; 0: all at once */
};
int sim_put(weir_store *store, const char *key, const struct sim_put *how);

/* Reads all of an object. value is SIM_ABSENT after -ENOENT. */
int sim_get(weir_store *store, const char *key, uint64_t *value, weir_kind *kind);
/* Reads a part and compares. */
int sim_get_range(weir_store *store, const char *key, uint64_t expected, uint64_t off, size_t size);

/* Every failure must come with a text: call the one before and the other after. */
void sim_text_clear(void);
void sim_text_check(int code);

#endif
