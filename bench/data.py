#!/usr/bin/env python3
"""Measures reading datasets beside MosaicML Streaming, WebDataset, LitData, files with PyTorch's
DataLoader, and fio.

All read the same samples, each from what its own library wrote, shuffled, at the number of workers
that serves it best here, each in a process of its own, another one first in each round: warm, and
cold. Medians and ratios go to bench/results/data.json, docs/bench-data.md and its pictures.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common
import data_page
from common import GB, ROOT, say

SIZES = {1024: 256 << 20, 16384: 1 << 30, 112640: 2 << 30}  # of a sample, of the dataset
CONTENDERS = ["weir", "weir_mds", "weir_files", "streaming", "webdataset", "litdata", "files"]
# Who reads what another has written.
MADE_BY = {"weir_mds": "streaming", "weir_files": "files", "weir_long": "weir",
           "weir_fresh": "weir"}
WORKERS = {"weir": [1, 2, 4], "weir_mds": [4], "weir_files": [4], "streaming": [0, 2, 4],
           "webdataset": [0, 2, 4], "litdata": [0, 2, 4], "files": [0, 2, 4]}
COLD_SIZES = [1024, 16384, 112640]
# What is cold must take longer than its beginning. Of samples that small only Weir reads as much:
# others are far slower even when warm.
COLD_TOTAL = {1024: 1 << 30}
COLD_EPOCHS = 4  # after the first, read around the page cache, so that all of them are cold
# Beside fio, several times in each round, for they take no time: these epochs, one with its
# beginning, and one in memory that was not touched before.
COMPARED = ["weir_long", "fio", "weir", "weir_fresh"]
COLD_PAIRS = 3
TOKENS_TURNS = 3  # in each round, for the same reason
TOKENS_BYTES, TOKENS_BATCH = 1 << 30, 64
TRIES = 2  # of each number of workers: one alone is chance

MODULES = "torch, webdataset, litdata"


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="weir-bench-", dir=options.dir)
        self.runs, self.best, self.memory = {}, {}, {}

    def note(self, name, value):
        self.runs.setdefault(name, []).append(value)

    def work(self, job, name, size, **options):
        folder = self.folder(name, size)
        return work(self.options, job, name, folder, size, options)

    def make_cold(self, size):
        """More of the same, as Weir's shards alone; where that is."""
        source, folder = (os.path.join(self.dir, f"{name}-{size}") for name in ("more", "cold"))
        work(self.options, "make", "streaming", source, size, {"total": COLD_TOTAL[size]})
        self.weir("data", "pack", source, folder, "--format", "mds", "--shard-size", "64M")
        shutil.rmtree(source)
        return folder

    def folder(self, name, size):
        return os.path.join(self.dir, f"{MADE_BY.get(name, name)}-{size}")

    def make(self, size):
        for name in data_page.PEERS:
            start_s = time.monotonic()
            self.work("make", name, size, total=SIZES[size])
            say(f"{name}, samples of {size}: written in {time.monotonic() - start_s:.0f} s")
        self.weir("data", "pack", self.folder("streaming", size), self.folder("weir", size),
                  "--format", "mds", "--shard-size", "64M")

    def weir(self, *args):
        weir = os.path.join(ROOT, self.options.build, "src", "cli", "weir")
        subprocess.run([weir, *args], check=True, stdout=subprocess.DEVNULL)

    def epoch(self, name, size, workers, seed):
        return self.work("epoch", name, size, total=SIZES[size], workers=workers, seed=seed)

    def find_workers(self, size):
        """How many workers (for Weir: threads) serve each best; this also warms what it reads."""
        for name in CONTENDERS:
            rates = {}
            self.epoch(name, size, WORKERS[name][0], 0)
            for workers in TRIES * WORKERS[name] if WORKERS[name][1:] else WORKERS[name]:
                try:
                    rate = self.epoch(name, size, workers, 0)["per_s"]
                    rates[workers] = max(rate, rates.get(workers, 0))
                except RuntimeError as error:
                    say(f"{name} with {workers} workers: {error}")
            self.best[f"{name}_{size}"] = max(rates, key=lambda workers: rates[workers])
            say(f"{name}, samples of {size}: " + ", ".join(
                f"{workers}: {rate:.0f}/s" for workers, rate in rates.items()))

    def warm(self, size, turn):
        for name in rotated(CONTENDERS, turn):
            run = self.epoch(name, size, self.best[f"{name}_{size}"], turn + 1)
            self.note(f"warm_{name}_{size}_per_s", run["per_s"])
            self.note(f"whole_{name}_{size}_per_s", run["whole_per_s"])
            if name == "weir":
                self.memory[f"weir_{size}"] = (run["halfway_bytes"], run["end_bytes"])

    def cold(self, size, folder, turn):
        """folder: all that is read; None: each reads its own."""
        for name in rotated([*([] if folder else CONTENDERS[1:]), *COLD_PAIRS * COMPARED], turn):
            self.dropped = common.settle(self.dir)
            if name == "fio":
                rate = common.fio_read(self.fio_path, self.read_setup)
            else:
                rate = self.cold_epochs(name, folder or self.folder(name, size), size, turn)
            self.note(f"cold_{name}_{size}_gb_s", rate / GB)

    def cold_epochs(self, name, folder, size, turn):
        is_long = name == "weir_long"
        more = {"buffered": False} if name.startswith("weir") else {}
        if more and not is_long:
            more["epochs"] = 1  # and nothing of the next one
        run = work(self.options, "epoch", name, folder, size, dict(
            total=COLD_TOTAL.get(size, SIZES[size]), seed=turn + 1, once=True,
            touch=name != "weir_fresh", again=COLD_EPOCHS if is_long else 0,
            workers=self.workers_cold(name, size), more=more))
        if run["touched_per_s"]:
            self.note("touched_gb_s", run["touched_per_s"] / GB)
        return run["per_s" if is_long else "whole_per_s"] * size

    def workers_cold(self, name, size):
        """Threads that wait for storage take no processor's time: Weir has its default."""
        return 0 if name.startswith("weir") else self.best[f"{name}_{size}"]

    def read_tokens(self, seq_len, seed):
        return work(self.options, "tokens", "weir", os.path.join(self.dir, "tokens"), 0,
                    {"seed": seed, "seq_len": seq_len, "batch": TOKENS_BATCH})

    def tokens(self, turn):
        for seq_len in data_page.SEQ_LENS:
            run = self.read_tokens(seq_len, turn + 1)
            self.note(f"tokens_{seq_len}_gb_s", run["per_s"] / GB)
        copy = work(self.options, "memcpy", "", self.dir, 1 << 30, {})
        self.note("memcpy_gb_s", copy["per_s"] / GB)

    def make_tokens(self):
        """A file of tokens, put into a store: what Weir has sealed it may map."""
        raw, store = os.path.join(self.dir, "raw-tokens"), os.path.join(self.dir, "tokens")
        work(self.options, "make", "tokens", raw, 0, {"total": TOKENS_BYTES})
        self.weir("--store", store, "put", os.path.join(raw, "train.bin"), "train.bin")
        shutil.rmtree(raw)

    def run(self):
        started_s = time.monotonic()
        self.fio_path = os.path.join(self.dir, "fio.data")
        _, self.read_setup = common.sweep_both(self.dir, 1 << 30)
        common.fio_write(self.fio_path, 2 << 30, ["--bs=1m", "--ioengine=io_uring"], keep=True)
        self.make_tokens()
        for size in SIZES:
            self.make(size)
            self.find_workers(size)
            for turn in range(self.options.rounds):
                self.warm(size, turn)
            if size in COLD_SIZES:
                folder = self.make_cold(size) if size in COLD_TOTAL else None
                for turn in range(self.options.rounds):
                    self.cold(size, folder, turn)
                shutil.rmtree(folder or "", ignore_errors=True)
            for name in ("weir", *data_page.PEERS):
                shutil.rmtree(self.folder(name, size))
        self.read_tokens(data_page.SEQ_LENS[0], 0)  # who read cold has dropped it from memory
        for turn in range(self.options.rounds * TOKENS_TURNS):
            self.tokens(turn)
        say(f"took {time.monotonic() - started_s:.0f} s")
        median = {name: statistics.median(values) for name, values in self.runs.items()}
        return {
            "machine": common.machine(),
            "versions": work(self.options, "versions", "all", self.dir, 0, {}),
            "sizes": {str(size): total for size, total in SIZES.items()},
            "cold_sizes": COLD_SIZES,
            "cold_total": {str(size): total for size, total in COLD_TOTAL.items()},
            "cold_epochs": COLD_EPOCHS, "workers": self.best,
            "memory": self.memory,
            "rounds": self.options.rounds, "caches_dropped": self.dropped,
            "fio_read_setup": self.read_setup, "median": median,
            "ratio": data_page.ratios(median, SIZES, COLD_SIZES), "runs": self.runs,
        }


def rotated(names, turn):
    return names[turn % len(names):] + names[:turn % len(names)]


def work(options, job, name, folder, size, more):
    """Runs one job of data_work.py in a process of its own."""
    path = os.path.join(ROOT, options.build, "python")
    command = [options.python, os.path.join(ROOT, "bench", "data_work.py"), job, name, folder,
               str(size), json.dumps(more)]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=900, env=dict(os.environ, PYTHONPATH=path))
    if out.returncode:
        raise RuntimeError(f"{job} of {name}: {out.stderr.strip().splitlines()[-1]}")
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = common.options_of(__doc__, 5)
    common.peers_options(parser, MODULES)
    options = parser.parse_args()
    reason = common.missing(options.python, MODULES)
    if reason:
        print(f"the dataset benchmark is skipped: {reason}")
        return
    bench = Bench(options)
    try:
        result = bench.run()
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    page = data_page.page(result)
    if options.dry:
        json.dump(result["runs"], sys.stderr)
    else:
        common.keep("data", result, page, data_page.picture(result))
        common.draw("bench-data-files", data_page.files_picture(result))
    print(page)


main()
