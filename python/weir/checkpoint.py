"""Checkpoints of a run: saved in the background, complete or absent, verified when loaded."""
from __future__ import annotations

import atexit
import fnmatch
import json
import logging
import math
import operator
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional, Union

from . import _weir, life, loading, state as states, tensors
from .loading import Loaded

log = logging.getLogger("weir")
LEVELS = {"memory": 1, "node": 2, "peer": 3, "home": 4}
META_FORMAT = "checkpoint/1"
GIB = 1 << 30


class NonfiniteError(ValueError):
    """Tensors with NaN or infinite numbers. `names` are theirs."""

    def __init__(self, step: int, found: dict[str, int]) -> None:
        self.names = list(found)
        listed = ", ".join(f"{name} ({count})" for name, count in list(found.items())[:20])
        more = f" and {len(found) - 20} more" if len(found) > 20 else ""
        super().__init__(f"step {step} has numbers that are NaN or infinite: {listed}{more}")


class Saving:
    """A save under way. An error shows in wait() and done(); if nobody asks, at the next save."""

    def __init__(self, step: int, handle: _weir.Saving) -> None:
        self.step = step
        self._handle = handle

    def wait(self, level: str = "home", timeout: Optional[float] = None) -> "Saving":
        """Until it is safe on this node ("node"), or committed with every rank's part ("home").
        TimeoutError says what is missing."""
        self._handle.wait(LEVELS[level], timeout)
        return self

    def done(self, level: str = "home") -> bool:
        try:
            self._handle.wait(LEVELS[level], 0)
        except TimeoutError:
            return False
        return True

    def cancel(self) -> None:
        """Gives it up, unless it is committed already."""
        self._handle.cancel()


@dataclass
class Resume:
    """How the first loss after a resume compares. True if it is as expected."""
    ok: bool
    text: str

    def __bool__(self) -> bool:
        return self.ok


_open: "weakref.WeakSet[Checkpointer]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for checkpointer in list(_open):
        try:
            checkpointer.close()
        except Exception as error:
            log.error("%s", error)


def _number(value: Any) -> Optional[float]:
    return None if value is None else float(value)


