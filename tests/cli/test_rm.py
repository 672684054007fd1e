"""weir rm: objects are removed."""
import pytest


@pytest.fixture
def filled(weir):
    for key in "a", "a/b", "dir/x", "dir/sub/y", "top":
        weir.put(key, key)
    return weir


@pytest.mark.parametrize("args, left", [
    (["top"], ["a", "a/b", "dir/sub/y", "dir/x"]),
    (["a"], ["a/b", "dir/sub/y", "dir/x", "top"]),
    (["top", "dir/x"], ["a", "a/b", "dir/sub/y"]),
    (["-r", "dir"], ["a", "a/b", "top"]),
    (["-r", "a"], ["dir/sub/y", "dir/x", "top"]),
    (["-r", "a/"], ["a", "dir/sub/y", "dir/x", "top"]),
    (["-r", "a", "dir", "top"], []),
])
def test_removes(filled, args, left):
    filled("rm", *args)
    assert filled.keys() == left
    # The file a stands where the directory a would: a/b has no plain name.
    plain = [str(p.relative_to(filled.store)) for p in filled.store.rglob("*") if p.is_file()]
    assert sorted(p for p in plain if not p.startswith(".weir/")) == [
        key for key in left if key != "a/b"]
    assert filled.debris() == ([], 0)
    for key in left:
        assert filled("cat", key).out == key


def test_says_what(filled):
    assert filled("rm", "top").out == "removed top\n"
    assert filled("rm", "-r", "dir").lines == ["removed dir/sub/y", "removed dir/x",
                                               "2 objects removed (14 B)"]
    assert filled("rm", "-q", "a").out == ""


def test_dry_run(filled):
    before = filled.keys()
    assert filled("rm", "-r", "--dry-run", "dir").lines == [
        "would remove dir/sub/y", "would remove dir/x", "2 objects would be removed (14 B)"]
    assert filled("rm", "-n", "top").out == "would remove top\n"
    assert "'nope'" in filled.fails("rm", "-n", "nope")
    doc = filled.json("rm", "-nr", "dir")
    assert [o["status"] for o in doc["objects"]] == ["would be removed"] * 2
    assert filled.keys() == before


def test_missing(filled):
    assert "there is no object 'nope'" in filled.fails("rm", "nope")
    assert "there is no object 'dir'" in filled.fails("rm", "dir")
    assert "no directory 'nope'" in filled.fails("rm", "-r", "nope")
    result = filled("rm", "nope", "top", rc=1)
    assert result.out == "removed top\n" and "nope" in result.err


def test_not_everything_by_mistake(filled):
    assert "would mean everything" in filled.fails("rm", "-r", "", rc=2)
    assert len(filled.keys()) == 5


def test_json(filled):
    doc = filled.json("rm", "top", "nope", rc=1)
    assert doc["done"] == 1 and doc["failed"] == 1
    assert [(o["key"], o["status"]) for o in doc["objects"]] == [("top", "removed"),
                                                                ("nope", "failed")]


def test_again(filled):
    filled("rm", "top")
    filled.put("top", "new")
    assert filled("cat", "top").out == "new"
