"""A store whose data is on a server without conditional PUT, and whose records are elsewhere."""
import os
import subprocess

import pytest
from conftest import WEIR
from proxy import MemoryS3

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(params=["refused", "ignored"])
def server(request):
    with MemoryS3(conditional=request.param) as server:
        server.buckets["box"] = {}
        yield server


def weir(store, *words, rc=0, input=b""):
    base = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "WEIR_"))}
    done = subprocess.run([WEIR, "--store", store, *words], input=input, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**base, **KEYS}, timeout=300)
    assert done.returncode == rc, (words, done.stderr.decode())
    return done.stdout, done.stderr.decode()


def test_records_elsewhere(server, tmp_path):
    alone = f"s3://box/store?endpoint={server.url}"
    both = f"{alone}&commit={tmp_path}/records"
    _, err = weir(alone, "init", rc=1)
    assert "commit=" in err
    weir(both, "init")
    small, large = b"small", os.urandom(20 << 20)
    weir(both, "put", "-", "a/small", input=small)
    weir(both, "put", "-", "large", input=large)
    assert weir(both, "cat", "large")[0] == large
    assert weir(both, "ls", "-r")[0].decode().split() == ["a/small", "large"]
    _, err = weir(both, "put", "-", "a/small", input=b"other", rc=1)
    assert "exists" in err
    weir(both, "verify")
    weir(both, "rm", "large")
    weir(both, "gc")
    assert weir(both, "cat", "a/small")[0] == small
    # Every byte of data is there, and nothing else but the note that says so.
    keys = set(server.buckets["box"])
    assert "store/.weir/store" in keys and not any("/seal/" in key for key in keys)
    assert not any("large" in key for key in keys)
    # Half of it is refused: its data would look like debris.
    _, err = weir(alone, "gc", rc=1)
    assert "commit=" in err
    _, err = weir(f"{alone}&commit={tmp_path}/others", "ls", rc=1)
    assert "commit=" in err
    assert set(server.buckets["box"]) == keys
