#!/usr/bin/env python3
"""Measures packing small files beside reading them plainly, in parallel, and beside fio's write.

In each round the files are read cold by a program that does nothing else, in many threads, then
packed cold by weir (listing and indexing them included), then fio writes as much: both onto another
device, which is memory, and onto the same disk. Who reads like that is no faster than the slower of
reading and writing, each alone; where both are one device, than both at once: what fio gets
that reads blocks of the files' size and writes as much meanwhile. Medians go to
bench/results/data-pack.json and docs/bench-data-pack.md.
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

SIZES = [1 << 10, 16 << 10, 110 << 10]
BLOCK = 4096  # what a device reads at least: fio has no like of smaller files
READERS = [8, 16, 32, 64]  # threads that read plainly, of which the best number is taken
WRITE = ["--ioengine=io_uring", "--bs=1m", "--iodepth=16"]
BOTH = [(32, 16), (64, 4), (128, 8)]  # reads and writes under way, of which the best pair is taken


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


def both_at_once(source, target, size, total, depths):
    """Until fio has read and written all: what a device gives that is read and written at once."""
    block = size // BLOCK * BLOCK
    out = subprocess.run(
        ["fio", "--output-format=json", "--direct=1", common.FIO_ALIGNED,
         f"--size={total // block * block}", "--ioengine=io_uring",
         "--name=read", f"--filename={source}", "--rw=randread", f"--bs={block}",
         f"--iodepth={depths[0]}", "--name=write", f"--filename={target}", "--rw=write", "--bs=1m",
         f"--iodepth={depths[1]}",
         "--end_fsync=1", "--unlink=1"],
        check=True, env=common.FIO_ENV, stdout=subprocess.PIPE)
    jobs = json.loads(out.stdout)["jobs"]
    return total / max(job[side]["runtime"] / 1e3 for job, side in zip(jobs, ("read", "write")))


class Measuring:
    """Files of one size, and what was seen of them: rates in GB/s, by what was done."""

    def __init__(self, options, where, memory, size):
        self.options, self.where, self.size = options, where, size
        self.into = {"memory": memory, "disk": where} if size >= BLOCK else {"memory": memory}
        self.source, self.blocks = os.path.join(where, "files"), os.path.join(where, "blocks")
        self.count = make(self.source, size, options.size_bytes)
        self.total = self.count * size
        common.fio_write(self.blocks, self.total, WRITE, keep=True)
        self.runs, self.best = {}, {}

    def note(self, name, rate):
        self.runs.setdefault(name, []).append(rate / GB)

    def best_of(self, name, choices, run):
        """All are tried in the first round; the best one from then on."""
        rates = {}
        for choice in [self.best[name]] if name in self.best else choices:
            common.settle(self.source)
            rates[choice] = run(choice)
        self.best[name] = max(rates, key=lambda choice: rates[choice])
        self.note(name, rates[self.best[name]])

    def round(self):
        self.best_of("read", READERS, lambda readers: self.total / read_plainly(
            self.options, self.source, readers))
        for place in self.into:
            common.settle(self.source)
            self.note(f"pack_{place}", self.total / pack(self.options, self.source,
                                                         self.into[place]))
            common.settle(self.where)
            self.note(f"write_{place}", common.fio_write(
                os.path.join(self.into[place], "fio"), self.total, WRITE))
        if "disk" in self.into:
            self.best_of("both", BOTH, lambda depths: both_at_once(
                self.blocks, os.path.join(self.where, "fio"), self.size, self.total, depths))

    def end(self):
        shutil.rmtree(self.source)
        os.remove(self.blocks)
        point = {name: statistics.median(values) for name, values in self.runs.items()}
        point.update(size=self.size, files=self.count, readers=self.best["read"])
        if "disk" in self.into:
            point.update(depths=self.best["both"], ratio_both=point["pack_disk"] / point["both"])
        for place in self.into:
            point[f"ratio_{place}"] = point[f"pack_{place}"] / min(point["read"],
                                                                   point[f"write_{place}"])
        say(f"{self.count} files of {self.size >> 10} KiB: " + ", ".join(
            f"{name} {value:.2f}" for name, value in point.items() if isinstance(value, float)))
        return point


def measure(options, where, memory, size):
    measuring = Measuring(options, where, memory, size)
    for _ in range(options.rounds):
        measuring.round()
    return {**measuring.end(), "runs": measuring.runs}


def rows(p):
    """Of a table: onto another device, and onto the same one."""
    begin = f"| {p['files']:,} | {p['size'] >> 10} KiB | {p['read']:.2f} GB/s ({p['readers']})"
    yield (f"{begin} | memory | {p['write_memory']:.2f} GB/s | {p['pack_memory']:.2f} GB/s | "
           f"**{p['ratio_memory']:.2f}** | |")
    if "both" not in p:
        return
    yield (f"{begin} | the same disk | {p['write_disk']:.2f} GB/s | {p['pack_disk']:.2f} GB/s | "
           f"{p['ratio_disk']:.2f} | {p['both']:.2f} GB/s: **{p['ratio_both']:.2f}** |")


def page(result):
    text = [
        "# Packing, measured",
        "",
        "Written by `make bench`; do not edit. Small files become MDS shards of 64 MiB: listing "
        "and indexing them, reading them cold, and writing the shards until they are safe (not "
        "loading the program). Beside that, the same files read cold by threads that only read "
        "(the best number of them, in brackets), and fio's direct write to the same place. Who "
        "reads like that is no faster than the lesser of the two; above 1, packing reads better. "
        "That is the comparison where shards go to another device than the files come from, here "
        "to memory (tmpfs). Where both are one disk, "
        "it reads and writes at once, and neither has the disk alone: there the limit is what fio "
        "gets that reads blocks of that size and writes as much meanwhile (the best of "
        f"{len(BOTH)} pairs of depths). Smaller files than a block of the device are packed onto "
        f"the other device only. Medians of {result['rounds']} round(s). Machine: "
        f"{result['machine']['cores']} cores, Linux {result['machine']['kernel']}.",
        "",
        "| files | of | read plainly | packed onto | fio's write there | packed | of the lesser | "
        "of fio's both at once |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for point in result["points"]:
        text.extend(rows(point))
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--size", default="1g", help="of the files, all together")
    parser.add_argument("--memory", default="/dev/shm", help="a directory of another device")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    where = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
    memory = tempfile.mkdtemp(prefix="weir-bench-", dir=options.memory)
    try:
        points = [measure(options, where, memory, size) for size in SIZES]
    finally:
        shutil.rmtree(where)
        shutil.rmtree(memory)
    result = {"machine": common.machine(), "rounds": options.rounds, "jobs": options.jobs,
              "points": points}
    common.keep("data-pack", result, page(result))


if __name__ == "__main__":
    main()
