"""weir ckpt import of what torch.save() writes."""
import io
import pickle
import zipfile
from collections import OrderedDict

import pytest

from conftest import assert_same

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
          "uint16", "uint32", "uint64", "bool", "complex64", "float8_e4m3fn", "float8_e5m2",
          "float8_e4m3fnuz", "float8_e5m2fnuz"]


def random_of(torch, dtype, *shape):
    """Any bits, except that a bool is 0 or 1."""
    dtype = getattr(torch, dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).to(torch.bool)
    size = torch.empty((), dtype=dtype).element_size()
    count = int(torch.tensor(shape).prod()) if shape else 1
    return torch.randint(0, 256, (count * size,), dtype=torch.uint8).view(dtype).reshape(shape)


def test_every_dtype(torch, imported, tmp_path):
    state = {dtype: random_of(torch, dtype, 3, 5) for dtype in DTYPES}
    state |= {f"scalar.{dtype}": random_of(torch, dtype) for dtype in DTYPES}
    state |= {f"empty.{dtype}": random_of(torch, dtype, 0, 7) for dtype in DTYPES}
    torch.save(state, tmp_path / "a.pt")
    got = imported(tmp_path / "a.pt")
    assert set(got.tensors) == set(state)
    assert_same(got.root, state)
    assert got.meta == {"weir": "checkpoint/1", "step": 0, "user": {},
                        "lineage": {"imported_from": "a.pt", "format": "torch"}}


def test_views_are_made_contiguous(torch, imported, tmp_path):
    base = torch.arange(4 * 5 * 6 * 7, dtype=torch.float32).reshape(4, 5, 6, 7)
    large = torch.randn(1500, 1111).to(torch.bfloat16)
    state = {
        "whole": base, "transposed": base.permute(3, 1, 0, 2), "slice": base[1:3, ::2, 1:, 3],
        "expanded": torch.arange(3).reshape(3, 1).expand(3, 4), "column": base[..., 2],
        "large": large.t(), "columns": large[:, 100:900], "step": large[::7, ::3],
        "odd": torch.ones(3, dtype=torch.uint8),  # so that buffers end within elements
    }
    torch.save(state, tmp_path / "a.pt")
    assert_same(imported(tmp_path / "a.pt").root, state)


def test_a_large_transposed_matrix(torch, imported, tmp_path):
    """Larger than a window, with rows that are not."""
    matrix = torch.randint(-2**31, 2**31 - 1, (3000, 2000), dtype=torch.int32)
    torch.save({"w": matrix.t(), "x": matrix.t()[5:, 7:]}, tmp_path / "a.pt")
    assert_same(imported(tmp_path / "a.pt").root, {"w": matrix.t(), "x": matrix.t()[5:, 7:]})


def test_model_and_optimizer(torch, imported, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16),
                                torch.nn.Linear(16, 8, bias=False))
    model[2].weight = torch.nn.Parameter(model[0].weight.detach())  # tied, of another shape
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 17,
             "parameter": model[0].weight, "rng": torch.get_rng_state()}
    torch.save(state, tmp_path / "a.pt")
    got = imported(tmp_path / "a.pt", "run", "--step", "17")
    assert "optimizer.state.0.exp_avg" in got.tensors and "model.0.weight" in got.tensors
    assert got.meta["step"] == 17
    assert type(got.root["model"]) is OrderedDict
    assert_same(got.root, state | {"model": OrderedDict(state["model"]),
                                   "parameter": model[0].weight.detach()})


def test_plain_values(torch, imported, tmp_path):
    state = {
        "none": None, "true": True, "false": False, "text": "é\n\"\\\0", "empty": "",
        "ints": [0, -1, 255, 256, 65536, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, 2**64,
                 -2**64, 2**200, -2**200, 10**100],
        "floats": [0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 1e22, -2.5e-7, float("nan"),
                   float("inf"), -float("inf"), 123456789.123],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "nested": {"a": [{"b": ({},)}]},
        "bytes": [b"", b"abc", bytes(range(256))], "sets": [{1, 2}, frozenset([3]), set()],
        "complex": 1 + 2j, "dtype": torch.bfloat16, "device": torch.device("cuda:3"),
        "cpu": torch.device("cpu"), "size": torch.Size([2, 3]),
        "keys": {1: "a", 2.5: "b", None: "c", True: "d", (1, "x"): "e"}, "tag": {"$": 1},
        "ordered": OrderedDict([("z", 1), (2, 3)]),
    }
    state["keys"].pop(True)  # which is 1
    torch.save(state, tmp_path / "a.pt")
    assert_same(imported(tmp_path / "a.pt").root, state)


def test_names_are_unique(torch, imported, tmp_path):
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    state = {"a.b": one, "a": {"b": two}, "a.b~2": three, "l": [one, (two,)], 7: {True: one}}
    torch.save(state, tmp_path / "a.pt")
    got = imported(tmp_path / "a.pt")
    assert set(got.tensors) == {"a.b", "a.b~2", "a.b~2~2", "l.0", "l.1.0", "7.True"}
    assert_same(got.root, state)


