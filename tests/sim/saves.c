/* saves.c - see saves.h. The book is in book.c. */
#include "saves.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "test.h"

enum { VALUES_MAX = 4096, SIZE_MAX_BYTES = 600, NOTE_BYTES = 64, TABLE_ROWS = 3 };

/* Whose a value is. */
static struct {
    uint64_t attempt, number;
    uint32_t part;
} owners[VALUES_MAX];

void sim_token(uint8_t token[WEIR_TOKEN_BYTES], unsigned incarnation)
{
    memset(token, 0, WEIR_TOKEN_BYTES);
    token[0] = (uint8_t)incarnation;
    token[15] = 0xee;
}

struct weir_save sim_save(const char *name, uint64_t attempt, uint64_t number, uint32_t parts)
{
    struct weir_save save = {.attempt = attempt, .number = number, .parts = parts};
    snprintf(save.name, sizeof save.name, "%s", name);
    return save;
}

void sim_saves_reset(void)
{
    memset(owners, 0, sizeof owners);
}

/* ---- what ranks do ---- */

static void note_of(char note[NOTE_BYTES], const struct weir_save *save, uint32_t part)
{
    memset(note, 0, NOTE_BYTES);
    snprintf(note, NOTE_BYTES, "%.16s %llu.%llu part %u", save->name,
             (unsigned long long)save->attempt, (unsigned long long)save->number, part);
}

/* What an earlier try of the same rank sealed is as good as one's own. */
static int digest_there(weir_store *store, const char *key, struct weir_ref *ref)
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    weir_object_digest(obj, ref->digest);
    weir_object_close(obj);
    return 0;
}

/* The part of a key before its last name is the prefix of its save. */
static uint32_t flags_of(const char *key)
{
    return WEIR_PUT_PREFIX | (uint32_t)(strrchr(key, '/') - key);
}

static int put_object(weir_store *store, const char *key, const struct weir_save *save,
                      uint32_t part, struct weir_ref *ref)
{
    uint8_t bytes[SIZE_MAX_BYTES];
    weir_put *put;
    size_t size = 250 + (size_t)(sim_values_mark() * 37 % (SIZE_MAX_BYTES - 250));
    uint64_t value = sim_value_new(size);
    owners[value].attempt = save->attempt;
    owners[value].number = save->number;
    owners[value].part = part;
    sim_value_fill(bytes, value, 0, size);
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.flags = flags_of(key);
    opts.size_bytes = size;
    int code = weir_put_open(&put, store, key, &opts);
    if (!code) {
        code = weir_put_write(put, bytes, size);
        if (!code)
            code = weir_put_commit(put, NULL);
        if (!code)
            weir_put_digest(put, ref->digest);
        weir_put_close(put);
    }
    return code == -EEXIST ? digest_there(store, key, ref) : code;
}

static void row_of(char key[16], char value[NOTE_BYTES], const struct weir_save *save, unsigned row)
{
    snprintf(key, 16, "row %u", row);
    note_of(value, save, row);
}

int sim_table_put(weir_store *store, const char *key, const struct weir_save *save,
                  uint8_t digest[WEIR_SHA256_BYTES])
{
    struct weir_table_put *put;
    int code = weir_table_put_open(&put, store, key, flags_of(key));
    if (code)
        return code;
    for (unsigned i = 0; !code && i < TABLE_ROWS; i++) {
        char row[16], value[NOTE_BYTES];
        row_of(row, value, save, i);
        code = weir_table_put_row(put, row, strlen(row), value, strlen(value));
    }
    if (!code)
        code = weir_table_put_commit(put, digest);
    weir_table_put_close(put);
    return code;
}

void sim_table_check(const struct weir_table *table, const struct weir_save *save)
{
    CHECK_EQ(weir_table_count(table), TABLE_ROWS);
    for (unsigned i = 0; i < TABLE_ROWS; i++) {
        char key[16], value[NOTE_BYTES];
        struct weir_row row;
        row_of(key, value, save, i);
        CHECK(weir_table_find(table, key, strlen(key), &row));
        CHECK(row.value_size == strlen(value) && !memcmp(row.value, value, row.value_size));
    }
}

static void key_of(char key[128], const struct weir_ledger *ledger, const struct weir_save *save,
                   const char *name)
{
    char prefix[WEIR_KEY_BYTES_MAX + 1];
    weir_ledger_prefix(ledger, save, prefix);
    CHECK(snprintf(key, 128, "%s/%s", prefix, name) < 128);
}

