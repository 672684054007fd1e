"""What the tests with other people's libraries share. Where a library is not there, they are
skipped with a reason."""
import base64
import importlib.util
import json
import math
import struct
from collections import OrderedDict
from pathlib import Path

import pytest
from weirtest import store_url, weir_bin  # fixtures

__all__ = ["store_url", "weir_bin"]

ROOT = Path(__file__).resolve().parents[2]


def load_cli_tests():
    spec = importlib.util.spec_from_file_location("weir_cli_conftest",
                                                  ROOT / "tests/cli/conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cli = load_cli_tests()


@pytest.fixture
def weir(tmp_path):
    return cli.Weir(tmp_path)


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="session")
def safetensors(torch):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    import safetensors.torch
    return safetensors


@pytest.fixture
def imported(weir, torch, safetensors):
    """Imports a source as a run and gives back (tensors by name, state), each read by others."""
    def run(source, name="run", *args):
        weir("ckpt", "import", str(source), name, *args)
        return Checkpoint(torch, safetensors, weir.store / "ckpt" / name)
    return run


class Checkpoint:
    def __init__(self, torch, safetensors, run):
        saves = list(run.iterdir())
        assert len(saves) == 1, saves
        self.torch, self.dir = torch, saves[0]
        self.tensors = {}
        file = self.dir / "model.safetensors"
        if file.exists():  # without tensors there is none
            with safetensors.safe_open(file, framework="pt") as opened:
                for name in opened.keys():
                    self.tensors[name] = opened.get_tensor(name)
        self.meta = json.loads((self.dir / "checkpoint.json").read_text())
        state = json.loads((self.dir / "state-00001.json").read_text())
        assert state["weir"] == "state/1"
        self.root = self.decode(state["root"])

    def decode(self, value):
        """Tagged JSON as Python values; written here once more, so that it is checked."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: self.decode(item) for key, item in value.items()}
        kind = value["$"]
        if kind in ("dict", "ordered"):
            pairs = [(self.decode(key), self.decode(item)) for key, item in value["items"]]
            return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
        if kind in ("tuple", "set", "frozenset", "size"):
            make = {"tuple": tuple, "set": set, "frozenset": frozenset, "size": self.torch.Size}
            return make[kind](self.decode(item) for item in value["items"])
        return {
            "tensor": lambda: self.tensors[value["name"]],
            "float": lambda: float(value["value"]),
            "bytes": lambda: base64.b64decode(value["base64"]),
            "complex": lambda: complex(self.decode(value["re"]), self.decode(value["im"])),
            "dtype": lambda: getattr(self.torch, value["name"].removeprefix("torch.")),
            "device": lambda: self.torch.device(value["name"]),
        }[kind]()


def bits(tensor):
    """Its bytes, row-major."""
    import torch
    flat = tensor.detach().contiguous().clone().flatten()
    if not flat.numel():
        return b""
    return flat.view(torch.uint8).numpy().tobytes()


def assert_same(got, expected, path=""):
    """Equal in kind and bit by bit, all the way down."""
    import torch
    if isinstance(expected, torch.Tensor):
        assert isinstance(got, torch.Tensor), path
        assert got.dtype == expected.dtype and got.shape == expected.shape, path
        assert bits(got) == bits(expected), path
        return
    assert type(got) is type(expected), f"{path}: {type(got)}, not {type(expected)}"
    if isinstance(expected, dict):
        assert list(got) == list(expected), path
        for key in expected:
            assert_same(got[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), path
        for i, (mine, theirs) in enumerate(zip(got, expected)):
            assert_same(mine, theirs, f"{path}.{i}")
    elif isinstance(expected, float):
        assert math.isnan(got) and math.isnan(expected) or (
            struct.pack("d", got) == struct.pack("d", expected)), path
    else:
        assert got == expected, path
