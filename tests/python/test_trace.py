"""weir trace on real programs: a DataLoader over small files, packed datasets, a loop that saves.
The advice is what a storage engineer would give, and its command works."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest
from weirtest import need

torch = need("torch")

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")

WORK = pathlib.Path(__file__).resolve().parents[2] / "bench" / "trace_work.py"
FILES, BYTES = 300, 16384


def job(*args):
    return [sys.executable, str(WORK), *map(str, args)]


@pytest.fixture
def trace(weir_bin, tmp_path):
    def run(*args, env=None):
        """The report, and what the job itself saw."""
        report = tmp_path / "report.json"
        done = subprocess.run([weir_bin, "--json", "trace", "-o", report, "--", *job(*args)],
                              env={**os.environ, "WEIR_CACHE": str(tmp_path / "cache"),
                                   **(env or {})},
                              stdout=subprocess.PIPE, check=True, timeout=900)
        return json.loads(report.read_text()), json.loads(done.stdout)
    return run


@pytest.fixture
def files(tmp_path):
    subprocess.run(job("make", tmp_path / "raw", FILES, BYTES), check=True)
    return tmp_path / "raw"


def stream(weir_bin, folder, tmp_path, **env):
    """The report on an epoch of weir's own reader."""
    subprocess.run([weir_bin, "--json", "trace", "-o", tmp_path / "report.json", "--", weir_bin,
                    "data", "stream", folder, "--quiet"], check=True, env={**os.environ, **env})
    return json.loads((tmp_path / "report.json").read_text())


def kinds(doc, *weights):
    return [one["kind"] for one in doc["advice"] if not weights or one["weight"] in weights]


def advice(doc, kind):
    found, = [one for one in doc["advice"] if one["kind"] == kind]
    return found


def below(doc, path):
    """Sums over the directories below one."""
    mine = [one for one in doc["directories"] if one["path"].startswith(str(path))]
    return {name: sum(one[name] for one in mine) for name in ("files", "opens", "read_bytes")}


def test_raw_files_are_packed_and_the_command_works(trace, files, weir_bin, tmp_path):
    doc, seen = trace("files", files, "--step-ms", 0, "--workers", 2, "--batch", 30)
    total = sum(path.stat().st_size for path in files.rglob("*.jpg"))
    assert seen["steps"] == FILES // 30
    assert below(doc, files) == {"files": FILES, "opens": FILES, "read_bytes": total}
    assert doc["reading"]["readers"] == 2 and doc["reading"]["sequential_share"] == 1
    pack = advice(doc, "pack")
    assert pack["weight"] == "do" and kinds(doc, "danger") == []
    words = shlex.split(pack["command"])
    assert words[:4] == ["weir", "data", "pack", str(files)]
    subprocess.run([weir_bin, *words[1:]], check=True, stdout=subprocess.PIPE)
    doc = stream(weir_bin, words[4], tmp_path, WEIR_IO="threads")
    assert not {"pack", "requests", "asynchronous"} & set(kinds(doc))
    assert below(doc, words[4])["files"] < FILES / 10
    assert doc["reading"]["typical_bytes"] > 4 * BYTES


def test_a_ring_is_said(weir_bin, files, tmp_path):
    subprocess.run([weir_bin, "data", "pack", files, tmp_path / "shards", "--format", "mds"],
                   check=True, stdout=subprocess.PIPE)
    doc = stream(weir_bin, tmp_path / "shards", tmp_path)
    if not doc["ring_waits"]:
        pytest.skip("no io_uring here")
    assert "WEIR_IO=threads" in advice(doc, "asynchronous")["why"]


def test_tars_of_webdataset_are_left_as_they_are(trace, files, weir_bin, tmp_path):
    need("webdataset")
    subprocess.run([weir_bin, "data", "pack", files, tmp_path / "tars", "--format", "wds"],
                   check=True, stdout=subprocess.PIPE)
    doc, seen = trace("webdataset", tmp_path / "tars", "--step-ms", 0, "--batch", 30)
    assert seen["steps"] == FILES // 30
    assert "pack" not in kinds(doc)
    assert doc["reading"]["sequential_share"] > 0.9


def test_a_loop_that_saves(trace, tmp_path):
    doc, seen = trace("save", tmp_path / "ckpt", "--mib", 128, "--saves", 3, "--steps", 1,
                      "--fsync-last")
    saves = [one for one in doc["bursts"] if "/ckpt/" in one["path"]]
    assert [os.path.basename(one["path"]) for one in saves] == ["step0.pt", "step1.pt", "step2.pt"]
    assert all(one["bytes"] > 128 << 20 and one["renamed"] for one in saves)
    assert [one["synced"] for one in saves] == [False, False, True]
    assert [one["unsafe"] for one in saves] == [True, True, False]
    assert doc["syncs"] == 1
    assert "2 of 3 large files" in advice(doc, "fsync-missing")["what"]
    assert kinds(doc, "danger") == ["fsync-missing"]
    # All of it lies within what the loop saw.
    assert 0.2 * seen["stall_s"] <= doc["bursts_busy_s"] <= 1.05 * seen["stall_s"]
    if doc["bursts_busy_s"] > 0.03 * doc["seconds"]:  # torch may take long to be imported
        waited = advice(doc, "checkpoint")
        assert "weir.Checkpointer" in waited["command"]
        assert waited["now_s"] == pytest.approx(doc["bursts_busy_s"])
