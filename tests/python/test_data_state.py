"""Where a dataset is: states, in checkpoints too, other worlds, copies, and child processes."""
import copy
import json
import multiprocessing
import pickle
import warnings

import pytest
import weir
from weirdata import cache, N, files, lines, numbers, take, write_lines  # noqa: F401

np = pytest.importorskip("numpy")


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


def test_a_state_is_a_few_numbers(tmp_path):
    """However much there is, and however much of it was read."""
    sizes = []
    for samples, epochs in ((10, 1), (10, 9), (10, 40), (5000, 9)):
        path = tmp_path / f"{samples}-{epochs}"
        path.mkdir()
        write_lines(path / "a.jsonl", 0, samples)
        with weir.Dataset(path, batch_size=5, seed=1) as ds:
            for _ in range(epochs):
                for batch in ds:
                    pass
            sizes.append(len(json.dumps(ds.state_dict())))
    assert max(sizes) < 2000
    assert max(sizes[1:]) < min(sizes[1:]) + 50  # the last eight epochs, and digits


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
