#!/usr/bin/env python3
"""Measures packing small files beside reading them plainly, in parallel, and beside fio's write.

In each round the files are read cold by many processes of cat, then packed cold by weir (listing
and indexing them included), then fio writes as much. Packing can be no faster than the slower of
the two others. Medians go to bench/results/data-pack.json and docs/bench-data-pack.md.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import common
from common import GB, ROOT, say

SIZES = [16 << 10, 110 << 10]
READERS = [8, 16, 32]  # processes of cat, of which the best is taken
WRITE = ["--ioengine=io_uring", "--bs=1m", "--iodepth=16"]


def make(folder, size, total):
    """As many files as make up the total, a thousand in a directory."""
    count = total // size
    for i in range(count):
        inner = os.path.join(folder, f"{i // 1000:04}")
        if i % 1000 == 0:
            os.makedirs(inner)
        with open(os.path.join(inner, f"{i:07}.jpg"), "wb") as f:
            f.write(os.urandom(size))
    return count


def timed(command, **more):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)
    return time.monotonic() - start


def read_plainly(folder, readers):
    return timed(["sh", "-c", f"find {folder} -type f -print0 | xargs -0 -P{readers} -n128 cat"])


def pack(options, source, where):
    """A new cache, so that the listing and the index are part of it."""
    out = os.path.join(where, "packed")
    env = {**os.environ, "WEIR_CACHE": os.path.join(where, "cache")}
    binary = os.path.join(ROOT, options.build, "src", "cli", "weir")
    seconds = timed([binary, "data", "pack", source, out, "--format", "mds", "--jobs",
                     str(options.jobs)], env=env)
    shutil.rmtree(out)
    shutil.rmtree(env["WEIR_CACHE"])
    return seconds


def measure(options, where, size):
    source = os.path.join(where, f"files-{size}")
    count = make(source, size, options.size_bytes)
    total = count * size
    runs = {"read": [], "pack": [], "write": []}
    best = None
    for _ in range(options.rounds):
        rates = {}
        for readers in [best] if best else READERS:
            common.settle(source)
            rates[readers] = total / read_plainly(source, readers)
        best = max(rates, key=lambda readers: rates[readers])
        runs["read"].append(rates[best])
        common.settle(source)
        runs["pack"].append(total / pack(options, source, where))
        common.settle(where)
        runs["write"].append(common.fio_write(os.path.join(where, "fio"), total, WRITE))
    shutil.rmtree(source)
    point = {name: statistics.median(values) / GB for name, values in runs.items()}
    point.update(size=size, files=count, readers=best,
                 ratio=point["pack"] / min(point["read"], point["write"]))
    say(f"{count} files of {size >> 10} KiB: pack {point['pack']:.2f} GB/s, ratio "
        f"{point['ratio']:.2f}")
    return point


def page(result):
    text = [
        "# Packing, measured",
        "",
        "Written by `make bench`; do not edit. Small files become MDS shards of 64 MiB: listing "
        "and indexing them, reading them cold, and writing the shards until they are safe. Beside "
        "that, the same files read cold by parallel processes of `cat` (the best number of them), "
        f"and fio's direct write. Medians of {result['rounds']} round(s). Machine: "
        f"{result['machine']['cores']} cores, Linux {result['machine']['kernel']}.",
        "",
        "| files | of | read plainly | fio's write | packed | of the lesser |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for p in result["points"]:
        text.append(f"| {p['files']:,} | {p['size'] >> 10} KiB | {p['read']:.2f} GB/s "
                    f"({p['readers']} at once) | {p['write']:.2f} GB/s | {p['pack']:.2f} GB/s | "
                    f"**{p['ratio']:.2f}** |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--size", default="1g", help="of the files, all together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    where = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
    try:
        points = [measure(options, where, size) for size in SIZES]
    finally:
        shutil.rmtree(where)
    result = {"machine": common.machine(), "rounds": options.rounds, "jobs": options.jobs,
              "points": points}
    common.keep("data-pack", result, page(result))


if __name__ == "__main__":
    main()
