"""weir data manifest, sign and verify: what is signed is read; sha256sum and openssl agree."""
import hashlib
import json
import os
import shutil
import struct
import subprocess

import pytest

from conftest import BIN, PATIENCE_S

MIB = 1 << 20
KIB64 = 1 << 16


def dataset(weir, name="data"):
    """Files of all sorts; the names sort otherwise than their directories do."""
    files = {
        "index.json": b"{}",
        "shard.00000.mds": os.urandom(3 * MIB + 17),
        "shard.00001.mds": os.urandom(MIB),
        "a/x": b"",
        "a.x": b"dot",
        "name with blanks  and *": b"b",
        "back\\slash\\n": b"s",
        "ünïcode": b"u",
    }
    for key, content in files.items():
        weir.file(f"{name}/{key}", content)
    return weir.cwd / name, files


def sha256sum(where):
    return subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=where,
                          capture_output=True, text=True)


def keys(weir, name="key"):
    private, public = weir.cwd / f"{name}.pem", weir.cwd / f"{name}-pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


def openssl_verify(where, public):
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public,
                           "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig"], cwd=where,
                          capture_output=True, text=True)


def flip(path, at):
    path.chmod(0o644)
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0] ^ 1
        f.seek(at)
        f.write(bytes([byte]))


def test_manifest_is_what_sha256sum_writes(weir):
    where, files = dataset(weir)
    doc = weir.json("data", "manifest", "data", "--jobs", "3")
    assert doc["files"] == len(files) and doc["size_bytes"] == sum(map(len, files.values()))
    text = (where / "SHA256SUMS").read_bytes()
    assert doc["sha256"] == hashlib.sha256(text).hexdigest()
    names = sorted([*files, "SHA256BLOCKS"], key=str.encode)
    theirs = subprocess.run(["sha256sum", *names], cwd=where, capture_output=True).stdout
    assert text == theirs
    assert sha256sum(where).returncode == 0
    again = weir.json("data", "manifest", "data", "--jobs", "1")
    assert again == doc and (where / "SHA256SUMS").read_bytes() == text


def test_blocks_are_as_documented(weir):
    where, files = dataset(weir)
    weir("data", "manifest", "data", "--block", "64K")
    data = (where / "SHA256BLOCKS").read_bytes()
    magic, version, block, count, blocks, name_bytes = struct.unpack_from("<8sIIQQQ", data)
    assert (magic, version, block, count) == (b"WEIRBLKS", 1, KIB64, len(files))
    rows = [struct.unpack_from("<QQQ", data, 40 + 24 * i) for i in range(count)]
    names_at = 40 + 24 * count
    sums_at = names_at + name_bytes
    assert len(data) == sums_at + 32 * blocks
    for i, (size, first, at) in enumerate(rows):
        end = rows[i + 1][2] if i + 1 < count else name_bytes
        content = files.pop(data[names_at + at:names_at + end].decode())
        assert size == len(content)
        for n, begin in enumerate(range(0, size, KIB64)):
            at = sums_at + 32 * (first + n)
            assert data[at:at + 32] == hashlib.sha256(content[begin:begin + KIB64]).digest()
    assert not files


def test_verify_names_what_is_not_as_it_was(weir):
    where, files = dataset(weir)
    weir("data", "manifest", "data")
    result = weir("data", "verify", "data")
    assert result.out.startswith(f"verified {len(files)} files (4.0 MiB)") and result.err == ""
    flip(where / "shard.00000.mds", MIB + 5)
    flip(where / "shard.00000.mds", 3 * MIB + 16)
    flip(where / "a.x", 1)
    (where / "a/x").unlink()
    (where / "a/new").write_text("new")
    with open(where / "shard.00001.mds", "ab") as f:
        f.write(b"more")
    result = weir("data", "verify", "data", rc=1)
    assert result.err.splitlines() == [
        "weir: 'a.x' has changed: bytes 0-2 (1 block) differ",
        "weir: 'a/new' is not in the manifest",
        "weir: 'a/x' is missing",
        "weir: 'shard.00000.mds' has changed: bytes 1048576-2097151, 3145728-3145744 (2 blocks) "
        "differ",
        "weir: 'shard.00001.mds' has changed: it has 1048580 bytes, not 1048576",
    ]
    assert result.out == "5 of 9 files are not as they were\n"
    doc = weir.json("data", "verify", "data", "--jobs", "1", rc=1)
    assert not doc["ok"] and doc["key"] is None
    assert [(f["name"], f["status"]) for f in doc["flaws"]] == [
        ("a.x", "changed"), ("a/new", "added"), ("a/x", "missing"), ("shard.00000.mds", "changed"),
        ("shard.00001.mds", "changed")]
    assert doc["flaws"][3]["ranges"] == [[MIB, 2 * MIB], [3 * MIB, 3 * MIB + 17]]
    assert sha256sum(where).returncode == 1


