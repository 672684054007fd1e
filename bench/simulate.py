#!/usr/bin/env python3
"""Real small runs of Weir beside what weir plan simulate says of them.

    PYTHONPATH=build/plain/python bench/simulate.py DIR

A loop that reads batches of a dataset, computes (it sleeps) and saves a state of numpy arrays, on
storage whose rate is limited, so that storage is the bottleneck of some settings. The rates that
the simulator is given are measured first, each alone: how fast batches come, a snapshot is copied,
a checkpoint is written. Then every setting is run and simulated; and a run is killed at the times
at which nodes fail in the simulation, and goes on from its newest checkpoint. Prints tables in
Markdown and writes bench/results/simulate-*.json.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy

import common
import simulate_restart as restart
import weir

WEIR = os.path.join(common.ROOT, "build/plain/src/cli/weir")
MB = 1e6
SEQ = 16384  # tokens of a sample, of 2 bytes
BATCH_SAMPLES = 64
BATCH = 2 * SEQ * BATCH_SAMPLES
DATA_BYTES = 256 << 20
STATE = restart.STATE  # of each rank
READ_RATE, WRITE_RATE = "50MB", "50MB"

FIRST = dict(step=0.1, steps=40, every=20, sync=False, queue=2, staging=1 << 30, ranks=1)
# name: what differs from that.
SETTINGS = {
    "compute is the bottleneck": dict(),
    "reading is": dict(step=0.01, steps=120, every=60),
    "reading, and saves are waited for": dict(step=0.03, steps=80, every=20, sync=True),
    "saves are waited for": dict(sync=True),
    "saves in the background, one at a time": dict(queue=1, every=8),
    "saves in the background, two": dict(every=8),
    "memory for half a snapshot": dict(staging=STATE // 2),
    "two ranks on the same storage": dict(ranks=2, every=8),
    "two ranks, saves are waited for": dict(ranks=2, sync=True),
}


class Storage:
    """A dataset and a place for checkpoints, both of a limited rate."""

    def __init__(self, root):
        self.root = root
        self.data = os.path.join(root, "data")
        os.mkdir(self.data)
        tokens = numpy.arange(DATA_BYTES // 2, dtype=numpy.uint16)
        tokens.tofile(os.path.join(self.data, "a.bin"))
        self.runs = 0

    def dataset(self):
        url = f"file://{self.data}?read_rate={READ_RATE}"
        return weir.Dataset(url, batch_size=BATCH_SAMPLES, seq_len=SEQ, shuffle=False,
                            buffered=True, dp_rank=0, dp_size=1, prefetch=4, threads=1,
                            memory=64 << 20)

    def store(self):
        """The URL of a new one."""
        self.runs += 1
        return f"file://{self.root}/runs{self.runs}?write_rate={WRITE_RATE}"


def state_of(rank):
    """A few arrays, another rank's others."""
    return {f"w{rank}.{i}": numpy.full(STATE // 16 // 4, i + rank, numpy.float32)
            for i in range(16)}


def checkpointer(store, how, rank):
    return weir.Checkpointer(store, "run", keep_last=1, queue=how["queue"], rank=rank,
                             ranks=how["ranks"], token="bench", staging=how["staging"],
                             local=["*"] if how["ranks"] > 1 else ())


class Rank:
    """One rank's loop; all meet at the end of each step."""

    def __init__(self, storage, store, how, rank, barrier):
        self.how, self.rank, self.barrier = how, rank, barrier
        self.state = state_of(rank)
        self.ck = checkpointer(store, how, rank)
        self.data = storage.dataset() if rank == 0 else None
        self.read_s = self.save_s = 0.0

    def batches(self):
        while self.data:
            yield from self.data

    def warm(self):
        """What happens once: threads begin, the run is joined, memory and files are made."""
        self.ck.save(0, self.state)
        self.ck.save(0, self.state)
        self.ck.flush()
        self.all_batches = self.batches()
        if self.data:
            next(self.all_batches)

    def run(self):
        for step in range(1, self.how["steps"] + 1):
            begin = time.monotonic()
            if self.data:
                next(self.all_batches)
            self.read_s += time.monotonic() - begin
            time.sleep(self.how["step"])
            self.barrier.wait()
            if step % self.how["every"] == 0:
                begin = time.monotonic()
                self.ck.save(step, self.state, wait=self.how["sync"])
                self.save_s += time.monotonic() - begin
                self.barrier.wait()


def together(functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(storage, how):
    """The time of a run without its start and its end, and what its first rank waited for."""
    store = weir.open(storage.store())
    barrier = threading.Barrier(how["ranks"])
    ranks = [Rank(storage, store, how, i, barrier) for i in range(how["ranks"])]
    together([rank.warm for rank in ranks])
    begin = time.monotonic()
    together([rank.run for rank in ranks])
    time_s = time.monotonic() - begin
    for rank in ranks:
        rank.ck.close()
        if rank.data:
            rank.data.close()
    store.close()
    return dict(time_s=time_s, read_s=ranks[0].read_s, save_s=ranks[0].save_s)


def calibrate_reads(storage):
    """Bytes a second, and how many batches are ready after a while in which nobody took one."""
    with storage.dataset() as data:
        batches = iter(data)
        next(batches)
        time.sleep(2 * (64 << 20) / common.bytes_of("50m"))
        last, ready, waited = time.monotonic(), 0, 0.0
        while waited < BATCH / 4 / 50e6:
            next(batches)
            waited, last = time.monotonic() - last, time.monotonic()
            ready += 1
        begin = time.monotonic()
        for _ in range(64):
            next(batches)
        return dict(read=64 * BATCH / (time.monotonic() - begin), depth=ready - 1)


def calibrate_saves(storage):
    """Bytes a second of a save that is alone, and of its snapshot."""
    with weir.open(storage.store()) as store, checkpointer(store, FIRST, 0) as ck:
        state = state_of(0)
        ck.save(1, state, wait=True)  # memory and files are made
        ck.save(2, state)
        ck.flush()
        begin = time.monotonic()
        ck.save(3, state)
        copied = time.monotonic()
        ck.flush()
        return dict(copy=STATE / (copied - begin), write=STATE / (time.monotonic() - copied))


def plan(*args):
    out = subprocess.run([WEIR, "--json", "plan", "simulate", *map(str, args)], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def of_job(how):
    """One node for each rank."""
    return ["--gpus", how["ranks"], "--gpus-per-node", 1, "--step", f"{how['step'] * 1e9:.0f}ns",
            "--steps", how["steps"], "--every", how["every"], "--checkpoint", STATE * how["ranks"],
            "--save-to", "shared", "--network-rate", "1TB"]


def simulate(how, rates):
    """Batches are read by the first rank, so each has its share of them."""
    doc = plan(*of_job(how), "--batch-bytes", BATCH // how["ranks"], "--latency", "1ns",
               "--read-rate", int(rates["read"]), "--write-rate", int(rates["write"]),
               "--snapshot-rate", int(rates["copy"]), "--queue", how["queue"], "--staging",
               how["staging"], "--depth", rates["depth"], "--no-failures",
               *(["--sync"] if how["sync"] else []))
    time_s = doc["simulated_s"]
    return dict(time_s=time_s, read_s=doc["read_share"] * time_s,
                save_s=doc["checkpoint_share"] * time_s)


def run_failing(storage, rates):
    """A run that is killed now and then, for some seeds."""
    how = {**FIRST, "steps": 100, "mtbf": 5.0, "ranks": 1}
    own = restart.calibrate(storage.store(), how)
    rows = []
    for seed in (1, 2, 3):
        common.say(f"killed now and then, seed {seed}")
        real = restart.measure(storage.store(), how, seed)
        told = plan(*of_job(how), "--read-rate", int(own["load"]), "--write-rate",
                    int(rates["write"]), "--snapshot-rate", int(rates["copy"]), "--mtbf",
                    f"{how['mtbf']}s", "--loss-share", 0, "--detect", "0s", "--restart",
                    f"{own['launch'] * 1e9:.0f}ns", "--seed", seed)
        rows.append(dict(seed=seed, how=how, measured=real,
                         simulated=dict(time_s=told["simulated_s"], failures=told["failures"])))
    return own, rows


def show_head(rates):
    print(f"Measured: batches come at {rates['read'] / MB:.1f} MB/s, a checkpoint is written at "
          f"{rates['write'] / MB:.1f} MB/s, a snapshot copied at {rates['copy'] / MB:.0f} MB/s; "
          f"{rates['depth']} batches are ready if nobody takes one.\n")
    print("| setting | measured s | simulated s | differs | reading, measured s | simulated s | "
          "saving, measured s | simulated s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")


def show(row):
    real, told = row["measured"], row["simulated"]
    print(f"| {row['setting']} | {real['time_s']:.2f} | {told['time_s']:.2f} | "
          f"{100 * (told['time_s'] / real['time_s'] - 1):+.1f} % | {real['read_s']:.2f} | "
          f"{told['read_s']:.2f} | {real['save_s']:.2f} | {told['save_s']:.2f} |", flush=True)


def show_failing(own, rows):
    print(f"\nKilled now and then: a process starts in {own['launch']:.2f} s and loads at "
          f"{own['load'] / MB:.0f} MB/s.\n")
    print("| seed | killed | measured s | simulated failures | simulated s | differs |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        real, told = row["measured"], row["simulated"]
        print(f"| {row['seed']} | {real['failures']} | {real['time_s']:.2f} | "
              f"{told['failures']:.0f} | {told['time_s']:.2f} | "
              f"{100 * (told['time_s'] / real['time_s'] - 1):+.1f} % |")
    real = sum(row["measured"]["time_s"] for row in rows)
    told = sum(row["simulated"]["time_s"] for row in rows)
    print(f"| all | | {real:.2f} | | {told:.2f} | {100 * (told / real - 1):+.1f} % |")


def keep(name, **results):
    path = os.path.join(common.ROOT, f"bench/results/simulate-{name}.json")
    with open(path, "w") as f:
        json.dump(dict(machine=common.machine(), **results), f, indent=1)
        f.write("\n")


def settings(storage):
    rates = {**calibrate_reads(storage), **calibrate_saves(storage)}
    rows = []
    show_head(rates)
    for name, change in SETTINGS.items():
        how = {**FIRST, **change}
        rows.append(dict(setting=name, how=how, measured=measure(storage, how),
                         simulated=simulate(how, rates)))
        show(rows[-1])
    keep("settings", rates=rates, rows=rows)


def failing(storage):
    rates = calibrate_saves(storage)
    own, rows = run_failing(storage, rates)
    show_failing(own, rows)
    keep("failing", rates={**rates, **own}, rows=rows)


def main():
    root = tempfile.mkdtemp(prefix="simulate-", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        storage = Storage(root)
        settings(storage)
        failing(storage)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
