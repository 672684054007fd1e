"""Files that Weir writes, read by the safetensors library: the same bits."""
import glob
import os

import pytest
import weir

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16,
         torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
         torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2]


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else tensor.shape


def random_bits(dtype, shape):
    size = torch.empty(shape, dtype=dtype)
    data = torch.randint(0, 2 if dtype == torch.bool else 256,
                         (size.numel() * size.element_size(),), dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.fixture
def state():
    torch.manual_seed(0)
    state = {}
    for dtype in TYPES:
        for shape in ((), (1,), (7,), (3, 5), (2, 3, 4), (129, 1031)):
            state[f"{str(dtype)[6:]}.{'x'.join(map(str, shape)) or 'scalar'}"] = random_bits(
                dtype, shape)
    state["empty"] = torch.empty(0, 4)
    state["strided"] = torch.arange(24.0).reshape(4, 6).t()[::2]
    state["ü name \"quoted\"\n"] = torch.ones(2)
    return state


def test_files_load_in_safetensors(tmp_path, state):
    with weir.Checkpointer(str(tmp_path), "r") as ck:
        ck.save(1, state, wait=True)
    (file,) = glob.glob(str(tmp_path / "ckpt/r/1-*/model.safetensors"))
    loaded = safetensors_torch.load_file(file)
    assert set(loaded) == set(state)
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype and loaded[name].shape == tensor.shape
        assert bits(loaded[name]).equal(bits(tensor)) if tensor.numel() else True
    with open(file, "rb") as data:
        header = int.from_bytes(data.read(8), "little")
    assert (header + 8) % 4096 == 0, "the data begins at a 4 KiB boundary"


def test_the_index_names_every_tensor(tmp_path, state):
    import json
    with weir.Checkpointer(str(tmp_path), "r") as ck:
        ck.save(1, state, wait=True)
    (index,) = glob.glob(str(tmp_path / "ckpt/r/1-*/model.safetensors.index.json"))
    with open(index) as file:
        names = json.load(file)["weight_map"]
    assert set(names) == set(state)
    assert all(os.path.exists(os.path.join(os.path.dirname(index), f)) for f in names.values())


def test_what_we_load_is_what_we_saved(tmp_path, state):
    with weir.Checkpointer(str(tmp_path), "r") as ck:
        ck.save(1, state, wait=True)
        loaded = ck.load(1).state
        for name, tensor in state.items():
            assert loaded[name].dtype == tensor.dtype and loaded[name].shape == tensor.shape
            assert bits(loaded[name]).equal(bits(tensor)) if tensor.numel() else True
