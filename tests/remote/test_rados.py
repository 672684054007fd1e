"""A store in a Ceph pool: the commands, the package, datasets, and what is said when something is
missing."""
import hashlib
import json
import os
import subprocess
import sys

import pytest

from conftest import BUILD, WEIR


def weir(*args, rc=0, env=None, input=None):
    done = subprocess.run([WEIR, *args], env={**os.environ, **(env or {})}, input=input,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == rc, (args, done.stderr.decode(), done.stdout[-500:])
    return done.stdout if rc == 0 else done.stderr.decode()


def names(cluster, namespace, pool="two"):
    return cluster.run("rados", "-p", pool, "-N", namespace, "ls").split()


def test_commands(cluster):
    """Under a user that has rights to its pools alone."""
    store = ["--store", cluster.rados_store("commands", user="weir", object_size="1M")]
    data = os.urandom(9_000_001)
    weir(*store, "init")
    weir(*store, "put", "-", "a/large", input=data)
    weir(*store, "put", "-", "a/small", input=b"hello")
    assert b"exists" in weir(*store, "put", "-", "a/small", input=b"other", rc=1).encode()
    assert weir(*store, "ls", "-r").split() == [b"a/large", b"a/small"]
    assert weir(*store, "get", "a/large", "-") == data
    assert b"2 objects verified" in weir(*store, "verify")
    parts = [name for name in names(cluster, "commands") if name.startswith(".weir/part/")]
    assert len(parts) == 9
    weir(*store, "rm", "a/large")
    weir(*store, "gc", "--now")
    assert weir(*store, "ls", "-r").split() == [b"a/small"]
    assert not [n for n in names(cluster, "commands") if "part" in n or "large" in n]
    # The times are those of the cluster's clock, which is asked at this object.
    assert ".weir/clock" in names(cluster, "commands")


def test_a_writer_that_died_leaves_what_gc_takes(cluster):
    store = ["--store", cluster.rados_store("died", object_size="1M")]
    weir(*store, "init")
    writer = subprocess.Popen([WEIR, *store, "put", "-", "key"], stdin=subprocess.PIPE)
    writer.stdin.write(bytes(5 << 20))
    writer.stdin.flush()
    while not any("part" in name for name in names(cluster, "died")):
        assert writer.poll() is None
    writer.kill()
    writer.wait()
    weir(*store, "gc")
    assert any("part" in name for name in names(cluster, "died"))  # it may still be alive
    weir(*store, "gc", "--now")
    assert not any("part" in name for name in names(cluster, "died"))


def test_checkpoints(cluster, tmp_path):
    store = cluster.rados_store("ckpt")
    subprocess.run([BUILD / "tests/cli/makeckpt", store, "run/a", "7", "2", "0", "{}", "1000"],
                   check=True)
    assert json.loads(weir("--store", store, "--json", "ckpt", "ls", "run/a"))[0]["step"] == 7
    weir("--store", store, "ckpt", "verify", "run/a")
    weir("--store", store, "ckpt", "export", "run/a", str(tmp_path / "out"))
    assert (tmp_path / "out/model.safetensors").exists()


@pytest.mark.parametrize("size", ["256K", "4M"])
def test_datasets(cluster, tmp_path, size):
    """The same samples come from a directory and from a pool. Large shards are written as they are
    made, with what stands in front of them last."""
    source = tmp_path / "source"
    source.mkdir()
    with open(source / "a.jsonl", "w") as file:
        for i in range(3000):
            text = hashlib.sha256(b"%d" % i).hexdigest() * 40
            file.write(json.dumps({"id": i, "text": text}) + "\n")
    digests = []
    for place in (str(tmp_path / "packed"), cluster.rados_store(f"dataset{size}", pool="three"),
                  cluster.rados_store(f"dataset{size}", object_size="1M")):
        weir("data", "pack", str(source), place, "--format", "mds", "--shard-size", size)
        told = json.loads(weir("data", "stream", "--json", place))
        assert told["samples"] == 3000
        digests.append(told["datasets"][0]["epochs"][0]["digest"])
    assert len(digests) == 3 and len(set(digests)) == 1


def test_package(cluster):
    if "PYTHONPATH" not in os.environ:
        pytest.skip("the package is tested with the plain build")
    script = """
import sys, weir
with weir.open(sys.argv[1]) as store:
    store.put("a", bytes(range(256)) * 50000)
    assert store.get("a", 256 * 40000, 512) == bytes(range(256)) * 2
    assert store.info()["tier"] == "rados" and store.list("", True) == [("a", 12800000, False)]
"""
    subprocess.run([sys.executable, "-c", script, cluster.rados_store("package")], check=True)


def test_commits_are_linearizable(cluster):
    subprocess.run([BUILD / "tests/remote/commits", cluster.rados_store("commits", pool="three")],
                   check=True, stdout=subprocess.DEVNULL, timeout=300)


# ---- what is missing is named ----


def said(url, env=None):
    line = weir("--store", url, "ls", rc=1, env=env)
    assert line.count("\n") == 1 and line.startswith("weir: ")
    return line


def test_missing_pool_conf_and_user(cluster, tmp_path):
    assert "no pool 'nowhere' (to make one: ceph osd pool create nowhere)" in said(
        cluster.rados_store("x", pool="nowhere"))
    assert "'/nowhere/ceph.conf' (conf=)" in said("rados://two/x?conf=/nowhere/ceph.conf")
    assert "conf=FILE" in said("rados://two/x", {"CEPH_CONF": str(tmp_path / "none")})
    assert "refuses client.nobody" in said(cluster.rados_store("x", user="nobody"))
    conf = tmp_path / "ceph.conf"
    text = cluster.conf.read_text().replace(f"{cluster.dir}/keyring", f"{tmp_path}/empty")
    conf.write_text(text)
    assert f"no key for client.admin in the keyring ({tmp_path}/empty)" in said(
        f"rados://two/x?conf={conf}")
    (tmp_path / "empty").write_text("")
    assert f"the key in the keyring ({tmp_path}/empty)" in said(f"rados://two/x?conf={conf}")
    assert "rados://POOL/NAMESPACE" in said("rados://")
    assert "rados://POOL/NAMESPACE" in said("rados://a/b/c")


def test_missing_right(cluster):
    """client.rgw may read and write, client.weir only in its pools."""
    cluster.ceph("osd pool create private 8")
    line = said(cluster.rados_store("x", pool="private", user="weir"))
    assert "client.weir may not" in line and "osd 'allow rwx pool=private'" in line


def test_missing_library(cluster, tmp_path):
    (tmp_path / "librados.so.2").write_bytes(b"")
    assert "install the package librados2" in said(cluster.rados_store("x"),
                                                   {"LD_LIBRARY_PATH": str(tmp_path)})


def test_secrets_are_not_said(cluster):
    keyring = (cluster.dir / "keyring").read_text()
    keys = [line.split("=", 1)[1].strip() for line in keyring.splitlines() if "key =" in line]
    assert keys
    for url in (cluster.rados_store("x", user="nobody"), cluster.rados_store("x", pool="none")):
        assert not any(key in said(url) for key in keys)
