"""examples/train_data.py, killed and started again, also with another number of processes: each
sample went into the model once, and with the same number the model is the same, bit for bit."""
import fcntl
import os
import random
import re
import signal
import subprocess
import sys

import pytest
import weir

torch = pytest.importorskip("torch")
EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "train_data.py")
EPOCHS, EVERY = 3, 4  # 184 checkpoints: more than two lives get to, also if their killer is late
PIPE_BYTES = 4096     # of what it says: it is not more than 60 checkpoints ahead
ROUNDING = 1e-4       # a step changes a weight by ten times that
RARELY = 100          # steps between checkpoints of who is not killed


def command(ranks, *args):
    many = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [sys.executable, *(many if ranks > 1 else []), EXAMPLE, *map(str, args)]


def kill(process):
    """All of it; torchrun's processes outlive torchrun, and it must not see them die."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        found = [int(pid) for pid in file.read().split()]
    for pid in [process.pid, *found]:
        os.kill(pid, signal.SIGKILL)


def live(folder, data, ranks, kill_after=None):
    """One life of it, killed after so many checkpoints; what it said, a line each."""
    args = (data, "--store", folder / "store", "--epochs", EPOCHS,
            "--every", EVERY if kill_after else RARELY)
    with open(folder / "err", "w+b") as err:
        process = subprocess.Popen(
            command(ranks, *args), stdout=subprocess.PIPE, stderr=err, bufsize=0,
            env=dict(os.environ, OMP_NUM_THREADS="1", WEIR_CACHE=str(folder / "cache")))
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        said = []
        for line in process.stdout:  # until all of them are gone
            said.append(line.decode().rstrip("\n"))
            if len(said) - 1 == kill_after:
                kill(process)
        code = process.wait()
        err.seek(0)
        assert code == (0 if kill_after is None else -9), err.read().decode()[-4000:]
    return said


def first_step(said):
    return int(re.fullmatch(r".*going on after step (\d+)", said[0]).group(1))


class End:
    """What a run came to."""

    def __init__(self, folder, said):
        self.epochs = [line for line in said if line.startswith("epoch ")]
        with weir.Checkpointer(folder / "store", "tokens") as ck:
            loaded = ck.load()
        self.step, self.loss, self.model = loaded.step, loaded.loss, loaded.state["model"]

    def distance(self, other):
        """Of the two models; 0 is the same bit for bit."""
        assert self.model.keys() == other.model.keys()
        return max((tensor - other.model[name]).abs().max().item()
                   for name, tensor in self.model.items())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tokens"
    subprocess.run(command(1, path, "--make"), check=True)
    return path


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """Runs that were left alone, by their number of processes."""
    ends = {}
    for ranks in (1, 2):
        folder = tmp_path_factory.mktemp("whole")
        ends[ranks] = End(folder, live(folder, data, ranks))
    return ends


def test_alone_each_sample_once(whole):
    one, two = whole[1], whole[2]
    full = [re.fullmatch(r"epoch \d+: (\d+) of (\d+) samples, digest (\w+)", line).groups()
            for line in one.epochs[:EPOCHS]]
    assert len(set(full)) == 1 and full[0][0] == full[0][1]
    assert two.epochs == one.epochs and two.step == one.step
    assert two.distance(one) < ROUNDING


@pytest.mark.parametrize("lives", [(1, 1, 1), (2, 2, 2), (1, 2, 1)])
def test_killed_each_sample_once(tmp_path, data, whole, lives):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    firsts = []
    for ranks in lives[:-1]:
        firsts.append(first_step(live(tmp_path, data, ranks, chance.randrange(8, 20))))
    said = live(tmp_path, data, lives[-1])
    firsts.append(first_step(said))
    assert 0 == firsts[0] < firsts[1] < firsts[2], "a life did not go on from a checkpoint"
    end = End(tmp_path, said)
    assert end.epochs == whole[1].epochs
    assert end.step == whole[1].step
    assert end.distance(whole[1]) < ROUNDING
    if len(set(lives)) == 1:
        same = whole[lives[0]]
        assert end.distance(same) == 0 and end.loss == same.loss
