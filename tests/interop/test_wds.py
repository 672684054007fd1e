"""WebDataset: shards of the webdataset library and of Python's tarfile, in every form of tar, are
read here as webdataset itself reads them, and ours are read there."""
import bz2
import gzip
import io
import random
import tarfile

import datasets
import pytest
from weirtest import need

np = need("numpy")
wds = need("webdataset")
from webdataset import autodecode, tariterators  # noqa: E402

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
DECODED = {"txt", "text", "transcript", "cls", "cls2", "index", "inx", "id", "json", "jsn", "npy"}


def decoded(suffix, data):
    """As webdataset's own decoders have it; what they cannot decode stays bytes."""
    ending = suffix.rsplit(".", 1)[-1]
    if ending not in DECODED:
        return data
    try:
        return autodecode.decoders[ending](data)
    except Exception:
        return data


def peer(*paths):
    """What webdataset reads: a list of {suffix: value}, with __key__."""
    samples = tariterators.tarfile_samples([{"url": str(path)} for path in paths])
    return [{name: value if name == "__key__" else decoded(name, value)
             for name, value in sample.items() if name not in ("__url__", "__local_path__")}
            for sample in samples]


def assert_same(got, expected):
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            if isinstance(value, np.ndarray):
                assert ours[name].dtype == value.dtype and ours[name].shape == value.shape
                assert ours[name].tobytes() == value.tobytes()
            elif isinstance(ours[name], bytes) and isinstance(value, str):  # a key, not UTF-8
                assert ours[name] == value.encode("utf-8", "surrogateescape")
            else:
                assert ours[name] == value, name


def write(path, members, form="pax", mode="w", **how):
    """Members are (name, content); None is a directory, a tuple a link of that type."""
    with tarfile.open(path, mode, format=FORMATS[form], **how) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.mtime = 1234567890.25 if form == "pax" else 1234567890
            if content is None or isinstance(content, tuple):
                info.type, info.linkname = content or (tarfile.DIRTYPE, "")
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def sample(i):
    return {"__key__": f"dir.d/{i:05d}", "txt": f"words é {i}", "cls": i - 2,
            "json": {"a": [i, None, "é"]}, "npy": np.arange(6, dtype=np.float32).reshape(2, 3) * i,
            "seg.npy": np.arange(i, dtype=np.int64), "jpg": bytes([255, 216, i]) * (i * 200)}


@pytest.mark.parametrize("form", ["USTAR_FORMAT", "PAX_FORMAT", "GNU_FORMAT"])
def test_shards_of_webdataset(tmp_path, form):
    source = tmp_path / "source"
    source.mkdir()
    with wds.ShardWriter(str(source / "shard-%03d.tar"), maxcount=4, verbose=0,
                         format=form) as writer:
        for i in range(11):
            writer.write(sample(i))
    shards = sorted(source.iterdir())
    assert len(shards) == 3
    got = datasets.dump(source)
    assert len(got) == 11 and got[3]["cls"] == 1
    assert_same(got, peer(*shards))


def members():
    small = np.ones((2, 2), np.float64)
    return [
        ("top", None), ("./a.txt", b"one"), ("./a.TXT2", b"two"), ("README", b"dropped"),
        ("top/__x__.txt", b"kept"), ("__meta__", b"skipped"), ("__meta__/x.txt", b"skipped"),
        ("top/b.seg.png", b"\0" * 513), ("top/b.link", (tarfile.SYMTYPE, "b.seg.png")),
        ("top/b.cls", b" 12\n"), ("top/hard.txt", (tarfile.LNKTYPE, "./a.txt")),
        ("top/b.json", b"{"), ("top/b.npy", npy(np.asfortranarray(small))[:-1]),
        ("top/.hidden", b"of the key top/"), ("v1.2/c.txt", b"\xff"), ("v1.2/.c", b"dropped"),
        ("d.", b"no suffix"), ("ü/é.txt", "é".encode()), ("ü/é.jpg", b""),
        ("p" * 90 + "/" + "q" * 80 + ".txt", b"long"), ("p" * 90 + "/" + "q" * 80 + ".id", b"7"),
        ("\udcff\udce4.txt", b"not UTF-8"), ("\udcff\udce4.cls", b"1"),
    ]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_form_of_tar(tmp_path, form):
    names = members()
    if form != "ustar":  # it has no room for those
        names += [("n" * 300 + "/" + "m" * 200 + ".txt", b"very long"),
                  ("n" * 300 + "/" + "m" * 200 + ".jpg", b"very long"), ("z.txt", b"last")]
    write(tmp_path / "a.tar", names, form)
    got = datasets.dump(tmp_path)
    assert len(got) > 8
    assert_same(got, peer(tmp_path / "a.tar"))


