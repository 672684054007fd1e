"""Stores: how they are named, made, refused; and what others put into them."""
import os
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import BIN, Weir


def test_init(weir):
    result = weir("init")
    assert result.err == "made store ./weir-store\n" and result.out == ""
    assert weir("init").err == "./weir-store is a store already\n"
    assert "grace of 1 d: that cannot be changed" in weir.fails("init", "--grace", "2h")
    doc = weir.json("init")
    assert doc["made"] is False and doc["grace_s"] == 86400
    doc = weir.json("init", "--store", "new/deep", "--grace", "1.5h")
    assert doc["made"] is True and doc["grace_s"] == 5400
    assert weir.json("stat", "--store", "new/deep")["uuid"] == doc["uuid"]
    for wrong in "0s", "2y", "soon", "400d":
        assert "--grace" in weir.fails("init", "--store", "x", "--grace", wrong, rc=2)
    assert not (weir.cwd / "x").exists()


def test_how_it_is_named(weir):
    weir("put", "-", "k", "--store", "one", input="1")
    weir("put", "-", "k", env={"WEIR_STORE": "two"}, input="2")
    weir("put", "-", "k", input="default")
    assert weir("cat", "k", "--store", "one", env={"WEIR_STORE": "two"}).out == "1"
    assert weir("-s", "two", "cat", "k").out == "2"
    assert weir("cat", "k", "--store=weir-store").out == "default"
    assert weir("cat", "k", env={"WEIR_STORE": ""}).out == "default"
    assert weir("cat", "k", "--store", f"file://{weir.cwd}/one").out == "1"
    assert weir("cat", "k", "--store", "file:one").out == "1"
    assert "needs a path" in weir.fails("ls", "--store", "")


def test_odd_paths_are_literal(weir):
    for name in "a?stats=1", "a%41", "sp ace", "ü":
        weir("put", "-", "k", "--store", name, input=name)
        assert (weir.cwd / name / "k").exists()
        result = weir("cat", "k", "--store", name, "--stats")
        assert result.out == name and "request" in result.err


def test_wrong_urls(weir):
    assert "no store of kind 'ftp:'" in weir.fails("ls", "--store", "ftp://x")
    assert "no option 'nope'" in weir.fails("init", "--store", "file:s?nope=1")
    assert "out of range" in weir.fails("init", "--store", "mem:?size=0")
    weir.file("plain")
    assert "Not a directory" in weir.fails("ls", "--store", "plain")


def test_memory(weir):
    assert weir("put", "-", "k", "--store", "mem:", input="x").out == "k  1 B  level memory\n"
    assert "none" in weir("put", "-", "k", "--store", "null:", input="x").out


def test_stats(weir):
    weir.put("k")
    err = weir("cat", "k", "--stats").err
    assert err.startswith("request ") and "read " in err and "load " in err
    weir("cat", "k", "--stats", "--store", f"file://{weir.store}?read_rate=100M")
    assert weir("--json", "ls", "--stats").doc[0]["key"] == "k"


@pytest.mark.parametrize("engine", ["uring", "threads"])
def test_engines(weir, engine):
    if engine == "uring" and "io_uring is refused" in weir("version", "--verbose").out:
        pytest.skip("io_uring is refused here")
    data = os.urandom(5 << 20)
    weir("--io", engine, "put", "-", "k", input=data)
    assert weir("cat", "k", "--io", engine).raw == data
    assert weir.json("stat", f"--io={engine}")["io"] == engine
    assert weir.json("stat", env={"WEIR_IO": engine})["io"] == engine


def test_no_such_engine(weir):
    assert "'x' is neither uring nor threads" in weir.fails("ls", "--io", "x", rc=2)


def test_a_newer_store(weir):
    weir.put("k")
    marker = weir.store / ".weir/store"
    marker.chmod(0o644)
    data = bytearray(marker.read_bytes())
    data[8:10] = struct.pack("<H", 9)
    marker.write_bytes(data)
    for command in ["ls"], ["cat", "k"], ["rm", "k"], ["gc"], ["init"], ["put", "-", "x"]:
        assert "made by a newer Weir (version 9): update" in weir.fails(*command)
    assert weir.json("ls", rc=1)["error"]["code"] == "EPROTO"
    data[8:10] = struct.pack("<H", 1)
    data[20] ^= 1
    marker.write_bytes(data)
    assert "its marker .weir/store is damaged" in weir.fails("ls")


# ---- files of others ----

@pytest.fixture
def foreign(weir):
    weir.put("sealed")
    for name in "plain", "dir/plain":
        path = weir.store / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return weir


def test_foreign_files_are_read_and_listed(foreign):
    assert foreign.keys() == ["dir/plain", "plain", "sealed"]
    kinds = {e["key"]: e["kind"] for e in foreign("--json", "ls", "-lr").doc}
    assert kinds == {"dir/plain": "foreign", "plain": "foreign", "sealed": "sealed"}
    assert foreign("cat", "plain").out == "plain"
    assert "kind          foreign" in foreign("stat", "plain").out
    assert foreign("verify").out.startswith("3 objects verified")
    foreign("get", "dir/plain", "out")
    assert (foreign.cwd / "out").read_text() == "dir/plain"


