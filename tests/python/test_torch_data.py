"""Datasets in torch: tensors, DataLoader and StatefulDataLoader with any number of workers."""
import gc
import json
import pickle
import subprocess
import sys
import weakref

import pytest
import weir
from weirtest import need

np = need("numpy")
torch = need("torch")
from torch.utils.data import DataLoader  # noqa: E402

N = 103


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.mkdir()
    for k, first in enumerate(range(0, N, 20)):
        with open(path / f"{k:03}.jsonl", "w") as file:
            for i in range(first, min(first + 20, N)):
                file.write(json.dumps({"id": i, "text": f"line {i}"}) + "\n")
    return path


@pytest.fixture
def chunks(tmp_path):
    """The same as LitData has it, for which Weir has no writer."""
    need("litdata")
    from litdata.streaming.writer import BinaryWriter
    path = tmp_path / "chunks"
    path.mkdir()
    writer = BinaryWriter(str(path), chunk_size=20)
    for i in range(N):
        writer.add_item(i, {"id": i, "text": f"line {i}"})
    writer.done()
    writer.merge(1)
    return path


@pytest.fixture
def mixed(lines, chunks):
    return [lines, chunks]


def dataset(lines, **options):
    return weir.Dataset(lines, **{"batch_size": 8, "seed": 1, "lanes": 4, "window": 10, **options})


def ids(batches):
    return [int(i) for batch in batches for i in batch["id"]]


def seen(batches):
    """Of a mixture, too: of which dataset, and its number there."""
    return [(int(part), int(i)) for batch in batches for part, i in
            zip([0] * len(batch["id"]) if batch.parts is None else batch.parts, batch["id"])]


def test_tensors_are_views(lines):
    path = lines.parent / "arrays"
    path.mkdir()
    (path / "a.jsonl").write_text("".join(
        json.dumps({"id": i, "some": list(range(i + 1)), "text": f"line {i}"}) + "\n"
        for i in range(8)))
    batch = next(iter(dataset(path, as_torch=True, shuffle=False)))
    assert torch.is_tensor(batch["id"]) and batch["id"].tolist() == list(range(8))
    assert batch["text"][3] == "line 3" and batch["some"][2].tolist() == [0, 1, 2]
    memory = np.frombuffer(batch._place[0], "u1")
    for tensor in batch["id"], batch["some"].data, batch["some"][3], batch["text"].data:
        begin = tensor.data_ptr() - memory.ctypes.data
        assert 0 <= begin <= memory.size - tensor.nbytes and tensor.nbytes
        assert np.shares_memory(tensor.numpy(), memory)
    batch["some"].data[-1] = 77  # as is seen by all who look there
    assert batch["some"][7].tolist() == [*range(7), 77]
    sample = dataset(lines, as_torch=True)[5]
    assert torch.is_tensor(sample["id"]) and int(sample["id"]) == 5


