"""weir bench: it measures what it says, tells what caches had to do with it, and leaves nothing."""
import json
import os
import re
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as xml

import pytest

from conftest import BIN, PATIENCE_S, ROOT

FAST = ["--seconds", "0.01", "--size", "8M", "--long-write", "8M", "--limit", "1h"]
FEW = ["--blocks", "4K,1M", "--depths", "1,4", "--threads", "1,2"]
PARTS = ["basic", "blocks", "depths", "threads", "checkpoint", "long", "shards", "lookup"]
STEP = ["part", "op", "order", "direct", "fresh", "block_bytes", "depth", "threads", "bytes",
        "requests", "seconds", "bytes_per_s", "iops", "latency_s_p50", "latency_s_p99",
        "latency_s_max", "cache", "cached_share"]


@pytest.fixture
def place(weir):
    """A directory with files that have the names which weir bench gives to its own."""
    path = weir.cwd / "a & <b>"
    for name in ("data", "new-0", "deep/data"):
        weir.file(f"a & <b>/{name}", b"mine")
    return path


def contents(path):
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None
            for p in path.rglob("*")}


def bench(weir, *args, **more):
    return weir.json("bench", "a & <b>", *FAST, *FEW, *args, **more)


def test_document(weir, place):
    before = contents(place)
    doc = bench(weir)
    assert list(doc) == ["url", "kind", "engine", "memory", "direct", "data_bytes",
                         "written_bytes", "seconds", "cut", "steps", "long_write", "profile"]
    assert doc["written_bytes"] == (8 << 20) + sum(step["bytes"] for step in doc["steps"]
                                                   if step["op"] == "write")
    assert (doc["url"], doc["data_bytes"], doc["cut"]) == ("a & <b>", 8 << 20, False)
    assert {step["part"] for step in doc["steps"]} == set(PARTS)
    for step in doc["steps"]:
        assert list(step) == STEP
        assert step["bytes"] == step["requests"] * step["block_bytes"] > 0
        assert step["bytes_per_s"] == pytest.approx(step["bytes"] / step["seconds"])
        assert step["iops"] == pytest.approx(step["requests"] / step["seconds"])
        assert 0 < step["latency_s_p50"] <= step["latency_s_p99"] <= step["latency_s_max"]
    basic = {(s["op"], s["order"], s["direct"]) for s in doc["steps"] if s["part"] == "basic"}
    ways = (True, False) if doc["direct"] else (False,)
    assert basic == {(op, order, way) for op in ("read", "write")
                     for order in ("sequential", "random") for way in ways}
    for part, field, values in (("blocks", "block_bytes", {4096, 1 << 20}),
                                ("depths", "depth", {1, 4}), ("threads", "threads", {1, 2})):
        assert {s[field] for s in doc["steps"] if s["part"] == part} == values
    assert contents(place) == before


def test_what_a_cache_had_to_do_with_it(weir, place):
    doc = bench(weir, "--only", "basic")
    for step in doc["steps"]:
        if doc["memory"]:
            assert step["cache"] == "memory"
        elif step["direct"]:
            assert step["cache"] == "around"
        elif step["op"] == "write":
            assert step["cache"] == "synced"
        else:
            assert step["cache"] == "dropped" and step["cached_share"] <= 0.01
        if not step["direct"]:  # one pass: the second would be of the cache
            assert step["bytes"] <= doc["data_bytes"] // (1 if step["order"] != "random" or
                                                          step["op"] == "write" else 8) or \
                doc["memory"]


def test_some_of_the_basic_part(weir, place):
    doc = bench(weir, "--only", "randread,write")
    assert {(s["part"], s["op"], s["order"]) for s in doc["steps"]} == {
        ("basic", "read", "random"), ("basic", "write", "sequential")}


def test_the_profile_is_the_best_of_the_steps(weir, place):
    doc = bench(weir, "--save", "p.json")
    saved = json.loads((weir.cwd / "p.json").read_text())
    assert saved == doc["profile"] and saved["weir_profile"] == 1 and saved["url"] == "a & <b>"

    def steps(*parts, **fields):
        return [s for s in doc["steps"] if s["part"] in parts and s["direct"] == doc["direct"] and
                all(s[name] == value for name, value in fields.items())]

    sweeps = ("basic", "blocks", "depths")
    for name, op in (("read", "read"), ("write", "write")):
        best = max(steps(*sweeps, op=op, order="sequential"), key=lambda s: s["bytes_per_s"])
        assert saved[f"{name}_bytes_per_s"] == pytest.approx(best["bytes_per_s"])
        assert saved[f"{name}_depth"] == best["depth"]
        assert saved[f"{name}_block_bytes"] == best["block_bytes"]
        small = max(steps(*sweeps, op=op, order="random", block_bytes=4096),
                    key=lambda s: s["iops"])
        assert saved[f"random_{name}_iops"] == pytest.approx(small["iops"])
        assert saved[f"random_{name}_latency_s_p99"] == pytest.approx(small["latency_s_p99"])

    def enough(part, field):
        """For reads and for writes, the smallest that reaches 95 % of the best."""
        found = []
        for op in ("read", "write"):
            line = steps(part, op=op, order="sequential")
            most = max(s["bytes_per_s"] for s in line)
            found.append(min(s[field] for s in line if s["bytes_per_s"] >= 0.95 * most))
        return max(found)

    assert saved["best_depth"] == enough("depths", "depth")
    assert saved["best_block_bytes"] == enough("blocks", "block_bytes")
    save, = steps("checkpoint")
    assert save["fresh"] and save["threads"] == 4 == saved["checkpoint_writers"]
    assert saved["checkpoint_bytes_per_s"] == pytest.approx(save["bytes_per_s"])
    one, many = steps("lookup")
    assert saved["lookup_latency_s_p50"] == pytest.approx(one["latency_s_p50"])
    assert saved["lookup_iops"] == pytest.approx(max(one["iops"], many["iops"]))
    assert saved["long_write_bytes"] == 8 << 20 == doc["long_write"]["bytes"]
    assert sum(doc["long_write"]["slot_bytes"]) == 8 << 20


