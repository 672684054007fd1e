"""What the tests of the command share: a weir to run, in a directory of its own."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from processes import is_polite, peak_bytes, reset_signals  # noqa: E402, F401

BIN = Path(os.environ.get("WEIR_BIN", ROOT / "build/plain/src/cli/weir")).resolve()
PATIENCE_S = 300  # a hang is found, and a machine that is busy with other things is none


class Result:
    def __init__(self, rc, out, err):
        self.rc, self.raw, self.err = rc, out, err.decode()

    @property
    def out(self):
        return self.raw.decode()

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def doc(self):
        return json.loads(self.raw)


class Weir:
    """Runs weir in `cwd`; the store is cwd/weir-store unless told otherwise."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.store = cwd / "weir-store"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}

    def start(self, *args, env=None, **more):
        return subprocess.Popen([BIN, *args], cwd=self.cwd, env={**self.env, **(env or {})},
                                preexec_fn=reset_signals, **more)

    def __call__(self, *args, rc=0, input=b"", env=None, **more):
        """Runs to the end, and checks the exit code."""
        process = self.start(*args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **more)
        out, err = process.communicate(input.encode() if isinstance(input, str) else input,
                                       timeout=PATIENCE_S)
        result = Result(process.returncode, out, err)
        assert result.rc == rc, f"{args}: exit {result.rc}, not {rc}\n{result.err}{out[:2000]}"
        # A sanitizer's report, or an assertion, must not pass for an expected failure.
        assert "ERROR: " not in result.err and "assertion" not in result.err.lower(), result.err
        return result

    def fails(self, *args, rc=1, **more):
        """Fails with exactly one line on stderr, which is returned without its 'weir: '."""
        err = self(*args, rc=rc, **more).err
        lines = err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("weir: "), err
        return lines[0][len("weir: "):]

    def json(self, *args, rc=0, **more):
        """The document; nothing may be on stderr."""
        result = self("--json", *args, rc=rc, **more)
        assert result.err == ""
        assert ("error" in result.doc) == (rc != 0) or isinstance(result.doc, list)
        return result.doc

    def file(self, name, content=b"hello\n"):
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def put(self, key, content=b"hello\n"):
        self("put", "-", key, input=content)

    def keys(self):
        return self("ls", "-r").lines

    def data_file(self, key):
        """Where an object's bytes are, made writable for those who want to damage them."""
        path = self.store / self.json("stat", key)["objects"][0]["data_name"]
        path.chmod(0o644)
        return path

    def flip(self, key, at):
        path = self.data_file(key)
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def debris(self):
        """Temporary files, and data that no seal names."""
        tmp = list((self.store / ".weir/tmp").glob("*"))
        data = [p for p in (self.store / ".weir/data").rglob("*") if p.is_file()]
        return tmp, len(data) - len(self.keys())


@pytest.fixture
def weir(tmp_path):
    return Weir(tmp_path)


def wait_for(condition, what, seconds=PATIENCE_S):
    """Waits until condition() is true; how long is no matter, but not forever."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)
