/* catalog.c - see catalog.h. */
#include "plan/catalog.h"

#include <errno.h>
#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct weir_plan_device weir_plan_devices[] = {
    {"hdd", "SATA HDD", 0.2e9, 0.2e9, 200, 200, 20, 0},
    {"sata-ssd", "SATA SSD, TLC", 0.55e9, 0.52e9, 95e3, 85e3, 80, 600e12},
    {"nvme", "NVMe Gen4, TLC", 7.0e9, 6.5e9, 1e6, 700e3, 120, 700e12},
    {"nvme-enterprise", "NVMe Gen4, enterprise", 7.0e9, 4.0e9, 1.5e6, 500e3, 350, 12000e12},
};
const size_t weir_plan_device_count = COUNT(weir_plan_devices);

const struct weir_plan_link weir_plan_links[] = {
    {"gen3", "PCIe Gen3 x4", 4e9},
    {"gen4", "PCIe Gen4 x4", 8e9},
    {"gen5", "PCIe Gen5 x4", 16e9},
};
const size_t weir_plan_link_count = COUNT(weir_plan_links);

const struct weir_plan_price weir_plan_prices[] = {
    {"glacier", "S3 Glacier", 0.004},
    {"s3", "S3 Standard", 0.023},
    {"ebs", "EBS gp3", 0.08},
    {"lustre", "FSx for Lustre", 0.14},
};
const size_t weir_plan_price_count = COUNT(weir_plan_prices);

const struct weir_plan_tier weir_plan_tiers[] = {
    {"L1 cache", "core", 0, 0, 1e-9, 1e-9},
    {"HBM", "GPU", 80e9, 3.4e12, 0, 0},
    {"DRAM", "node", 2e12, 200e9, 100e-9, 100e-9},
    {"CXL memory", "node", 0, 0, 0, 1e-6},
    {"NVMe", "node", 30e12, 15e9, 100e-6, 100e-6},
    {"NVMe-oF (added)", "network", 0, 0, 0, 100e-6},
    {"SATA SSD", "device", 0, 0, 500e-6, 500e-6},
    {"HDD", "device", 0, 0, 10e-3, 10e-3},
    {"network storage", "site", 1e15, 100e9, 0, 0},
    {"object store, cold", "site", 1e18, 10e9, 5e-3, 50e-3},
};
const size_t weir_plan_tier_count = COUNT(weir_plan_tiers);

const struct weir_plan_shared weir_plan_shares[] = {
    {"Lustre", 1e12, 10e12},    {"Storage Scale", 1e12, 30e12}, {"Weka", 10e12, 10e12},
    {"BeeGFS", 0.1e12, 0.1e12}, {"EFS", 0.01e12, 0.01e12},      {"DAOS", 1.4e12, 31e12},
};
const size_t weir_plan_share_count = COUNT(weir_plan_shares);

const struct weir_plan_note weir_plan_volumes[] = {
    {"1-second metrics of 1,000 runs", 10e9, "a day"},
    {"system metrics", 50e9, "a day"},
    {"gradient histograms", 1e12, "a run"},
};
const size_t weir_plan_volume_count = COUNT(weir_plan_volumes);

const struct weir_plan_note weir_plan_budgets[] = {
    {"ad ranking", 5e-3, "a feature lookup"},
    {"recommendation", 10e-3, "a feature lookup"},
    {"fraud detection", 50e-3, "a feature lookup"},
};
const size_t weir_plan_budget_count = COUNT(weir_plan_budgets);

static const char *near_text(const struct weir_suggestion *s, const char *else_text)
{
    return s->best ? s->best : else_text;
}

const struct weir_plan_device *weir_plan_device_find(const char *name)
{
    struct weir_suggestion s = {.typed = name};
    for (size_t i = 0; i < weir_plan_device_count; i++) {
        if (!strcmp(weir_plan_devices[i].name, name))
            return &weir_plan_devices[i];
        weir_suggest_add(&s, weir_plan_devices[i].name);
    }
    weir_fail(EINVAL,
              "device: there is no '%s' in the catalog: did you mean %s? (see: weir plan "
              "catalog)",
              name, near_text(&s, "nvme"));
    return NULL;
}

const struct weir_plan_link *weir_plan_link_find(const char *name)
{
    for (size_t i = 0; i < weir_plan_link_count; i++)
        if (!strcmp(weir_plan_links[i].name, name))
            return &weir_plan_links[i];
    weir_fail(EINVAL, "pcie: '%s' is not one of gen3, gen4 and gen5", name);
    return NULL;
}
