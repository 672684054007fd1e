"""weir ckpt: what checkpoints there are, what is in them, whether they are whole, and which go."""
import json
import os
import signal
import struct
import subprocess

import pytest

from conftest import BIN, PATIENCE_S, is_polite, wait_for

MAKECKPT = BIN.parents[2] / "tests/cli/makeckpt"
BIG = 24 * 1000  # elements of the tensor that has most
MANY = 24 * 100000  # of one that is read and written in several goes


def make(weir, step, ranks=1, seed=0, run="llama/pre", meta="{}", kind="", big=BIG):
    subprocess.run([MAKECKPT, weir.store, run, str(step), str(ranks), str(seed), meta,
                    str(big // 24), kind], check=True)


def steps(weir, *args, run="llama/pre"):
    return [c["step"] for c in weir.json("ckpt", "ls", run, *args)]


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}, without the library."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    data = raw[8 + size:]
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])])
            for name, t in header.items()}


@pytest.fixture
def three(weir):
    """Steps 100, 200 and 300 of a run, by four ranks, two and one."""
    make(weir, 100, ranks=4, meta='{"lr": 0.1, "loss": 3}')
    make(weir, 200, ranks=2, seed=1, meta='{"lr": 0.05, "loss": 3}')
    make(weir, 300, ranks=1, seed=2)
    return weir


@pytest.fixture
def large(weir):
    """One that is too large to be read at once."""
    make(weir, 300, ranks=2, seed=2, big=MANY)
    return weir


# ---- ls ----

def test_ls(three):
    make(three, 7, run="other")
    lines = three("ckpt", "ls").lines
    assert lines[0].split() == ["checkpoints", "newest", "committed", "size", "run"]
    assert lines[1].split()[:2] == ["3", "300"] and lines[1].endswith("  llama/pre")
    assert [r["run"] for r in three.json("ckpt", "ls")] == ["llama/pre", "other"]
    lines = three("ckpt", "ls", "llama/pre").lines
    assert lines[0].split() == ["step", "committed", "size", "ranks", "attempt", "name"]
    assert [line.split()[0] for line in lines[1:]] == ["100", "200", "300"]
    doc = three.json("ckpt", "ls", "llama/pre")
    assert [(c["step"], c["ranks"], c["live"], c["names"]) for c in doc] == [
        (100, 4, True, []), (200, 2, True, []), (300, 1, True, [])]
    assert doc[0]["size_bytes"] > 8 * BIG and doc[0]["prefix"] == "ckpt/llama/pre/100-1.1"
    assert "there is no run 'nope'" in three.fails("ckpt", "ls", "nope")


def test_ls_of_nothing(weir):
    weir("init")
    assert weir("ckpt", "ls").out == "" and weir.json("ckpt", "ls") == []


def test_ls_names_what_is_damaged(three):
    three("rm", "--force", "ckpt/llama/pre/200-3.1/model-00002-of-00002.safetensors")
    result = three("ckpt", "ls", "llama/pre", rc=1)
    assert "200-3.1' is committed, but 'model-00002-of-00002.safetensors' is not there" in (
        result.err)
    assert [line.split()[3:5] for line in result.lines[1:]][1][0] == "damaged"
    doc = three("ckpt", "ls", "llama/pre", "--json", rc=1).doc
    assert ["error" in c for c in doc] == [False, True, False]


# ---- show ----

def test_show(three):
    out = three("ckpt", "show", "llama/pre", "100").out
    assert "parameters    24144\n" in out and '"lr": 0.1,' in out and "a.mask" not in out
    assert "F64                  1            24000    188 KiB\n" in out
    out = three("ckpt", "show", "llama/pre", "100", "-l").out
    assert "4 pieces" in out and "model.layers.1.brain" in out
    out = three("ckpt", "show", "llama/pre", "--filter", "model.layers.0.*").out
    assert "tensors       2\n" in out and "brain" not in out and "model.safetensors" in out


