/* fskind.h - what a file system of some kind does differently: whether other machines have it
 * mounted, too, and whether a file that one of them removes stays for who has it open. What is not
 * known is taken for shared: that costs a few requests more, never a wrong answer. Any thread may
 * call.
 */
#ifndef WEIR_IO_FSKIND_H
#define WEIR_IO_FSKIND_H

#include <stdbool.h>
#include <stdint.h>

struct weir_fskind {
    uint64_t magic;   /* of statfs(2) */
    const char *name; /* for people */
    bool is_shared;   /* other machines change it, and what is known of it here may be old */
    bool forgets;     /* a file that is removed elsewhere is gone for its readers here (-ESTALE) */
    bool is_striped;  /* Lustre: see stripe.h */
};

/* Never NULL: one that is not known is "other". */
const struct weir_fskind *weir_fskind_of(uint64_t magic);
/* The kind that fd is on; "other" if that cannot be asked. */
const struct weir_fskind *weir_fskind_at(int fd);

#endif
