"""weir data stream: every sample is read once whatever the order and the ranks, the figures add up,
and what is wrong is said, also after a while and at Ctrl-C."""
import gzip
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BIN, PATIENCE_S, is_polite, wait_for
from test_data import data, tokens  # noqa: F401 (data is a fixture)
from test_terminal import on_terminal

SEQ = ["-O", "seq_len=9"]
MODULO = 1 << 128


@pytest.fixture
def corpus(data):
    """101 samples of 9 tokens, in 2 shards."""
    data.file("d/a.bin", tokens(range(60 * 9 + 1)))
    data.file("d/b.bin", tokens(range(1000, 1000 + 41 * 9 + 1)))
    return data


def epochs(doc, part=0):
    return [(e["epoch"], e["samples"], e["digest"]) for e in doc["datasets"][part]["epochs"]]


def stream(data, *args, **more):
    return data.json("data", "stream", "d", *SEQ, *args, **more)


def test_document(corpus):
    doc = stream(corpus, "--batch", "10", "--threads", "2", "--prefetch", "3", "--seed", "5")
    assert list(doc) == ["datasets", "shuffle", "seed", "dp_rank", "dp_size", "batch_size",
                         "threads", "prefetch", "batches", "samples", "sample_bytes",
                         "samples_per_s", "bytes_per_s", "time", "reads", "read_bytes",
                         "mapped_bytes", "cached_bytes", "buffered_bytes", "direct_bytes",
                         "storage_bytes", "warmth", "read_sizes", "memory_bytes_peak",
                         "memory_bytes_max"]
    assert (doc["shuffle"], doc["seed"], doc["batch_size"]) == (True, 5, 10)
    assert (doc["threads"], doc["prefetch"], doc["batches"], doc["samples"]) == (2, 3, 11, 101)
    assert doc["sample_bytes"] == 101 * 20 and doc["samples_per_s"] > 0 < doc["bytes_per_s"]
    assert doc["warmth"] in ("cold", "warm", "partly warm")
    assert sum(size["reads"] for size in doc["read_sizes"]) == doc["reads"] > 0
    assert 0 < doc["memory_bytes_peak"] <= doc["memory_bytes_max"] == 512 << 20
    part, = doc["datasets"]
    assert (part["url"], part["format"], part["samples"], part["share"]) == ("d", "tokens", 101, 1)
    assert part["lanes"] == 64 and len(part["digest"]) == 64
    assert part["window"] == (1984 << 10) // 21  # by default; another would be another order
    assert [(e["epoch"], e["samples"], e["complete"]) for e in part["epochs"]] == [(0, 101, True)]
    took = doc["time"]
    parts = [took[name + "_s"] for name in ("stall_read", "stall_decode", "stall_queue",
                                            "consumer")]
    assert 0 < sum(parts) <= took["total_s"] and 0 < took["first_batch_s"] <= took["total_s"]
    assert 0 <= took["batches_waited_for"] <= 11 and 0 <= took["stalled_share"] <= 1
    assert 0 <= took["stalled_later_share"] <= 1


def test_any_order_and_ranks_read_the_same(corpus):
    (_, _, digest), = epochs(stream(corpus))
    for args in ["--seed", "7"], ["--no-shuffle"], ["--window", "full"], ["--lanes", "3"], \
            ["--window", "4", "--batch", "7", "--threads", "3"]:
        assert epochs(stream(corpus, *args)) == [(0, 101, digest)], args
    ranks = [stream(corpus, "-b", "4", "--dp-rank", str(r), "--dp-size", "3") for r in range(3)]
    parts = [epochs(doc)[0] for doc in ranks]
    assert sum(samples for _, samples, _ in parts) == 101
    assert sum(int(part, 16) for _, _, part in parts) % MODULO == int(digest, 16)
    assert not any(doc["datasets"][0]["epochs"][0]["complete"] for doc in ranks)


