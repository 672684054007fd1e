"""Where a loop of a DataLoader's workers begins: where the last one of all of them ended, or, if
that was left, where it began; also when a state was loaded, and with another number of workers."""
import json
import pickle
import random
import warnings

import pytest
import weir

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

N, BATCH, STEPS = 103, 8, 13
AHEAD = 3  # batches that each worker may have made, or found that there are no more: who has left
           # a loop whose workers are through looks like who has been given all
pytestmark = [pytest.mark.filterwarnings("ignore:This DataLoader will create"),
              pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines")
    for k in range(0, N, 20):
        (path / f"{k:03}.jsonl").write_text("".join(
            json.dumps({"id": i}) + "\n" for i in range(k, min(k + 20, N))))
    return path


def dataset(lines, **options):
    return weir.Dataset(lines, **{"batch_size": BATCH, "seed": 1, **options})


def stateful(ds, workers, stays=False):
    loader = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    return loader(ds, batch_size=None, num_workers=workers, persistent_workers=stays)


def plain(ds, workers, stays=False):
    return DataLoader(ds, batch_size=None, num_workers=workers, persistent_workers=stays)


def sent(value):
    return pickle.loads(pickle.dumps(value))


def positions(batches):
    return [batch.position for batch in batches]


def steps(first, count=STEPS):
    return [(first + i) * BATCH for i in range(count)]


WORKERS = pytest.mark.parametrize("workers, stays", [(0, False), (1, False), (1, True), (2, False),
                                                     (2, True), (3, False)])


@WORKERS
@pytest.mark.parametrize("taken", [0, 1, 2, 12])
def test_a_state_in_the_second_epoch(lines, workers, stays, taken):
    """A loader is asked for it before its workers have made the first batch, too."""
    loader = stateful(dataset(lines), workers, stays)
    assert positions(loader) == steps(0)
    loop = iter(loader)
    assert positions(next(loop) for _ in range(taken)) == steps(STEPS, taken)
    state = sent(loader.state_dict())
    rest = steps(STEPS + taken, STEPS - taken)
    assert positions(loop) == rest
    other = stateful(dataset(lines), workers, stays)
    other.load_state_dict(state)
    assert positions(other) == rest and positions(other) == steps(2 * STEPS)
    alone = dataset(lines)
    alone.load_state_dict(weir.worker_states(state))
    assert positions(alone) == rest


@WORKERS
@pytest.mark.parametrize("delay", ["", "?fault_ops=read,list,stat&fault_delay=20ms"])
def test_a_state_between_epochs(lines, workers, stays, delay):
    """Those that have loaded it are let go at once, and others begin, however slow either is."""
    loader = stateful(dataset(lines), workers, stays)
    assert positions(loader) == steps(0)
    state = sent(loader.state_dict())
    other = stateful(dataset(f"file://{lines}{delay}"), workers, stays)
    other.load_state_dict(state)
    assert positions(other) == steps(STEPS)


@WORKERS
def test_a_loop_that_was_left(lines, workers, stays):
    """Workers begin it again, one that had been resumed where it was; alone it goes on."""
    loader = stateful(dataset(lines), workers, stays)
    next(iter(loader))
    state = sent(loader.state_dict())
    other = stateful(dataset(lines), workers, stays)
    other.load_state_dict(state)
    loop = iter(other)
    assert positions(next(loop) for _ in range(2)) == steps(1, 2)
    del loop
    again = 1 if workers else 3
    assert positions(other) == steps(again, STEPS - again)
    assert positions(other) == steps(STEPS)


@pytest.mark.parametrize("workers", [(2, 1, 2), (3, 2, 3), (1, 3, 0, 2), (0, 2, 0, 1), (4, 2, 4)])
@pytest.mark.parametrize("epochs", [None, 1])
def test_another_number_of_workers(lines, workers, epochs):
    """And lengths, copies and loops without workers go by what workers have done."""
    ds = dataset(lines, epochs=epochs)
    at = 0
    for i, count in enumerate(workers):
        loader = DataLoader(ds, batch_size=None, num_workers=count)
        assert len(loader) == STEPS
        for each in sent(ds), ds:
            assert next(iter(DataLoader(each, batch_size=None, num_workers=2))).position == at
        expected = [at + step for step in steps(0)]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of IterableDataset")  # more than len() said
            assert positions(loader) == expected, (i, count)
        at = at + N if epochs else expected[-1] + BATCH
    assert positions(sent(ds))[0] == at == positions(ds)[0]


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 4])
def test_a_loop_in_which_a_worker_has_nothing(lines, workers):
    ds = dataset(lines, batch_size=50, epochs=1)
    for _ in zip(range(2), ds):
        pass
    state = ds.state_dict()
    ds = dataset(lines, batch_size=50, epochs=1)
    ds.load_state_dict(state)
    loader = plain(ds, workers)
    got = [[(batch.position, len(batch["id"])) for batch in loader] for _ in range(3)]
    assert got == [[(100, 3)], [(103, 50), (153, 50), (203, 3)], [(206, 50), (256, 50), (306, 3)]]


