"""Reading a checkpoint into a caller's tensors or into new ones, and choosing which."""
from __future__ import annotations

import errno
import fnmatch
import json
import logging
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from . import _weir, life, position, state as states, tensors

log = logging.getLogger("weir")
META_FORMAT = "checkpoint/1"


class DamagedWarning(UserWarning):
    """A checkpoint was damaged, and an older one was loaded."""


@dataclass
class Loaded:
    """A checkpoint that was loaded."""
    step: int
    state: Any
    user: Any                     # what save() was given as meta
    loader: Any = None            # the position of the data loader; a weir.Dataset's that other
                                  # ranks saved: a list of all of theirs
    loss: Optional[float] = None  # the references of check_resume()
    grad_norm: Optional[float] = None
    meta: dict[str, Any] = field(default_factory=dict)  # all that is known of it
    skipped: list[str] = field(default_factory=list)    # damaged ones that are newer


@dataclass
class Choice:
    """A committed checkpoint."""
    step: int
    attempt: int
    save: int


@dataclass
class Failure:
    """Why a rank could not load: what the others have to know of its exception."""
    damaged: bool
    code: Optional[int]  # the errno, if it has one
    text: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        code = error.errno if isinstance(error, OSError) else None
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if code is None:
            text = f"{type(error).__name__}: {text}"
        return cls(isinstance(error, _weir.DamagedError), code, text)

    def error(self) -> Exception:
        """What the other ranks raise."""
        if self.damaged:
            return _weir.DamagedError(errno.EBADMSG, self.text)
        return RuntimeError(self.text) if self.code is None else OSError(self.code, self.text)


def sharded_optimizers(like: Any) -> dict[states.Path, list[Any]]:
    """The parameters of the optimizers that have DTensors, in the order of their states' numbers.
    A new optimizer has no state to read into yet, and the one that it gets must be sharded as its
    parameters are."""
    torch: Any = sys.modules.get("torch")
    found = {}
    for path, item in states.stateful_in(like) if torch is not None else ():
        if isinstance(item, torch.optim.Optimizer):
            params = [param for group in item.param_groups for param in group["params"]]
            if any(tensors.is_dtensor(param) for param in params):
                found[path] = params
    return found


