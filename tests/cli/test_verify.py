"""weir verify and weir gc: damage is named, debris is collected."""
import os
import signal
import subprocess

from conftest import wait_for

MIB = 1 << 20


def test_all_good(weir):
    weir("init")
    assert weir("verify").out == "0 objects verified\n"
    weir.put("a", b"x" * MIB)
    weir.put("d/b", b"")
    assert weir("verify").out == "2 objects verified (1.0 MiB)\n"
    assert weir("verify", "d").out == "1 object verified\n"
    assert weir("verify", "a", "--jobs", "1").out == "1 object verified (1.0 MiB)\n"
    assert weir("verify", "-q").out == ""
    assert "no directory 'nope'" in weir.fails("verify", "nope")


def test_damage_is_named_and_the_rest_verified(weir):
    for i in range(8):
        weir.put(f"d/{i}", os.urandom(2 * MIB + i))
    weir.flip("d/2", MIB + 1)
    weir.flip("d/5", 2 * MIB + 4)
    data = weir.data_file("d/6")
    os.truncate(data, 100)
    weir.data_file("d/7").unlink()
    result = weir("verify", "--jobs", "3", rc=1)
    lines = result.err.splitlines()
    assert len(lines) == 4 and all(line.startswith("weir: ") for line in lines)
    assert "'d/2' is damaged in block 1 (bytes 1048576-2097151)" in lines[0]
    assert "'d/5' is damaged in block 2 (bytes 2097152-2097156)" in lines[1]
    assert "'d/6'" in lines[2] and "'d/7'" in lines[3]
    assert result.out.startswith("4 objects verified") and result.out.endswith(", 4 failed\n")
    assert weir("verify", "d/3").rc == 0
    doc = weir.json("verify", rc=1)
    assert doc["failed"] == 4 and doc["done"] == 4
    assert [o["status"] for o in doc["objects"]] == [
        "verified", "verified", "failed", "verified", "verified", "failed", "failed", "failed"]
    assert {o["error"]["code"] for o in doc["objects"] if o["status"] == "failed"} == {"EBADMSG"}


def test_holes_are_damage(weir):
    """The right size with zeros in the middle, as a crashed copy leaves it."""
    weir.put("f", os.urandom(4 * MIB))
    with open(weir.data_file("f"), "r+b") as f:
        f.seek(2 * MIB)
        f.write(bytes(MIB))
    assert "block 2" in weir.fails("verify")


def kill_writer(weir, key):
    """A put that is killed with SIGKILL when it has written something."""
    process = weir.start("put", "-", key, stdin=subprocess.PIPE, stderr=-1)
    tmp = weir.store / ".weir/tmp"
    process.stdin.write(os.urandom(4 * MIB))
    process.stdin.flush()
    wait_for(lambda: [p for p in tmp.glob("*") if p.stat().st_size >= MIB], "the writer")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_gc(weir):
    weir.put("a")
    before = weir.keys()
    assert weir("gc").out == "removed 0 objects (0 B) and 0 temporary files\n"
    kill_writer(weir, "b")
    assert weir.keys() == before
    assert weir("verify").out == "1 object verified (6 B)\n"
    young = weir("gc").lines
    assert young[1].startswith("left 1 younger than the grace of 1 d")
    assert weir("gc", "--now", "--dry-run").out == (
        "would remove 0 objects (0 B) and 1 temporary file\n")
    assert len(weir.debris()[0]) == 1
    doc = weir.json("gc", "--now")
    assert doc == {"dry_run": False, "saves": 0, "objects": 0, "size_bytes": 0, "temporaries": 1,
                   "voids_placed": 0, "voids_removed": 0, "links_restored": 0,
                   "spare_bytes": 0, "young": 0}
    assert weir.debris() == ([], 0) and weir.keys() == before
    assert weir("gc", "-q", "--now").out == ""


def test_unsealed_data_is_collected(weir):
    weir.put("a", b"x" * MIB)
    (weir.store / ".weir/seal/a~").unlink()  # as after a crash before the seal
    os.unlink(weir.store / "a")
    assert weir.keys() == []
    assert weir("gc", "--now").out.startswith("removed 1 object (1.0 MiB) and 0 ")
    assert not [p for p in (weir.store / ".weir/data").rglob("*") if p.is_file()]


def test_plain_names_come_back(weir):
    weir.put("a", "content")
    os.unlink(weir.store / "a")
    assert "put back 1 plain name" in weir("gc").out
    assert (weir.store / "a").read_text() == "content"
