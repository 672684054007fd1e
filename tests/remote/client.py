"""Runs weir on a remote store, from a directory of the test's own, and looks for secrets in all it
says."""
import json
import os
import random
import subprocess

from conftest import WEIR

PATIENCE_S = 600  # longer than any budget that tests set: who takes as long hangs


class Result:
    def __init__(self, rc, out, err):
        self.rc, self.raw = rc, out
        self.out, self.err = out.decode(errors="replace"), err.decode()

    @property
    def doc(self):
        return json.loads(self.raw)


class Client:
    """store: its URL; env: credentials; secrets: what must never be shown."""

    def __init__(self, cwd, store, env, secrets=()):
        self.cwd, self.store = cwd, store
        self.secrets = [*secrets, "AWS4-HMAC"]
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("WEIR_", "AWS_"))}
        self.env |= {"AWS_EC2_METADATA_DISABLED": "true", **env}

    def start(self, *args):
        return subprocess.Popen([WEIR, "--store", self.store, *args], cwd=self.cwd, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def __call__(self, *args, rc=0):
        """Runs to the end. rc None: whatever the end is."""
        process = self.start(*args)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"{args} hangs") from None
        result = Result(process.returncode, out, err)
        said = result.out + result.err
        assert not [word for word in self.secrets if word in said], "a secret was shown"
        assert result.rc in (0, 1, 2), f"{args} died: {result.rc}\n{said[-3000:]}"
        assert "ERROR: " not in result.err, result.err[-6000:]
        if rc is not None:
            assert result.rc == rc, f"{args}: exit {result.rc}, not {rc}\n{said[-3000:]}"
        return result

    def fails(self, *args):
        """With exactly one line that says why; returned without its 'weir: '."""
        lines = self(*args, rc=1).err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("weir: "), lines
        return lines[0][len("weir: "):]

    def file(self, name, size, seed=1):
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(seed).randbytes(size))
        return path

    def put(self, key, size, seed=1):
        """Stores bytes of a seed, by way of a file of the same name."""
        path = self.file(f"in-{key}", size, seed)
        self("-q", "put", str(path), key)
        return path

    def has(self, key, path):
        """The object is just this file."""
        out = self.cwd / "out"
        self("-q", "get", "--force", key, str(out))
        return out.read_bytes() == path.read_bytes()

    def keys(self):
        return self("ls", "-r").out.split()