def test_a_store_that_takes_its_depth_from_it(weir, place):
    bench(weir, "--only", "depths", "--save", "p.json")
    url = f"file://{weir.cwd}/s?profile={weir.cwd}/p.json"
    weir("--store", url, "put", "-", "k", input=b"x" * 3_000_000)
    assert weir("--store", url, "get", "k", "-").raw == b"x" * 3_000_000
    text = (weir.cwd / "p.json").read_text()
    for damaged, says in ((text[:-10], "p.json"), ("{}", "weir_profile"), ("", "p.json"),
                          (re.sub(r'"best_depth": \d+', '"best_depth": "deep"', text),
                           "best_depth"),
                          (text.replace('"weir_profile": 1', '"weir_profile": 9'), "version 9")):
        weir.file("p.json", damaged)
        for more in ("", "&depth=4"):
            told = weir.fails("--store", url + more, "get", "k", "-")
            assert "p.json" in told and says in told
    url = f"file://{weir.cwd}/s?profile=nowhere.json"
    assert "nowhere.json" in weir.fails("--store", url, "ls")


def test_what_a_person_sees(weir, place):
    out = weir("bench", "a & <b>", *FAST, *FEW, "--html", "page.html").out
    assert re.search(r"^a & <b>: \w+, 8.0 MiB of data, \d+ steps", out, re.M)
    rows = re.findall(r"^(\w+) +(?:sequential|random) (?:read|write).* \d+ .*B/s +\d+ ", out, re.M)
    assert set(rows) == set(PARTS)
    for name in ("read", "write", "random reads", "random writes", "checkpoint", "long write",
                 "shards", "lookups", "enough", "written"):
        assert re.search(f"^{name}  ?", out, re.M), name
    root = xml.parse(weir.cwd / "page.html").getroot()
    html, svg = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
    assert root.find(f"{html}body/{html}h1").text == "What a & <b> gives"
    assert len(list(root.iter(svg + "svg"))) == 6
    assert len(list(root.iter(html + "tr"))) == 1 + len(rows)
    names = [node.text for node in root.iter(svg + "text")]
    for name in ("sequential read", "random write", "requests under way", "written so far"):
        assert name in names
    assert weir("--quiet", "bench", "a & <b>", *FAST, "--only", "lookup").out == ""


def test_threads_instead_of_rings(weir, place):
    doc = bench(weir, "--only", "depths,lookup", env={"WEIR_IO": "threads"})
    assert "threads" in doc["engine"] and not any("error" in step for step in doc["steps"])
    out = weir("--io", "threads", "bench", "a & <b>", *FAST, "--only", "depths", "--depths",
               "1,256", "--parallel", "2").out
    assert "MiB/s" in out or "GiB/s" in out


def test_memory_is_called_memory(weir):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        if subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE,
                          text=True).stdout.strip() != "tmpfs":
            pytest.skip("/dev/shm is no tmpfs")
        doc = weir.json("bench", path, *FAST, "--only", "basic,checkpoint")
        assert doc["memory"] and doc["kind"] == "tmpfs"
        assert {step["cache"] for step in doc["steps"]} == {"memory"}
        assert "This is memory" in weir("bench", path, *FAST, "--only", "lookup").out
        assert os.listdir(path) == []


def test_any_other_tier(weir):
    """One that is here: what is remote is in tests/remote."""
    doc = weir.json("bench", "mem:?size=100M", *FAST, *FEW, "--save", "p.json")
    assert doc["kind"] == "mem" and not doc["direct"]
    assert not any("error" in step for step in doc["steps"])
    assert {(s["op"], s["order"]) for s in doc["steps"]} == {
        ("read", "sequential"), ("read", "random"), ("write", "sequential")}
    saved = json.loads((weir.cwd / "p.json").read_text())
    assert saved["checkpoint_bytes_per_s"] > 0 and saved["random_write_iops"] == 0
    broken = "mem:?size=100M&fault_nth=40&fault_error=EIO"
    assert "input/output" in weir.fails("bench", broken, *FAST).lower()