static int table_there(weir_store *store, const char *key, struct weir_ref *ref)
{
    uint8_t bytes[SIZE_MAX_BYTES];
    weir_object *obj;
    size_t got;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    code = weir_object_read(obj, bytes, sizeof bytes, 0, &got);
    weir_object_close(obj);
    weir_sha256(ref->digest, bytes, code ? 0 : got);
    return code;
}

int sim_part_objects(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part,
                     struct weir_ref *refs, uint32_t *count)
{
    char key[128];
    weir_store *store = weir_ledger_store(ledger);
    refs[0] = (struct weir_ref){.kind = WEIR_REF_OBJECT};
    refs[1] = (struct weir_ref){.kind = WEIR_REF_TABLE, .name = "table"};
    snprintf(refs[0].name, sizeof refs[0].name, "rank-%u", part);
    *count = part ? 1 : 2;
    key_of(key, ledger, save, refs[0].name);
    int code = put_object(store, key, save, part, &refs[0]);
    if (code || part)
        return code;
    key_of(key, ledger, save, refs[1].name);
    code = sim_table_put(store, key, save, refs[1].digest);
    return code == -EEXIST ? table_there(store, key, &refs[1]) : code;
}

int sim_part_put(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part,
                 bool *committed)
{
    struct weir_ref refs[2];
    char note[NOTE_BYTES];
    struct weir_set *set;
    uint32_t count;
    *committed = false;
    int code = sim_part_objects(ledger, save, part, refs, &count);
    if (!code)
        code = weir_set_open(&set, ledger, save);
    if (code)
        return code;
    note_of(note, save, part);
    code = weir_set_put(set, part, refs, count, note, NOTE_BYTES, committed);
    weir_set_close(set);
    return code;
}

static void leaf_name(char name[256], const struct weir_save *save, uint32_t part)
{
    char text[WEIR_SAVE_TEXT_BYTES];
    weir_save_text(text, save);
    CHECK(snprintf(name, 256, "%s%s/%s~/0.%u", WEIR_DIR_SET, SIM_LEDGER, text, part) < 256);
}

void sim_part_leave(struct weir_ledger *ledger, const struct weir_save *save, uint32_t part)
{
    struct weir_ref refs[2];
    char note[NOTE_BYTES], name[256];
    uint8_t payload[WEIR_PART_PAYLOAD_BYTES_MAX], *bytes;
    enum weir_doubt doubt;
    uint32_t count;
    size_t size, leaf_size;
    OK(sim_part_objects(ledger, save, part, refs, &count));
    note_of(note, save, part);
    OK(weir_part_encode(payload, &size, refs, count, note, NOTE_BYTES));
    OK(weir_node_leaf(save->parts, part, payload, size, &bytes, &leaf_size));
    leaf_name(name, save, part);
    OK(weir_record_put(weir_ledger_store(ledger), name, bytes, leaf_size, 0, &doubt));
    free(bytes);
}

bool sim_part_is_there(const struct weir_save *save, uint32_t part)
{
    char name[256], path[512];
    leaf_name(name, save, part);
    snprintf(path, sizeof path, "%s/%s", SIM_STORE, name);
    return sim_fs_at(sim.fs, path);
}

/* ---- reading ---- */

static void check_note(const struct weir_part *part, const struct weir_save *save, uint32_t number)
{
    char note[NOTE_BYTES];
    note_of(note, save, number);
    CHECK_EQ(part->number, number);
    CHECK_EQ(part->refs, number ? 1 : 2);
    CHECK(part->note_size == NOTE_BYTES && !memcmp(part->note, note, NOTE_BYTES));
}

static int read_object(weir_object *obj, const char *name, const struct weir_save *save,
                       uint32_t part)
{
    uint8_t bytes[SIZE_MAX_BYTES];
    size_t got = 0, size = weir_object_info(obj)->size_bytes;
    CHECK(size <= sizeof bytes);
    int code = weir_object_read(obj, bytes, size, 0, &got);
    if (code)
        return code;
    uint64_t value = sim_value_of(name, bytes, got);
    CHECK(owners[value].attempt == save->attempt && owners[value].number == save->number &&
          owners[value].part == part);
    return 0;
}

