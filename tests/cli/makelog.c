/* makelog STORE LOG SAVES PARTS KEEP - commits saves 1 to SAVES of PARTS parts each to a log, and
 * retires all but the newest KEEP: what the tests of `weir log` look at.
 */
#include "stores.h"

#include "store/view.h"
#include "util/sys.h"

static weir_store *store;
static struct weir_ledger *ledger;
static char prefix[WEIR_KEY_BYTES_MAX + 1];

static const char *key_of(const char *name)
{
    static char key[WEIR_KEY_BYTES_MAX + 256];
    snprintf(key, sizeof key, "%s/%s", prefix, name);
    return key;
}

static void put_object(struct weir_ref *ref, uint32_t part)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.flags = WEIR_PUT_OF_SAVE(prefix);
    ref->kind = WEIR_REF_OBJECT;
    snprintf(ref->name, sizeof ref->name, "rank-%u.bin", part);
    OK(weir_put_open(&put, store, key_of(ref->name), &opts));
    OK(weir_put_write(put, ref->name, strlen(ref->name)));
    OK(weir_put_commit(put, NULL));
    weir_put_digest(put, ref->digest);
    weir_put_close(put);
}

static void put_table(struct weir_ref *ref)
{
    struct weir_table_put *put;
    ref->kind = WEIR_REF_TABLE;
    snprintf(ref->name, sizeof ref->name, "manifest");
    OK(weir_table_put_open(&put, store, key_of(ref->name), WEIR_PUT_OF_SAVE(prefix)));
    OK(weir_table_put_row(put, "bytes", 5, "\xff\0", 2));
    OK(weir_table_put_row(put, "text", 4, "hello", 5));
    OK(weir_table_put_commit(put, ref->digest));
    weir_table_put_close(put);
}

static void put_part(const struct weir_save *save, uint32_t part)
{
    struct weir_set *set;
    struct weir_ref refs[2];
    bool committed;
    put_object(&refs[0], part);
    if (!part)
        put_table(&refs[1]);
    OK(weir_set_open(&set, ledger, save));
    OK(weir_set_put(set, part, refs, part ? 1 : 2, "noted", part ? 0 : 5, &committed));
    CHECK(committed == (part + 1 == save->parts));
    weir_set_close(set);
}

static bool is_older(void *arg, const struct weir_ledger_entry *entry)
{
    return entry->save.number <= *(uint64_t *)arg;
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 6);
    uint64_t attempt, saves = strtoull(argv[3], NULL, 10), keep = strtoull(argv[5], NULL, 10);
    uint8_t token[WEIR_TOKEN_BYTES];
    size_t count;
    store = store_at(argv[1], NULL);
    OK(weir_ledger_open(&ledger, store, argv[2]));
    OK(weir_sys->random(token, sizeof token));
    OK(weir_ledger_join(ledger, token, &attempt));
    for (uint64_t i = 1; i <= saves; i++) {
        struct weir_save save = {.attempt = attempt, .number = i};
        save.parts = (uint32_t)strtoul(argv[4], NULL, 10);
        snprintf(save.name, sizeof save.name, "%llu", (unsigned long long)i);
        weir_ledger_prefix(ledger, &save, prefix);
        for (uint32_t part = 0; part < save.parts; part++)
            put_part(&save, part);
    }
    uint64_t last = saves > keep ? saves - keep : 0;
    OK(weir_ledger_retire(ledger, attempt, is_older, &last, &count));
    CHECK_EQ(count, last);
    weir_ledger_close(ledger);
    weir_store_close(store);
    return TEST_RESULT;
}
