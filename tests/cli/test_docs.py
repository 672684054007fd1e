"""What is made from the tables is up to date, and the tour works."""
import shutil
import subprocess

import pytest

from conftest import BIN, PATIENCE_S, ROOT


@pytest.mark.parametrize("option, path", [("--man", "man/weir.1"),
                                          ("--markdown", "docs/options.md")])
def test_up_to_date(weir, option, path):
    made = weir("help", option).out
    assert (ROOT / path).read_text() == made, f"run: weir help {option} >{path}"
    for command in weir.json("help")["commands"]:
        assert command["summary"] in made.replace("\\-", "-").replace("\\(aq", "'")
    for name in "WEIR_STORE", "write_rate", "EUNKNOWN":
        assert name in made.replace("\\", "")


def test_man_page_is_good_roff(weir):
    if not shutil.which("groff"):
        pytest.skip("there is no groff")
    for topic in [], ["put"], ["urls"]:
        page = weir("help", "--man", *topic).raw
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Kutf8"], input=page,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0 and done.stderr == b""


def test_the_demo(tmp_path):
    """The tour of `make demo`; it checks each of its steps itself."""
    done = subprocess.run([ROOT / "tools/demo", BIN], env={"PATH": "/usr/bin:/bin",
                          "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE_S)
    text = done.stdout.decode()
    assert done.returncode == 0, text
    assert "damaged in block 11 (bytes 11534336-12582911)" in text
    assert "8 of 8 as promised" in text
    assert list(tmp_path.iterdir()) == []


def test_the_demo_notices(tmp_path):
    """A weir that finds no damage must not pass."""
    fake = tmp_path / "weir"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *damaged*) exit 0;; esac\nexec "{BIN}" "$@"\n')
    fake.chmod(0o755)
    done = subprocess.run([ROOT / "tools/demo", fake], env={"PATH": "/usr/bin:/bin"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert b"did not behave" in done.stderr
