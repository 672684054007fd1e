"""The planner's figures computed once more, in exact numbers, from the options as they are written.

One function for each command gives the figures that its JSON must have. Roots, logarithms and
exponentials are taken with 50 digits.
"""
import math
import re
from decimal import Decimal, getcontext
from fractions import Fraction as F

getcontext().prec = 50
NEVER = None  # what JSON has for infinity

SIZES = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "KiB": 2**10,
         "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "MB": 10**6, "GB": 10**9,
         "TB": 10**12, "PB": 10**15, "EB": 10**18, "Gbit": F(10**9, 8), "Mbit": F(10**6, 8)}
COUNTS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
TIMES = {"": 1, "s": 1, "ms": F(1, 1000), "us": F(1, 10**6), "min": 60, "h": 3600, "d": 86400,
         "y": 365 * 86400}
UNITS = {"SIZE": SIZES, "RATE": SIZES, "COUNT": COUNTS, "TIME": TIMES, "X": {"": 1}}
MONTH_H = 730
YEAR_S = 365 * 86400

# Of weights and optimizer, for a parameter.
STATES = {"weights": (2, 0), "moments": (2, 8), "fp32": (4, 8), "mixed": (2, 12),
          "gradients": (4, 12)}
# Read and write in bytes/s, reads and writes a second, $ a TB, TBW.
DEVICES = {"hdd": (F("0.2e9"), F("0.2e9"), 200, 200, 20, 0),
           "sata-ssd": (F("0.55e9"), F("0.52e9"), 95000, 85000, 80, 600 * 10**12),
           "nvme": (7 * 10**9, F("6.5e9"), 10**6, 700000, 120, 700 * 10**12),
           "nvme-enterprise": (7 * 10**9, 4 * 10**9, 1500000, 500000, 350, 12000 * 10**12)}
LINKS = {"gen3": 4 * 10**9, "gen4": 8 * 10**9, "gen5": 16 * 10**9}
PRICES = {"glacier": F("0.004"), "s3": F("0.023"), "ebs": F("0.08"), "lustre": F("0.14")}


def value(kind, text):
    """An option as it is written, as an exact number."""
    if kind not in UNITS:
        return text
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)(?:/s)?", text).groups()
    return F(number) * UNITS[kind][unit]


def dec(x):
    return Decimal(x.numerator) / Decimal(x.denominator) if isinstance(x, F) else Decimal(x)


def root(x):
    return F(dec(F(x)).sqrt())


def exp(x):
    return F(dec(F(x)).exp())


def ln(x):
    return F(dec(F(x)).ln())


class Told:
    """What a command line and a plan tell; what is not told is None."""

    def __init__(self, options, told):
        self.values = {}
        for option in options:
            text = told.get(option["name"], option.get("default"))
            if text is not None:
                self.values[option["name"]] = value(option.get("value"), text)

    def __getattr__(self, name):
        return self.values.get(name.replace("_", "-"))

    @property
    def nodes(self):
        return math.ceil(F(self.gpus or 0) / self.gpus_per_node)

    def save(self):
        """Bytes of a checkpoint, of weights, of the optimizer."""
        if self.checkpoint:
            return self.checkpoint, None, None
        weights, optimizer = STATES[self.state]
        n = self.parameters
        return n * (weights + optimizer), n * weights, n * optimizer


def known(figures):
    return {key: figure for key, figure in figures.items() if figure is not None}


def idle_usd(t, share):
    return t.gpus * t.gpu_usd * share * MONTH_H


def erlang_busy(depth, load):
    """1 - B, with B as the quotient of sums that defines it."""
    terms = [F(load)**k / math.factorial(k) for k in range(int(depth) + 1)]
    return 1 - terms[-1] / sum(terms)