def test_global_headers(tmp_path):
    write(tmp_path / "a.tar", [("a.txt", b"x"), ("b.txt", b"y")], pax_headers={"comment": "é" * 99})
    assert_same(datasets.dump(tmp_path), peer(tmp_path / "a.tar"))


def test_any_names(tmp_path):
    rng = random.Random(5)
    written = []
    for i in range(400):
        names = ["".join(rng.choice("ab..//_\n") for _ in range(rng.randint(1, 9)))
                 for _ in range(rng.randint(1, 5))]
        path = tmp_path / f"{i:03d}.tar"
        write(path, [(name, name.encode()) for name in names if name.strip("/")])
        try:
            written += peer(path)
        except (ValueError, tarfile.ReadError):  # a suffix twice; nothing in it
            path.unlink()
    assert len(written) > 300
    assert_same(datasets.dump(tmp_path), written)


def test_compressed(tmp_path):
    names = [(f"{i:03d}.txt", str(i).encode() * 999) for i in range(50)]
    write(tmp_path / "plain", names)
    data = (tmp_path / "plain").read_bytes()
    (tmp_path / "plain").unlink()
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.tgz").write_bytes(gzip.compress(data))
    (tmp_path / "c.tar.bz2").write_bytes(bz2.compress(data))
    expected = peer(*sorted(tmp_path.iterdir()))
    assert len(expected) == 150
    assert_same(datasets.dump(tmp_path), expected)
    (tmp_path / "b.tgz").write_bytes(gzip.compress(data)[:-9])
    assert "b.tgz" in datasets.fails(tmp_path)


def test_what_both_refuse(tmp_path):
    write(tmp_path / "a.tar", [("a.txt", b"x"), ("a.TXT", b"y")])
    with pytest.raises(ValueError):
        peer(tmp_path / "a.tar")
    assert "'a.TXT'" in datasets.fails(tmp_path)


def test_cut_off(tmp_path):
    """Where webdataset sees fewer samples and no more, Weir sees a damaged shard."""
    path = tmp_path / "a.tar"
    write(path, [("a.txt", b"x" * 600), ("b.txt", b"y")])
    data = path.read_bytes()
    for size in (0, 100, 1024, 2048, 3000, len(data) - 9216):
        path.write_bytes(data[:size])
        assert "cut off" in datasets.fails(tmp_path)


def test_ours_is_read_there(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    samples = [sample(i) for i in range(11)]
    samples += [dict(sample(1), __key__=key) for key in
                ("ä" * 60, "k" * 300, "d" * 90 + "/" + "k" * 90, "d" * 200 + "/" + "k" * 10)]
    with wds.TarWriter(open(source / "a.tar", "wb")) as writer:
        for each in samples:
            writer.write(each)
    datasets.copy(source, target, "wds", "", 4)
    shards = sorted(target.glob("*.tar"))
    assert [shard.name for shard in shards] == [f"shard-{i:06d}.tar" for i in range(4)]
    assert_same(datasets.dump(source), peer(*shards))
    again = tmp_path / "again"
    datasets.copy(target, again, "wds", "", 4)
    assert [s.read_bytes() for s in shards] == [s.read_bytes() for s in sorted(again.glob("*.tar"))]
    datasets.copy(source, tmp_path / "packed", "wds", "gz", 4)
    assert_same(datasets.dump(source), peer(*sorted((tmp_path / "packed").glob("*.tar.gz"))))


def test_plain_files_packed(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.seg.png", "dog/1.txt", "dog/README"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode())
    datasets.copy(source, target, "wds")
    got = peer(*target.glob("*.tar"))
    assert got == [
        {"__key__": "cat/1", "jpg": b"cat/1.jpg", "label.txt": "cat"},
        {"__key__": "cat/2", "jpg": b"cat/2.jpg", "label.txt": "cat"},
        {"__key__": "dog/1", "seg.png": b"dog/1.seg.png", "label.txt": "dog"},
        {"__key__": "dog/1-3", "data": b"dog/1.txt", "path.txt": "dog/1.txt", "label.txt": "dog"},
        {"__key__": "dog/README", "data": b"dog/README", "path.txt": "dog/README",
         "label.txt": "dog"}]
