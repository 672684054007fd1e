"""Token files as others write them, with numpy: nanoGPT's, both of llm.c's, and an .idx and .bin of
Megatron's. Every sample is what a slice of the array is. Packed anew, they are read with numpy,
too: every token is there once, and documents begin where they did."""
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


# ---- writing ----

def read_megatron(path):
    """As Megatron-LM's IndexedDataset does: the tokens, and where documents begin."""
    raw = path.with_suffix(".idx").read_bytes()
    assert raw[:9] == b"MMIDIDX\x00\x00" and struct.unpack_from("<Q", raw, 9) == (1,)
    dtype = np.dtype({4: np.int32, 8: np.uint16}[raw[17]])
    sequences, documents = struct.unpack_from("<QQ", raw, 18)
    lengths = np.frombuffer(raw, np.int32, sequences, 34)
    begins = np.frombuffer(raw, np.int64, sequences, 34 + 4 * sequences)
    starts = np.frombuffer(raw, np.int64, documents, 34 + 12 * sequences)
    assert len(raw) == 34 + 12 * sequences + 8 * documents
    array = np.fromfile(path, dtype)
    assert np.array_equal(begins, np.concatenate([[0], np.cumsum(lengths)[:-1]]) * dtype.itemsize)
    assert lengths.sum() == len(array) and (lengths > 0).all()
    assert starts[0] == 0 and starts[-1] == sequences and (np.diff(starts) > 0).all()
    return array, begins[starts[:-1]] // dtype.itemsize


def read_llmc(path):
    head = np.fromfile(path, np.int32, 256)
    dtype = {(20240520, 1): np.uint16, (20240801, 7): np.uint32}[tuple(head[:2])]
    array = np.fromfile(path, dtype, offset=1024)
    assert len(array) == head[2]
    return array


def read_all(where, read):
    parts = [read(path) for path in sorted(where.glob("*.bin"))]
    assert len(parts) > 1
    return parts


def pack(weir, source, to, *more):
    return weir.json("data", "pack", source, to, "--format", "tokens", "--shard-size", "64K", *more)


def megatron_source(path, dtype):
    rng = np.random.default_rng(4)
    path.mkdir()
    whole, starts, before = [], [], 0
    for name in ("a", "b"):
        documents = [[numbers(int(n), dtype, i) for n in rng.integers(1, 900, 1 + i % 2)]
                     for i in range(100)]
        array, begins = write_megatron(path / f"{name}_document", documents)
        whole.append(array)
        starts.append(begins + before)
        before += len(array)
    return np.concatenate(whole), np.concatenate(starts)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_megatron_to_megatron(weir, tmp_path, dtype):
    array, starts = megatron_source(tmp_path / "d", dtype)
    pack(weir, "d", "to")
    parts = read_all(tmp_path / "to", read_megatron)
    assert np.array_equal(np.concatenate([tokens for tokens, _ in parts]), array)
    assert all(tokens.dtype == dtype for tokens, _ in parts)
    cuts = np.cumsum([0] + [len(tokens) for tokens, _ in parts])
    got = np.concatenate([begins + cut for (_, begins), cut in zip(parts, cuts)])
    assert np.array_equal(got, np.union1d(starts, cuts[:-1]))
    # Weir reads what it wrote as it reads the source: the same tokens, whatever the shards are.
    samples_are(weir, "to/tokens_000000.bin", parts[0][0], "-O", "dtype=" + np.dtype(dtype).name)


def test_a_shard_that_is_missing_is_made_again(weir, tmp_path):
    """The .idx of a shard is there before its .bin: a kill between them leaves that."""
    megatron_source(tmp_path / "d", np.uint16)
    pack(weir, "d", "to")
    before = {path.name: path.read_bytes() for path in (tmp_path / "to").glob("*.[bi]*")}
    weir("rm", "--store", "to", "--force", "tokens_000001.bin")
    doc = pack(weir, "d", "to")
    assert doc["shards_kept"] == doc["shards"] - 1 and "tokens_000001.idx" in before
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "to").glob("*.[bi]*")}


