"""Datasets with numpy alone: batches, samples, loops, mixtures, bounds."""
import copy
import gzip
import json
import pickle
import random
import struct
import subprocess
import time
import warnings

import pytest
import weir
from weirdata import cache, N, files, lines, numbers, take, write_lines  # noqa: F401

np = pytest.importorskip("numpy")


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


def test_raw_samples(lines, files):
    """As they are stored; what a line of JSON is to its reader."""
    stored = [line.encode() for path in sorted(lines.iterdir())
              for line in path.read_text().splitlines()]
    with weir.Dataset(lines, batch_size=10, seed=3, raw=True) as ds:
        plain = weir.Dataset(lines, batch_size=10, seed=3)
        for batch, other in zip(ds, plain):
            assert list(batch) == ["raw"] and is_view(batch["raw"].data, batch)
            assert batch.numbers.tolist() == other.numbers.tolist()
            rows = batch["raw"].tolist()
            assert rows == [stored[number] for number in batch.numbers]
            assert [json.loads(row)["id"] for row in rows] == other["id"].tolist()
        assert ds.digests() == plain.digests()
        assert ds[7] == {"raw": stored[7]} and list(plain[7])[0] == "id"
        plain.load_state_dict(ds.state_dict())  # it is the same data, in the same order
    *_, last = weir.Dataset(lines, batch_size=17, dp_rank=2, dp_size=3, epochs=1, raw=True)
    assert list(last) == ["raw"] and last["raw"].tolist() == []
    assert weir.Dataset(files, format="files", raw=True)[49] == {"raw": bytes([47]) * 47}
    with pytest.raises(ValueError, match="fields=, or raw=True"):
        weir.Dataset(lines, raw=True, fields=["id"])
    with pytest.raises(ValueError, match="raw is True or False"):
        weir.Dataset(lines, raw="yes")


def test_raw_records_are_verified(lines, weir_bin, tmp_path):
    """Without the frame that TFRecord puts around them, which says whether they are whole."""
    packed = tmp_path / "records"
    subprocess.run([weir_bin, "data", "pack", lines, packed, "--format", "tfrecord"], check=True,
                   stdout=subprocess.DEVNULL)
    plain = tmp_path / "plain"  # of no seal
    plain.mkdir()
    file = plain / "a.tfrecord"
    content = bytearray((packed / "shard-000000.tfrecord").read_bytes())
    records, at = [], 0
    while at < len(content):
        size, = struct.unpack_from("<Q", content, at)
        records.append(bytes(content[at + 12:at + 12 + size]))
        at += 12 + size + 4
    file.write_bytes(content)
    with weir.Dataset(plain, batch_size=8, raw=True, epochs=1) as ds:
        assert ds.samples == len(records) == N
        for batch in ds:
            assert batch["raw"].tolist() == [records[number] for number in batch.numbers]
        assert ds[5]["raw"] == records[5]
    content[20] ^= 1  # within the first record
    file.write_bytes(content)
    with weir.Dataset(plain, batch_size=8, raw=True) as ds:
        with pytest.raises(OSError, match="wrong CRC"):
            list(ds)
        with pytest.raises(OSError, match="sample 0 .*wrong CRC"):
            ds[0]
        assert ds[5]["raw"] == records[5]


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


def test_a_dataset_twice(lines):
    """Each has a name of its own, and is drawn from by itself."""
    ds = weir.Dataset([lines, lines, lines], batch_size=10)
    assert ds.names == [str(lines), f"{lines} #2", f"{lines} #3"]
    for _ in ds:
        pass
    assert list(ds.digests()) == list(ds.info()) == ds.names
    assert sum(count for each in ds.digests().values() for count, _ in each.values()) == 310


def test_rank_of_the_environment(lines, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    ds = weir.Dataset(lines, batch_size=2)
    assert (ds.dp_rank, ds.dp_size) == (1, 4)
