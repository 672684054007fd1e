"""MDS: what MosaicML Streaming writes is read here equal sample for sample, and ours is read there;
shards and indexes that lie are refused."""
import gzip
import json
import math
import subprocess
from decimal import Decimal

import datasets
import pytest
from processes import peak_bytes
from weirtest import need

np = need("numpy")
streaming = need("streaming")
Image = need("PIL.Image")
from streaming.base.compression import get_compressions  # noqa: E402
from streaming.base.format.mds.encodings import get_mds_encodings, mds_encode  # noqa: E402

COMPRESSIONS = sorted(get_compressions())
# Slow ones for nothing: of each family some levels.
LEVELS = [None, "br", "br:0", "br:11", "bz2", "bz2:1", "gz", "gz:0", "gz:9", "snappy", "zstd",
          "zstd:1", "zstd:22"]


def write(path, columns, samples, **how):
    with streaming.MDSWriter(columns=columns, out=str(path), **how) as writer:
        for sample in samples:
            writer.write(sample)


def image(seed):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (9, 7, 3), np.uint8))


def same(got, expected):
    if isinstance(expected, np.ndarray):
        return (isinstance(got, np.ndarray) and got.dtype == expected.dtype and
                got.shape == expected.shape and got.tobytes() == expected.tobytes())
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(got)
    return got == expected


# encoding: (values, as Weir gives them; None: the very bytes that Streaming makes of them)
def values():
    arrays = [np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.ones((1, 300), np.int8),
              np.zeros(70000, np.uint16), np.array([[[-5]]], np.int64), np.array([1.5], np.float16)]
    cases = {
        "bytes": ([b"", b"\0\xff", b"x" * 5000], lambda v: v),
        "str": (["", "héllo \U0001f600", "x\0y"], lambda v: v),
        "int": ([0, -1, 2**63 - 1], lambda v: v),
        "str_int": ([0, -12, 2**62], lambda v: v),
        "str_float": ([0.0, -1.5e-300, math.inf], lambda v: v),
        "str_decimal": ([Decimal("1.10"), Decimal("-1E+5"), Decimal(3)], str),
        "json": ([{"a": [1, None, "é"]}, [], "text"], lambda v: v),
        "pil": ([image(i) for i in range(3)], None),
        "jpeg": ([image(i) for i in range(3)], None),
        "png": ([image(i) for i in range(3)], None),
        "jpeg_array": ([[mds_encode("jpeg", image(i))] * (i + 1) for i in range(3)], None),
        "jpegarray": ([[mds_encode("jpeg", image(i))] for i in range(3)], None),
        "list[pil]": ([[image(i)] * i for i in range(3)], None),
        "list[jpeg]": ([[image(i)] * i for i in range(3)], None),
        "list[png]": ([[image(i)] * i for i in range(3)], None),
        "ndarray": (arrays, lambda v: v),
        "ndarray:float32": ([arrays[0], arrays[0][0], np.array([math.nan], np.float32)],
                            lambda v: v),
        "ndarray:int16:2,3": ([np.full((2, 3), i, np.int16) for i in range(3)], lambda v: v),
    }
    for bits in (8, 16, 32, 64):
        cases[f"uint{bits}"] = [0, 1, 2**bits - 1], lambda v: v
        cases[f"int{bits}"] = [-(2**(bits - 1)), 0, 2**(bits - 1) - 1], lambda v: v
    for bits in (16, 32, 64):
        cases[f"float{bits}"] = [0.0, -1.5, math.inf], lambda v: v
    return cases


def test_every_encoding_is_tried():
    assert get_mds_encodings() - {"pkl"} <= set(values())


def test_every_encoding(tmp_path):
    """All in one dataset, and so all at every place between the others."""
    cases = values()
    names = {encoding: f"{i:02} {encoding}" for i, encoding in enumerate(cases)}
    samples = [{names[e]: cases[e][0][i % len(cases[e][0])] for e in cases} for i in range(5)]
    write(tmp_path, {names[e]: e for e in cases}, samples)
    got = datasets.dump(tmp_path)
    assert len(got) == 5
    for mine, theirs in zip(got, samples):
        assert sorted(mine) == sorted(theirs)
        for encoding, (_, convert) in cases.items():
            value = theirs[names[encoding]]
            expected = convert(value) if convert else mds_encode(encoding, value)
            assert same(mine[names[encoding]], expected), encoding


