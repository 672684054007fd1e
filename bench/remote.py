#!/usr/bin/env python3
"""Measures stores on S3 beside boto3, awscli and curl, and on RADOS beside `rados bench`.

A real Ceph is made for it. In each round all get the same bytes into memory, then put as many, in
processes of their own that take turns, another one first in each round, each when the cluster is
done with what came before. boto3 has its best number of threads of a sweep, and curl its best
ranges; `rados bench` has objects and a depth as ours.
Medians and ratios go to bench/results/remote.json, docs/bench-remote.md and docs/bench-remote.svg.
"""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common
import remote_page
from common import GB, ROOT, say

sys.path.insert(0, os.path.join(ROOT, "tests", "remote"))
import ceph  # noqa: E402

MODULES = "boto3, awscli"
GETTERS = ["weir", "boto3", "curl"]
PUTTERS = ["weir", "boto3", "awscli"]
RADOS = ["weir", "bench"]
RADOS_BYTES, RADOS_DEPTH = 4 << 20, 16  # of an object, and how many at once
# Of boto3: threads and bytes of a part; of curl: ranges at once and bytes of one.
BOTO3_SWEEP = [(threads, chunk << 20) for threads in (4, 8, 16, 32) for chunk in (8, 32)]
CURL_SWEEP = [(ranges, chunk << 20) for ranges in (4, 8, 16, 32) for chunk in (8, 32)]
TIMES = 3  # gets, and puts to RADOS, of each in a round: they are short
PUT_TIMES = 2  # to S3
SWEEPS = 2  # of each choice: their mean counts
# The cluster is idle if its daemons take no more than this share of a processor for so long.
IDLE_SHARE, IDLE_S, IDLE_S_MAX = 0.05, 0.25, 20