def test_foreign_files_are_not_removed_or_replaced(foreign):
    assert "plain file that Weir did not write" in foreign.fails("rm", "plain")
    assert "plain file that Weir did not write" in foreign.fails("rm", "-n", "plain")
    result = foreign("rm", "-r", "plain", "sealed", "dir", rc=1)
    assert "removed sealed" in result.out and len(result.err.splitlines()) == 2
    assert "plain file that Weir did not write" in foreign.fails("put", "-", "plain", input="x")
    assert "plain file that Weir did not write" in foreign.fails("put", "-", "plain", input="plain")
    assert (foreign.store / "plain").read_text() == "plain"


def test_a_foreign_file_that_changes_silently(foreign):
    path = foreign.store / "plain"
    stamp = path.stat()
    foreign("verify")
    path.write_text("plaiN")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert "not what was read before" in foreign.fails("verify")
    path.write_text("new")
    os.utime(path, (1, 1))
    assert foreign("cat", "plain").out == "new"  # another time: another file


def test_a_directory_that_is_no_store(weir):
    weir.file("data/a", "1")
    weir.file("data/b/c", "2")
    at = ["--store", "data"]
    assert weir("ls", "-r", *at).lines == ["a", "b/c"]
    assert weir("cat", "b/c", *at).out == "2"
    assert weir("verify", *at).out == "2 objects verified (2 B)\n"
    assert "none: a plain directory" in weir("stat", *at).out
    for command in ["rm", "a"], ["gc"]:
        assert weir.fails(*command, *at) == (
            "'data' is a plain directory, not a store: weir init makes it one")
    assert not (weir.cwd / "data/.weir").exists()
    assert weir("init", *at).err == "made store data\n"
    assert weir("ls", "-r", *at).lines == ["a", "b/c"]


def test_symbolic_links_are_read_and_never_written(weir):
    weir.put("sealed")
    weir.file("theirs/file", "file")
    (weir.store / "link").symlink_to("../theirs/file")
    (weir.store / "dir").symlink_to("../theirs")
    (weir.store / "up").symlink_to("..")
    (weir.store / "own").symlink_to(".weir")
    (weir.cwd / "theirs/back").symlink_to("../weir-store")
    assert weir.keys() == ["dir/file", "link", "own", "sealed"]
    assert weir("cat", "link").out == weir("cat", "dir/file").out == "file"
    for key in ("up/theirs/file", "own/store", "dir/back/sealed"):
        assert "symbolic link" in weir.fails("cat", key)
    for key in ("link", "dir/file"):
        assert "did not write" in weir.fails("rm", key)
        assert "exists already" in weir.fails("put", "-", key, input="x")
        weir("verify", key)
    assert "symbolic link" in weir.fails("put", "-", "dir/x", input="x")
    assert "symbolic link" in weir.fails("put", "-", "up/x", input="x")
    weir("gc", "--now")
    assert (weir.store / "link").is_symlink() and (weir.store / "dir").is_symlink()
    assert sorted(p.name for p in (weir.cwd / "theirs").iterdir()) == ["back", "file"]
    assert not (weir.cwd / "x").exists() and weir("cat", "sealed").rc == 0


def nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_a_store_that_may_only_be_read():
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        weir = Weir(Path(top))
        weir.put("k", b"x" * (2 << 20))
        (weir.store / "plain").write_text("plain")
        kwargs = {}
        if os.getuid() == 0:
            kwargs["preexec_fn"] = nobody
        else:
            for path in [weir.store, *weir.store.rglob("*")]:
                path.chmod(path.stat().st_mode & 0o555)

        def run(*args):
            return subprocess.run([BIN, *args], cwd=top, env=weir.env, input=b"",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        try:
            probe = run("version")
        except PermissionError:
            pytest.skip("another user may not run the binary under test")
        if probe.returncode:
            pytest.skip("another user cannot run the binary under test")
        for args in (["ls", "-lr"], ["stat"], ["stat", "k"], ["cat", "k"], ["cat", "plain"],
                     ["verify"], ["get", "k", "-"], ["rm", "-n", "k"]):
            done = run(*args)
            assert done.returncode == 0, (args, done.stderr)
        for args in (["put", "-", "new"], ["rm", "k"], ["gc", "--now"], ["init", "--store", "s2"]):
            if args[0] == "init" and os.getuid() != 0:
                continue
            done = run(*args)
            assert done.returncode == 1, args
            assert b"ermission denied" in done.stderr and done.stderr.count(b"\n") == 1
        if os.getuid() != 0:
            for path in [weir.store, *weir.store.rglob("*")]:
                path.chmod(path.stat().st_mode | 0o200)
        assert weir.keys() == ["k", "plain"]
