/* keys.h - what the planner may be told: one struct, one table. The same declaration is an option
 * of commands (--gpu-memory) and a key of a plan file ("cluster": {"gpu_memory": "80GB"}), with one
 * type, default, range and sentence of help.
 */
#ifndef WEIR_PLAN_KEYS_H
#define WEIR_PLAN_KEYS_H

#include "util/opt.h"

/* Durations are in nanoseconds, as options have them. 0 and NULL: not told. */
struct weir_plan_in {
    /* model */
    uint64_t parameters, save_bytes;
    double weight_bytes, optimizer_bytes, tflops, flops_share;
    const char *state;
    /* data */
    uint64_t tokens_per_s, corpus_bytes, sample_bytes, batch_bytes, samples;
    uint64_t over_ns, latency_ns, step_ns;
    double token_bytes, samples_per_s, batches_per_s, efficiency, epochs;
    uint64_t depth, workers, shard_bytes;
    const char *kind, *access;
    /* cluster */
    uint64_t gpus, gpus_per_node, gpu_memory_bytes, node_memory_bytes;
    uint64_t gpu_memory_rate, node_memory_rate;
    uint64_t node_mtbf_ns, mtbf_ns, restart_ns, network_rate, snapshot_rate;
    double usd_per_gpu_hour;
    /* storage */
    uint64_t read_rate, write_rate, object_rate, server_rate;
    uint64_t nvme_bytes, nvme_read_rate, nvme_write_rate, nvme_devices, capacity_bytes;
    uint64_t interval_ns, cost_ns, archive_ns, keep, stall_ns;
    uint64_t devices, device_bytes, cache_bytes, fast_rate, native_rate, tbw_bytes;
    double amplification, iops;
    const char *device, *pcie;
    /* safety */
    double afr;
    uint64_t copies, data, parity, repair_ns, groups;
    /* costs */
    uint64_t size_bytes, glacier_bytes, s3_bytes, ebs_bytes, lustre_bytes, egress_bytes;
    double egress_usd;
    /* simulate */
    uint64_t steps, save_every, queue, staging_bytes, save_rate, spares, seed, runs, events_max;
    uint64_t detect_ns, node_repair_ns;
    double loss_share;
    bool sync, no_failures;
    const char *data_on, *save_to, *intervals;
    /* no keys: where the others come from (flags count more than the file, the file more than a
     * measured profile), and where a page and charts go to */
    const char *file, *profile, *html, *svg;
};

struct weir_plan_key {
    const char *section;
    struct weir_opt opt;
};
extern const struct weir_plan_key weir_plan_keys[]; /* ended by a NULL section */

#define WEIR_PLAN_AT(field) offsetof(struct weir_plan_in, field)
#define WEIR_PLAN_COUNT_OPT(name, field, def, help, min, max)                                      \
    {                                                                                              \
        name, 0, WEIR_OPT_COUNT, WEIR_PLAN_AT(field), def, "COUNT", help, min, max                 \
    }
#define WEIR_PLAN_SIZE_OPT(name, field, def, help)                                                 \
    {                                                                                              \
        name, 0, WEIR_OPT_SIZE, WEIR_PLAN_AT(field), def, "SIZE", help, 1, 9e18                    \
    }
#define WEIR_PLAN_RATE_OPT(name, field, def, help)                                                 \
    {                                                                                              \
        name, 0, WEIR_OPT_RATE, WEIR_PLAN_AT(field), def, "RATE", help, 1, 1e17                    \
    }
#define WEIR_PLAN_TIME_OPT(name, field, def, help)                                                 \
    {                                                                                              \
        name, 0, WEIR_OPT_DURATION, WEIR_PLAN_AT(field), def, "TIME", help, 1e-9, 9.2e9            \
    }
#define WEIR_PLAN_RATIO_OPT(name, field, def, help, min, max)                                      \
    {                                                                                              \
        name, 0, WEIR_OPT_RATIO, WEIR_PLAN_AT(field), def, "X", help, min, max                     \
    }
#define WEIR_PLAN_TEXT_OPT(name, field, def, help)                                                 \
    {                                                                                              \
        name, 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(field), def, "NAME", help, 0, 0                       \
    }

