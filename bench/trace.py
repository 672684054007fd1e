#!/usr/bin/env python3
"""weir trace on real programs: what it advises, what following that gains, what watching costs.

    python3 bench/trace.py [--files 20000] [--rounds 3] [--part read|loops|packed|save]

A DataLoader over small files is traced, its advice is followed to the letter, and the stall of a
loop before and after is measured without a trace. Then packed datasets, and a loop that saves with
torch.save, without and with fsync, and with weir.Checkpointer. Writes bench/results/trace.json and
the figures of docs/trace.md.
"""
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common
from common import ROOT, say

WORK = os.path.join(ROOT, "bench", "trace_work.py")
BYTES = 16384
BEGIN, END = "<!-- figures: bench/trace.py -->", "<!-- end of figures -->"


class Bench:
    def __init__(self, options, folder):
        self.o, self.folder = options, folder
        self.weir = os.path.join(ROOT, options.build, "src", "cli", "weir")
        self.env = {**os.environ, "WEIR_CACHE": os.path.join(folder, "cache"),
                    "PYTHONPATH": os.path.join(ROOT, options.build, "python"),
                    "PYTHONDONTWRITEBYTECODE": "1"}
        self.cold = True

    def path(self, name):
        return os.path.join(self.folder, name)

    def job(self, *args):
        return [self.o.python, WORK, *map(str, args)]

    def run(self, *args, **env):
        """One run of the job, as it is, with nothing cached: what it saw of itself."""
        self.cold &= common.settle(self.folder)
        out = subprocess.run(self.job(*args), env={**self.env, **env}, stdout=subprocess.PIPE,
                             check=True).stdout
        return json.loads(out.splitlines()[-1])

    def traced(self, name, *args, **env):
        """The same under weir trace: the report, and what the job saw."""
        self.cold &= common.settle(self.folder)
        report = self.path(f"{name}.json")
        command = [self.weir, "--json", "trace", "-o", report, "--save", self.path(f"{name}.log"),
                   "--", *self.job(*args)]
        out = subprocess.run(command, env={**self.env, **env}, stdout=subprocess.PIPE,
                             check=True).stdout
        with open(report) as file:
            return json.load(file), json.loads(out.splitlines()[-1])

    def page(self, name, target):
        subprocess.run([self.weir, "--quiet", "trace", "--log", self.path(f"{name}.log"), "--html",
                        target + ".html", "--svg", target + ".svg"], check=True)


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def advice_of(doc):
    return [{name: one.get(name) for name in ("kind", "weight", "what", "now_s", "then_s",
                                              "command")} for one in doc["advice"]]


def brief(doc):
    return {"seconds": doc["seconds"], "files": doc["data"]["files"], "opens": doc["data"]["opens"],
            "reads": doc["data"]["reads"], "read_bytes": doc["data"]["read_bytes"],
            "typical_bytes": doc["reading"]["typical_bytes"],
            "sequential_share": doc["reading"]["sequential_share"],
            "waiting_s": sum(one["seconds"] for one in doc["waiting"].values()),
            "calls": doc["calls"], "advice": advice_of(doc)}


# The raw-file case: the advice, then a loop before and after


def measure_reading(b):
    o, raw = b.o, b.path("raw")
    subprocess.run(b.job("make", raw, o.files, BYTES), check=True)
    doc, seen = b.traced("files", "files", raw, "--workers", o.workers, "--step-ms", o.step_ms)
    pack = next(one for one in doc["advice"] if one["kind"] == "pack")
    depth = next(one["depth"] for one in doc["advice"] if one["kind"] == "prefetch")
    say(pack["command"])
    b.page("files", b.path("files"))
    alone = b.run("files", raw, "--workers", o.workers, "--step-ms", o.step_ms)
    return {"trace": brief(doc), "traced_s": seen["seconds"], "alone_s": alone["seconds"],
            "prefetch": depth,
            "command": pack["command"].replace(b.folder, "/data"),
            "what": pack["what"].replace(b.folder, "/data")}


