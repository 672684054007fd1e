#!/usr/bin/python3
"""Shared file systems, really mounted, for as long as one command runs.

    tests/remote/mounts.py gluster COMMAND…        {} in it is the directory that is mounted
    tests/remote/mounts.py cephfs CONF COMMAND…    CONF: of a cluster that has an MDS

Daemons, mounts and, for GlusterFS, the network are in namespaces of their own, whose first process
is this program: when it ends, however it ends, the kernel ends and unmounts everything. What they
write is in memory. Only for root.
"""
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADDRESS = "10.77.0.1"  # bricks may not be at localhost; nobody sees this network
PATIENCE_S = 300
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP_RUNNING = 0x8914, 0x8916, 0x41


def missing(*programs):
    """Why there can be no such mount here, or None."""
    if os.geteuid():
        return "only root can mount file systems"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened"
    gone = [program for program in ("unshare", *programs) if not shutil.which(program)]
    return f"{', '.join(gone)} not installed: tools/setup test" if gone else None


def within(kind, *words, env=None, timeout=1200):
    """Runs this program in namespaces of its own; what came of it, as of subprocess.run()."""
    own = ["--net"] if kind == "gluster" else []
    with tempfile.TemporaryDirectory(prefix="weir-mount-") as scratch:
        command = ["unshare", "--mount", *own, "--pid", "--fork", "--kill-child", "--mount-proc",
                   "/usr/bin/python3", __file__, "--in", scratch, kind, *map(str, words)]
        return subprocess.run(command, env=env, text=True, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


# ---- inside ----

def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def start(log, *command):
    with open(log, "wb") as out:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                stdout=out, stderr=out)


def wait_for(what, process, log):
    end = time.monotonic() + PATIENCE_S
    while not what():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"{process.args[0]} does not come up:\n{Path(log).read_text()[-2000:]}")
        time.sleep(0.05)


def network_up():
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))
        fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack(
            "16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(ADDRESS)))


def mount_gluster(scratch, place):
    """Three bricks that are copies of each other, and what `mount -t glusterfs` would mount."""
    network_up()
    for path in ("/run", "/var/log/glusterfs", "/var/lib/glusterd"):  # only in here
        run("mount", "-t", "tmpfs", "weir-test", path)
    os.mkdir("/run/gluster")
    log = scratch / "glusterd.log"
    daemon = start(log, "glusterd", "-N", "-l", scratch / "glusterd.own.log")
    wait_for(Path("/run/glusterd.socket").exists, daemon, log)
    bricks = [f"{ADDRESS}:{scratch}/brick{i}" for i in range(3)]
    gluster = ("gluster", "--mode=script", "volume")
    run(*gluster, "create", "weir", "replica", "3", *bricks, "force")
    run(*gluster, "start", "weir")
    log = scratch / "client.log"
    client = start(log, "glusterfs", "-N", f"--volfile-server={ADDRESS}", "--volfile-id=weir",
                   "-l", scratch / "client.own.log", place)
    wait_for(lambda: os.path.ismount(place), client, log)


def mount_cephfs(scratch, place, conf):
    log = scratch / "client.log"
    client = start(log, "ceph-fuse", "-f", "-c", conf, "-n", "client.admin", place)
    wait_for(lambda: os.path.ismount(place), client, log)


def inside(scratch, kind, words):
    run("mount", "-t", "tmpfs", "weir-test", scratch)
    scratch = Path(scratch)
    place = scratch / "mounted"
    place.mkdir()
    if kind == "gluster":
        mount_gluster(scratch, place)
    else:
        mount_cephfs(scratch, place, words.pop(0))
    command = [word.replace("{}", str(place), 1) for word in words]
    env = {name: value.replace("MOUNTED", str(place)) for name, value in os.environ.items()}
    return subprocess.run(command, env=env).returncode


def main():
    if sys.argv[1:2] == ["--in"]:
        sys.exit(inside(sys.argv[2], sys.argv[3], sys.argv[4:]))
    why = missing()
    if why:
        sys.exit(why)
    done = within(*sys.argv[1:], timeout=None)
    sys.stdout.write(done.stdout)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
