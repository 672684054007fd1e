#!/usr/bin/env python3
"""Measures the engine beside fio, in one directory, interleaved, and writes what it saw.

The limit is fio's best direct write to a fresh file and its best direct read, found by a small
sweep. Then each round measures fio and both engines of Weir one after the other; medians and their
ratios go to bench/results/engine.json and docs/bench-engine.md.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile

import common
from common import GB, ROOT, say


class Bench:
    def __init__(self, options):
        self.options = options
        self.engine = os.path.join(ROOT, options.build, "bench", "bench-engine")
        self.dir = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
        self.store = os.path.join(self.dir, "store")
        self.rows = {}

    def note(self, name, value):
        self.rows.setdefault(name, []).append(value)

    # fio

    def fio_small(self):
        bytes_each, count, jobs = 16384, self.options.small, 8
        args = [f"--directory={self.dir}", "--rw=write", f"--bs={bytes_each}", "--fdatasync=1",
                "--ioengine=psync", f"--numjobs={jobs}", "--unlink=1", "--direct=0",
                f"--size={bytes_each * (count // jobs)}", "--group_reporting"]
        command = ["fio", "--name=job", "--output-format=json", *args]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        job = json.loads(out.stdout)["jobs"][0]
        return job["write"]["iops"]

    # Weir

    def weir(self, io, *args):
        env = dict(os.environ, WEIR_IO=io)
        out = subprocess.run([self.engine, *map(str, args)], check=True, stdout=subprocess.PIPE,
                             env=env)
        return json.loads(out.stdout)

    def note_weir(self, name, run):
        self.note(f"weir_{name}_gb_s", run["bytes"] / run["seconds"] / GB)
        self.note(f"weir_{name}_cpu_s_per_gb", run["cpu_seconds"] / run["bytes"] * GB)
        self.note(f"weir_{name}_rss_mib", run["rss_kib"] / 1024)

    def put(self, io):
        shutil.rmtree(self.store, ignore_errors=True)
        self.note_weir(f"put_{io}", self.weir(io, "put", self.store, "object",
                                              self.options.size_bytes))

    def get(self, io):
        self.note_weir(f"get_{io}", self.weir(io, "get", self.store, "object"))

    def round(self, number, write_setup, read_setup):
        """Everything once. Who comes first changes from round to round: whoever reads or writes
        just after a big write finds the device still busy with it."""
        fresh = os.path.join(self.dir, "fio.data")
        writes = [
            lambda: self.note("fio_write_gb_s",
                              common.fio_write(fresh, self.options.size, write_setup) / GB),
            lambda: self.put("uring"),
            lambda: self.put("threads"),
        ]
        path = os.path.join(self.store, "object")
        reads = [
            lambda: self.note("fio_read_gb_s", common.fio_read(path, read_setup) / GB),
            lambda: self.get("uring"),
            lambda: self.get("threads"),
        ]
        for i in range(len(writes)):
            common.drop_caches()
            writes[(number + i) % len(writes)]()
        # A virtual machine's host caches, too, out of our reach: one read that does not count
        # puts it into the same state for all that follow.
        common.fio_read(path, read_setup)
        for i in range(len(reads)):
            common.drop_caches()
            reads[(number + i) % len(reads)]()
        shutil.rmtree(self.store)
        self.note("fio_small_per_s", self.fio_small())
        small = self.weir("uring", "small", self.store, 16384, self.options.small, 8)
        self.note("weir_small_per_s", small["count"] / small["seconds"])
        shutil.rmtree(self.store)

    def stream(self):
        size = 4 * self.options.size_bytes
        run = self.weir("uring", "stream", self.store, "object", size)
        shutil.rmtree(self.store)
        return {"bytes": size, "rss_mib": run["rss_kib"] / 1024}

    def run(self):
        cold = common.drop_caches()
        write_setup, read_setup = common.sweep_both(self.dir, self.options.size)
        for i in range(self.options.rounds):
            self.round(i, write_setup, read_setup)
            say(f"round {i + 1} of {self.options.rounds}: " + ", ".join(
                f"{name} {values[-1]:.2f}" for name, values in self.rows.items()
                if name.endswith("_s") and "cpu" not in name))
        return self.result(write_setup, read_setup, cold, self.stream())

    def result(self, write_setup, read_setup, cold, stream):
        median = {name: statistics.median(values) for name, values in self.rows.items()}

        def ratio(top, bottom):
            return median[top] / median[bottom]

        return {
            "machine": common.machine(),
            "object_bytes": self.options.size_bytes,
            "rounds": self.options.rounds,
            "caches_dropped": cold,
            "fio_write_setup": write_setup,
            "fio_read_setup": read_setup,
            "median": median,
            "ratio": {
                "put_uring_to_fio": ratio("weir_put_uring_gb_s", "fio_write_gb_s"),
                "put_threads_to_fio": ratio("weir_put_threads_gb_s", "fio_write_gb_s"),
                "get_uring_to_fio": ratio("weir_get_uring_gb_s", "fio_read_gb_s"),
                "get_threads_to_fio": ratio("weir_get_threads_gb_s", "fio_read_gb_s"),
                "small_to_fio": ratio("weir_small_per_s", "fio_small_per_s"),
            },
            "stream": stream,
            "runs": self.rows,
        }


def table(result):
    """The measured figures as a page of docs."""
    m, r = result["median"], result["ratio"]
    rows = [
        ("durable, fingerprinted put from memory, io_uring", "put_uring", "fio_write_gb_s"),
        ("the same, thread engine", "put_threads", "fio_write_gb_s"),
        ("verified cold get into memory, io_uring", "get_uring", "fio_read_gb_s"),
        ("the same, thread engine", "get_threads", "fio_read_gb_s"),
    ]
    text = [
        "# The engine, measured",
        "",
        "Written by `make bench`; do not edit. One object of "
        f"{result['object_bytes'] / 2**30:.0f} GiB held in memory, medians of {result['rounds']} "
        "rounds in which fio and Weir take turns in the same directory, a different one first in "
        "each round; the ratio is that of the medians. fio is the best of a sweep of 18 "
        "direct-write and 9 direct-read setups "
        f"(write: `{' '.join(result['fio_write_setup'])}`, read: "
        f"`{' '.join(result['fio_read_setup'])}`). Machine: {result['machine']['cores']} cores, "
        f"Linux {result['machine']['kernel']}"
        f"{'' if result['caches_dropped'] else '; caches could not be dropped'}.",
        "",
        "| job | Weir | fio's best | ratio | CPU s/GB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, key, peer in rows:
        text.append(f"| {name} | {m[f'weir_{key}_gb_s']:.2f} GB/s | {m[peer]:.2f} GB/s | "
                    f"{r[f'{key}_to_fio']:.2f} | {m[f'weir_{key}_cpu_s_per_gb']:.2f} |")
    text += [
        "| 16 KiB objects, 8 in flight, each durable and sealed | "
        f"{m['weir_small_per_s']:.0f}/s | {m['fio_small_per_s']:.0f}/s write+fdatasync | "
        f"{r['small_to_fio']:.2f} | |",
        "",
        f"Peak memory beyond the caller's own, while {result['stream']['bytes'] / 2**30:.0f} GiB "
        f"stream in and out again: {result['stream']['rss_mib']:.0f} MiB.",
        "",
    ]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"), help="where to measure")
    parser.add_argument("--size", default="2g", help="of the large object, as fio writes it")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", type=int, default=800, help="how many small objects")
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    bench = Bench(options)
    try:
        result = bench.run()
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    page = table(result)
    common.keep("engine", result, page)
    print(page)


main()
