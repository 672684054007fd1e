"""weir get and weir cat: objects become files and streams."""
import os
import stat
import tempfile

import pytest

MIB = 1 << 20


@pytest.fixture
def content(weir):
    data = os.urandom(3 * MIB + 17)
    weir.put("dir/f", data)
    return data


def leftovers(weir):
    return [p for p in weir.cwd.rglob(".weir-get-*")]


@pytest.mark.parametrize("args, path", [
    ([], "f"), (["."], "f"), (["out"], "out"), (["sub/"], "sub/f"), (["there"], "there/f"),
    (["new/dirs/out"], "new/dirs/out"),
])
def test_where_it_goes(weir, content, args, path):
    (weir.cwd / "there").mkdir()
    result = weir("get", "dir/f", *args)
    assert (weir.cwd / path).read_bytes() == content
    assert result.out.startswith("dir/f  3.0 MiB  to ") and result.out.endswith(path + "\n")
    assert leftovers(weir) == []


def test_onto_a_file_system_without_direct_io(weir, content):
    if not os.path.isdir("/dev/shm"):
        pytest.skip("there is no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        weir("get", "dir/f", shm)
        with open(f"{shm}/f", "rb") as f:
            assert f.read() == content


def test_its_mode_is_the_users(weir, content):
    old = os.umask(0o027)
    try:
        weir("get", "dir/f", "out")
    finally:
        os.umask(old)
    assert stat.S_IMODE((weir.cwd / "out").stat().st_mode) == 0o640


def test_to_standard_output(weir, content):
    result = weir("get", "dir/f", "-")
    assert result.raw == content and result.err == ""
    assert weir("get", "dir/f", "/dev/stdout").raw.startswith(content)


def test_existing_files(weir, content):
    weir.file("out", b"mine")
    assert weir.fails("get", "dir/f", "out") == "'out' exists already: --force replaces it"
    assert (weir.cwd / "out").read_bytes() == b"mine"
    weir("get", "dir/f", "out", "--force")
    assert (weir.cwd / "out").read_bytes() == content
    assert weir("get", "dir/f", "out").out == "dir/f  3.0 MiB  unchanged in out\n"
    # A part is not the object, even if it is the same file.
    assert "exists already" in weir.fails("get", "dir/f", "out", "--range", "0-")
    weir.put("empty", b"")
    weir("get", "empty", "e")
    assert "unchanged" in weir("get", "empty", "e").out


def test_devices_and_directories_are_not_replaced(weir, content):
    weir("get", "dir/f", "/dev/null", "--force")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (weir.cwd / "d/f").mkdir(parents=True)
    assert "it is a directory" in weir.fails("get", "dir/f", "d", "--force")
    (weir.cwd / "dangling").symlink_to("nowhere")
    assert "exists already" in weir.fails("get", "dir/f", "dangling")


def test_cannot_be_written(weir, content):
    weir.file("plain")
    assert "Not a directory" in weir.fails("get", "dir/f", "plain/out")
    assert "No space left" in weir.fails("get", "dir/f", "/dev/full")


@pytest.mark.parametrize("text, begin, end", [
    ("0-0", 0, 1), ("0-", 0, None), ("5-9", 5, 10), ("1048575-1048576", MIB - 1, MIB + 1),
    ("3145728-99999999", 3 * MIB, None), ("-1", -1, None), ("-17", -17, None),
    ("-99999999", 0, None), ("100-3000000", 100, 3000001),
    ("0-18446744073709551615", 0, None),
])
def test_range(weir, content, text, begin, end):
    assert weir("get", "dir/f", "-", "--range", text).raw == content[begin:end]
    weir("get", "dir/f", "part", f"--range={text}")
    assert (weir.cwd / "part").read_bytes() == content[begin:end]


@pytest.mark.parametrize("text", ["", "-", "a-b", "5", "9-5", "1-2-3", "-0", "0x1-2", " 1-2",
                                  "1-2 ", "--5", "99999999999999999999-", "1.5-2"])
def test_wrong_range(weir, content, text):
    assert "is not a byte range" in weir.fails("get", "dir/f", "-", "--range", text, rc=2)


def test_range_outside(weir, content):
    weir.put("empty", b"")
    for key, text in ("dir/f", f"{len(content)}-"), ("empty", "0-"), ("empty", "-5"):
        assert "none is in the range" in weir.fails("get", key, "out", "--range", text)
    assert not (weir.cwd / "out").exists()


def test_damage(weir, content):
    weir.flip("dir/f", MIB + 5)
    text = "'dir/f' is damaged in block 1 (bytes 1048576-2097151)"
    assert text in weir.fails("get", "dir/f", "out")
    assert not (weir.cwd / "out").exists() and leftovers(weir) == []
    assert text in weir.fails("get", "dir/f", "-")
    assert weir("get", "dir/f", "-", "--range", "0-99").raw == content[:100]
    result = weir("cat", "dir/f", "dir/f", rc=1)
    assert result.err.count(text) == 2 and len(result.raw) <= 2 * MIB


def test_recursive(weir):
    names = ["a", "sub/b", "sub/deep/c", "sp ace/ü"]
    for name in names:
        weir.put("k/" + name, name)
    weir.put("other", "other")
    result = weir("get", "-r", "k", "out/put")
    assert result.lines[-1] == "4 objects written (25 B)"
    for name in names:
        assert (weir.cwd / "out/put" / name).read_text() == name
    assert weir("get", "-r", "k/", "out/put").lines[-1].startswith("0 objects written, 4 unchanged")
    (weir.cwd / "out/put/a").unlink()
    weir.file("out/put/sub/b", "mine")
    result = weir("get", "-r", "k", "out/put", rc=1)
    assert result.lines[-1].startswith("1 object written, 2 unchanged")
    assert "'out/put/sub/b' exists already" in result.err
    weir("get", "-r", "k", "out/put", "-f")
    assert (weir.cwd / "out/put/sub/b").read_text() == "sub/b"
    weir("get", "-r", "", "all")
    assert (weir.cwd / "all/other").exists() and (weir.cwd / "all/k/a").exists()


def test_a_name_beside_a_directory_of_that_name(weir):
    weir.put("k/a", "1")
    weir.put("k/a/b", "2")
    assert weir("cat", "k/a", "k/a/b").out == "12"
    result = weir("get", "-r", "k", "out", "--jobs", "1", rc=1)  # no file system can hold both
    assert (weir.cwd / "out/a").read_text() == "1"
    assert len(result.err.splitlines()) == 1
    weir("get", "-r", "k/a", "below")
    assert [p.name for p in (weir.cwd / "below").iterdir()] == ["b"]


def test_missing(weir, content):
    for args in ["get", "nope"], ["cat", "nope"], ["get", "dir"]:
        assert "there is no object" in weir.fails(*args)
    assert "no directory 'nope/'" in weir.fails("get", "-r", "nope")
    assert "no directory 'dir/f/'" in weir.fails("get", "-r", "dir/f")


@pytest.mark.parametrize("args", [
    ["get", "-r", "dir", "-"], ["get", "-r", "dir", "out", "--range", "0-1"],
    ["--json", "get", "dir/f", "-"], ["--json", "cat", "dir/f"]])
def test_wrong_calls(weir, content, args):
    weir(*args, rc=2)


def test_cat(weir):
    weir.put("a", "1\n")
    weir.put("b", b"")
    weir.put("c", "3\n")
    assert weir("cat", "a", "b", "c").out == "1\n3\n"
    result = weir("cat", "a", "nope", "c", rc=1)
    assert result.out == "1\n3\n" and "'nope'" in result.err
    with open("/dev/full", "wb") as full:
        process = weir.start("cat", "a", stdout=full, stderr=-1)
        assert b"No space left" in process.communicate()[1] and process.returncode == 1
