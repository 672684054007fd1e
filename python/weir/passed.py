"""What the workers of a DataLoader leave for those of its next loop."""
from __future__ import annotations

import mmap
import os
from multiprocessing.reduction import DupFd
from typing import Any

WORKERS_MAX = 1024


class Passed:
    """Where the workers' last loop ended, in memory that they share: the next one, of the same
    workers or of new ones, begins there. A worker looks at its own entry, and at those of others
    only if there was another number of them: some of its own fellows may be through already.
    How far a loop of theirs is that goes on, they know, and not the process that began them."""

    def __init__(self, used: bool = False, fd: int = -1) -> None:
        """fd: of another process's."""
        size = 8 * (1 + 2 * WORKERS_MAX)
        self._fd = fd if fd >= 0 else os.memfd_create("weir-passed")  # no name to be left behind
        if fd < 0:
            os.ftruncate(self._fd, size)
        numbers = memoryview(mmap.mmap(self._fd, size)).cast("Q")
        self._used, self._entries = numbers[:1], numbers[1:]  # position, number of workers of each
        if used:
            self._used[0] = 1

    def __del__(self) -> None:
        os.close(self._fd)

    def __reduce__(self) -> Any:
        return _received, (DupFd(self._fd),)

    @property
    def used(self) -> bool:
        """Whether workers have begun a loop."""
        return bool(self._used[0])

    def begin(self, worker: int, workers: int) -> int:
        self._used[0] = 1
        entries = list(zip(self._entries[::2], self._entries[1::2]))
        position, count = entries[worker]
        if count == workers:
            return position
        return max(position for position, count in entries if count != workers)

    def end(self, worker: int, workers: int, position: int) -> None:
        self._entries[2 * worker], self._entries[2 * worker + 1] = position, workers

    def clear(self) -> None:
        for i in range(2 * WORKERS_MAX):
            self._entries[i] = 0
        self._used[0] = 0


def _received(fd: Any) -> Passed:
    return Passed(fd=fd.detach())
