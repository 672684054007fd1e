"""Checkpointer with numpy alone: saving, loading, falling back, retention, errors."""
import errno
import glob
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest
import weir

np = pytest.importorskip("numpy")


@pytest.fixture
def store(tmp_path):
    with weir.open(str(tmp_path / "store")) as store:
        yield store


def some_state(seed=0):
    rng = np.random.default_rng(seed)
    return {"model": {"w": rng.normal(size=(64, 33)).astype("f4"), "b": rng.normal(size=33)},
            "optimizer": {"state": {0: {"step": 3, "exp_avg": rng.normal(size=(64, 33))}},
                          "groups": [{"lr": 0.1, "betas": (0.9, 0.999)}]}}


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def file_of(store_path, run, step):
    (path,) = glob.glob(os.path.join(store_path, f"ckpt/{run}/{step}-*/model.safetensors"))
    return path


def spoil(path, at=None, data=bytes(4096)):
    """Overwrites the middle with zeros; the size stays."""
    os.chmod(path, 0o644)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 2 if at is None else at)
        file.write(data)
        file.truncate(size)


def test_save_and_load(store):
    state = some_state()
    with weir.Checkpointer(store, "r") as ck:
        saving = ck.save(7, state, meta={"note": "x"}, loader={"epoch": 1, "seen": np.arange(3)},
                         loss=2.5, grad_norm=0.25)
        saving.wait(timeout=300)
        assert saving.done() and saving.done("node")
        loaded = ck.load()
    assert loaded.step == 7 and loaded.user == {"note": "x"}
    assert loaded.loss == 2.5 and loaded.grad_norm == 0.25
    assert same(loaded.state, state)
    assert same(loaded.loader, {"epoch": 1, "seen": np.arange(3)})


def test_the_caller_may_change_its_tensors_at_once(store):
    state = {"w": np.full(5_000_000, 1.0)}
    with weir.Checkpointer(store, "r", staging=4 << 20) as ck:
        saving = ck.save(1, state)
        state["w"][:] = 2
        saving.wait()
        assert (ck.load().state["w"] == 1).all()


def test_loading_in_place_and_in_part(store):
    state = some_state()
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, state, wait=True)
        like = {"model": {"w": np.zeros((64, 33), "f4")}}
        w = like["model"]["w"]
        loaded = ck.load(like=like)
        assert loaded.state["model"]["w"] is w and same(w, state["model"]["w"])
        assert list(loaded.state) == ["model"]
        turned = np.zeros((33, 64), "f4").T  # not row-major
        ck.load(like={"model": {"w": turned}})
        assert (turned == state["model"]["w"]).all()
        only = ck.load(only=["model.b"]).state
        assert same(only["model"]["b"], state["model"]["b"]) and only["model"]["w"] is None


@pytest.mark.parametrize("like, error, text", [
    ({"model": {"w": np.zeros((64, 32), "f4")}}, ValueError, r"'model.w' is F32 \[64, 33\]"),
    ({"model": {"w": np.zeros((64, 33), "f8")}}, ValueError, "F64"),
    ({"model": {"nope": np.zeros(1)}}, KeyError, "model.nope"),
])
def test_a_like_that_does_not_fit_is_refused_by_name(store, like, error, text):
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, some_state(), wait=True)
        with pytest.raises(error, match=text):
            ck.load(like=like)


def test_nothing_yet(store, caplog):
    with weir.Checkpointer(store, "r") as ck:
        assert ck.load() is None
        assert "has no checkpoint yet" in caplog.text
        with pytest.raises(FileNotFoundError):
            ck.load(strict=True)
        with pytest.raises(FileNotFoundError, match="5"):
            ck.load(5)


