"""weir log: what a log says, what a save consists of, and whether it is all there."""
import os
import subprocess

import pytest

from conftest import BIN

MAKELOG = BIN.parents[2] / "tests/cli/makelog"


def make(weir, log="ckpt/run", saves=5, parts=3, keep=2):
    subprocess.run([MAKELOG, weir.store, log, str(saves), str(parts), str(keep)], check=True)


def damage(path):
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def record(weir, number, log="ckpt/run"):
    return weir.store / ".weir/log" / (log + "~") / f"{number:020}"


def test_ls(weir):
    weir("init")
    assert weir("log", "ls").out == ""
    assert weir("log", "ls", "--json").doc == []
    make(weir)
    make(weir, log="ckpt/another", saves=1, parts=1)
    out = weir("log", "ls").lines
    assert out[0].split() == ["records", "saves", "changed", "newest", "log"]
    assert out[1].endswith(" 1             ckpt/another")
    assert out[2].split()[:2] == ["7", "2"] and out[2].endswith(" 5             ckpt/run")
    doc = weir("log", "ls", "--json").doc
    assert [log["name"] for log in doc] == ["ckpt/another", "ckpt/run"]
    assert {k: doc[1][k] for k in ("records", "attempt", "live", "retired", "newest")} == {
        "records": 7, "attempt": 1, "live": 2, "retired": 3, "newest": "5"}


def test_show_a_log(weir):
    make(weir)
    out = weir("log", "show", "ckpt/run").out
    assert "attempt       1\n" in out
    assert [line.split()[0] for line in out.splitlines() if " live " in line] == ["4", "5"]
    doc = weir("log", "show", "ckpt/run", "--json").doc
    assert [save["live"] for save in doc["saves"]] == [False, False, False, True, True]
    assert doc["record"] == 7 and len(doc["sha256"]) == 64
    older = weir("log", "show", "ckpt/run", "--record", "2", "--json").doc
    assert [save["name"] for save in older["saves"]] == ["1"]


def test_show_a_save(weir):
    make(weir)
    doc = weir("log", "show", "ckpt/run", "5", "--json").doc
    assert doc["prefix"] == "ckpt/run/5-1.5" and doc["parts"] == 3
    assert [[ref["name"] for ref in part["refs"]] for part in doc["list"]] == [
        ["rank-0.bin", "manifest"], ["rank-1.bin"], ["rank-2.bin"]]
    assert doc["list"][0]["note"] == "noted"
    assert weir("cat", doc["prefix"] + "/rank-1.bin").out == "rank-1.bin"
    assert "rank-2.bin" in weir("log", "show", "ckpt/run", "5").out


def test_show_a_table(weir):
    make(weir)
    rows = [{"key": "bytes", "value": {"hex": "ff00"}}, {"key": "text", "value": "hello"}]
    assert weir("log", "show", "ckpt/run", "5", "manifest", "--json").doc == rows
    assert weir("log", "show", "ckpt/run", "5", "manifest").lines[1] == (
        '{"key":"text","value":"hello"}')


@pytest.mark.parametrize("args, text", [
    (["show", "nothing"], "there is no log 'nothing'"),
    (["show", "ckpt/run", "1"], "there is no '1' in log 'ckpt/run'"),
    (["show", "ckpt/run", "--record", "8"], "log 'ckpt/run' has no record 8"),
    (["show", "ckpt/run", "5", "none"], "refers to no 'none'"),
    (["show", "ckpt/run", "5", "rank-0.bin"], "is an object, not a table: weir cat shows it"),
    (["show", "../x"], "'../x'"),
    (["verify", "nothing"], "there is no log 'nothing'"),
])
def test_what_is_not_there(weir, args, text):
    make(weir)
    assert text in weir("log", *args, rc=1).err


@pytest.mark.parametrize("args, text", [
    (["log"], "'log' is followed by a command (see: weir log --help)"),
    (["log", "shwo"], "there is no command 'log shwo': did you mean log show?"),
    (["log", "show"], "log show needs NAME [SAVE [TABLE]]"),
    (["log", "ls", "x"], "'x' is one too many"),
    (["log", "show", "x", "1", "--record", "2"], "--record is for a log, not for a save of it"),
])
def test_usage(weir, args, text):
    assert text in weir(*args, rc=2).err


