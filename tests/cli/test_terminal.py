"""What a person at a terminal sees: the progress bar, and no bar where none belongs."""
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE_S

MIB = 1 << 20


def on_terminal(weir, *args, stdin=subprocess.DEVNULL, stdout="tty", after=None):
    """Runs weir with stderr (and stdout, unless told otherwise) on a terminal; what it shows."""
    ours, theirs = pty.openpty()
    process = weir.start(*args, stdin=stdin, stderr=theirs,
                         stdout=theirs if stdout == "tty" else stdout)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        shown += piece
        if after and re.search(rb"%|files", shown):
            process.send_signal(after)
            after = None
    os.close(ours)
    return process.wait(timeout=PATIENCE_S), shown.decode(errors="replace")


@pytest.fixture
def slow(weir):
    """A store that takes two seconds for 10 MiB."""
    weir("init")
    for i in range(4):
        weir.file(f"tree/{i}", os.urandom(5 * MIB // 2))
    weir.file("f", os.urandom(10 * MIB))
    return f"file://{weir.store}?write_rate=5M&read_rate=5M"


# However slow the machine is.
BAR = re.compile(r"\rstoring  \[=*>? *\]  +\d+%  [\d.]+ [KM]iB of 10\.0 MiB  "
                 r"[\d.]+ [KM]iB/s  \d+:\d\d left")


def test_bar(weir, slow):
    rc, shown = on_terminal(weir, "--store", slow, "put", "f")
    assert rc == 0
    assert BAR.search(shown), shown
    assert shown.endswith("\r\x1b[Kf  10.0 MiB  level home\r\n")  # the bar makes room


def test_bar_of_many(weir, slow):
    rc, shown = on_terminal(weir, "--store", slow, "put", "-r", "tree", "-j", "2")
    assert rc == 0
    assert re.search(r"left  [0-3]/4", shown), shown
    plain = [re.sub(r".*\r\x1b\[K", "", line) for line in shown.split("\r\n")]
    assert "tree/0    2.5 MiB  level home" in plain
    assert "4 objects stored (10.0 MiB)" in plain


def test_files_of_a_dataset_are_counted(weir):
    """A large tree takes long to list before there is anything to index."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    for depth in range(8):
        weir.file("d/" + "sub/" * depth + "a.txt")
    slow = f"file:{weir.cwd}/d?fault_ops=list&fault_delay=300ms"
    rc, shown = on_terminal(weir, "data", "ls", slow, "--format", "files")
    assert rc == 0
    assert re.search(r"\rlisting  \d+ files  \d:\d\d", shown), shown


def test_bytes_of_a_dataset_are_counted(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    for k in range(4):
        weir.file(f"d/{k}.jsonl", '{"a": 1}\n' * 1000)
    slow = f"file:{weir.cwd}/d?fault_ops=read&fault_delay=800ms"
    rc, shown = on_terminal(weir, "data", "index", slow, "-j", "1")
    assert rc == 0
    assert re.search(r"\rindexing  \[=+> *\]  +\d+%", shown), shown


@pytest.mark.parametrize("args, doing", [(["verify"], "verifying"),
                                         (["get", "-r", "tree", "out"], "getting")])
def test_bar_of_reading(weir, slow, args, doing):
    weir("put", "-r", "tree")
    rc, shown = on_terminal(weir, "--store", slow, *args, "-j", "1")
    assert rc == 0
    assert re.search(doing + r"  \[=+> *\]  +\d+%.* left  [1-3]/4", shown), shown


def test_unknown_size(weir, slow):
    with open(weir.cwd / "f", "rb") as f:
        rc, shown = on_terminal(weir, "--store", slow, "put", "-", "k", stdin=f,
                                stdout=subprocess.DEVNULL)
    assert rc == 0
    assert re.search(r"storing  [\d.]+ [KM]iB  [\d.]+ [KM]iB/s  \d+:\d\d", shown), shown
    assert "%" not in shown


def test_a_bar_without_a_count(weir):
    """Samples and files are not counted one by one: no count stands there that never moves."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    for i in range(40):
        weir.file(f"tree/{i:02}", os.urandom(MIB // 4))
    rc, shown = on_terminal(weir, "data", "pack", "tree", f"file:{weir.cwd}/to?write_rate=5M",
                            "--format", "mds", "--shard-size", "1M")
    assert rc == 0 and re.search(r"packing  .*left", shown), shown
    assert "/40" not in shown
    rc, shown = on_terminal(weir, "data", "manifest", f"file:{weir.cwd}/to?read_rate=5M")
    assert rc == 0 and re.search(r"hashing  .*left", shown), shown
    assert not re.search(r"left  \d+/", shown), shown


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_no_bar(weir, slow, option):
    rc, shown = on_terminal(weir, "--store", slow, "put", "f", option)
    assert rc == 0 and "\r\x1b[K" not in shown and "MiB/s" not in shown


def test_no_bar_for_what_is_quick(weir):
    weir.file("f", os.urandom(MIB))
    for i in range(20):
        begin = time.monotonic()
        rc, shown = on_terminal(weir, "put", "f", f"k{i}")
        assert rc == 0
        if time.monotonic() - begin < 1:
            assert "%" not in shown
            return
    pytest.skip("nothing is quick here")


def test_no_bar_among_the_bytes(weir, slow):
    weir.file("text", b"no chance of a bar\n" * (10 * MIB // 19))
    weir("put", "text")
    rc, shown = on_terminal(weir, "--store", slow, "get", "text", "-")
    assert rc == 0 and "\r\x1b[K" not in shown


def test_ctrl_c_takes_the_bar_away(weir):
    weir("init")
    weir.file("f", bytes(40 * MIB))
    slow = f"file://{weir.store}?write_rate=2M"  # for so long that a signal is in time
    rc, shown = on_terminal(weir, "--store", slow, "put", "f", after=signal.SIGINT)
    assert rc == 130
    assert shown.endswith("\r\x1b[Kweir: stopped by SIGINT\r\n")


def sluggish(weir, count):
    """A store in which gc has to look at so many files, and takes its time for each."""
    weir("init")
    for i in range(count):
        (weir.store / ".weir/data").mkdir(exist_ok=True)
        (weir.store / f".weir/data/k{i}~00112233445566778899aabbccddeeff").write_bytes(b"debris")
    return f"file://{weir.store}?fault_delay=10ms"


def test_gc_counts(weir):
    rc, shown = on_terminal(weir, "--store", sluggish(weir, 60), "gc", "--dry-run", "--now")
    assert rc == 0
    assert re.search(r"\rcollecting  \d+ files  \d+:\d\d\x1b\[K", shown), shown
    assert shown.endswith("\r\x1b[Kwould remove 60 objects (360 B) and "
                          "0 temporary files\r\n")


def test_gc_stops(weir):
    slow = sluggish(weir, 300)  # for so long that a signal is in time
    rc, shown = on_terminal(weir, "--store", slow, "gc", "--now", after=signal.SIGINT)
    assert rc == 130
    assert shown.endswith("\r\x1b[Kweir: stopped by SIGINT\r\n")
    left = len(list((weir.store / ".weir/data").iterdir()))
    assert 0 < left < 300
    assert f"removed {left} objects" in weir("gc", "--now").out
