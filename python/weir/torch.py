"""The storage of torch.distributed.checkpoint: a writer and a reader for dcp.save() and dcp.load().

    dcp.save(state, checkpoint_id="100", storage_writer=weir.torch.StorageWriter(url, "llama"))
    dcp.load(state, storage_reader=weir.torch.StorageReader(url, "llama"))

A save is one group commit of ranks + 1 parts: part r + 1 is what rank r wrote, and part 0 is
written by the coordinator in finish(), when all others are there. So the checkpoint appears when
dcp.save() succeeds, and never otherwise.
"""
from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import secrets
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Iterable, Iterator, Optional, Union

import torch
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta,
    TensorProperties, TensorStorageMetadata)
from torch.distributed.checkpoint.planner import (
    LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from . import _weir, state as states, tensors
from .checkpoint import LEVELS
from .loading import META_FORMAT, Choice
from .ticket import Saves, Ticket, saves_of

__all__ = ["StorageReader", "StorageWriter"]

MIB = 1 << 20
BYTES = "#bytes"            # the name of an item that is no tensor ends with it
COPY_BYTES = 256 * MIB      # read next to their place at once, where they cannot be read into it
Where = Union[str, "os.PathLike[str]"]
CheckpointId = Union[int, Where]


def _step_of(checkpoint_id: CheckpointId) -> int:
    """A number, or the digits that a name or a path ends with."""
    text = str(checkpoint_id) if isinstance(checkpoint_id, int) else os.fspath(checkpoint_id)
    digits = re.search(r"([0-9]+)/*$", text)
    if digits is None:
        raise ValueError(f"checkpoint_id {text!r} does not end with a number: it is the step")
    return int(digits[1])


def _done(value: Any) -> Any:
    future: Any = Future()
    future.set_result(value)
    return future


# ---- writing ----


@dataclass(frozen=True)
class Save:
    """Which save a rank has written its part of."""
    token: bytes
    step: int
    number: int


def _piece(item: WriteItem, planner: SavePlanner) -> tensors.Piece:
    """What the planner has for an item, as the engine sees it."""
    value, name = planner.resolve_data(item), item.index.fqn
    if item.type == WriteItemType.BYTE_IO:
        data = value.getbuffer()  # type: ignore[union-attr]
        memory = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0).byte()
        return tensors.pieces_of(name + BYTES, memory)[0]
    found = item.tensor_data
    if found is None:
        raise ValueError(f"the planner says nothing of the shape of tensor '{name}'")
    try:
        [piece] = tensors.pieces_of(name, value)
    except TypeError as error:
        raise TypeError(f"tensor '{name}': {error}") from None
    if piece.shape != tuple(found.chunk.sizes):
        raise ValueError(f"tensor '{name}' is {list(piece.shape)}, and "
                         f"{list(found.chunk.sizes)} in the plan")
    piece.global_shape, piece.offset = tuple(found.size), tuple(found.chunk.offsets)
    piece.replica = piece.replicas = 0
    return piece


def _is_needed(piece: tensors.Piece) -> bool:
    """An empty piece of a tensor that is not empty says nothing."""
    return piece.bytes > 0 or piece.global_shape is None or not math.prod(piece.global_shape)


def _check_saves(mine: Save, results: list[list[WriteResult]]) -> None:
    """All ranks have written parts of this save; the first result of each says so."""
    for rank, found in enumerate(results):
        theirs = found[0].storage_data
        if theirs != mine:
            raise ValueError(
                f"rank {rank} has written save {theirs.number} of step {theirs.step}, and this is "
                f"save {mine.number} of step {mine.step}: all ranks must save in the same order")


def _check_complete(metadata: Metadata, results: list[list[WriteResult]]) -> None:
    """Every tensor is there with all its elements, and no piece of it twice."""
    elements: Counter[str] = Counter()
    pieces: Counter[MetadataIndex] = Counter()
    for result in (result for found in results for result in found[1:]):
        elements[result.index.fqn] += result.storage_data
        pieces[result.index] += 1
    for index, count in pieces.items():
        if count > 1:
            raise ValueError(f"{count} ranks have written the same piece of '{index.fqn}'")
    for name, found in metadata.state_dict_metadata.items():
        if name not in elements:
            raise ValueError(f"nobody has written '{name}'")
        size = math.prod(found.size) if isinstance(found, TensorStorageMetadata) else None
        if size is not None and elements[name] != size:
            raise ValueError(f"tensor '{name}' has {size} elements, and {elements[name]} were "
                             "written: save it with all ranks that have pieces of it")
        if size is None and name + BYTES in metadata.state_dict_metadata:
            raise ValueError(f"'{name}{BYTES}' is what '{name}' would be called: rename it")


