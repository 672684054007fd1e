"""weir data pack: the same bytes whatever happens, every sample kept, nothing overwritten."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BIN, is_polite, reset_signals, wait_for

KIB = 1 << 10


@pytest.fixture(autouse=True)
def cache(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")


def tree(weir, count=150, name="src", most=6000):
    """Files of several sizes below several directories, and an empty one."""
    chance = random.Random(7)
    for i in range(count):
        weir.file(f"{name}/class{i % 3}/{i:04}.jpg", chance.randbytes(chance.randrange(most)))
    weir.file(f"{name}/class0/empty.jpg", b"")
    return weir.cwd / name


def rows(weir, count=120, name="rows.jsonl"):
    """Numbers and texts: what every format can hold, one way or another."""
    text = "".join(json.dumps({"number": i, "ratio": i / 8, "text": f"row {i} ü"}) + "\n"
                   for i in range(count))
    weir.file(f"{name}/part.jsonl", text)


def content(path):
    """All files but Weir's own bookkeeping; its index knows when the shards were written."""
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*"))
            if p.is_file() and ".weir" not in p.relative_to(path).parts and p.name != "index.weir"}


def pack(weir, source, to, form, *more, **how):
    return weir("data", "pack", source, to, "--format", form, "--shard-size", "64K", *more, **how)


def sample(weir, url, number):
    doc = weir.json("data", "cat", url, str(number))
    return {f["name"]: f.get("value") for f in doc["fields"]}


def field(weir, url, number, name):
    return weir("data", "cat", url, str(number), "--field", name).raw


@pytest.mark.parametrize("form, more", [
    ("mds", []), ("mds", ["--compression", "zstd:3"]), ("wds", []), ("tfrecord", [])])
def test_the_same_bytes_whatever_the_jobs(weir, form, more):
    source = tree(weir)
    pack(weir, "src", "one", form, "--jobs", "1", *more)
    pack(weir, "src", "four", form, "--jobs", "4", *more)
    one = content(weir.cwd / "one")
    assert one == content(weir.cwd / "four")
    assert sum("shard" in name for name in one) >= 6
    shard = next(name for name in one if "shard" in name)
    sealed, = weir.json("--store", "one", "stat", shard)["objects"]
    assert sealed["block_bytes"] == 16384
    files = sorted(p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file())
    assert weir.json("data", "stats", "one")["samples"] == len(files)
    for number in (0, 1, 77, len(files) - 1):
        name = "jpg" if form == "wds" else "data"
        assert field(weir, "one", number, name) == (source / files[number]).read_bytes()


def plain(path):
    """The files of a tree, without what Weir keeps beside them."""
    return {name: data for name, data in content(path).items() if not name.endswith(".weir")}


def test_a_tree_of_files_comes_back(weir):
    """Through any format that holds bytes: names without an ending, with two, with one stem."""
    source = tree(weir, 60)
    for name in ("README", "class0/a.seg.PNG", "class0/a.txt", "class0/a", "ü/ß x.JPG", "b_.c"):
        weir.file(f"src/{name}", name.encode() * 40)
    for form in ("mds", "tfrecord", "files"):
        pack(weir, "src", form, form, "--fields", "data,path")
        doc = weir.json("data", "pack", form, f"from-{form}", "--format", "files", "--jobs", "3")
        assert doc["files"] == doc["samples"] == 67 and not doc["files_kept"], form
        assert plain(weir.cwd / f"from-{form}") == plain(source), form
    pack(weir, "mds", "one", "files", "--jobs", "1")
    assert plain(weir.cwd / "one") == plain(source)
    weir("verify", "--store", "one")
    back = weir("data", "stats", "one").out
    assert "67" in back and "files" in back
    for number in (0, 33, 66):
        assert field(weir, "one", number, "data") == field(weir, "src", number, "data")
        assert field(weir, "one", number, "path") == field(weir, "src", number, "path")
    said = weir("data", "pack", "mds", "one", "--format", "files", "--shard-size", "64K").out
    assert "in 67 files (67 were there)" in said


def test_fields_as_files(weir):
    rows(weir, 3)
    pack(weir, "rows.jsonl", "to", "files")
    assert plain(weir.cwd / "to").keys() == {
        f"00000000{i}.{name}" for i in range(3) for name in ("number.cls", "ratio.npy", "text")}
    assert (weir.cwd / "to/000000002.text").read_text() == "row 2 ü"
    assert (weir.cwd / "to/000000002.number.cls").read_text() == "2"
    pack(weir, "rows.jsonl", "w", "wds")
    pack(weir, "w", "from-w", "files")
    assert plain(weir.cwd / "from-w") == plain(weir.cwd / "to")