def test_a_list_that_sha256sum_made(weir):
    where, files = dataset(weir)
    theirs = subprocess.run(["sha256sum", *files], cwd=where, capture_output=True).stdout
    (where / "SHA256SUMS").write_bytes(theirs)
    weir("data", "verify", "data")
    flip(where / "shard.00000.mds", 0)
    assert weir.fails("data", "verify", "data").startswith("'shard.00000.mds' has changed")


def test_signatures(weir):
    where, files = dataset(weir)
    private, public = keys(weir)
    _, other = keys(weir, "other")
    assert "there is no manifest" in weir.fails("data", "sign", "data", "--key", private)
    weir("data", "manifest", "data")
    assert "is not signed" in weir.fails("data", "verify", "data", "--key", public)
    key = weir.json("data", "sign", "data", "--key", private)["key"]
    assert openssl_verify(where, public).returncode == 0
    assert openssl_verify(where, other).returncode != 0
    assert weir.json("data", "verify", "data", "--key", public)["key"] == key
    assert weir("data", "verify", "data").err.startswith("the signature was not checked")
    assert "another key signed it" in weir.fails("data", "verify", "data", "--key", other)
    assert "that is a private key" in weir.fails("data", "verify", "data", "--key", private)
    assert "that is a public key" in weir.fails("data", "sign", "data", "--key", public)
    assert weir.fails("data", "sign", "data", rc=2).startswith("--key is missing")
    # The same list keeps its signature, another one loses it.
    weir("data", "manifest", "data")
    assert (where / "SHA256SUMS.sig").exists()
    (where / "a.x").write_text("other")
    weir("data", "manifest", "data")
    assert not (where / "SHA256SUMS.sig").exists()


def test_a_signed_list_cannot_be_changed(weir):
    where, _ = dataset(weir)
    private, public = keys(weir)
    weir("data", "manifest", "data")
    weir("data", "sign", "data", "--key", private)
    sums = where / "SHA256SUMS"
    text = sums.read_bytes()
    sums.write_bytes(text.replace(b"a.x", b"a.y"))
    assert "changed since" in weir.fails("data", "verify", "data", "--key", public)
    sums.write_bytes(text)
    flip(where / "SHA256BLOCKS", 2000 if (where / "SHA256BLOCKS").stat().st_size > 2000 else 100)
    assert "SHA256BLOCKS is not what SHA256SUMS says" in weir.fails("data", "verify", "data")
    os.truncate(where / "SHA256SUMS.sig", 10)
    weir("data", "manifest", "data", "--block", "64K")
    weir("data", "verify", "data")


@pytest.mark.parametrize("text", ["", "x", "0" * 64 + " a\n", "0" * 63 + "g  a\n", "SHA256 (a) = 0",
                                  "\\" + "0" * 64 + "  a\\q\n"])
def test_what_is_no_list(weir, text):
    where, _ = dataset(weir)
    (where / "SHA256SUMS").write_text(text)
    if text:
        assert "SHA256SUMS" in weir.fails("data", "verify", "data")
    else:
        assert weir("data", "verify", "data", rc=1).err.count("not in the manifest") == 8