@pytest.mark.parametrize("workers, stays", [(2, False), (2, True), (3, True)])
def test_a_loop_that_failed(tmp_path, workers, stays):
    """Workers begin it again together, also those that had come further."""
    path = tmp_path / "lines"
    path.mkdir()
    for k in range(10):
        (path / f"{k}.jsonl").write_text("".join(
            json.dumps({"id": 10 * k + i}) + "\n" for i in range(10)))
    loader = plain(weir.Dataset(path, batch_size=5, shuffle=False), workers, stays)
    whole = [batch.position for batch in loader]
    assert whole == list(range(0, 100, 5))
    text = (path / "6.jsonl").read_bytes()
    (path / "6.jsonl").write_bytes(b"x" * len(text))
    with pytest.raises(OSError):
        positions(loader)
    (path / "6.jsonl").write_bytes(text)
    if stays:  # they read what they had found, of a file that is another one now
        loader = plain(loader.dataset, workers)
    assert positions(loader) == list(range(100, 200, 5))


def test_a_state_that_is_loaded_while_workers_stay(lines):
    """In a loop of theirs: the next one of all of them begins there."""
    ds = dataset(lines)
    start, loader = ds.state_dict(), plain(ds, 2, True)
    assert positions(loader) == steps(0)
    for k, batch in enumerate(loader):
        if k == 4:
            ds.load_state_dict(start)
    assert batch.position == steps(STEPS)[-1]
    assert positions(loader) == steps(0) and positions(loader) == steps(STEPS)


def test_what_was_delivered_before_is_counted_once(lines):
    ds, whole = dataset(lines), dataset(lines)
    first = [batch for _, batch in zip(range(5), ds)]
    other = dataset(lines)
    other.load_state_dict(ds.state_dict())
    loader = stateful(other, 3)
    loop = iter(loader)
    second = [next(loop) for _ in range(4)]
    third = dataset(lines)
    third.load_state_dict(weir.worker_states(loader.state_dict()))
    assert positions(first + second + list(third)) == positions(whole)
    assert third.digests() == whole.digests()


@pytest.mark.parametrize("seed", [random.randrange(1 << 32) for _ in range(10)], ids=str)
def test_a_walk(lines, seed):
    """Whole loops, loops that are left, states that are saved and loaded, by loaders of any kind;
    what comes is what one that nobody stops would get."""
    chance = random.Random(seed)
    epochs, size = chance.choice([None, 1, 2]), chance.choice([7, 8, 50, 103, 150])
    length = N * (epochs or 1)

    def choose():
        workers = chance.randrange(4)
        return workers, workers > 0 and chance.random() < 0.5

    ds = dataset(lines, batch_size=size, epochs=epochs)
    (workers, stays), at, did = choose(), 0, []
    loader = stateful(ds, workers, stays)
    for _ in range(6):
        act = chance.choice(["whole", "resume", "another world", "left", "other workers"])
        expected = list(range(at, (at // length + 1) * length, size))
        did.append((act, at, workers, stays))
        loop = iter(loader)
        if act in ("whole", "other workers"):
            assert positions(loop) == expected, did
            at = (at // length + 1) * length if epochs else expected[-1] + size
            if act == "other workers":
                while not (other := choose())[0]:  # alone it would not know what workers were given
                    pass
                workers, stays = other
                loader = stateful(ds, workers, stays)
            continue
        taken = chance.randrange(len(expected))
        assert positions(next(loop) for _ in range(taken)) == expected[:taken], did
        if act == "left" and taken + AHEAD * workers > len(expected):
            act = "resume"
        if act == "left":
            at += 0 if workers else taken * size
            del loop
            continue
        state = sent(loader.state_dict())
        del loop
        at += taken * size
        ds = dataset(lines, batch_size=size, epochs=epochs)
        if act == "another world":
            ds.load_state_dict(weir.worker_states(state))
            workers, stays = choose()
        loader = stateful(ds, workers, stays)
        if act == "resume":
            loader.load_state_dict(state)
