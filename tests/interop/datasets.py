"""Datasets as Weir reads them, by tests/interop/dataset.c, for the tests with other libraries."""
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def program():
    build = Path(os.environ.get("WEIR_BUILD", ROOT / "build/plain"))
    return build / "tests/interop/dataset"


def run(*args):
    """What it says, and its errors."""
    done = subprocess.run([program(), *map(str, args)], capture_output=True, timeout=900)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def dump(path, *args):
    """A list of {field: value}: bytes, str, parsed JSON, numpy arrays and scalars, None."""
    code, out, err = run("dump", path, *args)
    assert code == 0, err
    return [{bytes.fromhex(field["name"]).decode(): value_of(field) for field in line["fields"]}
            for line in map(json.loads, out.splitlines())]


def fails(path, *args):
    """The one line that it says when it cannot read a dataset."""
    code, _, err = run("dump", path, *args)
    assert code == 1 and err.count("\n") == 1, (code, err)
    return err.strip()


def value_of(field):
    import numpy
    data = bytes.fromhex(field["data"])
    kind = field["kind"]
    if kind == "text":
        return data.decode()
    if kind == "json":
        return json.loads(data)
    if kind == "array":
        array = numpy.frombuffer(data, field["dtype"]).reshape(field["shape"])
        return array[()] if not field["shape"] else array
    return data if kind == "bytes" else None


def copy(source, target, *args):
    """Writes a dataset anew: to FORMAT [CODEC [COUNT]]."""
    code, _, err = run("copy", source, target, *args)
    assert code == 0, err