class Reader:
    """How one load() reads checkpoints."""

    def __init__(self, store: _weir.Store, run: str, rank: int, ranks: int, like: Any,
                 only: tuple[str, ...], unsafe: bool,
                 progress: Optional[Callable[[int], Any]]) -> None:
        self.store, self.run, self.rank, self.ranks = store, run, rank, ranks
        self.like, self.only = like, only
        self.unsafe, self.progress = unsafe, progress
        self._places: Optional[tuple[Any, dict[states.Path, list[Any]]]] = None
        self._no_places: Optional[Exception] = None  # raised when reading, where others hear of it
        try:
            if like is not None:
                self._places = states.open_up(like), sharded_optimizers(like)
        except Exception as error:
            self._no_places = error

    # ---- which one ----

    def _together(self) -> Any:
        """The process group, if this load is done by all its ranks."""
        dist = life.process_group() if self.ranks > 1 else None
        return dist if dist is not None and dist.get_world_size() == self.ranks else None

    def _listed(self) -> list[Choice]:
        return [Choice(entry["step"], entry["attempt"], entry["save"])
                for entry in reversed(_weir.checkpoints(self.store, self.run))]

    def _choices(self) -> list[Choice]:
        """The committed checkpoints, newest first: as rank 0 sees them. What it fails with, all
        fail with."""
        dist = self._together()
        if dist is None:
            return self._listed()
        found: list[Any] = [None]
        error: Optional[Exception] = None
        if self.rank == 0:
            try:
                found = [self._listed()]
            except Exception as failure:
                error, found = failure, [Failure.of(failure)]
        dist.broadcast_object_list(found, src=0)
        if isinstance(found[0], Failure):
            raise error if error is not None else found[0].error()
        return found[0]

    def _failures(self, error: Optional[Exception]) -> list[Failure]:
        """Of all ranks."""
        own = None if error is None else Failure.of(error)
        dist = self._together()
        found: list[Any] = [own]
        if dist is not None:
            found = [None] * self.ranks
            dist.all_gather_object(found, own)
        return [failure for failure in found if failure is not None]

    def load_newest(self, strict: bool) -> Optional[Loaded]:
        """All ranks load the same one: the newest that none of them finds damaged."""
        skipped: list[str] = []
        for choice in self._choices():
            loaded, error = None, None
            try:
                loaded = self.load(choice)
            except Exception as failure:  # of any kind: the other ranks wait to hear of it
                error = failure
            failures = self._failures(error)
            if loaded is not None and not failures:
                loaded.skipped = skipped
                return loaded
            alone = self.ranks > 1 and self._together() is None
            worst = min(failures, key=lambda failure: failure.damaged)
            if strict or alone or not worst.damaged:
                if error is None or Failure.of(error).damaged != worst.damaged:
                    error = worst.error()
                raise error
            text = f"step {choice.step} of run '{self.run}' is passed over: {worst.text}"
            log.error("%s", text)
            warnings.warn(text, DamagedWarning, stacklevel=4)
            skipped.append(text)
        if skipped:
            raise _weir.DamagedError(errno.EBADMSG, f"run '{self.run}' has no intact checkpoint: "
                                     f"{skipped[0]}")
        if strict:
            raise FileNotFoundError(errno.ENOENT, f"run '{self.run}' has no checkpoint")
        log.warning("run '%s' has no checkpoint yet", self.run)
        return None

    # ---- reading it ----

    def load(self, choice: Union[int, str, Choice]) -> Loaded:
        if isinstance(choice, Choice):
            restore = _weir.Restore(self.store, self.run, choice.step, attempt=choice.attempt,
                                    save=choice.save)
        elif isinstance(choice, str):
            restore = _weir.Restore(self.store, self.run, name=choice)
        else:
            restore = _weir.Restore(self.store, self.run, choice)
        try:
            return self._load(restore)
        finally:
            restore.close()

    def _document(self, restore: _weir.Restore, ranks: int) -> dict[str, Any]:
        """This rank's state; rank 0's where there were fewer ranks; without any, all tensors."""
        text = restore.state(self.rank) if self.rank < ranks else None
        if text is None and self.rank:
            text = restore.state(0)
        if text is not None:
            return states.from_text(text)
        return {"root": {row[0]: {"$": "tensor", "name": row[0]} for row in restore.tensors()}}

    def _parameter(self, path: states.Path) -> Any:
        """The DTensor that a tensor of an optimizer's state belongs to, if it is one."""
        assert self._places is not None
        if len(path) < 3 or path[-3] != "state":
            return None
        params, number = self._places[1].get(path[:-3]), path[-2]
        if params is None or not isinstance(number, int) or not 0 <= number < len(params):
            return None
        return params[number] if tensors.is_dtensor(params[number]) else None

    def _target(self, path: Optional[states.Path], tag: dict[str, Any], dtype: str,
                shape: tensors.Sizes) -> Optional[tensors.Target]:
        if path is not None and self._places is not None:
            value, param = states.at(self._places[0], path), self._parameter(path)
            if tensors.is_torch(value) or tensors.is_numpy(value):
                return tensors.target_of(value, tag["name"], dtype, shape)
            if param is not None and tuple(param.shape) == shape:
                return tensors.new_sharded(dtype, param, tag["name"])
        return tensors.new_tensor(dtype, shape, tag.get("as", "torch"))

    def _is_wanted(self, name: str, local: set[str]) -> bool:
        """One rank's own is wanted by the name that it has in the state, too."""
        names = [name, name.rpartition("@")[0]] if name in local else [name]
        return not self.only or any(fnmatch.fnmatchcase(each, glob) for glob in self.only
                                    for each in names)

    def _targets(self, restore: _weir.Restore,
                 found: list[tuple[Optional[states.Path], dict[str, Any]]],
                 local: set[str]) -> dict[str, list[Any]]:
        """Where each tensor goes: (slice, target) pairs by name. Without a path it is no part of
        the state: nothing in `like` is meant."""
        table = {row[0]: (i, row[1], row[2]) for i, row in enumerate(restore.tensors())}
        missing = [tag["name"] for _, tag in found if tag["name"] not in table]
        if missing:
            raise KeyError(f"the checkpoint has no tensor {', '.join(missing[:10])}")
        targets: dict[str, list[Any]] = {}
        for path, tag in found:
            name = tag["name"]
            if not self._is_wanted(name, local):
                continue
            if name in targets and (self.like is None or path is None):
                continue  # tied: one tensor in two places
            number, dtype, shape = table[name]
            target = self._target(path, tag, dtype, shape)
            targets.setdefault(name, [])
            if target is not None:
                row = (number, target.offset, target.shape, target.address)
                targets[name].append((row, target))
        return targets

    def _warn_of_ranks(self, info: dict[str, Any], local: list[str], loader: Any) -> None:
        """What each rank has of its own does not follow when their number changes."""
        own = local + ([] if loader is None else ["the position of the data loader"])
        if self.ranks == info["ranks"] or not own:
            return
        used = self.rank if self.rank < info["ranks"] else 0
        text = (f"step {info['step']} of run '{self.run}' was saved by {info['ranks']} ranks and "
                f"is loaded by {self.ranks}: rank {self.rank} has what was rank {used}'s of "
                f"{', '.join(own[:10])}" + (f" and {len(own) - 10} more" if own[10:] else ""))
        log.warning("%s", text)
        warnings.warn(text, UserWarning, stacklevel=6)

    def _load(self, restore: _weir.Restore) -> Loaded:
        info = restore.info()
        meta = _meta(info["meta"])
        document = self._document(restore, info["ranks"])
        root, loader = document["root"], document.get("loader")
        if self._no_places is not None:
            raise self._no_places
        if self.like is not None:
            root = states.select(root, self.like)
        local = set(document.get("local", ()))
        found: list[tuple[Optional[states.Path], dict[str, Any]]] = [*states.references(root)]
        found += [(None, tag) for _, tag in states.references(loader)]
        targets = self._targets(restore, found, local)
        is_other = loader is not None and self.ranks != info["ranks"]
        others = _loaders(restore, info["ranks"], self.unsafe) if is_other else []
        self._warn_of_ranks(info, sorted(local & set(targets)), None if others else loader)
        pairs = [pair for found in targets.values() for pair in found]
        restore.read([row for row, _ in pairs], self.progress)
        for _, target in pairs:
            target.finish()

        def tensor(tag: dict[str, Any]) -> Any:
            found = targets.get(tag["name"])
            return found[0][1].value if found else None

        reference = meta.get("reference") or {}
        return Loaded(
            info["step"], states.decode(root, tensor, self.unsafe), meta.get("user"),
            others or states.decode(loader, tensor, self.unsafe),
            states.decode(reference.get("loss"), tensor),
            states.decode(reference.get("grad_norm"), tensor), {**info, "meta": meta})


