"""A loop that is stopped between the library and its caller: by a signal, by what is wrong with a
batch, by another thread. What nobody got is not delivered, and comes with the next loop."""
import contextlib
import json
import os
import signal
import sys
import threading
import time

import pytest
import weir

np = pytest.importorskip("numpy")

N, BATCH = 103, 8


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.mkdir()
    for k in range(0, N, 20):
        (path / f"{k:03}.jsonl").write_text("".join(
            json.dumps({"id": i}) + "\n" for i in range(k, min(k + 20, N))))
    return path


def dataset(lines, **options):
    return weir.Dataset(lines, **{"batch_size": BATCH, "seed": 1, "lanes": 4, "window": 10,
                                  **options})


def ids(batch):
    return batch["id"].tolist()


class Cut:
    """A loader whose next() is interrupted just when it has the batch, as a signal may do."""

    def __init__(self, loader, at):
        self.loader, self.left = loader, at

    def __getattr__(self, name):
        return getattr(self.loader, name)

    @property
    def reached(self):
        return self.loader.reached

    @reached.setter
    def reached(self, position):
        self.loader.reached = position

    def next(self):
        batch = self.loader.next()
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return batch


def is_whole(ds):
    """The epoch that is over was delivered once, and nothing else of it."""
    (count, digest) = ds.digests()[0]
    return count == N and digest


@pytest.mark.parametrize("at", [1, 2, 7])
def test_what_was_interrupted_comes_again(lines, at, monkeypatch):
    expected = [ids(batch) for batch in dataset(lines)]
    whole = dataset(lines)
    list(whole)
    ds, got, start = dataset(lines), [], weir.Dataset._start
    monkeypatch.setattr(weir.Dataset, "_start", lambda self, end, cut=[]: (
        cut or cut.append(Cut(start(self, end), at)), cut[0])[1])
    with pytest.raises(KeyboardInterrupt):
        for batch in ds:
            got.append(ids(batch))
    monkeypatch.setattr(weir.Dataset, "_start", start)
    state = ds.state_dict()
    assert state["position"] == (at - 1) * BATCH == sum(map(len, got))
    assert [count for _, count, _ in state["parts"][0]["epochs"]] == \
        ([len(got) * BATCH] if got else [])
    other = dataset(lines)
    other.load_state_dict(state)
    for goes_on in ds, other:
        assert got + [ids(batch) for batch in goes_on] == expected
        assert is_whole(goes_on) == is_whole(whole)


def test_a_batch_that_cannot_be_made_is_not_delivered(lines, monkeypatch):
    ds, make = dataset(lines), weir.columns.Maker.make
    loop = iter(ds)
    first = ids(next(loop))
    monkeypatch.setattr(weir.columns.Maker, "make", lambda self, *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(loop)
    monkeypatch.setattr(weir.columns.Maker, "make", make)
    assert ds.state_dict()["position"] == BATCH
    assert [first, *(ids(batch) for batch in ds)] == [ids(batch) for batch in dataset(lines)]


def hold_up(lines, delay):
    """Its reads take a while; it is indexed before."""
    weir.Dataset(lines).close()
    return f"file://{lines}?fault_ops=read&fault_delay={delay}"


def is_waiting(ds):
    return ds._loader is not None and ds._loader.busy


@contextlib.contextmanager
def beside(act):
    """Another thread does this meanwhile, over and over. While it does not wait itself, nobody else
    has the interpreter: what it has just seen is still so."""
    over, interval = threading.Event(), sys.getswitchinterval()

    def run():
        while not over.wait(0.001):
            act()

    thread = threading.Thread(target=run)
    sys.setswitchinterval(1000)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.fixture
def on_alarm():
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.signal(signal.SIGALRM, before)


def alarm():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)


@pytest.mark.parametrize("delay", ["20ms", "250ms"])  # shorter and longer than it waits at a time
@pytest.mark.parametrize("raises", [True, False])
def test_a_signal_until_the_batch_comes(lines, on_alarm, raises, delay):
    """Its handler runs while it waits, or when the wait is over, before anybody has the batch. What
    it saves, as one that is told to end does, begins with that batch."""
    class Stop(Exception):
        pass

    saved = []

    def stop(*_):
        saved.append(ds.state_dict())
        if raises:
            raise Stop

    on_alarm(stop)
    ds = weir.Dataset(hold_up(lines, delay), batch_size=N, seed=1, epochs=1, shuffle=False)
    before = ds.state_dict()
    with beside(lambda: is_waiting(ds) and alarm()):
        if raises:
            with pytest.raises(Stop):
                next(iter(ds))
        else:
            assert len(next(iter(ds))["id"]) == N
    assert saved and all(state == before for state in saved)
    assert before["position"] == 0 and before["parts"][0]["epochs"] == []
    assert ds.state_dict()["position"] == (0 if raises else N)
    ds.load_state_dict(saved[-1])
    batch, = ds
    assert sorted(batch.numbers.tolist()) == list(range(N))
    assert ds.digests()[0][0] == N