@pytest.mark.parametrize("says, more", [
    ("'../up' cannot be a key", {"path": "../up"}),
    ("'a/.hidden' would be hidden", {"path": "a/.hidden"}),
    ("'index.weir' would be taken for one of Weir's own", {"path": "index.weir"}),
    ("'txt' would have the same name", {"path": "a.txt", "txt": "b"})])
def test_names_that_no_file_can_have(weir, says, more):
    weir.file("rows.jsonl", json.dumps({"data": "x"} | more) + "\n")
    error = weir.fails("data", "pack", "rows.jsonl", "to/below", "--format", "files")
    assert says in error and "sample 0" in error and "--fields" in error
    assert not (weir.cwd / "to").exists() and not (weir.cwd / "up").exists()


def test_two_files_of_one_name(weir):
    """The first stays as it is; the second is told of."""
    rows = [{"path": f"{i % 1500}.txt", "data": str(i)} for i in range(1501)]
    weir.file("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        error = weir.fails("data", "pack", "rows.jsonl", "to", "--format", "files", "--jobs", "1")
        assert "sample 1500" in error and "'0.txt' is there already" in error
        assert "as a file of sample 0: two files cannot have one name" in error
        assert (weir.cwd / "to/0.txt").read_text() == "0"
    weir("data", "pack", "rows.jsonl", "numbers", "--format", "files", "--fields", "data")
    assert (weir.cwd / "numbers/000001500.data.txt").read_text() == "1500"
    assert "no compression" in weir.fails("data", "pack", "rows.jsonl", "c", "--format", "files",
                                          "--compression", "zstd")


def test_a_name_and_one_below_it(weir):
    """One of them would not be in the directory: that is not done, however often."""
    weir.file("rows.jsonl", '{"path": "a", "data": "1"}\n{"path": "a/b", "data": "2"}\n')
    for _ in range(2):
        error = weir.fails("data", "pack", "rows.jsonl", "to", "--format", "files")
        assert "sample 1 of" in error and "another file or directory has its name" in error
    assert plain(weir.cwd / "to") == {"a": b"1"}


def test_a_long_list_of_files(weir):
    """Names are given back to its end, and by every filter that a store may have in front."""
    for i in range(400):
        weir.file(f"src/{i:04}-{'long' * 20}.txt", str(i).encode())
    for place in ("to", f"file:{weir.cwd}/slow?write_rate=100M"):
        weir("data", "pack", "src", place, "--format", "files")
        made = weir.cwd / ("to" if place == "to" else "slow")
        assert plain(made) == plain(weir.cwd / "src")
    lists = list((weir.cwd / "to/.pack").iterdir())
    assert len(lists) == 1 and lists[0].stat().st_size > 2 * 16384
    for name in sorted(os.listdir(weir.cwd / "src"))[100::100]:
        os.unlink(weir.cwd / "to" / name)
    os.unlink(weir.cwd / "to" / max(os.listdir(weir.cwd / "src")))
    weir("data", "pack", "src", "to", "--format", "files")
    assert plain(weir.cwd / "to") == plain(weir.cwd / "src")


def test_more_files_than_can_be_read_again(weir):
    (weir.cwd / "d").mkdir()
    with open(weir.cwd / "d/train.bin", "wb") as file:
        file.truncate(2 * 105_000_000)
    for more, said in (([], "about 210000000 files"),
                       (["--fields", "tokens"], "about 105000000 files")):
        error = weir.fails("data", "pack", "d", "to", "--format", "files", "--source-options",
                           "seq_len=1&overlap=0", *more)
        assert said in error and "at most 104857600: choose a format with shards" in error
    assert not (weir.cwd / "to").exists()


def test_a_store_without_files_by_name(weir):
    """What is packed there is whole, and people are told that other programs find no files."""
    tree(weir, 20)
    place = f"file:{weir.cwd}/to?commit=file:{weir.cwd}/records"
    weir("init", "-q", "--store", place)
    done = weir("data", "pack", "src", place, "--format", "files")
    assert "no files by name" in done.err and done.err.count("\n") == 1
    assert weir.json("data", "stats", place)["samples"] == 21
    weir("--store", place, "get", "-r", "", "back")
    assert {name: data for name, data in plain(weir.cwd / "back").items()
            if not name.startswith(".pack")} == plain(weir.cwd / "src")


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_file_that_lost_its_name(weir, is_listed):
    """As by a kill between the two: the same command gives it back, or says who has it now."""
    tree(weir, 20)
    again = ["data", "pack", "src", "to", "--format", "files", "--shard-size", "64K"]
    has_its_name = "'class1/0001.jpg' is stored, but another file or directory has its name"
    name = weir.cwd / "to/class1/0001.jpg"

    def lose():
        os.unlink(name)
        if not is_listed:
            weir("--store", "to", "rm", ".pack/000000.weir")

    weir(*again)
    lose()
    weir(*again)
    assert plain(weir.cwd / "to") == plain(weir.cwd / "src")
    lose()
    name.mkdir()
    assert has_its_name in weir.fails(*again)
    name.rmdir()
    name.write_bytes(b"mine")
    assert has_its_name in weir.fails(*again)
    assert name.read_bytes() == b"mine"
    name.unlink()
    weir(*again)
    assert plain(weir.cwd / "to") == plain(weir.cwd / "src")
    weir("--store", "to", "verify")


def test_a_listed_file_that_was_removed(weir):
    tree(weir, 20)
    pack(weir, "src", "to", "files")
    weir("--store", "to", "rm", "class1/0001.jpg")
    error = weir.fails("data", "pack", "src", "to", "--format", "files", "--shard-size", "64K")
    assert "'class1/0001.jpg'" in error and "as '.pack/000000.weir' says (remove that, too" in error
    weir("--store", "to", "rm", ".pack/000000.weir")
    pack(weir, "src", "to", "files")
    assert plain(weir.cwd / "to") == plain(weir.cwd / "src")


def test_a_damaged_file_of_a_tree_is_named(weir):
    tree(weir, 30)
    weir("put", "-q", "-r", "src", "d")
    weir.flip("d/class1/0004.jpg", 10)
    for args in (["pack", "weir-store/d", "to", "--format", "mds"],
                 ["stream", "weir-store/d", "--batch", "4"]):
        error = weir.fails("data", *args)
        assert "('class1/0004.jpg'): 'd/class1/0004.jpg' is damaged" in error, error


def test_another_object_in_place_of_a_listed_file(weir):
    tree(weir, 20)
    again = ["data", "pack", "src", "to", "--format", "files"]
    weir(*again)
    weir("--store", "to", "rm", "class1/0001.jpg")
    weir.file("mine", b"mine")
    weir("--store", "to", "put", "mine", "class1/0001.jpg")
    assert "'class1/0001.jpg' was put there by another" in weir.fails(*again)
    assert (weir.cwd / "to/class1/0001.jpg").read_bytes() == b"mine"


def test_what_others_put_there_is_not_overwritten(weir):
    tree(weir, 20)
    pack(weir, "src", "to", "files")
    weir("--store", "to", "rm", ".pack/000000.weir", "class1/0001.jpg")
    weir.file("to/class1/0001.jpg", b"mine")
    error = weir.fails("data", "pack", "src", "to", "--format", "files", "--shard-size", "64K")
    assert "'class1/0001.jpg' is there already, and is no part of this pack" in error
    assert (weir.cwd / "to/class1/0001.jpg").read_bytes() == b"mine"
    os.unlink(weir.cwd / "to/class1/0001.jpg")
    pack(weir, "src", "to", "files")
    assert plain(weir.cwd / "to") == plain(weir.cwd / "src")


@pytest.mark.parametrize("form", ["wds", "files"])
def test_killed_at_any_time_it_goes_on(weir, form):
    tree(weir, 300)
    pack(weir, "src", "whole", form)
    chance = random.Random(3)
    kills = 0
    seals = weir.cwd / "killed/.weir/seal" / (".pack" if form == "files" else "")
    slow = f"file:{weir.cwd}/killed?write_rate=200K"  # for so long that a kill is in time
    for _ in range(12):
        before = len(list(seals.glob("*0*")))
        process = weir.start("data", "pack", "src", slow, "--format", form, "--shard-size",
                             "64K", "--jobs", "3", stderr=subprocess.DEVNULL, stdout=-1)
        wait_for(lambda: process.poll() is not None or len(list(seals.glob("*0*"))) > before,
                 "a shard")
        time.sleep(chance.random() * 0.03)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
    doc = weir.json("data", "pack", "src", "killed", "--format", form, "--shard-size", "64K")
    assert kills and doc["shards_kept"]
    assert content(weir.cwd / "killed") == content(weir.cwd / "whole")
    weir("verify", "--store", "killed")
    again = weir.json("data", "pack", "src", "killed", "--format", form, "--shard-size", "64K")
    assert again["shards_kept"] == again["shards"] == doc["shards"]


@pytest.mark.parametrize("form", ["mds", "files"])
def test_two_at_once_share_the_work(weir, form):
    tree(weir, 200)
    pack(weir, "src", "alone", form)
    args = ["data", "pack", "src", "both", "--format", form, "--shard-size", "64K"]
    weir.start("init", "-q", "--store", "both").wait()
    two = [weir.start(*args, stdout=-1, stderr=-1) for _ in range(2)]
    errors = [p.communicate()[1] for p in two]
    assert [p.returncode for p in two] == [0, 0], errors
    assert content(weir.cwd / "both") == content(weir.cwd / "alone")


def test_stopped_by_a_signal(weir):
    tree(weir, 300)
    slow = f"file:{weir.cwd}/to?write_rate=200K"
    process = weir.start("data", "pack", "src", slow, "--format", "tfrecord", "--shard-size", "64K",
                         "--jobs", "2", stderr=-1, stdout=-1)
    wait_for(lambda: process.poll() is not None or is_polite(process), "the handler")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    # stopped, or done before
    assert process.returncode in (0, 130), err
    pack(weir, "src", "to", "tfrecord")
    pack(weir, "src", "whole", "tfrecord")
    assert content(weir.cwd / "to") == content(weir.cwd / "whole")
    assert not list((weir.cwd / "to/.weir/tmp").glob("*"))


@pytest.mark.parametrize("form", ["mds", "files"])
def test_a_full_disk(weir, form):
    """It fails with one line; with more room the same command goes on."""
    tree(weir, 400, most=20000)
    place = weir.cwd / "small"
    place.mkdir()
    args = [BIN, "data", "pack", "src", "small/to", "--format", form, "--shard-size", "256K"]
    script = """
        mount -t tmpfs -o size=2m none small || exit 99
        "$@"; test $? = 1 || exit 98
        mount -o remount,size=16m small || exit 99
        "$@" --json || exit 97
        cp -r small/to kept"""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *args], cwd=weir.cwd,
                          env=weir.env, capture_output=True, text=True, preexec_fn=reset_signals)
    if done.returncode in (1, 99, 127):
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "no space left" in done.stderr.lower() and done.stderr.count("\n") == 1
    assert "the same command goes on once there is room" in done.stderr
    assert json.loads(done.stdout)["shards_kept"] >= 1
    weir("data", "pack", "src", "whole", "--format", form, "--shard-size", "256K")
    assert content(weir.cwd / "kept") == content(weir.cwd / "whole")


