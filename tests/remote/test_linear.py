"""Eight processes commit to a store on real servers: the history is linearizable."""
import os
import subprocess

import pytest
from conftest import BUILD

OPS = "120" if os.environ.get("WEIR_TEST_LONG") else "40"


def commits(url, env):
    done = subprocess.run([BUILD / "tests/remote/commits", url], timeout=900, text=True,
                          env={**os.environ, **env, "WEIR_COMMITS": OPS},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "built without" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-6000:]


def test_s3(rgw):
    commits(rgw.s3_store("linear"), rgw.s3_env)


def test_rados(cluster):
    commits(cluster.rados_store("linear", pool="two"), {})
