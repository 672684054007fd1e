"""weir ckpt import of what torch.distributed.checkpoint writes."""
import os
import pickle
import subprocess
import sys
import textwrap

import pytest

from conftest import assert_same


@pytest.fixture(scope="session")
def dcp(torch):
    return pytest.importorskip("torch.distributed.checkpoint")


def state_of(torch):
    model = torch.nn.Linear(6, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    return {"model": dict(model.state_dict()), "optimizer": optimizer.state_dict(), "step": 7,
            "list": [torch.ones(2), {"x": 2.5}, None], "tuple": (1, "a"),
            "half": torch.randn(3, 5).to(torch.bfloat16).t(), "scalar": torch.tensor(3)}


@pytest.mark.filterwarnings("ignore")
def test_one_process(torch, dcp, imported, tmp_path):
    state = state_of(torch)
    dcp.save(state, checkpoint_id=str(tmp_path / "ckpt"))
    got = imported(tmp_path / "ckpt")
    # Keys are texts in there, whatever they were: that is the format.
    moments = state["optimizer"]["state"]
    state["optimizer"]["state"] = {str(key): moments[key] for key in moments}
    assert set(got.root) == set(state)
    assert_same({name: got.root[name] for name in state}, state)
    assert "optimizer.state.0.exp_avg" in got.tensors
    assert got.meta["lineage"]["format"] == "dcp"


@pytest.mark.filterwarnings("ignore")
def test_safetensors_inside(torch, dcp, imported, tmp_path):
    from torch.distributed.checkpoint.filesystem import SerializationFormat
    state = {"w": torch.randn(5, 3), "b": torch.arange(9), "n": 5}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(
        tmp_path / "ckpt", serialization_format=SerializationFormat.SAFETENSORS))
    got = imported(tmp_path / "ckpt")
    assert_same({name: got.root[name] for name in state}, state)


RANKS = textwrap.dedent("""
    import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    whole = {"rows": torch.randn(7, 5), "columns": torch.randn(6, 9), "three": torch.randn(4, 5, 6),
             "wide": torch.randn(64, 4096), "same": torch.randn(3), "fewer": torch.randn(1, 4)}
    place = {"columns": Shard(1), "same": Replicate(), "three": Shard(2), "wide": Shard(1)}
    state = {name: distribute_tensor(t, mesh, [place.get(name, Shard(0))])
             for name, t in whole.items()}
    dcp.save({"model": state, "step": 3}, checkpoint_id=sys.argv[1])
    if dist.get_rank() == 0:
        torch.save(whole, sys.argv[1] + ".pt")
    dist.barrier()
    dist.destroy_process_group()
""")


def test_shards_of_two_ranks(torch, dcp, imported, tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
         tmp_path / "ranks.py", tmp_path / "ckpt"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=900)
    if done.returncode:
        pytest.skip("torchrun with gloo does not work here: " + done.stderr.decode()[-300:])
    whole = torch.load(tmp_path / "ckpt.pt")
    got = imported(tmp_path / "ckpt")
    assert {f"model.{name}" for name in whole} == set(got.tensors)
    assert_same({name: got.root["model"][name] for name in whole}, whole)
    assert got.root["step"] == 3
    for name in os.listdir(tmp_path / "ckpt"):
        if name.startswith("__1"):
            os.truncate(tmp_path / "ckpt" / name, 100)
    with pytest.raises(AssertionError, match="cut short"):
        imported(tmp_path / "ckpt", "again")


class Unknown:
    pass


@pytest.mark.filterwarnings("ignore")
def test_unknown_values(torch, dcp, weir, imported, tmp_path):
    state = {"w": torch.ones(2), "deep": {"odd": Unknown()}, "n": 1}
    dcp.save(state, checkpoint_id=str(tmp_path / "ckpt"))
    error = weir.fails("ckpt", "import", "ckpt", "run")
    assert "'deep.odd'" in error and "Unknown" in error
    got = imported(tmp_path / "ckpt", "run", "--skip-unknown")
    assert_same(got.root, {"w": torch.ones(2), "deep": {}, "n": 1})


@pytest.mark.filterwarnings("ignore")
def test_damaged_metadata(torch, dcp, weir, tmp_path):
    dcp.save({"w": torch.arange(10), "n": [1]}, checkpoint_id=str(tmp_path / "ckpt"))
    path = tmp_path / "ckpt/.metadata"
    good = path.read_bytes()
    for size in range(0, len(good), 41):
        path.write_bytes(good[:size])
        weir.fails("ckpt", "import", "-n", "ckpt", "run")
    metadata = pickle.loads(good)
    index = next(i for i in metadata.storage_data if i.fqn == "w")
    metadata.storage_data[index].relative_path = "../ckpt/__0_0.distcp"
    path.write_bytes(pickle.dumps(metadata))
    assert "no place" in weir.fails("ckpt", "import", "ckpt", "run")
    metadata = pickle.loads(good)
    metadata.state_dict_metadata["w"].size = torch.Size([11])
    path.write_bytes(pickle.dumps(metadata))
    assert "'w'" in weir.fails("ckpt", "import", "ckpt", "run")
    metadata.state_dict_metadata["w"].chunks[0].sizes = torch.Size([11])
    path.write_bytes(pickle.dumps(metadata))
    assert "another shape" in weir.fails("ckpt", "import", "ckpt", "run")
    del metadata.storage_data[index]
    path.write_bytes(pickle.dumps(metadata))
    assert "where a piece is" in weir.fails("ckpt", "import", "ckpt", "run")
