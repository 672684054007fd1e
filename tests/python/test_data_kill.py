"""A training loop is killed fifty times, with the position of its data in its checkpoints: what it
was given of each epoch is what one gets that nobody kills."""
import json
import multiprocessing
import os
import random
import signal

import pytest
import weir

np = pytest.importorskip("numpy")

N, BATCH, EPOCHS, KILLS = 495, 4, 3, 50  # 372 steps: more than 50 lives of 7 get to


def write_lines(path):
    path.mkdir()
    for k in range(9):
        with open(path / f"{k}.jsonl", "w") as file:
            for i in range(55 * k, 55 * (k + 1)):
                file.write(json.dumps({"id": i, "x": [i % 7, i % 11]}) + "\n")


def train(data, store, out, told):
    """Until it has seen every epoch; what it learned depends on every sample, in order."""
    ds = weir.Dataset(data, batch_size=BATCH, seed=7, lanes=5, window=40, threads=2)
    with weir.Checkpointer(store, "run", keep_last=2) as ck:
        loaded = ck.load()
        step, w = (loaded.step, loaded.state["w"]) if loaded else (0, np.zeros(2))
        if loaded:
            ds.load_state_dict(loaded.loader)
        while ds.state_dict()["position"] < EPOCHS * N:
            for batch in ds:
                w = w * 0.999 + batch["x"].sum(0) * (batch["id"][0] + 1)
                step += 1
                if step % 4 == 0:
                    ck.save(step, {"w": w}, loader=ds.state_dict())
                told.send_bytes(b"step")
                told.recv_bytes()  # one step ahead of a killer who is late, not more
        ck.save(step, {"w": w}, loader=ds.state_dict(), wait=True)
    with open(out + "~", "w") as file:
        json.dump({"step": step, "w": w.tolist(), "digests": ds.digests()}, file)
    os.rename(out + "~", out)


def begin(hears, *args):
    hears.close()  # the other end, which a fork copies
    train(*args)


def live(context, *args, steps=None):
    """One life of it, in a process that has opened nothing yet; killed after so many steps."""
    hears, told = context.Pipe()
    child = context.Process(target=begin, args=(hears, *args, told))
    child.start()
    told.close()
    try:
        while steps is None or steps > 0:
            hears.recv_bytes()
            hears.send_bytes(b"go on")
            steps = None if steps is None else steps - 1
        os.kill(child.pid, signal.SIGKILL)
    except EOFError:
        pass  # it has ended
    child.join()
    return child.exitcode


def test_killed_training_sees_each_sample_once(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    context = multiprocessing.get_context("fork")
    data, seed = tmp_path / "data", random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    write_lines(data)
    calm, wild = str(tmp_path / "calm"), str(tmp_path / "wild")
    assert live(context, data, str(tmp_path / "store1"), calm) == 0
    for _ in range(KILLS):
        ended = live(context, data, str(tmp_path / "store2"), wild, steps=chance.randrange(1, 7))
        assert ended == -signal.SIGKILL
    assert live(context, data, str(tmp_path / "store2"), wild) == 0
    with open(calm) as a, open(wild) as b:
        expected, got = json.load(a), json.load(b)
    assert got == expected
    assert [got["digests"][str(epoch)][0] for epoch in range(EPOCHS)] == [N] * EPOCHS
