"""weir trace: the report equals what a program did, the program notices nothing, and the advice is
what a storage engineer would say."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as xml

import pytest

from conftest import BIN, PATIENCE_S, reset_signals, wait_for

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
KIB, MIB = 1 << 10, 1 << 20


def script(weir, text):
    """A Python program that does just that; to the trace it is part of the program."""
    weir.file("work.py", textwrap.dedent(text))
    return [sys.executable, "-S", "-E", "work.py"]


def trace(weir, command, *args, rc=0, **more):
    """The document; the program has its own standard output."""
    weir("--json", "trace", "-o", "report.json", *args, "--", *command, rc=rc, **more)
    return json.loads((weir.cwd / "report.json").read_text())


def folder(doc, path):
    found, = [one for one in doc["directories"] if one["path"] == str(path)]
    return found


def kinds(doc, *weights):
    return [one["kind"] for one in doc["advice"] if not weights or one["weight"] in weights]


def advice(doc, kind):
    found, = [one for one in doc["advice"] if one["kind"] == kind]
    return found


# What was done


@needs_strace
def test_reads_are_counted(weir):
    for i in range(100):
        weir.file(f"data/{i % 3}/{i}.bin", bytes(1000 + i))
    doc = trace(weir, script(weir, """
        import os
        for turn in range(2):
            for i in range(100):
                fd = os.open(f"data/{i % 3}/{i}.bin", os.O_RDONLY)
                while os.read(fd, 400):
                    pass
                os.close(fd)
    """))
    total = sum(1000 + i for i in range(100))
    for label in range(3):
        mine = [i for i in range(100) if i % 3 == label]
        one = folder(doc, weir.cwd / "data" / str(label))
        assert one["files"] == one["small_files"] == len(mine)
        assert one["opens"] == 2 * len(mine) and one["reads"] == 6 * len(mine)
        assert one["read_bytes"] == 2 * sum(1000 + i for i in mine)
        assert one["size_bytes"] == sum(1000 + i for i in mine)
    assert doc["data"]["read_bytes"] == 2 * total and doc["data"]["write_bytes"] == 0
    assert doc["reading"]["again_bytes"] == total
    assert doc["reading"]["at_end"] == 200 and doc["reading"]["jumps"] == 0
    assert doc["reading"]["sequential_share"] == 1 and doc["reading"]["readers"] == 1
    rest = [(1000 + i) % 400 for i in range(100)]  # the last piece of each
    assert {one["from_bytes"]: one["count"] for one in doc["read_requests"]} == {
        128: 2 * sum(n < 256 for n in rest), 256: 400 + 2 * sum(n >= 256 for n in rest)}
    assert sum(doc["timeline"]["opens"]) == 200
    assert sum(doc["timeline"]["read_bytes"]) == 2 * total
    assert doc["waiting"]["read"]["calls"] == 800
    assert doc["status"] == 0 and doc["lines_strange"] == 0


@needs_strace
def test_processes_threads_and_descriptors(weir):
    weir.file("data/one", bytes(100 * KIB))
    weir.file("data/two", bytes(64 * KIB))
    doc = trace(weir, script(weir, """
        import os, sys, threading
        fd = os.open("data/one", os.O_RDONLY)
        os.read(fd, 10240)
        other = os.dup(fd)
        os.read(other, 10240)                      # goes on
        pid = os.fork()
        if pid == 0:
            os.read(fd, 10240)                     # goes on, in a child
            os.pread(fd, 4096, 0)                  # jumps, and the next one back
            os._exit(0)
        os.waitpid(pid, 0)
        os.read(fd, 10240)
        thread = threading.Thread(target=lambda: os.read(fd, 10240))
        thread.start()
        thread.join()
        os.set_inheritable(fd, False)
        os.chdir("data")
        os.posix_spawn("/bin/dd", ["dd", "if=two", "of=three", "bs=16k", "status=none"], os.environ)
        os.wait()
    """))
    files = {os.path.basename(one["path"]): one for one in doc["files"]}
    assert files["one"]["opens"] == 1 and files["one"]["reads"] == 6
    assert files["one"]["read_bytes"] == 5 * 10240 + 4096
    assert files["two"]["reads"] == 4 and files["two"]["read_bytes"] == 64 * KIB
    assert files["three"]["writes"] == 4 and files["three"]["write_bytes"] == 64 * KIB
    assert files["three"]["path"] == str(weir.cwd / "data/three")
    assert doc["reading"]["jumps"] == 2 and doc["reading"]["again_bytes"] == 4096
    assert doc["processes"] == 3 and doc["threads"] == 1


@needs_strace
def test_names_with_odd_characters(weir):
    name = 'a "b" <c> \\ d\n\t(e)\'f, \u00fc'
    weir.file(f"data/{name}", bytes(10))
    raw = os.fsencode(str(weir.cwd / "data")) + b"/\xff\xfe"
    with open(raw, "wb") as file:
        file.write(bytes(20))
    doc = trace(weir, script(weir, """
        import os
        for name in os.listdir(b"data"):
            open(b"data/" + name, "rb").read()
    """))
    paths = {os.path.basename(one["path"]): one["read_bytes"] for one in doc["files"]}
    assert paths == {name: 10, "\\xff\\xfe": 20}


@needs_strace
def test_mapped_files_are_said(weir):
    weir.file("data/m", bytes(3 * MIB))
    doc = trace(weir, script(weir, """
        import mmap
        with open("data/m", "rb") as file:
            sum(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[::4096])
    """))
    assert doc["data"]["mapped_bytes"] == 3 * MIB and doc["data"]["read_bytes"] == 0
    assert "page faults" in advice(doc, "mapped")["why"]


@needs_strace
def test_direct_io_is_told_apart(weir):
    weir.file("data/d", bytes(MIB))
    doc = trace(weir, script(weir, """
        import mmap, os
        buffer = mmap.mmap(-1, 65536)
        try:
            fd = os.open("data/d", os.O_RDONLY | os.O_DIRECT)
        except OSError:
            raise SystemExit                       # this file system has none
        while os.readv(fd, [buffer]):
            pass
        for i in range(4):
            os.preadv(os.open("data/d", os.O_RDONLY), [buffer], i * 65536)
    """))
    if not doc["data"]["read_bytes"]:
        pytest.skip("no O_DIRECT here")
    assert doc["direct_read_bytes"] == MIB and doc["data"]["read_bytes"] == MIB + 4 * 65536


# What the program notices


@needs_strace
def test_streams_and_exit_code_are_the_programs(weir):
    result = weir("trace", "--", "sh", "-c", "cat; echo to stderr >&2; exit 7", input="hello\n",
                  rc=7)
    assert result.out == "hello\n"
    assert result.err.startswith("to stderr\nsh -c ") and "\nAdvice\n" in result.err
    assert "it ended with 7" in result.err
    assert weir("trace", "--quiet", "--", "true").err == ""
    doc = trace(weir, ["true"])
    assert doc["status"] == 0 and doc["source"] == "true"
    assert weir("trace", "-q", "--", "sh", "-c", "kill -KILL $$", rc=137).out == ""


SLEEPER = """
    import os, signal, time
    data = open("data", "rb").read()
    def stop(number, frame):
        os.write(1, b"got %d\\n" % number)
        os._exit(5)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    print("ready", flush=True)
    while True:
        time.sleep(0.1)
