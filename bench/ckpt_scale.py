#!/usr/bin/env python3
"""Measures checkpoints of 8 to 1,024 ranks with 1,000 tensors, and writes the curve it saw.

Each rank has a tiny piece of every tensor: what is measured is not bytes, but what the ranks and
their pieces cost. Medians go to bench/results/ckpt-scale.json, docs/bench-ckpt-scale.md and
docs/bench-ckpt-scale.svg.
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

RANKS = [8, 16, 32, 64, 128, 256, 512, 1024]


def measure(options, where):
    binary = os.path.join(ROOT, options.build, "bench", "bench-ckpt-scale")
    points = []
    for ranks in RANKS:
        runs = []
        for _ in range(options.rounds):
            store = os.path.join(where, "store")
            out = subprocess.run([binary, store, str(ranks), str(options.tensors)], check=True,
                                 stdout=subprocess.PIPE)
            runs.append(json.loads(out.stdout))
            shutil.rmtree(store)
        points.append({field: statistics.median(run[field] for run in runs) for field in runs[0]})
        say(f"{ranks} ranks")
    return points


def page(result):
    last = result["points"][-1]
    text = [
        "# Checkpoints of many ranks, measured",
        "",
        f"Written by `make bench`; do not edit. {result['tensors']} tensors, of which one in eight "
        "is replicated and each other one is cut into a tiny piece for every rank (by rows, by "
        "columns, or in a grid). The ranks save one after the other in one process on the file "
        f"tier ({result['file_system']}); the last one commits. Then three quarters as many "
        "readers plan their shares of all tensors, cut along the longer side, and four of them "
        "read and compare them; medians of "
        f"{result['rounds']} round(s). Machine: {result['machine']['cores']} cores, Linux "
        f"{result['machine']['kernel']}.",
        "",
        "![seconds over ranks](bench-ckpt-scale.svg)",
        "",
        "- **a rank**: snapshot, file, manifest, part; from joining to leaving.",
        "- **last rank**: the same, the commit, and behind it the merged manifest and the index.",
        "- **open**: what each reader does first. From the merged manifest; and without it, from "
        "the manifests of all ranks.",
        "- **plan**: which ranges of which files one reader needs, for all tensors.",
        "- **read**: one reader's share, read and verified.",
        "",
        "| ranks | pieces | a rank | last rank | open | requests | without | requests | plan | "
        "read | memory |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for p in result["points"]:
        text.append(
            f"| {p['ranks']:.0f} | {p['ranks'] * p['tensors'] * 7 / 8:.0f} | "
            f"{p['save_s'] / (p['ranks'] - 1) * 1000:.1f} ms | {p['last_s']:.2f} s | "
            f"{p['open_s'] * 1000:.0f} ms | {p['open_requests']:.0f} | "
            f"{p['parts_s'] * 1000:.0f} ms | {p['parts_requests']:.0f} | "
            f"{p['plan_s'] / p['readers'] * 1000:.1f} ms | "
            f"{p['read_s'] * 1000:.0f} ms | {p['open_kib'] / 1024:.0f} MiB |")
    text += [
        "",
        f"{last['readers']:.0f} readers open a checkpoint of {last['ranks']:.0f} ranks with "
        f"{last['readers'] * last['open_requests']:,.0f} requests in all; from the ranks' own "
        f"manifests it would be {last['readers'] * last['parts_requests']:,.0f}.",
    ]
    return "\n".join(text + [""])


def main():
    parser = common.options_of(__doc__, 3)
    parser.add_argument("--tensors", type=int, default=1000)
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
        "tensors": options.tensors,
        "file_system": file_system,
        "points": points,
    }
    drawn = curve.picture(points, "ranks", "ranks of the checkpoint",
                          [("save_s", "#d1570c", "s to save", -8),
                           ("parts_s", "#1f6feb", "s to merge", 6),
                           ("plan_s", "#1a7f37", "s to plan", 20)])
    common.keep("ckpt-scale", result, page(result), drawn)
    print(page(result))


main()
