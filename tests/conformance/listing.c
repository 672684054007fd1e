/* listing.c - LIST: one level, each name once, in pages of any size. */
#include "tier_calls.h"

struct found {
    unsigned files, dirs;
    unsigned char *seen; /* by number, of names "n%u" */
    char all[8192];
};

static void note(void *arg, char type, const char *name)
{
    struct found *found = arg;
    size_t used = strlen(found->all);
    found->files += type == 'f';
    found->dirs += type == 'd';
    if (found->seen) {
        unsigned number;
        CHECK(type == 'f' && sscanf(name, "n%u~", &number) == 1);
        CHECK_EQ(found->seen[number]++, 0);
    } else if (used + strlen(name) + 3 < sizeof found->all) {
        snprintf(found->all + used, sizeof found->all - used, "%c%s ", type, name);
    }
}

static bool has(const struct found *found, const char *entry)
{
    char want[300];
    snprintf(want, sizeof want, "%s ", entry);
    const char *at = strstr(found->all, want);
    return at && (at == found->all || at[-1] == ' ');
}

static void put_name(const char *name)
{
    OK(t_put(name, "x", 1));
}

static void empty(void)
{
    struct found found = {0};
    int code = t_list(".weir/seal/nothing/here/", 4096, note, &found);
    CHECK(code == 0 || code == -ENOENT);
    CHECK(!found.files && !found.dirs);
}

/* Names that are prefixes of each other, and a seal beside the directory of the same name. */
static void one_level(void)
{
    static const char *const names[] = {"a~",    "a/b~", "a/b/c~", "a.~",       "a0~", "ab~",
                                        "a-/x~", "b/x~", "b/y~",   "\xc3\xbc~", "a b~"};
    struct found found = {0};
    char name[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, ".weir/seal/level/%s", names[i]);
        put_name(name);
    }
    OK(t_list(".weir/seal/level/", 4096, note, &found));
    CHECK(found.files == 6 && found.dirs == 3);
    CHECK(has(&found, "fa~") && has(&found, "fa.~") && has(&found, "fa0~") && has(&found, "fab~"));
    CHECK(has(&found, "da") && has(&found, "da-") && has(&found, "db"));
    CHECK(has(&found, "f\xc3\xbc~"));
    found = (struct found){0};
    OK(t_list(".weir/seal/level/a/", 4096, note, &found));
    CHECK(found.files == 1 && found.dirs == 1 && has(&found, "fb~") && has(&found, "db"));
    found = (struct found){0};
    OK(t_list("", 4096, note, &found));
    CHECK(has(&found, "d.weir"));
}

/* Every page size that holds the longest entry gives the same. */
static void tiny_pages(void)
{
    char name[64];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, ".weir/seal/tiny/n%d~%.*s", i, i % 20, "aaaaaaaaaaaaaaaaaaaa");
        put_name(name);
    }
    for (size_t bytes = 32; bytes < 80; bytes += 7) {
        unsigned char seen[40] = {0};
        struct found found = {.seen = seen};
        OK(t_list(".weir/seal/tiny/", bytes, note, &found));
        CHECK_EQ(found.files, 40);
    }
}

static void many(void)
{
    unsigned char *seen = calloc(1, names_many);
    struct found found = {.seen = seen};
    char name[64];
    for (unsigned i = 0; i < names_many; i++) {
        snprintf(name, sizeof name, ".weir/seal/many/n%u~", i);
        put_name(name);
    }
    OK(t_list(".weir/seal/many/", 4096, note, &found));
    CHECK_EQ(found.files, names_many);
    for (unsigned i = 0; i < names_many; i++)
        CHECK_EQ(seen[i], 1);
    free(seen);
}

/* While names come and go, those that stay are listed exactly once. */
struct change {
    struct found *found;
    unsigned calls;
};