"""


@needs_strace
@pytest.mark.parametrize("number,group", [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_signals_reach_it_and_the_report_comes(weir, number, group):
    weir.file("data", bytes(100))
    process = subprocess.Popen([BIN, "--json", "trace", "-o", "report.json", "--",
                                *script(weir, SLEEPER)], cwd=weir.cwd, env=weir.env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: (os.setsid(), reset_signals()))
    assert process.stdout.readline() == b"ready\n"
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert out.startswith(b"got %d\n" % number) and process.returncode == 5, err
    doc = json.loads((weir.cwd / "report.json").read_text())
    assert doc["data"]["read_bytes"] == 100 and doc["status"] == 5


@needs_strace
def test_a_daemon_does_not_get_our_pipe(weir):
    weir.file("data", b"x")
    out = weir("trace", "-q", "--", "sh", "-c", "ls -l /proc/self/fd").out
    assert len(re.findall("-> ", out)) == 4, out  # three streams and the directory


# What is wrong


def test_what_is_missing_is_named(weir, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").write_text("#!/bin/sh\n")
    (tmp_path / "bin/tool").chmod(0o755)
    text = weir.fails("trace", "--", "tool", env={"PATH": str(tmp_path / "bin")})
    assert "strace is missing" in text and "apt-get install strace" in text
    assert "'no-such'" in weir.fails("trace", "--", "no-such")
    assert f"cannot run '{tmp_path}/bin': it is a directory" in weir.fails("trace", "--",
                                                                         f"{tmp_path}/bin")
    assert "cannot run 'bin': there is no such" in weir.fails("trace", "--", "bin",
                                                             env={"PATH": str(tmp_path)})
    assert "a command is missing" in weir.fails("trace", rc=2)
    # The document would stand in the middle of what the command says.
    assert "need -o FILE" in weir("--json", "trace", "--", "touch", "ran", rc=2).out
    assert "ran" not in os.listdir(weir.cwd)
    assert "exclude" in weir.fails("trace", "--log", "x", "--", "true", rc=2)
    assert "cannot open 'none.log'" in weir.fails("trace", "--log", "none.log")


# Logs


@needs_strace
def test_a_saved_log_says_the_same(weir):
    for i in range(80):
        weir.file(f"data/{i}", bytes(5000))
    command = ["sh", "-c", "cat data/* | wc -c; cp data/1 data/new"]
    doc = trace(weir, command, "--save", "saved.log")
    again = weir.json("trace", "--log", "saved.log")
    for name in set(doc) - {"source", "status"}:
        assert again[name] == doc[name], name
    text = (weir.cwd / "saved.log").read_bytes()
    piped = weir("--json", "trace", "--log", "-", input=text).doc
    assert piped["data"] == doc["data"]
    # The last line is cut; the reader takes what is whole.
    weir.file("cut.log", text[:len(text) // 2])
    assert weir.json("trace", "--log", "cut.log")["lines_strange"] <= 1


LOG = """\
execve("/bin/cat", ["cat"], 0x7ffd /* 9 vars */) = 0
openat(AT_FDCWD, "/d/x", O_RDONLY) = 3
read(3, "\\1\\2"..., 131072) = 70000
read(3, "", 131072) = 0
close(3) = 0
exit_group(0) = ?
+++ exited with 0 +++
"""


@pytest.mark.parametrize("prefix", ["", "12 ", "[pid    12] ", "12 1700000000.000001 ",
                                    "12:00:01 ", "12 12:00:01.000002 ", "     0.000014 "])
@pytest.mark.parametrize("suffix", ["", " <0.000011>"])
def test_logs_of_every_kind(weir, prefix, suffix):
    lines = [prefix + line + (suffix if " = " in line and "?" not in line else "")
             for line in LOG.splitlines()]
    weir.file("strace.log", "\n".join(lines) + "\n")
    doc = weir.json("trace", "--log", "strace.log")
    assert doc["data"]["read_bytes"] == 70000 and doc["data"]["opens"] == 1
    assert doc["lines_strange"] == 0 and doc["processes"] == 1
    out = weir("trace", "--log", "strace.log").out
    assert ("without -T" in out) == (not suffix)
    assert ("no times" in out) == (prefix in ("", "12 ", "[pid    12] "))


def test_nonsense_is_taken_and_said(weir):
    nonsense = b"\xff\x00 what\nread(\n" + b"y" * 200000 + b"\n"
    weir.file("x.log", nonsense + b"getpid() = 7\n")
    doc = weir.json("trace", "--log", "x.log")
    assert doc["lines"] == 4 and doc["lines_strange"] == 3 and doc["calls"] == 1
    out = weir("trace", "--log", "x.log", "--html", "e.html", "--svg", "e.svg").out
    assert "3 of 4 lines" in out
    assert out.startswith("x.log\nno times in this log, 1 process, 0 threads besides, 1 calls\n")
    xml.parse(weir.cwd / "e.html")


@pytest.mark.parametrize("text,lines", [("", "0 lines"),
                                        ("root:x:0:0:root:/root:/bin/sh\n", "1 line"),
                                        ("what\nread(\n+++ exited with 0 +++\n", "3 lines")])
def test_what_is_no_log_is_refused(weir, text, lines):
    weir.file("x.log", text)
    said = weir.fails("trace", "--log", "x.log", "--save", "copy", "-o", "report")
    assert f"'x.log' is no log of strace: there is no system call in its {lines};" in said
    assert "strace -f -ttt -T -y" in said and "report" not in os.listdir(weir.cwd)


# Advice


def log_of(weir, lines):
    """A log of one process, a millisecond a call."""
    text = "".join(f"7 {1700000000 + i / 1000:.6f} {line}\n" for i, line in enumerate(lines))
    weir.file("made.log", text)
    return weir.json("trace", "--log", "made.log", "--memory", "64G")


def small_files(root, count, size=16384):
    for i in range(count):
        yield f'openat(AT_FDCWD, "{root}/{i % 10}/{i}.jpg", O_RDONLY) = 3 <0.000200>'
        yield "lseek(3, 0, SEEK_CUR) = 0 <0.000010>"
        yield f'read(3, ""..., {size + 1}) = {size} <0.000400>'
        yield "close(3) = 0 <0.000010>"


def test_small_files_are_to_be_packed(weir):
    doc = log_of(weir, small_files("/data/it's/train", 5000))
    pack = advice(doc, "pack")
    assert pack["weight"] == "do"
    assert pack["command"] == ("weir data pack '/data/it'\\''s/train' "
                               "'/data/it'\\''s/train-packed' --format mds --shard-size 16M")
    # Opens and closes are gone but for five, and the bytes come no slower.
    assert pack["now_s"] == pytest.approx(5000 * (190 + 390) * 1e-6, rel=0.05)
    assert pack["then_s"] == pytest.approx(5000 * 390e-6, rel=0.05)
    assert advice(doc, "buffered")["weight"] == "note"
    assert advice(doc, "prefetch")["depth"] == 2
    assert "cache" not in kinds(doc) and "fsync-missing" not in kinds(doc)


def test_reads_that_find_the_end_are_on_their_own_account(weir):
    def lines():
        for name in ("train", "val"):
            for i in range(300):
                yield f'openat(AT_FDCWD, "/data/{name}/{i}", O_RDWR) = 3 <0.000200>'
                yield "lseek(3, 0, SEEK_CUR) = 0 <0.000100>"
                yield 'read(3, ""..., 1000) = 1000 <0.001100>'
                for _ in range(9 if name == "val" else 0):
                    yield 'read(3, "", 1000) = 0 <0.000100>'
                yield 'write(3, ""..., 10) = 10 <0.000100>'
                yield "close(3) = 0 <0.000100>"
    train, val = [one for one in log_of(weir, lines())["advice"] if one["kind"] == "pack"]
    assert "600 of 1200 calls only find" in train["why"]
    assert "600 of 3900 calls only find" in val["why"]
    # What watching adds to val's many calls is not taken off what train has read.
    assert train["now_s"] == pytest.approx(300 * 0.0011, rel=0.05)
    assert train["then_s"] == pytest.approx(300 * 0.001, rel=0.05)
    assert val["then_s"] == pytest.approx(300 * 0.001, rel=0.05)


def test_parts_of_a_dataset_are_packed_apart(weir):
    doc = log_of(weir, [*small_files("/data/train", 900), *small_files("/data/val", 300)])
    assert [one["command"].split()[3] for one in doc["advice"] if one["kind"] == "pack"] == [
        "'/data/train'", "'/data/val'"]
    assert "pack" not in kinds(log_of(weir, small_files("/data", 50)))  # too few to matter


def test_shards_are_left_alone(weir):
    def lines():
        for shard in range(4):
            yield f'openat(AT_FDCWD, "/data/shard-{shard}.tar", O_RDONLY) = 3 <0.000020>'
            for _ in range(64):
                yield 'read(3, ""..., 1048576) = 1048576 <0.000500>'
            yield "close(3) = 0 <0.000010>"
    doc = log_of(weir, lines())
    assert kinds(doc, "do", "danger") == [] and "fine" in kinds(doc)
    assert "buffered" in kinds(doc)


def test_small_requests_to_large_files(weir):
    def lines(jump):
        yield 'openat(AT_FDCWD, "/data/big", O_RDONLY) = 3 <0.000020>'
        for i in range(3000):
            at = (i * 7919 % 3000 if jump else i) * 4096
            yield f'pread64(3, ""..., 4096, {at}) = 4096 <0.000300>'
    jumps = advice(log_of(weir, lines(True)), "requests")
    assert "1 MiB" in jumps["what"] and "window" in jumps["what"] and "100 %" in jumps["why"]
    assert jumps["now_s"] == pytest.approx(3000 * 300e-6)
    assert jumps["then_s"] == pytest.approx(3000 * 4096 / 2**30)
    assert "buffering=1 << 20" in advice(log_of(weir, lines(False)), "requests")["what"]


def test_shards_that_are_opened_for_every_sample(weir):
    def lines():
        for i in range(400):
            yield f'openat(AT_FDCWD, "/data/{i % 2}.mds", O_RDONLY) = 3 <0.000600>'
            yield f'pread64(3, ""..., 16384, {i * 70000}) = 16384 <0.000010>'
            yield "lseek(3, 0, SEEK_CUR) = 0 <0.000010>"
            yield "close(3) = 0 <0.000010>"
    again = advice(log_of(weir, lines()), "reopen")
    assert "2 of them were opened 400 times" in again["what"] and again["weight"] == "do"
    assert again["then_s"] == pytest.approx(again["now_s"] / 200)
    assert again["now_s"] == pytest.approx(400 * 590e-6, rel=0.02)


def test_what_is_read_again_is_to_be_cached(weir):
    def lines(epochs):
        for _ in range(epochs):
            for shard in range(3):
                yield f'openat(AT_FDCWD, "/data/{shard}", O_RDONLY) = 3 <0.000020>'
                for _ in range(20):
                    yield 'read(3, ""..., 1048576) = 1048576 <0.000500>'
                yield "close(3) = 0 <0.000010>"
    doc = log_of(weir, lines(3))
    assert doc["reading"]["again_bytes"] == 120 * MIB
    cache = advice(doc, "cache")
    assert cache["bytes"] == 64 * MIB and cache["weight"] == "note"  # memory is enough
    assert [one["hit_share"] for one in doc["reading"]["cache"]][-2:] == [0, 1]
    weir("trace", "--log", "made.log", "--memory", "32M", "-o", "small.txt")
    assert "local NVMe" in (weir.cwd / "small.txt").read_text()
    assert "cache" not in kinds(log_of(weir, lines(1)))


def test_much_that_is_read_once_goes_around_the_cache(weir):
    def lines():
        yield 'openat(AT_FDCWD, "/data/big", O_RDONLY) = 3 <0.000020>'
        for _ in range(400):
            yield 'read(3, ""..., 1048576) = 1048576 <0.000500>'
    log_of(weir, lines())
    doc = weir.json("trace", "--log", "made.log", "--memory", "512M")
    assert advice(doc, "direct")["weight"] == "do"


def save(name, sync, step):
    yield f'openat(AT_FDCWD, "{name}.tmp", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.000020>'
    for _ in range(100):
        yield 'write(3, ""..., 1048576) = 1048576 <0.000900>'
    if sync:
        yield "fsync(3) = 0 <0.040000>"
    yield "close(3) = 0 <0.000010>"
    yield f'rename("{name}.tmp", "{name}") = 0 <0.000020>'
    for _ in range(step):
        yield "lseek(0, 0, SEEK_CUR) = -1 ESPIPE (Illegal seek) <0.000010>"


@pytest.mark.parametrize("sync", [False, True])
def test_saves_that_are_waited_for_or_may_be_lost(weir, sync):
    doc = log_of(weir, [line for n in range(3) for line in save(f"/c/{n}.pt", sync, 100)])
    assert len(doc["bursts"]) == 3 and all(one["renamed"] for one in doc["bursts"])
    assert [one["synced"] for one in doc["bursts"]] == [sync] * 3
    assert ("fsync-missing" in kinds(doc, "danger")) == (not sync)
    assert doc["renames_unsynced"] == (0 if sync else 3)
    waited = advice(doc, "checkpoint")
    assert waited["now_s"] == pytest.approx(doc["bursts_busy_s"])
    assert waited["now_s"] == pytest.approx(3 * (0.104 if sync else 0.103), rel=0.02)
    assert waited["then_s"] == pytest.approx(300 * MIB / 4e9)
    assert f"{waited['now_s']:.2f} s of {doc['seconds']:.2f} s" in waited["what"]


@needs_strace
@pytest.mark.parametrize("sync", [False, True])
def test_a_program_that_saves(weir, sync):
    doc = trace(weir, script(weir, f"""
        import os
        for step in range(2):
            with open("ckpt.tmp", "wb") as file:
                for _ in range(4):
                    file.write(bytes(1 << 20))
                if {sync}:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace("ckpt.tmp", "ckpt")
        with open("log", "ab") as file:
            file.write(b"2 saves")
    """))
    assert [(one["bytes"], one["synced"], one["unsafe"], one["in_place"])
            for one in doc["bursts"]] == [(4 * MIB, sync, not sync, False)] * 2
    assert {one["path"] for one in doc["bursts"]} == {str(weir.cwd / "ckpt")}
    assert kinds(doc, "danger") == ([] if sync else ["fsync-missing"])
    assert doc["syncs"] == 2 * sync and doc["renames"] == 2
    assert doc["data"]["write_bytes"] == 8 * MIB + 7


def test_pages_open_and_say_it(weir):
    log_of(weir, [*small_files("/data/<&>", 500), *save("/c/a", False, 10)])
    out = weir("trace", "--log", "made.log", "--html", "r.html", "--svg", "r.svg").out
    assert max(map(len, out.splitlines())) <= 160
    page = (weir.cwd / "r.html").read_text()
    xml.fromstring(page)
    assert "http://" not in page.replace("http://www.w3.org", "") and "<script" not in page
    assert "weir data pack" in page and "fsync before rename" in page and "&lt;&amp;&gt;" in page
    xml.parse(weir.cwd / "r.svg")
    assert page.count("<svg") >= 4