def test_show_json(three):
    doc = three.json("ckpt", "show", "llama/pre", "100")
    assert doc["step"] == 100 and doc["meta"] == {"lr": 0.1, "loss": 3}
    assert doc["all"] == {"tensors": 7, "parameters": 24144, "size_bytes": 8 * BIG + 527}
    assert doc["dtypes"]["BF16"] == {"tensors": 1, "parameters": 8, "size_bytes": 16}
    names = [t["name"] for t in doc["tensors"]]
    assert names == sorted(names) and len(names) == 7
    w = doc["tensors"][-1]
    assert w["shape"] == [12, 10] and [p["offset"] for p in w["pieces"]] == [
        [0, 0], [3, 0], [6, 0], [9, 0]]
    for piece in w["pieces"]:
        path = three.store / doc["prefix"] / piece["file"]
        at = piece["begin"] + 4
        assert struct.unpack("<f", path.read_bytes()[at:at + 4])[0] == piece["offset"][0] * 10 + 1
    assert three.json("ckpt", "show", "llama/pre")["step"] == 300
    assert three.json("ckpt", "show", "llama/pre", "--filter", "x")["tensors"] == []


def test_show_meta_that_is_no_json(weir):
    make(weir, 1, meta='oh, "well"')
    assert weir.json("ckpt", "show", "llama/pre")["meta"] == 'oh, "well"'
    assert 'oh, "well"' in weir("ckpt", "show", "llama/pre").out


@pytest.mark.parametrize("args, text", [
    (["show", "llama/pre", "9"], "run 'llama/pre' has no checkpoint of step 9"),
    (["verify", "llama/pre", "9"], "run 'llama/pre' has no checkpoint of step 9"),
    (["export", "llama/pre", "9", "out"], "run 'llama/pre' has no checkpoint of step 9"),
    (["show", "llama/pre", "best"], "nothing in run 'llama/pre' is named 'best'"),
    (["show", "nope"], "there is no run 'nope'"),
    (["show", "nope", "best"], "there is no run 'nope'"),
    (["verify", "../x"], "the run '../x'"),
    (["rm", "llama/pre", "9"], "run 'llama/pre' has no checkpoint of step 9"),
    (["prune", "nope", "--keep-last", "1"], "there is no run 'nope'"),
    (["keep", "llama/pre", "9", "best"], "run 'llama/pre' has no checkpoint of step 9"),
    (["keep", "llama/pre", "300", "a:b"], "it has no comma and no colon"),
    (["keep", "llama/pre", "300", "12"], "a number is a step, not a name"),
    (["keep", "llama/pre", "--drop", "best"], "is named 'best'"),
    (["diff", "llama/pre:300", "llama/pre:9"], "run 'llama/pre' has no checkpoint of step 9"),
])
def test_what_is_not_there(three, args, text):
    assert text in three.fails("ckpt", *args)


@pytest.mark.parametrize("args, text", [
    (["prune", "r"], "--keep-last N has to say how many stay"),
    (["prune", "r", "--keep-last", "0"], "at least 1"),
    (["foo"], "there is no command 'ckpt foo' (see"),
    (["rm", "r"], "ckpt rm needs RUN and either STEP or --all"),
    (["rm", "r", "1", "--all"], "ckpt rm needs RUN and either STEP or --all"),
    (["rm", "r", "best"], "'best' is no step"),
    (["keep", "r", "1"], "ckpt keep needs RUN STEP NAME"),
    (["keep", "r", "1", "x", "--drop", "y"], "--drop takes a name off"),
    (["verify", "r", "1", "--all"], "--all is for all steps"),
    (["export", "r", "x.safetensors", "--shard-size", "5G"], "--shard-size is for a directory"),
    (["ls", "--all"], "--all is for the checkpoints of a RUN"),
])
def test_usage(weir, args, text):
    assert text in weir("ckpt", *args, rc=2).err


# ---- verify ----

def test_verify(three):
    assert three("ckpt", "verify", "llama/pre").out == (
        "verified ckpt/llama/pre/300-5.1: 7 tensors of 1 rank (188 KiB)\n")
    doc = three.json("ckpt", "verify", "llama/pre", "--all")
    assert [(c["step"], c["ok"]) for c in doc] == [(100, True), (200, True), (300, True)]


