/* cmd_plan_format.c - weir plan format: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_KIND,   PLAN_ACCESS,    PLAN_SAMPLES, PLAN_SAMPLE_BYTES, PLAN_SHARD,
    PLAN_DEVICE, PLAN_READ_RATE, PLAN_IOPS,    PLAN_FROM,         {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_format(&answer, &plan_in));
}

const struct command cmd_plan_format = {
    .name = "plan format",
    .operands = "",
    .summary = "Choose the format of a dataset",
    .about = "From what the samples are, how large and how they are read: the format to pack "
             "them into, how many shards, what single files cost on that storage, and how to "
             "mount it.",
    .example = "weir plan format --kind images --samples 1.3M --sample-bytes 110kB\n"
               "weir plan format --kind text --samples 1B --sample-bytes 4K --device hdd",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