/* model */
#define PLAN_PARAMETERS                                                                            \
    WEIR_PLAN_COUNT_OPT("parameters", parameters, NULL, "of the model: 70B", 1, 1e16)
#define PLAN_SAVE WEIR_PLAN_SIZE_OPT("checkpoint", save_bytes, NULL, "its size, if it is known")
#define PLAN_STATE                                                                                 \
    WEIR_PLAN_TEXT_OPT("state", state, "mixed",                                                    \
                       "what a checkpoint holds: weights, moments, fp32, mixed, gradients")
#define PLAN_WEIGHT_BYTES                                                                          \
    WEIR_PLAN_RATIO_OPT("weight-bytes", weight_bytes, NULL, "of a parameter, instead of --state",  \
                        0.01, 64)
#define PLAN_OPTIMIZER_BYTES                                                                       \
    WEIR_PLAN_RATIO_OPT("optimizer-bytes", optimizer_bytes, NULL,                                  \
                        "of a parameter, instead of --state", 0, 64)
#define PLAN_TFLOPS                                                                                \
    WEIR_PLAN_RATIO_OPT("tflops", tflops, NULL, "TFLOP/s of a GPU at its peak", 0.001, 1e6)
#define PLAN_FLOPS_SHARE                                                                           \
    WEIR_PLAN_RATIO_OPT("flops-share", flops_share, "0.4", "of the peak that training reaches",    \
                        0.001, 1)
/* data */
#define PLAN_TOKENS_PER_S                                                                          \
    WEIR_PLAN_COUNT_OPT("tokens-per-s", tokens_per_s, NULL, "that each GPU consumes", 1, 1e15)
#define PLAN_TOKEN_BYTES                                                                           \
    WEIR_PLAN_RATIO_OPT("token-bytes", token_bytes, "2", "of a token", 0.1, 1e6)
#define PLAN_SAMPLES_PER_S                                                                         \
    WEIR_PLAN_RATIO_OPT("samples-per-s", samples_per_s, NULL, "that each GPU consumes", 1e-6, 1e12)
#define PLAN_SAMPLE_BYTES WEIR_PLAN_SIZE_OPT("sample-bytes", sample_bytes, NULL, "of a sample")
#define PLAN_SAMPLES      WEIR_PLAN_COUNT_OPT("samples", samples, NULL, "of the dataset", 1, 1e16)
#define PLAN_BATCHES_PER_S                                                                         \
    WEIR_PLAN_RATIO_OPT("batches-per-s", batches_per_s, NULL, "that each GPU consumes", 1e-6, 1e9)
#define PLAN_BATCH_BYTES WEIR_PLAN_SIZE_OPT("batch-bytes", batch_bytes, NULL, "of a batch")
#define PLAN_EFFICIENCY                                                                            \
    WEIR_PLAN_RATIO_OPT("efficiency", efficiency, "1",                                             \
                        "share of its time in which a GPU computes", 0.001, 1)
#define PLAN_CORPUS WEIR_PLAN_SIZE_OPT("corpus", corpus_bytes, NULL, "of all data")
#define PLAN_EPOCHS                                                                                \
    WEIR_PLAN_RATIO_OPT("epochs", epochs, "1", "times that all data are read", 0.001, 1e6)
#define PLAN_OVER    WEIR_PLAN_TIME_OPT("over", over_ns, NULL, "how long it goes on")
#define PLAN_DEPTH   WEIR_PLAN_COUNT_OPT("depth", depth, "4", "batches that are prefetched", 1, 1e5)
#define PLAN_WORKERS WEIR_PLAN_COUNT_OPT("workers", workers, "8", "that prefetch", 1, 1e6)
#define PLAN_LATENCY                                                                               \
    WEIR_PLAN_TIME_OPT("latency", latency_ns, NULL, "until a batch that was asked for is there")
#define PLAN_STEP WEIR_PLAN_TIME_OPT("step", step_ns, NULL, "of training, on one batch")
#define PLAN_KIND                                                                                  \
    WEIR_PLAN_TEXT_OPT("kind", kind, NULL, "of data: tokens, images, text, tables or blobs")
#define PLAN_ACCESS                                                                                \
    WEIR_PLAN_TEXT_OPT("access", access, "shuffled", "how it is read: shuffled, sequential, random")