def read(t):
    if t.over:
        need = t.corpus * t.epochs / t.over
    elif t.tokens_per_s:
        need = t.gpus * t.tokens_per_s * t.token_bytes * t.efficiency
    elif t.samples_per_s:
        need = t.gpus * t.samples_per_s * t.sample_bytes * t.efficiency
    else:
        need = t.gpus * t.batches_per_s * t.batch_bytes * t.efficiency
    have = min(x for x in (t.read_rate, t.nodes * t.network_rate) if x)
    figures = {"read_bytes_per_s": need, "gpu_bytes_per_s": need / t.gpus,
               "node_bytes_per_s": need / t.nodes, "day_bytes": need * 86400,
               "servers": math.ceil(need / t.server_rate), "available_bytes_per_s": have,
               "used_share": need / have, "stall_share": max(0, 1 - have / need)}
    if t.batch_bytes:
        figures["prefetch_bytes"] = t.depth * t.workers * t.batch_bytes
    if t.latency and t.step:
        load = t.latency / t.step
        figures["busy_share"] = erlang_busy(t.depth, load)
        figures["stall_share"] = max(figures["stall_share"], 1 - figures["busy_share"])
        figures["depth_for_99_percent"] = next(d for d in range(1, 10000)
                                               if erlang_busy(d, load) >= F(99, 100))
    figures["stall_usd_per_month"] = idle_usd(t, figures["stall_share"])
    return figures


def checkpoint(t):
    size, weights, optimizer = t.save()
    figures = {"checkpoint_bytes": size, "weight_bytes": weights, "optimizer_bytes": optimizer,
               "stall_max_bytes_per_s": size / t.stall_max}
    if t.interval:
        figures["average_bytes_per_s"] = size / t.interval
        figures["average_servers"] = math.ceil(size / t.interval / t.server_rate)
    if t.write_rate:
        rate = min(x for x in (t.write_rate, t.nodes * t.network_rate) if x)
        stall = size / rate
        share = stall / (t.interval + stall)
        snapshot = size / (t.gpus * t.snapshot_rate)
        waits = snapshot + max(0, stall - t.interval)
        waits_share = waits / (t.interval + waits)
        figures |= {"write_s": stall, "sync_stall_s": stall, "sync_stall_share": share,
                    "sync_stall_usd_per_month": idle_usd(t, share), "snapshot_s": snapshot,
                    "async_stall_s": waits, "async_stall_share": waits_share,
                    "async_stall_usd_per_month": idle_usd(t, waits_share)}
    return known(figures)


def daly(stall, mtbf):
    ratio = F(stall) / (2 * mtbf)
    return root(2 * stall * mtbf) * (1 + root(ratio) / 3 + ratio / 9) - stall


def waste(interval, stall, mtbf, restart):
    """Of the time: a piece and its save are tried until no failure hits them."""
    return 1 - interval / (mtbf * exp(restart / mtbf) * (exp((interval + stall) / mtbf) - 1))


def interval(t):
    stall = t.stall or t.save()[0] / min(x for x in (t.write_rate, t.nodes * t.network_rate) if x)
    mtbf = t.mtbf or t.node_mtbf / t.nodes
    best = daly(stall, mtbf)
    everything = waste(best, stall, mtbf, t.restart)
    parts = [stall / (best + stall), best / 2 / mtbf, t.restart / mtbf]
    saves, rework, restarts = (part * everything / sum(parts) for part in parts)
    figures = {"young_s": root(2 * stall * mtbf), "daly_s": best, "stall_s": stall, "mtbf_s": mtbf,
               "failures_per_month": MONTH_H * 3600 / mtbf, "lost_s_per_failure":
               best / 2 + t.restart, "save_share": saves, "rework_share": rework,
               "restart_share": restarts, "waste_share": everything}
    if t.gpus:
        figures["waste_usd_per_month"] = idle_usd(t, figures["waste_share"])
    if t.interval:
        figures["given_waste_share"] = waste(t.interval, stall, mtbf, t.restart)
    return figures


