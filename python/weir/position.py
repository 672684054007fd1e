"""Where a loader is: positions, what was delivered of each epoch, and states that can be saved.

A position counts samples of all ranks, over all epochs. Worker w of n delivers the batches that
begin at start + (w + i n) B: `start` is the same for all workers of a loop, until a state is saved
of one that has delivered some of its own.
"""
from __future__ import annotations

import re
import warnings
from typing import Any, Callable, Optional, Sequence, Union

State = dict[str, Any]
FORMAT = 1
FULL = (1 << 64) - 1
EPOCHS_KEPT = 8  # in a state, the last ones by number: as many as the library's WEIR_TALLIES_MAX
MODULO = 1 << 128


class Tally:
    """What was delivered of the last epochs of one dataset: {epoch: (samples, digest)}. One is left
    out when there are enough later ones, and these keep it out: so sums of several tallies have
    all of an epoch that they have."""

    def __init__(self, rows: Sequence[Any] = ()) -> None:
        self.epochs: dict[int, tuple[int, int]] = {}
        self.add((epoch, count, int(digest, 16)) for epoch, count, digest in rows)

    def add(self, rows: Any) -> None:
        for epoch, count, digest in rows:
            had, total = self.epochs.get(epoch, (0, 0))
            self.epochs[epoch] = (had + count, (total + digest) % MODULO)
        for epoch in sorted(self.epochs)[:-EPOCHS_KEPT]:
            del self.epochs[epoch]

    def rows(self) -> list[list[Any]]:
        return [[epoch, count, f"{digest:032x}"]
                for epoch, (count, digest) in sorted(self.epochs.items())]


def _shares(weights: Optional[list[int]]) -> str:
    return " : ".join(f"{weight / sum(weights):.6g}" for weight in weights) if weights else "none"


def _delivered(part: State) -> list[tuple[int, int, int]]:
    return [(epoch, count, int.from_bytes(digest, "little"))
            for epoch, count, digest in part["tallies"]]