def test_a_dataset_that_cannot_be_written_to(weir):
    where, files = dataset(weir)
    private, public = keys(weir)
    weir("data", "manifest", "data", "--output", "out/of/it")
    weir("data", "sign", "data", "--manifest", "out/of/it", "--key", private)
    assert sorted(os.listdir(weir.cwd / "out/of/it")) == [
        "SHA256BLOCKS", "SHA256SUMS", "SHA256SUMS.sig"]
    assert not (where / "SHA256SUMS").exists()
    weir("data", "verify", "data", "--manifest", "out/of/it", "--key", public)
    flip(where / "a.x", 0)
    weir("data", "verify", "data", "--manifest", "out/of/it", "--key", public, rc=1)


def test_in_a_store(weir):
    """The three files are objects then, and damage that the store sees is told as any other."""
    where, files = dataset(weir)
    private, public = keys(weir)
    weir("put", "-q", "-r", "data", "d")
    shutil.rmtree(where)
    weir("data", "manifest", "weir-store")
    weir("data", "sign", "weir-store", "--key", private)
    assert "SHA256SUMS.sig" in weir.keys()
    weir("data", "verify", "weir-store", "--key", public)
    assert sha256sum(weir.store).returncode == 0
    assert openssl_verify(weir.store, public).returncode == 0
    weir.flip("d/shard.00000.mds", 2 * MIB)
    assert weir.fails("data", "verify", "weir-store", "--key", public) == (
        "'d/shard.00000.mds' has changed: bytes 2097152-3145727 (1 block) cannot be read")
    weir("rm", "d/shard.00000.mds")
    weir("data", "manifest", "weir-store")
    assert "SHA256SUMS.sig" not in weir.keys()
    weir("data", "verify", "weir-store")


def run_read_only(weir, where, *args):
    """Runs it while that directory is read-only; who may not mount skips."""
    script = f'mount --bind {where} {where} && mount -o remount,bind,ro {where} || exit 99\n' \
             f'exec {BIN} "$@"'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *args], cwd=weir.cwd,
                          env=weir.env, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no read-only mount can be made: {done.stderr}")
    return done


@pytest.mark.parametrize("in_store", [False, True])
def test_read_only(weir, in_store):
    """What cannot be written is said before all of it was read, with the way out."""
    where, files = dataset(weir)
    if in_store:
        weir("put", "-q", "-r", "data", "d")
        where = weir.store
        flip(where / "d/a.x", 0)  # who hashed it would say so
    done = run_read_only(weir, where, "data", "manifest", str(where))
    assert done.returncode == 1 and done.stderr == (
        f"weir: '{where}' cannot be written to: Read-only file system: keep the manifest "
        "elsewhere, with --output DIR\n")


