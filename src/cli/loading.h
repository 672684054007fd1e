/* loading.h - reading datasets as a trainer does, for the commands that measure it: the options
 * that say how, opening what was named, and one run, with what it took.
 *
 * All time of a run is either waited for a batch, by cause (weir_loader_stats), or the consumer's
 * own: from getting a batch to asking for the next one.
 */
#ifndef WEIR_CLI_LOADING_H
#define WEIR_CLI_LOADING_H

#include "cli/cli.h"
#include "cli/dataset.h"

enum { LOADING_PARTS_MAX = 32, LOADING_FIELDS_MAX = 256 };

struct loading_opts {
    struct dataset_opts data;
    uint64_t seed, lanes, memory, dp_rank, dp_size, work_ns;
    const char *window, *buffered, *fields;
    bool no_shuffle;
};

struct loading {
    struct cli *cli;
    weir_data *data[LOADING_PARTS_MAX]; /* one for each operand */
    uint32_t count;
    uint64_t samples, sample_bytes; /* of an epoch: of all of them together */
    uint64_t weights[LOADING_PARTS_MAX];
    double shares[LOADING_PARTS_MAX]; /* as given; their sum is 1 */
    weir_loader_options how;          /* what is the same in every run */
    char *fields_text;
    const char *fields[LOADING_FIELDS_MAX];
    bool is_noted; /* which of them the first batch lacks */
};

/* Opens the operands as one dataset, or a mixture. weights: "3,1", or NULL: all alike. */
int loading_open(struct loading *loading, struct cli *cli, const struct loading_opts *opts,
                 const char *weights);
void loading_close(struct loading *loading);

/* When a run ends, beside the end of the data. */
struct loading_bounds {
    uint64_t work_ns;   /* the consumer's, for each batch */
    uint64_t time_ns;   /* of it all; 0: no bound */
    uint64_t steady_ns; /* since the first batch; 0: no bound */
};

/* What a run took. Steady: since the first batch was there. */
struct loading_result {
    weir_loader_stats stats;
    weir_loader_part parts[LOADING_PARTS_MAX];
    uint64_t position;
    uint64_t time_ns, own_ns;
    uint64_t first_ns, last_ns; /* when the first and the last batch were there */
    uint64_t waited;            /* batches that were not there when they were asked for */
    uint64_t steady_ns;
    uint64_t steady_stall_ns[WEIR_STALLS];
    uint64_t storage_bytes; /* read from a device or network meanwhile, as the kernel counts it */
};

/* Opens a loader and takes batches: 0 at the end or a bound; -EINTR when asked to stop, and other
 * failures. The result is what was until then, zeros if it could not begin. */
int loading_run(struct loading *loading, const weir_loader_options *how,
                const struct loading_bounds *bounds, struct loading_result *out);

/* All waits of a run. */
uint64_t loading_stall_ns(const uint64_t stall_ns[WEIR_STALLS]);
/* "reading", "decoding", "the queue": what was waited for. */
const char *loading_stall_name(int stall);
/* "cold", "warm", "partly warm": where the bytes came from; "" if nothing was read. */
const char *loading_warmth(const struct loading_result *result);

/* The options of every command that does; `at` is where its struct loading_opts is. */
#define LOADING_OPTIONS(at)                                                                        \
    DATASET_OPTIONS((at) + offsetof(struct loading_opts, data)),                                   \
        {"seed", 0,   WEIR_OPT_NUMBER, (at) + offsetof(struct loading_opts, seed),                 \
         "0",    "N", "of the order",  0,                                                          \
         0},                                                                                       \
        {"no-shuffle",                                                                             \
         0,                                                                                        \
         WEIR_OPT_FLAG,                                                                            \
         (at) + offsetof(struct loading_opts, no_shuffle),                                         \
         "no",                                                                                     \
         NULL,                                                                                     \
         "read in the order of the shards",                                                        \
         0,                                                                                        \
         0},                                                                                       \
        {"buffered",                                                                               \
         0,                                                                                        \
         WEIR_OPT_TEXT,                                                                            \
         (at) + offsetof(struct loading_opts, buffered),                                           \
         NULL,                                                                                     \
         "yes|no",                                                                                 \
         "read through the kernel's cache, or around it (default: through it what takes at most "  \
         "half of the memory)",                                                                    \
         0,                                                                                        \
         0},                                                                                       \
        {"window",                                                                                 \
         0,                                                                                        \
         WEIR_OPT_TEXT,                                                                            \
         (at) + offsetof(struct loading_opts, window),                                             \
         NULL,                                                                                     \
         "N|full",                                                                                 \
         "samples that are shuffled among each other (default: 2 MiB of them)",                    \
         0,                                                                                        \
         0},                                                                                       \
        {"lanes",                                                                                  \
         0,                                                                                        \
         WEIR_OPT_NUMBER,                                                                          \
         (at) + offsetof(struct loading_opts, lanes),                                              \
         "0",                                                                                      \
         "N",                                                                                      \
         "windows that are drawn from at a time; 0: 64, fewer of compressed shards",               \
         0,                                                                                        \
         65536},                                                                                   \
        {"memory",                                                                                 \
         0,                                                                                        \
         WEIR_OPT_SIZE,                                                                            \
         (at) + offsetof(struct loading_opts, memory),                                             \
         "512M",                                                                                   \
         "SIZE",                                                                                   \
         "bound of samples and batches in memory",                                                 \
         1 << 20,                                                                                  \
         0},                                                                                       \
        {"fields",                                                                                 \
         0,                                                                                        \
         WEIR_OPT_TEXT,                                                                            \
         (at) + offsetof(struct loading_opts, fields),                                             \
         NULL,                                                                                     \
         "A,B",                                                                                    \
         "only these fields (default: all)",                                                       \
         0,                                                                                        \
         0},                                                                                       \
        {"dp-rank",                                                                                \
         0,                                                                                        \
         WEIR_OPT_NUMBER,                                                                          \
         (at) + offsetof(struct loading_opts, dp_rank),                                            \
         "0",                                                                                      \
         "R",                                                                                      \
         "read as this rank of --dp-size",                                                         \
         0,                                                                                        \
         4294967294.0},                                                                            \
        {"dp-size",                                                                                \
         0,                                                                                        \
         WEIR_OPT_NUMBER,                                                                          \
         (at) + offsetof(struct loading_opts, dp_size),                                            \
         "1",                                                                                      \
         "N",                                                                                      \
         "ranks that get different samples",                                                       \
         1,                                                                                        \
         4294967295.0},                                                                            \
    {                                                                                              \
        "work", 0, WEIR_OPT_DURATION, (at) + offsetof(struct loading_opts, work_ns), "0", "TIME",  \
            "a consumer that takes so long for each batch, such as 30ms", 0, 3600                  \
    }

#endif
