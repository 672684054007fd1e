"""How good a shuffle is, in numbers that a full shuffle by numpy is measured by as well.

An order is an array: which sample is at each position. Samples are numbered as they lie in the
dataset; shards are even. As a program, for bench/data_order.py: measures several orders and prints
JSON.

    bench/shuffle.py BENCH-DATA-ORDER
"""
import json
import subprocess
import sys

import numpy


def weir(binary, samples, shards, lanes, window, seed=1, epochs=1):
    """Orders as Weir computes them, a row for each epoch; window 0 is a full shuffle."""
    args = [binary, "dump", samples, shards, lanes, window, seed, epochs]
    out = subprocess.run([str(arg) for arg in args], check=True, stdout=subprocess.PIPE).stdout
    return numpy.frombuffer(out, dtype="<u8").astype(numpy.int64).reshape(epochs, samples)


def numpys(samples, seed):
    """What everybody calls a shuffle."""
    return numpy.random.default_rng(seed).permutation(samples)


def buffered(samples, shards, room, seed):
    """Shards permuted, then a buffer of `room` samples from which one is drawn and replaced: what
    streaming readers without an index do."""
    rng = numpy.random.default_rng(seed)
    each = samples // shards
    stream = (rng.permutation(shards)[:, None] * each + numpy.arange(each)).ravel()
    buffer, out = stream[:room].copy(), numpy.empty_like(stream)
    draws = rng.integers(0, room, len(stream) - room)
    for k, draw in enumerate(draws):
        out[k] = buffer[draw]
        buffer[draw] = stream[room + k]
    out[len(draws):] = rng.permutation(buffer)
    return out


def serial(order, lag=1):
    """Correlation of samples `lag` positions apart."""
    return float(numpy.corrcoef(order[:-lag], order[lag:])[0, 1])


def displacement(order):
    """Largest distance between the distribution of how far samples move, and that of chance."""
    moved = numpy.sort(numpy.abs(order - numpy.arange(len(order)))) / len(order)
    chance = 1 - (1 - moved) ** 2
    steps = numpy.arange(1, len(order) + 1) / len(order)
    return float(numpy.max(numpy.abs(steps - chance)))


def batches(order, batch):
    return order[:len(order) // batch * batch].reshape(-1, batch)


def diversity(order, shards, batch):
    """Mean number of shards in a batch."""
    rows = numpy.sort(batches(order * shards // len(order), batch), axis=1)
    return float(numpy.mean(1 + numpy.count_nonzero(numpy.diff(rows, axis=1), axis=1)))


def noise(order, shards, batch):
    """Variance of the batches' means, where all samples of a shard are alike (the worst case: data
    sorted by class) and shards differ by chance, over that of a full shuffle. What it does to a
    gradient if shards are not mixed."""
    count = len(order) // batch * batch
    which = numpy.arange(count) // batch * shards + order[:count] * shards // len(order)
    held = numpy.bincount(which, minlength=count // batch * shards) / batch
    of_batches = numpy.sum(held ** 2) / (count // batch) - 1 / shards
    return float(of_batches / ((1 - 1 / shards) / batch * (count - batch) / (count - 1)))


def companions(first, second, batch, pairs=400000, seed=0):
    """How much more often than by chance two samples that shared a batch share one again in the
    next epoch."""
    where = numpy.empty(len(second), dtype=numpy.int64)
    where[second] = numpy.arange(len(second)) // batch
    rng = numpy.random.default_rng(seed)
    rows = batches(first, batch)
    row = rng.integers(0, len(rows), pairs)
    a = rng.integers(0, batch, pairs)
    b = (a + rng.integers(1, batch, pairs)) % batch
    again = numpy.mean(where[rows[row, a]] == where[rows[row, b]])
    return float(again / ((batch - 1) / (len(first) - 1)))


def spread(places, count, bins):
    """Chi-square of where something is, over equal bins, in standard deviations from chance."""
    seen = numpy.bincount(numpy.asarray(places) * bins // count, minlength=bins)
    expected = len(places) / bins
    chi = float(numpy.sum((seen - expected) ** 2) / expected)
    return (chi - (bins - 1)) / (2 * (bins - 1)) ** 0.5


# The orders of the benchmark

SAMPLES, SHARDS, BATCH, ROW = 1 << 20, 1024, 512, 16


def orders(binary):
    """Two epochs of each, under a label."""
    yield "numpy, all samples", [numpys(SAMPLES, seed) for seed in (1, 2)]
    yield "Weir, full shuffle", weir(binary, SAMPLES, SHARDS, 64, 0, epochs=2)
    for lanes, window in ((64, 64), (64, 256), (64, 1024), (256, 256), (512, 256)):
        yield (f"Weir, {lanes} lanes, windows of {window:,}",
               weir(binary, SAMPLES, SHARDS, lanes, window, epochs=2))
    for room in (1000, 10000, 100000):
        yield f"a buffer of {room:,}", [buffered(SAMPLES, SHARDS, room, seed) for seed in (1, 2)]


def main():
    rows = [{
        "order": label,
        "neighbours": serial(first),
        "displacement": displacement(first),
        "diversity": diversity(first, SHARDS, BATCH),
        "noise": noise(first, SHARDS, BATCH),
        "noise_row": noise(first, SHARDS, BATCH * ROW),
        "companions": companions(first, second, BATCH),
    } for label, (first, second) in orders(sys.argv[1])]
    json.dump({"samples": SAMPLES, "shards": SHARDS, "batch": BATCH, "row": ROW, "orders": rows},
              sys.stdout)


if __name__ == "__main__":
    main()
