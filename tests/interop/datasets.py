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


def dump(path):
    """A list of {field: value}: bytes, str, parsed JSON, numpy arrays and scalars, None. Without an
    index; a weir.Dataset, with one, has the same."""
    code, out, err = run("dump", path)
    assert code == 0, err
    found = [{bytes.fromhex(field["name"]).decode(): value_of(field) for field in line["fields"]}
             for line in map(json.loads, out.splitlines())]
    if found:
        check_loaded(path, found)
    return found


def told(row):
    """What can be compared of a sample, or of one in a batch, where None is a field it lacks."""
    import numpy
    return {name: (str(value.dtype), value.shape, value.tobytes())
            if isinstance(value, (numpy.ndarray, numpy.generic)) else repr(value)
            for name, value in row.items() if value is not None}


def check_loaded(path, expected):
    """One sample after the other, and a shuffled epoch of batches."""
    import weir
    seen = set()
    with weir.Dataset(path, batch_size=7, window=11, lanes=3, epochs=1, collate="list",
                      cache="mem:") as ds:
        assert ds.samples == len(expected)
        for number in {0, len(expected) // 2, len(expected) - 1}:
            assert told(ds[number]) == told(expected[number]), number
        for batch in ds:
            for i, number in enumerate(batch.numbers.tolist()):
                row = {name: values[i] for name, values in batch.items()}
                assert told(row) == told(expected[number]), (number, row, expected[number])
                seen.add(number)
    assert len(seen) == len(expected)


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
