/* cmd_plan_raid.c - weir plan raid: see src/plan/. */
#include <errno.h>

#include "cli/commands.h"
#include "cli/plan.h"

static const struct weir_opt options[] = {
    PLAN_DEVICE,    PLAN_DEVICES,    PLAN_DEVICE_BYTES, PLAN_PCIE, PLAN_AFR,
    PLAN_READ_RATE, PLAN_WRITE_RATE, PLAN_FROM,         {0},
};

static struct weir_plan_answer answer;

/* What was measured, as if it were in the catalog. */
static struct weir_plan_device measured_device(const struct weir_profile *profile)
{
    return (struct weir_plan_device){
        .name = "measured",
        .about = "as measured",
        .read_bytes_per_s = profile->read_bytes_per_s,
        .write_bytes_per_s = profile->write_bytes_per_s,
        .read_iops = profile->random_read_iops,
        .write_iops = profile->random_write_iops,
    };
}

static int run(struct cli *cli)
{
    struct weir_plan_device measured;
    const struct weir_profile *profile;
    int code = plan_read(cli);
    if (code)
        return code;
    profile = plan_profile();
    measured = profile ? measured_device(profile) : (struct weir_plan_device){0};
    const struct weir_plan_device *device =
        profile ? &measured : weir_plan_device_find(plan_in.device);
    code = device ? weir_plan_ask_raid(&answer, &plan_in, device) : -EINVAL;
    return plan_answer(cli, &answer, code);
}

const struct command cmd_plan_raid = {
    .name = "plan raid",
    .operands = "",
    .summary = "Compute what striped devices give",
    .about = "Rates, operations, capacity, price and risk of devices of the catalog in a "
             "RAID-0, each behind PCIe lanes of its own; with --read-rate or --write-rate, how "
             "many are needed for that. With --profile, the device is what was measured.",
    .example = "weir plan raid --device nvme --devices 4\n"
               "weir plan raid --device nvme-enterprise --write-rate 50GB/s --pcie gen5",
    .json = PLAN_JSON,
    .options = options,
    .fields = &plan_in,
    .run = run,
};
