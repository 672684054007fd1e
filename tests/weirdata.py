"""Small datasets, and what tests of them ask for."""
import json

import pytest

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
