"""Reading a checkpoint into a caller's tensors or into new ones, and choosing which."""
from __future__ import annotations

import fnmatch
import json
import logging
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from . import _weir, life, state as states, tensors

log = logging.getLogger("weir")


class DamagedWarning(UserWarning):
    """A checkpoint was damaged, and an older one was loaded."""


@dataclass
class Loaded:
    """A checkpoint that was loaded."""
    step: int
    state: Any
    user: Any                     # what save() was given as meta
    loader: Any = None            # the position of the data loader
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


class Reader:
    """How one load() reads checkpoints."""

    def __init__(self, store: _weir.Store, run: str, rank: int, ranks: int, like: Any,
                 only: tuple[str, ...], unsafe: bool,
                 progress: Optional[Callable[[int], Any]]) -> None:
        self.store, self.run, self.rank, self.ranks = store, run, rank, ranks
        self.like, self.only = like, only
        self.unsafe, self.progress = unsafe, progress
        self.opened = states.open_up(like)

    # ---- which one ----

    def _together(self) -> Any:
        """The process group, if this load is done by all its ranks."""
        dist = life.process_group() if self.ranks > 1 else None
        return dist if dist is not None and dist.get_world_size() == self.ranks else None

    def _choices(self) -> list[Choice]:
        """The committed checkpoints, newest first: as rank 0 sees them."""
        dist = self._together()
        found: list[Any] = [None]
        if dist is None or self.rank == 0:
            found = [[Choice(e["step"], e["attempt"], e["save"])
                      for e in reversed(_weir.checkpoints(self.store, self.run))]]
        if dist is not None:
            dist.broadcast_object_list(found, src=0)
        return found[0]

    def _failures(self, error: Optional[OSError]) -> list[tuple[bool, str]]:
        """Of all ranks: whether it was damage, and the text."""
        own = None if error is None else (isinstance(error, _weir.DamagedError), str(error))
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
            except OSError as failure:
                error = failure
            failures = self._failures(error)
            if loaded is not None and not failures:
                loaded.skipped = skipped
                return loaded
            alone = self.ranks > 1 and self._together() is None
            if strict or alone or not all(damaged for damaged, _ in failures):
                raise error if error is not None else _weir.DamagedError(failures[0][1])
            text = f"step {choice.step} of run '{self.run}' is passed over: {failures[0][1]}"
            log.error("%s", text)
            warnings.warn(text, DamagedWarning, stacklevel=4)
            skipped.append(text)
        if skipped:
            raise _weir.DamagedError(f"run '{self.run}' has no intact checkpoint: {skipped[0]}")
        if strict:
            raise FileNotFoundError(f"run '{self.run}' has no checkpoint")
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

    def _target(self, path: states.Path, tag: dict[str, Any], dtype: str,
                shape: tensors.Sizes) -> Optional[tensors.Target]:
        value = states.at(self.opened, path) if self.like is not None else None
        if tensors.is_torch(value) or tensors.is_numpy(value):
            return tensors.target_of(value, tag["name"], dtype, shape)
        return tensors.new_tensor(dtype, shape, tag.get("as", "torch"))

    def _targets(self, restore: _weir.Restore,
                 found: list[tuple[states.Path, dict[str, Any]]]) -> dict[str, list[Any]]:
        """Where each tensor goes: (slice, target) pairs by name."""
        table = {row[0]: (i, row[1], row[2]) for i, row in enumerate(restore.tensors())}
        missing = [tag["name"] for _, tag in found if tag["name"] not in table]
        if missing:
            raise KeyError(f"the checkpoint has no tensor {', '.join(missing[:10])}")
        targets: dict[str, list[Any]] = {}
        for path, tag in found:
            name = tag["name"]
            if self.only and not any(fnmatch.fnmatchcase(name, glob) for glob in self.only):
                continue
            if name in targets and self.like is None:
                continue  # tied: one tensor in two places
            number, dtype, shape = table[name]
            target = self._target(path, tag, dtype, shape)
            targets.setdefault(name, [])
            if target is not None:
                row = (number, target.offset, target.shape, target.address)
                targets[name].append((row, target))
        return targets

    def _load(self, restore: _weir.Restore) -> Loaded:
        info = restore.info()
        document = self._document(restore, info["ranks"])
        root, loader = document["root"], document.get("loader")
        if self.like is not None:
            root = states.select(root, self.like)
        targets = self._targets(restore, [*states.references(root),
                                          *states.references(loader, ("loader",))])
        pairs = [pair for found in targets.values() for pair in found]
        restore.read([row for row, _ in pairs], self.progress)
        for _, target in pairs:
            target.finish()

        def tensor(tag: dict[str, Any]) -> Any:
            found = targets.get(tag["name"])
            return found[0][1].value if found else None

        meta = json.loads(info["meta"] or "{}")
        reference = meta.get("reference") or {}
        return Loaded(
            info["step"], states.decode(root, tensor, self.unsafe), meta.get("user"),
            states.decode(loader, tensor, self.unsafe),
            states.decode(reference.get("loss"), tensor),
            states.decode(reference.get("grad_norm"), tensor), {**info, "meta": meta})
