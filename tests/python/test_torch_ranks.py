"""Under torchrun. Checkpointer: FSDP and DTensors of 4 ranks, loaded by 4, 3, 2 and by one alone.
Dataset: what ranks of a mesh and of a process group are given."""
import json
import os
import subprocess
import sys

import pytest
import weir

torch = pytest.importorskip("torch")
SCRIPTS = os.path.join(os.path.dirname(__file__), "scripts")


def torchrun(ranks, script, *args):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(ranks), os.path.join(SCRIPTS, script), *args], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    said = done.stdout.splitlines()
    # What torchrun adds is long, and does not say why.
    of_ranks = [line for line in said if line.startswith("[rank")] or said
    assert done.returncode == 0, "\n".join(of_ranks)[-4000:]


def test_saved_by_four_loaded_by_others(tmp_path):
    store = str(tmp_path)
    torchrun(4, "ranks.py", "save", store)
    for ranks in (3, 2):
        torchrun(ranks, "ranks.py", "load", store)
    with weir.Checkpointer(store, "r") as ck:
        state = ck.load(1, like={"model": None, "columns": None, "grid": None}).state
        expected = torch.load(os.path.join(store, "expected-0.pt"), weights_only=True)
        for name, tensor in expected["model"].items():
            assert torch.equal(state["model"][name], tensor)
        assert torch.equal(state["columns"], expected["columns"])
        assert torch.equal(state["grid"], expected["grid"])


def test_ranks_of_a_mesh_and_of_a_process_group(tmp_path, monkeypatch):
    """Those of one tensor-parallel group get the same; all together each sample once."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    for name in "lines", "out":
        (tmp_path / name).mkdir()
    (tmp_path / "lines/a.jsonl").write_text("".join(f'{{"id": {i}}}\n' for i in range(103)))
    torchrun(4, "data_ranks.py", str(tmp_path / "lines"), str(tmp_path / "out"))
    got = [json.loads((tmp_path / "out" / str(rank)).read_text()) for rank in range(4)]

    def world(size):
        sets = [weir.Dataset(tmp_path / "lines", batch_size=4, seed=3, epochs=1, dp_rank=rank,
                             dp_size=size) for rank in range(size)]
        found = [[batch["id"].tolist() for batch in ds] for ds in sets]
        assert sorted(i for batches in found for batch in batches for i in batch) == [*range(103)]
        return found
    two, four = world(2), world(4)
    for rank in range(4):
        assert got[rank]["grid"] == got[rank]["row"] == two[rank // 2]
        assert got[rank]["both"] == got[rank]["group"] == four[rank]
