"""weir put: files, standard input and directories become objects."""
import os
import subprocess
import threading

import pytest

from conftest import BIN, peak_bytes, wait_for

MIB = 1 << 20


def test_makes_the_store_and_says_so(weir):
    weir.file("model.bin", b"x" * 3000)
    result = weir("put", "model.bin")
    assert result.err == "made store ./weir-store\n"
    assert result.out == "model.bin  2.9 KiB  level home\n"
    assert weir("put", "model.bin", "again").err == ""


def test_a_store_is_not_made_for_nothing(weir):
    assert "No such file" in weir.fails("put", "missing")
    assert "No such file" in weir.fails("put", "-r", "missing")
    (weir.cwd / "dir").mkdir()
    assert "is a directory: -r" in weir.fails("put", "dir")
    assert not weir.store.exists()


@pytest.mark.parametrize("args, key", [
    (["sub/f.bin"], "f.bin"),
    (["sub/f.bin", "key"], "key"),
    (["sub/f.bin", "a/b/"], "a/b/f.bin"),
    (["sub/f.bin", "a/b"], "a/b"),
    (["./sub/../sub/f.bin", "a/"], "a/f.bin"),
])
def test_key_of_a_file(weir, args, key):
    weir.file("sub/f.bin")
    weir("put", *args)
    assert weir.keys() == [key]


@pytest.mark.parametrize("args, prefix", [
    (["tree"], "tree"), (["tree/"], "tree"), (["tree", "k"], "k"), (["tree", "k/"], "k/tree"),
])
def test_key_of_a_directory(weir, args, prefix):
    weir.file("tree/a")
    weir.file("tree/sub/b")
    weir("put", "-r", *args)
    assert weir.keys() == [f"{prefix}/a", f"{prefix}/sub/b"]


def test_the_working_directory_is_called_what_it_is(weir):
    weir.file("tree/a")
    weir.cwd = weir.cwd / "tree"
    weir("put", "-r", ".", "--store", "../s")
    assert weir("ls", "-r", "--store", "../s").lines == ["tree/a"]


@pytest.mark.parametrize("size", [0, 1, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB, 17 * MIB + 5])
def test_sizes(weir, size):
    content = os.urandom(size)
    weir.file("f", content)
    weir("put", "f")
    weir("put", "-", "g", input=content)
    for key in "f", "g":
        assert weir("cat", key).raw == content
        assert (weir.store / key).read_bytes() == content
    assert weir.json("stat", "f")["objects"][0]["size_bytes"] == size
    weir("verify")


def test_unchanged_and_changed(weir):
    weir.file("f", b"a" * (2 * MIB))
    weir("put", "f")
    assert weir("put", "f").out == "f  2.0 MiB  unchanged\n"
    assert weir("put", "-", "f", input=b"a" * (2 * MIB)).out == "f  2.0 MiB  unchanged\n"
    for other in b"a" * (2 * MIB - 1) + b"b", b"a" * (2 * MIB - 1), b"a" * (2 * MIB + 1), b"":
        weir.file("f", other)
        assert "'f' exists already, with other content" in weir.fails("put", "f")
        assert "'f' exists already, with other content" in weir.fails("put", "-", "f", input=other)
    assert weir("cat", "f").raw == b"a" * (2 * MIB)
    assert weir.debris() == ([], 0)


def test_unchanged_means_verified(weir):
    weir.put("f", b"a" * MIB)
    weir.flip("f", 77)
    assert "damaged in block 0" in weir.fails("put", "-", "f", input=b"a" * MIB)


def test_meta(weir):
    weir.file("f")
    weir("put", "f", "--meta", "step=1000", "--meta", "note=a=b ü", "--meta=empty=")
    want = {"step": "1000", "note": "a=b ü", "empty": ""}
    assert weir.json("stat", "f")["objects"][0]["meta"] == want
    assert "step=1000" in weir("stat", "f").out
    weir("put", "f", "g", "--meta", "red=\x1b[31m")
    assert "red=\\x1b[31m" in weir("stat", "g").out
    assert weir("put", "f").out.endswith("unchanged\n")
    weir("put", "f", "--meta", "step=1000", "--meta", "note=a=b ü", "--meta=empty=")
    assert "other metadata" in weir.fails("put", "f", "--meta", "step=2")


