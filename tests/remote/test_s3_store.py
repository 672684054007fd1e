"""A store on S3, used as people use one: the command, checkpoints, datasets; and what they are told
when it is not theirs, not there, or not what it should be.
"""
import json
import os
import subprocess
import time

import pytest

from conftest import BUILD, WEIR


class Store:
    def __init__(self, url, env):
        self.url, self.env = url, {**os.environ, **env}

    def run(self, *args, rc=0, url=None, **env):
        done = subprocess.run([WEIR, "--store", url or self.url, *map(str, args)], text=True,
                              env={**self.env, **env}, timeout=300, capture_output=True)
        assert done.returncode == rc, (args, done.stdout[-2000:], done.stderr[-2000:])
        assert self.env["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
        return done.stdout if rc == 0 else done.stderr


@pytest.fixture
def store(rgw, request):
    return Store(rgw.s3_store(request.node.name), rgw.s3_env)


def listed(rgw, prefix):
    """The keys below a prefix, as another client sees them."""
    _, _, body = rgw.s3().request("GET", f"/{rgw.bucket}", {"list-type": "2", "prefix": prefix})
    return [part.split("</Key>")[0] for part in body.decode().split("<Key>")[1:]]


def uploads(rgw, prefix):
    _, _, body = rgw.s3().request("GET", f"/{rgw.bucket}", {"uploads": "", "prefix": prefix})
    return body.decode().count("<Upload>")


def test_the_way_of_an_object(store, rgw, tmp_path):
    sizes = {"empty": 0, "small": 1000, "part": 8 << 20, "parts": (20 << 20) + 17}
    store.run("init")
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(os.urandom(size))
        store.run("put", tmp_path / name, f"a/{name} ü")
    assert store.run("ls", "-r").splitlines() == [f"a/{name} ü" for name in sorted(sizes)]
    assert f"{len(sizes)} objects verified" in store.run("verify")
    for name in sizes:
        store.run("get", f"a/{name} ü", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / name).read_bytes()
        (tmp_path / "back").unlink()
    assert "exists already" in store.run("put", tmp_path / "small", "a/part ü", rc=1)
    store.run("rm", "a/parts ü")
    assert "no object" in store.run("get", "a/parts ü", tmp_path / "back", rc=1)
    store.run("put", tmp_path / "small", "a/parts ü")  # over the tombstone
    store.run("get", "a/parts ü", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "small").read_bytes()
    store.run("gc", "--now")
    assert len([k for k in listed(rgw, "test_the_way_of_an_object/.weir/data/")]) == len(sizes)


def test_what_a_killed_writer_left_goes(store, rgw):
    store.run("init")
    command = [WEIR, "--store", store.url, "put", "-", "big"]
    with subprocess.Popen(command, env=store.env, stdin=subprocess.PIPE) as writer:
        try:
            writer.stdin.write(bytes(40 << 20))
            writer.stdin.flush()
            end = time.monotonic() + 300
            while time.monotonic() < end:
                if uploads(rgw, "test_what_a_killed_writer_left_goes"):
                    break
            assert uploads(rgw, "test_what_a_killed_writer_left_goes") == 1
        finally:
            writer.kill()
    assert json.loads(store.run("--json", "gc", "--dry-run", "--now"))["temporaries"] == 1
    assert uploads(rgw, "test_what_a_killed_writer_left_goes") == 1
    store.run("gc")  # it is young
    assert uploads(rgw, "test_what_a_killed_writer_left_goes") == 1
    store.run("gc", "--now")
    assert uploads(rgw, "test_what_a_killed_writer_left_goes") == 0
    assert store.run("ls") == ""


def test_checkpoints(store):
    store.run("init")
    command = [BUILD / "tests/cli/makeckpt", store.url, "run", "3", "4", "1", "{}", "1000"]
    subprocess.run(command, env=store.env, check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert "run" in store.run("ckpt", "ls")
    assert "verified" in store.run("ckpt", "verify", "run")


def test_python(store):
    program = ("import sys, weir\n"
               "with weir.open(sys.argv[1]) as store:\n"
               "    store.put('a/b', b'x' * 3000000)\n"
               "    assert store.get('a/b') == b'x' * 3000000\n"
               "    assert store.list('a', True) == [('a/b', 3000000, False)]\n")
    env = {**store.env, "PYTHONPATH": str(BUILD / "python")}
    if "asan" in str(BUILD):
        pytest.skip("the package is not made for that")
    subprocess.run(["/usr/bin/python3", "-c", program, store.url], env=env, check=True, timeout=300)


def test_a_dataset_of_others(store, rgw, tmp_path):
    for shard in range(3):
        lines = "".join(json.dumps({"n": 1000 * shard + i}) + "\n" for i in range(1000))
        rgw.s3().request("PUT", f"/{rgw.bucket}/test_a_dataset_of_others/{shard}.jsonl",
                         body=lines.encode())
    args = [WEIR, "--json", "data", "stream", store.url, "--cache", tmp_path / "cache"]
    done = subprocess.run(args, env=store.env, check=True, timeout=300, capture_output=True)
    assert json.loads(done.stdout)["samples"] == 3000
    assert listed(rgw, "test_a_dataset_of_others/.weir/") == []  # nothing was written there


def test_packed_with_the_head_last(store, rgw, tmp_path):
    """Shards of several parts, whose first bytes are known last, while memory holds three parts."""
    source, here = tmp_path / "files", tmp_path / "here"
    source.mkdir()
    for i in range(130):
        (source / f"{i:03}.bin").write_bytes(os.urandom(250_000))
    url = rgw.s3_store("packed", part="5M", memory="16M")
    env = {**store.env, "WEIR_CACHE": str(tmp_path / "cache")}
    for place in url, str(here):
        subprocess.run([WEIR, "data", "pack", source, place, "--format", "mds", "--shard-size",
                        "14M", "--jobs", "3"], env=env, check=True, timeout=300)
    for i in range(3):
        name = f"shard.{i:05}.mds"
        got = subprocess.run([WEIR, "--store", url, "get", name, "-"], env=env, check=True,
                             timeout=300, stdout=subprocess.PIPE).stdout
        assert got == (here / name).read_bytes()
    assert uploads(rgw, "packed/") == 0


def test_what_people_are_told(store, rgw, tmp_path):
    url = store.url
    (tmp_path / "x").write_bytes(b"x")
    error = store.run("ls", rc=1, AWS_SECRET_ACCESS_KEY="wrong", url=url)
    assert "the secret key is not the one" in error and "wrong" not in error.replace("wrong,", "")
    assert "does not know this access key" in store.run("ls", rc=1, AWS_ACCESS_KEY_ID="nobody")
    nowhere = url.replace(rgw.bucket, "nosuchbucket")
    assert "no such bucket" in store.run("ls", rc=1, url=nowhere)
    store.run("init", url=nowhere)
    assert store.run("ls", url=nowhere) == ""
    closed = url.replace(str(rgw.rgw_port), "1") + "&timeout=1s"
    assert "endpoint=" in store.run("ls", rc=1, url=closed)
    untrusted = rgw.s3_store("x", tls=True).split("&ca=")[0]
    assert "ca=FILE" in store.run("ls", rc=1, url=untrusted + "&timeout=10s")
    assert "region" in store.run("ls", rc=1, url=url + "&region=no%20region")
