/* cmd_plan_durability.c - weir plan durability: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_AFR, PLAN_COPIES, PLAN_DATA, PLAN_PARITY, PLAN_REPAIR, PLAN_GROUPS, PLAN_FROM, {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_durability(&answer, &plan_in));
}

const struct command cmd_plan_durability = {
    .name = "plan durability",
    .operands = "",
    .summary = "Compute the chance to lose data",
    .about = "Copies and erasure codes, by a Markov chain in which lost devices are repaired; "
             "beside it the textbook's p^r, which repairs nothing.",
    .example = "weir plan durability --afr 0.04 --copies 3 --repair 24h\n"
               "weir plan durability --data 8 --parity 3 --groups 1000",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