class Checkpointer:
    """Saves and loads the checkpoints of a run.

    keep_last, keep_every: which ones stay; 0 keeps all. rate: bytes a second at most.
    staging: bytes of memory for snapshots. queue: saves that may be under way at once.
    rank, ranks, token: found out from torch.distributed, torchrun or Slurm if not given.
    local: names (globs) of plain tensors that every rank has its own of; all others that are not
    DTensors are the same on all ranks, and stored once.
    lineage: whatever says where this run comes from, kept with every checkpoint.
    scan: "warn" or "raise" looks for NaN and infinities at each save.
    """

    def __init__(self, store: Union[_weir.Store, str], run: str, *, keep_last: int = 3,
                 keep_every: int = 0, rate: float = 0, staging: int = 4 * GIB, queue: int = 2,
                 retired_grace: float = 600, rank: Optional[int] = None,
                 ranks: Optional[int] = None, token: Union[None, str, bytes] = None,
                 local: Iterable[str] = (), lineage: Optional[dict[str, Any]] = None,
                 scan: Optional[str] = None) -> None:
        if scan not in (None, "warn", "raise"):
            raise ValueError(f"scan is None, 'warn' or 'raise', not {scan!r}")
        found_rank, found_ranks = life.rank_and_ranks()
        self.ranks = found_ranks if ranks is None else ranks
        self.rank = (found_rank if self.ranks > 1 else 0) if rank is None else rank
        self.run, self.local, self.scan = run, tuple(local), scan
        self.lineage = dict(lineage or {})
        self._own_store = isinstance(store, str)
        self.store = _weir.Store(store) if isinstance(store, str) else store
        self._options = dict(queue_max=queue, staging_bytes=int(staging), rate=int(rate),
                             keep_last=keep_last, keep_every=keep_every,
                             retired_grace=int(retired_grace))
        self._token = token
        self._ckpt: Optional[_weir.Ckpt] = None
        self._closed = False
        self._saves = 0
        self._parent: Optional[dict[str, int]] = None
        self._reference: Optional[float] = None

    # ---- its life ----

    def _join(self) -> _weir.Ckpt:
        """Joins the run at the first save: a job that only loads fences nobody off."""
        if self._closed:
            raise ValueError("the checkpointer is closed")
        if self._ckpt is None:
            token = life.token_for(self.run, self.rank, self.ranks, self._token)
            self._ckpt = _weir.Ckpt(self.store, self.run, self.rank, self.ranks, token,
                                    **self._options)
            _open.add(self)
        return self._ckpt

    def flush(self) -> None:
        """Waits until no save is under way here, and those that are surplus are let go; raises
        the error of one that nobody asked about."""
        if self._ckpt is not None:
            self._ckpt.flush()

    def close(self) -> None:
        """Waits for the saves under way; raises the error of one that nobody asked about."""
        ckpt = self._ckpt
        try:
            if ckpt is not None:
                ckpt.close()
        finally:
            self._ckpt, self._closed = None, True
            _open.discard(self)
            if self._own_store:
                self.store.close()

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close()
        except Exception as late:
            if error is None:
                raise
            log.error("%s", late)

    def stats(self) -> dict[str, Any]:
        """Saves, bytes, and the seconds save() waited and copied."""
        return self._join().stats()

    # ---- saving ----

    def check(self, state: Any, unsafe: bool = False) -> None:
        """A dry run: UnstorableError names everything in the state that could not be saved."""
        encoder = states.Encoder(unsafe)
        encoder.encode(state)
        encoder.check()

    def _is_local(self, name: str) -> bool:
        return self.ranks > 1 and any(fnmatch.fnmatchcase(name, glob) for glob in self.local)

    def _name(self, name: str) -> str:
        """What a tensor is called in the checkpoint: those of one rank say which."""
        return f"{name}@{self.rank}" if self._is_local(name) else name

    def _pieces(self, found: dict[str, Any]) -> list[tensors.Piece]:
        own = f"@{self.rank}"
        pieces = []
        for name, value in found.items():
            if name.endswith(own) and self._is_local(name.removesuffix(own)):
                pieces += tensors.pieces_of(name, value)
            else:
                pieces += tensors.pieces_of(name, value, self.rank, self.ranks)
        return pieces

    def _nonfinite(self, step: int, pieces: list[tensors.Piece]) -> list[str]:
        found = {}
        for piece in pieces if self.scan else ():
            count = piece.nonfinite()
            if count:
                found[piece.name] = count
        if found and self.scan == "raise":
            raise NonfiniteError(step, found)
        if found:
            warnings.warn(str(NonfiniteError(step, found)), RuntimeWarning, stacklevel=3)
        return list(found)

    def save(self, step: int, state: Any, *, wait: bool = False, meta: Any = None,
             loader: Any = None, loss: Optional[float] = None, grad_norm: Optional[float] = None,
             name: Optional[str] = None, unsafe: bool = False) -> Saving:
        """Saves a state: nested dicts and lists of torch or numpy tensors and plain values;
        modules and optimizers may stand for their state dicts. Returns after a copy in memory,
        which the caller may change behind; wait=True returns when it is committed.

        meta: JSON for people and tools. loader: the position of the data loader, or an object
        with a state_dict(). loss, grad_norm: references for check_resume(). name: keeps it, as
        name() does.
        """
        self._saves += 1  # also if it fails here: the other ranks, who do not know, count theirs
        step = operator.index(step)
        if step < 0:
            raise ValueError(f"a step is a number from 0 on, not {step}")
        ckpt = self._join()
        encoder = states.Encoder(unsafe, self._name)
        root = encoder.encode(state)
        position = encoder.encode(loader, ("loader",))
        encoder.check()
        pieces = self._pieces(encoder.tensors)
        nonfinite = self._nonfinite(step, pieces)
        text = None
        if self.rank == 0:
            plain = states.Encoder()
            text = json.dumps({
                "weir": META_FORMAT, "step": step, "run": self.run, "user": meta,
                "lineage": {**self.lineage, "parent": self._parent},
                "reference": {"loss": plain.encode(_number(loss)),
                              "grad_norm": plain.encode(_number(grad_norm))},
                "nonfinite": nonfinite, "ranks": self.ranks}, allow_nan=False)
        handle = ckpt.save(step, [piece.row() for piece in pieces], text,
                           states.to_text(root, loader=position), self._saves, name)
        saving = Saving(step, handle)
        return saving.wait() if wait else saving

    # ---- loading ----

    def steps(self) -> list[int]:
        """The committed checkpoints, oldest first."""
        return [entry["step"] for entry in _weir.checkpoints(self.store, self.run)]

    def name(self, step: int, name: str) -> None:
        """Gives a checkpoint a name, which another one loses; it stays while it has one."""
        _weir.name(self.store, self.run, step, name)

    def unname(self, name: str) -> None:
        """Takes a name off."""
        _weir.name(self.store, self.run, None, name)

    def load(self, step: Union[None, int, str] = None, like: Any = None, *,
             only: Iterable[str] = (), strict: bool = False, unsafe: bool = False,
             progress: Optional[Callable[[int], Any]] = None) -> Optional[Loaded]:
        """Loads the newest checkpoint, a step, or one with a name. None if the run has none yet
        (strict: FileNotFoundError).

        like: a state whose tensors (DTensors included, sharded as they are now) are read into in
        place; its dict keys say what is wanted, and its modules and optimizers get their state.
        only: names (globs) of tensors; the others are None. Without a step, a damaged checkpoint
        is passed over, with a DamagedWarning, for the newest intact one, unless strict.
        """
        reader = loading.Reader(self.store, self.run, self.rank, self.ranks, like, tuple(only),
                                unsafe, progress)
        loaded = reader.load_newest(strict) if step is None else reader.load(step)
        if loaded is None:
            return None
        self._parent = {key: loaded.meta[key] for key in ("step", "attempt", "save")}
        self._reference = loaded.loss
        if like is not None:
            loaded.state = states.put_back(like, loaded.state)
        return loaded

    def check_resume(self, loss: float, tolerance: float = 0.1) -> Resume:
        """Compares the first loss after a resume with the one the checkpoint was saved with: worse
        by more than `tolerance` of it says that something was not restored."""
        loss, reference = float(loss), self._reference
        if reference is None:
            return Resume(True, "no reference loss was saved")
        if not math.isfinite(loss) and math.isfinite(reference):
            return Resume(False, f"the loss is {loss}; it was {reference:g} at the checkpoint")
        ok = not loss - reference > tolerance * abs(reference)
        text = f"the loss is {loss:g}; it was {reference:g} at the checkpoint"
        if not ok:
            log.error("%s: was everything restored?", text)
        return Resume(ok, text)