#define PLAN_SHARD WEIR_PLAN_SIZE_OPT("shard", shard_bytes, "256MB", "size of a shard")
/* cluster */
#define PLAN_GPUS WEIR_PLAN_COUNT_OPT("gpus", gpus, NULL, "of the job", 1, 1e7)
#define PLAN_GPUS_PER_NODE                                                                         \
    WEIR_PLAN_COUNT_OPT("gpus-per-node", gpus_per_node, "8", "of a node", 1, 1e4)
#define PLAN_GPU_MEMORY WEIR_PLAN_SIZE_OPT("gpu-memory", gpu_memory_bytes, "80GB", "of a GPU")
#define PLAN_GPU_MEMORY_RATE                                                                       \
    WEIR_PLAN_RATE_OPT("gpu-memory-rate", gpu_memory_rate, "3400GB/s", "of a GPU's memory")
#define PLAN_NODE_MEMORY                                                                           \
    WEIR_PLAN_SIZE_OPT("node-memory", node_memory_bytes, "2TB", "DRAM of a node")
#define PLAN_NODE_MEMORY_RATE                                                                      \
    WEIR_PLAN_RATE_OPT("node-memory-rate", node_memory_rate, "200GB/s", "of a node's DRAM")
#define PLAN_NETWORK                                                                               \
    WEIR_PLAN_RATE_OPT("network-rate", network_rate, "400Gbit/s", "between a node and storage")
#define PLAN_SNAPSHOT                                                                              \
    WEIR_PLAN_RATE_OPT("snapshot-rate", snapshot_rate, "25GB/s", "from a GPU to DRAM")
#define PLAN_NODE_MTBF                                                                             \
    WEIR_PLAN_TIME_OPT("node-mtbf", node_mtbf_ns, "250d", "between failures of one node")
#define PLAN_MTBF                                                                                  \
    WEIR_PLAN_TIME_OPT("mtbf", mtbf_ns, NULL, "between failures of the job, if it is known")
#define PLAN_RESTART                                                                               \
    WEIR_PLAN_TIME_OPT("restart", restart_ns, "5min", "from a failure to the next step")
#define PLAN_GPU_USD                                                                               \
    WEIR_PLAN_RATIO_OPT("gpu-usd", usd_per_gpu_hour, "2", "price of a GPU for an hour, in $", 0,   \
                        1e6)
/* storage */
#define PLAN_READ_RATE                                                                             \
    WEIR_PLAN_RATE_OPT("read-rate", read_rate, NULL, "of the shared storage, in all")
#define PLAN_WRITE_RATE                                                                            \
    WEIR_PLAN_RATE_OPT("write-rate", write_rate, NULL, "of the shared storage, in all")
#define PLAN_CAPACITY WEIR_PLAN_SIZE_OPT("capacity", capacity_bytes, "1PB", "of the shared storage")
#define PLAN_SERVER                                                                                \
    WEIR_PLAN_RATE_OPT("server-rate", server_rate, "4GB/s", "of one storage server (OST)")
#define PLAN_OBJECT_RATE                                                                           \
    WEIR_PLAN_RATE_OPT("object-rate", object_rate, "10GB/s", "of the object store, in all")
#define PLAN_NVME WEIR_PLAN_SIZE_OPT("nvme", nvme_bytes, "30TB", "NVMe of a node")
#define PLAN_NVME_READ                                                                             \
    WEIR_PLAN_RATE_OPT("nvme-read-rate", nvme_read_rate, "15GB/s", "NVMe of a node")
#define PLAN_NVME_WRITE                                                                            \
    WEIR_PLAN_RATE_OPT("nvme-write-rate", nvme_write_rate, "13GB/s", "NVMe of a node")
#define PLAN_NVME_DEVICES                                                                          \
    WEIR_PLAN_COUNT_OPT("nvme-devices", nvme_devices, "4", "NVMe devices of a node", 1, 1000)
#define PLAN_INTERVAL WEIR_PLAN_TIME_OPT("interval", interval_ns, NULL, "between two checkpoints")
#define PLAN_COST                                                                                  \
    WEIR_PLAN_TIME_OPT("stall", cost_ns, NULL, "how long a checkpoint holds training up")
#define PLAN_STALL_MAX                                                                             \
    WEIR_PLAN_TIME_OPT("stall-max", stall_ns, "20s", "longest stall that is wanted")
