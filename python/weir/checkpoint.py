"""Checkpoints of a run: saved in the background, complete or absent, verified when loaded."""
from __future__ import annotations

import atexit
import fnmatch
import json
import logging
import math
import operator
import os
import threading
import warnings
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional, Union

from . import _weir, life, loading, state as states, tensors
from .loading import META_FORMAT, Loaded

log = logging.getLogger("weir")
LEVELS = {"memory": 1, "node": 2, "peer": 3, "home": 4}
GIB = 1 << 30
INT_MAX = (1 << 63) - 1
UINT_MAX = (1 << 32) - 1
NO_STATS = {"saves": 0, "bytes": 0, "stall_queue_s": 0.0, "stall_stage_s": 0.0, "copy_s": 0.0}
Where = Union[str, "os.PathLike[str]"]


def _level(name: str) -> int:
    if name not in LEVELS:
        raise ValueError(f"a level is one of {', '.join(map(repr, LEVELS))}, not {name!r}")
    return LEVELS[name]


def _in_range(what: str, value: Any, most: int, least: int = 0) -> int:
    """An integer between the two; for a float, what it is rounded down."""
    number = math.floor(value) if isinstance(value, float) and math.isfinite(value) else None
    number = operator.index(value) if number is None else number
    if not least <= number <= most:
        raise ValueError(f"{what} is a number from {least} to {most}, not {value}")
    return number


def _step(value: Any) -> int:
    if isinstance(value, float):
        raise TypeError(f"a step is an integer, not {value}")
    return _in_range("a step", value, INT_MAX)


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
        self._handle.wait(_level(level), timeout)
        return self

    def done(self, level: str = "home") -> bool:
        number = _level(level)
        try:
            self._handle.wait(number, 0)
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
            if checkpointer._pid == os.getpid():  # a forked child's are its parent's to close
                checkpointer.close()
        except Exception as error:
            log.error("%s", error)


