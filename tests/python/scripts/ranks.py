"""Run by torchrun: ranks.py save|load STORE. Saves or loads the state of a sharded model, whose
values are known, and checks them."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import weir


def known(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def model_of(seed):
    model = torch.nn.Sequential(torch.nn.Linear(19, 37), torch.nn.ReLU(), torch.nn.Linear(37, 5))
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(known(seed + i, *parameter.shape))
    return model


def new_objects(seed):
    """A model as FSDP has it, and its optimizer, which has no state yet."""
    model = fully_shard(model_of(seed))
    return model, torch.optim.Adam(model.parameters())


def train(model, optimizer):
    model(known(99, 4, 19)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def sharded(seed):
    """Their states after a step, and tensors sharded otherwise."""
    model, optimizer = new_objects(seed)
    train(model, optimizer)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
             "columns": distribute_tensor(known(seed + 50, 11, 23), mesh, [Shard(1)]),
             "everywhere": distribute_tensor(known(seed + 51, 7), mesh, [Replicate()]),
             "plain": known(seed + 52, 13, 3), "own": torch.tensor([dist.get_rank()]),
             "number": 17}
    if dist.get_world_size() == 4:
        grid = init_device_mesh("cpu", (2, 2))
        state["grid"] = distribute_tensor(known(seed + 53, 9, 10), grid, [Replicate(), Shard(0)])
    else:
        state["grid"] = distribute_tensor(known(seed + 53, 9, 10), mesh, [Shard(1)])
    return state


def full(value):
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {key: full(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [full(item) for item in value]
    return value


def check_same(a, b, path=""):
    if isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            check_same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, item in enumerate(a):
            check_same(item, b[i], f"{path}.{i}")
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b), path
    else:
        assert a == b, path


def spoil_newest(store):
    """Damages the newest one, where one rank alone reads."""
    names = os.listdir(os.path.join(store, "ckpt/r"))
    (newest,) = [name for name in names if name.startswith("2-")]
    path = os.path.join(store, "ckpt/r", newest, "model-00002-of-00004.safetensors")
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(bytes(64))


def save(ck, store):
    state = sharded(1)
    ck.save(1, state, loader={"position": 5}).wait(timeout=500)
    torch.save(full(state), os.path.join(store, f"expected-{dist.get_rank()}.pt"))
    ck.save(2, state).wait(timeout=500)
    dist.barrier()
    if dist.get_rank() == 1:
        spoil_newest(store)
    dist.barrier()
    assert ck.load(1).state["own"].item() == dist.get_rank()


def load(ck, store):
    """All fall back to the same one, whatever each of them has read."""
    state = sharded(1000)
    del state["own"]  # there may be other ranks than there were
    loaded = ck.load(like=state)
    assert loaded.step == 1 and len(loaded.skipped) == 1, loaded
    assert loaded.loader == {"position": 5}
    expected = torch.load(os.path.join(store, "expected-0.pt"), weights_only=True)
    del expected["own"]
    check_same(expected, full(loaded.state))


def load_objects(ck, store):
    """Into new ones: the optimizer's state is sharded as its parameters, and goes on with them."""
    model, optimizer = new_objects(1000)
    ck.load(1, like={"model": model, "optimizer": optimizer})
    expected = torch.load(os.path.join(store, "expected-0.pt"), weights_only=True)
    check_same(expected["model"], full(model.state_dict()))
    check_same(expected["optimizer"], full(optimizer.state_dict()))
    for param, state in optimizer.state.items():
        assert isinstance(state["exp_avg"], DTensor)
        assert state["exp_avg"].placements == param.placements
    train(model, optimizer)
    steps = {state["step"].item() for state in optimizer.state.values()}
    assert steps == {2}, steps


def expect(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__} with '{text}'")


def fail_together(ck):
    """What one rank fails with, of any kind, all fail with: none waits for the others."""
    one = dist.get_rank() == 1
    like = {"plain": torch.zeros(1 if one else 13, 3)}
    expect(ValueError if one else RuntimeError, "'plain' is F32 [13, 3]",
           lambda: ck.load(like=like))
    expect(KeyError if one else RuntimeError, "the checkpoint has no nothing",
           lambda: ck.load(like={"nothing": None} if one else {"number": None}))
    listing = weir.loading.Reader._listed

    def no_listing(reader):
        raise MemoryError("no list today")

    weir.loading.Reader._listed = no_listing  # which rank 0 alone calls
    expect(RuntimeError if dist.get_rank() else MemoryError, "no list today", ck.load)
    weir.loading.Reader._listed = listing


def refuse_partial(ck):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    partial = DTensor.from_local(torch.ones(2), mesh, [Partial()])
    for call in (lambda: ck.check({"sum": partial}), lambda: ck.save(9, {"sum": partial})):
        expect(weir.UnstorableError, "with partial values", call)


def main():
    what, store = sys.argv[1:]
    # A rank that waits for another in vain is a failure, not a test that never ends.
    dist.init_process_group("gloo", timeout=timedelta(seconds=600))
    with weir.Checkpointer(store, "r", local=["own"]) as ck:
        if what == "save":
            save(ck, store)
        load(ck, store)
        load_objects(ck, store)
        fail_together(ck)
        if what == "save":
            refuse_partial(ck)
    dist.barrier()
    dist.destroy_process_group()
    # Threads of gloo may still want an interpreter that is ending, and then abort the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
