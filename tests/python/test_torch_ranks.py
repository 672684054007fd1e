"""Checkpointer under torchrun: FSDP and DTensors of 4 ranks, loaded by 4, 3, 2 and by one alone."""
import os
import subprocess
import sys

import pytest
import weir

torch = pytest.importorskip("torch")
SCRIPT = os.path.join(os.path.dirname(__file__), "scripts", "ranks.py")


def torchrun(ranks, *args):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(ranks), SCRIPT, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"))
    said = done.stdout.splitlines()
    # What torchrun adds is long, and does not say why.
    of_ranks = [line for line in said if line.startswith("[rank")] or said
    assert done.returncode == 0, "\n".join(of_ranks)[-4000:]


def test_saved_by_four_loaded_by_others(tmp_path):
    store = str(tmp_path)
    torchrun(4, "save", store)
    for ranks in (3, 2):
        torchrun(ranks, "load", store)
    with weir.Checkpointer(store, "r") as ck:
        state = ck.load(1, like={"model": None, "columns": None, "grid": None}).state
        expected = torch.load(os.path.join(store, "expected-0.pt"), weights_only=True)
        for name, tensor in expected["model"].items():
            assert torch.equal(state["model"][name], tensor)
        assert torch.equal(state["columns"], expected["columns"])
        assert torch.equal(state["grid"], expected["grid"])
