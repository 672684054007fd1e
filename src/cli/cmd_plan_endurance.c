/* cmd_plan_endurance.c - weir plan endurance: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_SAVE,
    PLAN_PARAMETERS,
    PLAN_STATE,
    PLAN_WEIGHT_BYTES,
    PLAN_OPTIMIZER_BYTES,
    PLAN_INTERVAL,
    PLAN_OVER,
    PLAN_AMPLIFICATION,
    PLAN_DEVICE,
    PLAN_DEVICES,
    PLAN_DEVICE_BYTES,
    PLAN_TBW,
    PLAN_FROM,
    {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_endurance(&answer, &plan_in));
}

const struct command cmd_plan_endurance = {
    .name = "plan endurance",
    .operands = "",
    .summary = "Compute how long devices last under checkpoints",
    .about = "Bytes of checkpoints times write amplification, against what the devices may "
             "take in their life (TBW).",
    .example = "weir plan endurance --checkpoint 140GB --interval 30min --over 90d\n"
               "weir plan endurance --parameters 70B --interval 1h \\\n    --device "
               "nvme-enterprise --devices 8",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
