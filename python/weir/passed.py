"""Where the next loop begins: workers of a DataLoader, and who began them, must agree on that."""
from __future__ import annotations

import mmap
import os
from multiprocessing.reduction import DupFd
from typing import Any

WORKERS_MAX = 1024
USED, POSITION, WORKERS, TABLES = range(4)  # where these numbers are, and then tables
TURN_MODULO = 1 << 64


class Passed:
    """In memory that they share. Each loop of workers begins where the last one of all of them
    ended; at its own beginning if one did not end: what was left is begun again together.

    A loop's workers come to it one after the other, and some may be through before the last has
    begun. So each writes down where it begins, and an end counts when all of the same turn have
    written theirs. Positions only grow until somebody loads a state, so of several
    beginnings that are known the last is the right one."""

    def __init__(self, position: int = 0, used: bool = False, fd: int = -1) -> None:
        """fd: of another process's."""
        self._fd = fd if fd >= 0 else os.memfd_create("weir-passed")  # no name to be left behind
        size = 8 * (TABLES + 3 * WORKERS_MAX)
        if fd < 0:
            os.ftruncate(self._fd, size)
        self._numbers = memoryview(mmap.mmap(self._fd, size)).cast("Q")
        tables = self._numbers[TABLES:]
        self._turns, self._ends = tables[:WORKERS_MAX], tables[WORKERS_MAX:2 * WORKERS_MAX]
        self._loaded = tables[2 * WORKERS_MAX:]
        if fd < 0:
            self._numbers[POSITION], self._numbers[USED] = position, used

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)

    def __reduce__(self) -> Any:
        return _received, (DupFd(self._fd),)

    @property
    def used(self) -> bool:
        """Whether workers have begun a loop."""
        return bool(self._numbers[USED])

    @property
    def position(self) -> int:
        """Where the next loop begins."""
        found, workers = self._numbers[POSITION], self._numbers[WORKERS]
        if not workers:
            return found
        if len(set(self._turns[:workers])) == 1:
            found = max(found, min(self._ends[:workers]))
        return max(found, min(self._loaded[:workers]))

    # ---- who began them ----

    def move(self, position: int) -> None:
        """The next loop begins there."""
        self._numbers[WORKERS], self._numbers[POSITION] = 0, position

    def load(self, position: int) -> None:
        """The same, also if that is before what workers have read, which is forgotten."""
        self.move(position)
        self._numbers[USED] = False
        self._numbers[TABLES:] = memoryview(bytes(8 * 3 * WORKERS_MAX)).cast("Q")

    # ---- workers ----

    def begin(self, workers: int) -> int:
        """A worker begins a loop, one of so many; returns where."""
        position = self.position
        self._numbers[USED] = True
        self._numbers[POSITION] = position
        self._numbers[WORKERS] = workers
        return position

    def end(self, worker: int, turn: int, position: int) -> None:
        """A worker is through with a loop that ends there. turn: the same for all in this loop."""
        if self._numbers[WORKERS]:  # else who began them has gone elsewhere meanwhile
            self._ends[worker], self._turns[worker] = position, turn % TURN_MODULO

    def resume(self, worker: int, workers: int, position: int) -> None:
        """A worker has loaded a state, as all others do before one of them begins: they go on with
        what was begun elsewhere, and its next batch is there."""
        self._numbers[USED] = True
        self._loaded[worker], self._ends[worker] = position, 0
        self._numbers[POSITION], self._numbers[WORKERS] = 0, workers


def _received(fd: Any) -> Passed:
    return Passed(fd=fd.detach())
