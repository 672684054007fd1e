#!/usr/bin/env python3
"""Measures weir bench beside fio: the same shapes in the same directory, by turns.

Each round runs, part by part, weir bench, fio's jobs of the same shape, and those again, one at
once after the other, in another order each round; before them fio once more, which does not count:
who comes first finds the machine otherwise than who comes next. weir bench is compared with
either fio beside it. How much they differ is what the machine can tell. Medians and their
ratios go to bench/results/storage.json and docs/bench-storage.md; weir bench's own plots to
docs/bench.svg.
"""
import itertools
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import common
from common import GB, ROOT, say

RING = ["--ioengine=io_uring", "--direct=1"]
CALLS = ["--ioengine=psync", "--direct=0"]

# name: part of weir bench (--only), what its step is, and fio's arguments. Writers and readers are
# four. Parts are short: what a shared machine gives changes from one second to the next.
SHAPES = {
    "sequential read, direct, 1 MiB x 16": (
        "read", {"op": "read", "order": "sequential", "direct": True},
        [*RING, "--rw=read", "--bs=1m", "--iodepth=16"]),
    "sequential read, buffered, cold": (
        "read", {"op": "read", "order": "sequential", "direct": False},
        [*CALLS, "--rw=read", "--bs=1m", "--loops=1"]),
    "sequential write, direct, 1 MiB x 16": (
        "write", {"op": "write", "order": "sequential", "direct": True},
        [*RING, "--rw=write", "--bs=1m", "--iodepth=16", "--end_fsync=1"]),
    "sequential write, buffered, synced": (
        "write", {"op": "write", "order": "sequential", "direct": False},
        [*CALLS, "--rw=write", "--bs=1m", "--end_fsync=1", "--loops=1"]),
    "random read, direct, 4 KiB x 16": (
        "randread", {"op": "read", "order": "random", "direct": True},
        [*RING, "--rw=randread", "--bs=4k", "--iodepth=16", "--norandommap"]),
    "random read, buffered, cold": (
        "randread", {"op": "read", "order": "random", "direct": False},
        [*CALLS, "--rw=randread", "--bs=4k"]),
    "random write, direct, 4 KiB x 16": (
        "randwrite", {"op": "write", "order": "random", "direct": True},
        [*RING, "--rw=randwrite", "--bs=4k", "--iodepth=16", "--norandommap", "--end_fsync=1"]),
    "random write, buffered, synced": (
        "randwrite", {"op": "write", "order": "random", "direct": False},
        [*CALLS, "--rw=randwrite", "--bs=4k", "--end_fsync=1"]),
    "checkpoint: 4 new files, 1 MiB x 16, synced": ("checkpoint", {}, None),
    "shards: 4 readers, 1 MiB x 16": (
        "shards", {}, [*RING, "--rw=read", "--bs=1m", "--iodepth=16", "--numjobs=4"]),
    "lookup: one at a time, 4 KiB": (
        "lookup", {"threads": 1}, ["--ioengine=psync", "--direct=1", "--rw=randread", "--bs=4k",
                                   "--norandommap"]),
    "lookup: 4 x 16 under way, 4 KiB": (
        "lookup", {"threads": 4}, [*RING, "--rw=randread", "--bs=4k", "--iodepth=16",
                                   "--numjobs=4", "--norandommap"]),
}
NEAR = 0.95  # of fio's rate: within five per cent
DRAWS = 2000
PAUSE_S = 0.5  # before each
# So many times as large as other data: what is written or read once should take a second, too.
TIMES = {"checkpoint": 4, "read": 2}
PARTS = ["read", "write", "randread", "randwrite", "checkpoint", "shards", "lookup"]
ORDERS = list(itertools.permutations(("weir", "fio", "again")))


