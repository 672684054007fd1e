/* sim.c - see sim.h. */
#include "sim.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "baton.h"

/* Each clock has its own beginning: to compare two of them is a mistake that shows. The disk has
 * one, too: time stamps come from a server. */
#define REAL_BASE_NS 1700000000000000000
#define BOOT_BASE_NS 5000000000000u
#define MONO_BASE_NS 7000000000000u
#define DISK_BASE_NS 1600000000000000000

enum { CALL_NS = 1000 };

struct sim sim;
static struct sim_proc alone; /* the test's own thread */
_Thread_local struct sim_proc *sim_self = &alone;

const char *sim_call_name(enum sim_call call)
{
    static const char *const names[] = {
        "open",      "close",      "pread",    "pwrite", "fsync",  "fdatasync", "fallocate",
        "ftruncate", "link",       "unlink",   "mkdir",  "stat",   "fstat",     "fchmod",
        "touch",     "recyclable", "getdents", "flock",  "statfs", "random",
    };
    return names[call];
}

const char *sim_fault_name(enum sim_fault_kind kind)
{
    static const char *const names[] = {
        "no fault",         "EIO",          "ENOSPC",        "EINTR",
        "a short transfer", "lost answers", "a lost server", "no memory",
    };
    return names[kind];
}

bool sim_fault_fits(enum sim_fault_kind kind, enum sim_call call)
{
    switch (kind) {
    case SIM_FAULT_SHORT:
        return call == SIM_CALL_PREAD || call == SIM_CALL_PWRITE;
    case SIM_FAULT_LOST:
    case SIM_FAULT_GONE:
        return call == SIM_CALL_LINK || call == SIM_CALL_UNLINK || call == SIM_CALL_MKDIR ||
               call == SIM_CALL_OPEN || call == SIM_CALL_PWRITE || call == SIM_CALL_FSYNC;
    case SIM_FAULT_ENOSPC: /* fsync: where space is only taken then */
        return call == SIM_CALL_LINK || call == SIM_CALL_MKDIR || call == SIM_CALL_OPEN ||
               call == SIM_CALL_PWRITE || call == SIM_CALL_FSYNC || call == SIM_CALL_FDATASYNC ||
               call == SIM_CALL_FALLOCATE || call == SIM_CALL_FTRUNCATE;
    case SIM_FAULT_EIO:
    case SIM_FAULT_EINTR:
        return true;
    default:
        return false;
    }
}

void sim_start(uint64_t seed, struct sim_fs *disk)
{
    sim = (struct sim){
        .fs = disk ? disk : sim_fs_new(),
        .chance = weir_rng_fork(seed, 1),
        .entropy = weir_rng_fork(seed, 2),
        .weather = weir_rng_fork(seed, 3),
        .cut_after = SIM_FOREVER,
    };
    alone = (struct sim_proc){.name = "alone"};
    sim.fs->now_ns = DISK_BASE_NS;
    /* A call that is new in the table is missing here until it is written. */
    void *const *entries = (void *const *)(const void *)&sim_sys;
    for (size_t i = 0; i < sizeof sim_sys / sizeof *entries; i++)
        assert(entries[i]);
    weir_sys = &sim_sys;
}

void sim_stop(void)
{
    sim_fs_free(sim.fs);
    sim.fs = NULL;
    weir_sys = &weir_sys_real;
}

void sim_reboot(uint64_t seed)
{
    struct weir_rng rng = weir_rng_fork(seed, 4);
    sim_fs_crash(sim.fs, &rng);
    sim.off = false;
    sim.cut_after = SIM_FOREVER;
    sim.fault = (struct sim_fault){0};
    sim.clock_ns += 60000000000u;
    alone.dead = false;
}

void sim_sleep(uint64_t ns)
{
    sim.clock_ns += ns;
    if (sim.procs && !sim_self->dead)
        sim_baton_pass();
}

uint64_t sim_clock(enum weir_clock clock)
{
    switch (clock) {
    case WEIR_CLOCK_REAL:
        return REAL_BASE_NS + sim.clock_ns + (uint64_t)sim_self->real_skew_ns;
    case WEIR_CLOCK_BOOT:
        return BOOT_BASE_NS + sim.clock_ns - sim_self->boot_lag_ns;
    default:
        return MONO_BASE_NS + sim.clock_ns;
    }
}

static bool in_range(uint64_t number)
{
    return number >= sim.fault.first && number - sim.fault.first < sim.fault.count;
}

bool sim_memory_fails(void)
{
    sim.allocs++;
    return sim.fault.kind == SIM_FAULT_MEMORY && in_range(sim.allocs);
}

static struct sim_verdict fault_verdict(enum sim_call call)
{
    struct sim_verdict verdict = {0};
    enum sim_fault_kind kind = sim.fault.kind;
    if (!in_range(sim.calls))
        return verdict;
    if (kind == SIM_FAULT_GONE && sim.calls > sim.fault.first)
        kind = SIM_FAULT_EIO;
    if (!sim_fault_fits(kind, call))
        return verdict;
    switch (kind) {
    case SIM_FAULT_EIO:
        verdict.code = -EIO;
        break;
    case SIM_FAULT_ENOSPC:
        verdict.code = -ENOSPC;
        break;
    case SIM_FAULT_EINTR:
        sim.interrupted = (sim.interrupted + 1) % 4;
        verdict.code = sim.interrupted ? -EINTR : 0;
        break;
    case SIM_FAULT_SHORT:
        verdict.shorten = true;
        break;
    default:
        verdict.lost = true;
    }
    return verdict;
}

struct sim_verdict sim_enter(enum sim_call call)
{
    static const struct sim_verdict dead = {.code = -EIO};
    struct sim_proc *self = sim_self;
    if (self->dead || sim.off)
        return dead;
    if (sim.procs)
        sim_baton_pass();
    if (sim.off)
        return dead;
    if (++self->calls == self->kill_at) {
        self->dead = true;
        sim_fs_close_all(sim.fs, self->id);
        return dead;
    }
    if (sim.calls >= sim.cut_after) {
        sim.off = true;
        return dead;
    }
    if (sim.calls < SIM_TRACE_MAX)
        sim.trace[sim.calls] = (uint8_t)call;
    sim.calls++;
    sim.clock_ns += CALL_NS;
    sim.fs->now_ns = (int64_t)(DISK_BASE_NS + sim.clock_ns);
    return fault_verdict(call);
}
