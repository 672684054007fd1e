"""Checkpoints of several ranks, exported by the command, read by the safetensors library."""
import subprocess

import pytest

from conftest import bits, cli

MAKECKPT = cli.BIN.parents[2] / "tests/cli/makeckpt"


@pytest.fixture
def two_ranks(weir):
    subprocess.run([MAKECKPT, weir.store, "r", "200", "2", "1", "{}", "1000", ""], check=True)
    return weir


def test_one_file_and_shards_are_the_same(two_ranks, torch, safetensors):
    two_ranks("ckpt", "export", "r", "200", "out.safetensors")
    two_ranks("ckpt", "export", "r", "200", "dir", "--shard-size", "64K")
    one = safetensors.torch.load_file(two_ranks.cwd / "out.safetensors")
    many = {}
    shards = sorted((two_ranks.cwd / "dir").glob("*.safetensors"))
    for path in shards:
        many.update(safetensors.torch.load_file(path))
    assert len(shards) > 1 and set(one) == set(many)
    for name, tensor in one.items():
        assert tensor.dtype == many[name].dtype and bits(tensor) == bits(many[name]), name
    assert torch.equal(one["w"], torch.arange(1, 121, dtype=torch.float32).reshape(12, 10))
    assert one["model.layers.1.brain"][0].item() == 1 + 1 / 128
    assert one["eight"].dtype == torch.float8_e4m3fn


def test_a_round_trip(weir, torch, safetensors):
    """What safetensors wrote comes back from an import and an export."""
    torch.manual_seed(0)
    state = {f"{str(dtype)[6:]}": torch.randint(0, 2, (5, 7)).to(dtype) for dtype in (
        torch.bool, torch.int64, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)}
    safetensors.torch.save_file(state, weir.cwd / "in.safetensors")
    weir("ckpt", "import", "in.safetensors", "r", "--step", "7")
    weir("ckpt", "export", "r", "7", "out.safetensors")
    loaded = safetensors.torch.load_file(weir.cwd / "out.safetensors")
    assert set(loaded) == set(state)
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype and bits(loaded[name]) == bits(tensor), name
