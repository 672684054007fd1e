/* sim.h - the simulated machine: one file system, its clocks and randomness, the power switch, the
 * faults, and (baton.h) its processes. While it is started, weir_sys is its table (calls.c), so
 * that everything the engine does to the world happens here, as a function of the seed.
 *
 * Only one thread runs at a time (baton.c hands the baton on), so nothing here is locked.
 */
#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include <pthread.h>
#include <semaphore.h>

#include "simfs.h"

/* What is counted, can fail, and is a point where the power can go or another process come. */
enum sim_call {
    SIM_CALL_OPEN,
    SIM_CALL_CLOSE,
    SIM_CALL_PREAD,
    SIM_CALL_PWRITE,
    SIM_CALL_FSYNC,
    SIM_CALL_FDATASYNC,
    SIM_CALL_FALLOCATE,
    SIM_CALL_FTRUNCATE,
    SIM_CALL_LINK,
    SIM_CALL_UNLINK,
    SIM_CALL_MKDIR,
    SIM_CALL_STAT,
    SIM_CALL_FSTAT,
    SIM_CALL_FCHMOD,
    SIM_CALL_TOUCH,
    SIM_CALL_RECYCLABLE,
    SIM_CALL_GETDENTS,
    SIM_CALL_FLOCK,
    SIM_CALL_SPACE,
    SIM_CALL_RANDOM,
};
const char *sim_call_name(enum sim_call call);

enum sim_fault_kind {
    SIM_FAULT_NONE,
    SIM_FAULT_EIO,
    SIM_FAULT_ENOSPC,
    SIM_FAULT_EINTR, /* never more than three in a row: for ever would be for ever */
    SIM_FAULT_SHORT, /* transfers half of what was asked for */
    SIM_FAULT_LOST,  /* does it and answers EIO, as a server whose answer is lost */
    SIM_FAULT_GONE,  /* does the first one and answers EIO, does not do those that follow */
    SIM_FAULT_MEMORY,
    SIM_FAULTS
};
const char *sim_fault_name(enum sim_fault_kind kind);
/* Could this call fail in this way? */
bool sim_fault_fits(enum sim_fault_kind kind, enum sim_call call);

#define SIM_FOREVER UINT64_MAX

struct sim_fault {
    enum sim_fault_kind kind;
    uint64_t first, count; /* the calls (for MEMORY, the allocations) that fail; 1 is the first */
};

/* A process. One thread runs it (the test's own, where there is only one). */
struct sim_proc {
    const char *name;
    int id;
    void (*body)(struct sim_proc *proc);
    void *arg;
    struct weir_rng rng; /* for the body */

    /* What befalls it; zero: nothing. It is held so long, or until nobody else can go on. */
    uint64_t kill_at;      /* this call of its own it does not survive */
    uint64_t hold_call;    /* before this call it is held, */
    uint64_t hold_call_ns; /* so long, */
    uint64_t hold_boot;    /* and right after it read the boot-time clock so often, */
    uint64_t hold_boot_ns; /* so long, */
    uint64_t hold_link;    /* and right after it tried to make so many links, */
    uint64_t hold_link_ns; /* so long. */
    bool hold_paused;      /* like a paused machine: its boot-time clock stands still meanwhile */
    int64_t real_skew_ns;

    /* The scheduler's. */
    uint64_t calls, boots, links, held_since_ns, held_ns, waits_for, boot_lag_ns;
    bool dead, done, held, waiting;
    sem_t turn;
    pthread_t thread;
};
extern _Thread_local struct sim_proc *sim_self;

enum { SIM_TRACE_MAX = 4096 };

struct sim {
    struct sim_fs *fs;
    struct weir_rng chance, entropy, weather; /* scheduling; random bytes; the page cache */
    uint64_t clock_ns;
    uint64_t calls, allocs;
    uint64_t cut_after; /* the power goes when so many calls were made */
    bool off;           /* no power: nothing has any effect */
    struct sim_fault fault;
    unsigned interrupted;         /* in a row */
    uint8_t trace[SIM_TRACE_MAX]; /* which calls were made, from call 1 on */
    struct sim_proc *procs;       /* NULL: only the test's own thread */
    unsigned procs_count, stay_percent;
};
extern struct sim sim;
extern const struct weir_sys sim_sys;

/* Starts the machine with an empty disk, or with one it takes over. */
void sim_start(uint64_t seed, struct sim_fs *disk);
/* Frees everything and puts the real table back. */
void sim_stop(void);
/* Cuts the power if it is still there, draws what survived, and starts again. */
void sim_reboot(uint64_t seed);
/* Time goes by. */
void sim_sleep(uint64_t ns);
uint64_t sim_clock(enum weir_clock clock);

/* What a call is to do. */
struct sim_verdict {
    int code;     /* answer this, do nothing */
    bool lost;    /* do it and answer -EIO */
    bool shorten; /* transfer half */
};
struct sim_verdict sim_enter(enum sim_call call);
bool sim_memory_fails(void);

#endif
