#!/usr/bin/python3
"""A real Ceph cluster on loopback, in a scratch directory, in some seconds: one monitor, a few
BlueStore OSDs, and an RGW that speaks S3 with and without TLS. For root and for ordinary users.

    tests/remote/ceph.py [--no-rgw]     runs one until Ctrl-C, and says where everything is

Every daemon is a child of this process, in a session of its own, and the kernel kills it when this
process dies (PR_SET_PDEATHSIG): so a cluster never outlives its test, however that ends. What a
killed test leaves on the disk, the next one removes.
"""
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import s3
import tls

PROGRAMS = ["ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "rados"]
RGW_PROGRAMS = ["radosgw", "radosgw-admin", "openssl"]
PREFIX = "weir-ceph-"
POOLS = {"two": (2, 1), "three": (3, 2)}  # size, and what must be up to serve
PATIENCE_S = 300  # a busy machine is none that fails
PORTS = 103  # three of their own, and a hundred for the OSDs
PR_SET_PDEATHSIG = 1

CONF = """
[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{mon_port}/0]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_ipv6 = false
ms_bind_msgr1 = false
ms_bind_port_min = {osd_port}
ms_bind_port_max = {osd_port_end}
# Without authentication, RGW does not start.
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
auth_allow_insecure_global_id_reclaim = false
keyring = {dir}/keyring
run_dir = {dir}/run
admin_socket = {dir}/run/$type.$id.asok
log_file = {dir}/log/$type.$id.log
crash_dir = {dir}/crash
osd_pool_default_size = 2
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_max_pg_per_osd = 2000
mon_allow_pool_delete = true
# A dead OSD is noticed in seconds, so that tests of that are short.
osd_heartbeat_interval = 1
osd_heartbeat_grace = 4
[mon]
mon_data = {dir}/mon
mon_cluster_log_file = {dir}/log/cluster.log
mon_data_avail_warn = 2
mon_data_avail_crit = 1
paxos_propose_interval = 0.05
mon_tick_interval = 1
mon_osd_min_down_reporters = 1
mon_osd_reporter_subtree_level = osd
mon_osd_adjust_heartbeat_grace = false
mon_osd_down_out_interval = 3600
[mgr]
mgr_data = {dir}/mgr
mgr_initial_modules =
mgr_tick_period = 1
mgr_stats_period = 1
[osd]
osd_data = {dir}/osd$id
osd_objectstore = bluestore
bluestore_block_create = true
bluestore_block_size = {osd_bytes}
bluestore_block_wal_create = false
bluestore_block_db_create = false
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
osd_mclock_skip_benchmark = true
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 2
osd_scrub_min_interval = 864000
osd_pg_stat_report_interval_max = 1
[client]
admin_socket =
objecter_tick_interval = 0.5
[client.rgw]
rgw_data = {dir}/rgw
rgw_frontends = beast {endpoints} tcp_nodelay=1
rgw_thread_pool_size = 32
rgw_rados_pool_pg_num_min = 1
rgw_dynamic_resharding = false
"""

# Who may do what. client.weir has what a store needs, and no more.
KEYS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
    "client.rgw": {"mon": "allow rw", "osd": "allow rwx", "mgr": "allow rw"},
    "client.weir": {"mon": "allow r",
                    "osd": ", ".join(f"allow rwx pool={pool}" for pool in POOLS)},
    "mgr.x": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
}
OSD_CAPS = {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"}


def missing(rgw=False):
    """Why there can be no cluster here, or None."""
    gone = [p for p in PROGRAMS + (RGW_PROGRAMS if rgw else []) if not shutil.which(p)]
    return f"{', '.join(gone)} not installed: tools/setup test" if gone else None


def free_port(count=1):
    """The first of some ports nobody listens at, below those the kernel gives to clients."""
    for _ in range(100):
        first = random.randrange(15000, 32000 - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            pass
    raise OSError("no free ports")


def remove_leftovers(where, prefix=PREFIX):
    """Directories of clusters whose process is gone."""
    for path in Path(where).glob(prefix + "*"):
        owner = path.name[len(prefix):].split("-")[0]
        if not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)


def die_with_parent():
    """In a child, before it becomes the daemon."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Cluster:
    """Start it, and stop it in a `finally`; or use it as a context. Daemons have names: mon, osd.0,
    osd.1, …, rgw, mgr."""

    def __init__(self, osds=3, osd_bytes=4 << 30, where=None):
        where = where or tempfile.gettempdir()
        remove_leftovers(where)
        self.dir = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=where))
        self.osds = osds
        self.osd_bytes = osd_bytes
        self.daemons = {}  # name -> Popen
        self.conf = self.dir / "ceph.conf"
        self.bucket, self.access_key, self.secret_key = "weir", "WEIRTESTKEY", "weir-test-secret"
        self.ca = self.dir / "tls/ca.pem"
        first = free_port(PORTS)  # together: one by one the same could come twice
        self.rgw_port, self.rgw_tls_port, self.mon_port, self.osd_port = range(first, first + 4)
        self.osd_port_end = first + PORTS - 1
        self.env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self.env["CEPH_CONF"] = str(self.conf)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    # ---- programs ----

    def run(self, *command, input=None, env=None, ok=True):
        """Runs one of Ceph's tools to its end; what it says."""
        done = subprocess.run([str(word) for word in command], env={**self.env, **(env or {})},
                              input=input, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE_S)
        if ok and done.returncode:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout}")
        return done.stdout

    def ceph(self, *lines):
        """Commands for the monitor, in one process: starting that is what takes the time."""
        out = self.run("ceph", input="".join(line + "\n" for line in lines))
        if "Error" in out or "Invalid" in out:
            raise RuntimeError(f"ceph: {out}")
        return out

    def launch(self, name, *command):
        assert name not in self.daemons or self.daemons[name].poll() is not None, name
        with open(self.dir / f"log/{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                [*command, "-f"], env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=die_with_parent)

    def log(self, name, lines=20):
        path = self.dir / f"log/{name}.out"
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    # ---- faults ----

    def kill(self, name, number=signal.SIGKILL):
        """Gone when this returns; it may be started again."""
        daemon = self.daemons[name]
        daemon.send_signal(number)
        daemon.send_signal(signal.SIGCONT)  # one that is stopped takes no other signal but KILL
        daemon.wait(PATIENCE_S)

    def pause(self, name):
        self.daemons[name].send_signal(signal.SIGSTOP)

    def resume(self, name):
        self.daemons[name].send_signal(signal.SIGCONT)

    def start_osd(self, number):
        self.launch(f"osd.{number}", "ceph-osd", "-i", str(number))

    def start_mgr(self):
        """Only statistics come from it: of space, and of health."""
        (self.dir / "mgr").mkdir(exist_ok=True)
        self.launch("mgr", "ceph-mgr", "-i", "x")

    def is_hurt(self, name):
        """Whether a daemon is dead or stopped."""
        daemon = self.daemons[name]
        if daemon.poll() is not None:
            return True
        return Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def heal(self):
        """Brings back what a test stopped or killed, and waits until every copy of everything is
        where it should be."""
        hurt = [name for name in self.daemons if self.is_hurt(name)]
        for name in hurt:
            if self.daemons[name].poll() is None:
                self.resume(name)
            elif name.startswith("osd."):
                self.start_osd(int(name[4:]))
        if any(name.startswith("osd.") for name in hurt):
            self.wait_up(self.osds)
            self.wait_clean()
        if "rgw" in hurt:
            self.need_rgw()

    def wait_up(self, count):
        """Until the monitor takes so many OSDs for running."""
        end = time.monotonic() + PATIENCE_S
        while f" {count} up" not in self.run("ceph", "osd", "stat"):
            assert time.monotonic() < end, f"not {count} OSDs up: {self.run('ceph', 'osd', 'stat')}"
            time.sleep(0.3)

    def pg_states(self):
        """None if that was not answered: a question to an OSD that was killed meanwhile may be
        waited for in vain."""
        command = ["/usr/bin/python3", Path(__file__).parent / "pg_states.py", self.conf, *POOLS]
        try:
            done = subprocess.run(command, env=self.env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=10)
            return None if done.returncode else done.stdout.split()
        except subprocess.TimeoutExpired:
            return None

    def wait_clean(self):
        """Until no placement group of our pools misses a copy."""
        end = time.monotonic() + PATIENCE_S
        while True:
            states = self.pg_states()
            if states and all(state == "active+clean" for state in states):
                return
            assert time.monotonic() < end, f"not clean: {states}"
            time.sleep(0.5)

    def wait_served(self):
        """Until every pool takes a write; a write waits until it is taken."""
        probe = self.dir / "probe"
        probe.write_text("probe\n")
        for pool in POOLS:
            self.run("rados", "-p", pool, "-N", "probe", "put", "probe", probe)

    # ---- life ----

    def write_conf(self):
        for name in ("mon", "run", "log", "crash", "rgw", "tls"):
            (self.dir / name).mkdir()
        self.fsid = str(uuid.uuid4())
        certificate = self.dir / "tls/server"
        endpoints = (f"endpoint=127.0.0.1:{self.rgw_port} ssl_endpoint=127.0.0.1:"
                     f"{self.rgw_tls_port} ssl_certificate={certificate}.pem "
                     f"ssl_private_key={certificate}.key")
        self.conf.write_text(CONF.format(
            dir=self.dir, fsid=self.fsid, mon_port=self.mon_port, osd_port=self.osd_port,
            osd_port_end=self.osd_port_end, osd_bytes=self.osd_bytes, endpoints=endpoints))

    def write_keys(self):
        keyring = self.dir / "keyring"
        keys = dict(KEYS, **{f"osd.{i}": OSD_CAPS for i in range(self.osds)})
        for number, (name, caps) in enumerate(keys.items()):
            words = [word for place, cap in caps.items() for word in ("--cap", place, cap)]
            self.run("ceph-authtool", *([] if number else ["--create-keyring"]), keyring,
                     "--gen-key", "-n", name, *words)
        return keyring

    def start(self):
        """Monitor, OSDs and pools; everything answers when this returns."""
        self.write_conf()
        keyring = self.write_keys()
        self.run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a",
                 f"[v2:127.0.0.1:{self.mon_port}/0]", self.dir / "monmap")
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.dir / "monmap", "--keyring",
                 keyring)
        self.launch("mon", "ceph-mon", "-i", "a")
        ids = [str(uuid.uuid4()) for _ in range(self.osds)]
        making = []
        for i, osd in enumerate(ids):
            (self.dir / f"osd{i}").mkdir()
            log = open(self.dir / f"log/osd.{i}.mkfs", "wb")
            making.append(subprocess.Popen(
                ["ceph-osd", "-i", str(i), "--mkfs", "--osd-uuid", osd, "--no-mon-config"],
                env=self.env, stdout=log, stderr=log, preexec_fn=die_with_parent))
            log.close()
        pools = [line for pool, (size, least) in POOLS.items() for line in (
            f"osd pool create {pool} 8 --size {size}", f"osd pool set {pool} min_size {least}",
            f"osd pool application enable {pool} weir")]
        self.ceph(*[f"osd new {osd} {i}" for i, osd in enumerate(ids)], *pools)
        for i, process in enumerate(making):
            if process.wait(PATIENCE_S):
                raise RuntimeError((self.dir / f"log/osd.{i}.mkfs").read_text())
            self.start_osd(i)
        self.wait_served()
        return self

    def need_rgw(self):
        """RGW, if it is not running; and at the first time a user and a bucket."""
        if "rgw" in self.daemons and self.daemons["rgw"].poll() is None:
            return
        first = not self.ca.exists()
        if first:
            tls.make(self.ca.parent)
        self.launch("rgw", "radosgw", "-n", "client.rgw")
        end = time.monotonic() + PATIENCE_S
        for port in (self.rgw_port, self.rgw_tls_port):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > end or self.daemons["rgw"].poll() is not None:
                        raise RuntimeError(f"RGW does not come up: {self.log('rgw')}") from None
                    time.sleep(0.1)
        if first:
            self.run("radosgw-admin", "-n", "client.rgw", "user", "create", "--uid=weir",
                     "--display-name=Weir", f"--access-key={self.access_key}",
                     f"--secret-key={self.secret_key}")
            self.s3().make_bucket(self.bucket)

    def s3(self, tls=False):
        """A small client of its own, that shares nothing with ours."""
        return s3.Client(self.rgw_tls_url if tls else self.rgw_url, self.access_key,
                         self.secret_key, self.ca if tls else None)

    @property
    def rgw_url(self):
        return f"http://127.0.0.1:{self.rgw_port}"

    @property
    def rgw_tls_url(self):
        return f"https://127.0.0.1:{self.rgw_tls_port}"

    @property
    def s3_env(self):
        """What a client of RGW finds in its environment."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def s3_store(self, prefix="", tls=False, **options):
        """The URL of a store."""
        if tls:
            options["ca"] = self.ca
        words = "".join(f"&{name}={value}" for name, value in options.items())
        endpoint = self.rgw_tls_url if tls else self.rgw_url
        return f"s3://{self.bucket}/{prefix}?endpoint={endpoint}{words}"

    def rados_store(self, namespace, pool="two", **options):
        words = "".join(f"&{name}={value}" for name, value in options.items())
        return f"rados://{pool}/{namespace}?conf={self.conf}{words}"

    def stop(self):
        """Ends everything, and removes the directory: there is nothing to be kept, so nobody is
        asked to write it down first."""
        for daemon in reversed(self.daemons.values()):
            daemon.kill()
        for daemon in self.daemons.values():
            daemon.wait(PATIENCE_S)
        self.daemons = {}
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    is_full = "--no-rgw" not in sys.argv
    why = missing(rgw=is_full)
    if why:
        sys.exit(why)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    start = time.monotonic()
    with Cluster() as cluster:
        print(f"# cluster: {time.monotonic() - start:.1f} s", flush=True)
        if is_full:
            cluster.need_rgw()
            print(f"# RGW: {time.monotonic() - start:.1f} s\nexport "
                  + " ".join(f"{k}={v}" for k, v in cluster.s3_env.items()))
            print(cluster.s3_store("prefix"), cluster.s3_store("prefix", tls=True), sep="\n")
        print(f"export CEPH_CONF={cluster.conf}", cluster.rados_store("namespace"), sep="\n",
              flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