def test_a_read_only_dataset_is_read(weir):
    """Nothing need be written there: its index is kept in the cache, and found again."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    mds(weir)
    for made in (True, False):
        done = run_read_only(weir, weir.cwd / "mds", "--json", "data", "index", "mds")
        assert done.returncode == 0 and json.loads(done.stdout)["built"] is made, done
    done = run_read_only(weir, weir.cwd / "mds", "--json", "data", "stream", "mds")
    assert done.returncode == 0 and json.loads(done.stdout)["samples"] == 200, done
    assert sorted(path.name for path in (weir.cwd / "mds").iterdir()) == [
        "index.json", "shard.00000.mds"]


def test_nothing_there(weir):
    weir.cwd.joinpath("empty").mkdir()
    err = weir.fails("data", "manifest", "empty")
    assert f"there are no files in '{weir.cwd}/empty'" in err
    assert "nowhere" in weir.fails("data", "manifest", "nowhere")
    assert "power of two" in weir.fails("data", "manifest", "empty", "--block", "100K", rc=2)


def mds(weir, samples=200, name="mds"):
    """A small MDS dataset, written by hand: one bytes column."""
    header = (b'{"column_encodings": ["bytes"], "column_names": ["x"], "column_sizes": [null], '
              b'"compression": null, "format": "mds", "hashes": [], "size_limit": null, '
              b'"version": 2}')
    rows = [struct.pack("<I", 20000) + bytes([i]) * 20000 for i in range(samples)]
    at = 4 * (samples + 2) + len(header)
    offsets = [at + sum(map(len, rows[:i])) for i in range(samples + 1)]
    shard = struct.pack(f"<I{samples + 1}I", samples, *offsets) + header + b"".join(rows)
    weir.file(f"{name}/shard.00000.mds", shard)
    weir.file(f"{name}/index.json", '{"version": 2, "shards": [{"column_encodings": ["bytes"], '
              '"column_names": ["x"], "column_sizes": [null], "compression": null, "format": "mds",'
              ' "hashes": [], "raw_data": {"basename": "shard.00000.mds", "bytes": %d, "hashes": '
              '{}}, "samples": %d, "size_limit": null, "version": 2, "zip_data": null}]}'
              % (len(shard), samples))
    return weir.cwd / name, offsets


def test_readers_with_a_key(weir):
    """What was signed is read; anything else is refused, where it is."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    where, offsets = mds(weir)
    private, public = keys(weir)
    _, other = keys(weir, "other")

    def cat(number, **more):
        return weir("data", "cat", "mds", str(number), "--field", "x", "--key", public, **more)

    assert "there is no manifest" in weir.fails("data", "cat", "mds", "0", "--key", public)
    weir("data", "manifest", "mds", "--block", "64K")
    assert "is not signed" in weir.fails("data", "cat", "mds", "0", "--key", public)
    weir("data", "sign", "mds", "--key", private)
    assert "another key" in weir.fails("data", "cat", "mds", "0", "--key", other)
    for number in (0, 3, 199):
        assert cat(number).raw == bytes([number]) * 20000
    bad = 100
    flip(where / "shard.00000.mds", offsets[bad] + 1000)
    weir("data", "cat", "mds", str(bad))  # without a key nobody knows
    assert "is not what was signed in block" in weir.fails(
        "data", "cat", "mds", str(bad), "--field", "x", "--key", public)
    assert cat(0).raw == bytes(20000)
    shutil.copy(where / "shard.00000.mds", where / "shard.00001.mds")
    text = (where / "index.json").read_text()
    (where / "index.json").write_text(text.replace("shard.00000", "shard.00001"))
    assert "index.json" in weir.fails("data", "cat", "mds", "0", "--key", public)


@pytest.mark.parametrize("to", ["mds", "wds"])
def test_packing_with_a_key(weir, to):
    """What was signed becomes the new dataset; anything else stops it, where it is."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    where, offsets = mds(weir)
    private, public = keys(weir)
    weir("data", "manifest", "mds", "--output", "m", "--block", "64K")
    weir("data", "sign", "mds", "--manifest", "m", "--key", private)
    pack = ["data", "pack", "mds", "ours", "--format", to]
    assert "there is no manifest" in weir.fails(*pack, "--key", public)
    _, other = keys(weir, "other")
    pack += ["--manifest", "m", "--key"]
    assert "another key" in weir.fails(*pack, other)
    assert not (weir.cwd / "ours").exists()
    flip(where / "shard.00000.mds", offsets[100] + 1000)
    error = weir.fails(*pack, public)
    block = (offsets[100] + 1000) // KIB64
    assert f"is not what was signed in block {block} " in error and "shard.00000.mds" in error
    assert not list((weir.cwd / "ours").glob("shard*"))
    weir("data", "pack", "mds", "unsigned", "--format", to)  # without a key nobody knows
    flip(where / "shard.00000.mds", offsets[100] + 1000)
    assert weir.json("data", "pack", "mds", "again", *pack[4:], public)["samples"] == 200
    assert weir("data", "cat", "again", "100", "--field", "x").raw == bytes([100]) * 20000


def test_packing_signed_files_with_a_key(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    for i in range(50):
        weir.file(f"tree/{i:02}.jpg", bytes([i]) * 3000)
    private, public = keys(weir)
    weir("data", "manifest", "tree", "--output", "m")
    weir("data", "sign", "tree", "--manifest", "m", "--key", private)
    pack = ["--format", "mds", "--manifest", "m", "--key", public]
    weir("data", "pack", "tree", "one", *pack)
    flip(weir.cwd / "tree/33.jpg", 77)
    error = weir.fails("data", "pack", "tree", "two", *pack)
    assert "'33.jpg' is not what was signed in block 0" in error, error
    assert weir("data", "cat", "one", "33", "--field", "data").raw == bytes([33]) * 3000


def test_a_key_and_a_manifest_elsewhere(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    where, _ = mds(weir, 20)
    private, public = keys(weir)
    weir("data", "manifest", "mds", "--output", "m")
    weir("data", "sign", "mds", "--manifest", "m", "--key", private)
    read = ["data", "cat", "mds", "7", "--field", "x", "--key", public]
    assert "there is no manifest" in weir.fails(*read)
    assert weir(*read, "--manifest", "m").raw == bytes([7]) * 20000


def test_a_manifest_without_a_key_is_refused(weir):
    """Whoever forgets the key would read what nobody has checked."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    mds(weir, 20)
    weir("data", "manifest", "mds", "--output", "m")
    for read in (["index", "mds"], ["ls", "mds"], ["stats", "mds"], ["cat", "mds", "7"],
                 ["stream", "mds"], ["tune", "mds"], ["pack", "mds", "ours", "--format", "wds"]):
        error = weir.fails("data", *read, "--manifest", "m")
        assert "the manifest in 'm' is checked with a public key, and none is given" in error
    assert not (weir.cwd / "ours").exists() and not (weir.cwd / "cache").exists()
    weir("data", "verify", "mds", "--manifest", "m")  # bytes against sums: needs no key


