/* cmd_plan_cliff.c - weir plan cliff: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_CACHE,      PLAN_FAST,     PLAN_NATIVE,       PLAN_SAVE,
    PLAN_PARAMETERS, PLAN_STATE,    PLAN_WEIGHT_BYTES, PLAN_OPTIMIZER_BYTES,
    PLAN_DEVICES,    PLAN_INTERVAL, PLAN_FROM,         {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_cliff(&answer, &plan_in));
}

const struct command cmd_plan_cliff = {
    .name = "plan cliff",
    .operands = "",
    .summary = "Compute when writes fall off the SLC cache",
    .about = "A device takes writes fast until its SLC cache is full, then at the rate of what "
             "is behind it. Says when a checkpoint falls off, how long it takes, which rate "
             "limit avoids it, and, with --interval, whether the cache is empty again for the "
             "next one. weir bench measures the three figures, and --profile takes them from "
             "there.",
    .example = "weir plan cliff --checkpoint 140GB --slc-cache 100GB \\\n    --fast-rate 6.5GB/s "
               "--native-rate 1.5GB/s --interval 10min",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
