"""weir ckpt import as people use it; what it makes of other formats is in tests/interop."""
import json
import os
import signal
import struct
import subprocess

from conftest import PATIENCE_S, wait_for

MIB = 1 << 20


def safetensors(**tensors):
    """A file with these U8 tensors."""
    header, data = {}, b""
    for name, content in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(content)],
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_import(weir):
    weir.file("m.safetensors", safetensors(b=b"xyz", a=b"12"))
    assert weir("ckpt", "import", "m.safetensors", "team/run", "--step", "7").lines == [
        "imported 2 tensors (5 B) as step 7 of run team/run"]
    save, = (weir.store / "ckpt/team/run").iterdir()
    assert json.loads((save / "checkpoint.json").read_text()) == {
        "weir": "checkpoint/1", "step": 7, "user": {},
        "lineage": {"imported_from": "m.safetensors", "format": "safetensors", "metadata": {}}}
    assert json.loads((save / "state-00001.json").read_text())["root"] == {
        name: {"$": "tensor", "name": name} for name in "ab"}
    assert (save / "model.safetensors").read_bytes().endswith(b"12xyz")
    assert "step 7 already" in weir.fails("ckpt", "import", "m.safetensors", "team/run",
                                          "--step", "7")
    document = weir.json("ckpt", "import", "m.safetensors", "team/run", "--step", "8")
    assert document["status"] == "imported" and document["tensors"] == 2
    assert document["size_bytes"] == 5 and document["skipped"] == []
    assert weir.json("ckpt", "import", "m.safetensors", "team/run", "--step", "8",
                     rc=1)["error"]["code"] == "EEXIST"


def test_dry_run(weir):
    weir.file("m.safetensors", safetensors(b=b"xyz"))
    assert weir("ckpt", "import", "-n", "m.safetensors", "run").lines == [
        "U8           3 B  b [3]", "would import 1 tensor (3 B) as step 0 of run run"]
    document = weir.json("ckpt", "import", "-n", "m.safetensors", "run")
    assert document["list"] == [{"name": "b", "dtype": "U8", "shape": [3], "size_bytes": 3}]
    assert not weir.store.exists()


def test_wrong_calls(weir):
    weir.fails("ckpt", "import", "x", rc=2)
    weir.fails("ckpt", "import", "x", "run", "--step", "-1", rc=2)
    assert "'missing'" in weir.fails("ckpt", "import", "missing", "run")
    weir.file("m.safetensors", safetensors(b=b"xyz"))
    assert "../up" in weir.fails("ckpt", "import", "m.safetensors", "../up")
    assert not weir.store.exists()


def test_stopped(weir):
    """Nothing is committed, and the same import works afterwards."""
    weir("init")
    weir.file("m.safetensors", safetensors(w=os.urandom(12 * MIB)))
    process = weir.start("--store", f"file://{weir.store}?write_rate=500K", "ckpt", "import",
                         "m.safetensors", "run", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: list((weir.store / ".weir/tmp").glob("*")), "the writer")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and err == b"weir: stopped by SIGINT\n"
    assert not list((weir.store / "ckpt/run").glob("*/model.safetensors"))
    weir("ckpt", "import", "m.safetensors", "run")