def _planner_data(metadata: Metadata) -> Any:
    """As tagged JSON."""
    encoder = states.Encoder()
    root = encoder.encode(metadata.planner_data, ("planner_data",))
    if encoder.unstorable or encoder.tensors:
        names = [path for path, _ in encoder.unstorable] + list(encoder.tensors)
        raise TypeError(f"the planner's own data cannot be stored without pickle: {names[:20]}")
    return root


def _document(metadata: Metadata) -> str:
    """Part 0's state: the tensors by name, for weir.Checkpointer, and what DCP has to know that
    the manifest does not say."""
    found = metadata.state_dict_metadata.items()
    names = [name for name, item in found if isinstance(item, TensorStorageMetadata)]
    others = [name for name, item in found if isinstance(item, BytesStorageMetadata)]
    grads = [name for name, item in found
             if isinstance(item, TensorStorageMetadata) and item.properties.requires_grad]
    root = {name: {"$": "tensor", "name": name} for name in names}
    if "$" in root:
        raise ValueError("a tensor cannot be called '$'")
    return states.to_text(root, dcp={"planner_data": _planner_data(metadata), "bytes": others,
                                     "requires_grad": grads})


class StorageWriter(dcp.StorageWriter):
    """Saves the checkpoints of a run, for dcp.save() and dcp.async_save().

    checkpoint_id says which step it is: a number, or a name or path that ends with digits. step:
    for calls without one. keep_last, keep_every: which checkpoints stay; 0 keeps all. rate: bytes
    a second at most. staging: bytes of memory between the tensors and the disk.
    lineage, meta: JSON that is kept with every checkpoint.

    It can be pickled, for AsyncCheckpointerType.PROCESS: the other process goes on in this life of
    the run, with the number of one save.
    """

    def __init__(self, url: Where, run: str, *, step: Optional[int] = None, keep_last: int = 0,
                 keep_every: int = 0, rate: float = 0, staging: int = 256 * MIB,
                 retired_grace: float = 600, lineage: Optional[dict[str, Any]] = None,
                 meta: Any = None) -> None:
        super().__init__()
        self.url, self.run, self.step = os.fspath(url), run, step
        self.lineage, self.meta = dict(lineage or {}), meta
        self._options = dict(staging_bytes=int(staging), rate=int(rate), keep_last=keep_last,
                             keep_every=keep_every, retired_grace=int(retired_grace))
        self._ticket: Optional[Ticket] = None
        self._echo: Optional[bytes] = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ticket": None, "_echo": None,
                "_given": self._saves.give_away()}

    def __setstate__(self, given: dict[str, Any]) -> None:
        self.__dict__.update(given)
        self._saves.take_over(*self.__dict__.pop("_given"))

    @property
    def _saves(self) -> Saves:
        return saves_of(self.url, self.run)

    def reset(self, checkpoint_id: Optional[CheckpointId] = None) -> None:
        self._ticket = None
        if checkpoint_id is not None:
            self.step = _step_of(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=None if self.step is None else str(self.step))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        try:
            _step_of(checkpoint_id)
        except (TypeError, ValueError):
            return False
        return True

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise ValueError("use_collectives=False: a checkpoint of Weir is one commit of all "
                             "ranks, for which DCP's collectives are needed")
        if self.step is None:
            raise ValueError("which step is it? Give dcp.save() a checkpoint_id")
        self._saves.begin()

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self._echo = secrets.token_bytes(8)
        return replace(plan, storage_data=self._echo)

    def _new_items(self, plan: SavePlan, seen: set[MetadataIndex]) -> Iterator[WriteItem]:
        """Those that no rank before has: the default planners leave none twice, others may."""
        for item in plan.items:
            if item.index not in seen:
                seen.add(item.index)
                yield item

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        assert self.step is not None
        ticket = self._saves.lead(self.step, len(plans) + 1)
        seen: set[MetadataIndex] = set()
        return [replace(plan, items=list(self._new_items(plan, seen)),
                        storage_data=replace(ticket, part=rank + 1, echo=plan.storage_data))
                for rank, plan in enumerate(plans)]

    def _follow(self, ticket: Any) -> Ticket:
        if not isinstance(ticket, Ticket):
            raise ValueError("the plan was made with another storage: the planner has kept it "
                             "from an earlier save (enable_plan_caching)")
        assert self.step is not None
        return self._saves.follow(ticket, self.step, self._echo)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        ticket = self._ticket = self._follow(plan.storage_data)
        pieces = [_piece(item, planner) for item in plan.items]
        ckpt = self._saves.join(ticket, self._options)
        rows = [piece.row() for piece in pieces if _is_needed(piece)]
        saving = ckpt.save(ticket.step, rows, None, None, ticket.number, None, True)
        try:
            saving.wait(LEVELS["node"])
        except BaseException:
            saving.cancel()
            raise
        save = Save(ticket.token, ticket.step, ticket.number)
        return _done([WriteResult(MetadataIndex(""), 0, save)]
                     + [WriteResult(item.index, piece.bytes, math.prod(piece.shape))
                        for item, piece in zip(plan.items, pieces)])

    def _about(self, ticket: Ticket, metadata: Metadata) -> str:
        others = sum(isinstance(item, BytesStorageMetadata)
                     for item in metadata.state_dict_metadata.values())
        return json.dumps({
            "weir": META_FORMAT, "step": ticket.step, "run": self.run, "user": self.meta,
            "lineage": {**self.lineage, "parent": None}, "ranks": ticket.parts - 1,
            "dcp": {"torch": torch.__version__, "bytes": others}}, allow_nan=False)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        assert self._ticket is not None
        ticket = replace(self._ticket, part=0)
        _check_saves(Save(ticket.token, ticket.step, ticket.number), results)
        _check_complete(metadata, results)
        about, document = self._about(ticket, metadata), _document(metadata)
        ckpt = self._saves.open(ticket, self._options)
        try:
            saving = ckpt.save(ticket.step, [], about, document, ticket.number)
            saving.wait(LEVELS["home"])
        finally:
            ckpt.close()  # what is surplus has gone then, too


