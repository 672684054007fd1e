"""weir.torch under torch.distributed.checkpoint: saved by 4 ranks, loaded by 4, 3, 2 and 1."""
import importlib.util
import io
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner  # noqa: E402
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex  # noqa: E402
from torch.distributed.checkpoint.storage import WriteResult  # noqa: E402

import weir  # noqa: E402
import weir.torch  # noqa: E402
from weir import ticket  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
SCRIPT = pathlib.Path(__file__).parent / "scripts" / "dcp_ranks.py"
Failed = dcp.api.CheckpointException


def script():
    """The script's functions: they know what must be in each tensor."""
    spec = importlib.util.spec_from_file_location("dcp_ranks", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torchrun(ranks, *args):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = str(pathlib.Path(weir.__file__).parent.parent)
    run = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node",
                          str(ranks), "--standalone", str(SCRIPT), *map(str, args)],
                         env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=600)
    assert run.returncode == 0, run.stdout[-8000:]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The store of a job of 4 ranks, which goes on with 3, and with 2. To start torch takes seconds
    of every rank, so it is one job for all tests."""
    store = tmp_path_factory.mktemp("dcp") / "store"
    torchrun(4, store, "job", "4:save_some,fail,plan_otherwise,save_shards,use_a_thread",
             "3:load_some,load_shards,save_more", "2:load_some,use_a_process")
    return store


def files_of(store, run, step):
    return sorted(path for path in store.glob(f"ckpt/{run}/{step}-*/*"))


def save(store, state, step, run="run", planner=None, **options):
    return dcp.save(state, checkpoint_id=step, planner=planner,
                    storage_writer=weir.torch.StorageWriter(store, run, **options))


def load(store, state, step=None, run="run"):
    dcp.load(state, storage_reader=weir.torch.StorageReader(store, run, step))
    return state


# ---- many ranks ----


def test_jobs_of_four_three_and_two_ranks(saved):
    """The other number of ranks is another life of the run."""
    lives = [weir.torch.StorageReader(saved, "job", step).read_metadata().storage_data.attempt
             for step in (1, 20, 40, 31)]
    assert lives[0] == lives[1] < lives[2] < lives[3]


@pytest.mark.parametrize("step", [1, 12, 40, 33])
def test_one_process_loads_what_four_ranks_saved(saved, step):
    """Without a process group and without a model: the state is rebuilt from the metadata."""
    state = {}
    dcp.state_dict_loader._load_state_dict(
        state, weir.torch.StorageReader(saved, "job", step), no_dist=True,
        planner=_EmptyStateDictLoadPlanner())
    script().check(state, step)
    assert state["words"]["list"][0] == 1 and state["optim"]["param_groups"]


def test_what_is_stored(saved):
    """Safetensors and JSON; no pickle but those of the items that are no tensors."""
    names = [path.name for path in files_of(saved, "job", 1)]
    assert names == ["checkpoint.json", "manifest", *(f"manifest-0000{i}" for i in "2345"),
                     *(f"model-0000{i}-of-00005.safetensors" for i in "2345"),
                     "model.safetensors.index.json", "state-00001.json"]
    assert not list(saved.rglob("*.metadata")) and not list(saved.rglob("*.distcp"))
    directory = files_of(saved, "job", 1)[0].parent
    about = json.loads((directory / "checkpoint.json").read_text())
    assert (about["weir"], about["step"], about["ranks"]) == ("checkpoint/1", 1, 4)
    index = json.loads((directory / "model.safetensors.index.json").read_text())["weight_map"]
    assert index["plain"] in names and index["epoch#bytes"] in names
    assert index["model.0.up.weight[0:256,0:1024]"] == "model-00002-of-00005.safetensors"
    safetensors = pytest.importorskip("safetensors.torch")
    pieces = {}
    for file in directory.glob("*.safetensors"):
        pieces.update(safetensors.load_file(file))
    assert set(pieces) == set(index)
    stored = torch.load(io.BytesIO(bytes(pieces["words.text#bytes"].tolist())), weights_only=True)
    assert stored == "step 1"


def test_checkpointer_loads_what_four_ranks_saved(saved):
    with weir.Checkpointer(str(saved), "job", rank=0, ranks=1) as ck:
        loaded = ck.load(step=1)
    ranks = script()
    assert loaded.state.keys() >= {"plain", "columns", "few", "model.0.up.weight"}
    assert not [name for name in loaded.state if "#bytes" in name]
    for name, value in loaded.state.items():
        assert ranks.same_bits(value, ranks.pattern(name, value.shape, value.dtype, 1)), name


def test_damage_names_the_file_and_the_tensor(saved, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(saved, store)
    file = "model-00003-of-00005.safetensors"
    damaged = [path for path in store.rglob(f"{file}*")
               if "2-1." in str(path.parent) and ".weir/seal" not in str(path)]
    assert damaged
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[600_000] ^= 1
        path.write_bytes(data)
    weight = {"model": {"0.up.weight": torch.zeros(1024, 1024)}}
    with pytest.raises(Failed) as error:
        load(store, weight, 2, "job")
    assert f"{file}' is damaged" in str(error.value)
    assert "cannot load tensor 'model.0.up.weight'" in str(error.value)
    load(store, weight, 1, "job")


# ---- one rank ----


def test_types_and_places(tmp_path):
    """Into what is of another type, or not contiguous, as DCP's own storage does."""
    state = {"a": torch.randn(6, 4), "t": torch.randn(4, 6).t(), "c": torch.randn(3).to(
        torch.complex64).conj(), "q": torch.arange(4, dtype=torch.uint8), "e": torch.zeros(0, 3)}
    save(tmp_path, state, 1)
    into = {"a": torch.zeros(6, 4, dtype=torch.float64), "t": torch.zeros(12, 8)[::2, ::2],
            "c": torch.zeros(3, dtype=torch.complex64), "q": torch.zeros(4, dtype=torch.uint8),
            "e": torch.zeros(0, 3)}
    load(tmp_path, into)
    assert torch.equal(into["a"], state["a"].double()) and torch.equal(into["t"], state["t"])
    assert torch.equal(into["c"], state["c"]) and torch.equal(into["q"], state["q"])


