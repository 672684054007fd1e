"""Datasets with numpy alone: batches, positions, states, mixtures, errors."""
import copy
import gzip
import json
import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
import weir

np = pytest.importorskip("numpy")

N = 103


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.mktemp("cache")))


def write_lines(path, first, count):
    with open(path, "w") as file:
        for i in range(first, first + count):
            row = {"id": i, "pair": [i, i + 1], "text": f"line {i}", "some": list(range(i % 4))}
            if i % 5 == 0:
                row["rare"] = "x" * (i % 7)
            file.write(json.dumps(row) + "\n")


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.mkdir()
    for k, first in enumerate(range(0, N, 20)):
        write_lines(path / f"{k:03}.jsonl", first, min(20, N - first))
    return path


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "files"
    for i in range(50):
        (path / f"class{i % 3}").mkdir(parents=True, exist_ok=True)
        (path / f"class{i % 3}" / f"{i:03}.bin").write_bytes(bytes([i]) * i)
    return path


def numbers(batches):
    return [int(number) for batch in batches for number in batch.numbers]


def take(ds, count):
    """So many batches, over as many loops as they need."""
    got = []
    while len(got) < count:
        got += [batch for _, batch in zip(range(count - len(got)), ds)]
    return got


def is_view(array, batch):
    """Of the batch's own memory."""
    array, memory = np.asarray(array), np.frombuffer(batch._place[0], "u1")
    return array.nbytes > 0 and np.shares_memory(array, memory)


def test_batches_have_columns(lines):
    with weir.Dataset(lines, batch_size=10, shuffle=False) as ds:
        batch = next(iter(ds))
        assert list(batch) == ["id", "pair", "text", "some", "rare"]
        assert batch["id"].tolist() == list(range(10)) and batch["id"].dtype == np.int64
        assert batch["text"].tolist() == [f"line {i}" for i in range(10)]
        assert batch["text"][3] == "line 3" and list(batch["text"]) == batch["text"].tolist()
        assert batch["rare"].tolist() == ["", *[None] * 4, "x" * 5, *[None] * 4]
        assert batch.numbers.tolist() == list(range(10)) and batch.position == 0
        assert set(batch.epochs) == {0} and batch.parts is None
        assert batch["id"].flags.writeable and batch["id"].ctypes.data % 64 == 0
        assert all(is_view(array, batch) for array in (
            batch["id"], batch["pair"], batch["text"].data, batch["some"][3],
            batch.numbers, batch.epochs))


def test_batches_can_be_copied_and_sent(lines):
    """Also before anybody has asked which samples they are of."""
    for send in (copy.copy, lambda batch: pickle.loads(pickle.dumps(batch))):
        with weir.Dataset(lines, batch_size=10, shuffle=False) as ds:
            batch = next(iter(ds))
        batch.note = "mine"
        other = send(batch)
        assert type(other) is type(batch) and other.keys() == batch.keys()
        assert other.position == 0 and other.parts is None and other.note == "mine"
        assert other.numbers.tolist() == list(range(10)) == batch.numbers.tolist()
        assert other.epochs.tolist() == [0] * 10 == batch.epochs.tolist()
        assert send(type(batch)({"a": 1})) == {"a": 1}  # as those who map over a batch make it


def test_ragged_bytes_share_memory(files):
    ds = weir.Dataset(files, format="files", batch_size=50, shuffle=False, fields=["data"])
    batch = next(iter(ds))
    column = batch["data"]
    order = sorted(range(50), key=lambda i: (i % 3, i))
    assert [bytes(value) for value in column] == [bytes([i]) * i for i in order]
    assert column.tolist() == [bytes([i]) * i for i in order]
    assert isinstance(column[-1], memoryview)
    assert is_view(column[-1], batch) and is_view(column.data, batch)
    assert column.offsets.tolist() == [0, *np.cumsum(order)]
    assert column.data.tobytes() == b"".join(column.tolist())
    assert [bytes(value) for value in column[2:40:3]] == [bytes([i]) * i for i in order[2:40:3]]
    assert column[48:60] == list(column)[48:] and column[9:3] == []
    assert column[np.int64(3)] == column[3]
    kept = column[7]
    del batch, column
    assert bytes(kept) == bytes([order[7]]) * order[7]
    with pytest.raises(IndexError):
        next(iter(ds))["data"][50]


def test_batches_as_lists(lines):
    ds = weir.Dataset(lines, batch_size=4, shuffle=False, collate="list")
    batch = next(iter(ds))
    assert batch["text"] == [f"line {i}" for i in range(4)]
    assert [int(value) for value in batch["id"]] == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        weir.Dataset(lines, collate="heap")


def test_starts_are_always_ragged(tmp_path):
    """However many documents begin in the samples of a batch: none, as many in each, or not."""
    tokens = np.ones(81, "<u2")
    tokens[[42, 52, 61, 63]] = 0  # in samples 4 and 5 one, in 6 two, in 7 none
    tokens.tofile(tmp_path / "train.bin")
    with weir.Dataset(tmp_path, format="tokens", seq_len=10, eot=0, batch_size=2,
                      shuffle=False, epochs=1) as ds:
        got = [batch["starts"] for batch in ds]
        assert {type(starts) for starts in got} == {weir.Ragged}
        assert [[list(one) for one in starts] for starts in got] == [
            [[], []], [[], []], [[3], [3]], [[2, 4], []]]
        assert {batch["tokens"].shape for batch in ds} == {(2, 11)}


def test_one_sample(lines):
    ds = weir.Dataset(lines)
    assert ds.samples == N
    assert ds[7]["id"] == 7 and ds[7]["text"] == "line 7" and "rare" not in ds[7]
    assert ds[-1]["id"] == N - 1
    for number in (N, -N - 1):
        with pytest.raises(IndexError):
            ds[number]
    array = ds[7]["pair"]
    array += 1  # it is ours
    assert array.tolist() == [8, 9] and ds[7]["pair"].tolist() == [7, 8]


