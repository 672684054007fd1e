"""Who we are among those that get different samples."""
from __future__ import annotations

import operator
from typing import Any, Optional

from . import life

RANKS_MAX = (1 << 32) - 1

DATA_DIMS = {"data", "ddp", "fsdp", "replicate", "shard", "batch"}


def _is_data(name: str) -> bool:
    return name in DATA_DIMS or name.startswith("dp")


def _of_mesh(mesh: Any) -> tuple[int, int]:
    """Of a DeviceMesh: along those of its dimensions that are named dp, dp_…, data, fsdp, …, or
    its only one if it has no name."""
    if not hasattr(mesh, "mesh_dim_names"):
        raise TypeError(f"mesh is a DeviceMesh of torch, not {mesh!r}")
    names = mesh.mesh_dim_names
    dims = [i for i, name in enumerate(names or ()) if _is_data(name)]
    if mesh.ndim == 1 and not names:
        dims = [0]
    if not dims:
        raise ValueError(f"which dimensions of the mesh {names} are data-parallel is unknown: "
                         "give a mesh with one named 'dp', or dp_rank and dp_size")
    rank, size = 0, 1
    for dim in dims:
        rank = rank * mesh.size(dim) + mesh.get_local_rank(dim)
        size *= mesh.size(dim)
    return rank, size


def data_parallel(rank: Optional[int], size: Optional[int], mesh: Any) -> tuple[int, int]:
    """From the arguments, a DeviceMesh, torch's process group, torchrun's or Slurm's variables."""
    if (rank is None) != (size is None):
        raise ValueError("dp_rank and dp_size come together")
    if rank is None or size is None:
        return _of_mesh(mesh) if mesh is not None else life.rank_and_ranks()
    if mesh is not None:
        raise ValueError("dp_rank and dp_size, or a mesh: not both")
    try:
        rank, size = operator.index(rank), operator.index(size)
    except TypeError:
        raise ValueError(f"dp_rank and dp_size are whole numbers, not {rank!r} and "
                         f"{size!r}") from None
    if not 0 <= rank < size <= RANKS_MAX:
        raise ValueError(f"there is no rank {rank} of {size}")
    return rank, size
