"""examples/train.py, killed and started again, has the losses of a run that was left alone."""
import fcntl
import os
import random
import subprocess
import sys

import pytest

pytest.importorskip("torch")
EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "train.py")
STEPS = 400  # more than three lives get to, also if their killer is late


def train(store, kill_after=None):
    """Runs it, kills it when it has said that many steps; returns {step: loss in hex}."""
    process = subprocess.Popen(  # bytes, a line at a time
        [sys.executable, EXAMPLE, "--store", store, "--steps", str(STEPS), "--every", "5"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        env=dict(os.environ, OMP_NUM_THREADS="1"))
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)  # it is not more than 91 lines ahead
    losses = {}
    for line in process.stdout:
        words = line.decode().split()
        losses[int(words[1])] = words[3]
        if len(losses) == kill_after:
            process.kill()
    err = process.stderr.read().decode()
    code = process.wait()
    assert code == (0 if kill_after is None else -9), err
    return losses


def test_killed_and_resumed_to_the_same_losses(tmp_path):
    whole = train(str(tmp_path / "whole"))
    assert sorted(whole) == list(range(1, STEPS + 1))
    rng = random.Random(5)
    pieces = {}
    resumed = 0
    for _ in range(3):
        part = train(str(tmp_path / "killed"), kill_after=rng.randint(30, 40))
        resumed += min(part) > 1
        for step, loss in part.items():
            assert pieces.setdefault(step, loss) == loss, f"step {step} came out differently"
    pieces.update(train(str(tmp_path / "killed")))
    assert pieces == whole
    assert resumed, "no run went on from a checkpoint"
