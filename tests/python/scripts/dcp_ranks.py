"""What one rank of a job does with weir.torch: started by torchrun, from test_torch_dcp.py.

    dcp_ranks.py STORE RUN RANKS:WHAT,… …     saves and loads steps of the run, as the methods of
                                              Job say, first with so many ranks, then with fewer

Every tensor is a function of its name and the step, so that any rank of any job knows what must be
in its piece of it, to the bit.
"""
import math
import os
import sys
import warnings
import zlib
from dataclasses import replace

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec
from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

import weir
import weir.torch

STAGING = 2 << 20
WIDE = 1024  # what a rank has is larger than the staging area
ODD = 0x1E3779B97F4A7C15


def pattern(name, shape, dtype, step):
    """Bits that look random, the same for everybody."""
    seed = zlib.crc32(f"{name} {step}".encode())
    size = max(math.prod(shape) * dtype.itemsize, 8)
    bits = (torch.arange(-(-size // 8)) + seed) * ODD
    if dtype == torch.bool:
        bits = bits >> 63 & 0x0101010101010101
    return bits.view(torch.uint8)[:math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def local_pattern(name, value, step):
    """What this rank has of it."""
    whole = pattern(name, value.shape, value.dtype, step)
    if not isinstance(value, DTensor):
        return whole
    shape, offset = compute_local_shape_and_global_offset(value.shape, value.device_mesh,
                                                          value.placements)
    for dim, (size, begin) in enumerate(zip(shape, offset)):
        whole = whole.narrow(dim, begin if size else 0, size)
    return whole


def tensors_of(state, path=()):
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, torch.Tensor):
            yield ".".join(map(str, path + (key,))), value
        elif isinstance(value, (dict, list)):
            yield from tensors_of(value, path + (key,))


def local(value):
    return value.to_local() if isinstance(value, DTensor) else value


def fill(state, step):
    for name, value in tensors_of(state):
        local(value.detach()).copy_(local_pattern(name, value, step))
    state["epoch"], state["words"]["text"] = step, f"step {step}"
    return state


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(
        a.contiguous().view(torch.uint8) if a.dim() else a,
        b.contiguous().view(torch.uint8) if b.dim() else b)


def check(state, step):
    for name, value in tensors_of(state):
        assert same_bits(local(value.detach()), local_pattern(name, value, step)), (name, step)
    assert state["epoch"] == step and state["words"]["text"] == f"step {step}", state["words"]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(WIDE, WIDE)
        self.down = torch.nn.Linear(WIDE, 7)  # not a multiple of any number of ranks
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))

    def forward(self, x):
        return self.down(self.up(x))


def new_state():
    """A model under FSDP2 with its Adam, tensors sharded in other ways, plain ones, and values."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(Block())
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model_state, optimizer_state = get_state_dict(model, optimizer)

    def sharded(shape, placement, dtype=torch.float32):
        return distribute_tensor(torch.zeros(shape, dtype=dtype), mesh, [placement])

    return {"model": model_state, "optim": optimizer_state,
            "columns": sharded((6, 10), Shard(1), torch.bfloat16),
            "few": sharded((3, 5), Shard(0)),  # some ranks have none of it
            "whole": sharded((4, 4), Replicate()),
            "plain": torch.zeros(100, 3, dtype=torch.float16), "scalar": torch.tensor(0.0),
            "flags": torch.zeros(9, dtype=torch.bool), "none": torch.zeros(0, 4),
            "words": {"text": "", "list": [1, torch.zeros(2, dtype=torch.int32)]},
            "epoch": 0}


def sharded_tensor_of(step):
    """It, and what all of it is."""
    ranks = [f"rank:{rank}/cpu" for rank in range(dist.get_world_size())]
    tensor = sharded_tensor.zeros(ChunkShardingSpec(dim=0, placements=ranks), 10, 4)
    whole = torch.arange(40.0).reshape(10, 4) * step
    for shard in tensor.local_shards():
        begin, size = shard.metadata.shard_offsets[0], shard.metadata.shard_sizes[0]
        shard.tensor.copy_(whole[begin:begin + size])
    return tensor, whole


class Failing(dcp.DefaultSavePlanner):
    """One rank's data cannot be had."""
    def resolve_data(self, write_item):
        if dist.get_rank() == 1:
            raise RuntimeError("no data today")
        return super().resolve_data(write_item)


class NoStart(dcp.DefaultSavePlanner):
    """The coordinator does not even begin."""
    def set_up_planner(self, *args, **kwargs):
        if dist.get_rank() == 0:
            raise RuntimeError("no start today")
        return super().set_up_planner(*args, **kwargs)


class Twice(dcp.DefaultSavePlanner):
    """The next rank writes what all ranks have, too."""
    def create_global_plan(self, all_plans):
        plans, metadata = super().create_global_plan(all_plans)
        again = [[item for item in plan.items if item.type != WriteItemType.SHARD]
                 for plan in plans[-1:] + plans[:-1]]
        return [replace(plan, items=plan.items + more)
                for plan, more in zip(plans, again)], metadata


def expect(kind, text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__} with '{text}'")


class Job:
    def __init__(self, store, run):
        self.store, self.run = store, run
        self.state = new_state()

    def writer(self, **options):
        return weir.torch.StorageWriter(self.store, self.run, staging=STAGING, **options)

    def reader(self, step=None):
        return weir.torch.StorageReader(self.store, self.run, step)

    def save(self, step, writer=None, **more):
        dcp.save(fill(self.state, step), checkpoint_id=f"some/step-{step}",
                 storage_writer=writer or self.writer(), **more)

    def load(self, step):
        state = fill(self.state, 0)
        dcp.load(state, storage_reader=self.reader(step))
        check(state, step)

    def absent(self, step):
        expect(dcp.api.CheckpointException, f"'{step}'", dcp.load, self.state,
               storage_reader=self.reader(step))

    def save_in_background(self, step, kind, writer):
        future = dcp.async_save(fill(self.state, step), checkpoint_id=str(step),
                                storage_writer=writer, async_checkpointer_type=kind)
        fill(self.state, 0)  # it has its own copy
        future.result()

    # ---- what a job may do ----

    def save_some(self):
        for step in (1, 2):
            self.save(step)
        self.load(1)
        dcp.load(fill(self.state, 0), storage_reader=self.reader())
        check(self.state, 2)

    def load_some(self):
        for step in (1, 3, 14, 20):
            self.load(step)

    def fail(self):
        """A save that fails is not there, and the next one is none the worse."""
        failed = dcp.api.CheckpointException
        expect(failed, "no data today", self.save, 3, planner=Failing())
        self.absent(3)
        self.save(3)
        expect(failed, "no start today", self.save, 4, planner=NoStart())
        self.absent(4)
        self.save(4)
        other = 5 + (dist.get_rank() == 2)
        expect(failed, "this rank saves step 6", self.save, other)
        expect(ValueError, "use_collectives=False", self.save, 5, use_collectives=False)
        for step in (3, 4):
            self.load(step)

    def plan_otherwise(self):
        """Plans that are kept carry old tickets, some of another run; items come twice."""
        for step in (10, 11, 12):
            self.save(step, planner=dcp.DefaultSavePlanner(enable_plan_caching=True))
        dcp.save(fill(self.state, 13), storage_writer=weir.torch.StorageWriter(
            self.store, "other", step=13), planner=dcp.DefaultSavePlanner(enable_plan_caching=True))
        self.save(14, planner=Twice())
        for step in (10, 12, 14):
            self.load(step)
        dcp.load(fill(self.state, 0), storage_reader=weir.torch.StorageReader(self.store, "other"))
        check(self.state, 13)

    def save_shards(self):
        """A ShardedTensor, as FSDP1 has them."""
        tensor, _ = sharded_tensor_of(1)
        dcp.save({"shards": tensor}, checkpoint_id=50, storage_writer=self.writer())
        self.load_shards()

    def load_shards(self):
        tensor, _ = sharded_tensor_of(0)
        dcp.load({"shards": tensor}, storage_reader=self.reader(50))
        _, whole = sharded_tensor_of(1)
        for shard in tensor.local_shards():
            begin, size = shard.metadata.shard_offsets[0], shard.metadata.shard_sizes[0]
            assert torch.equal(shard.tensor, whole[begin:begin + size])

    def use_a_thread(self):
        self.save_in_background(20, AsyncCheckpointerType.THREAD, self.writer())
        self.load(20)

    def use_a_process(self):
        """It and this one take turns: one life of the run."""
        self.save(30)
        writer = self.writer()
        self.save_in_background(31, AsyncCheckpointerType.PROCESS, writer)
        self.save(32)
        self.save_in_background(33, AsyncCheckpointerType.PROCESS, writer)
        self.save(34)
        for step in (30, 31, 32, 33, 34):
            self.load(step)
        found = [weir.torch.StorageReader(self.store, self.run, step).read_metadata().storage_data
                 for step in (30, 31, 32, 33, 34)]
        assert len({choice.attempt for choice in found}) == 1, found

    def save_more(self):
        self.save(40)


def join(store, ranks):
    """A process group of the first ranks of the job; False for the others."""
    rank = int(os.environ["RANK"])
    if rank < ranks:
        meeting = dist.FileStore(f"{store}.{ranks}", ranks)
        dist.init_process_group("gloo", store=meeting, rank=rank, world_size=ranks)
    return rank < ranks


def main():
    warnings.simplefilter("ignore")
    store, run, *stages = sys.argv[1:]
    for stage in stages:
        ranks, _, what = stage.partition(":")
        if join(store, int(ranks)):
            for word in what.split(","):
                getattr(Job(store, run), word)()
            dist.barrier()
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