def test_what_is_there_is_not_overwritten(weir):
    source = tree(weir, 30)
    weir.file("full/file", "mine")
    assert "'file' is in it" in weir.fails("data", "pack", "src", "full", "--format", "mds")
    assert os.listdir(weir.cwd / "full") == ["file"]
    weir.put("other/thing")
    assert "'other/thing' is there already" in weir.fails(
        "data", "pack", "src", "weir-store/other", "--format", "mds")
    pack(weir, "src", "to", "mds")
    assert "other options" in weir.fails("data", "pack", "src", "to", "--format", "wds")
    assert "other options" in weir.fails("data", "pack", "src", "to", "--format", "mds")
    changed = source / "class1/0001.jpg"
    data = changed.read_bytes()
    changed.write_bytes(data[::-1])  # of the same size: only its time tells
    os.utime(changed, ns=(1, 1))
    before = content(weir.cwd / "to")
    assert "written to since" in weir.fails("data", "pack", "src", "to", "--format", "mds",
                                            "--shard-size", "64K")
    changed.write_bytes(data + b"x")
    assert "another source" in weir.fails("data", "pack", "src", "to", "--format", "mds",
                                          "--shard-size", "64K")
    assert content(weir.cwd / "to") == before


def test_below_a_store(weir):
    """Where a store is already, the dataset becomes a part of it."""
    tree(weir, 30)
    weir("init")
    pack(weir, "src", "weir-store/sets/a", "mds")
    assert "sets/a/index.json" in weir.keys() and not (weir.store / "sets/a/.weir").exists()
    pack(weir, "weir-store/sets/a", "weir-store/sets/b", "wds")
    assert field(weir, "weir-store/sets/b", 3, "data") == field(weir, "src", 3, "data")
    weir("verify", "sets/b")
    weir("data", "manifest", "weir-store/sets/b")
    weir("data", "verify", "weir-store/sets/b")
    assert "sets/b/SHA256SUMS" in weir.keys()