def _meta(text: Optional[str]) -> dict[str, Any]:
    meta = json.loads(text or "{}")
    written = meta.get("weir", META_FORMAT)
    if written != META_FORMAT:
        raise ValueError(f"the checkpoint is of the format {written}, not {META_FORMAT}: a newer "
                         "Weir wrote it")
    return meta


def _loaders(restore: _weir.Restore, ranks: int, unsafe: bool) -> list[Any]:
    found: list[Any] = []
    for rank in range(ranks):
        text = restore.state(rank)
        loader = states.from_text(text).get("loader") if text else None
        own = position.states_in(states.decode(loader, lambda tag: None, unsafe))
        if not own:
            return []
        found += own
    return found


def loaders(store: _weir.Store, run: str, step: Optional[int]) -> list[Any]:
    """The positions of the datasets of all ranks that saved a step; none if a rank has no such
    position."""
    restore = _weir.Restore(store, run, step)
    try:
        return _loaders(restore, restore.info()["ranks"], False)
    finally:
        restore.close()


def nonfinite(store: _weir.Store, run: str, step: Optional[int]) -> list[str]:
    """The tensors that any rank found NaN or infinite numbers in when it saved a step."""
    restore = _weir.Restore(store, run, step)
    try:
        info = restore.info()
        found = set(_meta(info["meta"]).get("nonfinite") or ())
        for rank in range(info["ranks"]):
            text = restore.state(rank)
            found.update(states.from_text(text).get("nonfinite", ()) if text else ())
        return sorted(found)
    finally:
        restore.close()