def test_help_of_the_group(weir):
    for args in (["log", "--help"], ["help", "log"]):
        out = weir(*args).out
        assert out.startswith("usage: weir log COMMAND") and "log verify" in out
    assert weir("help", "log", "show").out == weir("log", "show", "--help").out


def test_verify(weir):
    make(weir)
    make(weir, log="b", saves=1, parts=1)
    assert weir("log", "verify", "ckpt/run").out == (
        "verified ckpt/run: 7 records, 2 live saves of 6 parts with 8 objects\n")
    doc = weir("log", "verify", "--json").doc
    assert sorted(log["name"] for log in doc) == ["b", "ckpt/run"] and all(log["ok"] for log in doc)


def test_verify_names_the_broken_record(weir):
    make(weir)
    damage(record(weir, 3))
    assert "record 3 of log 'ckpt/run'" in weir("log", "verify", rc=1).err
    record(weir, 3).unlink()
    result = weir("log", "verify", "--json", rc=1)
    assert "record 3 of log 'ckpt/run' is missing" in result.doc[0]["errors"][0]["text"]
    record(weir, 3).write_bytes(record(weir, 4).read_bytes())
    assert "record 3 of log 'ckpt/run'" in weir("log", "verify", rc=1).err


def test_verify_names_what_is_not_as_committed(weir):
    make(weir)
    weir("rm", "--force", "ckpt/run/5-1.5/rank-1.bin")
    err = weir("log", "verify", rc=1).err
    assert "'ckpt/run/5-1.5' is committed, but 'rank-1.bin' is not there" in err
    weir("put", "-", "ckpt/run/5-1.5/rank-1.bin", input="rank-1.bin")
    err = weir("log", "verify", rc=1).err
    assert "'ckpt/run/5-1.5/rank-1.bin' is not what log 'ckpt/run' committed" in err
    damage(next((weir.store / ".weir/set/ckpt/run/4-1.4~").glob("2.0")))
    err = weir("log", "verify", rc=1).err
    assert "4-1.4~/2.0" in err and "rank-1.bin" in err


def test_a_hole_is_not_the_end(weir):
    make(weir, saves=6)
    record(weir, 7).unlink()
    text = "record 7 of log 'ckpt/run' is missing: restore it from a copy"
    assert text in weir("log", "show", "ckpt/run", rc=1).err
    assert text in weir("log", "ls", rc=1).err
    assert not record(weir, 7).exists()
    assert text in weir("gc", rc=1).err


@pytest.mark.parametrize("lost", [[1], [1, 2], [1, 2, 3]])
def test_a_log_without_its_beginning_is_one(weir, lost):
    make(weir)
    for number in lost:
        record(weir, number).unlink()
    for args in (["ls"], ["verify"]):
        assert "record 1 of log 'ckpt/run' is missing" in weir("log", *args, rc=1).err
    assert "record 1 of log 'ckpt/run' is missing" in weir("gc", rc=1).err


def test_names_that_are_no_logs_are_passed_over(weir):
    make(weir)
    for name in ("no key~~", ".weir~"):
        stray = record(weir, 1, log=name[:-1])
        stray.parent.mkdir()
        stray.write_bytes(b"x")
    assert len(weir("log", "ls", "--json").doc) == 1
    weir("log", "verify")
    weir("gc")


def test_ls_shows_the_damaged_one(weir):
    make(weir)
    make(weir, log="b", saves=1, parts=1)
    damage(record(weir, 7))
    doc = weir("log", "ls", "--json", rc=1).doc
    assert [log["name"] for log in doc] == ["b", "ckpt/run"] and "error" not in doc[0]
    assert doc[1]["error"]["code"] == "EBADMSG" and set(doc[1]) == {"name", "error"}
    err = weir("log", "ls", rc=1).err
    assert "restore it from a copy" in err and "weir log show ckpt/run --record 6 shows" in err
    assert weir("log", "show", "ckpt/run", "--record", "6", "--json").doc["record"] == 6


def test_verify_goes_on_behind_a_bad_name(weir):
    make(weir)
    result = weir("log", "verify", "../x", "nope", "ckpt/run", rc=1)
    assert result.out == "verified ckpt/run: 7 records, 2 live saves of 6 parts with 8 objects\n"
    assert "'../x'" in result.err and "there is no log 'nope'" in result.err
    doc = weir("log", "verify", "../x", "nope", "ckpt/run", "--json", rc=1).doc
    assert [(log["name"], log["ok"]) for log in doc] == [
        ("../x", False), ("nope", False), ("ckpt/run", True)]