def test_from_format_to_format(weir):
    """Numbers survive every format; what one cannot hold is named."""
    rows(weir)
    for source, to, form in [("rows.jsonl", "m", "mds"), ("m", "w", "wds"), ("w", "m2", "mds")]:
        pack(weir, source, to, form)
    error = weir.fails("data", "pack", "m", "t", "--format", "tfrecord")
    assert "sample 0" in error and "'ratio'" in error  # of 64 bits
    pack(weir, "m", "t", "tfrecord", "--fields", "number,text")
    pack(weir, "t", "m3", "mds")
    for number in (0, 63, 119):
        for url in ("m", "m2", "m3"):
            row = sample(weir, url, number)
            assert row[next(n for n in row if n.startswith("number"))] in (number, [number])
        assert field(weir, "m", number, "text") == f"row {number} ü".encode()
        assert field(weir, "m3", number, "text") == f"row {number} ü".encode()
        assert field(weir, "m2", number, "text") == f"row {number} ü".encode()
    pack(weir, "t", "j", "jsonl", "--fields", "number")
    pack(weir, "j", "m4", "mds")
    assert sample(weir, "m4", 9)["number"] in (9, [9])
    pack(weir, "m", "j2", "jsonl", "--fields", "text,ratio")
    text = next((weir.cwd / "j2").glob("*.jsonl")).read_text()
    assert json.loads(text.splitlines()[5]) == {"text": "row 5 ü", "ratio": 5 / 8}