def test_a_damaged_one_is_passed_over_loudly(store, tmp_path):
    with weir.Checkpointer(store, "r") as ck:
        for step in (1, 2, 3):
            ck.save(step, some_state(step), wait=True)
        spoil(file_of(tmp_path / "store", "r", 3))
        spoil(file_of(tmp_path / "store", "r", 2))
        with pytest.warns(weir.DamagedWarning) as heard:
            loaded = ck.load()
        assert loaded.step == 1 and same(loaded.state, some_state(1))
        assert len(heard) == 2 and len(loaded.skipped) == 2
        text = str(heard[0].message)
        assert "step 3" in text and "model.safetensors" in text and "bytes" in text
        with pytest.raises(weir.DamagedError, match="cannot load tensor '.*model.safetensors"):
            ck.load(strict=True)
        with pytest.raises(weir.DamagedError):
            ck.load(3)
        spoil(file_of(tmp_path / "store", "r", 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(weir.DamagedError, match="no intact checkpoint"):
                ck.load()


def test_a_step_saved_twice_falls_back_to_the_first(store, tmp_path):
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, some_state(1), wait=True)
        ck.save(1, some_state(2), wait=True)
        assert same(ck.load(1).state, some_state(2))
        spoil(glob.glob(str(tmp_path / "store/ckpt/r/1-*.2/model.safetensors"))[0])
        with pytest.warns(weir.DamagedWarning):
            assert same(ck.load().state, some_state(1))


def test_retention_and_names(store):
    with weir.Checkpointer(store, "r", keep_last=2, keep_every=5, retired_grace=0) as ck:
        for step in range(1, 9):
            ck.save(step, {"x": np.full(10, step)}, wait=True, name="best" if step == 3 else None)
        ck.save(9, {"x": np.zeros(1)}, wait=True)
        ck.flush()
        assert ck.steps() == [3, 5, 8, 9]
        assert ck.load("best").step == 3
        ck.name(8, "best")
        ck.save(10, {"x": np.zeros(1)}, wait=True)
        ck.flush()
        assert ck.steps() == [5, 8, 9, 10]
        ck.unname("best")
        ck.save(11, {"x": np.zeros(1)}, wait=True)
        ck.flush()
        assert ck.steps() == [5, 10, 11]
        with pytest.raises(FileNotFoundError, match="best"):
            ck.load("best")


def test_lineage(store):
    with weir.Checkpointer(store, "a", lineage={"dataset": "sha256:12"}) as ck:
        ck.save(4, {"x": 1}, wait=True)
    with weir.Checkpointer(store, "a", lineage={"dataset": "sha256:12"}) as ck:
        ck.load()
        ck.save(5, {"x": 1}, wait=True)
        lineage = ck.load().meta["meta"]["lineage"]
    assert lineage["dataset"] == "sha256:12"
    assert lineage["parent"] == {"step": 4, "attempt": 1, "save": 1}


def test_nan_and_infinity_are_named(store):
    bad = {"a": np.array([1, math.nan], "f4"), "b": {"c": np.array([math.inf])}, "i": np.arange(3)}
    with weir.Checkpointer(store, "r", scan="warn") as ck:
        with pytest.warns(RuntimeWarning, match=r"a \(1\), b.c \(1\)"):
            ck.save(1, bad, wait=True)
        assert ck.load().meta["meta"]["nonfinite"] == ck.nonfinite() == ["a", "b.c"]
    with weir.Checkpointer(store, "r", scan="raise") as ck:
        with pytest.raises(weir.NonfiniteError) as error:
            ck.save(2, bad)
        assert error.value.names == ["a", "b.c"]
        assert ck.steps() == [1]


def test_check_resume(store, caplog):
    with weir.Checkpointer(store, "r") as ck:
        assert ck.check_resume(1.0)
        ck.save(1, {}, loss=2.0, wait=True)
        ck.load()
        assert ck.check_resume(2.1) and ck.check_resume(1.0)
        assert not ck.check_resume(3.0)
        assert "2" in ck.check_resume(3.0).text and "was everything restored" in caplog.text
        caplog.clear()
        assert not ck.check_resume(math.nan) and "the loss is nan" in caplog.text
        ck.save(3, {}, loss=0.0, wait=True)
        assert ck.load(3).loss == 0
        assert ck.check_resume(0.05) and not ck.check_resume(0.2)
        ck.save(2, {}, loss=math.nan, wait=True)
        assert math.isnan(ck.load().loss)


def test_a_dry_run_finds_what_cannot_be_saved(store):
    with weir.Checkpointer(store, "r") as ck:
        with pytest.raises(weir.UnstorableError, match="hook is a function"):
            ck.check({"w": np.zeros(1), "hook": lambda: 1})
        ck.check(some_state())
        assert ck.load() is None


def test_an_older_life_is_fenced_off(store):
    first = weir.Checkpointer(store, "r")
    first.save(1, some_state(1), wait=True)
    with weir.Checkpointer(store, "r") as second:
        second.save(2, some_state(2), wait=True)
        with pytest.raises(weir.StaleError, match="attempt 1 .* is over"):
            first.save(3, some_state(3), wait=True)
        assert second.steps() == [1, 2]
    first.close()


def test_a_missing_rank_is_named(store):
    token = b"0123456789abcdef"
    a = weir.Checkpointer(store, "r", rank=0, ranks=3, token=token)
    b = weir.Checkpointer(store, "r", rank=2, ranks=3, token=token)
    saves = [ck.save(1, {"w": np.arange(4), "own": np.array(ck.rank)}) for ck in (a, b)]
    for saving in saves:
        saving.wait("node")
        assert not saving.done()
    for _ in range(300):  # rank 2's part may still be on its way
        with pytest.raises(TimeoutError) as late:
            saves[0].wait(timeout=0.2)
        if "part 1 of" in str(late.value):
            break
    assert "part 1 of" in str(late.value)
    assert a.load() is None
    a.close()
    with pytest.raises(ValueError, match="other rank's part"):
        saves[0].wait()
    b.close()


def test_ranks_share_what_they_have_in_common(store, tmp_path):
    """Plain tensors are stored once; local ones once for each rank."""
    token = "job 17"
    ranks = [weir.Checkpointer(store, "r", rank=i, ranks=3, token=token, local=["own*"])
             for i in range(3)]
    states = [{"w": np.arange(1000.0), "v": np.ones((30, 50)), "own": np.full(3, ck.rank),
               "rank": ck.rank} for ck in ranks]
    saves = [ck.save(1, state) for ck, state in zip(ranks, states)]
    for saving in saves:
        saving.wait(timeout=300)
    for ck, state in zip(ranks, states):
        assert same(ck.load(1).state, state)
    assert same(ranks[1].load(1, only=["own"]).state["own"], states[1]["own"])
    with weir.Checkpointer(store, "r") as alone:
        with pytest.warns(UserWarning, match="by 3 ranks and is loaded by 1: .*rank 0's of own@0"):
            assert same(alone.load(1).state, states[0])
        rows = weir._weir.Restore(store, "r", 1).tensors()
    assert [row[0] for row in rows] == ["own@0", "own@1", "own@2", "v", "w"]
    for ck in ranks:
        ck.close()


def test_a_tensor_that_nobody_writes_is_noticed(store):
    """Said to be on all ranks, but only one has it, and another was to write it."""
    token = "job 18"
    ranks = [weir.Checkpointer(store, "r", rank=i, ranks=2, token=token) for i in range(2)]
    saves = [ck.save(1, {"common": np.zeros(3), **{f"only{i}": np.zeros(3) for i in range(20)
                                                    if ck.rank == 0}}) for ck in ranks]
    for saving in saves:  # whoever would have committed it, and whoever waits for that
        with pytest.raises(weir.DamagedError, match="not committed: .* replicated"):
            saving.wait(timeout=300)
    assert ranks[0].load() is None
    for ck in ranks:
        ck.close()


def test_a_save_that_fails_on_one_rank_spoils_no_other(store):
    token = "job 19"
    ranks = [weir.Checkpointer(store, "r", rank=i, ranks=2, token=token) for i in range(2)]
    for step in (1, 2):
        saves = []
        for ck in ranks:
            state = {"w": np.zeros(3)}
            if step == 1 and ck.rank == 1:
                with pytest.raises(weir.UnstorableError):
                    ck.save(step, {**state, "bad": print})
            else:
                saves.append(ck.save(step, state))
    for saving in saves:
        saving.wait(timeout=300)
    assert ranks[0].steps() == [2]
    for ck in ranks:
        ck.close()


def test_errors_of_a_save_come_out(tmp_path):
    with weir.open(str(tmp_path / "s")) as store:
        ck = weir.Checkpointer(store, "r")
        ck.save(1, {"w": np.zeros(3)}, wait=True)
        with weir.Checkpointer(store, "r") as newer:
            newer.save(2, {"w": np.zeros(3)}, wait=True)
        ck.save(3, {"w": np.zeros(3)})  # nobody asks
        with pytest.raises(weir.StaleError, match="earlier save"):
            for _ in range(6000):  # the failure takes its time
                ck.save(4, {"w": np.zeros(3)})
                time.sleep(0.05)
        with pytest.raises(weir.StaleError):
            ck.save(5, {"w": np.zeros(3)})
            ck.close()
        ck.close()


def test_cancel(store):
    with weir.Checkpointer(store, "r", rate=1 << 20) as ck:
        saving = ck.save(1, {"w": np.zeros(32 << 20, "u1")})
        saving.cancel()
        with pytest.raises(OSError, match="cancelled"):
            saving.wait()
        assert ck.load() is None


def test_what_a_save_waited_for_is_counted(store):
    with weir.Checkpointer(store, "r", rate=16 << 20, queue=1) as ck:
        for step in range(100):  # on a busy machine the queue may be empty again before the next
            ck.save(step, {"w": np.zeros(2 << 20, "u1")})
            stats = ck.stats()
            assert stats["saves"] == step + 1 and stats["bytes"] > (step + 1) * (2 << 20)
            if step >= 2 and stats["stall_queue_s"] > 0:
                break
        assert stats["stall_queue_s"] > 0
    assert ck.stats()["saves"] == step + 1


def test_stats_of_one_that_saved_nothing_fence_nobody_off(store):
    with weir.Checkpointer(store, "r") as trainer, weir.Checkpointer(store, "r") as watcher:
        trainer.save(1, {"w": np.zeros(3)}, wait=True)
        assert set(watcher.stats().values()) == {0} and watcher.stats().keys() == (
            trainer.stats().keys())
        trainer.save(2, {"w": np.zeros(3)}, wait=True)


def together(*calls):
    """Runs them in threads of their own; what they raised."""
    raised = []

    def run(call):
        try:
            call()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_may_wait_and_close(store):
    """A wait ends with the save, or says that the checkpointer was closed meanwhile."""
    for _ in range(5):
        ck = weir.Checkpointer(store, "r")
        saving = ck.save(1, some_state())
        raised = together(saving.wait, saving.wait, saving.wait, ck.close)
        assert [e for e in raised if not isinstance(e, ValueError) or "closed" not in str(e)] == []
        assert saving.done()


def test_threads_may_save(store):
    """One after another; none is lost, and each has a number of its own."""
    with weir.Checkpointer(store, "r", keep_last=0) as ck:
        steps = range(1, 13)
        raised = together(*(lambda step=step: ck.save(step, {"w": np.full(1000, step)}, wait=True)
                            for step in steps))
        assert raised == []
        assert sorted(ck.steps()) == list(steps) and ck.stats()["saves"] == len(steps)
        assert all((ck.load(step).state["w"] == step).all() for step in steps)


def run_python(code, *args, **kwargs):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def test_a_save_is_finished_when_the_program_ends(tmp_path):
    process = run_python("""
        import sys, numpy, weir
        ck = weir.Checkpointer(sys.argv[1], "r", rate=32 << 20)
        ck.save(1, {"w": numpy.ones(8 << 20, "u1")})
    """, str(tmp_path / "s"))
    assert process.wait() == 0, process.stderr.read()
    with weir.Checkpointer(str(tmp_path / "s"), "r") as ck:
        assert ck.load().state["w"].all()


def test_ctrl_c_while_waiting(tmp_path):
    process = run_python("""
        import signal, sys, numpy, weir
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored
        ck = weir.Checkpointer(sys.argv[1], "r", rate=1 << 20)
        saving = ck.save(1, {"w": numpy.ones(64 << 20, "u1")})
        try:
            print("waiting", flush=True)
            saving.wait()
        except KeyboardInterrupt:
            saving.cancel()
            print("stopped", flush=True)
    """, str(tmp_path / "s"))
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    assert process.wait() == 0


def test_after_fork_the_child_is_told(tmp_path):
    process = run_python("""
        import os, sys, numpy, weir
        ck = weir.Checkpointer(sys.argv[1], "r")
        ck.save(1, {"w": numpy.ones(3)}, wait=True)
        child = os.fork()
        if not child:
            try:
                ck.save(2, {"w": numpy.ones(3)})
            except OSError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """, str(tmp_path / "s"))
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "fork" in out


def test_wrong_arguments(store):
    with pytest.raises(ValueError, match="scan"):
        weir.Checkpointer(store, "r", scan="maybe")
    with pytest.raises(ValueError, match="ranks=1"):
        weir.Checkpointer(store, "r", rank=0, ranks=2).save(1, {})
    with pytest.raises(OSError, match="run"):
        weir.Checkpointer(store, "../r").save(1, {})
    with weir.Checkpointer(store, "r") as ck:
        with pytest.raises(ValueError, match="-1"):
            ck.save(-1, {})
        with pytest.raises(TypeError):
            ck.save("one", {})
        with pytest.raises(TypeError):
            ck.save(1.0, {})
        with pytest.raises(ValueError, match="a step is"):
            ck.save(2**63, {})
        with pytest.raises(ValueError, match="a step is"):
            ck.load(-1)
        with pytest.raises(ValueError, match="a step is"):
            ck.name(-1, "best")
        with pytest.raises(TypeError, match="meta is a dict that is no JSON"):
            ck.save(1, {}, meta={"x": object()})
        saving = ck.save(np.int64(7), {}, wait=True)
        assert ck.load(np.int64(7)).step == 7
        ck.name(np.int32(7), "best")
        for call in (saving.wait, saving.done):
            with pytest.raises(ValueError, match="'memory', 'node', 'peer', 'home', not 'disk'"):
                call("disk")
    for name in ("rate", "keep_last", "keep_every", "staging", "queue", "retired_grace"):
        with pytest.raises(ValueError, match=f"{name} is a number from"):
            weir.Checkpointer(store, "r", **{name: -1})
    with pytest.raises(ValueError, match="closed"):
        ck.save(1, {})


def test_what_cannot_be_saved_fails_on_every_rank(store):
    """What only rank 0 writes is looked at by all, or they would wait for it."""
    token = "job 19"
    for rank in (0, 1):
        ck = weir.Checkpointer(store, "r", rank=rank, ranks=2, token=token,
                               lineage={"x": {1, 2}} if rank else None)
        with pytest.raises(weir.UnstorableError, match="meta is a float that is no JSON" if not rank
                           else "lineage is a dict that is no JSON"):
            ck.save(1, {}, meta=None if rank else math.nan)
        with pytest.raises(ValueError, match="nonsense"):
            ck.save(1, {}, loss="nonsense")
        ck.close()


def test_a_dry_run_looks_at_all_that_save_is_given(store):
    with weir.Checkpointer(store, "r", lineage={"x": b""}) as ck:
        with pytest.raises(weir.UnstorableError) as error:
            ck.check({"masked": np.ma.masked_array([1.0], [True]), "n" * 5000: np.zeros(1),
                      "text": np.array(["a"])}, loader={"f": print}, meta={1, 2})
    names = [path for path, _ in error.value.values]
    assert names == ["masked", "n" * 200, "text", "loader.f", "meta", "lineage"]
    for text in ("whose mask would be lost", "5000 bytes; the limit is 4096",
                 "numpy.ndarray of str32, which safetensors has no type for"):
        assert text in str(error.value)


def test_the_position_is_not_read_into_the_state(store):
    """A key of the state may be called as save()'s argument is."""
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, {"loader": {"seen": np.arange(3)}}, loader={"seen": np.arange(10, 13)},
                wait=True)
        like = {"loader": {"seen": np.zeros(3, int)}}
        loaded = ck.load(like=like)
    assert same(like["loader"]["seen"], np.arange(3))
    assert same(loaded.loader["seen"], np.arange(10, 13))


