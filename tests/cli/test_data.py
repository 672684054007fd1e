"""weir data index, ls, cat and stats: token files and tars that Python made are indexed, listed and
shown; a kill costs little; what is not there or wrong is said in one line."""
import bz2
import contextlib
import gzip
import io
import json
import os
import random
import signal
import struct
import subprocess
import tarfile
import time

import pytest

from conftest import PATIENCE_S, peak_bytes, wait_for


@pytest.fixture
def data(weir, tmp_path):
    """A weir whose indexes are kept in the test's own directory."""
    weir.env["WEIR_CACHE"] = str(tmp_path / "cache")
    return weir


def tokens(numbers):
    return struct.pack(f"<{len(numbers)}H", *numbers)


def tar(samples):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for key, fields in samples:
            for suffix, content in fields.items():
                member = tarfile.TarInfo(f"{key}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_index(data, tmp_path):
    data.file("d/a.bin", tokens(range(100)))
    doc = data.json("data", "index", "d", "-O", "seq_len=9")
    assert (doc["format"], doc["samples"], doc["shards"], doc["built"]) == ("tokens", 11, 1, True)
    assert len(doc["digest"]) == 64 and doc["index"].startswith(str(tmp_path / "cache"))
    assert data.json("data", "index", "d", "-O", "seq_len=9")["built"] is False
    result = data("data", "index", "d", "-O", "seq_len=9")
    assert "11 samples in 1 shard" in result.out and "up to date" in result.out
    assert ", 1 sample in 1 shard, " in data("data", "index", "d", "-O", "seq_len=99").out
    data("data", "index", "d", "-O", "seq_len=9", "--check")
    data.file("d/b.bin", tokens(range(50)))
    assert "as it is now" in data.fails("data", "index", "d", "-O", "seq_len=9", "--check")
    assert data.json("data", "index", "d", "-O", "seq_len=9")["samples"] == 16
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["a.bin", "b.bin"]


def test_a_full_cache(data, tmp_path):
    """What only needs an index has it in memory; who wants it kept is told where it cannot be."""
    data.file("d/x.jsonl", '{"a": 1}\n')
    data("data", "index", "d")
    data.file("d/y.jsonl", '{"a": 2}\n')
    full = f"file:{tmp_path}/cache?fault_ops=create,put&fault_nth=1&fault_lasting=1"
    for error in "ENOSPC", "EDQUOT", "EROFS", "EACCES":
        cache = f"{full}&fault_error={error}"
        assert data.json("data", "stats", "d", "--cache", cache)["samples"] == 2
        err = data.fails("data", "index", "d", "--cache", cache)
        assert f"{tmp_path}/cache" in err
        assert "cannot keep the index (name another with --cache or WEIR_CACHE)" in err


def test_a_cache_in_memory(data):
    """It is gone with the process: who wants the index kept is told so."""
    data.file("d/x.jsonl", '{"a": 1}\n')
    assert data.json("data", "stats", "d", "--cache", "mem:c")["samples"] == 1
    assert "is gone with this process (name another" in data.fails(
        "data", "index", "d", "--cache", "mem:c")


def test_beside(data, tmp_path):
    data("init")
    (data.store / "d").mkdir()
    (data.store / "d/a.bin").write_bytes(tokens(range(100)))
    data("data", "index", "weir-store/d", "-O", "seq_len=9", "--beside")
    doc = data.json("data", "index", "weir-store/d", "-O", "seq_len=9")
    assert doc["index"].endswith("weir-store/d/index.weir") and not doc["built"]
    data.file("plain/a.bin", tokens(range(100)))
    error = data.fails("data", "index", "plain", "-O", "seq_len=9", "--beside")
    assert "plain directory" in error and "weir init" in error


def test_ls(data):
    data.file("d/a.tar", tar([(f"{i:03}", {"txt": b"hi"}) for i in range(3)]))
    data.file("d/b.tar", tar([(f"{i:03}", {"txt": b"hi"}) for i in range(2)]))
    lines = data("data", "ls", "d").lines
    assert len(lines) == 3 and lines[2].split()[:2] == ["3", "2"] and lines[2].endswith("b.tar")
    doc = data.json("data", "ls", "d")
    assert [(s["key"], s["first"], s["samples"]) for s in doc] == [("a.tar", 0, 3), ("b.tar", 3, 2)]


def test_cat(data):
    data.file("d/a.bin", tokens([7, 8, 0, 9, 10, 11, 0, 12]))
    doc = data.json("data", "cat", "d", "0", "-O", "seq_len=4", "-O", "eot=0")
    assert doc["key"] == "a.bin" and doc["offset"] == 0 and doc["size_bytes"] == 10
    assert doc["fields"][0] == {"name": "tokens", "kind": "array", "dtype": "<u2", "shape": [5],
                                "size_bytes": 10, "value": [7, 8, 0, 9, 10]}
    assert doc["fields"][1]["name"] == "starts" and doc["fields"][1]["value"] == [3]
    raw = data("data", "cat", "d", "0", "-O", "seq_len=4", "--field", "tokens").raw
    assert raw == tokens([7, 8, 0, 9, 10])
    assert data("data", "cat", "d", "0", "-O", "seq_len=4", "--raw").raw == raw
    assert "7 8 0 9 10" in data("data", "cat", "d", "0", "-O", "seq_len=4").out
    assert "has no field 'nix': it has tokens" in data.fails(
        "data", "cat", "d", "0", "-O", "seq_len=4", "--field", "nix")
    assert "no sample 1: there are 1" in data.fails("data", "cat", "d", "1", "-O", "seq_len=4")
    assert "no number" in data.fails("data", "cat", "d", "1x", rc=2)


def test_cat_of_text_and_bytes(data):
    data.file("d/a.tar", tar([("x", {"txt": "grüße".encode(), "json": b'{"a": [1]}',
                                     "bin": b"\xff\x00\x01"})]))
    fields = {f["name"]: f for f in data.json("data", "cat", "d", "0")["fields"]}
    assert fields["txt"]["value"] == "grüße" and fields["json"]["value"] == {"a": [1]}
    assert fields["bin"]["base64"] == "/wAB"
    assert data("data", "cat", "d", "0", "--field", "bin").raw == b"\xff\x00\x01"


def test_stats(data):
    data.file("d/a.tar", tar([(f"{i:03}", {"txt": b"x" * (100 << i)}) for i in range(5)]))
    doc = data.json("data", "stats", "d")
    assert doc["samples"] == 5 and sum(s["samples"] for s in doc["sizes"]) == 5
    assert "txt" in [field["name"] for field in doc["fields"]]
    out = data("data", "stats", "d").out
    assert "sizes of 5 samples" in out and doc["digest"] in out


def test_what_looks_like_tokens(data):
    """Whatever ends with .bin may be anything: names, an .idx or a head make it tokens."""
    def form(where, *options):
        return data.json("data", "index", where, *options)["format"]

    for i in range(4):
        data.file(f"tree/{i:05}/{i:09}.bin", tokens(range(2000)))
        data.file(f"flat/{i:05}.bin", tokens(range(2000)))
    data.file("tree/0/train.bin", tokens(range(2000)))  # not at the top
    assert (form("tree"), form("flat")) == ("files", "files")
    assert form("flat", "--format", "tokens") == "tokens"
    assert form("flat", "-O", "seq_len=9") == "tokens"
    assert form("flat/00001.bin") == "tokens"
    data.file("named/openwebtext_val-2.bin", tokens(range(2000)))
    data.file("named/meta.pkl")
    assert form("named") == "tokens"
    data.file("constrained/trainer.bin", tokens(range(2000)))
    data.file("constrained/pytorch_model.bin", tokens(range(2000)))
    assert form("constrained") == "files"
    for name in ("a", "b"):
        data.file(f"headed/x/{name}.bin", struct.pack("<256i", 20240520, 1, 2000, *[0] * 253)
                  + tokens(range(2000)))
    assert form("headed") == "tokens"


def test_many_unrelated_files(data):
    """A list of files in rows of 1,024; a few that mislead are named with what they look like."""
    for i in range(3000):
        data.file(f"many/{i % 7}/{i}", b"x" * (i % 5))
    lines = data("data", "ls", "many").lines
    assert len(lines) == 4 and lines[3].split()[:2] == ["2048", "952"]
    for name in ("a", "b"):
        data.file(f"many/{name}.bin", tokens(range(2000)))
        data.file(f"many/{name}.idx", b"of something else")
    assert "look like the format 'tokens' (name another" in data.fails("data", "ls", "many")
    assert len(data("data", "ls", "many", "--format", "files").lines) == 4


def test_token_files_that_are_too_short(data):
    data.file("d/train.bin", tokens(range(100)))
    for i in range(20):
        data.file(f"d/val{i}.bin", tokens(range(i)))
    doc = data.json("data", "index", "d", "-O", "seq_len=20")
    assert (doc["samples"], doc["shards"]) == (4, 21)
    assert data.json("data", "cat", "d", "3", "-O", "seq_len=20")["key"] == "train.bin"
    assert data.json("data", "index", "d", "-O", "seq_len=20", "-O",
                     "overlap=0")["samples"] == 5 + 19
    shards = data.json("data", "ls", "d", "-O", "seq_len=30", "-O", "overlap=0")
    first = shards[0]
    assert (first["key"], first["samples"], first["file_bytes"]) == ("train.bin", 4, 200)
    assert len(shards) == 21


def test_what_is_wrong_is_said(data, tmp_path):
    assert "there is nothing at" in data.fails("data", "ls", "nowhere")
    (tmp_path / "empty").mkdir()
    assert "no files" in data.fails("data", "ls", "empty")
    data.file("strange/readme.xyz")
    assert "no format 'parkett': there are mds" in data.fails("data", "ls", "strange", "--format",
                                                              "parkett")
    data.file("d/a.bin", tokens(range(100)))
    assert "no option 'seqlen'" in data.fails("data", "ls", "d", "-O", "seq_len=9", "-O",
                                              "seqlen=3")
    assert "NAME=VALUE" in data.fails("data", "ls", "d", "-O", "seq_len", rc=2)
    assert "cache" in data.fails("data", "ls", "d", "--cache", "d/a.bin")
    assert data.json("data", "ls", "nowhere", rc=1)["error"]["code"] == "ENOENT"


def hub(data, tmp_path, shards):
    """A snapshot as the Hugging Face hub leaves it: links to blobs, whose names say nothing."""
    (tmp_path / "snapshot").mkdir()
    for name, content in shards.items():
        data.file(f"blobs/{name.encode().hex()}", content)
        (tmp_path / "snapshot" / name).symlink_to(f"../blobs/{name.encode().hex()}")


def test_links_to_files_are_files(data, tmp_path):
    hub(data, tmp_path, {f"{k}.tar": tar([(f"{k}{i}", {"txt": b"hi"}) for i in range(3)])
                         for k in "abc"})
    data.file("snapshot/d.tar", tar([("d", {"txt": b"there"})]))
    before = data.json("data", "index", "snapshot")
    assert (before["format"], before["samples"], before["shards"]) == ("wds", 10, 4)
    assert data("data", "cat", "snapshot", "4", "--field", "__key__").out == "b1"
    assert data("data", "cat", "snapshot/c.tar", "2", "--field", "__key__").out == "c2"
    data("data", "manifest", "snapshot")
    data("data", "verify", "snapshot")
    assert "c.tar" in (tmp_path / "snapshot/SHA256SUMS").read_text()
    blob = (tmp_path / "snapshot/b.tar").resolve()
    blob.write_bytes(tar([("new", {"txt": b"hi"})]))  # behind the link
    after = data.json("data", "index", "snapshot")
    assert after["built"] and after["samples"] == 8
    blob.unlink()
    assert "b.tar' is a symbolic link, and there is nothing" in data.fails("data", "ls", "snapshot")
    (tmp_path / "snapshot/b.tar").unlink()
    for name in ("latest", ".#a.tar"):  # what is no shard may lead nowhere
        (tmp_path / "snapshot" / name).symlink_to("user@host.1:2")
    assert data.json("data", "index", "snapshot")["samples"] == 7


def test_links_to_directories_are_directories(data, tmp_path):
    """Many, so that they are read ahead by threads; one of them leads up and one in a circle."""
    (tmp_path / "tree/real").mkdir(parents=True)
    for i in range(40):
        data.file(f"there/{i:02}/x.txt", f"{i}")
        (tmp_path / f"there/{i:02}/y.txt").symlink_to("x.txt")
        (tmp_path / f"tree/{i:02}").symlink_to(f"../there/{i:02}")
    data.file("tree/real/x.txt", "real")
    (tmp_path / "tree/real/up").symlink_to("..")
    (tmp_path / "there/07/again").symlink_to("../../tree")
    (tmp_path / "tree/pipes").mkdir()
    os.mkfifo(tmp_path / "tree/pipes/pipe")
    assert data.json("data", "index", "tree")["samples"] == 81
    assert data("data", "cat", "tree", "15", "--field", "path").out == "07/y.txt"
    assert data("data", "cat", "tree", "15", "--field", "data").out == "7"
    many = data("ls", "-r", "--store", "tree").lines
    assert len(many) == 81 and many == data("ls", "-r", "--store", "tree").lines
    assert len(data("ls", "-r", "-l", "--store", "tree").lines) >= 81


@pytest.mark.parametrize("name, shown", [
    (b"a\xff.tar", r"a\xff.tar"), (b"a\n.tar", r"a\x0a.tar"), (b"x" * 221 + b".tar", "xxx"),
    (b"dir\xff/a.tar", r"dir\xff")])
def test_a_name_that_is_no_key_is_named(data, tmp_path, name, shown):
    data.file("d/b.tar", tar([("b", {"txt": b"hi"})]))
    path = os.path.join(os.fsencode(tmp_path), b"d", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(tar([("a", {"txt": b"hi"})]))
    for command in ("ls", "index", "manifest"):
        text = data.fails("data", command, "d")
        assert shown in text and "rename it" in text
    for options in ([], ["--format", "files"]):
        assert "rename it" in data.fails("data", "ls", "d", *options)
    os.renames(path, os.path.join(os.fsencode(tmp_path), b"d/c.tar"))
    assert data.json("data", "index", "d")["samples"] == 2


def test_names_that_nobody_misses(data, tmp_path):
    """Hidden, an editor's, or of another kind than the shards."""
    data.file("d/b.tar", tar([("b", {"txt": b"hi"})]))
    for name in (b".hid\xff.tar", b"b.tar~", b"notes\xff.txt"):
        with open(os.path.join(os.fsencode(tmp_path), b"d", name), "wb"):
            pass
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"d/.dir\xff"))
    assert data.json("data", "index", "d")["samples"] == 1
    assert r"notes\xff.txt" in data.fails("data", "manifest", "d")
    os.unlink(os.path.join(os.fsencode(tmp_path), b"d/notes\xff.txt"))
    data("data", "manifest", "d")