class Bench:
    def __init__(self, options):
        self.options = options
        self.weir = os.path.join(ROOT, options.build, "src", "cli", "weir")
        self.dir = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
        self.data = os.path.join(self.dir, "fio.data")
        self.rows = {}

    def size_of(self, part):
        return self.options.size_bytes * TIMES.get(part, 1)

    def note(self, who, name, rate, p99):
        self.rows.setdefault(name, {}).setdefault(who, []).append(rate)
        self.rows[name].setdefault(f"{who}_p99", []).append(p99)

    # fio

    def fio_args(self, name):
        part, _, args = SHAPES[name]
        size = self.size_of(part)
        if part == "checkpoint":
            return [f"--directory={self.dir}", *RING, "--rw=write", "--bs=1m", "--iodepth=16",
                    "--numjobs=4", f"--size={size // 4}", "--fallocate=posix", "--end_fsync=1"]
        jobs = 4 if "--numjobs=4" in args else 1
        file = [f"--filename={self.data}", f"--size={size if 'rand' in args[2] else size // jobs}"]
        if jobs > 1 and "rand" not in args[2]:
            file.append(f"--offset_increment={size // jobs}")
        # Through the page cache one pass is made, as weir bench does: more would be of memory.
        timed = [] if args[:2] == CALLS else ["--time_based"]
        return [*file, *args, f"--runtime={round(1000 * self.options.seconds)}ms", *timed]

    def data_args(self, part):
        """New data, as weir bench begins with: what is beneath a virtual disk caches them, too."""
        return [f"--filename={self.data}", *RING, "--rw=write", "--bs=1m", "--iodepth=16",
                "--end_fsync=1", "--fallocate=posix", f"--size={self.size_of(part)}"]

    def fio_part(self, who, part):
        """One fio for all jobs of a part, one after the other, as weir bench works."""
        names = [name for name, shape in SHAPES.items() if shape[0] == part]
        jobs = {name: self.fio_args(name) for name in names}
        if part != "checkpoint":
            jobs = {"data": self.data_args(part), **jobs}
        command = ["fio", "--output-format=json"]
        for name, args in jobs.items():
            command += [f"--name={name}", "--stonewall", "--group_reporting",
                        common.FIO_ALIGNED, *args]
        out = subprocess.run(command, check=True, env=common.FIO_ENV, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL).stdout
        for job in json.loads(out[out.index(b"{"):])["jobs"]:
            name = job["jobname"]
            if name in names:
                side = job["read" if job["read"]["total_ios"] else "write"]
                self.note(who, name, side["bw_bytes"],
                          side["clat_ns"]["percentile"]["99.000000"] / 1e9)
        # weir bench leaves nothing, either, for who comes next. Not fio's --unlink: a job that is
        # done would hold up the others.
        for entry in os.scandir(self.dir):
            os.remove(entry)

    # Weir

    def weir_part(self, who, part):
        command = [self.weir, "--json", "bench", self.dir, "--only", part, "--seconds",
                   str(self.options.seconds), "--size", str(self.size_of(part))]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        steps = json.loads(out.stdout)["steps"]
        for name, (its, what, _) in SHAPES.items():
            if its == part:
                step, = [s for s in steps if all(s[k] == v for k, v in what.items())]
                self.note(who, name, step["bytes_per_s"], step["latency_s_p99"])

    def run(self):
        for i in range(self.options.rounds):
            for part in self.options.parts:
                for who in ("before", *ORDERS[i % len(ORDERS)]):
                    os.sync()  # what was freed is discarded now, not while others work
                    time.sleep(PAUSE_S)
                    (self.weir_part if who == "weir" else self.fio_part)(who, part)
            say(f"round {i + 1} of {self.options.rounds}: " + ", ".join(
                f"{middle(ratios(row, 'weir')[-1:]):.2f}" for row in self.rows.values()))
        median = {name: {"weir": statistics.median(rows["weir"]),
                         "weir_p99": statistics.median(rows["weir_p99"]),
                         "fio": statistics.median(rows["fio"] + rows["again"]),
                         "fio_p99": statistics.median(rows["fio_p99"] + rows["again_p99"])}
                  for name, rows in self.rows.items()}
        return {
            "machine": common.machine(), "rounds": self.options.rounds,
            "seconds": self.options.seconds, "data_bytes": self.options.size_bytes,
            "median": median,
            "ratio": {who: {name: middle(ratios(row, who)) for name, row in self.rows.items()}
                      for who in ("weir", "again")},
            "runs": self.rows,
        }


def picture(bench):
    """The first plots of weir bench's own page, below each other, as docs/bench.svg."""
    page = os.path.join(bench.dir, "page.html")
    subprocess.run([bench.weir, "--quiet", "bench", bench.dir, "--only", "blocks,depths",
                    "--seconds", str(bench.options.seconds / 2), "--html", page], check=True)
    with open(page) as file:
        plots = re.findall(r"<svg .*?</svg>", file.read(), re.S)[:2]
    width, height = [re.search(rf"{name}='(\d+)'", plots[0]).group(1)
                     for name in ("width", "height")]
    whole = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' "
             f"height='{2 * int(height)}'>"]
    whole += [plot.replace("<svg ", f"<svg y='{i * int(height)}' ", 1)
              for i, plot in enumerate(plots)]
    with open(os.path.join(ROOT, "docs", "bench.svg"), "w") as file:
        file.write("\n".join([*whole, "</svg>", ""]))


