"""The command line itself: options anywhere, mistakes answered in one line, JSON for scripts."""
import pytest


def test_no_command(weir):
    assert weir.fails(rc=2) == "a command is missing (see: weir --help)"
    assert weir.fails("--quiet", rc=2) == "a command is missing (see: weir --help)"


@pytest.mark.parametrize("typed, meant", [
    ("pt", "put"), ("lst", "ls"), ("verfy", "verify"), ("ver", "verify"), ("gett", "get"),
    ("ct", "cat"), ("hlep", "help"), ("versoin", "version"),
])
def test_unknown_command(weir, typed, meant):
    assert weir.fails(typed, rc=2) == (
        f"there is no command '{typed}': did you mean {meant}? (see: weir --help)")


def test_unknown_command_unlike_any(weir):
    assert weir.fails("xyzzy", rc=2) == "there is no command 'xyzzy' (see: weir --help)"
    assert weir.fails("", rc=2) == "there is no command '' (see: weir --help)"


@pytest.mark.parametrize("args, text", [
    (["put", "--recursiv", "x"], "there is no option '--recursiv': did you mean --recursive?"),
    (["ls", "--jason"], "there is no option '--jason': did you mean --json?"),
    (["--stor", "x", "ls"], "there is no command 'x'"),
    (["ls", "--stor=x"], "there is no option '--stor': did you mean --store?"),
    (["ls", "--xyzzy"], "there is no option '--xyzzy' (see: weir ls --help)"),
    (["ls", "-x"], "there is no option '-x'"),
    (["ls", "-lx"], "there is no option '-x'"),
    (["ls", "--jobs", "3"], "there is no option '--jobs'"),
    (["ls", "--store"], "--store needs a value (URL)"),
    (["put", "f", "-j"], "--jobs needs a value (N)"),
    (["put", "f", "--jobs", "0"], "--jobs: '0' is out of range (1 to 32)"),
    (["data", "stream", "x", "--batch", "0"], "--batch: '0' is out of range (1 to 16777216)"),
    (["put", "f", "--jobs=33"], "--jobs: '33' is out of range"),
    (["put", "f", "--jobs=two"], "--jobs: 'two' is not a number"),
    (["put", "f", "--recursive=maybe"], "--recursive: 'maybe' is neither 1 nor 0"),
    (["put"], "put needs FILE|- [KEY]"),
    (["cat"], "cat needs KEY…"),
    (["put", "a", "b", "c"], "put: 'c' is one too many; usage: weir put FILE|- [KEY]"),
    (["gc", "x"], "gc: 'x' is one too many"),
    (["help", "nope"], "there is no command 'nope' to help with"),
    (["help", "--man", "--markdown"], "two things"),
])
def test_mistakes(weir, args, text):
    weir.file("f")
    assert text in weir.fails(*args, rc=2)
    assert not weir.store.exists()


def test_options_stand_anywhere(weir):
    weir.file("tree/a")
    weir("--store", "s", "-r", "--jobs", "2", "put", "tree", "k")
    for args in (["ls", "-l", "-r", "--store", "s"], ["-lr", "ls", "-ss"], ["-rls", "s", "ls"],
                 ["--long", "--store=s", "ls", "k", "--recursive"], ["-s", "s", "ls", "-lr", "k"]):
        assert weir(*args).out.endswith("sealed     k/a\n"), args
    assert weir("ls", "--recursive=no", "-l", "--long=0", "-s", "s").out == "k/\n"


def test_end_of_options(weir):
    weir("put", "-", "--", "--long", input="x")
    assert weir("cat", "--", "--long").out == "x"
    assert weir("ls", "--", "--long").out == "--long\n"


