"""What the benchmarks share: fio and its best setups, cold caches, where results go."""
import argparse
import contextlib
import json
import mmap
import os
import platform
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GB = 1e9
UNITS = {"m": 1 << 20, "g": 1 << 30}


def say(text):
    print(text, file=sys.stderr, flush=True)


def bytes_of(text):
    """Of a size as fio writes it: 512m, 2g."""
    return int(float(text[:-1]) * UNITS[text[-1]])


def machine():
    return {"cores": os.cpu_count(), "kernel": platform.release()}


def drop_caches():
    """Forgets what is in the page cache; False where that is not allowed."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3\n")
        return True
    except OSError:
        return False


def forget(path):
    """Forgets the cached pages of the files below a directory, where drop_caches() may not."""
    for folder, _, names in os.walk(path):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def settle(path):
    """The same start for whoever comes next: nothing cached, the device done with what was
    written before. Says whether the caches could be dropped."""
    dropped = drop_caches()
    if not dropped:
        forget(path)
    time.sleep(1)
    return dropped


def have_memory(size, step):
    """So much, or half of what is available, in whole steps."""
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) << 10 for line in file if "MemAvailable" in line)
    return min(size, available // 2) // step * step


def touch_memory(size):
    """Has the machine own so much free memory, in huge pages; bytes a second at which that went.
    The host of a virtual machine gives it when it is touched for the first time, and may take back
    what was free for two seconds."""
    start_s = time.perf_counter()
    size = have_memory(size, 1 << 21)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1
    return size / (time.perf_counter() - start_s)


@contextlib.contextmanager
def memory_at_hand(size):
    """Meanwhile so much free memory is the machine's own, or half of what is available. The host of
    a virtual machine takes what is free, in pieces of 2 MiB or more: who fills the page cache then
    waits for the host, longer than for a fast disk, and how long is chance. So memory is taken,
    and given back but for a page of each 2 MiB: what is free between those is mostly no such
    piece."""
    step = 1 << 21
    size = have_memory(size, step)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1
        for at in range(0, size, step):
            memory.madvise(mmap.MADV_DONTNEED, at + mmap.PAGESIZE, step - mmap.PAGESIZE)
        yield


# Options


def options_of(description, rounds):
    """The options that every benchmark has; it may add its own."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--build", default="build/plain")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"), help="where to measure")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def peers_options(parser, modules):
    """Those of a benchmark beside Python libraries."""
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"),
                        help=f"one that has {modules}")
    parser.add_argument("--dry", action="store_true", help="print only, keep the old results")


def missing(python, modules):
    """Why these modules are not there, or None."""
    if not os.path.exists(python):
        return f"there is no {python}: tools/setup bench makes it"
    run = subprocess.run([python, "-c", f"import {modules}"], stderr=subprocess.PIPE, text=True)
    if run.returncode:
        return f"{run.stderr.strip().splitlines()[-1]}: tools/setup bench installs it in .venv"
    return None


# fio


# Its buffers in huge pages, all of them, as Weir's are: of single pages, 1 MiB is more pieces than
# many drives take at once.
FIO_ENV = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
FIO_ALIGNED = "--iomem_align=2m"


def fio(args, direction):
    """Runs one direct fio job; returns bytes a second."""
    command = ["fio", "--name=job", "--output-format=json", "--direct=1", FIO_ALIGNED, *args]
    out = subprocess.run(command, check=True, env=FIO_ENV, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    return sum(job[direction]["bw_bytes"] for job in json.loads(out.stdout)["jobs"])


def fio_write(path, size, setup, keep=False):
    """To a fresh file, until it is safe on disk."""
    if os.path.exists(path):
        os.remove(path)
    args = [f"--filename={path}", "--rw=write", f"--size={size}", "--end_fsync=1",
            f"--unlink={0 if keep else 1}", *setup]
    return fio(args, "write")


def fio_read(path, setup):
    return fio([f"--filename={path}", "--rw=read", f"--size={os.path.getsize(path)}", *setup],
               "read")


def sweep(what, run, extra):
    """The best of a small sweep over block size, depth and how the file is laid out."""
    best, setup = 0, None
    for bs in ("512k", "1m", "4m"):
        for depth in (8, 16, 32):
            for more in extra:
                args = ["--ioengine=io_uring", f"--bs={bs}", f"--iodepth={depth}", *more]
                rate = run(args)
                if rate > best:
                    best, setup = rate, args
    say(f"fio's best {what}: {best / GB:.2f} GB/s with {' '.join(setup)}")
    return setup


def sweep_both(folder, size):
    """fio's best setups for writing a fresh file and for reading one, as a pair."""
    # Linux lays a file out at the first write, or when it is preallocated: try both.
    path = os.path.join(folder, "fio.sweep")
    write = sweep("write", lambda setup: fio_write(path, size, setup),
                  [["--fallocate=none"], ["--fallocate=posix"]])
    fio_write(path, size, ["--bs=1m"], keep=True)
    read = sweep("read", lambda setup: fio_read(path, setup), [[]])
    os.remove(path)
    return write, read


# Results


def keep(name, result, page, picture=None):
    """Writes bench/results/NAME.json, docs/bench-NAME.md and, if there is one, its picture."""
    os.makedirs(os.path.join(ROOT, "bench", "results"), exist_ok=True)
    with open(os.path.join(ROOT, "bench", "results", f"{name}.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    with open(os.path.join(ROOT, "docs", f"bench-{name}.md"), "w") as f:
        f.write(page)
    if picture:
        keep_picture(name, picture)


def keep_picture(name, picture):
    """Writes docs/bench-NAME.svg."""
    with open(os.path.join(ROOT, "docs", f"bench-{name}.svg"), "w") as f:
        f.write(picture)


def draw(name, picture):
    """Writes docs/NAME.png."""
    path = os.path.join(ROOT, "docs", f"{name}.png")
    try:
        subprocess.run(["rsvg-convert", "--zoom=2", "-o", path], input=picture.encode(), check=True)
    except FileNotFoundError:
        say(f"{path} is not made: tools/setup bench installs rsvg-convert")
