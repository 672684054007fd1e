"""Token files as others write them, with numpy: nanoGPT's, both of llm.c's, and an .idx and .bin of
Megatron's. Every sample is what a slice of the array is."""
import struct

import pytest
from weirtest import need

np = need("numpy")

SEQ_LEN = 64


@pytest.fixture(autouse=True)
def cache(weir, tmp_path):
    weir.env["WEIR_CACHE"] = str(tmp_path / "cache")


def numbers(count, dtype, seed):
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, count, dtype=dtype)


def field(weir, where, n, name, dtype, *options):
    raw = weir("data", "cat", where, str(n), "--field", name, "-O", f"seq_len={SEQ_LEN}",
               *options).raw
    return np.frombuffer(raw, dtype=dtype)


def samples_are(weir, where, array, *options):
    count = weir.json("data", "index", where, "-O", f"seq_len={SEQ_LEN}", *options)["samples"]
    assert count == (len(array) - 1) // SEQ_LEN
    for n in {0, 1, count // 2, count - 1}:
        got = field(weir, where, n, "tokens", array.dtype, *options)
        assert np.array_equal(got, array[n * SEQ_LEN:n * SEQ_LEN + SEQ_LEN + 1])


def test_nanogpt(weir, tmp_path):
    array = numbers(10_000, np.uint16, 1)
    (tmp_path / "d").mkdir()
    array.tofile(tmp_path / "d/train.bin")
    samples_are(weir, "d", array)


def test_bare_of_another_type(weir, tmp_path):
    array = numbers(10_000, np.int32, 2)
    (tmp_path / "d").mkdir()
    array.tofile(tmp_path / "d/train.bin")
    samples_are(weir, "d", array, "-O", "dtype=int32")


def test_llmc(weir, tmp_path):
    for name, dtype, magic, version in (("a", np.uint16, 20240520, 1),
                                        ("b", np.uint32, 20240801, 7)):
        array = numbers(5_000, dtype, 3)
        header = np.zeros(256, dtype=np.int32)
        header[:3] = magic, version, len(array)
        (tmp_path / name).mkdir()
        with open(tmp_path / name / "fineweb_train_000001.bin", "wb") as file:
            file.write(header.tobytes())
            file.write(array.tobytes())
        samples_are(weir, name, array)


def write_megatron(path, documents):
    """As Megatron-LM's IndexedDatasetBuilder does: each document here is one or two sequences."""
    lengths, starts = [], [0]
    for document in documents:
        lengths += [len(sequence) for sequence in document]
        starts.append(len(lengths))
    array = np.concatenate([sequence for document in documents for sequence in document])
    array.tofile(f"{path}.bin")
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * array.itemsize
    with open(f"{path}.idx", "wb") as idx:
        idx.write(b"MMIDIDX\x00\x00")
        idx.write(struct.pack("<Q", 1))
        idx.write(struct.pack("<B", {np.dtype(np.uint16): 8, np.dtype(np.int32): 4}[array.dtype]))
        idx.write(struct.pack("<Q", len(lengths)))
        idx.write(struct.pack("<Q", len(starts)))
        idx.write(np.array(lengths, dtype=np.int32).tobytes())
        idx.write(begins.astype(np.int64).tobytes())
        idx.write(np.array(starts, dtype=np.int64).tobytes())
    return array, begins[np.array(starts[:-1])] // array.itemsize


def test_megatron(weir, tmp_path):
    for name, dtype in (("a", np.uint16), ("b", np.int32)):
        rng = np.random.default_rng(4)
        documents = [[numbers(int(n), dtype, i) for n in rng.integers(1, 90, 1 + i % 2)]
                     for i in range(100)]
        (tmp_path / name).mkdir()
        array, begins = write_megatron(tmp_path / name / "corpus_text_document", documents)
        samples_are(weir, name, array)
        for n in (0, 7, 20):
            got = field(weir, name, n, "starts", np.int32)
            want = begins[(begins >= n * SEQ_LEN) & (begins <= (n + 1) * SEQ_LEN)] - n * SEQ_LEN
            assert np.array_equal(got, want)