# ---- reading ----


@dataclass
class Reading:
    """A tensor on its way to the planner's: straight into it, or next to it."""
    item: ReadItem
    target: torch.Tensor
    memory: torch.Tensor
    row: _weir.Slice

    def finish(self, planner: LoadPlanner) -> None:
        if self.memory is not self.target:
            self.target.copy_(self.memory)
        planner.commit_tensor(self.item, self.target)


class StorageReader(dcp.StorageReader):
    """Loads a checkpoint of a run, for dcp.load(): the newest one, or a step, or the step that the
    checkpoint_id of dcp.load() ends with. All ranks load the one that the coordinator found."""

    def __init__(self, url: Where, run: str, step: Optional[int] = None) -> None:
        super().__init__()
        self.url, self.run, self.step = os.fspath(url), run, step
        self._restore: Optional[_weir.Restore] = None
        self._choice: Optional[Choice] = None
        self._table: dict[str, tuple[int, torch.dtype, tensors.Sizes]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_restore": None, "_choice": None, "_table": {}}

    def reset(self, checkpoint_id: Optional[CheckpointId] = None) -> None:
        self._close()
        if checkpoint_id is not None:
            self.step = _step_of(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        return StorageWriter.validate_checkpoint_id(checkpoint_id)

    # ---- which one ----

    def _close(self) -> None:
        if self._restore is not None:
            self._restore.close()
        self._restore = None

    def _open(self, step: Optional[int]) -> _weir.Restore:
        self._close()
        store = _weir.Store(self.url, create=False)
        try:
            self._restore = restore = _weir.Restore(store, self.run, step)
        finally:
            store.close()  # the restore holds it
        info = restore.info()
        self._choice = Choice(info["step"], info["attempt"], info["save"])
        self._table = {name: (number, _torch_dtype(name, dtype), shape) for number,
                       (name, dtype, shape, _, _) in enumerate(restore.tensors())}
        return restore

    def _agree(self, choice: Any) -> _weir.Restore:
        """Opens the one that the coordinator found, should this rank have found another."""
        restore = self._restore
        if restore is None or (isinstance(choice, Choice) and choice != self._choice):
            restore = self._open(choice.step if isinstance(choice, Choice) else self.step)
            if isinstance(choice, Choice) and choice != self._choice:
                raise _weir.StaleError(errno.ESTALE, f"step {choice.step} of run '{self.run}' was "
                                       "saved again meanwhile: load it again")
        return restore

    # ---- its metadata ----

    # Not **kwargs: DCP would take that as a sign that each rank has metadata of its own to try.
    def read_metadata(self, *args: Any, **more: Any) -> Metadata:
        restore = self._open(self.step)
        assert self._choice is not None
        text = restore.state(0)
        known = states.from_text(text).get("dcp") if text is not None else None
        others = known["bytes"] if known else []
        grads = set(known["requires_grad"]) if known else set()
        found: dict[str, Any] = {name: BytesStorageMetadata() for name in others}
        hidden = {name + BYTES for name in others}
        for name, (_, dtype, shape) in self._table.items():
            if name not in hidden:
                found[name] = _tensor_metadata(dtype, shape, name in grads)
        planner_data = states.decode(known["planner_data"], dict) if known else {
            name: (name,) for name in found}
        return Metadata(found, planner_data, self._choice,
                        StorageMeta(checkpoint_id=str(self._choice.step)))

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return [replace(plan, storage_data=self._choice) for plan in plans]

    # ---- its data ----

    def _find(self, name: str) -> tuple[int, torch.dtype, tensors.Sizes]:
        if name not in self._table:
            raise KeyError(f"step {self._choice.step if self._choice else '?'} of run "
                           f"'{self.run}' has no '{name}'")
        return self._table[name]

    def _reading(self, item: ReadItem, planner: LoadPlanner) -> Reading:
        number, dtype, shape = self._find(item.storage_index.fqn)
        target = planner.resolve_tensor(item).detach()
        lengths = tuple(item.lengths)
        if tuple(target.shape) != lengths:
            raise ValueError(f"tensor '{item.dest_index.fqn}' is {list(target.shape)}, and "
                             f"{list(lengths)} in the plan")
        begin = item.storage_index.offset or [0] * len(shape)
        offset = tuple(a + b for a, b in zip(begin, item.storage_offsets))
        straight = (target.dtype == dtype and target.device.type == "cpu"
                    and target.is_contiguous() and not target.is_conj() and not target.is_neg())
        memory = target if straight else torch.empty(lengths, dtype=dtype)
        return Reading(item, target, memory, (number, offset, lengths, memory.data_ptr()))

    def _batches(self, items: Iterable[ReadItem], planner: LoadPlanner) -> Iterator[list[Reading]]:
        """All that can be read straight to its place at once; copies only so many at a time."""
        batch: list[Reading] = []
        copied = 0
        for item in items:
            reading = self._reading(item, planner)
            batch.append(reading)
            if reading.memory is not reading.target:
                copied += reading.memory.numel() * reading.memory.element_size()
            if copied > COPY_BYTES:
                yield batch
                batch, copied = [], 0
        yield batch

    def _read_bytes(self, restore: _weir.Restore, items: list[ReadItem],
                    planner: LoadPlanner) -> None:
        rows: list[_weir.Slice] = []
        found: list[bytearray] = []
        for item in items:
            number, _, (size,) = self._find(item.storage_index.fqn + BYTES)
            found.append(bytearray(size))
            if size:
                memory = torch.frombuffer(found[-1], dtype=torch.uint8)
                rows.append((number, None, None, memory.data_ptr()))
        restore.read(rows)
        for item, data in zip(items, found):
            planner.load_bytes(item, io.BytesIO(data))

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        restore = self._agree(plan.storage_data)
        others = [item for item in plan.items if item.type == LoadItemType.BYTE_IO]
        self._read_bytes(restore, others, planner)
        items = [item for item in plan.items if item.type != LoadItemType.BYTE_IO]
        for batch in self._batches(items, planner):
            restore.read([reading.row for reading in batch])
            for reading in batch:
                reading.finish(planner)
        self._close()
        return _done(None)


def _torch_dtype(name: str, dtype: str) -> torch.dtype:
    found = getattr(torch, tensors.NAMES_TORCH.get(dtype, ""), None)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"tensor '{name}' is {dtype}, which this torch has no type for")
    return found


def _tensor_metadata(dtype: torch.dtype, shape: tensors.Sizes,
                     requires_grad: bool) -> TensorStorageMetadata:
    """One chunk: Weir puts any box together from whatever pieces were saved."""
    chunk = ChunkStorageMetadata(torch.Size([0] * len(shape)), torch.Size(shape))
    return TensorStorageMetadata(TensorProperties(dtype=dtype, requires_grad=requires_grad),
                                 torch.Size(shape), [chunk])
