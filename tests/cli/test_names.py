"""Keys: which are taken, which are refused."""
import pytest

GOOD = ["a", "A", "with space", " leading", "trailing ", "ünï¢ödé/日本語", "a=b&c?d#e%20", "-dash",
        "--double", "'quote\"", "dot.", ".hidden", "...", "a/.weir/b", "a~b", "x~" + "g" * 32,
        "p" * 220, "/".join(["p" * 100] * 10), "\U0001f98b"]

BAD = {
    "": "empty part", "/": "empty part", "/a": "empty part", "a//b": "empty part",
    ".": "'.' or '..'", "..": "'.' or '..'", "a/../b": "'.' or '..'", "./a": "'.' or '..'",
    ".weir": "engine's own", ".weir/store": "engine's own", "a~": "engine's own",
    "dir~/x": "engine's own", "a~" + "0" * 32: "engine's own",
    "a\nb": "control character", "\x1b[31m": "control character", "a\x7f": "control character",
    "a\u0085b": "control character", b"\xff\xfe": "not UTF-8", b"a\xc0\xaf": "not UTF-8",
    "p" * 221: "220 bytes", "/".join(["p" * 200] * 6): "1024 bytes",
}


def test_good_keys(weir):
    for i, key in enumerate(GOOD):
        weir("put", "--", "-", key, input=str(i))
    assert sorted(weir.keys()) == sorted(GOOD)
    for i, key in enumerate(GOOD):
        assert weir("cat", "--", key).out == str(i)
        assert weir.json("stat", "--", key)["objects"][0]["key"] == key
    weir("verify")
    weir("rm", "--", *GOOD)
    assert weir.keys() == []


@pytest.mark.parametrize("key", BAD, ids=repr)
def test_bad_keys(weir, key):
    weir("init")
    if key != "" and key != "/":
        assert BAD[key] in weir.fails("put", "-", key, input="x")
    for command in "cat", "stat", "get":
        text = weir.fails(command, key)
        assert BAD[key] in text and "\x1b" not in text
    if key:
        assert BAD[key] in weir.fails("rm", key)
        assert BAD[key] in weir.json("stat", key, rc=1)["error"]["text"]
    assert weir.keys() == []


def test_names_of_files_that_are_no_keys(weir):
    weir.file("tree/ok")
    for name in b"\xff", b"a\nb", b"~":
        with open(bytes(weir.cwd / "tree") + b"/" + name, "wb"):
            pass
    result = weir("put", "-r", "tree", "k", rc=1)
    assert weir.keys() == ["k/ok"]
    assert len(result.err.splitlines()) == 1 + 3  # one made the store
    assert result.err.isascii()
    doc = weir.json("put", "-r", "tree", "k", rc=1)
    assert doc["failed"] == 3 and doc["unchanged"] == 1
