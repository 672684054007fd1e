#!/usr/bin/env python3
"""A small training job of the kind that weir trace is made for: prints as JSON what it waited for.

    trace_work.py make FOLDER FILES BYTES      small files, in ten folders
    trace_work.py files FOLDER [OPTIONS]       a DataLoader over them, as most people begin
    trace_work.py weir FOLDER [OPTIONS]        weir.Dataset over what 'weir data pack' made of them
    trace_work.py streaming FOLDER [OPTIONS]   MosaicML's Streaming over the same
    trace_work.py webdataset FOLDER [OPTIONS]  WebDataset over tars
    trace_work.py save FOLDER [OPTIONS]        torch.save and rename, and fsync if --fsync
    trace_work.py checkpointer FOLDER [OPTIONS]  the same state with weir.Checkpointer

A step is a pause, as of a processor that waits for an accelerator; what the loop waits for its next
batch, or for a save, is a stall.
"""
import argparse
import glob
import json
import os
import random
import sys
import time

SAMPLE = 8192  # bytes of each sample that become its tensor
FOLDERS = 10


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("folder")
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--step-ms", type=float, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--mib", type=int, default=256, help="of the state that is saved")
    parser.add_argument("--saves", type=int, default=3)
    parser.add_argument("--fsync", action="store_true")
    parser.add_argument("--fsync-last", action="store_true", help="only the last save")
    return parser.parse_args()


def make(folder, count, size):
    chance = random.Random(7)
    noise = chance.randbytes(1 << 22)
    for i in range(count):
        name = os.path.join(folder, f"class{i % FOLDERS}", f"{i:06}.jpg")
        os.makedirs(os.path.dirname(name), exist_ok=True)
        at, length = chance.randrange(1 << 21), chance.randrange(size * 3 // 4, size * 5 // 4)
        with open(name, "wb") as file:
            file.write(noise[at:at + length])


# Readers: each gives batches of one tensor.


def tensor_of(data):
    import torch
    out = torch.zeros(SAMPLE, dtype=torch.uint8)
    n = min(SAMPLE, len(data))
    out[:n] = torch.frombuffer(data, dtype=torch.uint8, count=n)
    return out


def read_files(args):
    import torch

    class Files(torch.utils.data.Dataset):
        def __init__(self, folder):
            self.paths = sorted(glob.glob(os.path.join(folder, "*", "*.jpg")))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            with open(self.paths[i], "rb") as file:
                return tensor_of(bytearray(file.read()))

    loader = torch.utils.data.DataLoader(Files(args.folder), batch_size=args.batch, shuffle=True,
                                         num_workers=args.workers, drop_last=True,
                                         persistent_workers=args.workers > 0)
    for _ in range(args.epochs):
        yield from loader


def read_weir(args):
    import numpy as np
    import torch
    import weir
    data = weir.Dataset(args.folder, batch_size=args.batch, seed=1, epochs=args.epochs,
                        prefetch=args.prefetch, fields=["data"])
    for batch in data:
        column = batch["data"]  # all samples in one array
        rows = [column.data[at:at + SAMPLE] for at in column.offsets[:-1]]
        yield torch.from_numpy(np.stack(rows))


def read_streaming(args):
    import torch
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
    import peers
    streaming = peers.streaming()
    data = streaming.StreamingDataset(local=args.folder, shuffle=True, batch_size=args.batch)
    for _ in range(args.epochs):
        for first in range(0, len(data), args.batch):
            some = [data[i] for i in range(first, min(first + args.batch, len(data)))]
            yield torch.stack([tensor_of(bytearray(one["data"])) for one in some])


def read_webdataset(args):
    import torch
    import webdataset
    shards = sorted(glob.glob(os.path.join(args.folder, "*.tar")))
    for _ in range(args.epochs):
        some = []
        for one in webdataset.WebDataset(shards, shardshuffle=False).shuffle(500):
            some.append(tensor_of(bytearray(next(v for k, v in one.items() if k[0] != "_"))))
            if len(some) == args.batch:
                yield torch.stack(some)
                some = []


def consume(args, batches):
    """A loop that trains: what it did, and how long it stood still after its first batch, for which
    workers have to start."""
    begin = time.monotonic()
    batches = iter(batches)
    batch = next(batches, None)
    first, stall, steps = time.monotonic(), 0, 0
    while batch is not None:
        steps += 1
        time.sleep(args.step_ms / 1e3)
        before = time.monotonic()
        batch = next(batches, None)
        stall += time.monotonic() - before
    seconds = time.monotonic() - first
    return {"steps": steps, "first_s": first - begin, "seconds": seconds, "stall_s": stall,
            "stalled": stall / seconds}


# Saving


def state_of(mib):
    import torch
    return {f"w{i}": torch.randn(mib << 16) for i in range(4)}


def save_plain(args, state, step):
    import torch
    path = os.path.join(args.folder, f"step{step}.pt")
    with open(path + ".tmp", "wb") as file:
        torch.save(state, file)
        if args.fsync or (args.fsync_last and step == args.saves - 1):
            file.flush()
            os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def train_and_save(args):
    os.makedirs(args.folder, exist_ok=True)
    state, checkpointer = state_of(args.mib), None
    if args.job == "checkpointer":
        import weir
        checkpointer = weir.Checkpointer(args.folder, "run", keep_last=2)
    stall, begin = 0, time.monotonic()
    for save in range(args.saves):
        for _ in range(args.steps):
            time.sleep(args.step_ms / 1e3)
        before = time.monotonic()
        if checkpointer:
            checkpointer.save(save, state)
        else:
            save_plain(args, state, save)
        stall += time.monotonic() - before
    seconds = time.monotonic() - begin
    if checkpointer:
        checkpointer.close()
    return {"saves": args.saves, "seconds": seconds, "stall_s": stall, "stalled": stall / seconds,
            "until_safe_s": time.monotonic() - begin}


READERS = {"files": read_files, "weir": read_weir, "streaming": read_streaming,
           "webdataset": read_webdataset}


def main():
    args = options()
    if args.job == "make":
        make(args.folder, *args.numbers)
    elif args.job in READERS:
        import torch  # noqa: F401 (before the clock starts)
        print(json.dumps(consume(args, READERS[args.job](args))), flush=True)
    else:
        print(json.dumps(train_and_save(args)), flush=True)


if __name__ == "__main__":
    main()