def measure_loops(b, advised):
    """The loop over files, and over what the advised command made of them; without a trace."""
    o, raw = b.o, b.path("raw")
    if not os.path.exists(raw):
        subprocess.run(b.job("make", raw, o.files, BYTES), check=True)
    words = shlex.split(advised["command"].replace("/data", b.folder))
    begin = time.monotonic()
    subprocess.run([b.weir, *words[1:]], check=True, stdout=subprocess.PIPE, env=b.env)
    result = {"packing_s": time.monotonic() - begin, "before": [], "after": []}
    for _ in range(o.rounds):
        result["before"].append(b.run("files", raw, "--workers", o.workers, "--step-ms", o.step_ms))
        result["after"].append(b.run("weir", words[4], "--step-ms", o.step_ms, "--prefetch",
                                     advised["prefetch"]))
        say(f"stalled {result['before'][-1]['stall_s']:.2f} s, "
            f"then {result['after'][-1]['stall_s']:.2f} s")
    return result


def measure_packed(b):
    raw, packed, tars = b.path("raw"), b.path("raw-packed"), b.path("tars")
    if not os.path.exists(raw):
        subprocess.run(b.job("make", raw, b.o.files, BYTES), check=True)
    if not os.path.exists(packed):
        subprocess.run([b.weir, "data", "pack", raw, packed, "--format", "mds"], check=True,
                       stdout=subprocess.PIPE, env=b.env)
    subprocess.run([b.weir, "data", "pack", raw, tars, "--format", "wds"], check=True,
                   stdout=subprocess.PIPE, env=b.env)
    jobs = {"weir.Dataset": ("weir", packed), "MosaicML Streaming": ("streaming", packed),
            "WebDataset": ("webdataset", tars)}
    rows = {}
    for name, (job, folder) in jobs.items():
        doc, _ = b.traced(job, job, folder, "--step-ms", b.o.step_ms, WEIR_IO="threads")
        rows[name] = brief(doc)
        say(f"{name}: {[one['kind'] for one in rows[name]['advice']]}")
    return rows


# Saving


def measure_saving(b):
    how = ["--mib", b.o.mib, "--saves", 4, "--steps", 20, "--step-ms", 20]
    rows = {}
    for name, job, more in (("torch.save, rename", "save", []),
                            ("torch.save, fsync, rename", "save", ["--fsync"]),
                            ("weir.Checkpointer", "checkpointer", [])):
        doc = None
        if job == "save":
            doc, _ = b.traced(f"save{len(rows)}", job, b.path(f"ckpt{len(rows)}"), *how, *more)
            shutil.rmtree(b.path(f"ckpt{len(rows)}"))
        runs = []
        for _ in range(b.o.rounds):
            runs.append(b.run(job, b.path("ckpt"), *how, *more))
            shutil.rmtree(b.path("ckpt"))
        rows[name] = {"runs": runs, "trace": doc and brief(doc),
                      "busy_s": doc and doc["bursts_busy_s"]}
        say(f"{name}: stalled {median(runs, 'stall_s'):.2f} s")
    b.page("save0", b.path("save"))
    return rows


# What watching costs


def measure_overhead(b):
    """A program that does nothing but read small files that are in memory: the worst case."""
    code = ("import os, sys, time\nbegin = time.monotonic()\n"
            "for i in range(5000):\n    with open(sys.argv[1], 'rb') as f: f.read()\n"
            "print(time.monotonic() - begin)")
    small = b.path("small")
    with open(small, "wb") as file:
        file.write(bytes(BYTES))
    plain, traced, calls = [], [], 0
    for _ in range(3):
        command = [sys.executable, "-c", code, small]
        plain.append(float(subprocess.check_output(command)))
        report = b.path("overhead.json")
        traced.append(float(subprocess.check_output([b.weir, "--json", "trace", "-o", report, "--",
                                                     *command])))
        with open(report) as file:
            calls = json.load(file)["calls"]
    extra = min(traced) - min(plain)
    return {"plain_s": min(plain), "traced_s": min(traced), "calls": calls,
            "us_a_call": extra / calls * 1e6}


# The figures in docs/trace.md


def advice_text(doc):
    return "; ".join(f"**{one['kind']}**" if one["weight"] != "note" else one["kind"]
                     for one in doc["advice"])


def reading_rows(result):
    r = result["reading"]
    pack = next(one for one in r["trace"]["advice"] if one["kind"] == "pack")
    yield f"Of the DataLoader it says to {r['what']}:\n"
    yield f"    {r['command']}\n"
    yield (f"and expects {pack['now_s']:.2f} s of waiting in calls to become {pack['then_s']:.2f} s"
           " or less.")