def test_one_sample_of_some_fields(lines):
    ds = weir.Dataset(lines, fields=["rare", "id"])
    assert list(ds[5].items()) == [("rare", "x" * 5), ("id", 5)]
    assert list(ds[7].items()) == [("rare", None), ("id", 7)]


def test_loops_go_on_where_the_last_one_stopped(lines):
    ds = weir.Dataset(lines, batch_size=8, seed=1)
    assert len(ds) == 13  # the last batch runs over the end
    first, second = numbers(ds), numbers(ds)
    assert len(first) == 104 and len(second) == 104 and first != second
    assert sorted(first[:N]) != list(range(N))  # sorted by lane within a batch: over the end
    got = sorted(first + second)
    assert [got.count(i) for i in range(N)].count(2) >= N - 2
    for batch in ds:
        break
    rest = numbers(ds)
    assert len(rest) == 96  # what is left of the third epoch, without the batch before


def test_exact_epochs(lines):
    ds = weir.Dataset(lines, batch_size=8, epochs=1)
    assert len(ds) == 13
    for _ in range(3):
        got = numbers(ds)
        assert sorted(got) == list(range(N))
    two = weir.Dataset(lines, batch_size=8, epochs=2, shuffle=False)
    assert numbers(two) == [*range(N)] * 2
    with pytest.raises(ValueError):
        weir.Dataset(lines, epochs=0)