def _is_closed(ckpt: _weir.Ckpt) -> bool:
    try:
        ckpt.attempt()
    except ValueError:
        return True
    return False


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
    scan: "warn" or "raise" looks for NaN and infinities in what this rank saves.

    Threads may share it: their saves come one after another.
    """

    def __init__(self, store: Union[_weir.Store, Where], run: str, *, keep_last: int = 3,
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
        self._options = dict(queue_max=_in_range("queue", queue, UINT_MAX, 1),
                             staging_bytes=_in_range("staging", staging, INT_MAX),
                             rate=_in_range("rate", rate, INT_MAX),
                             keep_last=_in_range("keep_last", keep_last, UINT_MAX),
                             keep_every=_in_range("keep_every", keep_every, UINT_MAX),
                             retired_grace=_in_range("retired_grace", retired_grace, INT_MAX))
        self._own_store = not isinstance(store, _weir.Store)
        self.store = store if isinstance(store, _weir.Store) else _weir.Store(os.fspath(store))
        self._token = token
        self._lock = threading.RLock()  # a signal's handler may save in the midst of a save
        self._ckpt: Optional[_weir.Ckpt] = None
        self._pid = os.getpid()
        self._closed = False
        self._saves = 0
        self._begun: deque[tuple[int, int]] = deque(maxlen=64)  # number and step of the last ones
        self._stats: dict[str, Any] = dict(NO_STATS)
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
            self._pid = os.getpid()
            _open.add(self)
        return self._ckpt

    def flush(self) -> None:
        """Waits until no save is under way here, and those that are surplus are let go; raises
        the error of one that nobody asked about."""
        if self._ckpt is not None:
            self._ckpt.flush()

    def close(self) -> None:
        """Waits for the saves under way; raises the error of one that nobody asked about. With
        several ranks it waits until this rank's parts are safe ("node"), not for the others: a
        save that is not committed by then is named in the log. Interrupted, it stays open."""
        ckpt = self._ckpt
        if ckpt is None or _is_closed(ckpt):
            self._end()
            return
        attempt, self._stats = ckpt.attempt(), ckpt.stats()
        try:
            ckpt.close()
        finally:
            if _is_closed(ckpt):  # not on Ctrl-C
                self._warn_of_uncommitted(attempt)
                self._end()

    def _end(self) -> None:
        self._ckpt, self._closed = None, True
        _open.discard(self)
        if self._own_store:
            self.store.close()

    def _warn_of_uncommitted(self, attempt: int) -> None:
        if self.ranks == 1 or not self._begun:
            return
        try:
            found = _weir.checkpoints(self.store, self.run)
        except (OSError, ValueError) as error:
            log.warning("run '%s': what is committed is not known: %s", self.run, error)
            return
        last = max((e["save"] for e in found if e["attempt"] == attempt), default=0)
        steps = [str(step) for number, step in self._begun if number > last]
        if steps:
            log.warning("run '%s': step %s was not committed when rank %d closed: it is when the "
                        "parts of all other ranks are there", self.run, ", ".join(steps), self.rank)

    def __del__(self) -> None:
        if getattr(self, "_ckpt", None) is None or self._pid != os.getpid():
            return
        warnings.warn(f"the checkpointer of run '{self.run}' was not closed", ResourceWarning,
                      source=self)
        try:
            self.close()
        except Exception as error:
            log.error("%s", error)

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
        """Saves, bytes, and the seconds save() waited and copied: of this checkpointer, since its
        first save."""
        ckpt = self._ckpt
        if ckpt is not None and not _is_closed(ckpt):
            self._stats = ckpt.stats()
        return dict(self._stats)

    # ---- saving ----

    def _encode(self, state: Any, loader: Any, meta: Any, unsafe: bool) -> tuple[Any, Any, Any]:
        """The encoder, and the JSON values of the state and the position; UnstorableError. The
        same on all ranks: none goes on where another fails."""
        encoder = states.Encoder(unsafe, self._name)
        root = encoder.encode(state)
        position = encoder.encode(loader, ("loader",))
        for name, value in (("meta", meta), ("lineage", self.lineage)):
            why = states.no_json(value)
            if why is not None:
                encoder.refuse(name, why)
        encoder.check()
        return encoder, root, position

    def check(self, state: Any, unsafe: bool = False, *, loader: Any = None,
              meta: Any = None) -> None:
        """A dry run: UnstorableError names everything that save() could not save."""
        self._encode(state, loader, meta, unsafe)

    def _is_local(self, name: str) -> bool:
        return self.ranks > 1 and any(fnmatch.fnmatchcase(name, glob) for glob in self.local)

    def _name(self, name: str) -> str:
        """What a tensor is called in the checkpoint: those of one rank say which."""
        return f"{name}@{self.rank}" if self._is_local(name) else name

    def _is_own(self, name: str) -> bool:
        """Whether a tensor that is called so in the checkpoint is this rank's alone."""
        own = f"@{self.rank}"
        return name.endswith(own) and self._is_local(name.removesuffix(own))

    def _pieces(self, found: dict[str, Any]) -> list[tensors.Piece]:
        pieces = []
        for name, value in found.items():
            if self._is_own(name):
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
            warnings.warn(str(NonfiniteError(step, found)), RuntimeWarning, stacklevel=4)
        return list(found)

    def save(self, step: int, state: Any, *, wait: bool = False, meta: Any = None,
             loader: Any = None, loss: Optional[float] = None, grad_norm: Optional[float] = None,
             name: Optional[str] = None, unsafe: bool = False) -> Saving:
        """Saves a state: nested dicts and lists of torch or numpy tensors and plain values;
        modules and optimizers may stand for their state dicts. Returns after a copy in memory,
        which the caller may change behind; wait=True returns when it is committed, and needs
        little memory: there is no copy of the whole.

        meta: JSON for people and tools. loader: the position of the data loader, or an object
        with a state_dict(). loss, grad_norm: references for check_resume(). name: keeps it, as
        name() does.
        """
        with self._lock:
            self._saves += 1  # also if it fails: the other ranks, who do not know, count theirs
            reference = {"loss": _number(loss), "grad_norm": _number(grad_norm)}
            saving = self._save(_step(step), state, meta, loader, reference, name, unsafe, wait)
        return saving.wait() if wait else saving

    def _about(self, step: int, meta: Any, reference: dict[str, Optional[float]],
               nonfinite: list[str]) -> str:
        plain = states.Encoder()
        return json.dumps({
            "weir": META_FORMAT, "step": step, "run": self.run, "user": meta,
            "lineage": {**self.lineage, "parent": self._parent},
            "reference": {key: plain.encode(value) for key, value in reference.items()},
            "nonfinite": nonfinite, "ranks": self.ranks}, allow_nan=False)

    def _save(self, step: int, state: Any, meta: Any, loader: Any,
              reference: dict[str, Optional[float]], name: Optional[str], unsafe: bool,
              wait: bool) -> Saving:
        number, ckpt = self._saves, self._join()
        encoder, root, position = self._encode(state, loader, meta, unsafe)
        pieces = self._pieces(encoder.tensors)
        nonfinite = self._nonfinite(step, pieces)
        document = {"loader": position}
        if nonfinite:
            document["nonfinite"] = nonfinite
        local = [found for found in encoder.tensors if self._is_own(found)]
        if local:
            document["local"] = local
        about = self._about(step, meta, reference, nonfinite) if self.rank == 0 else None
        handle = ckpt.save(step, [piece.row() for piece in pieces], about,
                           states.to_text(root, **document), number, name, wait)
        self._begun.append((number, step))
        return Saving(step, handle)

    # ---- loading ----

    def steps(self) -> list[int]:
        """The committed checkpoints, oldest first."""
        return [entry["step"] for entry in _weir.checkpoints(self.store, self.run)]

    def name(self, step: int, name: str) -> None:
        """Gives a checkpoint a name, which another one loses; it stays while it has one."""
        _weir.name(self.store, self.run, _step(step), name)

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
        if step is None:
            loaded = reader.load_newest(strict)
        else:
            loaded = reader.load(step if isinstance(step, str) else _step(step))
        if loaded is None:
            return None
        self._parent = {key: loaded.meta[key] for key in ("step", "attempt", "save")}
        self._reference = loaded.loss
        if like is not None:
            loaded.state = states.put_back(like, loaded.state)
        return loaded

    def loaders(self, step: Optional[int] = None) -> list[Any]:
        """The positions of the weir.Datasets of all ranks, in the newest checkpoint or a step, as
        load_state_dict() takes them; Loaded.loader has them where the number of ranks changed.
        Reads every rank's state document."""
        return loading.loaders(self.store, self.run, None if step is None else _step(step))

    def nonfinite(self, step: Optional[int] = None) -> list[str]:
        """The tensors in which any rank found NaN or infinities when it saved the newest
        checkpoint, or a step, with scan=. Reads every rank's state document."""
        return loading.nonfinite(self.store, self.run, None if step is None else _step(step))

    def check_resume(self, loss: float, tolerance: float = 0.1) -> Resume:
        """Compares the first loss after a resume with the one the checkpoint was saved with: worse
        by more than `tolerance` of it (of 1, if it was 0) says that something was not restored."""
        loss, reference = float(loss), self._reference
        if reference is None:
            return Resume(True, "no reference loss was saved")
        lost = not math.isfinite(loss) and math.isfinite(reference)
        ok = not lost and not loss - reference > tolerance * (abs(reference) or 1)
        text = f"the loss is {loss:g}; it was {reference:g} at the checkpoint"
        if not ok:
            log.error("%s: was everything restored?", text)
        return Resume(ok, text)
