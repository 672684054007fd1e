"""Weir: a storage engine for AI training.

    store = weir.open("/data/runs")
    with weir.Checkpointer(store, "llama") as ck:
        ck.save(step, {"model": model, "optimizer": optimizer})
        loaded = ck.load(like={"model": model, "optimizer": optimizer})

    for batch in weir.Dataset("/data/imagenet", batch_size=256):
        train(batch["image"], batch["label"])

weir.torch has the storage of torch.distributed.checkpoint.
"""
from __future__ import annotations

import os
from typing import Any, Optional, Union

from ._weir import DamagedError, StaleError, Store as _Store, version as __version__
from .checkpoint import Checkpointer, NonfiniteError, Resume, Saving
from .columns import Batch, Ragged
from .data import Dataset, Mixture
from .loading import DamagedWarning, Loaded
from .position import merge_states, worker_states
from .state import UnstorableError

__all__ = ["Batch", "Checkpointer", "DamagedError", "DamagedWarning", "Dataset", "Loaded",
           "Mixture", "NonfiniteError", "Ragged", "Resume", "Saving", "StaleError", "Store",
           "UnstorableError", "merge_states", "open", "worker_states"]


class Store(_Store):
    """A store: objects under keys, each complete or absent, verified when read."""

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def open(url: Union[str, "os.PathLike[str]"], create: bool = True,
         io: Optional[str] = None) -> Store:
    """Opens a store: a directory's path, file:PATH or mem:. create=False: only if it is there."""
    return Store(os.fspath(url), create, io)
