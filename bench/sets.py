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


def picture(points):
    """Requests and seconds over parts, on logarithmic axes: linear growth is the dashed line."""
    import math
    wide, high, left, top, side, floor = 700, 360, 100, 30, 130, 50
    low_x, high_x = math.log2(PARTS[0]), math.log2(PARTS[-1])

    def x(parts):
        return left + (math.log2(parts) - low_x) / (high_x - low_x) * (wide - left - side)

    def line(field, colour, label, shift):
        values = [point[field] for point in points]
        low = math.log2(values[0])

        def y(value):  # one doubling is as high as it is wide
            step = (high - top - floor) / (high_x - low_x + 1)
            return high - floor - (math.log2(value) - low) * step - step / 2
        path = " ".join(f"{x(p['parts']):.1f},{y(p[field]):.1f}" for p in points)
        dots = "".join(f'<circle cx="{x(p["parts"]):.1f}" cy="{y(p[field]):.1f}" r="3" '
                       f'fill="{colour}"/>' for p in points)
        first, last = values[0], values[-1]
        return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
                f'<text x="{x(PARTS[0]) - 8:.0f}" y="{y(first) + 4 + shift:.0f}" '
                f'text-anchor="end" fill="{colour}">{first:.3g} {label}</text>'
                f'<text x="{x(PARTS[-1]) + 8:.0f}" y="{y(last) + 4:.0f}" fill="{colour}">'
                f'{last:.5g} {label}</text>')

    step = (high - top - floor) / (high_x - low_x + 1)
    guide = (f'<line x1="{x(PARTS[0])}" y1="{high - floor - step / 2:.1f}" x2="{x(PARTS[-1])}" '
             f'y2="{high - floor - step / 2 - (high_x - low_x) * step:.1f}" stroke="#bbb" '
             'stroke-dasharray="5 4"/>')
    ticks = "".join(f'<text x="{x(parts):.0f}" y="{high - 28}" text-anchor="middle">{parts}</text>'
                    for parts in PARTS)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
            'font-family="sans-serif" font-size="12">'
            f'<rect width="{wide}" height="{high}" fill="white"/>{guide}{ticks}'
            f'<text x="{(left + wide - side) / 2}" y="{high - 8}" text-anchor="middle">parts of '
            'the save (logarithmic; dashed: linear growth)</text>'
            f'{line("requests", "#1f6feb", "requests", -8)}'
            f'{line("set_s", "#d1570c", "s", 8)}</svg>\n')


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
    common.keep("sets", result, page(result), picture(points))
    print(page(result))


main()