def test_a_signal_while_it_closes(lines, on_alarm):
    """Closing waits for reads: a handler that asks where it is then, and raises, loses nothing."""
    asked, where = [], []

    def stop(_, frame):
        asked.append(ds.state_dict()["position"])
        where.append(frame.f_globals["__name__"])
        raise KeyboardInterrupt

    def close():
        ds.close()
        while not asked:  # there was nothing to wait for
            time.sleep(0.01)

    on_alarm(stop)
    while "weir.data" not in where and len(where) < 50:
        asked.clear()
        ds = weir.Dataset(hold_up(lines, "20ms"), batch_size=1, seed=1, threads=2)
        next(iter(ds))
        with beside(lambda: ds._loader is None and not asked and alarm()):
            with pytest.raises(KeyboardInterrupt):
                close()
        assert asked == [1] and ds.state_dict()["position"] == 1
        ds.close()
        assert ds.digests()[0][0] == 1
    assert "weir.data" in where


def test_a_signal_anywhere_in_close(lines):
    """In front of each line of it, until there are no more."""
    def trace(frame, event, _):
        nonlocal left
        if frame.f_globals["__name__"] not in ("weir.data", "weir.position"):
            return None
        left -= event == "line"
        if left == 0 and event == "line":
            sys.settrace(None)
            asked.append(ds.state_dict()["position"])
            raise KeyboardInterrupt
        return trace

    asked, lines_run, left = [], 0, 0
    while left == 0:
        lines_run += 1
        ds, left = dataset(lines), lines_run
        next(iter(ds))
        sys.settrace(trace)
        with contextlib.suppress(KeyboardInterrupt):
            ds.close()
        sys.settrace(None)
        assert ds.state_dict()["position"] == BATCH
        ds.close()
        assert ds.digests()[0][0] == BATCH
    assert asked == [BATCH] * (lines_run - 1) and lines_run > 5


def test_where_it_is_may_be_asked_while_it_waits(lines):
    """By another thread; by a signal's handler: see above."""
    ds, got, seen = weir.Dataset(hold_up(lines, "20ms"), batch_size=BATCH, epochs=1), [], []

    def ask():
        if is_waiting(ds):
            seen.append((len(got), ds.state_dict()["position"], ds.stats()["samples"]))

    with beside(ask):
        for batch in ds:
            got += batch.numbers.tolist()
    assert sorted(got) == list(range(N)) and seen
    for had, position, samples in seen:  # a batch may be there that is not yet handed on
        assert position == had and had <= samples <= had + BATCH


def test_a_close_that_comes_too_early_changes_nothing(lines):
    """Another thread cannot close what waits; the loop goes on, and delivers each sample once."""
    ds, got, said = weir.Dataset(hold_up(lines, "20ms"), batch_size=BATCH, epochs=1), [], []

    def close():
        if is_waiting(ds) and len(said) < 5:
            try:
                ds.close()
                said.append("closed")
            except ValueError as error:
                said.append(str(error))

    with beside(close):
        for batch in ds:
            got += batch.numbers.tolist()
    assert sorted(got) == list(range(N))
    assert said and all("waits for its next batch" in text for text in said)


def test_a_child_that_goes_on_with_its_parents_loop_is_told(lines):
    """Whatever the library's threads held just then: it fails, and never waits for them."""
    ds = dataset(lines, threads=4)
    loop = iter(ds)
    next(loop)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                ds.stats()
                ds._loader.position(), ds._loader.stats(), ds._loader.wants()
                next(loop)
            except ChildProcessError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    assert sum(len(batch["id"]) for batch in loop) > 0


def test_a_class_of_ones_own(lines):
    """Nothing is derived from it behind its back."""
    class Mine(weir.Dataset):
        made = []

        def __init_subclass__(cls, name):
            Mine.made.append(name)

    ds = Mine(lines, batch_size=BATCH)
    assert type(ds) is Mine and ds.__class__ is Mine and not isinstance(ds, dict)
    assert not Mine.made and len(next(iter(ds))["id"]) == BATCH
