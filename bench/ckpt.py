#!/usr/bin/env python3
"""Measures checkpoints beside torch.save, safetensors, torch.distributed.checkpoint and fio.

In each round all save the same state durably, then in the background beside a compute loop, then
load it cold, each in a process of its own in the same directory, another one first in each round.
Medians and ratios go to bench/results/ckpt.json, docs/bench-ckpt.md and docs/bench-ckpt.svg.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import ckpt_page
import common
from common import GB, ROOT, say

SAVERS = ["weir", "torch", "safetensors", "dcp", "dcp_threads", "fio"]
LOADERS = ["weir", "torch", "safetensors", "dcp"]
# DCP copies into fresh memory at each save unless it is given a stager to keep.
BACKGROUND = {"weir": ("weir", {}), "dcp": ("dcp", {}), "dcp_kept": ("dcp", {"stager": "kept"})}
THREADS = [2, 4, 8]  # of DCP's writer, of which the best is shown beside its default, 1

MODULES = "torch, safetensors"


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
        self.fio_path = os.path.join(self.dir, "fio.data")
        self.runs = {}

    def note(self, name, value):
        self.runs.setdefault(name, []).append(value)

    def work(self, job, name, **options):
        return work(self.options, job, name, self.dir, self.options.size_bytes, options)

    # setups

    def best_threads(self):
        """How many threads serve DCP's writer best here."""
        rates = {}
        for threads in THREADS:
            run = self.work("save", "dcp", dcp={"threads": threads})
            rates[threads] = run["bytes"] / run["last"]["seconds"]
        best = max(rates, key=lambda threads: rates[threads])
        say(f"DCP's best save: {rates[best] / GB:.2f} GB/s with {best} threads")
        return best

    # rounds

    def save(self, name):
        if name == "fio":
            common.settle(self.dir)
            rate = common.fio_write(self.fio_path, self.bytes, self.write_setup, keep=True)
            self.note("save_fio_gb_s", rate / GB)
            return
        run = self.work("save", name.removesuffix("_threads"),
                        dcp={"threads": self.threads if name == "dcp_threads" else 1})
        last = run["last"]
        self.note(f"save_{name}_gb_s", run["bytes"] / last["seconds"] / GB)
        self.note(f"save_{name}_cpu_s_per_gb", last["cpu_seconds"] / run["bytes"] * GB)
        self.note(f"save_{name}_peak_mib", last["peak_bytes"] / 2**20)
        if name == "weir":
            self.note("save_weir_first_gb_s", run["bytes"] / run["first"]["seconds"] / GB)

    def background(self, key):
        name, options = BACKGROUND[key]
        run = self.work("async", name, **{name: options})
        self.note(f"blocked_{key}_s", run["blocked_s"])
        self.note(f"compute_{key}_ratio", run["compute_ratio"])
        self.note(f"async_{key}_peak_mib", run["peak_bytes"] / 2**20)
        for copy in ("memcpy_s", "memcpy_each_s", "torch_copy_s"):
            self.note(copy, run[copy])

    def load(self, turn):
        for folder, _, names in os.walk(self.dir):  # see fio_read() in engine.py: host caches
            for name in names:
                path = os.path.join(folder, name)
                if os.path.getsize(path) > 1 << 24:
                    common.fio_read(path, self.read_setup)
        if turn % 2:
            self.load_fio()
        run = self.work("load", "weir", loaders=LOADERS, turn=turn, check=turn == 0)
        if not turn % 2:
            self.load_fio()
        self.cold = run["caches_dropped"]
        for name, one in run["runs"].items():
            self.note(f"load_{name}_gb_s", run["bytes"] / one["seconds"] / GB)
            self.note(f"load_{name}_cpu_s_per_gb", one["cpu_seconds"] / run["bytes"] * GB)
            self.note(f"load_{name}_peak_mib", one["peak_bytes"] / 2**20)

    def load_fio(self):
        common.settle(self.dir)
        self.note("load_fio_gb_s", common.fio_read(self.fio_path, self.read_setup) / GB)

    def round(self, turn):
        def rotated(names):
            return names[turn % len(names):] + names[:turn % len(names)]

        # What is loaded is what the durable saves leave behind.
        for key in rotated(list(BACKGROUND)):
            self.background(key)
        for name in rotated(SAVERS):
            self.save(name)
        self.load(turn)

    def run(self):
        started_s = time.monotonic()
        self.write_setup, self.read_setup = common.sweep_both(
            self.dir, min(self.options.size_bytes, 1 << 30))
        self.bytes = self.work("cap", "weir")["bytes"]
        self.threads = self.best_threads()
        for turn in range(self.options.rounds):
            self.round(turn)
            say(f"round {turn + 1} of {self.options.rounds}: " + ", ".join(
                f"{name} {values[-1]:.2f}" for name, values in self.runs.items()
                if not name.endswith(("per_gb", "mib"))))
        cap = self.work("cap", "weir")
        say(f"took {time.monotonic() - started_s:.0f} s")
        return self.result(cap)

    def result(self, cap):
        median = {name: statistics.median(values) for name, values in self.runs.items()}
        cap_mib, cap_peak_mib = cap["cap_bytes"] / 2**20, cap["peak_bytes"] / 2**20
        return {
            "machine": common.machine(),
            "versions": work(self.options, "versions", "all", self.dir, 0, {}),
            "state_bytes": self.bytes, "tensors": cap["tensors"],
            "rounds": self.options.rounds, "caches_dropped": self.cold,
            "fio_write_setup": self.write_setup, "fio_read_setup": self.read_setup,
            "dcp_threads": self.threads,
            "cap_mib": cap_mib, "cap_peak_mib": cap_peak_mib,
            "median": median, "ratio": ckpt_page.ratios(median, cap_mib, cap_peak_mib),
            "runs": self.runs,
        }


def work(options, job, name, folder, size, more):
    """Runs one job of ckpt_work.py in a process of its own."""
    path = os.path.join(ROOT, options.build, "python")
    command = [options.python, os.path.join(ROOT, "bench", "ckpt_work.py"), job, name, folder,
               str(size), json.dumps(more)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                         env=dict(os.environ, PYTHONPATH=path))
    return json.loads(out.stdout)


def main():
    parser = common.options_of(__doc__, 5)
    common.peers_options(parser, MODULES)
    parser.add_argument("--size", default="4g", help="of the state, as fio writes it")
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    reason = common.missing(options.python, MODULES)
    if reason:
        print(f"the checkpoint benchmark is skipped: {reason}")
        return
    bench = Bench(options)
    try:
        result = bench.run()
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    page = ckpt_page.page(result)
    if options.dry:
        json.dump(result["runs"], sys.stderr)
    else:
        common.keep("ckpt", result, page, ckpt_page.picture(result))
    print(page)


main()