def test_megatron_to_llmc(weir, tmp_path):
    array, _ = megatron_source(tmp_path / "d", np.uint16)
    pack(weir, "d", "to", "--layout", "llm.c", "--dtype", "u32")
    got = np.concatenate(read_all(tmp_path / "to", read_llmc))
    assert got.dtype == np.uint32 and np.array_equal(got, array)
    assert not list((tmp_path / "to").glob("*.idx"))


@pytest.mark.parametrize("options", [[], ["--source-options", "seq_len=100"]])
def test_bare_to_llmc_keeps_the_end_of_each_file(weir, tmp_path, options):
    (tmp_path / "d").mkdir()
    parts = [numbers(count, np.uint16, count) for count in (100_000, 1, 0, 1023, 1024, 1025, 77)]
    for i, part in enumerate(parts):
        part.tofile(tmp_path / f"d/train_{i}.bin")
    pack(weir, "d", "to", *options)
    got = np.concatenate(read_all(tmp_path / "to", read_llmc))
    assert np.array_equal(got, np.concatenate(parts))


def test_documents_by_a_token_to_megatron(weir, tmp_path):
    """A document that ends with a sample, or with the file, makes none that is empty."""
    array = np.random.default_rng(5).integers(0, 40, 100_000, dtype=np.uint16)
    array[[1023, 1024, 2047, -1]] = 0
    (tmp_path / "d").mkdir()
    array.tofile(tmp_path / "d/train.bin")
    pack(weir, "d", "to", "--layout", "megatron", "--source-options", "eot=0")
    parts = read_all(tmp_path / "to", read_megatron)
    assert np.array_equal(np.concatenate([tokens for tokens, _ in parts]), array)
    cuts = np.cumsum([0] + [len(tokens) for tokens, _ in parts])
    got = np.concatenate([begins + cut for (_, begins), cut in zip(parts, cuts)])
    assert np.array_equal(got, np.union1d(np.flatnonzero(array[:-1] == 0) + 1, cuts[:-1]))


def test_samples_of_another_format_are_documents(weir, tmp_path):
    rows = [list(range(i, i + 1 + i % 7)) for i in range(5000)]
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.jsonl").write_text("".join(f'{{"tokens": {row}}}\n' for row in rows))
    pack(weir, "d", "to", "--layout", "megatron", "--dtype", "u16")
    parts = read_all(tmp_path / "to", read_megatron)
    assert np.array_equal(np.concatenate([tokens for tokens, _ in parts]), np.concatenate(rows))
    assert sum(len(begins) for _, begins in parts) == len(rows)


def test_to_another_format_the_samples_are_those_that_are_read(weir, tmp_path):
    array = numbers(5_000, np.uint16, 6)
    (tmp_path / "d").mkdir()
    array.tofile(tmp_path / "d/train.bin")
    for to, overlap, count in (("a", 1, 4999 // SEQ_LEN), ("b", 0, -(-5000 // SEQ_LEN))):
        doc = weir.json("data", "pack", "d", to, "--format", "mds", "--source-options",
                        f"seq_len={SEQ_LEN}&overlap={overlap}", "--fields", "tokens")
        assert doc["samples"] == count
        raw = weir("data", "cat", to, str(count - 1), "--field", "tokens").raw
        want = array[(count - 1) * SEQ_LEN:count * SEQ_LEN + overlap]
        assert np.array_equal(np.frombuffer(raw, np.uint16), want)


def test_what_cannot_be_is_said(weir, tmp_path):
    (tmp_path / "d").mkdir()
    np.full(10, 1 << 31, np.uint32).tofile(tmp_path / "d/train.bin")
    for more, said in ((["--layout", "huffman"], "llm.c, nanogpt or megatron, not 'huffman'"),
                       (["--dtype", "f32"], "u16 or u32, not as 'f32'"),
                       (["--layout", "megatron"], "does not fit into i32"),
                       (["--dtype", "u16"], "does not fit into u16: choose dtype u32")):
        assert said in weir.fails("data", "pack", "d", "to", "--format", "tokens",
                                  "--source-options", "dtype=u32", *more)
    assert "not of 'mds'" in weir.fails("data", "pack", "d", "to", "--format", "mds", "--layout",
                                        "megatron", "--source-options", "seq_len=2")
