"""weir data pack, from every format into every other: what a sample says comes through, whatever
its fields are called there."""
import io
import json
import tarfile

import pytest
from weirtest import need

np = need("numpy")

N = 60
SHARDED = ["mds", "wds", "tfrecord", "jsonl", "files"]


def row(i):
    return {"text": f"row {i} ü" * (i % 5 + 1), "number": i}


def tokens(i):
    return [(7 * i + k) % 50000 for k in range(9)]


@pytest.fixture(autouse=True)
def cache(weir):
    weir.env["WEIR_CACHE"] = str(weir.cwd / "cache")


def pack(weir, source, to, form, *more):
    doc = weir.json("data", "pack", source, to, "--format", form, "--shard-size", "64K", *more)
    assert doc["samples"]
    return to


def write_litdata(path, rows):
    need("litdata")
    from litdata.streaming.writer import BinaryWriter
    path.mkdir()
    writer = BinaryWriter(str(path), chunk_size=13)
    for i, one in enumerate(rows):
        writer.add_item(i, {key: np.array(value, np.uint16) if isinstance(value, list) else value
                            for key, value in one.items()})
    writer.done()
    writer.merge(1)


def make(weir, form, rows):
    """A dataset of that format."""
    if form == "litdata":
        write_litdata(weir.cwd / "source", rows)
    elif form == "tokens":
        flat = np.array([token for one in rows for token in one["tokens"]], np.uint16)
        weir.file("source/train.bin", flat.tobytes())
    else:
        weir.file("lines/a.jsonl", "".join(json.dumps(one) + "\n" for one in rows))
        pack(weir, "lines", "source", form)
    return "source"


def value(data):
    """What a field says, whatever became of its type on the way."""
    if isinstance(data, (bytes, memoryview)):
        data = bytes(data)
        return data.decode() if not data.startswith(b"\x93NUMPY") else \
            np.load(io.BytesIO(data)).tolist()
    if isinstance(data, (np.ndarray, np.generic)):
        return data.tolist()
    return data


def samples(weir, url, **options):
    """As a weir.Dataset has them; what are files of a sample are put together again."""
    import weir as library
    found = {}
    with library.Dataset(weir.cwd / url, shuffle=False, cache="mem:", **options) as ds:
        for number in range(ds.samples):
            one = {name: value(data) for name, data in ds[number].items() if data is not None}
            key = number
            if "path" in one:
                key, _, name = one["path"].partition(".")
                one = {name: one["data"]}
            elif "__key__" in one:
                key = one.pop("__key__")
            found.setdefault(key, {}).update(
                {name.partition(".")[0]: content for name, content in one.items()})
    return [found[key] for key in sorted(found)]


def shards(path):
    """All files, but for Weir's own bookkeeping."""
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*")
            if p.is_file() and ".weir" not in p.relative_to(path).parts
            and p.name != "index.weir"}


def simple(row):
    """A number may be text by now, or a list of one."""
    number = row.get("number")
    number = number[0] if isinstance(number, list) else number
    return {"text": row["text"], **({} if number is None else {"number": int(number)})}


@pytest.mark.parametrize("target", SHARDED)
@pytest.mark.parametrize("source", [*SHARDED, "litdata"])
def test_every_pair(weir, source, target):
    expected = [row(i) for i in range(N)]
    if (source, target) == ("files", "wds"):  # where each file has a stem of its own
        expected = [{"text": one["text"]} for one in expected]
    made = make(weir, source, expected)
    pack(weir, made, "one", target, "--jobs", "1")
    pack(weir, made, "four", target, "--jobs", "4")
    assert [simple(one) for one in samples(weir, "one")] == expected
    assert shards(weir.cwd / "four") == shards(weir.cwd / "one") != {}
    weir("verify", "--store", "one")


@pytest.mark.parametrize("target, codec", [("wds", "gz"), ("wds", "zstd"), ("tfrecord", "gz"),
                                           ("tfrecord", "br"), ("jsonl", "zstd:7"),
                                           ("jsonl", "bz2"), ("mds", "snappy")])
def test_compressed(weir, target, codec):
    expected = [row(i) for i in range(N)]
    made = make(weir, "jsonl", expected)
    for jobs in ("1", "4"):
        pack(weir, made, jobs, target, "--compression", codec, "--jobs", jobs)
        assert [simple(one) for one in samples(weir, jobs)] == expected
    assert shards(weir.cwd / "4") == shards(weir.cwd / "1") != {}


@pytest.mark.parametrize("source", ["mds", "wds", "tfrecord", "jsonl", "litdata"])
def test_into_tokens(weir, source):
    made = make(weir, source, [{"tokens": tokens(i)} for i in range(N)])
    more = ["--fields", "tokens.npy"] if source == "wds" else []
    pack(weir, made, "to", "tokens", *more, "--dtype", "u16")
    got = samples(weir, "to", seq_len=9, options={"overlap": 0})
    assert [one["tokens"] for one in got] == [tokens(i) for i in range(N)]


@pytest.mark.parametrize("target", SHARDED)
def test_from_tokens(weir, target):
    made = make(weir, "tokens", [{"tokens": tokens(i)} for i in range(N)])
    pack(weir, made, "to", target, "--source-options", "seq_len=9&overlap=0", "--fields", "tokens")
    assert [one["tokens"] for one in samples(weir, "to")] == [tokens(i) for i in range(N)]


def members(path):
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def test_members_of_a_tar_stay_as_they_are(weir):
    """What reads as a number or an array is not written anew."""
    fortran = io.BytesIO()
    np.lib.format.write_array(fortran, np.asfortranarray(np.arange(6).reshape(2, 3)), (2, 0))
    found = {"a/1.cls": b"007\n", "a/1.json": b'{ "x" : 1 }\n', "a/1.npy": fortran.getvalue(),
             "a/1.txt": b"\xff", "b.cls": b"+7", "b.id": b" 3 ", "c/2.data": b"\0raw",
             "c/2.path": b"c/2.jpg", "c/2.cls": b"2"}
    (weir.cwd / "tars").mkdir()
    with tarfile.open(weir.cwd / "tars/x.tar", "w") as tar:
        for name, data in found.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    pack(weir, "tars", "tree", "files")
    tree = weir.cwd / "tree"
    assert {name: (tree / name).read_bytes() for name in found} == found
    pack(weir, "tars", "again", "wds")
    assert members(weir.cwd / "again/shard-000000.tar") == found
    pack(weir, "tars", "chosen", "files", "--fields", "cls")
    assert sorted(p.name for p in (weir.cwd / "chosen").rglob("*.cls")) == [
        "1.cls", "2.cls", "b.cls"]
