/* object.h - an open object, for the files that find it (object.c) and read it (scan.c). */
#ifndef WEIR_STORE_OBJECT_H
#define WEIR_STORE_OBJECT_H

#include "store/store.h"

struct weir_object {
    weir_store *store;
    struct weir_handle *blob;
    struct weir_sealed sealed;   /* of a sealed object */
    struct weir_learned learned; /* of a foreign one */
    void *slots;                 /* a scan's */
    bool is_around;              /* opened to be read once, in a batch with others (req.h) */
    uint64_t check_bytes;        /* read and checked as one: a block, or the guard's if larger */
    uint64_t guarded;            /* which file it is to the guard */
    weir_info info;
    char nonce[2 * WEIR_NONCE_BYTES + 1];
    char key[WEIR_KEY_BYTES_MAX + 1];
    char data_name[WEIR_NAME_BYTES_MAX];
};

/* Whether there is anything to check or learn: not in a directory that is not a store. */
static inline bool weir_object_is_checked(const weir_object *obj)
{
    return obj->sealed.record || obj->learned.sums || obj->store->guard;
}
/* Checks or learns the check_bytes, or what is left of them at the end, that are these of the
 * object, at data; -EBADMSG. */
int weir_object_check(weir_object *obj, const char *data, const struct weir_range *range);

#endif