def test_verify_names_file_tensor_and_range(large):
    make(large, 400)
    prefix = "ckpt/llama/pre/300-1.1/"
    key = prefix + "model-00002-of-00002.safetensors"
    large.flip(key, 5 << 20)
    large.flip(key, 100)
    large.flip(prefix + "state-00001.json", 1)
    result = large("ckpt", "verify", "llama/pre", "--all", rc=1)
    err = result.err.splitlines()
    assert len(err) == 3 and "verified ckpt/llama/pre/400-3.1" in result.out
    assert "state-00001.json" in err[0]
    assert f"'{key}'" in err[1] and "bytes 0-1048575" in err[1]
    assert f"'{key}'" in err[2] and "bytes 5242880-6291455" in err[2]
    assert err[2].endswith(": tensor 'model.layers.0.big'")
    assert "damaged ckpt/llama/pre/300-1.1: 3 errors\n" in result.out
    doc = large("ckpt", "verify", "llama/pre", "300", "--json", rc=1).doc
    assert not doc[0]["ok"]
    bad = doc[0]["errors"][2]
    assert (bad["code"], bad["key"], bad["tensor"], bad["begin"], bad["end"]) == (
        "EBADMSG", key, "model.layers.0.big", 5 << 20, 6 << 20)


def test_verify_what_cannot_be_opened(three):
    three.flip("ckpt/llama/pre/300-5.1/manifest-00001", 40)
    result = three("ckpt", "verify", "llama/pre", "--all", rc=1)
    assert "manifest-00001" in result.err and len(result.lines) == 2
    doc = three("ckpt", "verify", "llama/pre", "--all", "--json", rc=1).doc
    assert [c["ok"] for c in doc] == [True, True, False]


def test_verify_a_manifest_beside_the_merged_one(three):
    three.flip("ckpt/llama/pre/200-3.1/manifest-00001", 40)
    result = three("ckpt", "verify", "llama/pre", "--all", rc=1)
    assert "manifest-00001" in result.err
    assert "damaged ckpt/llama/pre/200-3.1: 1 error" in result.out


# ---- keep, prune, rm ----

def test_keep(three):
    assert three("ckpt", "keep", "llama/pre", "100", "best").out == (
        "step 100 of llama/pre is best\n")
    assert three("ckpt", "keep", "llama/pre", "200", "best").out == (
        "step 200 of llama/pre is best (it was step 100)\n")
    assert three.json("ckpt", "keep", "llama/pre", "200", "release") == {
        "name": "release", "step": 200, "was": None}
    assert three("ckpt", "ls", "llama/pre").lines[2].endswith("  best, release")
    assert three.json("ckpt", "show", "llama/pre", "release")["names"] == ["best", "release"]
    assert three.json("log", "show", "ckpt/llama/pre")["saves"][1]["names"] == ["best", "release"]
    three("ckpt", "prune", "llama/pre", "--keep-last", "1", "--grace", "0")
    assert steps(three) == [200, 300]
    assert three.json("ckpt", "keep", "llama/pre", "--drop", "best")["was"] == 200
    three("ckpt", "prune", "llama/pre", "--keep-last", "1", "--grace", "0")
    assert steps(three) == [200, 300]  # it has another name
    three("ckpt", "keep", "llama/pre", "--drop", "release")
    three("ckpt", "prune", "llama/pre", "--keep-last", "1", "--grace", "0")
    assert steps(three) == [300]
    assert three.json("ckpt", "keep", "llama/pre", "newest", "x")["step"] == 300


