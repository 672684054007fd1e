"""Weir's shuffle beside numpy's, by the same measures (bench/shuffle.py); and what a windowed one
gives and does not give. Seeds are fixed: a failure is no bad luck."""
import sys

import pytest
from weirtest import ROOT, need

numpy = need("numpy")
sys.path.insert(0, str(ROOT / "bench"))
import shuffle  # noqa: E402

SAMPLES, SHARDS, LANES, BATCH = 65536, 256, 64, 128
MEASURES = {
    "neighbours": shuffle.serial,
    "a lane apart": lambda order: shuffle.serial(order, LANES),
    "displacement": shuffle.displacement,
    "shards in a batch": lambda order: shuffle.diversity(order, SHARDS, BATCH),
    "noise of batches": lambda order: shuffle.noise(order, SHARDS, BATCH),
}


@pytest.fixture
def weir(weir_bin):
    binary = weir_bin.parents[2] / "bench/bench-data-order"

    def orders(samples, shards, lanes, window, **more):
        return shuffle.weir(binary, samples, shards, lanes, window, **more)
    return orders


@pytest.fixture(scope="module")
def chance():
    """Mean and deviation of each measure, of numpy's shuffles."""
    orders = [shuffle.numpys(SAMPLES, seed) for seed in range(40)]
    values = {name: [of(order) for order in orders] for name, of in MEASURES.items()}
    return {name: (numpy.mean(of), numpy.std(of, ddof=1)) for name, of in values.items()}


def away(orders, name, chance):
    """How far the orders' mean is from that of numpy's, in deviations of such a difference."""
    mean, deviation = chance[name]
    got = numpy.mean([MEASURES[name](order) for order in orders])
    return abs(got - mean) / (deviation * (1 / len(orders) + 1 / 40) ** 0.5)


@pytest.mark.parametrize("name", MEASURES)
def test_full_shuffle_is_as_good(weir, chance, name):
    assert away(weir(SAMPLES, SHARDS, LANES, 0, epochs=10), name, chance) < 4


@pytest.mark.parametrize("name", MEASURES)
def test_measures_tell(chance, name):
    """Shuffles that are not good enough are seen to be so, by some measure each."""
    assert away([shuffle.buffered(SAMPLES, SHARDS, 1000, 1)], name, chance) > 4


def test_epochs_are_independent(weir):
    for window in (0, 64):
        first, second = weir(SAMPLES, SHARDS, LANES, window, epochs=2)
        assert abs(numpy.corrcoef(first, second)[0, 1]) < (0.02 if not window else 0.1)
        assert sum(first == second) < 12  # one is expected
    first, second = weir(SAMPLES, SHARDS, LANES, 0, epochs=2)
    assert 0.5 < shuffle.companions(first, second, BATCH) < 1.5


@pytest.mark.parametrize("window", [0, 16, 1024])
def test_any_sample_at_any_position(weir, window):
    """Over 4,000 epochs: what is at a position, and where a sample is."""
    orders = weir(1024, 16, 4, window, epochs=4000)
    for position in (0, 1, 500, 1023):
        assert abs(shuffle.spread(orders[:, position], 1024, 64)) < 4
    positions = numpy.argsort(orders, axis=1)
    for sample in (0, 63, 64, 500, 1023):
        assert abs(shuffle.spread(positions[:, sample], 1024, 64)) < 4


def test_windows_cost_diversity(weir):
    """A batch has a shard for each lane, so that lanes, not windows, say how mixed it is: with as
    many lanes as samples in a batch, it is better mixed than by chance."""
    narrow, = weir(SAMPLES, SHARDS, 16, 64)
    wide, = weir(SAMPLES, SHARDS, 128, 64)
    assert 15 < shuffle.diversity(narrow, SHARDS, BATCH) <= 17
    assert shuffle.diversity(wide, SHARDS, BATCH) > 100
    assert 5 < shuffle.noise(narrow, SHARDS, BATCH) < 12
    assert shuffle.noise(wide, SHARDS, BATCH) < 1
    assert abs(shuffle.serial(narrow)) < 0.1 and shuffle.serial(narrow, 16) > 0.9
