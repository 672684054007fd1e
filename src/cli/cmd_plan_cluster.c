/* cmd_plan_cluster.c - weir plan cluster: all of it put together, see src/plan/cluster.h. */
#include <errno.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/plan.h"
#include "cli/plan_cluster.h"
#include "cli/target.h"
#include "util/err.h"

static const struct weir_opt options[] = {
    PLAN_GPUS,
    PLAN_PARAMETERS,
    PLAN_CORPUS,
    {"html", 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(html), NULL, "FILE",
     "also write a page with a picture; FILE is replaced", 0, 0},
    PLAN_GPUS_PER_NODE,
    PLAN_STATE,
    PLAN_WEIGHT_BYTES,
    PLAN_OPTIMIZER_BYTES,
    PLAN_SAVE,
    PLAN_INTERVAL,
    PLAN_ARCHIVE,
    PLAN_KEEP,
    PLAN_TOKENS_PER_S,
    PLAN_TOKEN_BYTES,
    PLAN_TFLOPS,
    PLAN_FLOPS_SHARE,
    PLAN_EPOCHS,
    PLAN_DEPTH,
    PLAN_WORKERS,
    PLAN_BATCH_BYTES,
    PLAN_GPU_MEMORY,
    PLAN_NODE_MEMORY,
    PLAN_SNAPSHOT,
    PLAN_NETWORK,
    PLAN_NVME,
    PLAN_NVME_READ,
    PLAN_NVME_WRITE,
    PLAN_NVME_DEVICES,
    PLAN_DEVICE,
    PLAN_TBW,
    PLAN_AMPLIFICATION,
    PLAN_READ_RATE,
    PLAN_WRITE_RATE,
    PLAN_CAPACITY,
    PLAN_OBJECT_RATE,
    PLAN_NODE_MTBF,
    PLAN_MTBF,
    PLAN_RESTART,
    PLAN_GPU_USD,
    PLAN_FROM,
    {0},
};

static struct weir_plan_cluster cluster;
static struct weir_plan_answer answer;

static void draw(FILE *out, const void *arg)
{
    (void)arg;
    plan_cluster_page(out, &cluster, &answer);
}

static int run(struct cli *cli)
{
    int code = plan_read(cli);
    if (code)
        return code;
    code = weir_plan_cluster(&cluster, &plan_in);
    if (code)
        return plan_answer(cli, &answer, code);
    weir_plan_cluster_answer(&answer, &cluster, &plan_in);
    if (plan_in.html)
        code = target_draw_file(plan_in.html, draw, NULL);
    if (code)
        return code;
    plan_show_question(cli, &answer);
    if (!cli->json && !cli->quiet)
        plan_cluster_show(&cluster);
    plan_show_figures(cli, &answer);
    if (cli->json) {
        cli->doc = plan_json(&answer);
        plan_cluster_json(cli->doc, &cluster);
    }
    return 0;
}

const struct command cmd_plan_cluster = {
    .name = "plan cluster",
    .operands = "",
    .summary = "Plan the storage of a whole cluster",
    .about = "Puts the other plans together: what every tier (GPU memory, DRAM, NVMe, shared "
             "storage, object store) must hold and how fast data and checkpoints flow between "
             "them, beside what there is; the share of time that is lost, what a month costs, how "
             "long the NVMe lasts, and what breaks first. A profile is taken for the NVMe of a "
             "node. weir plan simulate plays such a job.",
    .example = "weir plan cluster --gpus 512 --parameters 70B --corpus 20TB\n"
               "weir plan cluster --file plan.json --html plan.html\n"
               "weir plan cluster --file plan.json --gpus 4096 --json | jq .limits",
    .json = "as of the other plans, and tiers: an array of name, units, need_bytes, have_bytes, "
            "usd_per_month, holds; flows: an array of name, from, to, need_bytes_per_s, "
            "have_bytes_per_s; limits: an array of name, headroom, the nearest first",
    .options = options,
    .fields = &plan_in,
    .run = run,
};