@pytest.mark.parametrize("number, how", [(3, "damage"), (3, "unlink"), (6, "unlink"),
                                         (7, "damage")])
def test_verify_looks_at_the_saves_of_a_broken_log(weir, number, how):
    make(weir)
    weir("rm", "--force", "ckpt/run/5-1.5/rank-1.bin")
    weir("rm", "--force", "ckpt/run/5-1.5/rank-2.bin")
    damage(record(weir, number)) if how == "damage" else record(weir, number).unlink()
    result = weir("log", "verify", rc=1)
    assert result.err.count(f"record {number} of log 'ckpt/run'") == 1
    for name in ("rank-1.bin", "rank-2.bin"):
        assert f"'ckpt/run/5-1.5' is committed, but '{name}' is not there" in result.err
    assert result.out.startswith("damaged ckpt/run: ")


def test_verify_names_every_bad_reference(weir):
    make(weir)
    for name in ("5-1.5/rank-0.bin", "5-1.5/manifest", "5-1.5/rank-2.bin", "4-1.4/rank-1.bin"):
        weir("rm", "--force", "ckpt/run/" + name)
    result = weir("log", "verify", rc=1)
    assert result.err.count("is committed, but '") == 4
    assert result.out == "damaged ckpt/run: 7 records, 0 live saves of 3 parts with 4 objects\n"
    assert len(weir("log", "verify", "--json", rc=1).doc[0]["errors"]) == 4


def test_gc_takes_what_is_retired(weir):
    make(weir)
    assert "7 younger" not in weir("gc").out
    assert weir("log", "verify").rc == 0
    result = weir("gc", "--now", "--json").doc
    assert result["saves"] == 3 and result["objects"] == 12
    assert [s["name"] for s in weir("log", "show", "ckpt/run", "--json").doc["saves"]] == ["4", "5"]
    assert len(weir("ls", "-r").lines) == 8
    weir("log", "verify")
    weir("verify")


def test_gc_goes_on_beside_a_damaged_log(weir):
    make(weir)
    make(weir, log="b", saves=3, parts=1, keep=1)
    damage(record(weir, 7))
    assert "record 7 of log 'ckpt/run'" in weir("gc", "--now", rc=1).err
    assert len(weir("ls", "-r", "b").lines) == 2
    assert len(weir("ls", "-r", "ckpt").lines) == 20


def test_gc_goes_on_beside_a_damaged_seal(weir):
    make(weir)
    damage(weir.store / ".weir/seal/ckpt/run/2-1.2/rank-1.bin~")
    err = weir("gc", "--now", rc=1).err
    assert "save '2' of log 'ckpt/run' stays" in err and "ckpt/run/2-1.2/rank-1.bin" in err
    doc = weir("log", "show", "ckpt/run", "--json").doc
    assert [save["name"] for save in doc["saves"]] == ["2", "4", "5"]
    weir("log", "verify")


def test_gc_of_a_log_named_like_a_save(weir):
    make(weir, log="models", saves=5, parts=1, keep=5)
    make(weir, log="models", saves=1, parts=1)
    make(weir, log="models/llama-3.1", saves=3, parts=2, keep=3)
    weir("gc", "--now")
    assert "verified models/llama-3.1: 4 records, 3 live saves" in weir("log", "verify").out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_somebody_who_may_only_read(weir):
    make(weir)
    weir("log", "show", "ckpt/run", "5")  # leaves a lease behind
    for path in [weir.cwd, *weir.cwd.parents[:3]]:  # pytest's own
        if not os.stat(path).st_mode & 0o1000:
            path.chmod(0o755)
    if subprocess.run([BIN, "version"], user=65534, cwd=weir.cwd).returncode:
        pytest.skip("others may not run the command where it was built")
    for name in ("5", "4"):
        weir("log", "show", "ckpt/run", name, user=65534, group=65534, extra_groups=[])
    assert "verified" in weir("log", "verify", user=65534, group=65534, extra_groups=[]).out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_gc_frees_a_full_disk(weir):
    weir.store.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=100000", "tmpfs", str(weir.store)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        make(weir)
        with open(weir.store / "fill.raw", "wb", buffering=0) as f, pytest.raises(OSError):
            while True:
                f.write(bytes(4096))
        assert "3 retired or abandoned saves" in weir("gc", "--now").out
        weir("log", "verify")
    finally:
        subprocess.run(["umount", weir.store], check=True)
