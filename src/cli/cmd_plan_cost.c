/* cmd_plan_cost.c - weir plan cost: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_SIZE,   PLAN_S3,         PLAN_GLACIER, PLAN_EBS, PLAN_LUSTRE,
    PLAN_EGRESS, PLAN_EGRESS_USD, PLAN_FROM,    {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_cost(&answer, &plan_in));
}

const struct command cmd_plan_cost = {
    .name = "plan cost",
    .operands = "",
    .summary = "Compute what data cost a month",
    .about = "A size on every tier of the catalog, or a layout on several of them, with "
             "egress.",
    .example = "weir plan cost --size 10PB\n"
               "weir plan cost --lustre 500TB --s3 9.5PB --egress 50TB",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
