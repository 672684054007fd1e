/* ckpt.h - what the commands about checkpoints share: how one is named on the command line, how one
 * looks as JSON, and what is said of those that went.
 */
#ifndef WEIR_CLI_CKPT_H
#define WEIR_CLI_CKPT_H

#include "cli/cli.h"

/* A step that people wrote: digits, or "newest". A usage error if it is something else. */
int ckpt_step(struct cli *cli, uint64_t *step, const char *text);
/* Opens a checkpoint: which is a step, a name, "newest", or NULL for that. */
int ckpt_open(struct cli *cli, weir_restore **out, const char *run, const char *which);

/* "best, release", or "" */
const char *ckpt_names(char *out, size_t size, const weir_ckpt_info *info);
json_t *ckpt_json(const weir_ckpt_info *info);

/* Checkpoints, copied while they are listed. */
struct ckpt_row {
    weir_ckpt_info info; /* without names */
    char *prefix;
    json_t *json;
};
struct ckpt_rows {
    struct ckpt_row *row;
    size_t count;
};
/* arg is the struct. */
int ckpt_rows_add(void *arg, const weir_ckpt_info *info);
void ckpt_rows_free(struct ckpt_rows *rows);

/* What became of those that were to go. */
void ckpt_report(struct cli *cli, const struct ckpt_rows *rows, const weir_prune_result *result,
                 bool dry_run, uint64_t grace_s);

/* The options of the commands that let some go. */
#define CKPT_REPORT_JSON                                                                           \
    "dry_run, checkpoints (those that go, as weir ckpt ls has them), retired, "                    \
    "retired_bytes, deleted, deleted_bytes, waiting"
#define CKPT_OPT_GRACE(at)                                                                         \
    {                                                                                              \
        "grace", 0, WEIR_OPT_DURATION, at, "10min", "TIME",                                        \
            "how long one that is retired stays for slow readers; 0: none", 0, 0                   \
    }
#define CKPT_OPT_DRY_RUN(at)                                                                       \
    {                                                                                              \
        "dry-run", 'n', WEIR_OPT_FLAG, at, "no", NULL, "say which would go, and change nothing",   \
            0, 0                                                                                   \
    }

#endif
