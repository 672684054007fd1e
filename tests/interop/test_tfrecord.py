"""TFRecord: what the tfrecord package and protobuf itself write is read here, and ours is read
there, byte for byte what protobuf's deterministic output is."""
import gzip
import struct

import datasets
from weirtest import need

np = need("numpy")
crc32c = need("crc32c")
tfrecord = need("tfrecord")
from tfrecord import example_pb2  # noqa: E402


def check(data):
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    size = struct.pack("<Q", len(data))
    return size + check(size) + data + check(data)


def example(i):
    """As protobuf has it, and the fields that it should be."""
    message = example_pb2.Example()
    feature = message.features.feature
    whole = [0, -1, 2**63 - 1, -2**63, i, 127, 128]
    floats = np.array([0.5, -1e30, float("inf"), i], np.float32)
    feature["image/encoded"].bytes_list.value.append(bytes([i, 255]) * (100 * i))
    feature["label"].int64_list.value.extend(whole)
    feature["ünicode"].float_list.value.extend(floats)
    feature["many"].bytes_list.value.extend([b"x", b"", b"z" * i])
    feature["none"].float_list.SetInParent()
    feature["unset"].SetInParent()
    return message, {
        "image/encoded": bytes([i, 255]) * (100 * i), "label": np.array(whole, np.int64),
        "ünicode": floats, "many/0": b"x", "many/1": b"", "many/2": b"z" * i,
        "none": np.array([], np.float32), "unset": None}


def assert_same(got, expected):
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        assert sorted(ours) == sorted(theirs)
        for name, value in theirs.items():
            if isinstance(value, np.ndarray):
                assert ours[name].dtype == value.dtype and ours[name].shape == value.shape
                assert ours[name].tobytes() == value.tobytes()
            else:
                assert ours[name] == value, name


def write(path, count):
    """Records that protobuf made, and what they should be read as."""
    examples = [example(i) for i in range(count)]
    path.write_bytes(b"".join(record(message.SerializeToString(deterministic=True))
                              for message, _ in examples))
    return [fields for _, fields in examples]


def test_of_the_package(tmp_path):
    path = tmp_path / "a.tfrecord"
    writer = tfrecord.TFRecordWriter(str(path))
    for i in range(9):
        writer.write({"image": (b"\xff\xd8" * i, "byte"), "label": (i - 3, "int"),
                      "box": ([0.25 * i, 1.5], "float"), "ids": ([i, -i, 1 << 40], "int")})
    writer.close()
    loaded = list(tfrecord.tfrecord_loader(str(path), None))
    assert len(loaded) == 9
    assert_same(datasets.dump(tmp_path), loaded)


def test_of_protobuf(tmp_path):
    first = write(tmp_path / "a.tfrecord-00000-of-00002", 20)
    second = write(tmp_path / "a.tfrecord-00001-of-00002", 3)
    assert_same(datasets.dump(tmp_path), first + second)


def test_compressed(tmp_path):
    expected = write(tmp_path / "plain", 5)
    data = (tmp_path / "plain").read_bytes()
    (tmp_path / "plain").unlink()
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(data))
    assert_same(datasets.dump(tmp_path), expected)


def test_numbers_one_by_one(tmp_path):
    """Writers before proto3 did not pack."""
    def framed(field, data):
        return bytes([field << 3 | 2, len(data)]) + data

    floats = framed(2, b"".join(b"\x0d" + struct.pack("<f", x) for x in (0.5, 2)))
    wholes = framed(3, b"\x08\x01\x08\xac\x02\x08" + b"\xff" * 9 + b"\x01")
    features = b"".join(framed(1, framed(1, name) + framed(2, value))
                        for name, value in ((b"f", floats), (b"i", wholes)))
    data = framed(1, features)
    assert list(example_pb2.Example.FromString(data).features.feature["i"].int64_list.value) == [
        1, 300, -1]
    (tmp_path / "a.tfrecord").write_bytes(record(data))
    assert_same(datasets.dump(tmp_path), [{"f": np.array([0.5, 2], np.float32),
                                           "i": np.array([1, 300, -1], np.int64)}])


def test_no_bytes(tmp_path):
    """A list without values is nothing; there is no other way to say it."""
    message = example_pb2.Example()
    message.features.feature["a"].bytes_list.SetInParent()
    (tmp_path / "a.tfrecord").write_bytes(record(message.SerializeToString()))
    assert datasets.dump(tmp_path) == [{"a": None}]


def test_other_records(tmp_path):
    message = example_pb2.SequenceExample()
    message.context.feature["a"].int64_list.value.append(1)
    message.feature_lists.feature_list["b"].feature.add().int64_list.value.append(2)
    datas = [b"anything", b"", message.SerializeToString()]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(map(record, datas)))
    assert datasets.dump(tmp_path) == [{"data": data} for data in datas]


def test_damage(tmp_path):
    path = tmp_path / "a.tfrecord"
    write(path, 3)
    data = path.read_bytes()
    for at in (0, 9, 13, len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        assert "CRC" in datasets.fails(tmp_path)
    path.write_bytes(data[:-1])
    assert "cut off" in datasets.fails(tmp_path)


def test_ours_is_read_there(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    path = source / "a.tfrecord"
    expected = write(path, 7)
    datasets.copy(source, target, "tfrecord")
    ours = target / "shard-000000.tfrecord"
    assert ours.read_bytes() == path.read_bytes()
    some = ["image/encoded", "label"]  # it cannot do those without a value
    loaded = list(tfrecord.tfrecord_loader(str(ours), None, some))
    assert len(loaded) == 7
    for each, fields in zip(loaded, expected):
        assert each["image/encoded"] == fields["image/encoded"]
        assert each["label"].tolist() == fields["label"].tolist()
    datasets.copy(source, tmp_path / "packed", "tfrecord", "gz", 3)
    packed = sorted((tmp_path / "packed").glob("*.tfrecord.gz"))
    assert len(packed) == 3
    loaded = [each for shard in packed
              for each in tfrecord.tfrecord_loader(str(shard), None, some,
                                                   compression_type="gzip")]
    assert [each["label"].tolist() for each in loaded] == [f["label"].tolist() for f in expected]
