/* cmd_plan_checkpoint.c - weir plan checkpoint: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_PARAMETERS,      PLAN_SAVE,     PLAN_STATE,         PLAN_WEIGHT_BYTES,
    PLAN_OPTIMIZER_BYTES, PLAN_INTERVAL, PLAN_WRITE_RATE,    PLAN_STALL_MAX,
    PLAN_SERVER,          PLAN_GPUS,     PLAN_GPUS_PER_NODE, PLAN_NETWORK,
    PLAN_SNAPSHOT,        PLAN_GPU_USD,  PLAN_FROM,          {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_checkpoint(&answer, &plan_in));
}

const struct command cmd_plan_checkpoint = {
    .name = "plan checkpoint",
    .operands = "",
    .summary = "Compute the size, rate and stall of checkpoints",
    .about = "The size of a model's checkpoint by what it holds of each parameter, what "
             "storage must take on average, how long training stands still if it waits for the "
             "save and if the save goes on in the background, and what that costs.",
    .example = "weir plan checkpoint --parameters 70B --state weights\n"
               "weir plan checkpoint --parameters 175B --state moments --interval 30min \\\n    "
               "--gpus 1024 --write-rate 100GB/s",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
