/* cmd_plan_read.c - weir plan read: see src/plan/. */
#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_GPUS,
    PLAN_GPUS_PER_NODE,
    PLAN_TOKENS_PER_S,
    PLAN_TOKEN_BYTES,
    PLAN_SAMPLES_PER_S,
    PLAN_SAMPLE_BYTES,
    PLAN_BATCHES_PER_S,
    PLAN_BATCH_BYTES,
    PLAN_EFFICIENCY,
    PLAN_CORPUS,
    PLAN_EPOCHS,
    PLAN_OVER,
    PLAN_READ_RATE,
    PLAN_NETWORK,
    PLAN_SERVER,
    PLAN_TFLOPS,
    PLAN_DEPTH,
    PLAN_WORKERS,
    PLAN_LATENCY,
    PLAN_STEP,
    PLAN_GPU_USD,
    PLAN_FROM,
    {0},
};

static struct weir_plan_answer answer;

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    return code ? code : plan_answer(cli, &answer, weir_plan_ask_read(&answer, &plan_in));
}

const struct command cmd_plan_read = {
    .name = "plan read",
    .operands = "",
    .summary = "Compute how fast a job must read",
    .about = "GPUs times what each consumes (tokens, samples or batches a second), or a corpus "
             "over a time. With --read-rate, whether storage keeps up, and what limits it; "
             "with --latency and --step, how deep to prefetch. The published rule of 1 GB/s "
             "for each 100 TFLOP/s is shown beside it when --tflops is given.",
    .example = "weir plan read --gpus 512 --tokens-per-s 100K --read-rate 100GB/s\n"
               "weir plan read --gpus 512 --corpus 2TB --over 30d\n"
               "weir plan read --file plan.json --latency 20ms --step 100ms",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
