#!/usr/bin/env python3
"""One job of the checkpoint benchmark in a process of its own: prints what it saw as JSON.

    ckpt_work.py save|async|load|cap|versions NAME FOLDER BYTES [OPTIONS AS JSON]

NAME is a contender: weir, torch, safetensors, dcp. What it writes stays in FOLDER/NAME.
"""
import ctypes
import json
import os
import shutil
import sys
import time
import warnings

import torch

import ckpt_state
import common

MATRIX = 768  # of the compute loop
PRODUCTS = 2  # a step


def memory_bytes(field):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


class Watch:
    """Time, processor time and the highest memory of what runs inside, over `base` bytes."""

    def __init__(self, base):
        self.base = base

    def __enter__(self):
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5\n")
        self.cpu_s, self.start_s = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self.start_s
        self.cpu_seconds = time.process_time() - self.cpu_s
        self.peak_bytes = max(0, memory_bytes("VmHWM") - self.base)

    def result(self):
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds,
                "peak_bytes": self.peak_bytes}


def sync_path(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def copy_into(state, loaded):
    """What a trainer does with a state that was loaded next to its own."""
    wanted, found = ckpt_state.flat(state), ckpt_state.flat(loaded)
    for name, tensor in wanted.items():
        tensor.copy_(found[name])


# Contenders: save() returns when the state is safe on disk; begin() when the trainer may go on,
# with a handle that has done() and wait(); loads are named.


class Weir:
    saves = 3  # from the third on, it writes over the file of a checkpoint that was pruned

    def __init__(self, folder, options):
        import weir
        self.ck = weir.Checkpointer(os.path.join(folder, "store"), "bench", keep_last=1,
                                    retired_grace=0, **options)
        self.step = 0

    def save(self, state):
        self.step += 1
        self.ck.save(self.step, state, wait=True)

    def begin(self, state):
        self.step += 1
        return self.ck.save(self.step, state)

    def loads(self):
        return {"weir": lambda state: self.ck.load(self.saves, like=state)}

    def close(self):
        self.ck.close()


class Torch:
    saves = 1

    def __init__(self, folder, options):
        self.folder, self.path = folder, os.path.join(folder, "state.pt")

    def save(self, state):
        torch.save(state, self.path)
        sync_path(self.path)
        sync_path(self.folder)

    def loads(self):
        def load(state, mmap):
            copy_into(state, torch.load(self.path, weights_only=True, mmap=mmap))
        return {"torch": lambda state: load(state, False),
                "torch_mmap": lambda state: load(state, True)}

    def close(self):
        pass


class Safetensors:
    saves = 1

    def __init__(self, folder, options):
        self.folder, self.path = folder, os.path.join(folder, "state.safetensors")

    def save(self, state):
        from safetensors.torch import save_file
        save_file(ckpt_state.flat(state), self.path)
        sync_path(self.path)
        sync_path(self.folder)

    def load_file(self, state):
        from safetensors.torch import load_file
        loaded = load_file(self.path)
        for name, tensor in ckpt_state.flat(state).items():
            tensor.copy_(loaded[name])

    def safe_open(self, state):
        from safetensors import safe_open
        with safe_open(self.path, "pt") as file:
            for name, tensor in ckpt_state.flat(state).items():
                tensor.copy_(file.get_tensor(name))

    def loads(self):
        return {"safetensors": self.load_file, "safetensors_open": self.safe_open}

    def close(self):
        pass


class Dcp:
    """torch.distributed.checkpoint. threads: of its writer; stager: how async_save copies."""
    saves = 1

    def __init__(self, folder, options):
        import torch.distributed.checkpoint as dcp
        warnings.simplefilter("ignore")  # it says at each call that there is no process group
        self.dcp, self.path = dcp, os.path.join(folder, "dcp")
        self.threads = options.get("threads", 1)
        self.stager = self.make_stager(options.get("stager", "default"))

    def make_stager(self, name):
        from torch.distributed.checkpoint import staging
        if name == "kept":  # its buffers stay from save to save
            return staging.DefaultStager(staging.StagingOptions(False, False, False, False))
        if name == "pinned":
            return staging.BlockingAsyncStager(cache_staged_state_dict=True)
        return None

    def writer(self):
        shutil.rmtree(self.path, ignore_errors=True)
        return self.dcp.FileSystemWriter(self.path, sync_files=True, thread_count=self.threads)

    def save(self, state):
        self.dcp.save(state, storage_writer=self.writer())

    def begin(self, state):
        more = {"async_stager": self.stager} if self.stager else {}
        future = self.dcp.async_save(state, storage_writer=self.writer(), **more)
        future.wait = future.result
        return future

    def loads(self):
        return {"dcp": lambda state: self.dcp.load(
            state, storage_reader=self.dcp.FileSystemReader(self.path))}

    def close(self):
        if self.stager:
            self.stager.close()


CONTENDERS = {"weir": Weir, "torch": Torch, "safetensors": Safetensors, "dcp": Dcp}


# Jobs


class Job:
    def __init__(self, name, folder, size, options):
        self.top, self.name, self.options = folder, name, options
        self.state = ckpt_state.empty(size)
        self.bytes = ckpt_state.total_bytes(self.state)
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder, exist_ok=True)

    def contender(self, name, **more):
        options = {**self.options.get(name, {}), **more}
        return CONTENDERS[name](os.path.join(self.top, name), options)

    def empty_folder(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def save(self):
        """Durable saves, to an empty folder; the first and the last are told."""
        self.empty_folder()
        ckpt_state.fill(self.state)
        contender = self.contender(self.name)
        runs = []
        base = memory_bytes("VmRSS")
        for _ in range(contender.saves):
            common.settle(self.top)
            with Watch(base) as watch:
                contender.save(self.state)
            runs.append(watch.result())
        contender.close()
        return {"bytes": self.bytes, "first": runs[0], "last": runs[-1]}

    def cap(self):
        """A save through a staging area a quarter of the state's size, to see that it holds."""
        self.empty_folder()
        ckpt_state.fill(self.state)
        cap = self.bytes // 4
        contender = self.contender("weir", staging=cap)
        with Watch(memory_bytes("VmRSS")) as watch:
            contender.begin(self.state).wait()
        contender.close()
        return {"bytes": self.bytes, "tensors": len(ckpt_state.flat(self.state)),
                "cap_bytes": cap, **watch.result()}

    def background(self):
        """A save in the background, the second of this process, beside a compute loop; and a plain
        copy of as many bytes."""
        self.empty_folder()
        ckpt_state.fill(self.state)
        copies = plain_copies(self.state, self.bytes)
        contender = self.contender(self.name)
        base = memory_bytes("VmRSS")
        with Watch(base) as whole:
            contender.begin(self.state).wait()
            rate = compute_rate(lambda start_s: time.perf_counter() - start_s < 2)
            common.settle(self.top)
            start_s = time.perf_counter()
            saving = contender.begin(self.state)
            blocked_s = time.perf_counter() - start_s
            beside = compute_rate(lambda _: not saving.done())
            saving.wait()
        contender.close()
        return {"bytes": self.bytes, "blocked_s": blocked_s, "peak_bytes": whole.peak_bytes,
                **copies,
                "compute_alone_per_s": rate, "compute_beside_per_s": beside,
                "compute_ratio": beside / rate}

    def load(self):
        """Everybody's load, beginning with the one that options name, into the same tensors."""
        contenders = [self.contender(name) for name in self.options["loaders"]]
        loads = {}
        for contender in contenders:
            loads.update(contender.loads())
        names = list(loads)
        turn = self.options["turn"] % len(names)
        runs = {}
        for name in names[turn:] + names[:turn]:
            ckpt_state.clear(self.state)
            dropped = common.settle(self.top)
            with Watch(memory_bytes("VmRSS")) as watch:
                loads[name](self.state)
            runs[name] = watch.result()
            if self.options["check"] and not ckpt_state.is_intact(self.state):
                raise SystemExit(f"{name} loaded something else than was saved")
        for contender in contenders:
            contender.close()
        return {"bytes": self.bytes, "caches_dropped": dropped, "runs": runs}


def plain_copies(state, size):
    """Seconds to copy as many bytes between warm buffers: by one memcpy, which may write past the
    caches because it is large; by one for each tensor; and by torch's copy_ with its threads."""
    room = torch.zeros(size, dtype=torch.uint8)
    tensors = list(ckpt_state.flat(state).values())

    def memcpy():  # in two halves, to spare the memory for another buffer
        half = size // 2
        for _ in range(2):
            ctypes.memmove(room.data_ptr() + half, room.data_ptr(), half)

    def memcpy_each():
        at = room.data_ptr()
        for tensor in tensors:
            ctypes.memmove(at, tensor.data_ptr(), tensor.nbytes)
            at += tensor.nbytes

    def copy():
        at = 0
        for tensor in tensors:
            room[at:at + tensor.nbytes].copy_(tensor.view(-1).view(torch.uint8))
            at += tensor.nbytes

    found = {}
    for name, run in (("memcpy_s", memcpy), ("memcpy_each_s", memcpy_each),
                      ("torch_copy_s", copy)):
        times = []
        for _ in range(3):
            start_s = time.perf_counter()
            run()
            times.append(time.perf_counter() - start_s)
        found[name] = sorted(times)[1]
    return found


def compute_rate(goes_on):
    """Steps a second of a loop on one thread while goes_on(start) is true."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    left = torch.randn(MATRIX, MATRIX)
    right, out = torch.randn(MATRIX, MATRIX), torch.empty(MATRIX, MATRIX)
    torch.matmul(left, right, out=out)
    steps, start_s = 0, time.perf_counter()
    while goes_on(start_s) or not steps:
        for _ in range(PRODUCTS):
            torch.matmul(left, right, out=out)
        steps += 1
    rate = steps / (time.perf_counter() - start_s)
    torch.set_num_threads(threads)
    return rate


def versions():
    import safetensors
    import weir
    return {"weir": weir.__version__, "torch": torch.__version__,
            "safetensors": safetensors.__version__, "python": sys.version.split()[0]}


def main():
    job, name, folder, size = sys.argv[1:5]
    options = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
    if job == "versions":
        print(json.dumps(versions()))
        return
    found = Job(name, folder, int(size), options)
    run = {"save": found.save, "async": found.background, "load": found.load, "cap": found.cap}[job]
    print(json.dumps(run()))


main()