@pytest.mark.parametrize("value", ["tensor", "parameter", "list", "number"])
def test_other_roots(torch, imported, tmp_path, value):
    state = {"tensor": torch.ones(2), "parameter": torch.nn.Parameter(torch.ones(2)),
             "list": [torch.ones(1), 2], "number": 5}[value]
    torch.save(state, tmp_path / "a.pt")
    expected = state.detach() if value == "parameter" else state
    assert_same(imported(tmp_path / "a.pt").root, expected)


@pytest.mark.parametrize("make, why", [
    (lambda torch: torch.zeros(2, dtype=torch.complex128), "ComplexDoubleStorage"),
    (lambda torch: torch.zeros(2, device="meta"), "_rebuild_meta_tensor_no_storage"),
    (lambda torch: torch.zeros(2, dtype=torch.complex64).conj(), "conjugate"),
    (lambda torch: torch.eye(2).to_sparse(), "_rebuild_sparse_tensor"),
])
def test_what_safetensors_cannot_name_is_refused(torch, weir, tmp_path, make, why):
    torch.save({"fine": torch.ones(1), "outer": [{"bad": make(torch)}]}, tmp_path / "a.pt")
    error = weir.fails("ckpt", "import", "a.pt", "run")
    assert "'outer.0.bad'" in error and why in error
    assert not weir.store.exists()


def test_parameters_with_attributes(torch, imported, tmp_path):
    weight, tensor = torch.nn.Parameter(torch.randn(3)), torch.randn(2)
    weight.partition_dim = 0
    tensor.note = "x"
    state = {"w": weight, "t": tensor, "b": torch.nn.Buffer(torch.ones(2))}
    torch.save(state, tmp_path / "a.pt")
    got = imported(tmp_path / "a.pt")
    for name in state:
        assert_same(got.root[name], state[name])


def test_a_few_bytes_that_would_be_terabytes(torch, weir, tmp_path):
    torch.save({"w": torch.zeros(1).expand(1 << 20, 1 << 20)}, tmp_path / "a.pt")
    assert "beyond all measure" in weir.fails("ckpt", "import", "a.pt", "run")


class Dangerous:
    def __reduce__(self):
        return (open, ("harmed", "w"))


def test_nothing_is_run(torch, weir, imported, tmp_path):
    torch.save({"w": torch.ones(2), "evil": Dangerous(), "list": [Dangerous(), 1],
                "keyed": {1: Dangerous(), 2: 3}}, tmp_path / "a.pt")
    error = weir.fails("ckpt", "import", "a.pt", "run")
    assert "'evil': io.open" in error and "--skip-unknown" in error
    got = imported(tmp_path / "a.pt", "run", "--skip-unknown")
    assert_same(got.root, {"w": torch.ones(2), "list": [None, 1], "keyed": {2: 3}})
    document = weir.json("ckpt", "import", "a.pt", "run", "--skip-unknown", "-n")
    assert document["skipped"] == ["evil: io.open", "list.0: io.open", "keyed.1: io.open"]
    assert not (tmp_path / "harmed").exists()


def test_damaged_archives(torch, weir, tmp_path):
    """Cut short anywhere, or with a byte changed: refused, or the change is in a tensor's data."""
    torch.save({"w": torch.arange(64), "n": [1, 2.5]}, tmp_path / "good.pt")
    good = (tmp_path / "good.pt").read_bytes()
    for size in range(0, len(good), 173):
        (tmp_path / "a.pt").write_bytes(good[:size])
        weir.fails("ckpt", "import", "-n", "a.pt", "run")
    for at in range(0, len(good), 173):
        (tmp_path / "a.pt").write_bytes(good[:at] + bytes([good[at] ^ 0xff]) + good[at + 1:])
        process = weir.start("ckpt", "import", "-n", "a.pt", "run", stdout=-3, stderr=-3)
        assert process.wait(300) in (0, 1)


def test_compressed_and_legacy_files_are_refused(torch, weir, tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as old, \
            zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + b" " * 100 * name.endswith("version"))
    assert "compressed" in weir.fails("ckpt", "import", "b.pt", "run")
    torch.save({"w": torch.ones(2)}, tmp_path / "c.pt", _use_new_zipfile_serialization=False)
    assert "1.6" in weir.fails("ckpt", "import", "c.pt", "run")
    (tmp_path / "d.pt").write_bytes(pickle.dumps({"a": 1}))
    assert "pickle" in weir.fails("ckpt", "import", "d.pt", "run")


def test_written_to_a_stream(torch, imported, tmp_path):
    """Then sizes stand behind the entries, and the archive has another name."""
    stream = io.BytesIO()
    torch.save({"w": torch.arange(5)}, stream)
    (tmp_path / "model.bin").write_bytes(stream.getvalue())
    assert_same(imported(tmp_path / "model.bin").root, {"w": torch.arange(5)})


def test_zip64(torch, imported, tmp_path):
    """More entries than 16 bits count: then an archive has the larger records."""
    torch.save({"w": torch.arange(5)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as old, zipfile.ZipFile(tmp_path / "b.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        for i in range(66000):
            new.writestr(f"a/more/{i}", b"")
    assert_same(imported(tmp_path / "b.pt").root, {"w": torch.arange(5)})