class Counter:
    def __init__(self, n=0):
        self.n = n

    def state_dict(self):
        return {"n": self.n, "w": np.full(2, self.n)}

    def load_state_dict(self, state):
        assert (state["w"] == state["n"]).all()
        self.n = state["n"]


def test_objects_in_tuples_and_lists_are_restored(store):
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, {"pair": (Counter(1), [Counter(2), 5]), "plain": (1, 2)}, wait=True)
        like = {"pair": (Counter(), [Counter(), 0]), "plain": ()}
        state = ck.load(like=like).state
        assert state["pair"][0] is like["pair"][0] and state["pair"][0].n == 1
        assert like["pair"][1][0].n == 2 and state["pair"][1][1] == 5 and state["plain"] == (1, 2)


@pytest.mark.parametrize("pair, text", [
    ([Counter(), [Counter(), 0]], "pair is a list of 2 .* and a tuple of 2 in"),
    ((Counter(),), "pair is a tuple of 1 .* and a tuple of 2 in"),
    ((Counter(), (Counter(), 0)), "pair.1 is a tuple of 2 .* and a list of 2 in"),
    ((Counter(), [0, [Counter()]]), "pair.1.1 is a list of 1 .* and a plain value"),
    ({0: Counter()}, "pair is a dict of 1 .* and a tuple of 2 in"),
])
def test_objects_that_would_not_be_restored_are_named(store, pair, text):
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, {"first": Counter(3), "pair": (Counter(1), [Counter(2), 5])}, wait=True)
        first = Counter()
        with pytest.raises(ValueError, match=text):
            ck.load(like={"first": first, "pair": pair})
        assert first.n == 0  # nothing was changed before


