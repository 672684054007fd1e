"""Run by torchrun: data_ranks.py URL OUT. Writes down which batches each rank of four is given of
an epoch, as OUT/RANK: by meshes of torch, and by the process group alone."""
import json
import os
import sys
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import weir


def batches(url, mesh):
    with weir.Dataset(url, batch_size=4, seed=3, epochs=1, mesh=mesh) as ds:
        return [batch["id"].tolist() for batch in ds]


def main():
    url, out = sys.argv[1:]
    dist.init_process_group("gloo", timeout=timedelta(seconds=600))
    rank = dist.get_rank()
    for name in "RANK", "WORLD_SIZE":  # which are looked at, too, where there is no group
        del os.environ[name]
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    meshes = {"grid": grid, "row": grid["dp"], "both": both, "group": None}
    with open(os.path.join(out, str(rank)), "w") as file:
        json.dump({name: batches(url, mesh) for name, mesh in meshes.items()}, file)
    dist.barrier()
    dist.destroy_process_group()
    # Threads of gloo may still want an interpreter that is ending, and then abort the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