@pytest.mark.parametrize("meta, text", [
    (["x"], "'x' is not NAME=VALUE"), (["=x"], "'=x' is not NAME=VALUE"),
    (["a=1", "a=2"], "'a' is given twice"), ([b"a=\xff"], "is not UTF-8"),
])
def test_wrong_meta(weir, meta, text):
    weir.file("f")
    args = [arg for m in meta for arg in ("--meta", m)]
    assert text in weir.fails("put", "f", *args, rc=2)
    assert not weir.store.exists()


def test_too_much_meta(weir):
    weir("init")
    weir.file("f")
    many = [f"--meta=n{i}=v" for i in range(65)]
    assert "more than 64 times" in weir.fails("put", "f", *many, rc=2)
    weir("put", "f", "g", *many[1:])
    assert "the limit is 65536" in weir.fails("put", "f", "--meta", "a=" + "x" * 70000)


def test_block(weir):
    weir.put("f", b"x" * 10000)
    weir("put", "-", "g", "--block", "4K", input=b"x" * 10000)
    blocks = [o["block_bytes"] for o in weir.json("stat", "f", "g")["objects"]]
    assert blocks == [MIB, 4096]
    weir.flip("g", 5000)
    assert "block 1 (bytes 4096-8191)" in weir.fails("cat", "g")
    for wrong in "5000", "1K", "2M", "x", "":
        assert "--block" in weir.fails("put", "-", "h", "--block", wrong, rc=2)


def test_recursive(weir):
    for name in "z", "a", "sub/x", "sub/deep/er/y", "sp ace/ü":
        weir.file("tree/" + name, name)
    (weir.cwd / "tree/empty").mkdir()
    result = weir("put", "-r", "tree", "k", "--jobs", "3")
    keys = ["k/a", "k/sp ace/ü", "k/sub/deep/er/y", "k/sub/x", "k/z"]
    assert [line.split("  ")[0].strip() for line in result.lines[:-1]] == keys
    assert result.lines[-1] == "5 objects stored (29 B)"
    assert weir.keys() == keys
    assert weir("cat", "k/sp ace/ü").out == "sp ace/ü"


def test_recursive_is_resumed_by_running_it_again(weir):
    for i in range(10):
        weir.file(f"tree/{i}", str(i) * 1000)
    weir("put", "tree/3", "k/3")
    weir("put", "tree/7", "k/7")
    assert weir("put", "-r", "tree", "k").lines[-1].startswith("8 objects stored, 2 unchanged")
    assert weir("put", "-r", "tree", "k").lines[-1].startswith("0 objects stored, 10 unchanged")


def test_jobs_share_one_bound_of_memory(weir):
    if b"__asan_init" in BIN.read_bytes():
        pytest.skip("a sanitizer's own memory would be measured")
    for i in range(8):
        os.truncate(weir.file(f"tree/{i}", ""), 40 * MIB)
    for args in ["put", "-r", "tree", "k"], ["put", "-r", "tree", "k"], ["get", "-r", "k", "out"]:
        process = weir.start(*args, "--jobs", "8", stdout=subprocess.DEVNULL)
        most = peak_bytes(process)
        assert process.wait() == 0
        assert most < 192 * MIB, args


def test_recursive_goes_on_after_a_failure(weir):
    for name in "a", "b~", "c":
        weir.file("tree/" + name)
    weir.put("k/c", "other")
    result = weir("put", "-r", "tree", "k", rc=1)
    assert weir.keys() == ["k/a", "k/c"]
    assert len(result.err.splitlines()) == 2
    assert "'k/b~' cannot be a key" in result.err
    assert "'k/c' exists already, with other content" in result.err
    assert result.lines[-1] == "1 object stored (6 B), 2 failed"


def test_a_full_store_stops_it_all(weir):
    weir("init")
    for i in range(40):
        weir.file(f"tree/{i:02}", "x")
    full = f"file://{weir.store}?fault_ops=write&fault_rate=1&fault_error=ENOSPC"
    doc = weir.json("--store", full, "put", "-r", "tree", "k", "--jobs", "2", rc=1)
    assert doc["error"]["code"] == "ENOSPC"
    assert 1 <= doc["failed"] <= 4
    assert [o["status"] for o in doc["objects"]].count("skipped") == 40 - doc["failed"]
    assert weir.keys() == []


