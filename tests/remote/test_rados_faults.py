"""OSDs that are killed, stopped and started again under load: what was acknowledged is there, and
nobody waits longer than he was told."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import WEIR

BUDGET_S = 300
SLACK_S = 240  # a machine that is busy with other things is no fault
PATIENCE_S = 600


class Load:
    """load.py in a process of its own; its lines are counted as they come."""

    def __init__(self, url):
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).parent / "load.py", url], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = b""

    def count(self):
        self.text += self.process.stdout.read() or b""
        return self.text.count(b"\n")

    def progress(self, more):
        """Waits until so many more puts were acknowledged."""
        want, end = self.count() + more, time.monotonic() + PATIENCE_S
        while self.count() < want:
            assert self.process.poll() is None, "the load died"
            assert time.monotonic() < end, f"only {self.count()} of {want} puts came through"
            time.sleep(0.1)

    def end(self):
        os.set_blocking(self.process.stdout.fileno(), True)
        out, _ = self.process.communicate(b"", timeout=2 * PATIENCE_S)
        assert self.process.returncode == 0
        return json.loads((self.text + out).splitlines()[-1])

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def loads(cluster):
    """One on each pool: of two copies of which one is enough, of three of which two are."""
    if "PYTHONPATH" not in os.environ:
        pytest.skip("the package is tested with the plain build")
    started = [Load(cluster.rados_store("faults", pool=pool, timeout=f"{BUDGET_S}s",
                                        object_size="1M")) for pool in ("two", "three")]
    yield started
    for load in started:
        load.kill()


def test_what_was_acknowledged_survives(cluster, loads):
    def progress(more=4):
        for load in loads:
            load.progress(more)

    progress()
    cluster.kill("osd.0")
    progress()
    cluster.heal()
    cluster.pause("osd.1")
    progress()
    cluster.heal()
    progress()
    for name in ("osd.0", "osd.1", "osd.2"):
        cluster.kill(name)
    cluster.heal()
    progress()
    for load in loads:
        told = load.end()
        assert told["wrong"] == [] and told["acknowledged"] >= 20
        assert told["longest_s"] < BUDGET_S + SLACK_S
        # Nothing was down for longer than the budget, so nothing had to fail.
        assert told["failed"] == []


def weir_fails(url, *args, input=None):
    start = time.monotonic()
    done = subprocess.run([WEIR, "--store", url, *args], input=input, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 1, done.stdout
    assert time.monotonic() - start < 10 + SLACK_S
    return done.stderr.decode()


def test_no_wait_without_an_end(cluster):
    good, url = cluster.rados_store("wait"), cluster.rados_store("wait", timeout="10s")
    subprocess.run([WEIR, "--store", good, "put", "-", "key"], input=b"x", check=True)
    for name in ("osd.0", "osd.1", "osd.2"):
        cluster.pause(name)
    line = weir_fails(url, "get", "key", "-")
    assert "did not answer within 10 s" in line and "ceph -s" in line
    for name in ("osd.0", "osd.1", "osd.2"):
        cluster.resume(name)
    cluster.wait_up(cluster.osds)
    cluster.pause("mon")
    assert "no monitor of the cluster answers" in weir_fails(url, "get", "key", "-")
    cluster.resume("mon")
    out = subprocess.run([WEIR, "--store", good, "get", "key", "-"],
                         stdout=subprocess.PIPE, check=True).stdout
    assert out == b"x"


def test_a_part_that_was_refused_fails_the_commit(cluster):
    """Everything but the part itself would be taken: a write that was answered is not yet there."""
    url = cluster.rados_store("refused")
    data = bytes(range(256)) * 4096 * 3
    put = [WEIR, "--store", url, "put", "-", "key"]
    cluster.run("ceph", "tell", "osd.*", "config", "set", "osd_max_object_size", "1048576")
    try:
        done = subprocess.run(put, input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 1 and "cannot write" in done.stderr.decode()
        listed = subprocess.run([WEIR, "--store", url, "ls"], stdout=subprocess.PIPE, check=True)
        assert b"key" not in listed.stdout
    finally:
        cluster.run("ceph", "tell", "osd.*", "config", "set", "osd_max_object_size", "134217728")
    subprocess.run(put, input=data, stdout=subprocess.DEVNULL, check=True)
    out = subprocess.run([WEIR, "--store", url, "get", "key", "-"], stdout=subprocess.PIPE,
                         check=True).stdout
    assert out == data


def wait_full(cluster, is_full):
    end = time.monotonic() + PATIENCE_S
    while is_full != bool(re.search(r"'two'.* flags \S*full", cluster.run("ceph", "osd", "dump"))):
        assert time.monotonic() < end, cluster.run("ceph", "osd", "dump")
        time.sleep(0.3)


def put_until_full(url):
    """What is said when a put fails; not all OSDs learn at once that they are full."""
    for i in range(60):
        done = subprocess.run([WEIR, "--store", url, "put", "-", f"other-{i}"],
                              input=bytes(2 << 20), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE_S)
        if done.returncode:
            return done.stderr.decode()
        time.sleep(0.5)
    return "nothing failed"


def test_a_full_cluster_says_so(cluster):
    url = cluster.rados_store("full", timeout="60s")
    subprocess.run([WEIR, "--store", url, "put", "-", "key"], input=b"x", check=True)
    cluster.ceph("osd set-nearfull-ratio 0.0001", "osd set-backfillfull-ratio 0.0002",
                 "osd set-full-ratio 0.0003")
    try:
        wait_full(cluster, True)
        assert "is full" in put_until_full(url)
        out = subprocess.run([WEIR, "--store", url, "get", "key", "-"], stdout=subprocess.PIPE,
                             check=True).stdout
        assert out == b"x"
    finally:
        cluster.ceph("osd set-full-ratio 0.97", "osd set-backfillfull-ratio 0.95",
                     "osd set-nearfull-ratio 0.93")
        wait_full(cluster, False)
