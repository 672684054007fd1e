/* leases.c - LEASE: shared or alone, given back when its handle closes; and what a PUT that finds
 * its name taken promises about what stands there.
 */
#include <stdatomic.h>

#include "tier_calls.h"
#include "util/sys.h"

enum { RACERS = 8, TURNS = 40 };

static int t_lease(const char *name, bool alone, struct weir_handle **handle)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LEASE);
    req.name = name;
    req.alone = alone;
    int code = call(&req);
    if (!code) {
        CHECK(req.handle);
        *handle = req.handle;
    }
    return code;
}

static void none_here(void)
{
    struct weir_handle *handle;
    CHECK_EQ(t_lease(".weir/lease/a~", false, &handle), -ENOTSUP);
    CHECK_EQ(t_lease(".weir/lease/a~", true, &handle), -ENOTSUP);
}

static void shared_or_alone(void)
{
    const char *name = fresh(".weir/lease/deep/", "~"), *next = fresh(".weir/lease/deep/", "~");
    struct weir_handle *a, *b, *other;
    OK(t_lease(name, false, &a));
    OK(t_lease(name, false, &b));
    CHECK_EQ(t_lease(name, true, &other), -EBUSY);
    OK(t_lease(next, true, &other));
    CHECK_EQ(t_lease(next, true, &other), -EBUSY);
    weir_handle_close(other);
    CHECK_EQ(t_stat(next, NULL, NULL), -ENOENT); /* it leaves nothing behind */
    weir_handle_close(a);
    CHECK_EQ(t_lease(name, true, &other), -EBUSY);
    weir_handle_close(b);
    OK(t_lease(name, true, &other));
    weir_handle_close(other);
    CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
    OK(t_lease(name, false, &a));
    weir_handle_close(a);
}

struct turns {
    const char *name;
    atomic_int shared, alone;
    atomic_uint had_alone, had_shared;
};

/* Nobody has it alone while anybody else has it, however the file behind it comes and goes. */
static void turn_one(void *arg, unsigned i)
{
    struct turns *turns = arg;
    for (int round = 0; round < rounds(TURNS); round++) {
        bool alone = (round + i) % 3 == 0;
        struct weir_handle *handle;
        int code = t_lease(turns->name, alone, &handle);
        CHECK(code == 0 || code == -EBUSY);
        if (code)
            continue;
        atomic_fetch_add(alone ? &turns->alone : &turns->shared, 1);
        CHECK(atomic_load(&turns->alone) <= 1);
        CHECK(!atomic_load(&turns->alone) || !atomic_load(&turns->shared));
        atomic_fetch_add(alone ? &turns->had_alone : &turns->had_shared, 1);
        atomic_fetch_sub(alone ? &turns->alone : &turns->shared, 1);
        weir_handle_close(handle);
    }
}

static void taking_turns(void)
{
    struct turns turns = {.name = fresh(".weir/lease/turns/", "~")};
    at_once(RACERS, turn_one, &turns);
    CHECK(turns.had_shared > 0);
    struct weir_handle *handle;
    OK(t_lease(turns.name, true, &handle)); /* all of them were given back */
    weir_handle_close(handle);
}

/* ---- a name that is taken ---- */

static struct weir_sys table;
static atomic_bool refused, synced, sync_fails;

static int noted_link(int olddir, const char *old, int newdir, const char *name)
{
    int code = weir_sys_real.link(olddir, old, newdir, name);
    if (code == -EEXIST) {
        atomic_store(&refused, true);
        atomic_store(&synced, false);
    }
    return code;
}

static int noted_fsync(int fd)
{
    if (atomic_load(&sync_fails))
        return -EIO;
    atomic_store(&synced, true);
    return weir_sys_real.fsync(fd);
}

void watch_syncs(void)
{
    table = weir_sys_real;
    table.link = noted_link;
    table.fsync = noted_fsync;
    weir_sys = &table;
}

/* Who is told that a name is taken relies on the record there, and whoever put it may have died
 * before he made it durable. So that is done before the answer, or the answer is another one. */
static void taken_is_durable(void)
{
    const char *name = fresh(".weir/log/taken~/", "");
    OK(t_put(name, "first", 5));
    atomic_store(&refused, false);
    CHECK_EQ(t_put(name, "second", 6), -EEXIST);
    record_is(name, "first");
    if (weir_sys != &table || !has_leases)
        return; /* the contract is the same; only here it can be seen to be kept */
    CHECK(atomic_load(&refused) && atomic_load(&synced));
    atomic_store(&sync_fails, true);
    CHECK_EQ(t_put(name, "second", 6), -EIO);
    atomic_store(&sync_fails, false);
    record_is(name, "first");
    CHECK_EQ(t_put(name, "second", 6), -EEXIST);
}

void check_leases(void)
{
    if (!has_leases) {
        RUN(none_here);
    } else {
        RUN(shared_or_alone);
        RUN(taking_turns);
    }
    if (tier->level != WEIR_LEVEL_NONE)
        RUN(taken_is_durable);
}
