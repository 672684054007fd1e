"""weir ls and weir stat: what there is."""
import re
import time

import pytest


@pytest.fixture
def filled(weir):
    for key in "a", "a/b", "dir/x", "dir/sub/y", "top":
        weir.put(key, key)
    return weir


@pytest.mark.parametrize("args, keys", [
    ([], ["a", "a/", "dir/", "top"]),
    (["-r"], ["a", "a/b", "dir/sub/y", "dir/x", "top"]),
    (["dir"], ["dir/sub/", "dir/x"]),
    (["dir/"], ["dir/sub/", "dir/x"]),
    (["-r", "dir"], ["dir/sub/y", "dir/x"]),
    (["a"], ["a", "a/b"]),
    (["a/"], ["a/b"]),
    (["top"], ["top"]),
    (["dir/x"], ["dir/x"]),
])
def test_keys(filled, args, keys):
    assert filled("ls", *args).lines == keys
    assert [e["key"] for e in filled("--json", "ls", *args).doc] == keys


def test_missing(filled):
    for prefix in "nope", "nope/", "top/", "a/b/c":
        assert f"no object and no directory '{prefix}'" in filled.fails("ls", prefix)
    assert filled.json("ls", "nope", rc=1)["error"]["code"] == "ENOENT"


def test_empty_store(weir):
    weir("init")
    assert weir("ls", "-lr").out == ""
    assert weir("--json", "ls").doc == []


def test_no_store(weir):
    text = weir.fails("ls")
    assert text.startswith("there is no store at './weir-store'") and "weir init" in text
    for command in ["ls"], ["stat"], ["verify"], ["gc"], ["rm", "k"], ["get", "k"], ["cat", "k"]:
        assert "there is no store" in weir.fails(*command)
    assert weir.json("ls", rc=1)["error"]["code"] == "ENOENT"
    assert not weir.store.exists()


def test_long(filled):
    lines = filled("ls", "-l").lines
    assert re.fullmatch(r" +1 B  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  sealed     a", lines[0])
    assert re.fullmatch(r" +-  - +  directory  dir/", lines[2])
    entries = filled("--json", "ls", "-l", "dir").doc
    assert entries[0] == {"key": "dir/sub/", "type": "directory"}
    when = entries[1].pop("time")
    assert entries[1] == {"key": "dir/x", "type": "object", "kind": "sealed", "size_bytes": 5}
    stamp = time.strptime(when.split(".")[0], "%Y-%m-%dT%H:%M:%S")
    assert when.endswith("Z") and abs(time.mktime(stamp) - time.mktime(time.gmtime())) < 3600


def test_a_damaged_seal_is_listed(filled):
    seal = filled.store / ".weir/seal/top~"
    seal.chmod(0o644)
    data = bytearray(seal.read_bytes())
    data[len(data) // 2] ^= 1
    seal.write_bytes(data)
    assert "top" in filled("ls").lines
    result = filled("ls", "-l", rc=1)
    assert re.search(r"damaged +top$", result.out, re.M) and "top" in result.err
    entry = [e for e in filled("--json", "ls", "-l", rc=1).doc if e["key"] == "top"][0]
    assert entry["kind"] == "damaged" and entry["error"]["code"] == "EBADMSG"
    for command in ["stat", "top"], ["cat", "top"], ["verify"]:
        assert "top" in filled.fails(*command)


def test_stat(weir):
    weir.put("f", b"x" * (3 << 20))
    out = weir("stat", "f").out
    for line in ("key +f", r"size +3.0 MiB \(3145728 bytes\)", "kind +sealed", "level +home",
                 "blocks +3 of 1.0 MiB, xxh3-128", "nonce +[0-9a-f]{32}",
                 r"data +\.weir/data/f~.*"):
        assert re.search(f"^{line}$", out, re.M), line
    doc = weir.json("stat", "f")
    obj = doc["objects"][0]
    assert set(obj) == {"key", "status", "size_bytes", "kind", "level", "time", "block_bytes",
                        "algorithm", "nonce", "data_name", "meta_bytes"}
    assert obj["status"] == "found" and obj["level"] == "home" and obj["size_bytes"] == 3 << 20
    assert doc["done"] == 1 and doc["failed"] == 0


def test_stat_of_several(filled):
    assert filled("stat", "a", "top").out.count("\nsize") == 2
    result = filled("stat", "a", "nope", "top", rc=1)
    assert result.out.count("\nsize") == 2 and "'nope'" in result.err
    doc = filled.json("stat", "a", "nope", rc=1)
    assert [o["status"] for o in doc["objects"]] == ["found", "failed"]
    assert doc["objects"][1]["error"]["code"] == doc["error"]["code"] == "ENOENT"


def test_stat_of_the_store(weir):
    weir("init", "--grace", "90s")
    assert re.search("^grace +90 s$", weir("stat").out, re.M)
    doc = weir.json("stat")
    assert set(doc) == {"store", "uuid", "tier", "io", "level", "grace_s", "free_bytes",
                        "total_bytes"}
    assert doc["tier"] == "file" and doc["grace_s"] == 90 and len(doc["uuid"]) == 36
    assert weir.json("stat", "--io", "threads")["io"] == "threads"