/* What one part shows. */
static int read_part(struct weir_view *view, uint32_t number)
{
    const struct weir_save *save = &weir_view_entry(view)->save;
    struct weir_part part;
    struct weir_ref ref;
    weir_object *obj;
    struct weir_table *table;
    int code = weir_view_part(view, number, &part);
    if (code)
        return code;
    check_note(&part, save, number);
    const uint8_t *at = part.refs_at;
    weir_part_ref(&ref, &at);
    code = weir_view_object(view, &ref, &obj);
    if (code)
        return code;
    code = read_object(obj, ref.name, save, number);
    weir_object_close(obj);
    if (code || part.refs == 1)
        return code;
    weir_part_ref(&ref, &at);
    code = weir_view_table(view, &ref, &table);
    if (code)
        return code;
    sim_table_check(table, save);
    weir_table_close(table);
    return 0;
}

int sim_view_read(struct weir_view *view)
{
    int code = 0;
    for (uint32_t i = 0; !code && i < weir_view_entry(view)->save.parts; i++)
        code = read_part(view, i);
    return code;
}

/* A rank's file, by whatever name, is that rank's alone, and whole. */
static void check_file(const char *key, const struct sim_inode *inode)
{
    uint8_t bytes[SIZE_MAX_BYTES];
    char text[64];
    struct weir_save save;
    unsigned part;
    if (sscanf(key, SIM_LEDGER "/%63[^/]/rank-%u", text, &part) != 2)
        return;
    CHECK(weir_save_of_text(&save, text, strlen(text)) && inode->live->size <= sizeof bytes);
    uint64_t value = sim_value_of(key, bytes, sim_image_read(inode->live, bytes, sizeof bytes, 0));
    CHECK(owners[value].attempt == save.attempt && owners[value].number == save.number &&
          owners[value].part == part);
}

static void check_plain(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    (void)arg, (void)ino;
    if (inode->type == SIM_FILE && !weir_name_is_own(name))
        check_file(name, inode);
}

static void check_data(void *arg, const char *name, unsigned ino, const struct sim_inode *inode)
{
    char key[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    (void)arg, (void)ino;
    if (inode->type == SIM_FILE && weir_key_of_data_name(key, nonce, name))
        check_file(key, inode);
}

void sim_files_check(void)
{
    sim_fs_each(sim.fs, SIM_STORE, check_plain, NULL);
    sim_fs_each(sim.fs, SIM_STORE "/" WEIR_DIR_DATA, check_data, NULL);
}

void sim_spare_plant(size_t size)
{
    static unsigned count;
    char path[128];
    uint8_t *bytes = sim_alloc(size);
    memset(bytes, 0xee, size);
    snprintf(path, sizeof path, "%s/%s%zu-%032u", SIM_STORE, WEIR_DIR_SPARE, size, ++count);
    sim_fs_plant(sim.fs, path, bytes, size);
    int fd = sim_fs_open(sim.fs, 0, AT_FDCWD, path, O_RDONLY, 0);
    sim_fs_fchmod(sim.fs, fd, 0600);
    sim_fs_close(sim.fs, fd);
    free(bytes);
}

/* One reference, opened by its key and compared with its digest. */
static int read_ref(struct weir_ledger *ledger, const struct weir_ref *ref,
                    const struct weir_save *save, uint32_t part)
{
    char key[128];
    uint8_t digest[WEIR_SHA256_BYTES];
    weir_object *obj;
    struct weir_table *table;
    weir_store *store = weir_ledger_store(ledger);
    key_of(key, ledger, save, ref->name);
    if (ref->kind == WEIR_REF_TABLE) {
        int code = weir_table_open(&table, store, key, ref->digest);
        if (code)
            return code;
        sim_table_check(table, save);
        weir_table_close(table);
        return 0;
    }
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    weir_object_digest(obj, digest);
    code =
        memcmp(digest, ref->digest, sizeof digest) ? -EBADMSG : read_object(obj, key, save, part);
    weir_object_close(obj);
    return code;
}

int sim_entry_read(struct weir_ledger *ledger, const struct weir_ledger_entry *entry)
{
    struct weir_node root;
    uint8_t *bytes;
    int code = weir_set_root(ledger, entry, &root, &bytes);
    if (code)
        return code;
    CHECK_EQ(root.parts, entry->save.parts);
    const uint8_t *at = root.list;
    for (uint32_t i = 0; !code && i < root.parts; i++) {
        struct weir_part part;
        OK(weir_node_part(&part, &at));
        check_note(&part, &entry->save, i);
        const uint8_t *refs = part.refs_at;
        for (uint32_t r = 0; !code && r < part.refs; r++) {
            struct weir_ref ref;
            weir_part_ref(&ref, &refs);
            code = read_ref(ledger, &ref, &entry->save, i);
        }
    }
    free(bytes);
    return code;
}