def test_prune(three):
    for step in 400, 500:
        make(three, step)
    size = three.json("ckpt", "ls", "llama/pre")[2]["size_bytes"]
    out = three("ckpt", "prune", "llama/pre", "--keep-last", "1", "--keep-every", "200", "-n").lines
    assert [line.split()[3] for line in out[:-1]] == ["100", "300"]
    assert out[-1].startswith("would retire 2 checkpoints (")
    assert steps(three) == [100, 200, 300, 400, 500]
    doc = three.json("ckpt", "prune", "llama/pre", "--keep-last", "1", "--keep-every", "200")
    assert [c["step"] for c in doc["checkpoints"]] == [100, 300]
    assert doc["retired"] == 2 and doc["deleted"] == 0 and doc["waiting"] == 2
    assert doc["retired_bytes"] > size > 8 * BIG
    assert steps(three) == [200, 400, 500]
    assert steps(three, "--all") == [100, 200, 300, 400, 500]
    assert "(retired)" in three("ckpt", "ls", "llama/pre", "-a").lines[1]
    out = three("ckpt", "prune", "llama/pre", "--keep-last", "9", "--grace", "0").lines
    assert out[0] == "retired 0 checkpoints (0 B)" and out[1].startswith("deleted 2 (")
    assert steps(three, "--all") == [200, 400, 500]
    three("ckpt", "verify", "llama/pre", "--all")
    assert not list((three.store / "ckpt/llama/pre").glob("[13]00*/*"))


def test_prune_keeps_the_newest_good_one(three):
    """What is damaged must not push out what is not."""
    three("rm", "--force", "ckpt/llama/pre/300-5.1/model.safetensors")
    three("ckpt", "prune", "llama/pre", "--keep-last", "1", "--grace", "0")
    assert [c["step"] for c in three("ckpt", "ls", "llama/pre", "--json", rc=1).doc] == [200, 300]
    assert "200 is the newest good" in three.fails("ckpt", "rm", "llama/pre", "200")
    three("ckpt", "rm", "llama/pre", "300")
    assert steps(three) == [200]


