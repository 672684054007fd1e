"""The one suite of checks of every tier, against storage that is really there; the short one
unless WEIR_TEST_LONG is set."""
import os
import subprocess

import pytest

from conftest import BUILD


def conformance(url, env):
    """Runs the program at the URL, in which {} is a place of its own."""
    if not os.environ.get("WEIR_TEST_LONG"):
        env = {**env, "WEIR_TEST_SHORT": "1"}
    done = subprocess.run([BUILD / "tests/conformance/conformance", "url"], text=True,
                          env={**os.environ, **env, "WEIR_TEST_URL": url}, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 77 or "built without" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-4000:]


def test_rados(cluster):
    conformance(cluster.rados_store("conformance-{}", pool="three", object_size="256K"), {})


def test_s3(rgw):
    conformance(rgw.s3_store("conformance-{}", part="5M"), rgw.s3_env)


def test_s3_tls(rgw_tls):
    conformance(rgw_tls.s3_store("conformance-tls-{}", tls=True), rgw_tls.s3_env)
