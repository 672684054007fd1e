"""A training loop is killed fifty times, anywhere in a step, with the position of its data in its
checkpoints: what it was given of each epoch is what one gets that nobody kills. Each life may have
another number of ranks, each with a checkpointer of its own; they share a process, so that it dies
at once."""
import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import time

import pytest
import weir

np = pytest.importorskip("numpy")

N, BATCH, EPOCHS, KILLS = 497, 6, 4, 50  # 332 steps, which 50 lives of 1 to 9 do not get to
STEPS_MOST = 9                           # that a life begins
RARELY = 50                              # steps between saves of who is not killed


def write_lines(path):
    path.mkdir()
    for k in range(7):
        with open(path / f"{k}.jsonl", "w") as file:
            for i in range(71 * k, 71 * (k + 1)):
                file.write(json.dumps({"id": i, "x": [i % 7, i % 11], "pad": "x" * 900}) + "\n")


def write_mds(path, weir_bin):
    lines = path.with_name("source")
    write_lines(lines)
    subprocess.run([weir_bin, "data", "pack", lines, path, "--format", "mds", "--compression",
                    "zstd", "--shard-size", "64K"], check=True, stdout=subprocess.DEVNULL)


def open_all(stack, data, store, ranks):
    """What each rank has."""
    token = os.urandom(8).hex()  # of this life
    return [(stack.enter_context(weir.Dataset(data, batch_size=BATCH // ranks, seed=7, lanes=5,
                                              window=40, threads=2, dp_rank=rank, dp_size=ranks)),
             stack.enter_context(weir.Checkpointer(store, "run", keep_last=2, rank=rank,
                                                   ranks=ranks, token=token)))
            for rank in range(ranks)]


def save(each, step, w, wait):
    saves = [ck.save(step, {"w": w}, loader=ds.state_dict()) for ds, ck in each]
    for saving in saves if wait else ():
        saving.wait(timeout=300)


def train(data, store, out, ranks, every, told):
    """Until it has seen every epoch; what it learned depends on every sample, in order."""
    with contextlib.ExitStack() as stack:
        each = open_all(stack, data, store, ranks)
        step, w = 0, np.zeros(2)
        for ds, ck in each:
            loaded = ck.load()
            if loaded:
                step, w = loaded.step, loaded.state["w"]
                ds.load_state_dict(loaded.loader)
        sets = [ds for ds, _ in each]
        told.send(sets[0].state_dict()["position"])
        while sets[0].state_dict()["position"] < EPOCHS * N:
            for batches in zip(*sets, strict=True):
                for batch in batches:
                    for x, i in zip(batch["x"], batch["id"]):
                        w = w * 0.999 + x * (i + 1)
                step += 1
                if step % every == 0:  # every other one is not waited for: most of these are lost
                    save(each, step, w, wait=step % (2 * every) == 0)
                told.send("step")
                told.recv()  # one step ahead of a killer who is late, not more
        save(each, step, w, wait=True)
        total = weir.merge_states([ds.state_dict() for ds in sets])
    with open(out + "~", "w") as file:
        json.dump({"step": step, "w": w.tolist(), "position": total["position"],
                   "parts": [part["epochs"] for part in total["parts"]]}, file)
    os.rename(out + "~", out)


def named_memory(pid, place):
    """Shared memory with a name, which would outlive a process that is killed."""
    with open(f"/proc/{pid}/maps") as maps:
        found = list(maps)
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return [name for name in found if "/dev/shm/" in name and "(deleted)" not in name
            and place not in name]


def begin(hears, *args):
    hears.close()  # the other end, which a fork copies
    train(*args)


def live(context, *args, steps=None, chance=None):
    """One life of it, in a process that has opened nothing yet; killed in the step that comes after
    so many. How it ended, at which position it began, and whether it was killed before it said
    that this step was done."""
    hears, told = context.Pipe()
    child = context.Process(target=begin, args=(hears, *args, told))
    start = time.monotonic()
    child.start()
    told.close()
    began, is_cut = None, False
    try:
        began, took = hears.recv(), [time.monotonic() - start]
        while steps is None or len(took) <= steps:
            start = time.monotonic()
            hears.recv()
            took.append(time.monotonic() - start)
            hears.send("go on")
        assert not named_memory(child.pid, os.path.dirname(args[1]))  # where the store is
        time.sleep(chance.random() * chance.choice(took))
        os.kill(child.pid, signal.SIGKILL)
        is_cut = True
        hears.recv()
        is_cut = False
    except (EOFError, ConnectionResetError):
        pass  # it has ended
    child.join()
    return child.exitcode, began, is_cut


@pytest.mark.parametrize("kind, worlds", [("jsonl", [1]), ("mds", [1, 2, 3]),
                                          ("mixture", [1, 2, 3])])
def test_killed_training_sees_each_sample_once(tmp_path, monkeypatch, weir_bin, kind, worlds):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    context = multiprocessing.get_context("fork")
    data, seed = tmp_path / "data", random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    write_lines(data) if kind == "jsonl" else write_mds(data, weir_bin)
    if kind == "mixture":
        data = [data, data.with_name("source")]
    calm, wild = str(tmp_path / "calm"), str(tmp_path / "wild")
    assert live(context, data, str(tmp_path / "store1"), calm, 1, RARELY) == (0, 0, False)
    store, starts, cuts = str(tmp_path / "store2"), [], 0
    for _ in range(KILLS):
        ended, began, is_cut = live(context, data, store, wild, chance.choice(worlds), 2,
                                    steps=chance.randrange(STEPS_MOST), chance=chance)
        assert ended == -signal.SIGKILL
        starts.append(began)
        cuts += is_cut
    print("killed within a step:", cuts)
    ended, began, _ = live(context, data, store, wild, worlds[-1], RARELY)
    assert ended == 0
    # Lives do resume, from further and further on, beyond the ends of epochs.
    starts.append(began)
    assert sum(position > 0 for position in starts) > KILLS / 2
    assert starts == sorted(starts) and len(set(starts)) > KILLS / 4
    assert starts[-1] > N
    with open(calm) as a, open(wild) as b:
        expected, got = json.load(a), json.load(b)
    assert got == expected
    for part in got["parts"]:
        whole = [digest for _, count, digest in part if count == N]
        assert len(whole) >= EPOCHS // len(got["parts"]) and len(set(whole)) == 1
        assert [count for _, count, _ in part[:len(whole)]] == [N] * len(whole)
        assert len(part) <= len(whole) + 1  # the last one goes on
