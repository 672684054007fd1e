#!/usr/bin/env python3
"""Measures the order of samples: what it costs to find a position, what a cluster fetches, and how
good the shuffle is.

Results go to bench/results/data-order.json, docs/bench-data-order.md and three pictures beside it.
"""
import argparse
import json
import os
import statistics
import subprocess

import bars
import common
import curve
from common import ROOT, say

# Finding positions
SAMPLES = [10 ** i for i in range(4, 9)]
SHARD, LANES, WINDOW = 1000, 64, 256

# What is fetched: a simulated cluster
NODES = [1, 8, 64, 125]
CLUSTER = {"shards": 2048, "shard_samples": 8192, "window": 256, "cache_shards": 128,
           "rank_batch": 32}
ODD = 11  # taken off the global batch, so that nothing divides
WAYS = {
    "lanes_8": ("lanes", lambda nodes: max(LANES, 8 * nodes), 0, "8 lanes a node (at least 64)"),
    "lanes_8_odd": ("lanes", lambda nodes: max(LANES, 8 * nodes), ODD,
                    "the same, in batches that nothing divides"),
    "lanes_64": ("lanes", lambda nodes: LANES, 0, "64 lanes"),
    "turns": ("turns", lambda nodes: LANES, 0, "windows in turn"),
    "full": ("full", lambda nodes: LANES, 0, "full shuffle"),
}


def run(options, name, args):
    binary = os.path.join(ROOT, options.build, "bench", name)
    out = subprocess.run([binary, *[str(arg) for arg in args]], check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)


