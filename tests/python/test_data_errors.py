"""What a dataset refuses, and how it says so: arguments, damage, what nobody signed, Ctrl-C."""
import gzip
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
import weir
from weirdata import cache, N, lines, numbers, write_lines  # noqa: F401

np = pytest.importorskip("numpy")


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