def test_copies_go_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(weir.torch, "COPY_BYTES", 100)
    state = {f"w{i}": torch.randn(20) for i in range(9)}
    save(tmp_path, state, 1)
    into = load(tmp_path, {name: torch.zeros(20).double() for name in state})
    assert all(torch.equal(into[name], state[name].double()) for name in state)


@pytest.mark.parametrize("name, step", [(7, 7), ("7", 7), ("runs/step-0012", 12), ("a3/", 3)])
def test_checkpoint_id(tmp_path, name, step):
    save(tmp_path, {"w": torch.tensor([step])}, name)
    state = {"w": torch.tensor([0])}
    dcp.load(state, checkpoint_id=name, storage_reader=weir.torch.StorageReader(tmp_path, "run"))
    assert state["w"].item() == step
    assert weir.torch.StorageReader.validate_checkpoint_id(name)


def test_no_step(tmp_path):
    assert not weir.torch.StorageWriter.validate_checkpoint_id("final")
    with pytest.raises(ValueError, match="'final' does not end with a number"):
        save(tmp_path, {}, "final")
    with pytest.raises(Failed, match="Give dcp.save"):
        save(tmp_path, {}, None)


def test_the_checkpointer_saves_and_the_reader_loads(tmp_path):
    state = {"model": {"w": torch.randn(5, 5)}, "n": 3}
    with weir.Checkpointer(str(tmp_path), "run") as ck:
        ck.save(4, state, wait=True)
    into = load(tmp_path, {"model": {"w": torch.zeros(5, 5)}})
    assert torch.equal(into["model"]["w"], state["model"]["w"])
    with pytest.raises(Failed, match="Missing key.*n"):
        load(tmp_path, {"n": 0})


def test_keep_last(tmp_path):
    for step in range(1, 6):
        save(tmp_path, {"w": torch.tensor(step)}, step, keep_last=2, keep_every=2,
             retired_grace=0)
    there = {int(path.name.split("-")[0]) for path in tmp_path.glob("ckpt/run/*")}
    assert there == {2, 4, 5}