def text_samples(count):
    random = np.random.default_rng(7)
    return [{"id": i, "text": f"sample {i} " * int(random.integers(0, 50)),
             "tokens": random.integers(0, 50000, int(random.integers(1, 300)), np.uint16)}
            for i in range(count)]


TEXT_COLUMNS = {"text": "str", "id": "int", "tokens": "ndarray:uint16"}


def equal(got, expected):
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected):
        assert sorted(mine) == sorted(theirs)
        assert all(same(mine[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("compression", LEVELS)
def test_every_compression(tmp_path, compression):
    assert compression is None or compression in COMPRESSIONS
    samples = text_samples(1000)
    write(tmp_path, TEXT_COLUMNS, samples, compression=compression, size_limit=1 << 17,
          hashes=["sha1", "xxh64"])
    assert len(list(tmp_path.glob("shard.*"))) > 3
    equal(datasets.dump(tmp_path), samples)


def test_numbers_and_json_beyond_their_types_are_text(tmp_path):
    samples = [{"i": 2**80, "j": math.nan}, {"i": 5, "j": 1}]
    write(tmp_path, {"i": "str_int", "j": "json"}, samples)
    assert datasets.dump(tmp_path) == [{"i": str(2**80), "j": "NaN"}, {"i": 5, "j": 1}]


def test_pickle_is_refused(tmp_path):
    write(tmp_path, {"x": "pkl", "y": "int"}, [{"x": {1, 2}, "y": 1}])
    assert "column 'x' is pickled, and a pickle is a program" in datasets.fails(tmp_path)


def test_merged_and_mixed(tmp_path):
    """An index over subdirectories, whose shards have other columns, one of them decompressed."""
    write(tmp_path / "a", {"x": "int"}, [{"x": 1}, {"x": 2}])
    write(tmp_path / "b", {"x": "str", "y": "int"}, [{"x": "three", "y": 3}], compression="zstd")
    write(tmp_path / "c", {"x": "int"}, [{"x": 4}], compression="gz")
    packed = (tmp_path / "c/shard.00000.mds.gz").read_bytes()
    (tmp_path / "c/shard.00000.mds").write_bytes(gzip.decompress(packed))
    streaming.base.util.merge_index(str(tmp_path))
    assert datasets.dump(tmp_path) == [{"x": 1}, {"x": 2}, {"x": "three", "y": 3}, {"x": 4}]


# ---- what lies ----

@pytest.fixture
def dataset(tmp_path):
    write(tmp_path, TEXT_COLUMNS, text_samples(50), size_limit=1 << 14)
    return tmp_path


def lie(path, change):
    index = json.loads((path / "index.json").read_text())
    change(index["shards"][1])
    (path / "index.json").write_text(json.dumps(index))
    return datasets.fails(path)


def test_index_says_more_samples(dataset):
    def change(shard):
        shard["samples"] += 1
    assert "samples, where index.json says" in lie(dataset, change)


def test_index_says_more_bytes(dataset):
    def change(shard):
        shard["raw_data"]["bytes"] += 100
    assert "'shard.00001.mds' has " in lie(dataset, change)


def test_index_says_other_sizes(dataset):
    def change(shard):
        shard["column_sizes"][0] = 4
    assert "column 'id' is of 4 bytes" in lie(dataset, change)


def test_index_says_other_columns(dataset):
    def change(shard):
        shard["column_encodings"][0] = "int64"
        shard["column_encodings"][1] = "bytes"
    assert "has other columns than index.json says" in lie(dataset, change)


def test_index_leads_elsewhere(dataset):
    def change(shard):
        shard["raw_data"]["basename"] = "../index.json"
    assert "names '../index.json', which is not there" in lie(dataset, change)


def test_index_knows_another_format(dataset):
    def change(shard):
        shard["format"] = "csv"
    assert "shard 1: its format is 'csv', not mds" in lie(dataset, change)


def test_cut_off(dataset):
    shard = dataset / "shard.00001.mds"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert "it is cut off" in datasets.fails(dataset)


def test_cut_off_and_compressed(tmp_path):
    write(tmp_path, TEXT_COLUMNS, text_samples(50), compression="zstd")
    shard = tmp_path / "shard.00000.mds.zstd"
    whole = shard.read_bytes()
    index = json.loads((tmp_path / "index.json").read_text())
    for keep in (0, 10, len(whole) // 2, len(whole) - 1):
        shard.write_bytes(whole[:keep])
        index["shards"][0]["zip_data"]["bytes"] = keep
        (tmp_path / "index.json").write_text(json.dumps(index))
        assert "is cut off" in datasets.fails(tmp_path), keep


def test_bomb(weir, tmp_path):
    """A shard that says it is small, and decompresses to 256 MiB more: whoever comes to the end of
    what it says learns of it, and they are never made."""
    import zstd
    write(tmp_path, {"x": "bytes"}, [{"x": bytes(100)}], compression="zstd")
    shard = tmp_path / "shard.00000.mds.zstd"
    raw = zstd.decompress(shard.read_bytes())
    bomb = zstd.compress(raw + bytes(1 << 28), 3)
    shard.write_bytes(bomb)
    index = json.loads((tmp_path / "index.json").read_text())
    index["shards"][0]["zip_data"]["bytes"] = len(bomb)
    (tmp_path / "index.json").write_text(json.dumps(index))
    weir.env["WEIR_CACHE"] = str(tmp_path / "cache")
    for command in ["cat", tmp_path, "0"], ["stats", tmp_path], ["stream", tmp_path]:
        process = weir.start("data", *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert peak_bytes(process) < 128 << 20, command
        err = process.stderr.read().decode()
        assert process.returncode == 1 and err.count("\n") == 1, err
        assert "shard.00000.mds.zstd" in err and "decompresses to more than" in err, err
    index["shards"][0]["raw_data"]["bytes"] -= 50
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert "which cannot be: the header is damaged" in datasets.fails(tmp_path)


# ---- ours, read there ----

@pytest.mark.parametrize("codec", ["", "zstd:7", "gz", "bz2:2", "br:3", "snappy"])
def test_ours_is_read_by_streaming(tmp_path, codec):
    samples = text_samples(100)
    write(tmp_path / "theirs", TEXT_COLUMNS, samples)
    datasets.copy(tmp_path / "theirs", tmp_path / "ours", "mds", codec, 30)
    equal(datasets.dump(tmp_path / "ours"), samples)
    dataset = streaming.StreamingDataset(local=str(tmp_path / "local"),
                                         remote=str(tmp_path / "ours"), batch_size=1)
    equal([dataset[i] for i in range(len(dataset))], samples)
    if not codec:
        local = streaming.LocalDataset(str(tmp_path / "ours"))
        equal([local[i] for i in range(len(local))], samples)


def test_fields_become_columns(tmp_path):
    """As those of any other format do, which have no encodings: images and lists are bytes then."""
    cases = values()
    names = {encoding: f"{i:02} {encoding}" for i, encoding in enumerate(cases)}
    cases["ndarray"] = (cases["ndarray:float32"][0], None)  # its dtype is the column's
    samples = [{names[e]: cases[e][0][i % len(cases[e][0])] for e in cases} for i in range(3)]
    write(tmp_path / "theirs", {names[e]: e for e in cases}, samples)
    datasets.copy(tmp_path / "theirs", tmp_path / "ours", "mds")
    before, after = datasets.dump(tmp_path / "theirs"), datasets.dump(tmp_path / "ours")
    equal(after, before)
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    equal([local[i] for i in range(len(local))], before)


def test_packed_by_the_command(weir, tmp_path):
    samples = text_samples(1000)
    write(tmp_path / "theirs", TEXT_COLUMNS, samples)
    weir("data", "pack", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--format", "mds",
         "--compression", "zstd:7", "--shard-size", "64K")
    assert len(list((tmp_path / "ours").glob("*.zstd"))) > 3
    dataset = streaming.StreamingDataset(local=str(tmp_path / "local"),
                                         remote=str(tmp_path / "ours"), batch_size=1)
    equal([dataset[i] for i in range(len(dataset))], samples)


# ---- packed with the encodings that it has, or those that are asked for ----

def pack(weir, source, to, *more, **how):
    return weir("data", "pack", str(source), str(to), "--format", "mds", *more, **how)


def encodings(path):
    """Of each column, the same in all shards."""
    shards = json.loads((path / "index.json").read_text())["shards"]
    every = [dict(zip(s["column_names"], s["column_encodings"])) for s in shards]
    assert all(one == every[0] for one in every)
    return every[0]


def raw_samples(path):
    """The bytes of each sample as they stand in uncompressed shards."""
    out = []
    for shard in sorted(path.glob("shard.*.mds")):
        data = shard.read_bytes()
        count = int.from_bytes(data[:4], "little")
        offsets = np.frombuffer(data, "<u4", count + 1, 4)
        out += [data[offsets[i]:offsets[i + 1]] for i in range(count)]
    return out


def streamed(tmp_path, path):
    local = tmp_path / f"local of {path.name}"
    dataset = streaming.StreamingDataset(local=str(local), remote=str(path), batch_size=1)
    return [plain(dataset[i]) for i in range(len(dataset))]


def plain(value):
    """Values that == compares: images and arrays with all that they are."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Image.Image):
        return "image", value.mode, value.size, value.tobytes()
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, str(value) if isinstance(value, float) else value


def everything(tmp_path, count=40):
    """All encodings, their values mixed as Streaming lets them be."""
    cases = {encoding: list(case[0]) for encoding, case in values().items()}
    cases["ndarray"] += [np.ones((2, 3), np.float32), np.arange(4, dtype=np.int16),
                         np.array([2**62], np.int64)]
    cases["str_int"] += [5, 2**80, -(3**200)]
    cases["json"] += [math.nan, 5, None]
    cases["pil"] += [image(9).convert(mode) for mode in ("L", "RGBA", "1", "CMYK")]
    names = {encoding: f"{i:02} {encoding}" for i, encoding in enumerate(cases)}
    samples = [{names[e]: cases[e][i % len(cases[e])] for e in cases} for i in range(count)]
    write(tmp_path, {names[e]: e for e in cases}, samples, size_limit=1 << 20)
    return {names[e]: e for e in cases}


@pytest.mark.parametrize("compression", ["", "zstd:3"])
def test_streaming_reads_the_very_same_values(weir, tmp_path, compression):
    columns = everything(tmp_path / "theirs")
    pack(weir, tmp_path / "theirs", tmp_path / "ours", "--compression", compression,
         "--shard-size", "300K")
    assert encodings(tmp_path / "ours") == columns
    assert streamed(tmp_path, tmp_path / "ours") == streamed(tmp_path, tmp_path / "theirs")
    if not compression:
        assert len(list((tmp_path / "ours").glob("shard.*.mds"))) > 2
        assert raw_samples(tmp_path / "ours") == raw_samples(tmp_path / "theirs")


def test_fields_that_are_kept_are_as_they_were(weir, tmp_path):
    columns = everything(tmp_path / "theirs", 8)
    kept = [name for name in columns if ":" not in name][::3]
    pack(weir, tmp_path / "theirs", tmp_path / "ours", "--fields", ",".join(reversed(kept)))
    assert encodings(tmp_path / "ours") == {name: columns[name] for name in kept}
    assert streamed(tmp_path, tmp_path / "ours") == [
        {name: sample[name] for name in kept}
        for sample in streamed(tmp_path, tmp_path / "theirs")]


def test_a_column_is_encoded_otherwise(weir, tmp_path):
    """One that is named; the others stay."""
    picture = mds_encode("jpeg", image(1))
    samples = [{"i": i, "s": "5", "p": picture, "n": 2**80} for i in range(4)]
    write(tmp_path / "theirs", {"i": "int", "s": "str", "p": "jpeg", "n": "str_int"}, samples)
    pack(weir, tmp_path / "theirs", tmp_path / "ours", "--columns", "i:str_int,p:bytes,s:str_int")
    assert encodings(tmp_path / "ours") == {"i": "str_int", "p": "bytes", "s": "str_int",
                                            "n": "str_int"}
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    assert [local[i] for i in range(4)] == [{**one, "s": 5} for one in samples]


def test_shards_whose_columns_differ(weir, tmp_path):
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3), np.array([7], np.int16),
              np.array([1.5, 2.5], np.float32)]
    write(tmp_path / "src/a", {"x": "ndarray:int16", "y": "int"}, [{"x": arrays[0], "y": 1}])
    write(tmp_path / "src/b", {"x": "ndarray", "z": "str"}, [{"x": arrays[1], "z": "two"}])
    streaming.base.util.merge_index(str(tmp_path / "src"))
    one = pack(weir, tmp_path / "src", tmp_path / "no", rc=1).err
    assert "sample 1" in one and "'y'" in one
    pack(weir, tmp_path / "src", tmp_path / "ours", "--fields", "x")
    assert encodings(tmp_path / "ours") == {"x": "ndarray:int16"}
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    equal([local[0], local[1]], [{"x": arrays[0]}, {"x": arrays[1]}])
    write(tmp_path / "src/c", {"x": "ndarray"}, [{"x": arrays[2]}])
    (tmp_path / "src/index.json").unlink()
    streaming.base.util.merge_index(str(tmp_path / "src"))
    error = pack(weir, tmp_path / "src", tmp_path / "no2", "--fields", "x", rc=1).err
    assert "sample 2" in error and "'x'" in error and "--columns 'x:ndarray'" in error
    pack(weir, tmp_path / "src", tmp_path / "all", "--fields", "x", "--columns", "x:ndarray")
    local = streaming.LocalDataset(str(tmp_path / "all"))
    equal([local[i] for i in range(3)], [{"x": array} for array in arrays])


def jsonl(path, rows):
    path.mkdir(parents=True)
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_columns_of_json_lines(weir, tmp_path):
    """Every encoding of numbers, texts and arrays; numbers at the ends of their ranges."""
    whole = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    least = {e: 0 if e[0] == "u" else -(2**(int(e.strip("uint")) - 1)) for e in whole}
    most = {e: least[e] + 2**int(e.strip("uint")) - 1 for e in whole if e != "uint64"}
    halves = [1.5, -0.0, 65504.0, 2**-24, 3 * 2**-24, -2**-14]
    rows = [{**{e: (most.get(e, 2**63 - 1), least[e], 1)[i % 3] for e in whole},
             "float16": halves[i], "float32": halves[i] * 2**-60, "float64": 0.1 * i,
             "w": i, "f": [0.1, 5, -1e300][i % 3], "d": ["1.10", 7, 2.5][i % 3],
             "n": 10**30 + i if i else 5, "a": [i, 2, 3], "s": f"text {i}",
             "m": ["text", {"a": [1]}, None, [1, 2], 5, 0.5][i]} for i in range(6)]
    columns = {**{e: e for e in whole}, "float16": "float16", "float32": "float32",
               "float64": "float64", "w": "float32", "f": "str_float", "d": "str_decimal",
               "n": "str_int", "a": "ndarray:uint16:3", "s": "bytes", "m": "json"}
    text = ",".join(f"{name}:{encoding}" for name, encoding in columns.items())
    pack(weir, jsonl(tmp_path / "rows", rows), tmp_path / "ours", "--columns", text)
    assert encodings(tmp_path / "ours") == columns
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    for i, row in enumerate(rows):
        got = local[i]
        for name in [*whole, "float16", "float32", "float64", "w", "n", "m"]:
            assert got[name] == row[name], (i, name)
            assert math.copysign(1, row["float16"]) == math.copysign(1, got["float16"])
        assert got["f"] == row["f"] and isinstance(got["f"], float)
        assert got["d"] == Decimal(str(row["d"])) and isinstance(got["d"], Decimal)
        assert got["s"] == row["s"].encode()
        assert same(got["a"], np.array(row["a"], np.uint16))
        assert got["w"].dtype == np.float32


EXACTLY = "that does not hold its numbers exactly"


@pytest.mark.parametrize("value, encoding, says", [
    (300, "uint8", EXACTLY), (-1, "uint64", EXACTLY),
    (0.1, "float32", EXACTLY), (65505.0, "float16", EXACTLY),
    (2**53 + 1, "float64", EXACTLY), (1.5, "int", EXACTLY),
    (1.5, "str_int", "no whole number"), ("5 ", "str_int", "no whole number"),
    ("five", "str_decimal", "no number"), ("1e", "str_float", "no number"),
    ("x", "int32", "it is text"), ([1, 2], "int", "it is an array"),
    ([1, 2**24 + 1], "ndarray:float32", EXACTLY),
    ([1, 2], "ndarray:int64:3", "another shape"),
    ([[1], 2], "ndarray", "it is JSON"), (None, "str", "it is null"),
    ("x", "jpeg", "it is text"), (5, "bytes", "it is a number")])
def test_what_does_not_fit_a_column(weir, tmp_path, value, encoding, says):
    rows = jsonl(tmp_path / "rows", [{"x": value}])
    error = pack(weir, rows, tmp_path / "ours", "--columns", f"x:{encoding}", rc=1).err
    assert "sample 0" in error and "'x'" in error and says in error and "--columns" in error
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("rows, would", [
    ([[1, 2], [1.5]], "ndarray"), ([5, 1.5], "float64"), (["x", 5], "json"), ([5, "x"], "json"),
    ([[1], [[1], 2]], "json"), ([{"a": 1}, "x"], None)])
def test_what_would_hold_a_column_is_said(weir, tmp_path, rows, would):
    source = jsonl(tmp_path / "rows", [{"x": value} for value in rows])
    if would:
        error = pack(weir, source, tmp_path / "no", rc=1).err
        assert "sample 1" in error and f"--columns 'x:{would}' would hold it" in error
        pack(weir, source, tmp_path / "ours", "--columns", f"x:{would}")
    else:
        pack(weir, source, tmp_path / "ours")
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    got = [local[i]["x"] for i in range(len(rows))]
    assert [v.tolist() if isinstance(v, np.ndarray) else v for v in got] == rows


@pytest.mark.parametrize("columns, says", [
    ("x", "as in image:jpeg"), ("x:", "does not know"), (":int", "as in image:jpeg"),
    ("x:int,x:str", "two columns 'x'"), ("x:pkl", "a pickle is a program"),
    ("y:int", "no field 'y', which --columns names"), ("x:ndarray:int8:2,", "as in image:jpeg"),
    ("x:ndarray:int8:0", "shape")])
def test_columns_that_are_none(weir, tmp_path, columns, says):
    rows = jsonl(tmp_path / "rows", [{"x": 1}])
    error = pack(weir, rows, tmp_path / "ours", "--columns", columns, rc=1).err
    assert says in error and error.count("\n") == 1
    assert not (tmp_path / "ours").exists()


def image_values():
    """Each encoding's values as Streaming writes them."""
    pictures = [image(1), image(2)]
    out = {e: mds_encode(e, pictures[0]) for e in ("jpeg", "png", "pil")}
    out.update({f"list[{e}]": mds_encode(f"list[{e}]", pictures) for e in ("jpeg", "png", "pil")})
    out["jpeg_array"] = mds_encode("jpeg_array", [mds_encode("jpeg", p) for p in pictures])
    return out


@pytest.mark.parametrize("encoding", sorted(image_values()))
def test_images_from_files(weir, tmp_path, encoding):
    """Bytes become a column of images if they are such images."""
    data = image_values()[encoding]
    (tmp_path / "src").mkdir()
    (tmp_path / "src/0.img").write_bytes(data)
    how = ["--fields", "data", "--columns"]
    pack(weir, tmp_path / "src", tmp_path / "ours", *how, f"data:{encoding}")
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    assert plain(local[0]["data"]) == plain(mds_encode_back(encoding, data))
    for other in sorted(image_values()):
        if other != encoding:
            assert "its bytes are something else" in pack(
                weir, tmp_path / "src", tmp_path / "no", *how, f"data:{other}", rc=1).err
    (tmp_path / "src/0.img").write_bytes(data[:-1] if "pil" in encoding else data[1:])
    error = pack(weir, tmp_path / "src", tmp_path / "no", *how, f"data:{encoding}", rc=1).err
    assert "its bytes are something else; --columns" in error and "sample 0" in error


def mds_encode_back(encoding, data):
    from streaming.base.format.mds.encodings import mds_decode
    return mds_decode(encoding, data)


def test_columns_of_webdataset(weir, tmp_path):
    import io
    import tarfile
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3) + i for i in range(3)]
    (tmp_path / "src").mkdir()
    with tarfile.open(tmp_path / "src/a.tar", "w") as tar:
        for i, array in enumerate(arrays):
            npy = io.BytesIO()
            np.save(npy, array)
            for suffix, data in [("jpg", mds_encode("jpeg", image(i))), ("npy", npy.getvalue()),
                                 ("txt", str(10**25 + i).encode())]:
                member = tarfile.TarInfo(f"{i}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    columns = {"jpg": "jpeg", "npy": "ndarray:float32:2,3", "txt": "str_int"}
    text = ",".join(f"{name}:{encoding}" for name, encoding in columns.items())
    pack(weir, tmp_path / "src", tmp_path / "ours", "--columns", text)
    assert encodings(tmp_path / "ours") == {"__key__": "str", **columns}
    local = streaming.LocalDataset(str(tmp_path / "ours"))
    for i, array in enumerate(arrays):
        assert isinstance(local[i]["jpg"], Image.Image) and local[i]["txt"] == 10**25 + i
        assert same(local[i]["npy"], array)


def test_other_columns_are_another_pack(weir, tmp_path):
    rows = jsonl(tmp_path / "rows", [{"x": 1}])
    pack(weir, rows, tmp_path / "ours", "--columns", "x:int32")
    pack(weir, rows, tmp_path / "ours", "--columns", "x:int32")
    for other in (["--columns", "x:int16"], []):
        assert "with other options" in pack(weir, rows, tmp_path / "ours", *other, rc=1).err
    assert "columns are of mds" in weir("data", "pack", str(rows), str(tmp_path / "no"),
                                        "--format", "jsonl", "--columns", "x:int", rc=1).err