def test_shards_of_mds_are_never_plain_files(data):
    for text in ('{"shards": [], "version": 2}', '{"version": 2, "shards": []}'):
        data.file("empty/index.json", text)
        assert "format 'mds'" in data.fails("data", "index", "empty")
        assert "it has no samples" in data.fails("data", "index", "empty")
    data.file("alone/shard.00000.mds.zstd")
    text = data.fails("data", "index", "alone")
    assert "'index.json' is missing, which says what is in 'shard.00000.mds.zstd'" in text
    assert "--format files" in text
    assert data.json("data", "index", "alone", "--format", "files")["format"] == "files"
    data.file("above/train/shard.00000.mds")
    assert "'train/index.json' is missing" in data.fails("data", "index", "above")
    data.file("above/train/index.json", "{}")
    assert "has its own index.json: open 'train'" in data.fails("data", "index", "above")
    data.file("other/index.json", '{"shards": 3}')
    assert data.json("data", "index", "other")["format"] == "files"


def test_a_damaged_shard_is_named(data, tmp_path):
    data.file("d/a.tar", tar([("x", {"txt": b"hi"})]))
    good = tar([("y", {"txt": b"hi" * 1000})])
    data.file("d/b.tar", good[:700])
    assert "b.tar" in data.fails("data", "index", "d")
    data.file("d/b.tar", good)
    assert data.json("data", "index", "d")["samples"] == 2