@pytest.mark.parametrize("batch_size, ranks", [(17, 3), (1, 104)])  # 104: one gets nothing at all
@pytest.mark.parametrize("fields", [None, ["text", "id"]])
def test_a_batch_of_no_samples_has_its_columns(lines, batch_size, ranks, fields):
    """Ranks of an exact epoch make the same number of steps, also those who get nothing at last."""
    def world(ranks_of, **options):
        return [list(weir.Dataset(lines, batch_size=batch_size, dp_rank=rank, dp_size=ranks,
                                  epochs=1, fields=fields, **options)) for rank in ranks_of]
    steps = -(-N // (batch_size * ranks))
    for shuffle in (True, False):
        first, *_, last = world(range(ranks) if ranks < 9 else (0, ranks - 1), shuffle=shuffle)
        assert len(first) == len(last) == steps
        empty = last[-1]
        assert len(empty.numbers) == 0 == len(empty.epochs)
        assert set(empty) >= set(fields or first[0]) and (not fields or list(empty) == fields)
        assert empty["id"].shape == (0,) and empty["id"].dtype == np.int64
        assert empty["text"].tolist() == list(empty["text"]) == [] and len(empty["text"]) == 0
        assert empty["text"].offsets.tolist() == [0] and len(empty["text"].data) == 0
        if not fields:
            assert empty["pair"].shape == (0, 2)
        again = pickle.loads(pickle.dumps(empty))
        assert list(again) == list(empty) and len(again["text"]) == 0 == len(again.numbers)
    (last,) = world([ranks - 1], collate="list")
    assert last[-1]["id"] == [] == last[-1]["text"]


@pytest.mark.parametrize("window", [None, 9, "full"])
def test_every_world_gets_the_same(lines, window):
    def world(ranks, loops=2):
        sets = [weir.Dataset(lines, batch_size=24 // ranks, seed=3, lanes=5, window=window,
                             dp_rank=rank, dp_size=ranks) for rank in range(ranks)]
        batches = [[batch for _ in range(loops) for batch in ds] for ds in sets]
        assert len({len(found) for found in batches}) == 1
        return numbers(batch for row in zip(*batches) for batch in row), sets
    one, (single,) = world(1)
    for ranks in (2, 3, 8):
        other, sets = world(ranks)
        assert one == other
        merged = weir.merge_states([ds.state_dict() for ds in sets])
        assert merged["parts"] == single.state_dict()["parts"]
        assert merged["position"] == single.state_dict()["position"]


def test_every_position_is_resumed(lines):
    def fresh():
        return weir.Dataset(lines, batch_size=6, seed=4, lanes=3, window=10)
    with fresh() as ds:
        whole = numbers([*ds, *ds])
        total = ds.digests()
    for at in range(36):
        with fresh() as ds:
            first = take(ds, at)
            state = json.loads(json.dumps(ds.state_dict()))
        assert state["position"] == 6 * at
        with fresh() as ds:
            ds.load_state_dict(state)
            assert numbers(first + take(ds, len(whole) // 6 - at)) == whole
            assert ds.digests() == total


def test_every_sample_is_resumed_by_any_world(tmp_path):
    """Batches of one sample, at every position of an epoch: by new ones, and by those that were
    there, which go on, and then go back."""
    count, path = 24, tmp_path / "few"
    path.mkdir()
    for first in (0, 11):
        write_lines(path / f"{first:02}.jsonl", first, count - 11 if first else 11)

    def world(ranks):
        return [weir.Dataset(path, seed=5, lanes=3, window=4, dp_rank=rank, dp_size=ranks)
                for rank in range(ranks)]

    def steps(sets, many):
        """What all ranks get in each; which of them has which is another matter."""
        return [sorted(numbers(row)) for row in zip(*[take(ds, many) for ds in sets])]

    def expected(begin, end, ranks):
        return [sorted(whole[i:i + ranks]) for i in range(begin, end - ranks + 1, ranks)]
    (one,) = world(1)
    end = 2 * count
    whole = [number for number, in steps([one], end)]
    assert sorted(whole[:count]) == [*range(count)] != whole[:count] != whole[count:]
    for before, after in (1, 1), (1, 2), (2, 1), (2, 2):
        for at in range(0, count + 1, before):
            first, second = world(before), world(after)
            assert steps(first, at // before) == expected(0, at, before)
            states = json.loads(json.dumps([ds.state_dict() for ds in first]))
            for ds in second:
                ds.load_state_dict(states)
            rest = steps(second, (end - at) // after)
            assert rest == expected(at, end, after)
            if at + len(rest) * after == end:
                merged = weir.merge_states([ds.state_dict() for ds in second])
                assert merged["parts"] == one.state_dict()["parts"]
            assert steps(first, (end - at) // before) == expected(at, end, before)
            for ds in first:
                ds.load_state_dict(states)
            assert steps(first, (end - at) // before) == expected(at, end, before)


def test_large_batches_are_the_same_bytes(tmp_path):
    """What does not fit a processor's cache is copied another way, and summed meanwhile."""
    values = [random.Random(i).randbytes(9000 + 37 * i) for i in range(60)]
    path = tmp_path / "raw"
    path.mkdir()
    for i, value in enumerate(values):
        (path / f"{i:03}.bin").write_bytes(value)
    digests = []
    for prefetch in (1, 32):  # of 9 samples of 10 KB each: the second is more than a cache
        with weir.Dataset(path, batch_size=9, prefetch=prefetch, shuffle=False,
                          format="files", epochs=1) as ds:
            got = [bytes(value) for batch in ds for value in batch["data"]]
            assert got == values
            digests.append(ds.digests())
    assert digests[0] == digests[1]


def test_the_world_may_change_in_an_epoch(lines):
    def sets(ranks):
        return [weir.Dataset(lines, batch_size=24 // ranks, seed=3, dp_rank=rank, dp_size=ranks)
                for rank in range(ranks)]
    (one,) = sets(1)
    whole = numbers(one)
    before = sets(3)
    begin = numbers(batch for row in zip(*[take(ds, 2) for ds in before])
                    for batch in row)
    states = [ds.state_dict() for ds in before]
    after = sets(8)
    for ds in after:
        ds.load_state_dict(states)
    rest = numbers(batch for row in zip(*after) for batch in row)
    assert begin + rest == whole
    merged = weir.merge_states([ds.state_dict() for ds in after])
    assert merged["parts"] == one.state_dict()["parts"]
    assert merged["parts"][0]["epochs"][0][1] == N


def test_the_last_epochs_are_told(tmp_path):
    """Also where a batch is several epochs, whose samples come in the order of lanes."""
    def world(ranks, batches, parts):
        sets = [weir.Dataset(parts, batch_size=48 // ranks, seed=1, lanes=8, dp_rank=rank,
                             dp_size=ranks) for rank in range(ranks)]
        for ds in sets:
            take(ds, batches)
        return sets
    for name, count in (("few", 5), ("some", 40)):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "a.jsonl", 0, count)
    for parts in ([tmp_path / "few"], [tmp_path / "few", tmp_path / "some"]):
        (one,) = world(1, 20, parts)
        told = one.state_dict()["parts"]
        for part in told[:1]:
            *ended, (last, _, _) = part["epochs"]
            assert [epoch for epoch, _, _ in part["epochs"]] == list(range(last - 7, last + 1))
            assert {(count, digest) for _, count, digest in ended} == {(5, ended[0][2])}
        for ranks in (2, 3, 8):
            for sets in (world(ranks, 20, parts), world(ranks, 7, parts)):
                merged = weir.merge_states([ds.state_dict() for ds in sets])
                if sets[0].state_dict()["position"] == one.state_dict()["position"]:
                    assert merged["parts"] == told
                    continue
                after = weir.Dataset(parts, batch_size=48, seed=1)  # goes on alone
                after.load_state_dict(merged)
                take(after, 13)
                assert after.state_dict()["parts"] == told


def test_a_state_is_whole_at_any_time(lines, tmp_path):
    """Also before anything was read, of a new dataset and of one that goes on."""
    (tmp_path / "more").mkdir()
    write_lines(tmp_path / "more/a.jsonl", 1000, 40)

    def single(**options):
        return weir.Dataset(lines, batch_size=6, seed=4, **options)

    def mix(**options):
        return weir.Mixture({"l": (lines, 3), "m": (tmp_path / "more", 1)}, batch_size=6, seed=4,
                            **options)
    for make in (single, mix):
        ds = make(lanes=3, window=10)
        fresh = ds.state_dict()
        assert ds.stats() == {}  # nothing is kept open for that
        assert [(part["lanes"], part["window"]) for part in fresh["parts"]] == \
            [(3, 10)] * len(fresh["parts"])
        whole = numbers(take(ds, 17))
        for state in (fresh, make(lanes=3, window=10).state_dict()):
            other = make()
            other.load_state_dict(state)
            assert numbers(take(other, 17)) == whole
        ds = make(lanes=3, window=10)
        take(ds, 5)
        state = ds.state_dict()
        for _ in range(3):  # lives that end before their first batch
            state = json.loads(json.dumps(state))
            other = make()
            other.load_state_dict(state)
            assert other.state_dict() == state
            state = other.state_dict()
        assert numbers(take(other, 12)) == whole[30:]
        defaults = make().state_dict()
        ds = make()
        take(ds, 1)
        assert [(part["lanes"], part["window"]) for part in ds.state_dict()["parts"]] == \
            [(part["lanes"], part["window"]) for part in defaults["parts"]]


def test_the_state_of_a_worker_is_whole_at_any_time(lines, monkeypatch):
    """With the end of the loop that goes on, until another one is loaded."""
    monkeypatch.setattr("weir.data._worker", lambda: (1, 2))
    ds = weir.Dataset(lines, batch_size=6)
    fresh = ds.state_dict()
    loop = iter(ds)
    next(loop), next(loop)
    state = ds.state_dict()
    assert fresh["worker"] == [1, 2, None] and state["worker"] == [1, 2, N]
    other = weir.Dataset(lines, batch_size=6)
    other.load_state_dict(state)
    assert other.state_dict() == state
    ds.load_state_dict(fresh)
    assert ds.state_dict() == fresh


def test_an_order_that_cannot_go_on_is_never_read(lines, tmp_path):
    """Windows of a mixture's parts are by default each its own: others cannot be asked for."""
    (tmp_path / "more").mkdir()
    write_lines(tmp_path / "more/a.jsonl", 1000, 40)
    ds = weir.Dataset([lines, tmp_path / "more"], batch_size=6)
    state = ds.state_dict()
    state["parts"][0]["window"], state["parts"][1]["window"] = 5, 6
    ds.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(ValueError, match="window of 5, not"):
            next(iter(ds))
    assert ds.state_dict()["parts"] == state["parts"]


def test_states_that_do_not_fit(lines, files):
    ds = weir.Dataset(lines, batch_size=8, seed=1, lanes=4)
    next(iter(ds))
    state = ds.state_dict()
    with pytest.raises(ValueError, match="other data"):
        weir.Dataset(files, format="files", seed=1).load_state_dict(state)
    with pytest.raises(ValueError, match="seed=1"):
        weir.Dataset(lines, seed=2).load_state_dict(state)
    with pytest.raises(ValueError, match="lanes=4"):
        weir.Dataset(lines, seed=1, lanes=5).load_state_dict(state)
    with pytest.raises(ValueError, match="no state"):
        ds.load_state_dict({})
    with pytest.raises(ValueError, match="there are 2"):
        weir.merge_states([{**state, "dp_size": 2}])
    ok = weir.Dataset(lines, seed=1)  # whatever the defaults are
    ok.load_state_dict(state)
    assert next(iter(ok)).position == 8 and ok.state_dict()["parts"][0]["lanes"] == 4


def test_position_in_a_checkpoint(lines, tmp_path):
    ds = weir.Dataset(lines, batch_size=8, seed=1)
    whole = numbers(weir.Dataset(lines, batch_size=8, seed=1))
    with weir.Checkpointer(tmp_path / "store", "run") as ck:
        begin = take(ds, 4)
        ck.save(4, {"w": np.zeros(3)}, loader=ds.state_dict(), wait=True)
        loaded = ck.load()
    other = weir.Dataset(lines, batch_size=8, seed=1)
    other.load_state_dict(loaded.loader)
    assert numbers(begin) + numbers(other) == whole


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_digests_in_a_checkpoint(lines, tmp_path, before, after):
    """Whatever the world was: each epoch is counted whole, and nobody is warned of anything."""
    def world(ranks):
        return [weir.Dataset(lines, batch_size=12 // ranks, seed=1, dp_rank=rank, dp_size=ranks)
                for rank in range(ranks)]

    def ranks_of(count, token):
        return [weir.Checkpointer(tmp_path / "store", "run", rank=rank, ranks=count, token=token)
                for rank in range(count)]
    (one,) = world(1)
    whole = numbers(one)
    first = world(before)
    begin = [batch for row in zip(*[take(ds, 4) for ds in first]) for batch in row]
    saving = ranks_of(before, "life 1")
    for save in [ck.save(1, {}, loader=ds.state_dict()) for ck, ds in zip(saving, first)]:
        save.wait(timeout=300)
    for ck in saving:
        ck.close()
    second = world(after)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ck, ds in zip(ranks_of(after, "life 2"), second):
            ds.load_state_dict(ck.load().loader)
            ck.close()
    rest = [batch for row in zip(*[list(ds) for ds in second]) for batch in row]
    assert numbers(begin + rest) == whole
    merged = weir.merge_states([ds.state_dict() for ds in second])
    assert merged["parts"] == one.state_dict()["parts"]
    assert merged["parts"][0]["epochs"][0][1] == N


def test_digests_where_ranks_get_the_same(lines, tmp_path):
    """As many ranks as before, but now they are of one tensor-parallel group."""
    sets = [weir.Dataset(lines, batch_size=8, dp_rank=rank, dp_size=2) for rank in range(2)]
    ranks = [weir.Checkpointer(tmp_path / "store", "run", rank=rank, ranks=2, token="life 1")
             for rank in range(2)]
    for ds in sets:
        take(ds, 3)
    for save in [ck.save(3, {}, loader=ds) for ck, ds in zip(ranks, sets)]:
        save.wait(timeout=300)
    digests = []
    for ck in ranks:
        ds = weir.Dataset(lines, batch_size=16, dp_rank=0, dp_size=1)
        with pytest.warns(UserWarning, match="digests begin anew"):
            ds.load_state_dict(ck.load().loader)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ck.loaders() == ck.loaders(3)
            ds.load_state_dict(ck.loaders(3))
        take(ds, 4)
        digests.append(ds.digests())
    whole = weir.Dataset(lines, batch_size=16)
    take(whole, 7)
    assert digests == [whole.digests()] * 2 and digests[0][0][0] == N
    ranks[0].save(4, {}, loader={"at": 4})
    ranks[1].save(4, {}, loader={"at": 4}).wait(timeout=300)
    assert ranks[0].loaders(4) == []  # of another kind
    for ck in ranks:
        ck.close()


def test_counts_that_are_left_behind_are_told(lines):
    """The state of one rank of several says where they are, and not what the others had."""
    sets = [weir.Dataset(lines, batch_size=8, dp_rank=rank, dp_size=2) for rank in range(2)]
    for ds in sets:
        take(ds, 3)
    other = weir.Dataset(lines, batch_size=8)
    with pytest.warns(UserWarning, match="rank 0 of 2, and is loaded by 1: digests begin anew"):
        other.load_state_dict(sets[0].state_dict())
    assert other.state_dict()["position"] == 48 and other.digests() == {}
    pair = [weir.Dataset(lines, batch_size=8, dp_rank=rank, dp_size=2) for rank in range(2)]
    take(other, 2)
    for ds in pair:  # of one that was alone, its state is all there is
        ds.load_state_dict(other.state_dict())
    assert [ds.digests() for ds in pair] == [other.digests(), {}]


def test_mixture(lines, files, tmp_path):
    def mix(ranks=1, rank=0):
        return weir.Mixture({"l": (lines, 3), "m": (tmp_path / "more", 1)}, seed=2,
                            batch_size=16 // ranks, dp_rank=rank, dp_size=ranks)
    (tmp_path / "more").mkdir()
    write_lines(tmp_path / "more/a.jsonl", 1000, 40)
    ds = mix()
    batches = take(ds, 100)
    parts = np.concatenate([batch.parts for batch in batches])
    assert abs((parts == 0).mean() - 0.75) < 0.01
    ids = np.concatenate([batch["id"] for batch in batches])
    assert ((ids >= 1000) == (parts == 1)).all()
    for name, size in (("l", N), ("m", 40)):
        *ended, (last, _) = ds.digests()[name].values()
        assert len(set(ended)) == 1 and ended[0][0] == size >= last
    two = [mix(2, rank) for rank in range(2)]
    pairs = [batch for row in zip(*two) for batch in row]
    assert numbers(pairs) == numbers(batches[:len(pairs) // 2])
    state = ds.state_dict()
    again = mix()
    again.load_state_dict(state)
    assert numbers(again) == numbers(ds)
    with pytest.raises(TypeError):
        ds[0]
    with pytest.raises(ValueError):
        weir.Dataset([lines, files], weights=[1])
    with pytest.raises(ValueError):
        weir.Dataset([lines, lines], weights=[0, 0])


def test_a_mixture_goes_on_with_its_weights_only(lines, tmp_path):
    """With others its positions are other samples: some would come twice, and some never."""
    def mix(*weights, rank=0):
        return weir.Dataset([lines, tmp_path / "more"], weights=weights, batch_size=8, seed=2,
                            dp_rank=rank, dp_size=2)
    (tmp_path / "more").mkdir()
    write_lines(tmp_path / "more/a.jsonl", 1000, 40)
    ds = mix(3, 1)
    take(ds, 5)
    state = json.loads(json.dumps(ds.state_dict()))
    with pytest.raises(ValueError, match="weights 0.75 : 0.25, .* opened with 0.5 : 0.5"):
        mix(1, 1).load_state_dict(state)
    same = mix(0.75, 0.25)
    same.load_state_dict(state)
    assert numbers(same) == numbers(ds)
    other = mix(1, 1, rank=1)
    take(other, 5)
    with pytest.raises(ValueError, match="weights"):
        weir.merge_states([state, other.state_dict()])
    alone = weir.Dataset([lines], weights=[2], seed=2)  # of one there is nothing to weigh
    alone.load_state_dict(weir.Dataset(lines, seed=2).state_dict())


def test_damage_is_named_where_it_stands(lines):
    ds = weir.Dataset(lines, batch_size=1, shuffle=False)
    assert ds.info()["samples"] == N  # indexed, and then spoiled
    path = lines / "001.jsonl"
    stat, data = path.stat(), bytearray(path.read_bytes())
    at = data.index(b'"line 25"')
    data[at:at + 2] = b"\xff\xff"
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    got = []
    with pytest.raises(weir.DamagedError, match=r"sample 25 of .*number 5 in '001.jsonl'"):
        for batch in ds:
            got.append(batch)
    assert numbers(got) == list(range(25))
    assert ds.state_dict()["position"] == 25
    with pytest.raises(weir.DamagedError):
        next(iter(ds))


def test_bounds(lines):
    with pytest.raises(OSError, match="memory"):
        next(iter(weir.Dataset(lines, batch_size=8, memory=1000)))
    ds = weir.Dataset(lines, batch_size=8, memory=4 << 20, threads=1, prefetch=2)
    for _ in ds:
        assert ds.stats()["memory_bytes"] <= 4 << 20
    stats = ds.stats()
    assert stats["samples"] == 104 and stats["threads"] == 1
    waited = stats["stall_read_s"] + stats["stall_decode_s"] + stats["stall_queue_s"]
    assert (waited > 0) == (stats["stalls"] > 0)
    assert sum(count for _, count in stats["read_sizes"]) == stats["reads"] > 0
    ways = [stats[f"{way}_bytes"] for way in ("cached", "buffered", "direct")]
    assert sum(ways) >= stats["read_bytes"] > 0


def waits(url, **options):
    """What one thread was waited for, in seconds."""
    with weir.Dataset(url, threads=1, prefetch=1, epochs=4, **options) as ds:
        for _ in ds:
            pass
        stats = ds.stats()
    assert stats["stalls"] > 0
    return [stats[f"stall_{cause}_s"] for cause in ("read", "decode", "queue")]


def test_what_is_waited_for(tmp_path):
    """Reads that take a while; a shard that is decompressed; room for the next batch, which is not
    planned before the one before it is delivered: of so many samples there is one at a time."""
    for name in "tokens", "packed":
        (tmp_path / name).mkdir()
    (tmp_path / "tokens/train.bin").write_bytes(bytes(600002))
    with gzip.open(tmp_path / "packed/a.jsonl.gz", "wt", 1) as file:
        file.writelines(json.dumps({"id": i, "text": "x" * 4000}) + "\n" for i in range(5000))
    read, _, _ = waits(f"file://{tmp_path}/tokens?fault_ops=read&fault_delay=20ms", seq_len=999,
                       batch_size=32, shuffle=False)
    assert read > 0
    read, decode, _ = waits(tmp_path / "packed", batch_size=32)
    assert read == 0 < decode
    _, _, queue = waits(tmp_path / "tokens", seq_len=1, batch_size=150000)
    assert queue > 0


def test_kept_batches_are_not_written_over(lines):
    ds = weir.Dataset(lines, batch_size=8, shuffle=False, memory=4 << 20)
    kept = take(ds, 65)
    ds.close()
    assert [int(i) for batch in kept for i in batch["id"]] == [i % N for i in range(65 * 8)]


def test_closed_and_copied(lines):
    ds = weir.Dataset(lines, batch_size=8, seed=1)
    whole, second = numbers(ds), numbers(weir.Dataset(lines, batch_size=8, seed=1))
    assert whole == second
    between = ds.state_dict()
    for send in copy.copy, copy.deepcopy, lambda ds: pickle.loads(pickle.dumps(ds)):
        other = send(ds)
        assert other.state_dict() == between == ds.state_dict()
        assert numbers(other) == numbers(send(ds))  # of its own: the first moves neither
        assert ds.state_dict() == between and other.digests()[0] == ds.digests()[0]
    loop = iter(ds)
    next(loop)
    assert ds.state_dict() != between == copy.copy(ds).state_dict()  # where the loop began
    del loop
    assert copy.copy(ds).state_dict() == ds.state_dict() != between  # where the next one would
    ds.close()
    with pytest.raises(ValueError):
        next(iter(ds))


def test_batches_of_a_loop(lines):
    """As many from its first batch to its last, and what is left of one that was stopped."""
    ds = weir.Dataset(lines, batch_size=8)
    assert [len(ds) for _ in ds] == [13] * 13 and len(ds) == 13
    for _ in zip(range(3), ds):
        assert len(ds) == 13
    assert len(ds) == 10 and [len(ds) for _ in ds] == [10] * 10
    other, one = iter(ds), iter(ds)
    next(other), next(one)
    assert len(ds) == 12  # the last that began
    del other
    assert len(ds) == 12
    del one
    assert len(ds) == 11


def test_loops_within_loops(lines):
    """Copies begin where the next loop would, whichever ended last, and whoever loaded a state."""
    ds = dataset8(lines)
    for k, batch in enumerate(ds):
        if k == 0:
            for _ in ds:
                break
        if k == 6:
            break
    assert batch.position == 7 * 8 and ds.state_dict()["position"] == 64
    assert copy.copy(ds).state_dict() == ds.state_dict()
    start = dataset8(lines).state_dict()
    for k, batch in enumerate(ds):
        if k == 2:
            ds.load_state_dict(start)
    assert batch.position == 96 and ds.state_dict()["position"] == 104
    assert copy.copy(ds).state_dict() == ds.state_dict() and copy.copy(ds).digests() == ds.digests()


def dataset8(lines):
    return weir.Dataset(lines, batch_size=8, seed=1)


def test_a_mixture_of_one(lines):
    """It is the dataset: a state of the one says the same of the other."""
    whole = numbers(dataset8(lines))
    for one in weir.Mixture({"only": (lines, 3)}, batch_size=8, seed=1), \
            weir.Dataset(lines, weights=[2], batch_size=8, seed=1):
        got = numbers(take(one, 5))
        other = dataset8(lines)
        other.load_state_dict(one.state_dict())
        assert got + numbers(other) == whole


@pytest.mark.parametrize("key, value", [
    ("position", -1), ("position", "x"), ("position", 1.5), ("position", 1 << 64), ("dp_size", 0),
    ("position", True), ("dp_rank", "0"), ("batch_size", None), ("seed", None), ("shuffle", 1),
    ("parts", [{}]), ("parts", []), ("parts", None), ("worker", 3), ("worker", [2, 2, None]),
    ("weights", 5)])
def test_states_that_are_damaged(lines, key, value):
    """They change nothing."""
    ds = dataset8(lines)
    state = next(iter(ds)) and ds.state_dict()
    for bad in {**state, key: value}, [{**state, key: value}]:
        with pytest.raises(ValueError, match=f"damaged one: its {key} is "):
            ds.load_state_dict(bad)
    for name, wrong in ("lanes", "a"), ("window", -1), ("epochs", [[0, 1]]), ("digest", 5):
        part = {**state["parts"][0], name: wrong}
        with pytest.raises(ValueError, match="damaged one: its parts"):
            ds.load_state_dict({**state, "parts": [part]})
    assert ds.state_dict() == state and next(iter(ds)).position == 8


def test_none_among_values_that_were_sent(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (
        {"text": "a", "array": [1, 2], "json": {}}, {}, {"text": "", "array": [3], "json": [{}]},
        {"text": "bc", "array": [4, 5, 6]})))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, = weir.Dataset(tmp_path, batch_size=4, shuffle=False, epochs=1,
                             fields=["text", "array", "json", "nothing"])
    there = pickle.loads(pickle.dumps(copy.deepcopy(here)))
    assert there["text"].tolist() == here["text"].tolist() == ["a", None, "", "bc"]
    assert [value is None or value.tolist() for value in there["array"]] == \
        [[1, 2], True, [3], [4, 5, 6]]
    for name in here:
        assert there[name].data.tolist() == here[name].data.tolist()
        assert there[name].offsets.tolist() == here[name].offsets.tolist()
    assert there["nothing"].tolist() == [None] * 4 == here["nothing"].tolist()


def _child(ds, queue):
    queue.put((ds.state_dict(), len(ds), numbers(ds), ds.digests()))


@pytest.mark.parametrize("under_way", [True, False])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_a_child(lines, method, under_way):
    """It begins where the loop did that is under way, or where the next one would."""
    context = multiprocessing.get_context(method)
    ds = weir.Dataset(lines, batch_size=8, seed=1)
    expected = weir.Dataset(lines, batch_size=8, seed=1)
    for each in ds, expected:
        for _ in zip(range(17), (batch for _ in range(2) for batch in each)):
            pass
    if under_way:
        loop = iter(ds)
        next(loop)
    queue = context.Queue()
    child = context.Process(target=_child, args=(ds, queue))
    child.start()
    got = queue.get(timeout=300)
    child.join()
    assert got == (expected.state_dict(), len(expected), numbers(expected), expected.digests())
    list(loop if under_way else ds)
    assert ds.digests() == expected.digests()


def test_errors(lines, tmp_path):
    with pytest.raises(FileNotFoundError):
        weir.Dataset(tmp_path / "nothing")
    with pytest.raises(OSError, match="format"):
        weir.Dataset(lines, format="parquet")
    with pytest.warns(UserWarning, match="has the field texts") as warned:
        next(iter(weir.Dataset(lines, fields=["texts"])))
    assert warned[0].filename == __file__
    for bad in (dict(dp_rank=2, dp_size=2), dict(dp_rank=1), dict(dp_rank=0, dp_size=1, mesh=1)):
        with pytest.raises(ValueError):
            weir.Dataset(lines, **bad)


@pytest.mark.parametrize("name, value", [
    ("window", "all"), ("window", -1), ("window", 2.5), ("lanes", -1), ("lanes", 1 << 32),
    ("seed", -1), ("batch_size", 0), ("batch_size", "8"), ("threads", -1), ("prefetch", -1),
    ("threads", 100000), ("prefetch", 100000),
    ("memory", -1), ("epochs", -1), ("epochs", 1.5), ("epochs", True), ("batch_size", True)])
def test_options_that_are_no_numbers(lines, name, value):
    with pytest.raises(ValueError, match=f"^{name} is a whole number from .*not {value!r}"):
        weir.Dataset(lines, **{name: value})


def test_options_that_are_taken(lines):
    with pytest.raises(TypeError, match=r"give \['text'\]"):
        weir.Dataset(lines, fields="text")
    with pytest.raises(ValueError, match="'full' or None"):
        weir.Dataset(lines, window="all")
    ds = weir.Dataset(lines, fields=("text",), lanes=np.int64(4), batch_size=np.int32(3))
    assert list(next(iter(ds))) == ["text"]
    json.dumps(ds.state_dict())


@pytest.mark.parametrize("name", ["shuffle", "buffered", "as_torch", "pin_memory"])
def test_options_that_are_neither_yes_nor_no(lines, name):
    for value in "no", 2, [], b"", np.array([1, 0]):
        said = f"^{name} is True or False, not {re.escape(repr(value))}"
        with pytest.raises(ValueError, match=said):
            weir.Dataset(lines, **{name: value})
    if name in ("shuffle", "buffered"):
        weir.Dataset(lines, **{name: np.bool_(False)})


def test_arguments_of_another_kind(lines):
    class Bytes:
        def __fspath__(self):
            return os.fsencode(lines)

    for bad in Bytes(), [Bytes()]:
        with pytest.raises(TypeError, match="^url is text, not"):
            weir.Dataset(bad)
    for fields in 5, [["id"]], [], ["id", "id"]:
        with pytest.raises(ValueError, match="^fields are names, each once, not "):
            weir.Dataset(lines, fields=fields)
    for weights in "12", [0, 1], 5, []:
        with pytest.raises(ValueError, match="^weights are numbers above 0, not "):
            weir.Dataset([lines, lines], weights=weights)
    with pytest.raises(ValueError, match="^2 datasets and 1 weights"):
        weir.Dataset([lines, lines], weights=[1])
    with pytest.raises(ValueError, match="^seq_len is given twice: 4, and 5 in options"):
        weir.Dataset(lines, options={"seq_len": 5}, seq_len=4)
    with pytest.raises(ValueError, match="give verify_key=, too"):
        weir.Dataset(lines, proof="/nothing")
    for url in [], 5, None, [5], {}:
        with pytest.raises(TypeError, match="^url is where a dataset is"):
            weir.Dataset(url)
    for parts in {"a": lines}, {"a": (lines,)}, [lines], {}, None, {0: (lines, 1)}:
        with pytest.raises(TypeError, match="^a Mixture is of {name: .url, weight.}"):
            weir.Mixture(parts)
    with pytest.raises(TypeError, match="^options is a dict"):
        weir.Dataset(lines, options="seq_len=4")
    with pytest.raises(TypeError, match="^mesh is a DeviceMesh"):
        weir.Dataset(lines, mesh=5)
    with pytest.raises(TypeError, match="^progress is a function"):
        weir.Dataset(lines, progress=5)
    with pytest.raises(TypeError):
        weir.Dataset(lines, verify_key=2)  # no file descriptor
    for weight in "x", None, -1, 0, float("nan"), float("inf"):
        with pytest.raises(ValueError, match="^weights are numbers above 0, not "):
            weir.Mixture({"a": (lines, weight)})
    ds = weir.Dataset(lines)
    assert repr(ds) == f"<weir.Dataset of {lines}: {N} samples, batches of 1, rank 0 of 1>"
    for state in None, "state", 5:
        with pytest.raises(TypeError, match="^a state is what state_dict"):
            ds.load_state_dict(state)
    for state in {}, [None], [{}], [ds.state_dict(), {"weir": 1}]:
        with pytest.raises(ValueError, match="no state of a weir.Dataset"):
            ds.load_state_dict(state)


def test_a_dataset_twice(lines):
    """Each has a name of its own, and is drawn from by itself."""
    ds = weir.Dataset([lines, lines, lines], batch_size=10)
    assert ds.names == [str(lines), f"{lines} #2", f"{lines} #3"]
    for _ in ds:
        pass
    assert list(ds.digests()) == list(ds.info()) == ds.names
    assert sum(count for each in ds.digests().values() for count, _ in each.values()) == 310


def test_a_field_that_not_all_have(tmp_path):
    """Batches without it have a column of None, which is told of the first one: a name may be
    misspelt. The first half of the data is without."""
    path = tmp_path / "some"
    path.mkdir()
    (path / "a.jsonl").write_text("".join(
        json.dumps({"id": i, **({"opt": i} if i >= 50 else {})}) + "\n" for i in range(100)))
    ds = weir.Dataset(path, batch_size=10, shuffle=False, fields=["id", "opt"])
    with pytest.warns(UserWarning, match="no sample of the first batch has the field opt: "):
        batches = list(ds)
    assert [value for batch in batches[:5] for value in batch["opt"].tolist()] == [None] * 50
    assert [int(x) for batch in batches[5:] for x in batch["opt"]] == list(range(50, 100))
    assert all(isinstance(batch["id"], np.ndarray) for batch in batches)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(weir.Dataset(path, batch_size=100, shuffle=False, fields=["id", "opt"]))


@pytest.mark.parametrize("fields", [[], ["id", "id"], [3]])
def test_fields_that_are_none(lines, fields):
    with pytest.raises(ValueError, match="fields are names, each once"):
        weir.Dataset(lines, fields=fields)


def test_calls_that_cannot_be(lines):
    ds = weir.Dataset(lines)
    for number in slice(1, 3), "a", 1.0:
        with pytest.raises(TypeError, match="a sample has a number"):
            ds[number]
    assert ds[np.int64(3)]["id"] == ds[3]["id"]
    for bad in dict(dp_rank="0", dp_size=2), dict(dp_rank=0.0, dp_size=2), \
            dict(dp_rank=0, dp_size=1 << 40):
        with pytest.raises(ValueError, match="dp_rank|no rank"):
            weir.Dataset(lines, **bad)
    for state in {"weir": 1}, {}, {**ds.state_dict(), "weir": 2}:
        with pytest.raises(ValueError, match="no state of a weir.Dataset"):
            ds.load_state_dict(state)


def test_what_a_progress_function_raises(lines, tmp_path):
    def broken(more, total):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        weir.Dataset(lines, progress=broken, cache=tmp_path / "fresh")


def test_rank_of_the_environment(lines, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    ds = weir.Dataset(lines, batch_size=2)
    assert (ds.dp_rank, ds.dp_size) == (1, 4)


def test_ctrl_c(tmp_path, lines):
    """Within a loop that waits for ever, as on storage that does not answer."""
    script = textwrap.dedent("""
        import signal, sys, numpy, weir  # numpy: its import hides an interrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job may ignore it
        ds = weir.Dataset(sys.argv[1], batch_size=1 << 13, prefetch=1)
        print("ready", flush=True)
        while True:
            for batch in ds:
                pass
    """)
    run = subprocess.Popen([sys.executable, "-c", script, str(lines)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, env=os.environ)
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in run.communicate(timeout=120)[1]


def test_only_what_was_signed_is_read(lines, tmp_path, weir_bin):
    """One changed byte is refused where it is; so are another key and a file that was added."""
    def run(*args):
        subprocess.run(args, check=True, stdout=subprocess.DEVNULL)

    for name in ("key", "other"):
        run("openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / f"{name}.pem")
        run("openssl", "pkey", "-in", tmp_path / f"{name}.pem", "-pubout", "-out",
            tmp_path / f"{name}.pub")
    with pytest.raises(OSError, match="no manifest"):
        weir.Dataset(lines, verify_key=tmp_path / "key.pub")
    run(weir_bin, "data", "manifest", lines)
    run(weir_bin, "data", "sign", lines, "--key", tmp_path / "key.pem")
    with pytest.raises(OSError, match="another key"):
        weir.Dataset(lines, verify_key=tmp_path / "other.pub")
    with weir.Dataset(lines, shuffle=False, verify_key=tmp_path / "key.pub") as ds:
        assert [int(batch["id"][0]) for batch in ds] == list(range(N))
    shard = lines / "002.jsonl"
    times = shard.stat().st_mtime_ns
    shard.write_text(shard.read_text().replace("line 41", "line 14"))
    os.utime(shard, ns=(times, times))  # as one does who wants it to go unnoticed
    with weir.Dataset(lines, shuffle=False, verify_key=tmp_path / "key.pub") as ds:
        seen = []
        with pytest.raises(OSError, match="not what was signed"):
            for batch in ds:
                seen.append(int(batch["id"][0]))
        assert seen == list(range(40))


def test_a_dataset_without_samples(tmp_path):
    (tmp_path / "d0").mkdir()
    (tmp_path / "d0/a.jsonl").write_text("")
    with pytest.raises(ValueError, match="d0' has no samples"):
        weir.Dataset(tmp_path / "d0")


def test_a_path_of_any_bytes(tmp_path):
    """Names are bytes to Linux: one that is no UTF-8 is opened, and is readable in an error."""
    path = os.path.join(tmp_path, os.fsdecode(b"nud\xff"))
    os.mkdir(path)
    write_lines(os.path.join(path, "a.jsonl"), 0, 5)
    cache = os.path.join(tmp_path, os.fsdecode(b"cache\xfe"))
    with weir.Dataset(path, cache=cache) as data:
        assert data.samples == 5 and data[3]["id"] == 3 and len(list(data)) == 5
        assert data.info()["url"] == path and data.info()["index"].startswith(cache)
        pickle.loads(pickle.dumps(data)).close()
    with pytest.raises(FileNotFoundError, match=r"nowhere\\xff"):
        weir.Dataset(os.path.join(tmp_path, os.fsdecode(b"nowhere\xff")))


def test_a_large_sample_of_a_small_file(tmp_path):
    (tmp_path / "d").mkdir()
    with gzip.open(tmp_path / "d/a.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": 1}) + "\n" + json.dumps({"id": "2" * 2000000}) + "\n")
    with weir.Dataset(tmp_path / "d", memory=1 << 20) as data:
        assert data[0]["id"] == 1
        with pytest.raises(OSError, match="1048576 are allowed: allow more memory"):
            data[1]
    with weir.Dataset(tmp_path / "d") as data:
        assert len(data[1]["id"]) == 2000000
