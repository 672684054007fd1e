/* records.c - PUT, LOAD, REMOVE_IF: put-if-absent has one winner, remove-if-same removes once. */
#include <stdatomic.h>

#include "tier_calls.h"

enum { RACERS = 8, RACES = 25 };

static void round_trip(void)
{
    static const size_t sizes[] = {0, 1, 80, 4096, 100000, 1 << 20, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *name = fresh(".weir/seal/trip/", "~");
        uint8_t *data = data_buffer(sizes[i], 0);
        void *back = NULL;
        size_t size = 4711;
        data_fill(data, sizes[i], i, 0);
        OK(t_put(name, data, sizes[i]));
        OK(t_load(name, sizes[i], &back, &size)); /* the limit may be met */
        CHECK(size == sizes[i] && data_is(back, size, i, 0));
        free(back);
        if (sizes[i])
            CHECK_EQ(t_load(name, sizes[i] - 1, &back, &size), -EFBIG);
        data_free(data, 0);
    }
}

static void put_if_absent(void)
{
    const char *name = fresh(".weir/seal/absent/", "~");
    OK(t_put(name, "first", 5));
    CHECK_EQ(t_put(name, "second", 6), -EEXIST);
    record_is(name, "first");
    OK(t_remove(name, NULL, true));
    OK(t_put(name, "third", 5));
    record_is(name, "third");
    /* A blob's name is taken just so. */
    const char *blob = fresh(".weir/data/absent/", "~x");
    blob_make(blob, 100, 1);
    CHECK_EQ(t_put(blob, "x", 1), -EEXIST);
    blob_is(blob, 100, 1);
}

struct race {
    const char *name;
    atomic_uint wins;
    unsigned winner;
};

static void put_one(void *arg, unsigned i)
{
    struct race *race = arg;
    char text[2] = {(char)('a' + i), 0};
    int code = t_put(race->name, text, 1);
    CHECK(code == 0 || code == -EEXIST);
    if (!code) {
        race->wins++;
        race->winner = i;
    }
}

static void racing_puts(void)
{
    for (int i = 0; i < rounds(RACES); i++) {
        struct race race = {.name = fresh(".weir/seal/race/", "~")};
        at_once(RACERS, put_one, &race);
        CHECK_EQ(race.wins, 1);
        char text[2] = {(char)('a' + race.winner), 0};
        record_is(race.name, text);
    }
}

static void remove_if_same(void)
{
    const char *name = fresh(".weir/seal/if/", "~");
    CHECK_EQ(t_remove_if(name, "record", 6), -ENOENT);
    OK(t_put(name, "record", 6));
    CHECK_EQ(t_remove_if(name, "recorD", 6), -ESTALE);
    CHECK_EQ(t_remove_if(name, "recor", 5), -ESTALE);
    CHECK_EQ(t_remove_if(name, "records", 7), -ESTALE);
    CHECK_EQ(t_remove_if(name, "", 0), -ESTALE);
    record_is(name, "record");
    OK(t_remove_if(name, "record", 6));
    CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
    CHECK_EQ(t_remove_if(name, "record", 6), -ENOENT);
    OK(t_put(name, "", 0));
    OK(t_remove_if(name, "", 0));
}

static void remove_one(void *arg, unsigned i)
{
    struct race *race = arg;
    (void)i;
    int code = t_remove_if(race->name, "x", 1);
    CHECK(code == 0 || code == -ENOENT);
    race->wins += !code;
}

static void racing_removes(void)
{
    for (int i = 0; i < rounds(RACES); i++) {
        struct race race = {.name = fresh(".weir/seal/gone/", "~")};
        OK(t_put(race.name, "x", 1));
        at_once(RACERS, remove_one, &race);
        CHECK_EQ(race.wins, 1);
    }
}

/* Removers of one record race with a writer of the next: none takes what it did not compare. */
static void next_one(void *arg, unsigned i)
{
    struct race *race = arg;
    if (i) {
        int code = t_remove_if(race->name, "x", 1);
        CHECK(code == 0 || code == -ENOENT || code == -ESTALE);
        return;
    }
    int code;
    while ((code = t_put(race->name, "next", 4)) == -EEXIST)
        ;
    OK(code);
    race->wins++;
}

static void removers_take_only_theirs(void)
{
    for (int i = 0; i < rounds(3 * RACES); i++) {
        struct race race = {.name = fresh(".weir/seal/next/", "~")};
        OK(t_put(race.name, "x", 1));
        at_once(RACERS, next_one, &race);
        record_is(race.name, "next");
        OK(t_remove_if(race.name, "next", 4));
    }
}

/* Everybody puts its own record and takes it away again, all at one name: whoever's record is there
 * is the only one who can remove it. */
static void turn_one(void *arg, unsigned i)
{
    struct race *race = arg;
    char text[2] = {(char)('a' + i), 0};
    for (int round = 0; round < rounds(RACES); round++) {
        if (t_put(race->name, text, 1) == 0) {
            CHECK_EQ(race->wins++, 0); /* nobody else holds it */
            race->wins--;
            OK(t_remove_if(race->name, text, 1));
        } else {
            int code = t_remove_if(race->name, text, 1);
            CHECK(code == -ESTALE || code == -ENOENT);
        }
    }
}

static void taking_turns(void)
{
    struct race race = {.name = fresh(".weir/seal/turn/", "~")};
    at_once(RACERS, turn_one, &race);
    CHECK_EQ(t_stat(race.name, NULL, NULL), -ENOENT);
}

void check_records(void)
{
    RUN(round_trip);
    RUN(put_if_absent);
    RUN(racing_puts);
    RUN(remove_if_same);
    RUN(racing_removes);
    RUN(removers_take_only_theirs);
    RUN(taking_turns);
}
