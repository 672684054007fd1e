/* saves.h - what a rank does, for tests of group commits: its object, then its part. */
#ifndef WEIR_TESTS_SAVES_H
#define WEIR_TESTS_SAVES_H

#include "store/set.h"
#include "stores.h"

static inline int save_part(weir_store *store, struct weir_ledger *ledger,
                            const struct weir_save *save, uint32_t part, const char *note,
                            bool *committed)
{
    struct weir_ref ref = {.kind = WEIR_REF_OBJECT};
    char prefix[WEIR_KEY_BYTES_MAX + 1], key[2 * WEIR_KEY_BYTES_MAX];
    struct weir_set *set;
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    weir_ledger_prefix(ledger, save, prefix);
    snprintf(ref.name, sizeof ref.name, "rank-%u", part);
    snprintf(key, sizeof key, "%s/%s", prefix, ref.name);
    opts.flags = WEIR_PUT_OF_SAVE(prefix);
    OK(weir_put_open(&put, store, key, &opts));
    OK(weir_put_write(put, ref.name, strlen(ref.name)));
    OK(weir_put_commit(put, NULL));
    weir_put_digest(put, ref.digest);
    weir_put_close(put);
    OK(weir_set_open(&set, ledger, save));
    int code = weir_set_put(set, part, &ref, 1, note, strlen(note), committed);
    weir_set_close(set);
    return code;
}

#endif
