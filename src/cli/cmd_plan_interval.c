/* cmd_plan_interval.c - weir plan interval: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_COST,
    PLAN_PARAMETERS,
    PLAN_SAVE,
    PLAN_STATE,
    PLAN_WEIGHT_BYTES,
    PLAN_OPTIMIZER_BYTES,
    PLAN_WRITE_RATE,
    PLAN_MTBF,
    PLAN_NODE_MTBF,
    PLAN_GPUS,
    PLAN_GPUS_PER_NODE,
    PLAN_NETWORK,
    PLAN_RESTART,
    PLAN_INTERVAL,
    PLAN_GPU_USD,
    PLAN_FROM,
    {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_interval(&answer, &plan_in));
}

const struct command cmd_plan_interval = {
    .name = "plan interval",
    .operands = "",
    .summary = "Compute how often to save",
    .about = "The interval between checkpoints that loses the least time (Young, Daly), from "
             "how long a save holds training up and how often the job fails; and what is lost "
             "in saves, in work done again and in restarts. With --interval, what that one "
             "loses.",
    .example = "weir plan interval --stall 20s --gpus 1024 --node-mtbf 5y\n"
               "weir plan interval --checkpoint 1.75TB --write-rate 100GB/s --mtbf 6h",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