def test_what_every_rank_found_is_known(store):
    """Each scans what it has: the names are in its own document."""
    token = "job 20"
    ranks = [weir.Checkpointer(store, "r", rank=i, ranks=2, token=token, local=["own*"],
                               scan="warn") for i in range(2)]
    with pytest.warns(RuntimeWarning, match="own"):
        saves = [ck.save(1, {"own": np.array([math.nan if ck.rank else 0.0]), "w": np.ones(3)})
                 for ck in ranks]
    for saving in saves:
        saving.wait(timeout=300)
    assert ranks[0].nonfinite(1) == ranks[1].nonfinite() == ["own@1"]
    for ck in ranks:
        ck.close()


def test_a_position_of_other_ranks_is_warned_of(store, caplog):
    token = "job 21"
    ranks = [weir.Checkpointer(store, "r", rank=i, ranks=2, token=token) for i in range(2)]
    for saving in [ck.save(1, {"w": np.ones(3)}, loader={"at": ck.rank}) for ck in ranks]:
        saving.wait(timeout=300)
    for ck in ranks:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ck.load(1).loader == {"at": ck.rank}
        ck.close()
    with weir.Checkpointer(store, "r", rank=2, ranks=3) as other:
        with pytest.warns(UserWarning, match="rank 2 has what was rank 0's of the position"):
            assert other.load(1).loader == {"at": 0}
    assert "loaded by 3" in caplog.text