def span(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def rate(name, value):
    return f"{value / 4096:,.0f}/s" if "4 KiB" in name else f"{value / GB:.2f} GB/s"


def ratios(row, who):
    """Of each round, a list: weir to either fio beside it; the second of them to the first."""
    if who == "again":
        return [[again / fio] for again, fio in zip(row["again"], row["fio"])]
    return [[weir / fio, weir / again]
            for weir, fio, again in zip(row["weir"], row["fio"], row["again"])]


def middle(rounds):
    return statistics.median(itertools.chain.from_iterable(rounds))


def interval(row, who):
    """Where nine of ten medians lie, of rounds drawn anew from those there were."""
    draws, found = random.Random(1), ratios(row, who)
    medians = sorted(middle(draws.choices(found, k=len(found))) for _ in range(DRAWS))
    return f"{medians[DRAWS // 20]:.2f}-{medians[DRAWS - DRAWS // 20 - 1]:.2f}"


def near(result, who):
    """How many shapes are at 95 % of fio's rate or above, how many within that, of how many."""
    found = result["ratio"][who].values()
    return (sum(NEAR <= ratio for ratio in found),
            sum(NEAR <= ratio <= 1 / NEAR for ratio in found), len(found))


def table(result):
    m, r, ratio = result["machine"], result["runs"], result["ratio"]
    weir, again = near(result, "weir"), near(result, "again")
    text = [
        "# weir bench beside fio",
        "",
        "Written by `make bench` (bench/storage.py); do not edit. What `weir bench` measures and "
        "what its figures mean is in [bench.md](bench.md). The same shapes on data of "
        f"{result['data_bytes'] / 2**30:.2g} GiB in the same directory, "
        f"{result['seconds']:g} s each (sequential reads are of {TIMES['read']} times as much, a "
        f"checkpoint of {TIMES['checkpoint']} times), "
        f"medians of {result['rounds']} rounds in which `weir bench`, fio and fio again take "
        "turns, in another order each. The ratio of weir is to either fio beside it, fio's to "
        "itself is that of those two, each the median of all rounds' ratios; nine of ten such "
        "medians lie in the interval when rounds are drawn anew from these. The buffers of both "
        "are in huge pages: fio's by `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` and "
        "`--iomem_align=2m`. Memory for what goes through the page cache is at hand, for either: "
        "the host does not have to give it first; it is cut small, which makes the cold read "
        "through the cache slower than the disk is, for either. What fio is to itself is what this "
        "machine can tell. Machine: "
        f"{m['cores']} cores, Linux {m['kernel']}.",
        "",
        "| shape | weir bench | fio | weir to fio | interval | fio to itself | interval | p99 weir "
        "| p99 fio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in result["median"].items():
        text.append(f"| {name} | {rate(name, row['weir'])} | {rate(name, row['fio'])} | "
                    f"{ratio['weir'][name]:.2f} | {interval(r[name], 'weir')} | "
                    f"{ratio['again'][name]:.2f} | {interval(r[name], 'again')} | "
                    f"{span(row['weir_p99'])} | {span(row['fio_p99'])} |")
    text += ["", f"At 95 % of fio's rate or above are {weir[0]} of {weir[2]} shapes of `weir "
             f"bench`, and {again[0]} of fio's own; within five per cent either way {weir[1]} and "
             f"{again[1]}. fio's p99 is of completions (`clat`), as weir's is.", ""]
    return "\n".join(text)


def main():
    parser = common.options_of(__doc__, rounds=12)
    parser.add_argument("--size", default="1g", help="of the data, as fio writes it")
    parser.add_argument("--seconds", type=float, default=1, help="for each shape")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=PARTS,
                        help="only these, with --dry")
    parser.add_argument("--dry", action="store_true", help="print only, keep the old results")
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    if not set(options.parts) <= set(PARTS) or (options.parts != PARTS and not options.dry):
        parser.error(f"--parts: some of {', '.join(PARTS)}, with --dry")
    if shutil.disk_usage(options.dir).free < 8 * max(TIMES.values()) * options.size_bytes:
        parser.error("weir bench writes at most an eighth of what is free: take a smaller --size")
    bench = Bench(options)
    try:
        # Twice the size goes through the page cache, in pieces of 1 MiB, of which there is one in
        # each 2 MiB, and not where those lie otherwise: three times was too little.
        with common.memory_at_hand(8 * options.size_bytes):
            result = bench.run()
        page = table(result)
        print(page, flush=True)
        if not options.dry:
            common.keep("storage", result, page)
            picture(bench)
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)


main()