def test_epochs_run_into_each_other(corpus):
    doc = stream(corpus, "--epochs", "3", "--batch", "100")
    assert (doc["samples"], doc["batches"]) == (303, 4)
    (_, _, digest), = epochs(stream(corpus))
    assert epochs(doc) == [(i, 101, digest) for i in range(3)]


def test_mixture(corpus):
    corpus.file("e/a.bin", tokens(range(50 * 9 + 1)))
    doc = corpus.json("data", "stream", "d", "e", *SEQ, "--weights", "3,1")
    assert [part["share"] for part in doc["datasets"]] == [0.75, 0.25] and doc["samples"] == 151
    counts = [sum(e["samples"] for e in part["epochs"]) for part in doc["datasets"]]
    assert sum(counts) == 151 and 105 <= counts[0] <= 120
    text = corpus("data", "stream", "d", "e", *SEQ).out
    assert text.count("50 % of the samples") == 2 and "samples of e" in text


def test_what_a_person_sees(corpus):
    out = corpus("data", "stream", "d", *SEQ, "--batch", "10").out
    for what in (r"^dataset +d: tokens, 101 samples in 2 shards", r"^order +seed 0, 64 lanes",
                 r"^read +101 samples in 11 batches of 10, 2\.0 KiB in ",
                 r"^rate +\d+ samples/s, .*/s$", r"^memory .* of 512 MiB; \d+ thread",
                 r"^  reading +.* %", r"^  decoding ", r"^  the queue ", r"^  the consumer ",
                 r"^stalled +[\d.]+ % of the time, [\d.]+ % after the first batch; \d+ of 11 ",
                 r"^ +\(this consumer does nothing but wait: --work",
                 r"^reads +\d+ of .* from storage: ", r"^  from +\d.* B +#+ +\d+$",
                 r"^epoch 0 +digest [0-9a-f]{32} of 101 of 101 samples$"):
        assert re.search(what, out, re.M), (what, out)
    assert "as in the shards, rank 1 of 2" in corpus(
        "data", "stream", "d", *SEQ, "--no-shuffle", "--dp-rank", "1", "--dp-size", "2").out
    assert corpus("--quiet", "data", "stream", "d", *SEQ).out == ""