def test_saves_that_are_not_committed_are_named_when_closing(store, caplog):
    a = weir.Checkpointer(store, "r", rank=0, ranks=2, token="job 22")
    a.save(5, {"w": np.zeros(3)}).wait("node")
    a.close()
    assert "step 5 was not committed when rank 0 closed" in caplog.text


def test_one_that_is_dropped_finishes_and_says_so(store):
    ck = weir.Checkpointer(store, "r", rate=32 << 20)
    ck.save(1, {"w": np.ones(8 << 20, "u1")})
    with pytest.warns(ResourceWarning, match="run 'r' was not closed"):
        del ck
    with weir.Checkpointer(store, "r") as ck:
        assert ck.load().state["w"].all()


def test_ctrl_c_while_closing_leaves_it_open(tmp_path):
    process = run_python("""
        import signal, sys, numpy, weir
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ck = weir.Checkpointer(sys.argv[1], "r", rate=1 << 20)
        saving = ck.save(1, {"w": numpy.ones(64 << 20, "u1")})
        try:
            print("closing", flush=True)
            ck.close()
        except KeyboardInterrupt:
            print(saving.done(), ck.stats()["saves"], flush=True)
            saving.cancel()
            try:
                saving.wait()
            except OSError:
                pass
            ck.save(2, {}, wait=True)
        ck.close()
        print("closed", flush=True)
    """, str(tmp_path / "s"))
    assert process.stdout.readline() == "closing\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "False 1\n"
    assert process.stdout.readline() == "closed\n", process.stderr.read()
    assert process.wait() == 0


