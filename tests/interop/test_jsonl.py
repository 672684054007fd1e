"""JSON lines: what Python's json writes is read here as Python reads it, and back again."""
import gzip
import json
import random

import datasets
from weirtest import need

np = need("numpy")


def anything(rng, depth=0):
    kinds = [lambda: rng.choice([None, True, False]), lambda: rng.randint(-2**70, 2**70),
             lambda: rng.randint(-99, 99), lambda: rng.uniform(-1e9, 1e9),
             lambda: rng.choice([0.0, 1e300, 5e-324, 0.1, 3.0]),
             lambda: "".join(rng.choices("ab\"\\/\n\t\0é€\U0001f600", k=rng.randint(0, 9))),
             lambda: [rng.randint(-2**63, 2**63 - 1) for _ in range(rng.randint(0, 4))],
             lambda: [rng.uniform(-1, 1) for _ in range(rng.randint(1, 4))]]
    if depth < 3:
        kinds += [lambda: [anything(rng, depth + 1) for _ in range(rng.randint(0, 4))],
                  lambda: {str(i): anything(rng, depth + 1) for i in range(rng.randint(0, 4))}]
    return rng.choice(kinds)()


def plain(value):
    """Arrays and numbers of numpy as Python's."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def as_array(value):
    """A list of numbers of which one has a point is one of floats."""
    number = [type(item) in (int, float) for item in value] if isinstance(value, list) else [False]
    if not all(number) or float not in map(type, value) or any(abs(x) > 2**53 for x in value
                                                               if type(x) is int):
        return value
    return [float(item) for item in value]


def same(got, expected):
    """Equal, and of the same kind: 1 is not 1.0."""
    if isinstance(expected, dict):
        expected = {name: as_array(value) for name, value in expected.items()}
    return json.dumps(got) == json.dumps(expected)


def test_both_ways(tmp_path):
    rng = random.Random(3)
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    lines = [{f"field{i}": anything(rng) for i in range(rng.randint(1, 9))} for _ in range(300)]
    lines += [anything(rng) for _ in range(50)]
    text = "\n".join(json.dumps(line, ensure_ascii=bool(i % 2)) for i, line in enumerate(lines))
    (source / "a.jsonl").write_text(text)
    (source / "b.jsonl.gz").write_bytes(gzip.compress(text.replace("\n", "\r\n\r\n").encode()))

    got = datasets.dump(source)
    assert len(got) == 2 * len(lines)
    for ours, line in zip(got, lines + lines):
        expected = line if isinstance(line, dict) and line else {"json": line}
        if line == {}:
            expected = {}
        assert same({name: plain(value) for name, value in ours.items()}, expected)

    datasets.copy(source, target, "jsonl", "", 100)
    again = [json.loads(line) for shard in sorted(target.glob("*.jsonl"))
             for line in shard.read_text().splitlines()]
    assert len(again) == len(got)
    for ours, line in zip(again, lines + lines):
        assert same(ours, line)
