#!/usr/bin/env python3
"""Measures opening datasets of 10^4 to 10^8 samples and finding samples, and writes the curve.

The index is a real one; the shards are files of the right names and sizes that nobody reads.
Medians go to bench/results/data-scale.json, docs/bench-data-scale.md and docs/bench-data-scale.svg.
"""
import json
import os
import shutil
import statistics
import subprocess
import tempfile

import common
import curve
from common import ROOT, say

SAMPLES = [10 ** power for power in range(4, 9)]


def measure(options, where):
    binary = os.path.join(ROOT, options.build, "bench", "bench-data-scale")
    points = []
    for samples in SAMPLES:
        place = os.path.join(where, str(samples))
        os.mkdir(place)
        subprocess.run([binary, "make", place, str(samples)], check=True)
        runs = []
        for _ in range(options.rounds):
            out = subprocess.run([binary, "open", place, str(samples)], check=True,
                                 stdout=subprocess.PIPE)
            runs.append(json.loads(out.stdout))
        shutil.rmtree(place)
        points.append({field: statistics.median(run[field] for run in runs) for field in runs[0]})
        say(f"{samples} samples")
    return points


def page(result):
    last = result["points"][-1]
    text = [
        "# Datasets of many samples, measured",
        "",
        "Written by `make bench`; do not edit. WebDataset shards of 4,096 samples of about 16 KiB "
        "each; their index is in the cache, in a store on the file tier "
        f"({result['file_system']}). Each round is a process of its own; medians of "
        f"{result['rounds']} round(s), warm. Machine: {result['machine']['cores']} cores, Linux "
        f"{result['machine']['kernel']}.",
        "",
        "![seconds and nanoseconds over samples](bench-data-scale.svg)",
        "",
        "- **open**: listing the shards, comparing them with the index, mapping it; and the most "
        "memory the process had meanwhile. With `WEIR_DATA_TRUST` nothing is listed.",
        "- **find**: a sample at random, of a million; the first million lookups also check the "
        "blocks they touch.",
        "- **position**: from a position of a shuffled epoch (64 lanes, windows of 1,024) to the "
        "file and the bytes of its sample.",
        "- **own memory**: after all that, without the pages of the index, which the kernel shares "
        "and takes back.",
        "",
        "| samples | shards | index | open | memory | trusting | find, first | find | position | "
        "own memory |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for p in result["points"]:
        text.append(
            f"| {p['samples']:,.0f} | {p['shards']:,.0f} | {p['index_bytes'] / 1e6:.2f} MB | "
            f"{p['open_s'] * 1000:.1f} ms | {p['open_kib'] / 1024:.1f} MiB | "
            f"{p['trust_s'] * 1000:.1f} ms | {p['first_ns']:.0f} ns | {p['find_ns']:.0f} ns | "
            f"{p['position_ns']:.0f} ns | {p['own_kib'] / 1024:.1f} MiB |")
    text += [
        "",
        f"{last['samples']:,.0f} samples: opened in {last['open_s']:.2f} s (asked for: below 1 s) "
        f"with {last['open_kib'] / 1024:.0f} MiB (below 64 MiB); a position is found in "
        f"{last['position_ns'] / 1000:.2f} microseconds (below 2).",
    ]
    return "\n".join(text + [""])


def main():
    parser = common.options_of(__doc__, 5)
    options = parser.parse_args()
    file_system = subprocess.run(["stat", "-f", "-c", "%T", options.dir], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
    where = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
    try:
        points = measure(options, where)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    result = {
        "machine": common.machine(),
        "rounds": options.rounds,
        "file_system": file_system,
        "points": points,
    }
    shown = [{**point, "open_ms": 1000 * point["open_s"]} for point in points]
    drawn = curve.picture(shown, "samples", "samples of the dataset",
                          [("open_ms", "#d1570c", "ms open", -8),
                           ("find_ns", "#1f6feb", "ns find", 6),
                           ("position_ns", "#1a7f37", "ns position", 20)])
    common.keep("data-scale", result, page(result), drawn)
    print(page(result))


main()