def forget(path):
    """Out of the page cache, where the file system has one that forgets."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_which_way_bytes_came(corpus):
    path = corpus.file("large/train.bin", os.urandom(4 << 20))
    read = ("data", "stream", "large", "-O", "seq_len=1023", "-O", "overlap=0", "--lanes", "1",
            "--buffered")
    forget(path)
    doc = corpus.json(*read, "no")
    assert doc["direct_bytes"] + doc["cached_bytes"] > 3 << 20 > doc["buffered_bytes"]
    forget(path)
    doc = corpus.json(*read, "yes")
    assert doc["direct_bytes"] == 0 and doc["buffered_bytes"] + doc["cached_bytes"] >= 4 << 20
    assert re.search(r"^way +.* from the page cache, .* through it, .* around it$",
                     corpus(*read, "yes").out, re.M)


@pytest.fixture
def group(request):
    """A control group that may have 256 MiB; "" where none can be made."""
    for mount, limit in (("/sys/fs/cgroup", "memory.max"),
                         ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        path = f"{mount}/weir-test-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        request.addfinalizer(lambda path=path: os.rmdir(path))
        if os.path.exists(f"{path}/{limit}"):  # else it is no such mount
            with open(f"{path}/{limit}", "w") as file:
                file.write(str(256 << 20))
            return path
    return ""


def test_a_container_has_less_memory_than_its_machine(corpus, group):
    """What does not fit half of it is read around the page cache."""
    if not group:
        pytest.skip("no control group can be made here")
    (corpus.cwd / "large").mkdir()
    with open(corpus.cwd / "large/train.bin", "wb") as file:
        file.truncate(200 << 20)
    read = ["data", "stream", "large", "-O", "seq_len=10000", "--lanes", "4", "--memory", "128M"]
    if not corpus.json(*read, "--buffered", "no")["direct_bytes"]:
        pytest.skip("what is read here is never read around the page cache")
    inside = ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh", BIN, "--json", *read]
    for command, is_direct in ((inside, True), ([BIN, "--json", *read], False)):
        done = subprocess.run(command, cwd=corpus.cwd, env=corpus.env, capture_output=True)
        assert done.returncode == 0, done.stderr
        doc = json.loads(done.stdout)
        through = doc["buffered_bytes"] + doc["cached_bytes"]
        assert (doc["direct_bytes"] > 100 << 20 > through) == is_direct, (command, doc)
        assert (through > 100 << 20 and not doc["direct_bytes"]) != is_direct, (command, doc)


def test_small_samples_are_read_many_at_once(data):
    """A window is a read or two, however small the samples are and whatever order they come in."""
    data.file("lines/a.jsonl", "".join(
        json.dumps({"i": i, "x": "x" * 1000}) + "\n" for i in range(4096)))
    data("data", "pack", "lines", "d", "--format", "mds", "--shard-size", "2M")
    doc = data.json("data", "stream", "d", "--buffered", "no", "--window", "512", "--lanes", "4",
                    "--batch", "64")
    assert doc["samples"] == 4096 and doc["mapped_bytes"] == 0
    assert 4096 / 512 <= doc["reads"] <= 40
    assert doc["sample_bytes"] <= doc["read_bytes"] <= 1.2 * doc["sample_bytes"]


def test_token_files_that_are_mapped(corpus):
    corpus.file("raw.bin", tokens(range(1000)))
    corpus("put", "raw.bin", "set/train.bin")
    doc = corpus.json("data", "stream", "weir-store/set", *SEQ)
    assert doc["reads"] == 0 and doc["mapped_bytes"] == doc["sample_bytes"] > 0
    assert re.search(r"^mapped +\d", corpus("data", "stream", "weir-store/set", *SEQ).out, re.M)


def test_stalls_have_their_cause(corpus):
    """A read that is held up is waited for as reading, a shard that is compressed as decoding."""
    def stalls(*args):
        took = corpus.json("data", "stream", *args, "--threads", "1", "--batch", "8")["time"]
        return {name: took[f"stall_{name}_s"] for name in ("read", "decode", "queue")}
    corpus.file("slow/train.bin", tokens(range(20000)))
    found = stalls(f"file://{corpus.cwd}/slow?fault_ops=read&fault_delay=300ms", "--no-shuffle",
                   *SEQ)
    assert found["read"] > found["decode"] + found["queue"]
    lines = "".join(json.dumps({"id": i, "text": "x" * 4000}) + "\n" for i in range(5000))
    corpus.file("packed/a.jsonl.gz", gzip.compress(lines.encode(), 1))
    found = stalls("packed")
    assert found["read"] == 0 < found["decode"]


def test_a_consumer_that_works(corpus):
    doc = stream(corpus, "--batch", "10", "--work", "5ms")
    assert doc["time"]["consumer_s"] >= 11 * 0.005
    assert "--work" not in corpus("data", "stream", "d", *SEQ, "--work", "1ms").out


def test_seconds_end_it(corpus):
    for seconds in ("0.2", "2", "20"):  # a busy machine may take that long for the first batch
        doc = stream(corpus, "--epochs", "1000000", "--seconds", seconds)
        if doc["samples"]:
            break
    assert 0 < doc["samples"] < 101 * 1000000


def test_wrong_calls(corpus):
    for args, text in [(["--dp-rank", "2", "--dp-size", "2"], "ranks are 0 to 1"),
                       (["--window", "0"], "neither a number"), (["--window", "-1"], "neither a n"),
                       (["--window", "all"], "neither a number of samples nor 'full'"),
                       (["--buffered", "maybe"], "neither yes nor no"),
                       (["--weights", "1,2"], "2 of them for 1 dataset"),
                       (["--weights", "x"], "not a list of numbers"),
                       (["--weights", "-1"], "not a list of numbers"),
                       (["--fields", ","], "names none"), (["--batch", "0"], "--batch"),
                       (["--epochs", "0"], "--epochs"), (["--prefetch", "0"], "--prefetch"),
                       (["--work", "soon"], "--work"), (["--dp-size", "0"], "--dp-size")]:
        assert text in corpus.fails("data", "stream", "d", *args, rc=2), args
    assert "needs URL" in corpus.fails("data", "stream", rc=2)
    assert "at most 32 are mixed" in corpus.fails("data", "stream", *["d"] * 33, rc=2)
    assert "there is nothing at" in corpus.fails("data", "stream", "nowhere")


def test_fields_that_the_first_batch_lacks(corpus):
    """One that was asked for may be misspelt; others may just be null."""
    note = "no sample of the first batch has a field '{}' (weir data stats"
    asked = corpus("data", "stream", "d", *SEQ, "--fields", "tokens,nix")
    assert note.format("nix") in asked.err and "101 of 101 samples" in asked.out
    corpus.file("e/a.jsonl", '{"a": 1, "b": null}\n' * 9 + '{"a": 1, "b": 2}\n')
    plain = corpus("data", "stream", "e", "--no-shuffle")
    assert plain.err == "" and "10 of 10 samples" in plain.out
    assert note.format("b") in corpus("data", "stream", "e", "--no-shuffle", "--batch", "4",
                                      "--fields", "b").err
    assert corpus("data", "tune", "e", "--seconds", "0.1", "--threads", "1", "--fields",
                  "nix").err.count(note.format("nix")) == 1


def test_empty(data):
    data.file("d/a.jsonl", "")
    assert data.fails("data", "stream", "d") == "'d' has no samples"
    assert data.json("data", "stream", "d", rc=1)["error"]["code"] == "EINVAL"


def test_memory_that_is_too_little(data):
    data.file("d/a.jsonl", "\n".join(json.dumps({"x": "y" * 1000}) for _ in range(3000)))
    text = data.fails("data", "stream", "d", "--memory", "1M")
    assert "allow more, or choose fewer lanes" in text


def test_a_damaged_sample_is_named(data):
    lines = [json.dumps({"text": f"line {i}"}) for i in range(100)]
    lines[70] = lines[70].replace('"text"', '"text\xff')
    data.file("d/a.jsonl", "\n".join(lines).encode("latin-1"))
    args = ["data", "stream", "d", "--no-shuffle", "--batch", "10"]
    assert re.search(r"\b70\b.*a\.jsonl", data.fails(*args))
    doc = data.json(*args, rc=1)  # what was read until then
    assert doc["error"]["code"] == "EBADMSG" and doc["samples"] == 70


@pytest.mark.parametrize("number, rc", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", [["--json"], []])
def test_stopped(corpus, number, rc, form):
    """In the middle of a batch that takes an hour; on a slow machine, while it waits for it."""
    process = corpus.start(*form, "data", "stream", "d", *SEQ, "--batch", "10", "--work", "1h",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: is_polite(process), "the loader")
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == rc
    if form:
        doc = json.loads(out)
        assert doc["error"]["code"] == "EINTR" and doc["samples"] in (0, 10) and err == b""
    else:
        assert re.search(rb"read +(10 samples in 1 batch|0 samples in 0 batches) of 10,", out), out
        assert err.decode() == f"weir: stopped by {number.name}\n"


def test_bar(corpus):
    rc, shown = on_terminal(corpus, "data", "stream", "d", *SEQ, "--batch", "10", "--work", "130ms")
    assert rc == 0
    assert re.search(r"\rstreaming  \[=*>? *\]  +\d+%  [\d.]+ K?i?B of 2\.0 KiB", shown), shown
    assert "100%" not in shown.split("\r\n", maxsplit=1)[1]  # it makes room for the result