static void note_and_change(void *arg, char type, const char *name)
{
    struct change *change = arg;
    char other[64];
    unsigned number;
    CHECK(sscanf(name, "n%u~", &number) == 1);
    if (number < 200)
        note(change->found, type, name);
    unsigned turn = change->calls++;
    snprintf(other, sizeof other, ".weir/seal/change/n%u~", 200 + turn % 90);
    if (turn % 2)
        t_remove(other, NULL, false);
    else
        t_put(other, "x", 1);
}

static void while_it_changes(void)
{
    unsigned char seen[300] = {0};
    struct found found = {.seen = seen};
    struct change change = {.found = &found};
    char name[64];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, ".weir/seal/change/n%u~", i);
        put_name(name);
    }
    OK(t_list(".weir/seal/change/", 200, note_and_change, &change));
    CHECK_EQ(found.files, 200);
}

/* All files below, by one listing, where a tier has no directories. */
static void deep(void)
{
    static const char *const names[] = {"a~", "b/c~", "b/d/e~", "b/d/f~"};
    bool seen[4] = {0};
    char name[64], page[4096];
    struct weir_req req;
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, ".weir/seal/deep/%s", names[i]);
        put_name(name);
    }
    weir_req_init(&req, WEIR_OP_LIST);
    req.name = ".weir/seal/deep/";
    req.deep = true;
    req.buf = page;
    req.len = sizeof page;
    int code = call(&req);
    CHECK(code == 0 || code == -ENOTSUP);
    if (!code) {
        CHECK_EQ(req.result, 4);
        for (const char *at = page; req.result--; at += strlen(at) + 1)
            for (size_t i = 0; i < 4; i++)
                seen[i] |= at[0] == 'f' && !strcmp(at + 1, names[i]);
        CHECK(seen[0] && seen[1] && seen[2] && seen[3]);
    }
    weir_handle_close(req.handle);
}

/* Files with what STAT tells of them, if the tier has it at hand, as that of files does; names and
 * directories as ever, in pages that have room for few, too. */
static void looked_at(void)
{
    static const size_t sizes[] = {0, 1, 700, 70000};
    const char *dir = "looked/";
    char name[64];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%sn%zu", dir, i);
        blob_make(name, sizes[i], i);
    }
    blob_make("looked/below/x", 1, 1);
    for (int few = 0; few < 2; few++) {
        const size_t page_bytes = few ? 64 : 4096;
        unsigned files = 0, dirs = 0, looked = 0;
        struct weir_req req;
        struct weir_handle *cursor = NULL;
        char page[4096];
        do {
            OK(t_list_page(&req, dir, cursor, page, page_bytes, true));
            cursor = req.handle;
            const char *at = page, *found;
            for (uint64_t i = 0; i < req.result; i++) {
                struct weir_blob_stat seen, stat;
                bool has_stat;
                char type = weir_list_page_take(&at, &found, &seen, &has_stat);
                CHECK(at <= page + page_bytes && (type == 'f' || (type == 'd' && !has_stat)));
                files += type == 'f';
                dirs += type == 'd';
                looked += has_stat;
                snprintf(name, sizeof name, "%s%s", dir, found);
                if (!has_stat)
                    continue;
                OK(t_stat(name, NULL, &stat));
                CHECK(seen.size == stat.size && seen.time_ns == stat.time_ns);
            }
        } while (req.result);
        weir_handle_close(cursor);
        CHECK(files == 4 && dirs == 1);
        CHECK(looked == 4 || strcmp(weir_tier_kind(tier), "file"));
    }
}

/* A cursor that is not followed to its end. */
static void left_early(void)
{
    struct weir_req req;
    char page[64];
    put_name(".weir/seal/early/a~");
    weir_req_init(&req, WEIR_OP_LIST);
    req.name = ".weir/seal/early/";
    req.buf = page;
    req.len = sizeof page;
    OK(call(&req));
    CHECK_EQ(req.result, 1);
    weir_handle_close(req.handle);
}

void check_listing(void)
{
    RUN(empty);
    RUN(one_level);
    RUN(tiny_pages);
    RUN(many);
    RUN(while_it_changes);
    RUN(deep);
    RUN(looked_at);
    RUN(left_early);
}
