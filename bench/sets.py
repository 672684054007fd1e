#!/usr/bin/env python3
"""Measures group commits from 8 to 4,096 parts, and writes the curve it saw.

Eight processes publish the parts of one save, none waiting for another; whoever is last commits. In
the same round, beside it, the same processes only publish as many small files durably: what the
parts alone cost. Medians go to bench/results/sets.json, docs/bench-sets.md and docs/bench-sets.svg.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile

import common
import curve
from common import ROOT, say

PARTS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]


def measure(options, where):
    """One save of each size a round, each beside its bare files."""
    binary = os.path.join(ROOT, options.build, "bench", "bench-sets")
    rows = {parts: {"set": [], "bare": []} for parts in PARTS}
    number = 0
    for turn in range(options.rounds):
        say(f"round {turn + 1} of {options.rounds}")
        for parts in PARTS:
            number += 1
            ways = ["set", "bare"] if turn % 2 else ["bare", "set"]
            for way in ways:
                folder = os.path.join(where, way)
                out = subprocess.run([binary, way, folder, str(options.processes), str(parts),
                                      str(number)], check=True, stdout=subprocess.PIPE)
                rows[parts][way].append(json.loads(out.stdout))
    return rows


def medians(rows):
    points = []
    for parts, ways in rows.items():
        def middle(way, field):
            return statistics.median(run[field] for run in ways[way])
        points.append({
            "parts": parts,
            "set_s": middle("set", "seconds"),
            "bare_s": middle("bare", "seconds"),
            "requests": middle("set", "requests"),
            "requests_per_part": middle("set", "requests") / parts,
            "bytes_per_part": middle("set", "bytes") / parts,
            "ratio": middle("set", "seconds") / middle("bare", "seconds"),
        })
    return points


def page(result):
    text = [
        "# Group commits, measured",
        "",
        f"Written by `make bench`; do not edit. {result['processes']} processes publish the parts "
        "of one save on the file tier, none waiting for another, and whoever is last commits; "
        f"medians of {result['rounds']} rounds. Beside it, taking turns, the same processes only "
        "publish as many small files durably (written, synced, linked, directory synced): what the "
        f"parts alone cost. Machine: {result['machine']['cores']} cores, Linux "
        f"{result['machine']['kernel']}.",
        "",
        "![requests and seconds over parts](bench-sets.svg)",
        "",
        "| parts | commit | files alone | ratio | requests | a part |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for p in result["points"]:
        text.append(f"| {p['parts']} | {p['set_s'] * 1000:.1f} ms | {p['bare_s'] * 1000:.1f} ms | "
                    f"{p['ratio']:.2f} | {p['requests']:.0f} | {p['requests_per_part']:.2f} |")
    return "\n".join(text + [""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"), help="where to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    where = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
    try:
        points = medians(measure(options, where))
    finally:
        shutil.rmtree(where, ignore_errors=True)
    result = {
        "machine": common.machine(),
        "rounds": options.rounds,
        "processes": options.processes,
        "points": points,
    }
    drawn = curve.picture(points, "parts", "parts of the save",
                          [("requests", "#1f6feb", "requests", -8), ("set_s", "#d1570c", "s", 8)])
    common.keep("sets", result, page(result), drawn)
    print(page(result))


main()