#define PLAN_ARCHIVE                                                                               \
    WEIR_PLAN_TIME_OPT("archive", archive_ns, "1d", "between checkpoints the object store keeps")
#define PLAN_KEEP                                                                                  \
    WEIR_PLAN_COUNT_OPT("keep", keep, "5", "checkpoints kept on the shared storage", 1, 1e6)
#define PLAN_DEVICE                                                                                \
    WEIR_PLAN_TEXT_OPT("device", device, "nvme", "of the catalog: see weir plan catalog")
#define PLAN_DEVICES      WEIR_PLAN_COUNT_OPT("devices", devices, "1", "that share it", 1, 1e6)
#define PLAN_DEVICE_BYTES WEIR_PLAN_SIZE_OPT("device-size", device_bytes, "7.5TB", "of one device")
#define PLAN_PCIE                                                                                  \
    WEIR_PLAN_TEXT_OPT("pcie", pcie, "gen4", "each device's four lanes: gen3, gen4, gen5")
#define PLAN_CACHE                                                                                 \
    WEIR_PLAN_SIZE_OPT("slc-cache", cache_bytes, NULL, "of the device: as bench finds it")
#define PLAN_FAST   WEIR_PLAN_RATE_OPT("fast-rate", fast_rate, NULL, "of writes into that cache")
#define PLAN_NATIVE WEIR_PLAN_RATE_OPT("native-rate", native_rate, NULL, "of writes beyond it")
#define PLAN_TBW                                                                                   \
    WEIR_PLAN_SIZE_OPT("tbw", tbw_bytes, NULL, "a device may take in its life (default: its row)")
#define PLAN_AMPLIFICATION                                                                         \
    WEIR_PLAN_RATIO_OPT("amplification", amplification, "1.5",                                     \
                        "of writes: 1.5 to 3 sequential, 5 to 20 random", 1, 1000)
#define PLAN_IOPS                                                                                  \
    WEIR_PLAN_RATIO_OPT("iops", iops, NULL, "of the storage (default: of --device)", 1, 1e12)
/* safety */
#define PLAN_AFR                                                                                   \
    WEIR_PLAN_RATIO_OPT("afr", afr, "0.04", "chance that a device fails within a year", 1e-9, 0.999)
#define PLAN_COPIES WEIR_PLAN_COUNT_OPT("copies", copies, "3", "of everything", 1, 20)
#define PLAN_DATA   WEIR_PLAN_COUNT_OPT("data", data, "8", "parts of an erasure code", 1, 1000)
#define PLAN_PARITY                                                                                \
    WEIR_PLAN_COUNT_OPT("parity", parity, "3", "parts of an erasure code that may be lost", 0, 20)
#define PLAN_REPAIR                                                                                \
    WEIR_PLAN_TIME_OPT("repair", repair_ns, "24h", "until a lost device is replaced and filled")
#define PLAN_GROUPS                                                                                \
    WEIR_PLAN_COUNT_OPT("groups", groups, "1", "of devices that can lose data on their own", 1,    \
                        1e12)
/* costs */
#define PLAN_SIZE                                                                                  \
    WEIR_PLAN_SIZE_OPT("size", size_bytes, NULL, "of all data, to be compared on every tier")
#define PLAN_GLACIER WEIR_PLAN_SIZE_OPT("glacier", glacier_bytes, NULL, "on S3 Glacier")
#define PLAN_S3      WEIR_PLAN_SIZE_OPT("s3", s3_bytes, NULL, "on S3 Standard")
#define PLAN_EBS     WEIR_PLAN_SIZE_OPT("ebs", ebs_bytes, NULL, "on EBS gp3")
#define PLAN_LUSTRE  WEIR_PLAN_SIZE_OPT("lustre", lustre_bytes, NULL, "on FSx for Lustre")
#define PLAN_EGRESS                                                                                \
    WEIR_PLAN_SIZE_OPT("egress", egress_bytes, NULL, "that leaves the cloud in a month")
#define PLAN_EGRESS_USD                                                                            \
    WEIR_PLAN_RATIO_OPT("egress-usd", egress_usd, "0.09", "price of a GB that leaves, in $", 0, 100)

#endif