def measure_time(options):
    sizes = [(samples, samples // SHARD, WINDOW) for samples in SAMPLES]
    sizes += [(10 ** 12, 100000, WINDOW), (10 ** 8, 100000, 0)]
    rows = {size: [] for size in sizes}
    for _ in range(options.rounds):
        for size in sizes:
            samples, shards, window = size
            rows[size].append(run(options, "bench-data-order",
                                  ["time", samples, shards, LANES, window]))
    say("finding positions")
    return [{field: statistics.median(one[field] for one in of) for field in of[0]}
            for of in rows.values()]


def measure_fetch(options):
    points = []
    for nodes in NODES:
        point = {"nodes": nodes}
        for key, (way, lanes, odd, _) in WAYS.items():
            got = run(options, "bench-data-fetch",
                      [way, nodes, CLUSTER["shards"], CLUSTER["shard_samples"], lanes(nodes),
                       CLUSTER["window"], CLUSTER["cache_shards"], CLUSTER["rank_batch"], odd])
            point[key] = got["shards_ratio"]
            point[key + "_windows"] = got["windows_ratio"]
            point[key + "_nodes"] = got["nodes_per_shard"]
        points.append(point)
        say(f"{nodes} nodes")
    return points


def measure_quality(options):
    """By another Python, which has numpy; what is missing there is said on the page."""
    binary = os.path.join(ROOT, options.build, "bench", "bench-data-order")
    script = os.path.join(ROOT, "bench", "shuffle.py")
    try:
        out = subprocess.run([options.python, script, binary], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    except OSError as error:
        return {"missing": f"{error}: tools/setup bench installs it in .venv"}
    if out.returncode:
        return {"missing": out.stderr.strip().splitlines()[-1]}
    say("how good the shuffle is")
    return json.loads(out.stdout)


# The page


def time_page(points):
    text = [
        "## Finding a position",
        "",
        "![time over samples](bench-data-order.svg)",
        "",
        "- **open**: the table of an epoch: its shards in their order.",
        "- **position**: which sample is at a position; each depends on what was found before.",
        "- **window**: the window around it. **deal**: one position of a rank's piece of a batch.",
        "",
        "| samples | shards | window | open | position | window | deal |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for p in points:
        window = f"{p['window']:.0f}" if p["window"] else "all"
        text.append(f"| {p['samples']:,.0f} | {p['shards']:,.0f} | {window} | "
                    f"{p['open_s'] * 1e6:,.0f} µs | {p['find_s'] * 1e9:.0f} ns | "
                    f"{p['window_s'] * 1e9:.0f} ns | {p['deal_s'] * 1e9:.0f} ns |")
    return text + [""]


def fetch_page(points):
    c = CLUSTER
    text = [
        "## What a cluster fetches",
        "",
        f"Simulated: one epoch of {c['shards']:,} shards of {c['shard_samples'] // 2:,} to "
        f"{c['shard_samples'] * 3 // 2:,} samples, windows of {c['window']}; nodes of 8 ranks, "
        f"{c['rank_batch']} samples a rank and step. Each node has a cache of whole shards, "
        f"{c['cache_shards']} of mean size ({c['cache_shards'] / c['shards']:.1%} of the dataset), "
        "least recently used first out. *Windows in turn*: 64 shards at a time, their windows "
        "permuted among each other and dealt to the ranks one after the other, which mixes as "
        "well as 64 lanes do. Bytes fetched by all nodes for each byte used:",
        "",
        "![bytes fetched over nodes](bench-data-order-fetch.svg)",
        "",
        "| nodes | " + " | ".join(way[3] for way in WAYS.values()) + " |",
        "| --- |" + " --- |" * len(WAYS),
    ]
    for p in points:
        text.append(f"| {p['nodes']} | " + " | ".join(f"{p[key]:,.2f}" for key in WAYS) + " |")
    last = points[-1]
    text += [
        "",
        f"At {last['nodes']} nodes a shard is needed by {last['lanes_8_nodes']:.2f} nodes with 8 "
        f"lanes a node, by {last['lanes_64_nodes']:.2f} with 64 lanes (a lane is then shared by "
        f"nodes), by {last['turns_nodes']:.1f} where its windows go to whoever is next, and by "
        f"{last['full_nodes']:.0f} in a full shuffle. A node that fetches single windows, not "
        f"shards, has these ratios: {last['lanes_8_windows']:.2f}, "
        f"{last['lanes_8_odd_windows']:.2f}, {last['lanes_64_windows']:.2f}, "
        f"{last['turns_windows']:.2f}; and in a full shuffle {last['full_windows']:.2f}, in reads "
        "of one sample each.",
        "",
    ]
    return text


def quality_page(q):
    if "missing" in q:
        return ["## How good the shuffle is", "", f"Not measured: {q['missing']}", ""]
    text = [
        "## How good the shuffle is",
        "",
        f"{q['samples']:,} samples in {q['shards']:,} shards, global batches of {q['batch']}. A "
        "buffer is what streaming readers do: shards are permuted, and each sample is drawn from "
        "a buffer that the stream refills.",
        "",
        "![noise of batches](bench-data-order-shuffle.svg)",
        "",
        "- **neighbours**: correlation of the numbers of samples next to each other; 0 is best.",
        "- **displacement**: how far the distribution of moves is from that of chance "
        "(Kolmogorov-Smirnov); 0 is best.",
        "- **shards**: how many a batch has samples of.",
        f"- **noise**: variance of the mean of a batch, and of {q['row']} batches in a row, over "
        "that of a full shuffle, if all samples of a shard are alike: the worst case, data sorted "
        "by class. If shards are mixed when they are written, it is 1 for every order.",
        "- **companions**: how much more often than by chance two samples of a batch are in one "
        "batch again in the next epoch; 1 is best.",
        "",
        "| order | neighbours | displacement | shards | noise | "
        f"of {q['row']} batches | companions |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in q["orders"]:
        text.append(f"| {r['order']} | {r['neighbours']:+.3f} | {r['displacement']:.3f} | "
                    f"{r['diversity']:.0f} | {r['noise']:.2f} | {r['noise_row']:.1f} | "
                    f"{r['companions']:.2f} |")
    return text + [""]


def page(result):
    text = [
        "# The order of samples, measured",
        "",
        "Written by `make bench`; do not edit. What the order is, and what it does not give: "
        f"[order.md](order.md). Medians of {result['rounds']} rounds; {LANES} lanes. Machine: "
        f"{result['machine']['cores']} cores, Linux {result['machine']['kernel']}.",
        "",
    ]
    return "\n".join(text + time_page(result["time"]) + fetch_page(result["fetch"])
                     + quality_page(result["quality"]))


# Pictures


def time_picture(points):
    of = [{"samples": int(p["samples"]), "open": round(p["open_s"] * 1e6, 1),
           "find": round(p["find_s"] * 1e9)} for p in points[:len(SAMPLES)]]
    return curve.picture(of, "samples", "samples, 1,000 a shard",
                         [("open", "#1f6feb", "µs to open", -8),
                          ("find", "#d1570c", "ns to find", 8)])


def fetch_picture(points):
    of = [{key: round(value, 2) for key, value in p.items()} for p in points]
    return curve.picture(of, "nodes", "nodes; bytes fetched for each byte used",
                         [("turns", "#d1570c", "(in turn)", -10),
                          ("lanes_64", "#1f6feb", "(64 lanes)", 4),
                          ("lanes_8", "#1a7f37", "(8 a node)", 18)])


def quality_picture(q):
    colours = {"Weir": "#1f6feb", "nump": "#1a7f37", "a bu": "#d1570c"}
    return bars.picture([(r["order"], r["noise"], colours[r["order"][:4]]) for r in q["orders"]],
                        f"noise of a batch of {q['batch']} in the worst case, over that of a "
                        "full shuffle", 0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", help="not used: no disk is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"),
                        help="one that has numpy")
    options = parser.parse_args()
    result = {
        "machine": common.machine(),
        "rounds": options.rounds,
        "time": measure_time(options),
        "fetch": measure_fetch(options),
        "quality": measure_quality(options),
    }
    common.keep("data-order", result, page(result), time_picture(result["time"]))
    common.keep_picture("data-order-fetch", fetch_picture(result["fetch"]))
    if "missing" not in result["quality"]:
        common.keep_picture("data-order-shuffle", quality_picture(result["quality"]))
    print(page(result))


main()
