"""Which way the bytes of a dataset come, as stats() tells: mapped, through the kernel's cache, or
around it; and what is never mapped, since its owner may cut it off."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
import weir

np = pytest.importorskip("numpy")

MIB = 1 << 20
SEQ_LEN = 1023


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.mktemp("cache")))


def token_files(path, weir_bin, layout):
    """The same files twice: packed, which are Weir's own, and copied from there."""
    (path / "source").mkdir()
    tokens = np.random.default_rng(1).integers(0, 50000, 4 * MIB, dtype=np.uint16)
    tokens[::1000] = 50256
    tokens.tofile(path / "source/train.bin")
    subprocess.run([weir_bin, "data", "pack", path / "source", path / "packed", "--format",
                    "tokens", "--layout", layout, "--source-options", "eot=50256"], check=True)
    (path / "foreign").mkdir()
    for name in (path / "packed").glob("tokens_*"):
        shutil.copyfile(name, path / "foreign" / name.name)
    return path / "packed", path / "foreign"


def maps_of(path):
    with open("/proc/self/maps") as maps:
        return [line for line in maps if f"{path}/" in line]


def digests(path, **options):
    """Of an epoch, how much of it was mapped, and whether a file of it was."""
    with weir.Dataset(path, seq_len=SEQ_LEN, batch_size=64, seed=1, epochs=1, **options) as ds:
        for _ in ds:
            pass
        stats = ds.stats()
        return ds.digests(), stats["mapped_bytes"] / stats["sample_bytes"], bool(maps_of(path))


@pytest.mark.parametrize("layout", ["nanogpt", "llm.c", "megatron"])
def test_foreign_token_files_are_never_mapped(tmp_path, weir_bin, layout):
    packed, foreign = token_files(tmp_path, weir_bin, layout)
    assert bool(list(foreign.glob("*.idx"))) == (layout == "megatron")
    expected, *how = digests(packed)
    assert how == [1, True]
    for buffered in None, True, False:
        assert digests(foreign, buffered=buffered) == (expected, 0, False)
    assert digests(packed, buffered=False) == (expected, 0, False)


@pytest.mark.parametrize("layout", ["nanogpt", "megatron"])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_foreign_token_file_that_is_cut_off(tmp_path, weir_bin, layout, buffered):
    """In the middle of a loop: an error that names it, where a mapping would end the process."""
    script = textwrap.dedent("""
        import glob, os, sys, weir
        path, buffered = sys.argv[1], sys.argv[2] == "True"
        ds = weir.Dataset(path, seq_len=1023, batch_size=16, seed=1, prefetch=1, lanes=1,
                          window=100, memory=2 << 20, buffered=buffered)
        got = 0
        try:
            for batch in ds:
                got += len(batch["tokens"])
                if got == 32:
                    os.truncate(glob.glob(path + "/*.bin")[0], 5000)
        except OSError as error:
            print(got < ds.samples, error)
    """)
    _, foreign = token_files(tmp_path, weir_bin, layout)
    done = subprocess.run([sys.executable, "-c", script, foreign, str(buffered)], text=True,
                          stdout=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout.startswith("True "), done
    assert "tokens_000000.bin" in done.stdout


def sparse(path, size):
    """A file of so many bytes that takes no room on the disk."""
    try:
        with open(path, "wb") as file:
            file.truncate(size)
    except OSError as error:
        pytest.skip(f"no file of {size} bytes here: {error}")


@pytest.mark.parametrize("is_larger, buffered, way", [
    (False, None, "buffered"), (True, None, "direct"),
    (False, False, "direct"), (True, True, "buffered")])
def test_more_than_half_of_memory_is_read_around_the_cache(tmp_path, is_larger, buffered, way):
    """Unless one says how it is to be read."""
    page, sample = os.sysconf("SC_PAGESIZE"), 2 * SEQ_LEN
    half = os.sysconf("SC_PHYS_PAGES") // 2 * page
    samples = (half + page) // sample + 1 if is_larger else half // sample
    (tmp_path / "d").mkdir()
    sparse(tmp_path / "d/train.bin", samples * sample)
    with weir.Dataset(tmp_path / "d", seq_len=SEQ_LEN, options={"overlap": 0}, batch_size=512,
                      shuffle=False, prefetch=1, buffered=buffered) as ds:
        assert ds.samples == samples and ds.info()["sample_bytes"] == samples * sample
        for _, _ in zip(range(4), ds):
            pass
        stats = ds.stats()
    through, around = (stats[f"{name}_bytes"] for name in ("buffered", "direct"))
    if way == "direct":
        assert around > 3 * MIB and through < MIB, stats  # but for the head
    else:
        assert around == 0 < through and through + stats["cached_bytes"] > 3 * MIB, stats