def test_what_a_format_cannot_hold_is_named(weir):
    tree(weir, 10)
    error = weir.fails("data", "pack", "src", "to", "--format", "jsonl")
    assert "sample 0" in error and "'data'" in error and "--fields" in error
    pack(weir, "src", "to", "jsonl", "--fields", "path,label")  # nothing was begun there
    error = weir.fails("data", "pack", "src", "to2", "--format", "mds", "--fields", "path,nothing")
    assert "no field 'nothing'" in error
    assert "no format 'zip' to write: there are mds, wds, " in weir.fails(
        "data", "pack", "src", "to3", "--format", "zip")
    assert "--format is missing" in weir.fails("data", "pack", "src", "to3", rc=2)
    assert "'zip'" in weir.fails("data", "pack", "src", "to3", "--format", "mds",
                                 "--compression", "zip")


@pytest.mark.parametrize("says, source, more", [
    ("no compression 'zstd:99'", "src", ["--format", "mds", "--compression", "zstd:99"]),
    ("only read, not written", "src", ["--format", "litdata"]),
    ("no samples", "none", ["--format", "mds"]),
    ("'data' is bytes", "src", ["--format", "jsonl"]),
    ("no field 'nothing'", "src", ["--format", "wds", "--fields", "nothing"]),
    ("no field 'nothing'", "src", ["--format", "mds", "--columns", "nothing:int"]),
    ("does not know", "src", ["--format", "mds", "--columns", "data:gif"]),
    ("columns are of mds", "src", ["--format", "wds", "--columns", "data:bytes"]),
    ("of token files", "src", ["--format", "wds", "--layout", "megatron"]),
    ("no.pem", "src", ["--format", "mds", "--key", "no.pem"])])
def test_arguments_that_fail_leave_nothing(weir, says, source, more):
    tree(weir, 3)
    weir.file("none/empty.jsonl", b"")
    assert says in weir.fails("data", "pack", source, "to", *more)
    assert not (weir.cwd / "to").exists()
    weir("init")
    assert says in weir.fails("data", "pack", source, "weir-store/to", *more)
    assert weir.keys() == []


def test_a_damaged_source_is_named(weir):
    tree(weir, 60)
    pack(weir, "src", "a", "mds")
    shard = next((weir.cwd / "a/.weir/data").glob("shard.00001*"))
    shard.chmod(0o644)
    with open(shard, "r+b") as f:
        f.seek(30000)
        f.write(b"?" * 8)
    error = weir.fails("data", "pack", "a", "b", "--format", "wds", "--shard-size", "64K")
    assert "shard.00001.mds" in error and "damaged" in error
    shutil.rmtree(weir.cwd / "a")


def test_as_many_jobs_as_may_be(weir):
    """Each has a file beside its shard, too: a store bears so many writers, and no more."""
    tokens = bytes(n % 256 for n in range(5 << 20))
    weir.file("ids/train.bin", tokens)
    pack(weir, "ids", "many", "tokens", "--layout", "megatron", "--jobs", "32",
         "--source-options", "dtype=u16&seq_len=512")
    shards = sorted((weir.cwd / "many").glob("tokens_*.bin"))
    assert len(shards) > 64 and len(list((weir.cwd / "many").glob("*.idx"))) == len(shards)
    assert b"".join(p.read_bytes() for p in shards) == tokens