def raid(t):
    reads, writes, read_iops, write_iops, usd, tbw = DEVICES[t.device]
    lane, n = LINKS[t.pcie], t.devices
    figures = {"read_bytes_per_s": n * min(reads, lane), "write_bytes_per_s": n * min(writes, lane),
               "read_iops_per_s": n * read_iops, "write_iops_per_s": n * write_iops,
               "capacity_bytes": n * t.device_size, "usd": n * t.device_size / 10**12 * usd,
               "loss_chance_per_year": 1 - (1 - t.afr)**int(n)}
    if tbw:
        figures["tbw_bytes"] = n * tbw
    if t.read_rate:
        figures["devices_to_read"] = math.ceil(t.read_rate / min(reads, lane))
    if t.write_rate:
        figures["devices_to_write"] = math.ceil(t.write_rate / min(writes, lane))
    return figures


def cliff(t):
    size, cache = t.save()[0], t.devices * t.slc_cache
    fast, native = t.devices * t.fast_rate, t.devices * t.native_rate

    def write_s(free):
        return min(size, free) / fast + max(0, size - free) / native
    figures = {"write_bytes": size, "cache_bytes": cache,
               "falls_after_s": cache / fast if size > cache else NEVER, "write_s": write_s(cache),
               "average_bytes_per_s": size / write_s(cache), "safe_bytes_per_s": native,
               "limit_bytes_per_s": fast if size <= cache
               else min(fast, native * size / (size - cache)),
               "burst_pause_s": cache / native,
               "burst_bytes_per_s": fast * native / (fast + native)}
    if t.interval:
        level = F(0)  # what is in the cache when a save begins, played until it stays
        for _ in range(200):
            free = cache - level
            idle = max(0, t.interval - write_s(free))
            level = max(0, min(cache, level + size) - idle * native)
            level = F(round(level * 10**6), 10**6)
        figures |= {"later_free_bytes": cache - level, "later_write_s": write_s(cache - level)}
    return figures


def endurance(t):
    size, tbw = t.save()[0], t.tbw or DEVICES[t.device][5]
    per_s = size * t.amplification / t.interval
    figures = {"checkpoint_bytes": size, "day_bytes": per_s * 86400, "tbw_bytes": t.devices * tbw,
               "drive_writes_per_day":
               size * 86400 / t.interval / (t.devices * t.device_size),
               "life_s": t.devices * tbw / per_s}
    if t.over:
        figures |= {"wear_bytes": per_s * t.over, "used_share": per_s * t.over / (t.devices * tbw)}
    return figures


def mean_time_to_loss(afr, data, parity, repair):
    """By the linear equations of the chain: T_i = 1/(l_i + m_i) + the means of where it goes."""
    rate = -ln(1 - afr) / YEAR_S
    states = int(parity) + 1
    rows = []
    for i in range(states):
        fails, repairs = (data + parity - i) * rate, F(i) / repair
        row = [F(0)] * (states + 1)
        row[i], row[states] = fails + repairs, F(1)
        if i > 0:
            row[i - 1] = -repairs
        if i + 1 < states:
            row[i + 1] = -fails
        rows.append(row)
    for i in range(states):  # Gauss
        for j in range(states):
            if j != i:
                by = rows[j][i] / rows[i][i]
                rows[j] = [a - by * b for a, b in zip(rows[j], rows[i])]
    return rows[0][states] / rows[0][0]


def durability(t):
    figures = {}
    for name, data, parity in ("copies", 1, t.copies - 1), ("code", t.data, t.parity):
        mttdl = mean_time_to_loss(t.afr, data, parity, t.repair) / t.groups
        loss = 1 - exp(-YEAR_S / mttdl)
        figures |= {f"{name}_mttdl_s": mttdl, f"{name}_loss_per_year": loss,
                    f"{name}_nines": -ln(loss) / ln(10), f"{name}_overhead": (data + parity) / data}
    return figures


def cost(t):
    layout = {name: getattr(t, name) for name in PRICES if getattr(t, name)}
    figures = {f"{name}_usd_per_month": size / 10**9 * PRICES[name]
               for name, size in layout.items()}
    if t.egress:
        figures["egress_usd_per_month"] = t.egress / 10**9 * t.egress_usd
    if figures:
        figures["usd_per_month"] = sum(figures.values())
    size = sum(layout.values())
    if size:
        figures["usd_per_gb_month"] = figures["usd_per_month"] / (size / 10**9)
    for name, price in PRICES.items() if t.size or size else ():
        figures[f"all_{name}_usd_per_month"] = (t.size or size) / 10**9 * price
    return figures