# Bounds


def in_mount(weir, options, script, *args):
    """Runs weir in a file system of its own, ./small."""
    lines = f"mkdir small; mount -t tmpfs -o {options} none small || exit 99; {script}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", lines, "sh", *map(str, args)],
                          cwd=weir.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    return done


def test_not_more_than_a_share_of_the_space(weir):
    done = in_mount(weir, "size=64m", '"$@"; ls -A small', BIN, "bench", "small", "--seconds",
                    "0.01", "--only", "lookup,long")
    assert "small: tmpfs, 8.0 MiB of data" in done.stdout and not done.stdout.endswith("bench\n")
    assert "64.0 MiB are free there: at most 8.0 MiB are used at once" in done.stderr
    done = in_mount(weir, "size=16m", '"$@"', BIN, "bench", "small")
    assert done.returncode == 1 and "at least 32 MiB are needed" in done.stderr


def test_where_nothing_can_be_written(weir):
    done = in_mount(weir, "size=64m,ro", '"$@"', BIN, "bench", "small")
    assert done.returncode == 1
    assert re.fullmatch(r"weir: cannot make a directory in 'small': .*[Rr]ead-only.*\n",
                        done.stderr)
    assert "nowhere" in weir.fails("bench", "nowhere")
    weir.file("file")
    assert "'file'" in weir.fails("bench", "file")
    (weir.cwd / "d").mkdir()
    assert "file/p" in weir.fails("bench", "d", "--save", "file/p")  # before it measures
    assert list((weir.cwd / "d").iterdir()) == []


def test_the_end_of_time(weir, place):
    for limit in (1, 10, 60):  # a busy machine may take a second to write what is read
        doc = bench(weir, "--limit", str(limit), "--seconds", str(0.6 * limit))
        if doc["steps"]:
            break
    assert doc["cut"] and 0 < len(doc["steps"]) < 8
    out = weir("bench", "a & <b>", *FAST, "--limit", "1", "--seconds", "2").out
    assert "time was up" in out


def at_work(weir, place, *args):
    """One that has measured a step, and is in one that would take ten minutes."""
    process = weir.start("bench", place, *FAST, "--only", "blocks,lookup", "--blocks", "16M",
                         "--limit", "1h", "--seconds", "600", *args, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    said = b""
    while b"too few" not in said:
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, process.communicate()
        said += piece
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped(weir, place, number):
    before = contents(place)
    process = at_work(weir, place, "--save", "p.json")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number and b"stopped by SIG" in err
    assert contents(place) == before and not (weir.cwd / "p.json").exists()
    assert [p.name for p in weir.cwd.iterdir()] == [place.name]


def test_what_a_killed_one_left(weir, place):
    before = contents(place)
    other = weir.file("a & <b>/.weir-bench-0123456789abcdef/precious", b"not ours")
    process = at_work(weir, place)
    left, = [p for p in place.glob(".weir-bench-*") if p != other.parent]
    assert [p.name for p in left.iterdir()] == ["data"]
    weir("bench", place, "--clean")
    assert left.exists()  # it is still at work
    process.kill()
    process.communicate()
    assert "2 left there" in weir("bench", place, *FAST, "--only", "lookup").err
    assert weir.json("bench", place, "--clean") == {"url": str(place), "removed": 1}
    assert not left.exists() and other.read_bytes() == b"not ours"
    other.unlink()
    assert weir.json("bench", place, "--clean")["removed"] == 1
    assert contents(place) == before


def test_what_is_wrong_is_said(weir, place):
    for args, text in [(["--blocks", "5000"], "4096"), (["--blocks", "1K"], "--blocks"),
                       (["--blocks", "4K,"], "--blocks"), (["--depths", "0"], "--depths"),
                       (["--depths", "257"], "1 to 256"), (["--threads", "x"], "--threads"),
                       (["--only", "basic,nothing"], "'nothing'"), (["--size", "1K"], "--size"),
                       (["--seconds", "0"], "--seconds"), (["--limit", "0"], "--limit"),
                       (["--depths", ",".join("1" * 17)], "at most 16")]:
        assert text in weir.fails("bench", "a & <b>", *args, rc=2), args
    weir("bench", rc=2)
    assert "what:" in weir.fails("bench", "what:")
    # One step that cannot be is told, and the others are measured.
    doc = bench(weir, "--only", "blocks", "--blocks", "4K,16M")
    assert ["error" in s for s in doc["steps"]] == [False, True] * 4
    assert "too few" in doc["steps"][1]["error"]


def test_the_page_names_every_figure_of_a_profile(weir, place):
    page = (ROOT / "docs/bench.md").read_text()
    table = page[page.index("## The profile"):page.index("## Beside fio")]
    named = re.findall(r"`([a-z0-9_]+)`", "".join(
        line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    assert named == list(bench(weir, "--only", "lookup")["profile"])
    parts = page[page.index("## What is measured"):page.index("## What a figure means")]
    assert re.findall(r"^\| `(\w+)`", parts, re.M) == PARTS
