"""weir bench of a bucket and of a pool: what it measures, and that nothing of it is left."""
import json
import os
import signal
import subprocess

import pytest

from conftest import WEIR
from processes import reset_signals

FAST = ["--seconds", "0.05", "--size", "16M", "--long-write", "16M", "--blocks", "4K,1M",
        "--depths", "1,8", "--threads", "2"]


class Remote:
    """A URL, and the names below it as another client sees them."""

    def __init__(self, url, env, names):
        self.url, self.env, self.names = url, {**os.environ, **env}, names

    def start(self, *args):
        return subprocess.Popen([WEIR, "--json", "bench", self.url, *args], env=self.env,
                                preexec_fn=reset_signals, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, (out[-2000:], err[-2000:])
        return json.loads(out)


def s3(cluster):
    def names():
        _, _, body = cluster.s3().request("GET", f"/{cluster.bucket}",
                                          {"list-type": "2", "prefix": "bench/"})
        return [part.split("</Key>")[0] for part in body.decode().split("<Key>")[1:]]
    return Remote(cluster.s3_store("bench"), cluster.s3_env, names)


def rados(cluster):
    return Remote(cluster.rados_store("bench"), {},
                  lambda: cluster.run("rados", "-p", "two", "-N", "bench", "ls").split())


@pytest.fixture(params=["s3", "rados"])
def remote(request):
    return s3(request.getfixturevalue("rgw")) if request.param == "s3" else \
        rados(request.getfixturevalue("cluster"))


def mine(remote):
    return [name for name in remote.names() if "weir-bench-" in name or "part" in name]


def test_what_it_gives(remote, tmp_path):
    doc = remote.run(*FAST, "--save", str(tmp_path / "p.json"), "--html", str(tmp_path / "p.html"))
    assert doc["kind"] == remote.url.split(":")[0] and not doc["direct"]
    assert not [step for step in doc["steps"] if "error" in step]
    assert {step["cache"] for step in doc["steps"]} == {"not known"}
    assert {step["part"] for step in doc["steps"]} == {
        "basic", "blocks", "depths", "threads", "checkpoint", "long", "shards", "lookup"}
    saved = json.loads((tmp_path / "p.json").read_text())
    for name in ("read_bytes_per_s", "write_bytes_per_s", "checkpoint_bytes_per_s",
                 "shards_bytes_per_s", "lookup_iops", "lookup_latency_s_p99", "best_depth"):
        assert saved[name] > 0, name
    assert mine(remote) == []


def test_stopped_and_killed(remote):
    for number in (signal.SIGINT, signal.SIGKILL):
        process = remote.start(*FAST, "--only", "lookup", "--seconds", "600", "--limit", "1h")
        while len(mine(remote)) < 4:
            assert process.poll() is None, process.communicate()
        process.send_signal(number)
        process.communicate(timeout=300)
        assert bool(mine(remote)) == (number == signal.SIGKILL)
    assert remote.run("--clean")["removed"] == 1
    # What a blob consists of that was never committed is no name, but gc's.
    for command in (["init"], ["gc", "--now"]):
        subprocess.run([WEIR, "--store", remote.url, *command], env=remote.env, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert mine(remote) == []