def test_a_forked_child_ends_without_a_word(tmp_path):
    process = run_python("""
        import os, sys, numpy, weir
        ck = weir.Checkpointer(sys.argv[1], "r")
        ck.save(1, {"w": numpy.ones(3)}, wait=True)
        child = os.fork()
        if not child:
            sys.exit(0)  # atexit and all
        assert os.waitpid(child, 0)[1] == 0
        ck.save(2, {"w": numpy.ones(3)}, wait=True)
        print(ck.steps())
    """, str(tmp_path / "s"))
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "[1, 2]\n", "")


def test_paths_of_any_kind(tmp_path):
    with weir.open(tmp_path / "s") as store:
        assert store.list() == []
    with weir.Checkpointer(tmp_path / "s", "r") as ck:
        ck.save(1, {}, wait=True)
        assert ck.steps() == [1]


def test_progress_counts_the_bytes(store):
    with weir.Checkpointer(store, "r") as ck:
        ck.save(1, {"w": np.ones(1 << 20)}, wait=True)
        seen = []
        ck.load(progress=seen.append)
        assert seen and seen == sorted(seen) and seen[-1] >= 8 << 20


def test_unsafe_values_need_unsafe_both_ways(store):
    with weir.Checkpointer(store, "r") as ck:
        with pytest.raises(weir.UnstorableError, match="z is a numpy.ndarray of complex128"):
            ck.save(1, {"z": np.ones(2, complex)})
        ck.save(1, {"z": np.ones(2, complex), "r": range(3)}, unsafe=True, wait=True)
        with pytest.raises(ValueError, match="unsafe=True"):
            ck.load()
        assert ck.load(unsafe=True).state["r"] == range(3)


def test_errors_made_here_have_numbers_too(store, tmp_path):
    with weir.Checkpointer(store, "r") as ck:
        with pytest.raises(FileNotFoundError) as error:
            ck.load(strict=True)
        assert error.value.errno == errno.ENOENT
        ck.save(1, some_state(), wait=True)
        spoil(file_of(tmp_path / "store", "r", 1))
        with pytest.warns(weir.DamagedWarning), pytest.raises(weir.DamagedError) as error:
            ck.load()
        assert error.value.errno == errno.EBADMSG


def test_a_newer_format_is_refused(store, monkeypatch):
    with weir.Checkpointer(store, "r") as ck:
        monkeypatch.setattr("weir.checkpoint.META_FORMAT", "checkpoint/2")
        ck.save(1, {}, wait=True)
        with pytest.raises(ValueError, match="checkpoint/2.*a newer Weir"):
            ck.load()
