#!/usr/bin/env python3
"""Measures packing small files beside reading them plainly, in parallel, and beside fio's write.

In each round the files are read cold by a program that does nothing else, in many threads, then
packed cold by weir (listing and indexing them included), then fio writes as much, and then it
reads blocks of the files' size and writes as much at once, as packing does. Packing can be no
faster than the slower of reading and writing, each alone; where both are one device, it is no
faster than both at once. Medians go to bench/results/data-pack.json and
docs/bench-data-pack.md.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import common
from common import GB, ROOT, say

SIZES = [16 << 10, 110 << 10]
READERS = [8, 16, 32, 64]  # threads that read plainly, of which the best number is taken
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


def program(options, *path):
    """One of ours, in memory again: how long it takes to load is no part of this."""
    binary = os.path.join(ROOT, options.build, *path)
    subprocess.run([binary], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return binary


def read_plainly(options, folder, readers):
    """Not by processes of cat: starting them takes longer than reading small files."""
    binary = program(options, "bench", "bench-read-files")
    return timed([binary, folder, str(readers)])


def pack(options, source, where):
    """A new cache, so that the listing and the index are part of it."""
    out = os.path.join(where, "packed")
    env = {**os.environ, "WEIR_CACHE": os.path.join(where, "cache")}
    binary = program(options, "src", "cli", "weir")
    seconds = timed([binary, "data", "pack", source, out, "--format", "mds", "--jobs",
                     str(options.jobs)], env=env)
    shutil.rmtree(out)
    shutil.rmtree(env["WEIR_CACHE"])
    return seconds


def both_at_once(source, target, size, total):
    """Until fio has read and written all: what a device gives that is read and written at once."""
    block = size // 4096 * 4096
    out = subprocess.run(
        ["fio", "--output-format=json", "--direct=1", common.FIO_ALIGNED,
         f"--size={total // block * block}", "--ioengine=io_uring",
         "--name=read", f"--filename={source}", "--rw=randread", f"--bs={block}", "--iodepth=32",
         "--name=write", f"--filename={target}", "--rw=write", "--bs=1m", "--iodepth=16",
         "--end_fsync=1", "--unlink=1"],
        check=True, env=common.FIO_ENV, stdout=subprocess.PIPE)
    jobs = json.loads(out.stdout)["jobs"]
    return total / max(job[side]["runtime"] / 1e3 for job, side in zip(jobs, ("read", "write")))


def measure(options, where, size):
    source = os.path.join(where, f"files-{size}")
    count = make(source, size, options.size_bytes)
    total = count * size
    blocks = os.path.join(where, "blocks")
    common.fio_write(blocks, total, WRITE, keep=True)
    runs = {"read": [], "pack": [], "write": [], "both": []}
    best = None
    for _ in range(options.rounds):
        rates = {}
        for readers in [best] if best else READERS:
            common.settle(source)
            rates[readers] = total / read_plainly(options, source, readers)
        best = max(rates, key=lambda readers: rates[readers])
        runs["read"].append(rates[best])
        common.settle(source)
        runs["pack"].append(total / pack(options, source, where))
        common.settle(where)
        runs["write"].append(common.fio_write(os.path.join(where, "fio"), total, WRITE))
        common.settle(where)
        runs["both"].append(both_at_once(blocks, os.path.join(where, "fio"), size, total))
    shutil.rmtree(source)
    os.remove(blocks)
    point = {name: statistics.median(values) / GB for name, values in runs.items()}
    point.update(size=size, files=count, readers=best,
                 ratio=point["pack"] / min(point["read"], point["write"]),
                 ratio_both=point["pack"] / point["both"])
    say(f"{count} files of {size >> 10} KiB: pack {point['pack']:.2f} GB/s, ratio "
        f"{point['ratio']:.2f}, to both at once {point['ratio_both']:.2f}")
    return point


def page(result):
    text = [
        "# Packing, measured",
        "",
        "Written by `make bench`; do not edit. Small files become MDS shards of 64 MiB: listing "
        "and indexing them, reading them cold, and writing the shards until they are safe (not "
        "loading the program). Beside "
        "that, the same files read cold by threads that only read (the best number of them), "
        "fio's direct write, and fio reading blocks of that size and writing as much at once, "
        "which is what packing asks of the one device that is here. Medians of "
        f"{result['rounds']} round(s). Machine: {result['machine']['cores']} cores, Linux "
        f"{result['machine']['kernel']}.",
        "",
        "| files | of | read plainly | fio's write | its both | packed | of the lesser | of both |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for p in result["points"]:
        text.append(f"| {p['files']:,} | {p['size'] >> 10} KiB | {p['read']:.2f} GB/s "
                    f"({p['readers']} at once) | {p['write']:.2f} GB/s | {p['both']:.2f} GB/s | "
                    f"{p['pack']:.2f} GB/s | **{p['ratio']:.2f}** | {p['ratio_both']:.2f} |")
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