def loops_rows(result):
    r = result["loops"]
    before, after = median(r["before"], "stall_s"), median(r["after"], "stall_s")
    yield f"That took {r['packing_s']:.1f} s, once. The loop before and after, without a trace:\n"
    yield "| the loop | stood still | of its time | in each run |"
    yield "| --- | --- | --- | --- |"
    for name, runs in (("DataLoader over files", r["before"]),
                       ("`weir.Dataset` over the shards", r["after"])):
        each = ", ".join(f"{run['stall_s']:.2f} s" for run in runs)
        yield (f"| {name} | {median(runs, 'stall_s'):.2f} s | "
               f"{100 * median(runs, 'stalled'):.0f} % | {each} |")
    yield f"\nThat is {before / after:.1f} times less standing still.\n"


def packed_rows(result):
    yield "| packed, read by | files | opens | reads | half of the bytes in | in order | advice |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, t in {"DataLoader over files": result["reading"]["trace"],
                    **result["packed"]}.items():
        yield (f"| {name} | {t['files']} | {t['opens']} | {t['reads']} | "
               f"≤ {t['typical_bytes'] / 1024:.0f} KiB | {100 * t['sequential_share']:.0f} % | "
               f"{advice_text(t)} |")
    yield ""


def saving_rows(result):
    yield "| saving, four times | stood still | of its time | as the trace saw it | advice |"
    yield "| --- | --- | --- | --- | --- |"
    for name, row in result["saving"].items():
        seen = f"{row['busy_s']:.2f} s" if row["busy_s"] is not None else ""
        yield (f"| {name} | {median(row['runs'], 'stall_s'):.2f} s | "
               f"{100 * median(row['runs'], 'stalled'):.0f} % | {seen} | "
               f"{advice_text(row['trace']) if row['trace'] else ''} |")
    yield ""


def overhead_rows(result):
    o = result["overhead"]
    yield (f"Watching costs {o['us_a_call']:.0f} µs a call: a program that does nothing but open, "
           f"read and close files of 16 KiB in memory took {o['traced_s']:.2f} s instead of "
           f"{o['plain_s']:.2f} s ({o['calls']} calls).")
    if "reading" in result:
        r = result["reading"]
        yield (f"The DataLoader's epoch took {r['traced_s']:.1f} s under the trace, "
               f"{r['alone_s']:.1f} s without.")


def write_figures(result):
    path = os.path.join(ROOT, "docs", "trace.md")
    with open(path) as file:
        text = file.read()
    lines = []
    for part, rows in (("reading", reading_rows), ("loops", loops_rows), ("packed", packed_rows),
                       ("saving", saving_rows), ("overhead", overhead_rows)):
        if part in result:
            lines += rows(result)
    head, rest = text.split(BEGIN)
    with open(path, "w") as file:
        file.write(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def main():
    parser = common.options_of(__doc__, 3)
    common.peers_options(parser, "torch, webdataset and streaming")
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--step-ms", type=float, default=2)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--part", choices=["read", "loops", "packed", "save"])
    options = parser.parse_args()
    why = common.missing(options.python, "torch, webdataset")
    if why:
        sys.exit(why)
    name = os.path.join(ROOT, "bench", "results", "trace.json")
    result = {}
    if os.path.exists(name) and options.part:
        with open(name) as file:
            result = json.load(file)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="trace-") as folder:
        b = Bench(options, folder)
        result.update(machine=common.machine(), files=options.files, step_ms=options.step_ms)
        if options.part in (None, "read"):
            result["reading"] = measure_reading(b)
        if options.part in (None, "loops"):
            result["loops"] = measure_loops(b, result["reading"])
        if options.part in (None, "packed"):
            result["packed"] = measure_packed(b)
        if options.part in (None, "save"):
            result["saving"] = measure_saving(b)
        if options.part in (None, "read"):
            result["overhead"] = measure_overhead(b)
        result["cold"] = b.cold
        for made in ("files", "save"):
            for kind in (".html", ".svg"):
                if os.path.exists(b.path(made) + kind):
                    shutil.copy(b.path(made) + kind,
                                os.path.join(options.dir, f"trace-{made}{kind}"))
    if options.dry:
        print(json.dumps(result, indent=1))
        return
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w") as file:
        file.write(json.dumps(result, indent=1).replace(folder, "/data") + "\n")
    write_figures(result)


if __name__ == "__main__":
    main()
