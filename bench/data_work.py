#!/usr/bin/env python3
"""One job of the dataset benchmark in a process of its own: prints what it saw as JSON.

    data_work.py make|epoch|tokens|memcpy|versions NAME FOLDER BYTES [OPTIONS AS JSON]

BYTES is the size of a sample. NAME is a contender: weir, weir_mds, weir_files, streaming,
webdataset, litdata, files; weir_long and weir_fresh are weir. Each reads what its own library has
written to FOLDER; Weir also what others have.
"""
import json
import os
import random
import sys
import time

import common

sys.path.insert(0, os.path.join(common.ROOT, "tests"))

BATCH = 256
SHARD_BYTES = 64 << 20
FILES_A_FOLDER = 1000
SHUFFLE_BUFFER = 1000  # of WebDataset, as its documentation has it
MORE_BYTES = 1 << 30  # beside a dataset's, in the page cache, what a process needs at most
SECONDS = 2.0  # that warm reading is measured for at least, in whole epochs


def samples_of(size, total):
    """Bytes that do not compress: slices of one random text."""
    noise = random.Random(7).randbytes((1 << 22) + size)
    for i in range(total // size):
        at = i * 7919 % (1 << 22)
        yield i, noise[at:at + size]



# Makers


def make_streaming(folder, size, total):
    import peers
    streaming = peers.streaming()
    with streaming.MDSWriter(columns={"id": "int", "data": "bytes"}, out=folder,
                             size_limit=SHARD_BYTES) as writer:
        for i, data in samples_of(size, total):
            writer.write({"id": i, "data": data})


def make_webdataset(folder, size, total):
    import webdataset
    os.makedirs(folder)
    with webdataset.ShardWriter(os.path.join(folder, "shard-%06d.tar"), maxcount=1 << 40,
                                maxsize=SHARD_BYTES, verbose=0) as writer:
        for i, data in samples_of(size, total):
            writer.write({"__key__": f"{i:09}", "id": str(i), "data": data})


def make_litdata(folder, size, total):
    from litdata.streaming import Cache
    os.makedirs(folder)
    cache = Cache(folder, chunk_bytes=SHARD_BYTES)
    for i, data in samples_of(size, total):
        cache._add_item(i, {"id": i, "data": data})
    cache.done()
    cache.merge()


def make_files(folder, size, total):
    for i, data in samples_of(size, total):
        below = os.path.join(folder, f"{i // FILES_A_FOLDER:05}")
        if i % FILES_A_FOLDER == 0:
            os.makedirs(below)
        with open(os.path.join(below, f"{i:09}.bin"), "wb") as file:
            file.write(data)


MAKERS = {"streaming": make_streaming, "webdataset": make_webdataset, "litdata": make_litdata,
          "files": make_files}


# Readers: each yields batches as a trainer wants them, one array of all samples' bytes.


def stacked(samples):
    """The fastest way from many bytes to one tensor that we know of."""
    import torch
    whole = torch.frombuffer(bytearray().join(samples), dtype=torch.uint8)
    return whole.view(len(samples), -1)


def stacked_data(samples):
    return stacked([sample["data"] for sample in samples])


class Files:
    """A map-style dataset over files, as everybody writes it."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(below, name) for below, _, names in os.walk(folder)
                            for name in names)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as file:
            return file.read()


def torch_loader(dataset, workers, collate=stacked_data, **more):
    from torch.utils.data import DataLoader
    return DataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate,
                      persistent_workers=workers > 0, **more)


def read_files(folder, workers, seed):
    return torch_loader(Files(folder), workers, stacked, shuffle=True)


def read_streaming(folder, workers, seed):
    import peers
    streaming = peers.streaming()
    return torch_loader(streaming.StreamingDataset(local=folder, shuffle=True, shuffle_seed=seed,
                                                   batch_size=BATCH), workers)


def read_webdataset(folder, workers, seed):
    import webdataset
    shards = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    return torch_loader(webdataset.WebDataset(shards, shardshuffle=len(shards), seed=seed).shuffle(
        SHUFFLE_BUFFER), min(workers, len(shards)))


def read_litdata(folder, workers, seed):
    import litdata
    return litdata.StreamingDataLoader(
        litdata.StreamingDataset(folder, shuffle=True, seed=seed), batch_size=BATCH,
        num_workers=workers, collate_fn=stacked_data, persistent_workers=workers > 0)


class Weir:
    """Each loop over it is an epoch."""

    def __init__(self, folder, workers, seed, **more):
        import weir
        self.dataset = weir.Dataset(folder, batch_size=BATCH, shuffle=True, seed=seed,
                                    threads=workers, as_torch=True, **more)

    def __iter__(self):
        for batch in self.dataset:
            yield batch["data"].data.view(len(batch["data"]), -1)


def read_weir(folder, workers, seed, **more):
    return Weir(folder, workers, seed, **more)


def read_weir_files(folder, workers, seed, **more):
    return Weir(folder, workers, seed, format="files", fields=["data"], **more)


READERS = {"weir": read_weir, "weir_mds": read_weir, "weir_long": read_weir,
           "weir_fresh": read_weir,
           "weir_files": read_weir_files, "streaming": read_streaming,
           "webdataset": read_webdataset, "litdata": read_litdata, "files": read_files}


# Jobs


def resident_bytes():
    """Without the pages of files that are mapped: those are the page cache's."""
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


def load_libraries(name):
    """Before the clock runs."""
    import torch  # noqa: F401
    if name == "streaming":
        import peers
        peers.streaming()
    elif name in ("webdataset", "litdata"):
        __import__(name)
    elif name.startswith("weir"):
        import weir  # noqa: F401


def one_epoch(name, loader, total):
    """Reads it all: how much there was, when the first batch came, how large that was, and the
    memory of this process halfway."""
    first_s, first, seen, halfway = 0.0, 0, 0, 0
    for batch in loader:
        if not seen:
            first_s, first = time.perf_counter(), len(batch)
        seen += len(batch)
        if not halfway and seen >= total // 2:
            halfway = resident_bytes()
    if not total - BATCH < seen <= total + BATCH:  # a last batch may be short, or go on
        raise SystemExit(f"{name} gave {seen} samples of {total}")
    return seen, first_s, first, halfway


def epoch(name, folder, size, options):
    """Epochs: samples a second from the first batch of the first one on, and, of that one, from
    before its first batch; the memory of this process in the middle of the last one and at its
    end."""
    total, more = options["total"] // size, options.get("more", {})
    load_libraries(name)
    touched = None
    if options.get("touch"):
        touched = common.touch_memory(options["total"] + MORE_BYTES)
    start_s, cpu_s = time.perf_counter(), time.process_time()
    loader = READERS[name](folder, options["workers"], options["seed"], **more)
    seen, first_s, first, halfway = one_epoch(name, loader, total)
    end_s = time.perf_counter()
    whole_per_s = seen / (end_s - start_s)
    if options.get("again"):
        return {**going_on(name, loader, total, options["again"]), "touched_per_s": touched}
    while not options.get("once") and end_s - first_s < SECONDS:
        more_seen, _, _, halfway = one_epoch(name, loader, total)
        seen += more_seen
        end_s = time.perf_counter()
    return {"samples": seen, "seconds": end_s - start_s,
            "per_s": (seen - first) / (end_s - first_s), "whole_per_s": whole_per_s,
            "touched_per_s": touched,
            "cpu_seconds": time.process_time() - cpu_s,
            "halfway_bytes": halfway, "end_bytes": resident_bytes()}


def going_on(name, loader, total, epochs):
    """Samples a second over so many more epochs of a loader that reads on beyond them: as much is
    ready at the end as at the beginning."""
    start_s = time.perf_counter()
    seen = sum(one_epoch(name, loader, total)[0] for _ in range(epochs))
    return {"per_s": seen / (time.perf_counter() - start_s)}


def tokens(folder, options):
    """Epochs of token sequences, bytes a second, after the first: while that is read, each block is
    checked, once as long as the file is mapped."""
    import weir
    seen = 0
    dataset = weir.Dataset(folder, batch_size=options["batch"], shuffle=True, seed=options["seed"],
                           seq_len=options["seq_len"])
    with dataset:
        for batch in dataset:
            pass
        start_s = time.perf_counter()
        while time.perf_counter() - start_s < SECONDS:
            for batch in dataset:
                seen += batch["tokens"].nbytes
        return {"bytes": seen, "per_s": seen / (time.perf_counter() - start_s),
                "stats": dataset.stats()}


def memcpy(size):
    """Bytes a second of one copy between warm buffers."""
    import numpy as np
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    best = []
    for _ in range(5):
        start_s = time.perf_counter()
        np.copyto(target, source)
        best.append(size / (time.perf_counter() - start_s))
    return {"per_s": sorted(best)[2]}


def make_tokens(folder, total):
    """nanoGPT's layout: bare 16-bit numbers."""
    import numpy as np
    os.makedirs(folder)
    rng = np.random.default_rng(3)
    rng.integers(0, 50257, total // 2, dtype=np.uint16).tofile(os.path.join(folder, "train.bin"))


def versions():
    import importlib.metadata as metadata
    names = ("torch", "mosaicml-streaming", "webdataset", "litdata")
    return {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}}


def main():
    job, name, folder, size = sys.argv[1:5]
    options = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
    if job == "versions":
        found = versions()
    elif job == "make" and name == "tokens":
        found = make_tokens(folder, options["total"])
    elif job == "make":
        found = MAKERS[name](folder, int(size), options["total"])
    elif job == "epoch":
        found = epoch(name, folder, int(size), options)
    elif job == "tokens":
        found = tokens(folder, options)
    else:
        found = memcpy(int(size))
    print(json.dumps(found))


main()
