"""LitData: what it writes is read here equal item for item; what Weir does not read is refused by
name; chunks and indexes that lie are refused."""
import json
import struct

import datasets
import pytest
from weirtest import need

np = need("numpy")
torch = need("torch")
litdata = need("litdata")
from litdata.streaming.item_loader import TokensLoader  # noqa: E402
from litdata.streaming.writer import BinaryWriter  # noqa: E402


def write(path, items, **how):
    """As optimize() does, without its processes."""
    path.mkdir(exist_ok=True)
    if "chunk_size" not in how:
        how["chunk_bytes"] = 1 << 14
    writer = BinaryWriter(str(path), **how)
    for i, item in enumerate(items):
        writer.add_item(i, item)
    writer.done()
    writer.merge(1)


def plain(value):
    return value.numpy() if isinstance(value, torch.Tensor) else value


def same(got, expected):
    expected = plain(expected)
    if isinstance(expected, np.ndarray):
        return (got.dtype == expected.dtype and got.shape == expected.shape and
                got.tobytes() == expected.tobytes())
    return type(got) is type(expected) and got == expected or (
        isinstance(expected, (bool, int, float)) and got == expected)


def equal(got, expected):
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected):
        assert list(mine) == list(theirs)
        assert all(same(mine[name], theirs[name]) for name in theirs)


def items(count):
    return [{"i": -i, "f": i / 3, "b": i % 2 == 0, "s": f"té {i}" * i, "y": bytes([i % 256]) * i,
             "t": torch.arange(6, dtype=torch.float64).reshape(2, 3) + i,
             "t1": torch.arange(i, dtype=torch.int16), "scalar": torch.tensor(i),
             "n": np.full((2, 1, 2), i, np.float32), "n1": np.arange(i + 1, dtype=np.uint16),
             "bool": np.array([[True, False]])} for i in range(count)]


@pytest.mark.parametrize("how", [{}, {"compression": "zstd", "compression_level": "chunk"},
                                 {"chunk_size": 7}], ids=["plain", "zstd", "counted"])
def test_items(tmp_path, how):
    write(tmp_path, items(200), **how)
    assert len(list(tmp_path.glob("chunk-*"))) > 2
    equal(datasets.dump(tmp_path), items(200))


def test_optimize(tmp_path):
    """The way people go."""
    litdata.optimize(optimized, list(range(20)), str(tmp_path / "out"), chunk_size=6,
                     num_workers=1, start_method="fork")
    equal(datasets.dump(tmp_path / "out"), [optimized(i) for i in range(20)])


def optimized(i):
    return {"index": i, "text": str(i) * 3}


def test_trees(tmp_path):
    write(tmp_path / "tree", [(i, [b"x" * i, {"k": f"v{i}"}]) for i in range(5)])
    equal(datasets.dump(tmp_path / "tree"),
          [{"0": i, "1.0": b"x" * i, "1.1.k": f"v{i}"} for i in range(5)])
    write(tmp_path / "leaf", [f"only {i}" for i in range(5)])
    equal(datasets.dump(tmp_path / "leaf"), [{"0": f"only {i}"} for i in range(5)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128,
                                   torch.float16, torch.uint8, torch.int8, torch.int16, torch.int32,
                                   torch.int64, torch.bool, torch.uint16], ids=str)
def test_dtypes(tmp_path, dtype):
    rows = [{"flat": torch.ones(i).to(dtype), "deep": torch.ones(2, i).to(dtype)} for i in range(4)]
    write(tmp_path, rows)
    equal(datasets.dump(tmp_path), rows)


def test_tokens_are_documents(tmp_path):
    documents = [torch.arange(3 * i + 1, dtype=torch.int32) for i in range(50)]
    write(tmp_path, documents, item_loader=TokensLoader(block_size=4))
    equal(datasets.dump(tmp_path), [{"0": document} for document in documents])


def test_what_is_not_known_is_bytes(tmp_path):
    import pickle
    write(tmp_path, [{"a": {1, 2}, "b": 1}])
    got, = datasets.dump(tmp_path)
    assert pickle.loads(got["a"]) == {1, 2}


@pytest.mark.parametrize("level", ["batch", "sample"])
def test_compressed_inside_is_refused(tmp_path, level):
    write(tmp_path, items(5), compression="zstd", compression_level=level)
    assert f"compression_level '{level}'" in datasets.fails(tmp_path)


def lie(path, change):
    index = json.loads((path / "index.json").read_text())
    change(index)
    (path / "index.json").write_text(json.dumps(index))
    return datasets.fails(path)


LIES = {
    "encrypted": (lambda i: i["config"].update(encryption={"algorithm": "fernet"}), "encrypted"),
    "loader": (lambda i: i["config"].update(item_loader="ParquetLoader"), "'ParquetLoader'"),
    "chunk": (lambda i: i["chunks"][0].update(filename="../x"), "names '../x', which is not there"),
    "samples": (lambda i: i["chunks"][0].update(chunk_size=4), "samples, where index.json says 4"),
    "leaves": (lambda i: i["config"]["data_format"].pop(), "data_spec has 2 leaves"),
    "other": (lambda i: i["config"].update(data_format=["int", "int"]), "has another size"),
    "tensor": (lambda i: i["config"].update(data_format=["int", "tensor"]), "lacks its header"),
    "spec": (lambda i: i["config"].update(data_spec="[1, {"), "index.json"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(tmp_path, name):
    change, says = LIES[name]
    write(tmp_path, [{"i": i, "s": "text"} for i in range(5)])
    assert says in lie(tmp_path, change)


def test_damaged_chunks(tmp_path):
    write(tmp_path, [{"i": i, "s": "text"} for i in range(5)])
    chunk, = tmp_path.glob("chunk-*")
    whole = chunk.read_bytes()
    for keep in (0, 3, 10, len(whole) - 1):
        chunk.write_bytes(whole[:keep])
        datasets.fails(tmp_path)
    for at in range(1, 7):  # each offset, beyond the end and before the one in front
        for off in (2**32 - 1, 0):
            chunk.write_bytes(whole[:4 * at] + struct.pack("<I", off) + whole[4 * at + 4:])
            assert "the header is damaged" in datasets.fails(tmp_path)