class Bench:
    def __init__(self, options, cluster, folder):
        self.options, self.cluster, self.dir = options, cluster, folder
        self.size = options.size_bytes
        self.runs = {}
        self.puts = 0
        self.env = {**os.environ, **cluster.s3_env, "AWS_DEFAULT_REGION": "us-east-1",
                    "AWS_EC2_METADATA_DISABLED": "true"}
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else folder
        self.file = os.path.join(memory, f"weir-bench-{os.getpid()}")

    def note(self, what, run):
        self.runs.setdefault(f"{what}_mb_s", []).append(run["bytes"] / run["seconds"] / 1e6)
        self.runs.setdefault(f"{what}_cpu_s_per_gb", []).append(
            run["cpu_seconds"] / run["bytes"] * GB)

    # One run of each

    def daemons_cpu_s(self):
        ticks = 0
        for daemon in self.cluster.daemons.values():
            with open(f"/proc/{daemon.pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def settle(self):
        """Waits until the cluster is done with what came before: it deletes in the background."""
        until = time.monotonic() + IDLE_S_MAX
        while time.monotonic() < until:
            before = self.daemons_cpu_s()
            time.sleep(IDLE_S)
            if self.daemons_cpu_s() - before <= IDLE_SHARE * IDLE_S:
                return

    def timed(self, command):
        """Of a whole process."""
        self.settle()
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        out = subprocess.run(command, check=True, env=self.env, stdout=subprocess.PIPE, text=True)
        wall, after = time.monotonic() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"bytes": self.size, "seconds": wall, "cpu_seconds": cpu, "said": out.stdout}

    def told(self, command):
        """Of what a process says of itself."""
        self.settle()
        out = subprocess.run(command, check=True, env=self.env, stdout=subprocess.PIPE)
        return json.loads(out.stdout)

    def boto3(self, job, key, **options):
        return self.told([self.options.python, os.path.join(ROOT, "bench", "remote_work.py"), job,
                          self.cluster.rgw_url, self.cluster.bucket, key, str(self.size),
                          json.dumps(options)])

    def weir(self, job, key, *more):
        return self.told([os.path.join(ROOT, self.options.build, "bench", "bench-engine"), job,
                          self.cluster.s3_store("bench"), key, *more])

    def get_weir(self):
        return self.weir("get", "large")

    def get_boto3(self):
        threads, chunk = self.boto3_get
        return self.boto3("get", "plain", threads=threads, chunk=chunk)

    def get_curl(self):
        return self.curl(*self.curl_get)

    def curl(self, ranges, chunk):
        """Each range its own transfer, to nowhere."""
        lines = []
        for first in range(0, self.size, chunk):
            last = min(first + chunk, self.size) - 1
            lines += [f'url = "{self.signed}"', f'range = "{first}-{last}"',
                      'output = "/dev/null"']
        path = os.path.join(self.dir, "curl.conf")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        return self.timed(["curl", "-sS", "--no-progress-meter", "--fail", "-Z",
                           "--parallel-immediate", "--parallel-max", str(ranges), "-K", path])

    def put_weir(self, key):
        return self.weir("put", key, str(self.size))

    def put_boto3(self, key):
        threads, chunk = self.boto3_put
        return self.boto3("put", key, threads=threads, chunk=chunk, file=self.file)

    def put_awscli(self, key):
        return self.timed([os.path.join(os.path.dirname(self.options.python), "aws"), "s3", "cp",
                           "--only-show-errors", "--endpoint-url", self.cluster.rgw_url, self.file,
                           f"s3://{self.cluster.bucket}/{key}"])

    # RADOS

    def rados_weir(self, job, key, *more):
        url = self.cluster.rados_store("bench", pool="two")
        return self.told([os.path.join(ROOT, self.options.build, "bench", "bench-engine"), job,
                          url, key, *more])

    def rados_bench(self, *job):
        """The time is what it says itself: from its first object on."""
        run = self.timed(["rados", "-c", str(self.cluster.conf), "-p", "two", "bench", "600", *job,
                          "-t", str(RADOS_DEPTH), "--run-name", "bench"])
        run["seconds"] = float(re.search(r"Total time run: *([0-9.]+)", run["said"]).group(1))
        return run

    def rados_cleanup(self):
        self.cluster.run("rados", "-p", "two", "cleanup", "--run-name", "bench")

    def rados_write(self, name):
        key = f"put-{self.puts}"
        if name == "weir":
            self.note("rados_put_weir", self.rados_weir("put", key, str(self.size)))
            self.remove(self.cluster.rados_store("bench", pool="two"), key)
            return
        count = self.size // RADOS_BYTES
        self.rados_cleanup()  # it shall write new objects, too; the last ones are read
        self.note("rados_put_bench", self.rados_bench(
            "write", "-b", str(RADOS_BYTES), "--max-objects", str(count), "--no-cleanup"))

    def rados_read(self, name):
        self.note(f"rados_get_{name}", self.rados_weir("get", "large") if name == "weir"
                  else self.rados_bench("seq"))

    # Setups

    def best(self, what, choices, run):
        rates = {}
        for choice in choices * SWEEPS:
            one = run(*choice)
            rates.setdefault(choice, []).append(one["bytes"] / one["seconds"])
        best, setup = max((statistics.mean(found), choice) for choice, found in rates.items())
        say(f"the best {what}: {best / 1e6:.0f} MB/s with {setup[0]} at once of "
            f"{setup[1] >> 20} MiB")
        return setup

    def prepare(self):
        with open(self.file, "wb") as f:
            for _ in range(0, self.size, 1 << 20):
                f.write(os.urandom(1 << 20))
        self.weir("put", "large", str(self.size))
        self.rados_weir("put", "large", str(self.size))
        self.boto3("put", "plain", threads=8, chunk=32 << 20, file=self.file)
        self.signed = self.boto3("sign", "plain")
        self.boto3_get = self.best(
            "get by boto3", BOTO3_SWEEP,
            lambda threads, chunk: self.boto3("get", "plain", threads=threads, chunk=chunk))
        self.curl_get = self.best("get by curl", CURL_SWEEP, self.curl)
        self.boto3_put = self.best("put by boto3", BOTO3_SWEEP, self.sweep_put)

    def sweep_put(self, threads, chunk):
        run = self.boto3("put", "sweep", threads=threads, chunk=chunk, file=self.file)
        self.drop("sweep")
        return run

    def drop(self, key):
        self.cluster.s3().request("DELETE", f"/{self.cluster.bucket}/{key}")
        self.forget()

    def forget(self):
        """RGW keeps the bytes of what was deleted for hours, unless it is told."""
        self.cluster.run("radosgw-admin", "-n", "client.rgw", "gc", "process", "--include-all")

    # Rounds

    def put(self, name):
        self.puts += 1
        key = f"put-{self.puts}"
        self.note(f"put_{name}", getattr(self, f"put_{name}")(key))
        if name == "weir":
            self.remove(self.cluster.s3_store("bench"), key)
            self.forget()
        else:
            self.drop(key)

    def remove(self, url, key):
        binary = os.path.join(ROOT, self.options.build, "src", "cli", "weir")
        for command in (["rm", key], ["gc", "--now"]):
            subprocess.run([binary, "--store", url, *command], check=True, env=self.env,
                           stdout=subprocess.DEVNULL)

    def round(self, turn):
        def rotated(names):
            return names[turn % len(names):] + names[:turn % len(names)]

        for name in rotated(GETTERS) * TIMES:
            self.note(f"get_{name}", getattr(self, f"get_{name}")())
        for name in rotated(PUTTERS) * PUT_TIMES:
            self.put(name)
        for name in rotated(RADOS) * TIMES:
            self.rados_write(name)
        for name in rotated(RADOS) * TIMES:
            self.rados_read(name)
        self.rados_cleanup()

    def run(self):
        started_s = time.monotonic()
        self.prepare()
        for turn in range(self.options.rounds):
            self.round(turn)
            say(f"round {turn + 1} of {self.options.rounds}: " + ", ".join(
                f"{name} {values[-1]:.0f}" for name, values in self.runs.items()
                if name.endswith("mb_s")))
        say(f"took {time.monotonic() - started_s:.0f} s")
        median = {name: statistics.median(values) for name, values in self.runs.items()}
        return {
            "machine": common.machine(), "versions": self.versions(),
            "object_bytes": self.size, "rounds": self.options.rounds,
            "boto3_get": self.boto3_get, "boto3_put": self.boto3_put, "curl_get": self.curl_get,
            "median": median, "ratio": remote_page.ratios(self.runs), "runs": self.runs,
        }

    def versions(self):
        code = ("import json, boto3, importlib.metadata as m; "
                "print(json.dumps({'boto3': boto3.__version__, 'awscli': m.version('awscli')}))")
        versions = self.told([self.options.python, "-c", code])
        versions["curl"] = subprocess.run(["curl", "--version"], check=True, text=True,
                                          stdout=subprocess.PIPE).stdout.split()[1]
        versions["ceph"] = self.cluster.run("ceph", "--version").split()[2]
        return versions

    def close(self):
        if os.path.exists(self.file):
            os.remove(self.file)


def why_not(options):
    if not shutil.which("curl"):
        return "curl is not installed: tools/setup bench"
    return ceph.missing(rgw=True) or common.missing(options.python, MODULES)


def measure(options):
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir=options.dir) as folder:
        with ceph.Cluster(osd_bytes=options.size_bytes * 8 + (4 << 30), where=folder) as cluster:
            cluster.need_rgw()
            bench = Bench(options, cluster, folder)
            try:
                return bench.run()
            finally:
                bench.close()


def main():
    parser = common.options_of(__doc__, 5)
    common.peers_options(parser, MODULES)
    parser.add_argument("--size", default="1g", help="of the object, as fio writes it")
    options = parser.parse_args()
    options.size_bytes = common.bytes_of(options.size)
    reason = why_not(options)
    if reason:
        print(f"the benchmark of remote stores is skipped: {reason}")
        return
    result = measure(options)
    page = remote_page.page(result)
    if options.dry:
        json.dump(result["runs"], sys.stderr)
    else:
        common.keep("remote", result, page, remote_page.picture(result))
    print(page)


main()
