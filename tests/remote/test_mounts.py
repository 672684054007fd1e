"""The file tier on shared file systems that are really mounted: the suite of every tier, and
writers that are killed. The suite is the short one unless WEIR_TEST_LONG is set."""
import os
import subprocess
import time

import pytest

import mounts
from conftest import BUILD

LONG = bool(os.environ.get("WEIR_TEST_LONG"))
CONFORMANCE = BUILD / "tests/conformance/conformance"
KILL = BUILD / "tests/fault/fault_kill"
# Both, one after the other; MOUNTED becomes the directory.
BOTH = ["sh", "-ec", f'"{CONFORMANCE}" url; "{KILL}"']
ENV = {"WEIR_TEST_URL": "file:MOUNTED/{}", "TMPDIR": "MOUNTED",
       "WEIR_ROUNDS": "60" if LONG else "6", **({} if LONG else {"WEIR_TEST_SHORT": "1"})}


def check(done):
    assert done.returncode == 0, done.stdout[-4000:]
    assert "ok sweep" in done.stdout and "objects verified" in done.stdout, done.stdout[-4000:]


def need(*programs):
    why = mounts.missing(*programs)
    if why:
        pytest.skip(why)


def test_gluster():
    """Three copies, kept by GlusterFS."""
    need("glusterd", "gluster", "glusterfs")
    check(mounts.within("gluster", *BOTH, env={**os.environ, **ENV}))


@pytest.fixture
def cephfs(cluster):
    """The cluster with a file system in it."""
    if not LONG:
        pytest.skip("takes its time: make test-long runs it")
    need("ceph-mds", "ceph-fuse")
    home = cluster.dir / "mds"
    home.mkdir()
    keyring = home / "keyring"
    cluster.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mds.a")
    cluster.run("ceph", "auth", "add", "mds.a", "mon", "allow profile mds", "osd", "allow *",
                "mds", "allow *", "-i", keyring)
    cluster.ceph("osd pool create weirfs-meta 8", "osd pool create weirfs-data 8",
                 "fs new weirfs weirfs-meta weirfs-data")
    cluster.launch("mds", "ceph-mds", "-i", "a", "--mds_data", str(home), "--keyring",
                   str(keyring))
    end = time.monotonic() + mounts.PATIENCE_S
    while "up:active" not in cluster.run("ceph", "mds", "stat"):
        assert time.monotonic() < end, cluster.log("mds")
        time.sleep(0.2)
    yield cluster
    cluster.kill("mds")
    del cluster.daemons["mds"]


def test_cephfs(cephfs):
    check(mounts.within("cephfs", cephfs.conf, *BOTH, env={**cephfs.env, **ENV}))


def test_nfs(tmp_path):
    """On a mount that somebody made: a kernel with NFS can, and this test cannot know which."""
    place = os.environ.get("WEIR_TEST_NFS")
    with open("/proc/filesystems") as kinds:
        has_client = any(line.split()[-1] in ("nfs", "nfs4") for line in kinds)
    if not place:
        pytest.skip("WEIR_TEST_NFS does not name a directory on NFS"
                    + ("" if has_client else ", and this kernel has no NFS client"))
    env = {name: value.replace("MOUNTED", f"{place}/{tmp_path.name}-{os.getpid()}")
           for name, value in ENV.items()}
    os.makedirs(env["TMPDIR"])
    check(subprocess.run(BOTH, env={**os.environ, **env}, text=True, timeout=600,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