def test_symbolic_links(weir):
    weir.file("tree/a", "content")
    weir.file("elsewhere/d")
    (weir.cwd / "tree/link").symlink_to("a")
    (weir.cwd / "tree/dead").symlink_to("nowhere")
    (weir.cwd / "tree/dir").symlink_to("../elsewhere")
    result = weir("put", "-r", "tree", "k", rc=1)
    assert weir.keys() == ["k/a"]
    assert result.err.count("is a symbolic link: --follow") == 3
    result = weir("put", "-r", "tree", "k", "--follow", rc=1)
    assert weir("cat", "k/link").out == "content"
    assert "tree/dead" in result.err and "tree/dir" in result.err
    # The one a person names is followed, as everywhere.
    weir("put", "tree/link", "named")
    (weir.cwd / "whole").symlink_to("tree")
    weir("put", "-r", "whole", "w", rc=1)
    assert "w/a" in weir.keys()


def test_what_is_no_file(weir):
    weir.file("tree/a")
    os.mkfifo(weir.cwd / "tree/pipe")
    assert "'tree/pipe' is not a plain file" in weir("put", "-r", "tree", rc=1).err
    assert weir.keys() == ["tree/a"]


def test_a_store_is_left_out(weir):
    weir.file("a")
    weir("put", "-r", ".", "k")
    assert weir("put", "-r", ".", "k").err == "left out ./weir-store: it belongs to a store\n"
    assert weir.keys() == ["k/a"]


def test_streams(weir):
    os.mkfifo(weir.cwd / "pipe")

    def feed():
        with open(weir.cwd / "pipe", "wb") as pipe:
            pipe.write(b"y" * (3 * MIB))
    feeder = threading.Thread(target=feed)
    feeder.start()
    weir("put", "pipe", "piped")
    feeder.join()
    assert weir("cat", "piped").raw == b"y" * (3 * MIB)
    with open(weir.file("f", b"0123456789"), "rb") as f:
        f.seek(4)  # what is redirected may stand anywhere
        process = weir.start("put", "-", "tail", stdin=f)
        assert process.wait() == 0
    assert weir("cat", "tail").out == "456789"


@pytest.mark.parametrize("args", [["put", "-"], ["put", "-", "k/"], ["put", "-", ""],
                                  ["put", "-r", "-", "k"]])
def test_standard_input_needs_a_key(weir, args):
    weir.fails(*args, rc=2)


def test_a_file_that_changes_meanwhile(weir):
    path = weir.file("f", b"x" * (8 * MIB))
    weir("init")
    slow = f"file://{weir.store}?write_rate=1M"
    process = weir.start("--store", slow, "put", "f", stderr=-1)
    tmp = weir.store / ".weir/tmp"
    wait_for(lambda: list(tmp.glob("*")), "the writer")
    with open(path, "ab") as f:
        f.write(b"more")
    err = process.communicate()[1].decode()
    assert process.returncode == 1
    assert err == "weir: 'f' changed while it was being read: nothing was stored\n"
    assert weir.keys() == [] and weir.debris() == ([], 0)


def test_writers_of_the_same_key(weir):
    """Exactly one wins; those with the same content are content."""
    weir("init")
    contents = [b"a" * (2 * MIB), b"a" * (2 * MIB), b"b" * (2 * MIB)]
    files = [weir.file(f"f{i}", c) for i, c in enumerate(contents)]
    for round in range(4):
        processes = [weir.start("put", f.name, f"k{round}", stdout=-1, stderr=-1) for f in files]
        codes = []
        for p in processes:
            p.communicate()
            codes.append(p.returncode)
        won = weir("cat", f"k{round}").raw
        assert codes == [0 if c == won else 1 for c in contents]
    weir("verify")
    assert weir.debris() == ([], 0)


def test_quiet(weir):
    weir.file("tree/f")
    for args in ["tree/f"], ["-r", "tree"]:
        result = weir("put", "--quiet", *args)
        assert result.out == "" and result.err == ""
    assert "cannot open" in weir.fails("put", "-q", "missing")
