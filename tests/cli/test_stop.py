"""Ctrl-C, SIGTERM, SIGHUP and closed pipes: nothing is left behind, and what was done is said."""
import json
import os
import signal
import subprocess

import pytest

from conftest import BIN, PATIENCE_S, is_polite, wait_for

MIB = 1 << 20
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def slow(weir, option="write_rate", rate="1M"):
    return f"file://{weir.store}?{option}={rate}"


def tmp_files(weir):
    return list((weir.store / ".weir/tmp").glob("*"))


@pytest.mark.parametrize("number, rc", SIGNALS)
def test_put_from_a_pipe(weir, number, rc):
    """It is stopped while it waits for more input."""
    weir.put("before")
    process = weir.start("put", "-", "k", stdin=subprocess.PIPE, **PIPES)
    process.stdin.write(b"x" * (3 * MIB))
    process.stdin.flush()
    wait_for(lambda: tmp_files(weir), "the writer")
    process.send_signal(number)
    process.wait(timeout=PATIENCE_S)
    assert process.returncode == rc
    assert process.stderr.read() == f"weir: stopped by {number.name}\n".encode()
    assert weir.keys() == ["before"] and weir.debris() == ([], 0)


@pytest.mark.parametrize("number, rc", SIGNALS)
def test_recursive_put(weir, number, rc):
    weir("init")
    for i in range(40):
        weir.file(f"tree/{i:02}", os.urandom(MIB // 4))
    process = weir.start("--store", slow(weir), "put", "-r", "tree", "k", "--jobs", "2", **PIPES)
    process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    keys = weir.keys()
    assert process.returncode == rc
    assert 1 <= len(keys) < 40
    done = f"weir: stopped by {number.name}: {len(keys)} object{'s' * (len(keys) > 1)} stored "
    assert err.decode().startswith(done) and f"{40 - len(keys)} not stored" in err.decode()
    assert weir.debris() == ([], 0)
    weir("verify")
    again = weir("put", "-r", "tree", "k").lines[-1]
    assert f"{len(keys)} unchanged" in again
    assert len(weir.keys()) == 40


def test_recursive_put_in_json(weir):
    weir("init")
    for i in range(40):
        weir.file(f"tree/{i:02}", os.urandom(MIB // 4))
    process = weir.start("--store", slow(weir), "--json", "put", "-r", "tree", "k", "-j1", **PIPES)
    wait_for((weir.store / "k/00").exists, "the first object")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    doc = json.loads(out)
    assert process.returncode == 130 and err == b""
    assert doc["error"]["code"] == "EINTR" and doc["done"] == len(weir.keys())
    states = [o["status"] for o in doc["objects"]]
    assert states == ["stored"] * doc["done"] + ["skipped"] * (40 - doc["done"])


@pytest.mark.parametrize("args", [["get", "k", "out"], ["get", "-r", "d", "out"]])
def test_get(weir, args):
    for key, size in ("k", 96), ("d/1", 48), ("d/2", 48):
        weir.put(key, bytes(size * MIB))
    process = weir.start("--store", slow(weir, "read_rate", "8M"), *args, **PIPES)
    wait_for(lambda: list(weir.cwd.rglob(".weir-get-*")), "the temporary file")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert not list(weir.cwd.rglob(".weir-get-*"))
    assert not [p for p in weir.cwd.rglob("out*") if p.is_file()]


def test_verify(weir):
    for i in range(3):
        weir.put(f"k{i}", bytes(70 * MIB))
    process = weir.start("--store", slow(weir, "read_rate", "15M"), "verify", "-j1", **PIPES)
    wait_for(lambda: is_polite(process), "the handler")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert b"stopped by SIGTERM: " in err and b"not verified" in err


def test_cat_that_nobody_reads(weir):
    weir.put("k", os.urandom(4 * MIB))
    process = weir.start("cat", "k", **PIPES)
    process.stdout.read(1)  # it is blocked in a write now, or will be
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 130


def test_the_second_one_kills(weir):
    weir("init")
    weir.file("f", os.urandom(40 * MIB))
    process = weir.start("--store", slow(weir), "put", "f", **PIPES)
    wait_for(lambda: tmp_files(weir), "the writer")
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) in (130, -signal.SIGINT)
    assert weir.keys() == []


def test_ignored_signals_stay_ignored(weir):
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    weir("init")
    process = subprocess.Popen([BIN, "put", "-", "k"], cwd=weir.cwd,
                               env=weir.env, stdin=subprocess.PIPE, preexec_fn=ignore, **PIPES)
    process.stdin.write(b"x" * MIB * 2)
    process.stdin.flush()
    wait_for(lambda: tmp_files(weir), "the writer")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and weir.keys() == ["k"]


@pytest.mark.parametrize("command", ["cat k", "get k -", "ls -r", "ls -lr"])
def test_closed_pipe(weir, command):
    weir.put("k", os.urandom(8 * MIB))
    if command.startswith("ls"):
        for i in range(2000):
            (weir.store / f"{i:04}{'x' * 60}").touch()
    process = weir.start(*command.split(), **PIPES)
    process.stdout.read(1)
    process.stdout.close()
    err = process.stderr.read()
    # By exit code, or by the signal itself: a shell shows 141 for both.
    assert process.wait(timeout=PATIENCE_S) in (141, -signal.SIGPIPE)
    assert err == b""


def test_put_goes_on_without_a_reader(weir):
    for i in range(20):
        weir.file(f"tree/{i}")
    process = weir.start("put", "-r", "tree", "k", **PIPES)
    process.stdout.close()
    process.wait(timeout=PATIENCE_S)
    assert len(weir.keys()) == 20


def test_closed_streams(weir):
    """What is meant for a closed stream must not end up in a file that took its number."""
    weir.file("f", os.urandom(MIB))

    def close_all():
        for fd in 0, 1, 2:
            os.close(fd)
    for args, rc in (["put", "f"], 1), (["put", "f"], 1), (["put", "missing"], 1), (["ls"], 1):
        process = subprocess.Popen([BIN, *args], cwd=weir.cwd, env=weir.env, preexec_fn=close_all)
        assert process.wait(timeout=PATIENCE_S) == rc
    assert weir("cat", "f").raw == (weir.cwd / "f").read_bytes()
    weir("verify")
    assert weir.debris() == ([], 0)


def test_output_that_cannot_be_written(weir):
    weir.put("k")
    for args in ["ls"], ["--json", "ls"], ["stat", "k"], ["version"]:
        with open("/dev/full", "w") as full:
            process = weir.start(*args, stdout=full, stderr=subprocess.PIPE)
            err = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == 1
        assert err == b"weir: cannot write to standard output: No space left on device\n"