def jsonl(weir, name="rows"):
    """Three shards of three samples: a format that has no list of its shards."""
    for s in range(3):
        weir.file(f"{name}/s{s}.jsonl", "".join(f'{{"n": {3 * s + i}}}\n' for i in range(3)))
    return weir.cwd / name


def test_a_key_wants_every_file_that_was_signed(weir):
    """Fewer or more shards than were signed are another dataset, though each is what was signed."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    where = jsonl(weir)
    (where / "README").write_text("three shards\n")
    private, public = keys(weir)
    weir("data", "index", "rows")
    weir("data", "manifest", "rows")
    weir("data", "sign", "rows", "--key", private)
    index = ["data", "index", "rows", "--key", public]
    assert weir.json(*index)["samples"] == 9
    for name in ("s1.jsonl", "s2.jsonl", "README"):
        (where / name).rename(weir.cwd / name)
        err = weir.fails(*index)
        assert f"'{name}' is in the signed manifest, but not there" in err and "verify" in err
        (weir.cwd / name).rename(where / name)
    (where / "s3.jsonl").write_text('{"n": 9}\n')
    assert "'s3.jsonl' is not in the signed manifest" in weir.fails(*index)
    (where / "s3.jsonl").rename(where / "notes")  # which is no shard
    assert weir.json(*index)["samples"] == 9


def test_a_signed_index_may_be_missing(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    weir("init")
    for s in range(2):
        weir.put(f"d/s{s}.jsonl", b'{"n": 1}\n')
    weir("data", "index", "weir-store/d", "--beside")
    private, public = keys(weir)
    weir("data", "manifest", "weir-store/d")
    weir("data", "sign", "weir-store/d", "--key", private)
    assert weir.json("data", "index", "weir-store/d", "--key", public)["samples"] == 2
    weir("rm", "d/index.weir")
    assert weir.json("data", "index", "weir-store/d", "--key", public)["samples"] == 2


def test_another_manifest_has_another_index(weir):
    """Content of the same size and time that was signed anew is looked at anew."""
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")
    where = weir.file("rows/s.jsonl", '{"n": 1}\n{"n": 2}\n')
    private, public = keys(weir)
    for text, samples in (('{"n": 1}\n{"n": 2}\n', 2), ('{"n": 1, "m": 22}\n', 1)):
        assert len(text) == where.stat().st_size
        where.write_text(text)
        os.utime(where, ns=(10**18, 10**18))
        weir("data", "manifest", "rows")
        weir("data", "sign", "rows", "--key", private)
        assert weir.json("data", "index", "rows", "--key", public)["samples"] == samples