def test_pickled_writer_goes_on_in_the_same_life(tmp_path):
    writer = weir.torch.StorageWriter(tmp_path, "run", step=1, meta={"a": 1}, rate=1 << 40)
    dcp.save({"w": torch.tensor(1)}, storage_writer=writer)
    text = pickle.dumps(writer)
    mine = ticket._saves.copy()
    ticket._saves.clear()  # as in another process
    dcp.save({"w": torch.tensor(2)}, checkpoint_id=2, storage_writer=pickle.loads(text))
    ticket._saves.clear()
    ticket._saves.update(mine)
    dcp.save({"w": torch.tensor(3)}, checkpoint_id=3, storage_writer=writer)
    names = sorted(path.name for path in tmp_path.glob("ckpt/run/*"))
    assert names == ["1-1.1", "2-1.2", "3-1.3"]
    assert load(tmp_path, {"w": torch.tensor(0)}, 2)["w"].item() == 2


def test_a_process_of_an_older_life_is_refused(tmp_path):
    save(tmp_path, {"w": torch.tensor(1)}, 1)
    mine = ticket._saves.copy()
    ticket._saves.clear()
    ticket._tokens.clear()  # as if the job had started again
    save(tmp_path, {"w": torch.tensor(2)}, 2)
    ticket._saves.clear()
    ticket._saves.update(mine)
    with pytest.raises(Failed, match="StaleError"):
        save(tmp_path, {"w": torch.tensor(3)}, 3)
    assert load(tmp_path, {"w": torch.tensor(0)})["w"].item() == 2


class Part(dcp.DefaultSavePlanner):
    """Half of the tensor is not planned."""
    def create_local_plan(self):
        plan = super().create_local_plan()
        [item] = plan.items
        data = item.tensor_data
        chunk = replace(data.chunk, sizes=torch.Size([2]))
        return replace(plan, items=[replace(item, tensor_data=replace(data, chunk=chunk))])

    def resolve_data(self, write_item):
        return super().resolve_data(write_item)[:2]


class Odd(dcp.DefaultSavePlanner):
    """Its own data has no form without pickle."""
    def create_global_plan(self, all_plans):
        plans, metadata = super().create_global_plan(all_plans)
        return plans, replace(metadata, planner_data={"what": object()})


def test_what_cannot_be_loaded_is_not_committed(tmp_path):
    with pytest.raises(Failed, match="'w' has 4 elements, and 2 were written"):
        save(tmp_path, {"w": torch.zeros(4)}, 1, planner=Part())
    with pytest.raises(Failed, match="without pickle: .*what"):
        save(tmp_path, {"w": torch.zeros(4)}, 1, planner=Odd())
    with pytest.raises(Failed, match="'n#bytes' is given with two dtypes"):
        save(tmp_path, {"n": 1, "n#bytes": torch.zeros(4)}, 1)
    with pytest.raises(Failed, match="tensor 'z'.*complex128"):
        save(tmp_path, {"z": torch.zeros(4, dtype=torch.complex128)}, 1)
    assert not list(tmp_path.rglob("*.index.json"))
    with pytest.raises(Failed, match="nothing is committed"):
        load(tmp_path, {"w": torch.zeros(4)})
    save(tmp_path, {"w": torch.ones(4)}, 1)
    assert load(tmp_path, {"w": torch.zeros(4)})["w"].sum() == 4


def test_ranks_that_disagree_commit_nothing():
    """finish() looks at what the ranks wrote, or it would wait for ever for a part elsewhere."""
    def wrote(number, *elements):
        save = weir.torch.Save(b"token", 7, number)
        return [WriteResult(MetadataIndex(""), 0, save),
                *(WriteResult(MetadataIndex("w", offset), 0, n) for offset, n in elements)]

    mine = weir.torch.Save(b"token", 7, 2)
    weir.torch._check_saves(mine, [wrote(2), wrote(2)])
    with pytest.raises(ValueError, match="rank 1 has written save 1 of step 7, and this is save 2"):
        weir.torch._check_saves(mine, [wrote(2), wrote(1)])
    metadata = Metadata({"w": weir.torch._tensor_metadata(torch.float32, (6,), False)})
    weir.torch._check_complete(metadata, [wrote(2, ([0], 4)), wrote(2, ([4], 2))])
    with pytest.raises(ValueError, match="2 ranks have written the same piece of 'w'"):
        weir.torch._check_complete(metadata, [wrote(2, ([0], 3)), wrote(2, ([0], 3))])
    with pytest.raises(ValueError, match="nobody has written 'w'"):
        weir.torch._check_complete(metadata, [wrote(2)])