def test_prune_leaves_what_is_read(large):
    make(large, 400)
    slow = f"file://{large.store}?read_rate=500K"
    reader = large.start("--store", slow, "ckpt", "verify", "llama/pre", "300",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lease = large.store / ".weir/lease/ckpt/llama/pre/300-1.1~"
    wait_for(lease.exists, "the reader's lease")
    wait_for(lambda: is_polite(reader), "the reading")
    prune = ["ckpt", "prune", "llama/pre", "--keep-last", "1", "--grace", "0"]
    doc = large.json(*prune)
    assert reader.poll() is None
    assert doc["retired"] == 1 and doc["deleted"] == 0 and doc["waiting"] == 1
    reader.kill()
    reader.communicate()
    assert large.json(*prune)["deleted"] == 1


def test_rm(three):
    make(three, 100, seed=9)  # the same step again
    assert "100 is the newest good" in three.fails("ckpt", "rm", "llama/pre", "100")
    make(three, 400)
    three("ckpt", "keep", "llama/pre", "200", "best")
    err = three.fails("ckpt", "rm", "llama/pre", "200")
    assert "is kept as 'best': take the name off first (--force removes it all the same)" in err
    assert three("ckpt", "rm", "llama/pre", "100", "-n").lines[-1].startswith("would retire 2 ")
    assert three.json("ckpt", "rm", "llama/pre", "100")["retired"] == 2
    assert steps(three) == [200, 300, 400]
    three("ckpt", "rm", "llama/pre", "200", "--force", "--grace", "0")
    assert steps(three) == [300, 400]
    assert "newest good" in three.fails("ckpt", "rm", "llama/pre", "--all")
    three("ckpt", "rm", "llama/pre", "--all", "--force", "--grace", "0")
    assert steps(three, "--all") == [] and not list(three.store.glob("ckpt/**/*.safetensors"))
    assert three.json("ckpt", "ls")[0]["checkpoints"] == 0


def test_rm_of_an_object_of_a_checkpoint(three):
    key = "ckpt/llama/pre/300-5.1/model.safetensors"
    for args in ["rm", key], ["rm", "-n", key], ["rm", "-r", key]:
        err = three(*args, rc=1).err
        assert "is part of 'ckpt/llama/pre/300-5.1'" in err and "weir ckpt rm" in err
    assert three("rm", "-r", "ckpt", rc=1).lines[-1].startswith("0 objects removed")
    three("ckpt", "verify", "llama/pre", "--all")
    three("rm", "--force", key)
    three("ckpt", "verify", "llama/pre", rc=1)


# ---- diff ----

def test_diff(three):
    doc = three.json("ckpt", "diff", "llama/pre:100", "llama/pre:200")
    found = {t["name"]: t for t in doc["tensors"]}
    assert {n: t["max_abs"] for n, t in found.items() if n != "model.layers.0.big"} == {
        "count": 1, "eight": 0.125, "model.layers.0.half": pytest.approx(1 / 1024),
        "model.layers.1.brain": 1 / 128, "w": 1}
    assert found["w"]["differing"] == found["w"]["elements"] == 120
    big = found["model.layers.0.big"]
    assert big["differing"] == 1 and big["elements"] == BIG
    assert doc["bytes"] == 6 and doc["same"] == 1
    assert doc["meta"] == {"lr": [0.1, 0.05]}
    result = three("ckpt", "diff", "llama/pre:100", "llama/pre:200")
    assert result.lines[0].split() == ["change", "differing", "max", "abs", "tensor"]
    assert "bytes       100.00%           1  w  F32[12,10]" in result.lines
    assert "bytes        <0.01%" in result.out and "meta      lr: 0.1 -> 0.05" in result.lines
    assert result.lines[-1].startswith("6 differ, 1 the same, 0 added") and result.err == ""


def test_diff_finds_what_cannot_be_compared(three):
    make(three, 1, run="more", kind="more")
    make(three, 1, run="less", kind="less")
    make(three, 1, run="wide", kind="wide")
    doc = three.json("ckpt", "diff", "less", "more")
    assert [(t["name"], t["change"]) for t in doc["tensors"]] == [("count", "added"),
                                                                 ("new", "added")]
    doc = three.json("ckpt", "diff", "more:1", "less:newest")
    assert doc["removed"] == 2 and doc["same"] == 6
    assert "type              -           -  w  F32[10,12] -> F32[12,10]" in (
        three("ckpt", "diff", "wide", "less").lines)


def test_diff_warns_when_nothing_changed(three):
    """Whatever number of ranks saved it."""
    make(three, 101, ranks=3)
    result = three("ckpt", "diff", "llama/pre:100", "llama/pre:101")
    assert "warning: not one byte of a tensor is different" in result.err
    assert three("ckpt", "diff", "llama/pre:100", "llama/pre:101", "-l").out.count("same  ") == 7
    assert three.json("ckpt", "diff", "llama/pre:100", "llama/pre:101")["same"] == 7


def test_diff_of_large_ones(large):
    """In several goes, from other pieces."""
    make(large, 400, ranks=3, seed=7, big=MANY)
    doc = large.json("ckpt", "diff", "llama/pre:300", "llama/pre:400")
    big = [t for t in doc["tensors"] if t["name"] == "model.layers.0.big"][0]
    assert big["elements"] == MANY and big["differing"] == 1
    large.flip("ckpt/llama/pre/300-1.1/model-00002-of-00002.safetensors", 9 << 20)
    result = large("ckpt", "diff", "llama/pre:300", "llama/pre:400", rc=1)
    assert "'model.layers.0.big'" in result.err and "count" in result.out
    doc = large("ckpt", "diff", "llama/pre:300", "llama/pre:400", "--json", rc=1).doc
    assert doc["error"]["code"] == "EBADMSG" and doc["tensors"][0]["name"] == "count"


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_diff_stopped(large, args):
    slow = f"file://{large.store}?read_rate=2M"
    process = large.start("--store", slow, *args, "ckpt", "diff", "llama/pre", "llama/pre",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for((large.store / ".weir/lease/ckpt/llama/pre/300-1.1~").exists, "the reader")
    wait_for(lambda: process.poll() is not None or is_polite(process), "the comparison")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    if args:
        assert json.loads(out)["error"]["code"] == "EINTR" and err == b""
    else:
        assert err == b"weir: stopped by SIGINT\n"


# ---- export ----

def check_export(tensors, seed, big=BIG):
    assert sorted(tensors) == ["a.mask", "count", "eight", "model.layers.0.big",
                               "model.layers.0.half", "model.layers.1.brain", "w"]
    assert tensors["w"] == ("F32", [12, 10], struct.pack("<120f", *range(seed, seed + 120)))
    assert tensors["a.mask"] == ("BOOL", [3], b"\1\0\1")
    assert tensors["count"] == ("I64", [1], struct.pack("<q", -seed))
    rows = (bytes((i * 7 + row) & 255 for i in range(256)) * 16 for row in range(big // 512 + 1))
    data = bytearray(b"".join(rows)[:8 * big])
    data[4 * big] ^= seed
    assert tensors["model.layers.0.big"] == ("F64", [24, big // 24], bytes(data))


@pytest.mark.parametrize("step", [100, 200, 300])
def test_export_one_file(three, step):
    out = three.cwd / "out.safetensors"
    text = three("ckpt", "export", "llama/pre", str(step), out).out
    assert text.startswith(f"exported ckpt/llama/pre/{step}-")
    check_export(read_safetensors(out), step // 100 - 1)
    assert sorted(p.name for p in three.cwd.iterdir()) == ["out.safetensors", "weir-store"]


def test_export_a_large_one(large):
    large("ckpt", "export", "llama/pre", "out.safetensors")
    check_export(read_safetensors(large.cwd / "out.safetensors"), 2, MANY)


def test_export_shards(three):
    doc = three.json("ckpt", "export", "llama/pre", "100", "hf/model", "--shard-size", "64K")
    out = three.cwd / "hf/model"
    files = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    assert doc["files"] == files + ["model.safetensors.index.json"]
    assert sorted(p.name for p in out.iterdir()) == doc["files"]
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 8 * BIG + 527
    tensors = {}
    for file in files:
        for name, tensor in read_safetensors(out / file).items():
            assert index["weight_map"].pop(name) == file
            tensors[name] = tensor
    assert index["weight_map"] == {}
    check_export(tensors, 0)
    assert [p.name for p in (three.cwd / "hf").iterdir()] == ["model"]


def test_export_does_not_replace(three):
    out = three.file("out.safetensors", "mine")
    assert "exists already: --force replaces it" in three.fails("ckpt", "export", "llama/pre", out)
    assert out.read_text() == "mine"
    three("ckpt", "export", "llama/pre", out, "--force")
    assert len(read_safetensors(out)) == 7
    three.file("dir/config.json", "mine")
    assert "is not empty: --force" in three.fails("ckpt", "export", "llama/pre", "dir")
    three("ckpt", "export", "llama/pre", "dir", "--force", "--shard-size", "64K")
    three("ckpt", "export", "llama/pre", "dir", "--force")
    assert sorted(p.name for p in (three.cwd / "dir").iterdir()) == ["config.json",
                                                                    "model.safetensors"]
    assert (three.cwd / "dir/config.json").read_text() == "mine"
    assert "is a file" in three.fails("ckpt", "export", "llama/pre", "dir/config.json")
    (three.cwd / "empty").mkdir()
    three("ckpt", "export", "llama/pre", "empty/")
    assert [p.name for p in (three.cwd / "empty").iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("dest", ["out.safetensors", "dir"])
def test_export_of_a_damaged_one_leaves_nothing(large, dest):
    large.flip("ckpt/llama/pre/300-1.1/model-00002-of-00002.safetensors", 8 << 20)
    err = large.fails("ckpt", "export", "llama/pre", dest)
    assert "'model.layers.0.big'" in err and "bytes 8388608-" in err
    assert [p.name for p in large.cwd.iterdir()] == ["weir-store"]


@pytest.mark.parametrize("dest", ["out.safetensors", "dir"])
def test_export_stopped(large, dest):
    slow = f"file://{large.store}?read_rate=2M"
    process = large.start("--store", slow, "ckpt", "export", "llama/pre", dest,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: len(list(large.cwd.iterdir())) > 1, "the first file")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and err == b"weir: stopped by SIGINT\n"
    assert [p.name for p in large.cwd.iterdir()] == ["weir-store"]
