/* landing.c - see landing.h. */
#include "store/landing.h"

#include "util/sys.h"

enum {
    STRETCHES = 4,    /* in turns; a pause of the machine spoils one, so the better of two counts */
    TIMED_UNITS = 32, /* some 10 ms of a fast device */
};

/* A trial sends 96 units the slower way, at a depth of 16. Of 8,192 that is 1 % of the time even if
 * that way takes twice as long; and a wrong verdict lasts a few seconds of reading. */
#define BYTES_BETWEEN_TRIALS (8ll << 30)

static void begin_stretch(struct weir_trial *trial, unsigned stretch, unsigned depth)
{
    trial->stretch = stretch;
    trial->way = stretch % 2 ? WEIR_WAY_POOL : WEIR_WAY_IN_PLACE;
    trial->units_left = depth + TIMED_UNITS;
}

enum weir_way weir_landing_choose(struct weir_landing *landing, struct weir_trial *trial,
                                  size_t bytes, uint64_t units_to_go, unsigned depth)
{
    if (landing->forced)
        return landing->forced;
    if (trial->way)
        return trial->way;
    /* All stretches, and `depth` units under way until the end of the last: 208 MiB by default. */
    bool long_enough = units_to_go >= STRETCHES * (depth + TIMED_UNITS) + depth;
    bool due = atomic_fetch_sub(&landing->bytes_left, (long long)bytes) <= 0;
    /* Of several readers, the one that finds the old number is the one that tries. */
    if (due && long_enough && atomic_exchange(&landing->bytes_left, BYTES_BETWEEN_TRIALS) <= 0) {
        begin_stretch(trial, 0, depth);
        return trial->way;
    }
    return (enum weir_way)atomic_load(&landing->way);
}

void weir_landing_count(struct weir_landing *landing, struct weir_trial *trial, unsigned depth)
{
    if (!trial->way)
        return;
    trial->units_left--;
    if (trial->units_left == TIMED_UNITS) /* those before went the other way */
        trial->start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    if (trial->units_left)
        return;
    uint64_t took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - trial->start_ns;
    uint64_t *best_ns = &trial->best_ns[trial->way];
    if (trial->stretch < 2 || took_ns < *best_ns)
        *best_ns = took_ns;
    if (trial->stretch + 1 < STRETCHES) {
        begin_stretch(trial, trial->stretch + 1, depth);
        return;
    }
    /* A tenth must be gained: the copy costs processor time. */
    bool pool_wins = trial->best_ns[WEIR_WAY_POOL] * 10 < trial->best_ns[WEIR_WAY_IN_PLACE] * 9;
    atomic_store(&landing->way, pool_wins ? WEIR_WAY_POOL : WEIR_WAY_IN_PLACE);
    trial->way = WEIR_WAY_UNKNOWN;
}

void weir_landing_end(struct weir_landing *landing, const struct weir_trial *trial)
{
    if (trial->way)
        atomic_store(&landing->bytes_left, 0);
}