def test_help(weir):
    overview = weir("help").out
    assert overview == weir("--help").out == weir("-h").out
    doc = weir.json("help")
    names = [c["name"] for c in doc["commands"]]
    assert sorted(n for n in names if not n.startswith(("ckpt ", "data ", "plan "))) == [
                             "bench", "cat", "gc", "get", "help", "init", "log ls", "log show",
                             "log verify", "ls", "put", "rm", "stat", "trace", "verify", "version"]
    assert {"ckpt diff", "ckpt export", "ckpt import", "ckpt keep", "ckpt ls", "ckpt prune",
            "ckpt rm", "ckpt show", "ckpt verify"} <= set(names)
    assert {"data cat", "data index", "data ls", "data stats"} <= set(names)
    assert {"plan read", "plan checkpoint", "plan interval", "plan raid", "plan cliff",
            "plan endurance", "plan durability", "plan cost", "plan format"} <= set(names)
    for command in doc["commands"]:
        assert f"  {command['name']} " in overview
        assert command["summary"] in " ".join(overview.split())  # it may go over two lines
        words = command["name"].split()
        text = weir("help", *words).out
        for way in [*words, "--help"], ["--help", *words], [*words, "-h"]:
            assert weir(*way).out == text
        assert text.startswith("usage: weir " + command["name"])
        assert "\nExample" in text and "\nWith --json" in text
        assert all(len(line) <= 80 for line in text.splitlines())
        for option in command["options"]:
            assert f"--{option['name']}" in text
    urls = weir("help", "urls").out
    assert "write_rate=SIZE" in urls and "mem:" in urls


def test_one_letter_one_name(weir):
    """An option found before its command must mean the same to every command."""
    letters, values = {}, {}
    doc = weir.json("help")
    for options in [doc["options"], *(c["options"] for c in doc["commands"])]:
        for option in options:
            if "letter" in option:
                assert letters.setdefault(option["letter"], option["name"]) == option["name"]
            takes = "value" in option
            assert values.setdefault(option["name"], takes) == takes


def test_version(weir):
    line = weir("--version").out
    assert line == weir("version").out == f"weir {weir.json('version')['version']}\n"
    assert weir("put", "--version").out == line
    verbose = weir("version", "--verbose").out
    assert verbose.startswith("version ") and "\nio " in verbose and "\nkernel " in verbose
    assert set(weir.json("version", "-v")) == {"version", "kernel", "io", "tiers", "fingerprints"}


def test_json_of_mistakes(weir):
    for args in (["ls", "--bogus"], ["bogus"], [], ["put"], ["ls", "--store"]):
        doc = weir.json(*args, rc=2)
        assert doc["error"]["code"] == "USAGE" and "see: weir" in doc["error"]["text"]


def test_json_of_put_and_get(weir):
    weir.file("tree/a", "12345")
    doc = weir.json("put", "tree/a", "k")
    assert doc == {"objects": [{"key": "k", "status": "stored", "size_bytes": 5, "file": "tree/a",
                                "level": "home"}],
                   "done": 1, "unchanged": 0, "failed": 0, "size_bytes": 5}
    doc = weir.json("put", "-r", "tree")
    assert doc["objects"][0]["key"] == "tree/a" and doc["objects"][0]["file"] == "tree/a"
    doc = weir.json("put", "tree/a", "k")
    assert doc["objects"][0]["status"] == "unchanged" and doc["unchanged"] == 1
    weir.file("tree/a", "other")
    doc = weir.json("put", "tree/a", "k", rc=1)
    assert doc["error"]["code"] == doc["objects"][0]["error"]["code"] == "EEXIST"
    doc = weir.json("get", "k", "out")
    assert doc["objects"] == [{"key": "k", "status": "written", "size_bytes": 5, "file": "out"}]
    assert weir.json("get", "k", "out")["objects"][0]["status"] == "unchanged"
    assert weir.json("get", "nope", rc=1)["error"]["code"] == "ENOENT"


def test_an_outcome_that_is_not_known(weir):
    """The seal is put, the answer lost, and the store cannot be asked: that is not 'failed'."""
    weir("init")
    url = (f"file://{weir.store}?fault_ops=put,load&fault_nth=3&fault_after=1&fault_lasting=1")
    doc = weir.json("--store", url, "put", "-", "k", input="x", rc=1)
    assert doc["error"]["code"] == "EUNKNOWN" and "is unknown" in doc["error"]["text"]
    assert weir("cat", "k").out == "x"  # as it happens, it happened


def test_errors_do_not_garble_the_terminal(weir):
    text = weir.fails("put", "no\x1b[31m\nfile")
    assert "no\\x1b[31m\\x0afile" in text