def format(t):
    reads, iops = t.read_rate or DEVICES[t.device][0], t.iops or DEVICES[t.device][2]
    size = t.samples * t.sample_bytes
    raw = min(reads, F(iops) / 3 * t.sample_bytes)
    return {"dataset_bytes": size, "raw_bytes_per_s": raw, "raw_epoch_s": size / raw,
            "raw_spare_bytes": t.samples * 2560, "shard_bytes_per_s": reads,
            "shard_epoch_s": size / reads, "shards": math.ceil(size / t.shard), "gain": reads / raw}


def cluster(t):
    """Its flows, tiers and limits, too, by name."""
    size = t.save()[0]
    tokens = t.tokens_per_s or (t.tflops or 989) * 10**12 * t.flops_share / (6 * t.parameters)
    need = t.gpus * tokens * t.token_bytes
    run = t.corpus * t.epochs / need
    network, nodes = t.nodes * t.network_rate, t.nodes
    to_shared = min(t.write_rate or 100 * 10**9, network)
    mtbf = t.mtbf or t.node_mtbf / nodes
    snapshot = size / (t.gpus * t.snapshot_rate)
    write = size / min(to_shared, nodes * t.nvme_write_rate)
    every = t.interval or max(daly(snapshot, mtbf), write)
    stall = snapshot + max(0, write - every)
    restore = size / min(t.read_rate or 100 * 10**9, network)
    supply = min(t.object_rate, network, nodes * t.nvme_read_rate, t.gpus * t.snapshot_rate)
    lost = waste(every, stall, mtbf, t.restart + restore + write)
    waits = max(0, 1 - supply / need)
    everything = 1 - (1 - waits) * (1 - lost)
    wear = (size / every + need) * t.amplification * 86400 / (nodes * t.nvme_devices)
    life = (t.tbw or DEVICES[t.device][5]) / wear * 86400
    kept, archived = t.keep * size, max(1, run / t.archive) * size
    storage = kept / 10**9 * PRICES["lustre"] + (t.corpus + archived) / 10**9 * PRICES["s3"]
    flows = {"stage": (need, min(t.object_rate, network)), "read": (need, nodes * t.nvme_read_rate),
             "batch": (need, t.gpus * t.snapshot_rate),
             "snapshot": (size / every, t.gpus * t.snapshot_rate),
             "local": (size / every, nodes * t.nvme_write_rate),
             "shared": (size / every, to_shared), "archive": (size / t.archive, t.object_rate)}
    tiers = {"HBM": (16 * t.parameters, t.gpus * t.gpu_memory),
             "DRAM": (size, nodes * t.node_memory),
             "NVMe": (2 * size + 600 * need, nodes * t.nvme),
             "shared storage": (kept, t.capacity), "object store": (t.corpus + archived, NEVER)}
    rooms = [have / wants for wants, have in [*flows.values(), *tiers.values()] if have]
    figures = {"nodes": nodes, "tokens_per_s_per_gpu": tokens, "read_bytes_per_s": need,
               "run_s": run, "run_with_losses_s": run / (1 - everything), "checkpoint_bytes": size,
               "interval_s": every, "save_stall_s": stall, "write_s": write, "restore_s": restore,
               "mtbf_s": mtbf, "read_stall_share": waits, "save_stall_share":
               stall / (every + stall), "waste_share": lost, "lost_share": everything,
               "gpu_usd_per_month": idle_usd(t, 1), "lost_usd_per_month": idle_usd(t, everything),
               "storage_usd_per_month": storage, "wear_bytes_per_day": wear, "life_s": life,
               "headroom": min(*rooms, life / run)}
    return figures, flows, tiers, sorted([*rooms, life / run])
