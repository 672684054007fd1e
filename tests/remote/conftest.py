"""One real Ceph and one Swift for the whole session; tests use namespaces and prefixes of their
own."""
import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import ceph  # noqa: E402
import openstack  # noqa: E402
import s3  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
WEIR = Path(os.environ.get("WEIR_BIN", ROOT / "build/plain/src/cli/weir")).resolve()
BUILD = WEIR.parents[2]


@pytest.fixture(scope="session")
def running_cluster():
    why = ceph.missing()
    if why:
        pytest.skip(why)
    with ceph.Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(running_cluster):
    """The cluster, whole again after the test, whatever that did to it."""
    yield running_cluster
    running_cluster.heal()


@pytest.fixture
def rgw(cluster):
    """The cluster with RGW running: rgw_url, bucket, s3_store(), s3_env, s3()."""
    why = ceph.missing(rgw=True)
    if why:
        pytest.skip(why)
    cluster.need_rgw()
    return cluster


@pytest.fixture
def rgw_tls(rgw):
    """The same, to be spoken to with TLS: rgw_tls_url, ca, s3_store(tls=True)."""
    return rgw


@pytest.fixture(scope="session")
def running_swift():
    """OpenStack Swift with s3api, and a bucket: url, bucket, env, access_key, secret_key."""
    why = openstack.missing()
    if why:
        pytest.skip(why)
    with openstack.Swift(ceph.free_port()) as swift:
        s3.Client(swift.url, swift.access_key, swift.secret_key).make_bucket(swift.bucket)
        yield swift