@pytest.mark.parametrize("kind", ["lines", "chunks", "mixed"])
@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_any_number_of_workers(request, kind, workers, ranks):
    """Of all formats: tests/unit/loader.c."""
    path = request.getfixturevalue(kind)
    whole = dataset(path, batch_size=24)
    expected = [seen(whole), seen(whole)][:1 if ranks > 2 else 2]
    assert {part for part, _ in expected[0]} == ({0, 1} if kind == "mixed" else {0})
    context = "fork" if workers else None
    loaders = [DataLoader(dataset(path, batch_size=24 // ranks, dp_rank=rank, dp_size=ranks),
                          batch_size=None, num_workers=workers, multiprocessing_context=context)
               for rank in range(ranks)]
    for epoch in expected:
        batches = [list(loader) for loader in loaders]
        assert seen(batch for row in zip(*batches) for batch in row) == epoch


@pytest.mark.parametrize("kind", ["chunks", "mixed"])
def test_any_position_is_resumed_by_any_world(request, kind):
    path = request.getfixturevalue(kind)
    whole = dataset(path, batch_size=24)
    expected = seen(whole)
    for at in range(5):
        for before, after in ((1, 2), (2, 3), (3, 8), (8, 1)):
            first, second = ([dataset(path, batch_size=24 // ranks, dp_rank=rank, dp_size=ranks)
                              for rank in range(ranks)] for ranks in (before, after))
            begin = [[batch for _, batch in zip(range(at), ds)] for ds in first]
            for ds in second:
                ds.load_state_dict([one.state_dict() for one in first])
            rest = [list(ds) for ds in second]
            rows = [*zip(*begin), *zip(*rest)]
            assert seen(batch for row in rows for batch in row) == expected, (at, before, after)
            merged = weir.merge_states([ds.state_dict() for ds in second])
            assert merged["parts"] == whole.state_dict()["parts"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument")  # without a GPU
def test_batches_that_the_loader_pins(lines, workers):
    """They are the same, pinned or not."""
    expected = list(dataset(lines, as_torch=True))
    got = list(DataLoader(dataset(lines, as_torch=True), batch_size=None, num_workers=workers,
                          multiprocessing_context="fork" if workers else None, pin_memory=True))
    assert len(got) == len(expected) == 13
    for batch, other in zip(got, expected):
        assert list(batch) == list(other) == ["id", "text"]
        assert torch.is_tensor(batch["id"]) and torch.equal(batch["id"], other["id"])
        assert batch["id"].is_pinned() == torch.cuda.is_available()
        assert batch["text"].tolist() == other["text"].tolist()
        assert batch.numbers.tolist() == other.numbers.tolist()
        assert batch.position == other.position


def test_spawned_workers_that_stay(lines):
    whole = dataset(lines)
    loader = DataLoader(dataset(lines), batch_size=None, num_workers=2, persistent_workers=True,
                        multiprocessing_context="spawn")
    for _ in range(2):
        batches = list(loader)
        assert ids(batches) == ids(whole)
        assert batches[0]["text"].tolist() == [f"line {i}" for i in ids(batches[:1])]


def test_a_batch_of_no_samples_has_its_columns(lines):
    for batch_size, ranks in ((17, 3), (1, 104)):  # 104: this rank gets nothing at all
        *_, last = dataset(lines, batch_size=batch_size, dp_rank=ranks - 1, dp_size=ranks,
                           epochs=1, as_torch=True)
        assert last["id"].shape == (0,) and last["id"].dtype == torch.int64
        assert last["text"].tolist() == [] and last["text"].data.shape == (0,)
        assert last["text"].offsets.tolist() == [0]


def test_workers_and_exact_epochs(lines):
    loader = DataLoader(dataset(lines, epochs=1), batch_size=None, num_workers=3)
    for _ in range(2):
        assert sorted(ids(loader)) == list(range(N))


@pytest.mark.parametrize("kind", ["lines", "mixed"])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_stateful(request, kind, workers):
    stateful = need("torchdata.stateful_dataloader").StatefulDataLoader
    path = request.getfixturevalue(kind)
    whole = dataset(path)
    expected = [seen(whole), seen(whole)]
    # After 13 batches some workers have passed the end of the loop: all end there.
    for at in (0, 3, 6, 9, 12, 13)[:6 if workers > 1 else 5]:
        loader = stateful(dataset(path), batch_size=None, num_workers=workers)
        begin = [batch for _, batch in zip(range(at), loader)]
        state = loader.state_dict()
        del loader
        other = stateful(dataset(path), batch_size=None, num_workers=workers)
        other.load_state_dict(state)
        assert seen(begin) + seen(other) == expected[0], at
        if workers == 0:
            assert seen(other) == expected[1]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_alone_know_where_they_are(lines, tmp_path, context):
    """What the process that began them would say is the beginning: that is never saved."""
    ds = dataset(lines)
    loader = DataLoader(ds, batch_size=None, num_workers=2, multiprocessing_context=context)
    assert ds.state_dict()["position"] == 0  # nothing is read yet
    batches = iter(loader)
    next(batches)
    with pytest.raises(RuntimeError, match="StatefulDataLoader.*num_workers=0"):
        ds.state_dict()
    assert len(list(batches)) == 12
    with weir.Checkpointer(tmp_path / "store", "run") as ck:
        with pytest.raises(RuntimeError, match="StatefulDataLoader"):
            ck.save(1, {}, loader=ds)
    for call in (ds.state_dict, ds.digests, pickle.loads(pickle.dumps(ds)).state_dict):
        with pytest.raises(RuntimeError, match="StatefulDataLoader"):
            call()
    ds.load_state_dict(dataset(lines).state_dict())
    assert ids(DataLoader(ds, batch_size=None)) == ids(dataset(lines))
    assert ds.state_dict()["position"] == 104


def test_states_of_workers_are_merged(lines):
    stateful = need("torchdata.stateful_dataloader").StatefulDataLoader
    whole = ids(dataset(lines))
    loader = stateful(dataset(lines), batch_size=None, num_workers=3)
    begin = [batch for _, batch in zip(range(5), loader)]
    states = weir.worker_states(loader.state_dict())
    ds = dataset(lines)
    ds.load_state_dict(states)
    assert ds.state_dict()["position"] == 40
    rest = list(ds)
    assert ids(begin + rest) == whole
    full = dataset(lines)
    ids(full)
    assert ds.digests() == full.digests()
    with pytest.raises(ValueError, match="worker"):
        dataset(lines).load_state_dict(states[1])


def test_states_of_workers_and_another_batch(lines):
    """A worker's position means something with the same steps only; all of them together do."""
    stateful = need("torchdata.stateful_dataloader").StatefulDataLoader

    def world(batch_size, ranks):
        return [dataset(lines, batch_size=batch_size, dp_rank=rank, dp_size=ranks)
                for rank in range(ranks)]
    whole = ids(dataset(lines, batch_size=16))
    loaders = [stateful(ds, batch_size=None, num_workers=2) for ds in world(8, 2)]
    begin = [[batch for _, batch in zip(range(3), loader)] for loader in loaders]
    begin = ids(batch for row in zip(*begin) for batch in row)
    states = [loader.state_dict() for loader in loaders]
    other = stateful(dataset(lines, batch_size=8), batch_size=None, num_workers=2)
    other.load_state_dict(states[0])
    with pytest.raises(ValueError, match="weir.worker_states"):
        list(other)
    same = stateful(dataset(lines, batch_size=16), batch_size=None, num_workers=2)
    same.load_state_dict(states[0])
    assert begin + ids(same) == whole
    ds = dataset(lines, batch_size=8)
    ds.load_state_dict([one for state in states for one in weir.worker_states(state)])
    full = dataset(lines)
    assert sorted(set(begin + ids(ds))) == sorted(set(ids(full))) == list(range(N))
    assert ds.digests()[0] == full.digests()[0]
    (alone,) = weir.worker_states(stateful(dataset(lines), batch_size=None).state_dict())
    assert alone["position"] == 0
    for bad in ({}, {"_snapshot": {"_worker_snapshots": {}}}, dataset(lines).state_dict()):
        with pytest.raises(ValueError, match="no state of a StatefulDataLoader"):
            weir.worker_states(bad)


def test_states_of_workers_that_are_old(lines):
    stateful = need("torchdata.stateful_dataloader").StatefulDataLoader
    loader = stateful(dataset(lines), batch_size=None, num_workers=2, snapshot_every_n_steps=4)
    for _ in zip(range(6), loader):
        pass
    with pytest.raises(ValueError, match="2 batches old.*snapshot_every_n_steps=1"):
        weir.worker_states(loader.state_dict())


def test_workers_in_a_checkpoint_of_another_world(lines, tmp_path):
    stateful = need("torchdata.stateful_dataloader").StatefulDataLoader
    ranks = [weir.Checkpointer(tmp_path / "store", "run", rank=rank, ranks=2, token="life 1")
             for rank in range(2)]
    loaders = [stateful(dataset(lines, batch_size=4, dp_rank=rank, dp_size=2), batch_size=None,
                        num_workers=2) for rank in range(2)]
    begin = [[batch for _, batch in zip(range(5), loader)] for loader in loaders]
    begin = ids(batch for row in zip(*begin) for batch in row)
    for save in [ck.save(1, {}, loader=loader) for ck, loader in zip(ranks, loaders)]:
        save.wait(timeout=300)
    for ck in ranks:
        ck.close()
    ds = dataset(lines)
    with weir.Checkpointer(tmp_path / "store", "run", rank=0, ranks=1) as ck:
        ds.load_state_dict(ck.load().loader)
    assert begin + ids(ds) == ids(dataset(lines))
    assert ds.digests()[0][0] == N


class Mesh:
    """As much of torch's DeviceMesh as is asked."""
    mesh_dim_names = ("dp_replicate", "dp_shard", "tp")
    ndim, sizes, at = 3, (2, 3, 4), (1, 2, 3)

    def size(self, dim):
        return self.sizes[dim]

    def get_local_rank(self, dim):
        return self.at[dim]


def test_ranks_of_a_mesh(lines):
    ds = dataset(lines, mesh=Mesh())
    assert (ds.dp_rank, ds.dp_size) == (5, 6)
    mesh = Mesh()
    mesh.mesh_dim_names = ("a", "b", "c")
    with pytest.raises(ValueError, match="data-parallel"):
        dataset(lines, mesh=mesh)


@pytest.mark.parametrize("name, place", [("dp", (2, 4)), (None, (2, 4)), ("tp", None),
                                         ("pp", None)])
def test_a_mesh_of_one_dimension(lines, name, place):
    """Along one that is not data-parallel all must get the same: that is not guessed."""
    mesh = Mesh()
    mesh.mesh_dim_names, mesh.ndim = name and (name,), 1
    mesh.sizes, mesh.at = (4,), (2,)
    if place:
        ds = dataset(lines, mesh=mesh)
        assert (ds.dp_rank, ds.dp_size) == place
    else:
        with pytest.raises(ValueError, match="dp_rank and dp_size"):
            dataset(lines, mesh=mesh)


def test_values_that_came_from_a_worker(lines):
    ds = dataset(lines, shuffle=False)
    here, = [batch["text"] for batch, _ in zip(ds, range(1))]
    there = next(iter(DataLoader(dataset(lines, shuffle=False), batch_size=None, num_workers=1,
                                 multiprocessing_context="fork")))["text"]
    assert there.tolist() == here.tolist() and len(there) == len(here)
    assert bytes(there.data) == bytes(here.data)
    assert there.offsets.tolist() == here.offsets.tolist()
    again = pickle.loads(pickle.dumps(there))
    assert again.tolist() == there.tolist() and bytes(again.data) == bytes(there.data)
    mixed, = weir.Dataset(mixed_lines(lines), batch_size=2, shuffle=False, epochs=1)
    sent = pickle.loads(pickle.dumps(mixed))
    assert sent["some"].tolist() == ["", None]  # which look alike where they lie
    with pytest.raises(ValueError, match="one by one"):
        sent["x"].data


def test_arrays_that_came_from_a_worker(lines):
    path = lines.parent / "arrays"
    path.mkdir()
    (path / "a.jsonl").write_text('{"x": [1, 2]}\n{"x": [3]}\n')
    for as_torch in False, True:
        here, = weir.Dataset(path, batch_size=2, shuffle=False, epochs=1, as_torch=as_torch)
        there = pickle.loads(pickle.dumps(here))["x"]
        assert there.data.tolist() == here["x"].data.tolist() == [1, 2, 3]
        assert there.offsets.tolist() == here["x"].offsets.tolist() == [0, 2, 3]
        assert torch.is_tensor(there.data) == torch.is_tensor(there[0]) == as_torch


def mixed_lines(lines):
    path = lines.parent / "mixed"
    path.mkdir()
    (path / "a.jsonl").write_text('{"x": 1, "some": ""}\n{"x": "one"}\n')
    return path


def test_torch_may_come_later(lines):
    """A DataLoader takes for samples by number what it does not know as iterable."""
    script = f"""
import weir
ds = weir.Dataset({str(lines)!r}, batch_size=8, shuffle=False)
from torch.utils.data import DataLoader, IterableDataset
assert isinstance(ds, IterableDataset) and isinstance(ds, weir.Dataset)
batches = list(DataLoader(ds, batch_size=None))
assert [int(i) for i in batches[0]["id"]] == list(range(8)), batches[0]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


class Lent:
    """Memory that stands in for pinned memory, which needs a GPU; it counts itself."""

    def __init__(self, monkeypatch):
        self.made = []
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr("weir.columns.Maker._memory", self.make)

    def make(self, size):
        memory = torch.full((size,), 0xAB, dtype=torch.uint8)
        self.made.append(weakref.ref(memory))
        return memory

    def alive(self):
        gc.collect()
        return sum(one() is not None for one in self.made)


def test_batches_are_made_in_memory_that_is_lent(lines, monkeypatch):
    expected = list(dataset(lines, as_torch=True, epochs=2))
    lent = Lent(monkeypatch)
    with dataset(lines, pin_memory=True, epochs=2) as ds:
        batches = list(ds)
    assert len(batches) == len(expected) == 26
    for batch, other in zip(batches, expected):
        assert torch.equal(batch["id"], other["id"])
        assert batch["text"].tolist() == other["text"].tolist()
        assert torch.equal(batch["text"].data, other["text"].data)
        assert torch.equal(batch["text"].offsets, other["text"].offsets)
    begins = [batch["id"].untyped_storage().data_ptr() for batch in batches]
    assert len(set(begins)) == len(begins)  # none is used again while it is held
    assert batches[0]["text"].data.untyped_storage().data_ptr() == begins[0]
    assert lent.alive() == len(batches)     # what was lent beyond those is gone with the loader
    kept = batches[3]["id"]
    values = kept.tolist()
    del batch, batches
    assert lent.alive() == 0 and kept.tolist() == values  # the storage stays, by torch's count


def test_lent_memory_is_bounded(lines, monkeypatch):
    lent = Lent(monkeypatch)
    with dataset(lines, pin_memory=True, prefetch=3) as ds:
        for _ in range(3):
            for _ in ds:
                assert lent.alive() <= 3 + 2  # prefetched, one more, and the one that is here


def test_what_has_no_gpu_says_that_it_pins_nothing(lines):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with dataset(lines, pin_memory=True) as ds, pytest.warns(UserWarning, match="no GPU"):
        assert torch.is_tensor(next(iter(ds))["id"])