def mds(data, samples, raw_bytes=None, behind=b"", raw_behind=b"", spoil=None):
    """A dataset of one gzipped MDS shard, and what else is to be wrong with it."""
    head = 4 * (len(samples) + 2)
    sizes = [struct.pack("<I", len(sample)) + sample for sample in samples]
    offs = [head + sum(map(len, sizes[:i])) for i in range(len(sizes) + 1)]
    raw = struct.pack(f"<I{len(offs)}I", len(samples), *offs) + b"".join(sizes)
    packed = bytearray(gzip.compress(raw + raw_behind, 1) + behind)
    if spoil is not None:
        packed[spoil] ^= 1
    data.file("m/shard.00000.mds.gz", bytes(packed))
    data.file("m/index.json", json.dumps({"version": 2, "shards": [{
        "version": 2, "format": "mds", "compression": "gz", "hashes": [], "size_limit": None,
        "column_names": ["x"], "column_encodings": ["bytes"], "column_sizes": [None],
        "samples": len(samples), "raw_data": {"basename": "shard.00000.mds", "hashes": {},
                                              "bytes": raw_bytes or len(raw)},
        "zip_data": {"basename": "shard.00000.mds.gz", "bytes": len(packed), "hashes": {}}}]}))


def peak_of(data, *args, rc=0):
    """The most memory that it has, and what it says on stderr."""
    process = data.start("data", *args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = peak_bytes(process)
    err = process.stderr.read().decode()
    assert process.returncode == rc and err.count("\n") == (rc != 0), err
    return peak, err


@pytest.mark.parametrize("wrong, says", [
    ({"raw_behind": bytes(64 << 20)}, "decompresses to more than"),
    ({"raw_behind": b"x"}, "decompresses to more than"),
    ({"behind": b"what is this"}, "not the gzip it should be"),
    ({"behind": gzip.compress(bytes(100))}, "decompresses to more than"),
    ({"behind": gzip.compress(b"")[:-4]}, "is cut off"),
    ({"spoil": -6}, "not the gzip it should be: incorrect data check")])
def test_what_is_behind_a_shard(data, wrong, says):
    """Samples in front of the end can be shown; who comes to the end learns what is wrong there."""
    mds(data, [b"a" * 1000, random.Random(1).randbytes(3 << 20)], **wrong)
    data("data", "index", "m")
    data("data", "cat", "m", "0")
    for args in (["cat", "m", "1"], ["stream", "m", "--batch", "2"],
                 ["pack", "m", "out", "--format", "wds"]):
        peak, err = peak_of(data, *args, rc=1)
        assert "shard.00000.mds.gz" in err and says in err, err
        assert peak < 96 << 20, args


def test_what_a_writer_leaves_behind(data):
    """Zeros behind a gzip, an empty member, and what follows the last sample of a tar are none."""
    mds(data, [b"a" * 1000], behind=gzip.compress(b"") + bytes(512))
    data("data", "stream", "m")
    data.file("t/a.tar.gz", gzip.compress(tar([("a", {"txt": b"hello"})]) + bytes(1 << 20)))
    data("data", "stream", "t")
    assert data.json("data", "cat", "t", "0")["fields"][1]["value"] == "hello"


def test_bombs(data):
    """What decompresses to far more than a file of its size is refused, and what is large as a
    whole is not decompressed for its first sample."""
    mds(data, [b"a"], raw_bytes=(1 << 32) - 1)
    peak, err = peak_of(data, "stats", "m", rc=1)
    assert "said to decompress to 4294967295: a damaged or hostile file" in err
    assert "shard.00000.mds.gz" in err and peak < 64 << 20
    samples = [("a", {"txt": b"hello"}), ("b", {"bin": bytes(300 << 20)})]
    data.file("t/a.tar.gz", gzip.compress(tar(samples), 1))
    data("data", "index", "t")
    for args in ["stats", "t"], ["cat", "t", "0"]:
        assert peak_of(data, *args)[0] < 64 << 20, args
    peak, err = peak_of(data, "cat", "t", "1", "--memory", "256M", rc=1)
    assert "sample 1 has" in err and "268435456 are allowed: allow more memory" in err
    assert peak < 64 << 20
    assert 300 << 20 < peak_of(data, "cat", "t", "1")[0] < 400 << 20
    peak, err = peak_of(data, "pack", "t", "out", "--format", "mds", "--memory", "256M", rc=1)
    assert "1 such would be held" in err and "allow more with --memory" in err
    assert peak < 64 << 20


@pytest.mark.parametrize("name, make", [
    ("a.tar.bz2", lambda: tar([("a", {"bin": bytes(160 << 20)})])),
    ("a.tar.bz2", lambda: tar([("a", {"txt": b"hello"})]) + bytes(160 << 20)),
    ("a.jsonl.bz2", lambda: (b"[" + bytes(4000).replace(b"\0", b" ") + b"]\n") * 40000),
    ("a.tfrecord.bz2", lambda: struct.pack("<QI", 160 << 20, 0) + bytes(160 << 20))])
def test_bombs_of_formats_that_say_no_size(data, name, make):
    """Hundreds of bytes that become more than 4,096 times that, and 64 MiB: whoever makes the index
    learns of it before that is made, however he comes to it."""
    bomb = bz2.compress(make(), 9)
    assert len(bomb) < 16384
    data.file(f"d/{name}", bomb)
    for args in (["index", "d"], ["stream", "d"], ["cat", "d", "0"],
                 ["pack", "d", "out", "--format", "mds"]):
        peak, err = peak_of(data, *args, rc=1)
        assert name in err and peak < 96 << 20, (args, peak)
        assert "decompresses to more than" in err or "CRC" in err, err
    assert not (data.cwd / "out").exists()


@pytest.mark.parametrize("jobs", [1, 4])
def test_shards_are_looked_into_side_by_side(data, jobs):
    """As many at a time as there are threads: each read takes its time, and nothing else does."""
    for k in range(8):
        data.file(f"d/{k}.jsonl", '{"a": 1}\n' * 10)
    slow = f"file:{data.cwd}/d?fault_ops=read&fault_delay=200ms"
    process = data.start("data", "index", slow, "-j", str(jobs), stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, sum(name.endswith(".jsonl") for name in opened(process.pid)))
        time.sleep(0.01)
    assert process.returncode == 0 and most == jobs
    assert data.json("data", "stats", "d")["samples"] == 80


def opened(pid):
    """The files that a process has open now, as far as it still lives."""
    names = []
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return names


def bytes_read(data, *args):
    """By one run, by system calls of all its threads; what every run reads is taken off."""
    def run(*args):
        process = data.start(*args, env={"WEIR_IO": "threads"}, stdout=subprocess.DEVNULL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{process.pid}/io") as file:
            read, = (int(line.split()[1]) for line in file if line.startswith("rchar:"))
        assert process.wait() == 0
        return read
    return run(*args) - run("--version")


def foreign(data, tmp_path, form, shard_size):
    """A dataset that is not Weir's own: the sizes of its shards."""
    rng = random.Random(form)
    data.file("lines/a.jsonl", "".join(
        json.dumps({"id": i, "text": rng.randbytes(2500).hex()}) + "\n" for i in range(2000)))
    data("data", "pack", "lines", "packed", "--format", form, "--shard-size", shard_size)
    for path in (tmp_path / "packed").iterdir():
        if path.is_file() and path.suffix != ".weir":
            data.file(f"d/{path.name}", path.read_bytes())
    return [path.stat().st_size for path in (tmp_path / "d").iterdir() if path.suffix != ".json"]


@pytest.mark.parametrize("form", ["wds", "tfrecord", "jsonl"])
def test_an_index_costs_one_reading(data, tmp_path, form):
    sizes = foreign(data, tmp_path, form, "1M")
    assert len(sizes) >= 10
    assert 0.95 < bytes_read(data, "data", "index", "d") / sum(sizes) < 1.01
    assert bytes_read(data, "data", "index", "d") / sum(sizes) < 0.01  # it is kept


@pytest.mark.parametrize("shard_size", ["256K", "4M"])
def test_an_index_of_mds_costs_the_heads(data, tmp_path, shard_size):
    """A count, an offset for each sample and one more, and the columns: a page or two of each."""
    sizes = foreign(data, tmp_path, "mds", shard_size)
    assert len(sizes) >= 3 and sum(sizes) > 9 << 20
    assert bytes_read(data, "data", "index", "d") < (len(sizes) + 3) * 8192


def parts(tmp_path):
    """Parts of indexes that are sealed."""
    return list((tmp_path / "cache/.weir/seal").glob("data/*/*.part/*~"))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_kill_costs_a_second(data, tmp_path, jobs):
    shards = 200
    for i in range(shards):
        data.file(f"d/{i:03}.tar", tar([(f"{i}-{k}", {"txt": b"hi"}) for k in range(3)]))
    slow = f"file:{tmp_path}/d?fault_ops=read&fault_delay=100ms"
    process = data.start("data", "index", slow, "-j", jobs, stdout=subprocess.DEVNULL)
    wait_for(lambda: parts(tmp_path), "a part of the index")
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    doc = data.json("data", "index", "d")
    assert doc["built"] and 0 < doc["scanned"] < shards, doc
    assert doc["samples"] == 3 * shards and not parts(tmp_path)
    # It is the index that would have been made without a kill.
    digest = data.json("data", "index", "d", "--cache", "other")["digest"]
    assert digest == doc["digest"]
    assert data.json("data", "cat", "d", "599")["key"] == "199.tar"


def test_two_at_once(data, tmp_path):
    for i in range(20):
        data.file(f"d/{i:03}.tar", tar([(f"{i}-{k}", {"txt": b"hi"}) for k in range(3)]))
    both = [data.start("--json", "data", "index", "d", stdout=subprocess.PIPE) for _ in range(4)]
    docs = [json.loads(p.communicate(timeout=PATIENCE_S)[0]) for p in both]
    assert [d["samples"] for d in docs] == [60] * 4 and len({d["digest"] for d in docs}) == 1
