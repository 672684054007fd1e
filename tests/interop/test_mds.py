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


def test_every_kind_is_written(tmp_path):
    """Images and lists become bytes; the rest is what it was."""
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
