"""Which save a rank's part belongs to, when torch.distributed.checkpoint does the talking.

The parts of a save need the same token and the same number on all ranks. The coordinator decides
on both, and DCP carries them to each rank in the plan, as a Ticket. Every rank counts the saves it
begins: if one of them fails, the next has another number all the same.

A planner that caches plans hands out an old ticket. Then a rank goes by its own count, which is
the same on all of them; the coordinator makes sure of that before it commits.
"""
from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from . import _weir
from .life import TOKEN_BYTES

log = logging.getLogger("weir")


@dataclass(frozen=True)
class Ticket:
    """What the coordinator tells a rank of a save. `echo` is what the rank had put in its plan."""
    run: str
    step: int
    token: bytes
    number: int
    part: int
    parts: int
    echo: Any = None


@dataclass
class Saves:
    """What a process knows of a run it saves: the token of this life, and the number of the save
    begun last. Its checkpointers stay joined from one save to the next."""
    url: str
    run: str
    token: Optional[bytes] = None
    parts: Optional[int] = None
    number: int = 0
    store: Optional[_weir.Store] = None
    joined: dict[Any, _weir.Ckpt] = field(default_factory=dict)

    # ---- agreeing ----

    def begin(self) -> None:
        self.number += 1

    def give_away(self) -> tuple[bytes, int]:
        """The token and a number, for one save of another process in the same life."""
        self.token = self.token or _own_token()
        self.number += 1
        return self.token, self.number

    def take_over(self, token: bytes, number: int) -> None:
        """The other side of give_away(): the next save to begin has that number."""
        self.token = self.token or token
        self.number = max(self.number, number - 1)

    def lead(self, step: int, parts: int) -> Ticket:
        """The coordinator's choice: the same token as long as the number of ranks stays."""
        if self.token is None:
            self.token = _own_token()
        elif self.parts not in (None, parts):
            self.token = secrets.token_bytes(TOKEN_BYTES)
        self.parts = parts
        return Ticket(self.run, step, self.token, self.number, 0, parts)

    def is_kept(self, ticket: Ticket, echo: Any) -> bool:
        """Whether it is from an earlier save."""
        if ticket.run != self.run:
            return True
        return (ticket.echo != echo and ticket.token == self.token
                and ticket.number < self.number)

    def follow(self, ticket: Ticket, step: int, echo: Any) -> Ticket:
        """A rank's own part of what the coordinator chose."""
        if self.is_kept(ticket, echo):
            ticket = replace(ticket, run=self.run, step=step, token=self.token or ticket.token,
                             number=self.number)
        if ticket.step != step:
            raise ValueError(f"this rank saves step {step} of run '{self.run}', and the "
                             f"coordinator step {ticket.step}")
        self.token, self.parts, self.number = ticket.token, ticket.parts, ticket.number
        return ticket

    # ---- saving ----

    def open(self, ticket: Ticket, options: dict[str, int]) -> _weir.Ckpt:
        """A checkpointer for a part; the caller closes it."""
        if self.store is None:
            self.store = _weir.Store(self.url)
        return _weir.Ckpt(self.store, self.run, ticket.part, ticket.parts, ticket.token, **options)

    def join(self, ticket: Ticket, options: dict[str, int]) -> _weir.Ckpt:
        """The checkpointer for a part, which stays for the next save."""
        key = (ticket.token, ticket.part, ticket.parts, *sorted(options.items()))
        if key not in self.joined:
            for old in [old for old in self.joined if old[0] != ticket.token]:
                self.joined.pop(old).close()
            self.joined[key] = self.open(ticket, options)
        return self.joined[key]

    def close(self) -> None:
        while self.joined:
            self.joined.popitem()[1].close()


# By process, too: a forked child is another writer.
_tokens: dict[int, bytes] = {}
_saves: dict[tuple[int, str, str], Saves] = {}
_lock = threading.Lock()


def _own_token() -> bytes:
    with _lock:
        return _tokens.setdefault(os.getpid(), secrets.token_bytes(TOKEN_BYTES))


def saves_of(url: str, run: str) -> Saves:
    with _lock:
        return _saves.setdefault((os.getpid(), url, run), Saves(url, run))


@atexit.register
def _close_all() -> None:
    for (pid, _, _), saves in _saves.items():
        try:
            if pid == os.getpid():
                saves.close()
        except Exception as error:
            log.error("%s", error)
