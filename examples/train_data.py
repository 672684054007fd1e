#!/usr/bin/env python3
"""Trains on a weir.Dataset, with one process or many, and goes on exactly where it was killed.

    export PYTHONPATH=build/plain/python PATH=$PWD/.venv/bin:$PATH
    python examples/train_data.py /tmp/tokens --make               # a small dataset to try it with
    python examples/train_data.py /tmp/tokens --store /tmp/runs
    torchrun --standalone --nproc-per-node 2 examples/train_data.py /tmp/tokens --store /tmp/runs

Each checkpoint has the model, the optimizer, and where the run was in its data. Kill it and start
it again, with another number of processes if you like: the next batch is the one after the newest
checkpoint. At the end it tells how many samples of each epoch went into the model, and their
digest, which is the same whenever each sample of an epoch went in once.
"""
import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist

import weir


def make(folder: pathlib.Path, size: int = 1_000_000) -> None:
    """Some source text of Python's own; each byte is a token of 16 bits."""
    if folder.exists():
        raise SystemExit(f"{folder} is there already")
    files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    text = b"".join(file.read_bytes() for file in files)[:size]
    folder.mkdir(parents=True)
    (folder / "train.bin").write_bytes(b"".join(bytes([byte, 0]) for byte in text))


def open_data(options: argparse.Namespace, ranks: int, is_gpu: bool) -> weir.Dataset:
    """Its rank, and how many there are, the dataset finds out itself."""
    if min(options.epochs, options.every, options.batch) < 1 or options.batch % ranks:
        raise SystemExit("--epochs, --every and --batch must be 1 or more, and --batch a multiple "
                         f"of the number of processes, {ranks}")
    try:
        ds = weir.Dataset(options.data, batch_size=options.batch // ranks, seed=1, seq_len=64,
                          as_torch=True, pin_memory=is_gpu)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{error}\nThe data must be token files; --make writes one") from None
    if ds.dp_size != ranks:
        raise SystemExit(f"this is one of {ds.dp_size} processes: start them with torchrun")
    token = int(ds[0]["tokens"].long().max())  # of one sample: most mistakes show there
    if token >= options.vocabulary:
        raise SystemExit(f"the data has a token {token}: give a --vocabulary that is larger")
    return ds


def tell(step: int, loss: float, ds: weir.Dataset, seconds: float) -> None:
    """The loss is that of this process's samples; rate and waiting are those since the start."""
    stats = ds.stats()
    stalled = sum(value for name, value in stats.items() if name.startswith("stall_"))
    print(f"step {step} loss {loss:.4f}, {stats['samples'] * ds.dp_size / seconds:.0f} samples/s, "
          f"waited {1000 * stalled:.1f} ms for data in {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="a directory or URL with token files")
    parser.add_argument("--make", action="store_true", help="write a small dataset there, and stop")
    parser.add_argument("--store", default="runs", help="a directory or URL; made if missing")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="samples a step, of all processes")
    parser.add_argument("--vocabulary", type=int, default=256, help="number of tokens there are")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    options = parser.parse_args()
    if options.make:
        return make(pathlib.Path(options.data))

    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    is_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if is_gpu else "cpu")
    if is_gpu:
        torch.cuda.set_device(device)
    ds = open_data(options, ranks, is_gpu)
    if ranks > 1:
        dist.init_process_group("nccl" if is_gpu else "gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(  # guesses each token from the one before it
        torch.nn.Embedding(options.vocabulary, 64), torch.nn.Linear(64, 64), torch.nn.GELU(),
        torch.nn.Linear(64, options.vocabulary)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    state = {"model": model, "optimizer": optimizer}

    with ds, weir.Checkpointer(options.store, "tokens") as ck:
        loaded, step = ck.load(like=state), 0
        if loaded:
            step = loaded.step
            ds.load_state_dict(loaded.loader)  # of this rank, or of all if their number changed
        net = torch.nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
        position, began = ds.state_dict(), time.monotonic()
        if rank == 0:
            print(f"{device.type} x {ranks}, going on after step {step}", flush=True)
        while position["epoch"] < options.epochs:
            for batch in ds:  # to the end of the epoch
                tokens = batch["tokens"].to(device, non_blocking=True).long()
                guesses = net(tokens[:, :-1])
                loss = torch.nn.functional.cross_entropy(guesses.mT, tokens[:, 1:])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step, position = step + 1, ds.state_dict()
                is_last = position["epoch"] >= options.epochs
                if step % options.every == 0 or is_last:
                    ck.save(step, state, loader=position, loss=loss.item(), wait=is_last)
                    if rank == 0:
                        tell(step, loss.item(), ds, time.monotonic() - began)
        if rank == 0:  # what all processes were given, in all lives of the run
            for epoch, samples, digest in weir.merge_states(ck.loaders(step))["parts"][0]["epochs"]:
                print(f"epoch {epoch}: {samples} of {ds.samples} samples, digest {digest}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
