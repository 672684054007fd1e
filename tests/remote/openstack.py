#!/usr/bin/python3
"""A real OpenStack Swift with s3api on loopback, in a scratch directory: the S3 server that has no
conditional PUT. All its four servers share one process, which the kernel kills with its parent.

    tests/remote/openstack.py DIR PORT      runs one in the directory, until it is killed

Its memcached is a dictionary: there is nobody to share it with.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ceph

PREFIX = "weir-swift-"
PYTHON = "/usr/bin/python3"  # the one that Debian's packages are for
ACCESS_KEY, SECRET_KEY, BUCKET = "test:tester", "swift-test-secret", "weir"
PATIENCE_S = 300

SWIFT_CONF = """
[swift-hash]
swift_hash_path_suffix = weir
"""
STORAGE_CONF = """
[DEFAULT]
swift_dir = {dir}
devices = {dir}/devices
mount_check = false
bind_ip = 127.0.0.1
recon_cache_path = {dir}/cache
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
PROXY_CONF = """
[DEFAULT]
swift_dir = {dir}
bind_ip = 127.0.0.1
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats dictionary s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:dictionary]
paste.filter_factory = swift_dictionary:factory
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
min_segment_size = 1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
"""


# What the process of the servers does


class Dictionary:
    """As much of a client of memcached as Swift asks for."""

    def __init__(self):
        self.kept = {}

    def get(self, key, **_):
        return self.kept.get(key)

    def set(self, key, value, **_):
        self.kept[key] = value

    def delete(self, key, **_):
        self.kept.pop(key, None)

    def incr(self, key, delta=1, **_):
        self.kept[key] = self.kept.get(key, 0) + delta
        return self.kept[key]


def factory(*_, **__):
    """A filter for Swift's pipeline."""
    dictionary = Dictionary()

    def wrap(app):
        def call(env, start):
            env["swift.cache"] = dictionary
            return app(env, start)
        return call
    return wrap


def make_ring(folder, kind, port):
    from swift.common.ring import RingBuilder
    builder = RingBuilder(2, 1, 0)
    builder.add_dev({"id": 0, "region": 0, "zone": 0, "weight": 1.0, "ip": "127.0.0.1",
                     "port": port, "device": "d0", "meta": "", "replication_ip": "127.0.0.1",
                     "replication_port": port})
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, f"{kind}.ring.gz"))


def serve(folder, port):
    import eventlet
    import eventlet.wsgi
    from swift.common import utils
    Path(folder, "swift.conf").write_text(SWIFT_CONF)
    utils.set_swift_dir(folder)
    utils.eventlet_monkey_patch()
    from swift.common.wsgi import loadapp
    Path(folder, "devices/d0").mkdir(parents=True)
    Path(folder, "cache").mkdir()
    sys.modules["swift_dictionary"] = sys.modules["__main__"]
    listeners = {}
    for kind in ("account", "container", "object"):
        listeners[kind] = eventlet.listen(("127.0.0.1", 0))
        make_ring(folder, kind, listeners[kind].getsockname()[1])
        text = STORAGE_CONF.format(dir=folder, kind=kind)
        Path(folder, f"{kind}.conf").write_text(text)
    Path(folder, "proxy.conf").write_text(PROXY_CONF.format(dir=folder, secret=SECRET_KEY))
    listeners["proxy"] = eventlet.listen(("127.0.0.1", port))
    quiet = open(os.devnull, "w")
    servers = [eventlet.spawn(eventlet.wsgi.server, listener,
                              loadapp(os.path.join(folder, f"{kind}.conf")), quiet,
                              minimum_chunk_size=65536, capitalize_response_headers=False)
               for kind, listener in listeners.items()]
    for server in servers:
        server.wait()


# What tests use


def missing():
    """Why there can be none here, or None."""
    code = "import swift.proxy.server, swift.obj.server, swift.container.server, eventlet, lxml"
    done = subprocess.run([PYTHON, "-c", code], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        why = done.stdout.strip().splitlines()[-1]
        return f"OpenStack Swift is not installed ({why}): tools/setup test"
    return None


class Swift:
    """A context; url, bucket, access_key and secret_key are for its clients."""

    bucket, access_key, secret_key = BUCKET, ACCESS_KEY, SECRET_KEY

    def __init__(self, port, where=None):
        self.port = port
        where = where or tempfile.gettempdir()
        ceph.remove_leftovers(where, PREFIX)
        self.dir = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=where)
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def env(self):
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def __enter__(self):
        log = open(os.path.join(self.dir, "log"), "w")
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
        self.process = subprocess.Popen([PYTHON, __file__, self.dir, str(self.port)], env=env,
                                        stdout=log, stderr=log, preexec_fn=ceph.die_with_parent)
        log.close()
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(Path(self.dir, "log").read_text()[-4000:]) from None
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