class Position:
    """Of one loader; `order` says how samples are ordered, `parts` what the datasets are, and, as
    soon as it is known, which lanes and windows they have; weights: of a mixture."""

    def __init__(self, order: State, infos: list[State], weights: Optional[list[int]],
                 batch_size: int, rank: int, ranks: int) -> None:
        self._asked, self.order, self.weights = dict(order), order, weights
        self.parts = [{"digest": info["digest"], "samples": info["samples"]} for info in infos]
        self.samples = sum(part["samples"] for part in self.parts)
        self.batch_size, self.rank, self.ranks = batch_size, rank, ranks
        self.step = batch_size * ranks
        self.start = 0
        self.end: Optional[int] = None  # of a worker's loop that goes on
        self.tallies = [Tally() for _ in infos]

    # ---- loops ----

    def loop_end(self, epochs: Optional[int], start: Optional[int] = None) -> int:
        """Where a loop that begins at start ends: at the end of the epoch, or of so many."""
        if self.end is not None:
            return self.end
        length = self.samples * (epochs or 1)
        return ((self.start if start is None else start) // length + 1) * length

    def after(self, begin: int, end: int, epochs: Optional[int]) -> int:
        """Where a loop leaves off: its last batch runs over the end of the epoch, or, if it was to
        be so many, is the shorter for it."""
        return end if epochs is not None else begin - (begin - end) // self.step * self.step

    def now(self, loader: Any, worker: int = 0) -> int:
        return loader.position() - worker * self.step if loader else self.start

    @property
    def is_known(self) -> bool:
        """Whether lanes and windows are known, without which a position says nothing."""
        return all("lanes" in part for part in self.parts)

    def opened(self, state: State) -> None:
        """A loader was opened: is its order the one that a loaded state has?"""
        for part, found in zip(self.parts, state["parts"]):
            lanes, window = part.get("lanes", found["lanes"]), part.get("window", found["window"])
            if (lanes, window) != (found["lanes"], found["window"]):
                raise ValueError(f"the state has {lanes} lanes and a window of {window}, not "
                                 f"{found['lanes']} and {found['window']}: open the dataset with "
                                 "these")
            part["lanes"], part["window"] = lanes, window

    def closed(self, position: int, state: State, worker: int) -> tuple[int, list["Tally"]]:
        """What start and tallies are when a loader has ended there: what it delivered stays
        counted."""
        tallies = [Tally(tally.rows()) for tally in self.tallies]
        for tally, part in zip(tallies, state["parts"]):
            tally.add(_delivered(part))
        return position - worker * self.step, tallies

    # ---- states ----

    def state(self, loader: Any, worker: int, workers: int, end: Optional[int]) -> State:
        found = loader.state()["parts"] if loader else [{"tallies": []}] * len(self.parts)
        parts = []
        for part, tally, more in zip(self.parts, self.tallies, found):
            total = Tally(tally.rows())
            total.add(_delivered(more))
            parts.append({**part, "epochs": total.rows()})
        state = {"weir": FORMAT, "position": self.now(loader, worker),
                 "epoch": self.now(loader, worker) // self.samples,
                 "seed": self.order["seed"], "shuffle": self.order["shuffle"],
                 "weights": self.weights, "batch_size": self.batch_size, "dp_rank": self.rank,
                 "dp_size": self.ranks, "parts": parts}
        if workers > 1:
            state["worker"] = [worker, workers, self.end if end is None else end]
        return state

    def _check(self, state: State) -> None:
        mine = [part["digest"] for part in self.parts]
        theirs = [part["digest"] for part in state["parts"]]
        if mine != theirs:
            raise ValueError(f"the state is of other data: its digest is {', '.join(theirs)}, "
                             f"that of this dataset is {', '.join(mine)}")
        if state.get("weights") != self.weights:
            raise ValueError(f"the state has the weights {_shares(state.get('weights'))}, the "
                             f"dataset was opened with {_shares(self.weights)}: a position means "
                             "other samples there. Open it with the weights of the state")
        for key in ("seed", "shuffle"):
            if state[key] != self.order[key]:
                raise ValueError(f"the state has {key}={state[key]}, the dataset was opened with "
                                 f"{key}={self.order[key]}")

    def _check_worker(self, state: State, worker: int, workers: int) -> None:
        """Where a worker is says something with the same workers and the same steps only."""
        number, count, _ = state["worker"]
        others = ("load the states of all workers, as a list, into a plain weir.Dataset: "
                  "weir.worker_states() has them")
        if [number, count] != [worker, workers]:
            raise ValueError(f"the state is that of worker {number} of {count}, and this is "
                             f"{worker} of {workers}: {others}")
        batch_size, ranks = state["batch_size"], state["dp_size"]
        if batch_size * ranks != self.step:
            raise ValueError(f"the state is that of a worker with batches of {batch_size} for "
                             f"{ranks} ranks, and here they are of {self.batch_size} for "
                             f"{self.ranks}: take a batch_size that makes as much of all ranks, or "
                             f"{others}")

    def _fixed_order(self, parts: list[State]) -> State:
        """The order goes on as it was, whatever the defaults are by now; of a mixture whose parts
        have other windows than the defaults give now, it cannot, and opened() says so."""
        order = dict(self._asked)
        for key in ("lanes", "window"):
            values = {part[key] for part in parts if key in part}
            if len(values) == 1:
                (value,) = values
                if order[key] not in (0, value):
                    raise ValueError(f"the state has {key}={value}, the dataset was opened with "
                                     f"{key}={order[key]}")
                order[key] = value
        return order

    def _counts_on(self, state: State) -> bool:
        """What all ranks delivered is counted on, by one of them; what one did, by that one."""
        rank, ranks = state["dp_rank"], state["dp_size"]
        if rank is None or ranks == 1:
            return self.rank == 0
        if ranks != self.ranks and any(part["epochs"] for part in state["parts"]):
            warnings.warn(f"the state is that of rank {rank} of {ranks}, and is loaded by "
                          f"{self.ranks}: digests begin anew. Load the states of all ranks, as a "
                          "list, for digests of whole epochs", stacklevel=4)
        return (rank, ranks) == (self.rank, self.ranks)

    def load(self, state: Union[State, Sequence[State]], worker: int, workers: int) -> int:
        """Returns where the next batch begins."""
        if not isinstance(state, dict):
            state = merge_states(state)
        _check_kind(state)
        self._check(state)
        own = state.get("worker")
        if own:
            self._check_worker(state, worker, workers)
        self.order = self._fixed_order(state["parts"])
        for part, found in zip(self.parts, state["parts"]):
            for key in ("lanes", "window"):
                part.pop(key, None)
            part.update({key: found[key] for key in ("lanes", "window") if key in found})
        self.start, self.end = state["position"], own[2] if own else None
        counts = self._counts_on(state)
        self.tallies = [Tally(part["epochs"] if counts else ()) for part in state["parts"]]
        return self.start + (worker * self.step if own else 0)


def _is_number(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= FULL


def _is_part(part: Any) -> bool:
    return (isinstance(part, dict) and isinstance(part.get("digest"), str)
            and _is_number(part.get("samples"), 1) and isinstance(part.get("epochs"), list)
            and all(_is_number(part[key]) for key in ("lanes", "window") if key in part)
            and all(isinstance(row, (list, tuple)) and len(row) == 3 and _is_number(row[0])
                    and _is_number(row[1]) and re.fullmatch("[0-9a-f]{32}", str(row[2]))
                    for row in part["epochs"]))


def _is_worker(value: Any) -> bool:
    return (isinstance(value, (list, tuple)) and len(value) == 3 and _is_number(value[1], 1)
            and _is_number(value[0]) and value[0] < value[1]
            and (value[2] is None or _is_number(value[2])))


# What each of them must be.
KINDS: dict[str, Callable[[Any], bool]] = {
    "position": _is_number, "seed": _is_number, "shuffle": lambda value: isinstance(value, bool),
    "weights": lambda value: value is None or isinstance(value, list),
    "dp_rank": lambda value: value is None or _is_number(value),
    "dp_size": lambda value: _is_number(value, 1),
    "batch_size": lambda value: _is_number(value, 1),
    "parts": lambda value: isinstance(value, list) and bool(value) and all(map(_is_part, value)),
    "worker": lambda value: value is None or _is_worker(value),
}
OPTIONAL = ("weights", "worker")


def _check_kind(state: Any) -> None:
    if not _is_state(state) or state["weir"] != FORMAT:
        raise ValueError("this is no state of a weir.Dataset, or one of a newer Weir")
    for key, is_right in KINDS.items():
        if key not in state and key not in OPTIONAL or not is_right(state.get(key)):
            raise ValueError("this is no state of a weir.Dataset, or a damaged one: its "
                             f"{key} is {state.get(key)!r}")


def _common(states: Sequence[State], position: int) -> State:
    """What is the same in all, and the sums of what is not."""
    first = states[0]
    same = ("weir", "seed", "shuffle", "weights", "dp_size")
    for state in states:
        if any(state.get(key) != first.get(key) for key in same) or \
                [part["digest"] for part in state["parts"]] != \
                [part["digest"] for part in first["parts"]]:
            raise ValueError("the states are not of the same run: data, seed, weights or "
                             "number of ranks differ")
    parts = []
    for rows in zip(*(state["parts"] for state in states)):
        total = Tally()
        for row in rows:
            total.add((epoch, count, int(digest, 16)) for epoch, count, digest in row["epochs"])
        parts.append({**rows[0], "epochs": total.rows()})
    samples = sum(part["samples"] for part in parts)
    return {**first, "position": position, "epoch": position // samples, "parts": parts}


def _merge_workers(states: Sequence[State]) -> State:
    """Of one rank: the batches of workers take turns."""
    if "worker" not in states[0]:
        return states[0]
    count = states[0]["worker"][1]
    found = {state["worker"][0]: state for state in states}
    if sorted(found) != list(range(count)):
        raise ValueError(f"states of workers {sorted(found)}: there are {count}")
    step = states[0]["batch_size"] * states[0]["dp_size"]
    merged = _common(list(found.values()),
                     min(state["position"] + worker * step for worker, state in found.items()))
    del merged["worker"]
    return merged


def merge_states(states: Sequence[State]) -> State:
    """One state out of those of all data-parallel ranks, and of their workers: the position that
    they share, and the sums of their digests."""
    if not isinstance(states, (list, tuple)):
        raise TypeError(f"a state is what state_dict() returned, or a list of such, not {states!r}")
    if not states:
        raise ValueError("there are no states")
    for state in states:
        _check_kind(state)
    by_rank: dict[Optional[int], dict[int, State]] = {}
    for state in states:  # tensor-parallel ranks have equal ones: one of them is enough
        by_rank.setdefault(state["dp_rank"], {}).setdefault(state.get("worker", [0])[0], state)
    ranks = {rank: _merge_workers(list(found.values())) for rank, found in by_rank.items()}
    first = next(iter(ranks.values()))
    if None in ranks and len(ranks) == 1:
        return first
    if sorted(ranks, key=str) != sorted(range(first["dp_size"]), key=str):
        raise ValueError(f"states of ranks {sorted(ranks, key=str)}: there are "
                         f"{first['dp_size']}")
    if any(state["position"] != first["position"] for state in ranks.values()):
        raise ValueError("the states are not of the same step: " + ", ".join(
            f"rank {rank} is at {state['position']}" for rank, state in ranks.items()))
    return {**_common(list(ranks.values()), first["position"]), "dp_rank": None}


def _is_state(value: Any) -> bool:
    return isinstance(value, dict) and "weir" in value and "parts" in value


def worker_states(loader_state: State) -> list[State]:
    """The states of the dataset that are in one of torchdata's StatefulDataLoader: one for each
    worker. Such lists, those of all ranks in one, are what a plain Dataset goes on from, with any
    number of ranks and workers:

        ds.load_state_dict(weir.worker_states(loader.state_dict()))
    """
    snapshot = loader_state.get("_snapshot")
    if snapshot is None:
        found: list[Any] = [loader_state.get("dataset_state")]  # num_workers=0
    else:
        found = [worker.get("dataset_state") for worker in snapshot["_worker_snapshots"].values()]
    if not found or not all(map(_is_state, found)):
        raise ValueError("this is no state of a StatefulDataLoader of a weir.Dataset")
    late = loader_state.get("_steps_since_snapshot", 0)
    if late:
        raise ValueError(f"the states of the workers are {late} batches old: take "
                         "StatefulDataLoader(…, snapshot_every_n_steps=1)")
    return found


def states_in(loader: Any) -> list[State]:
    """The states of a weir.Dataset in what was saved as the position of a loader; none if it is
    one of another kind."""
    if _is_state(loader):
        return [loader]
    if isinstance(loader, list) and all(map(_is_state, loader)):
        return loader
    try:
        return worker_states(loader)
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
