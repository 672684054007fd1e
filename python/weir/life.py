"""Who we are: rank, number of ranks, and the token that all ranks of one life of a run share.

A life is one start of the job. Its token is new with each start, so that a process left over from
an earlier one can never commit anything again.
"""
from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from typing import Any, Callable, Optional, Union

TOKEN_BYTES = 16
PAUSE_MAX_S = 0.5
_opened: dict[str, int] = {}  # how often a run was opened in this process


def process_group() -> Any:
    """torch.distributed, if it is imported and has a process group; else None."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist
    return None


def _number(*names: str) -> Optional[int]:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def rank_and_ranks() -> tuple[int, int]:
    """From torch's process group, else torchrun's or Slurm's variables, else the only one."""
    dist = process_group()
    if dist is not None:
        return dist.get_rank(), dist.get_world_size()
    for rank, ranks in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        r, n = _number(rank), _number(ranks)
        if r is not None and n is not None:
            return r, n
    return 0, 1


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:TOKEN_BYTES]


def _await(store: Any, key: str, again: Callable[[], Any], whom: str) -> str:
    """What stands under the key, as soon as there is something: until then, again() each time."""
    pause_s, end_s = 0.01, time.monotonic() + store.timeout.total_seconds()
    while True:
        again()
        if store.check([key]):
            return store.get(key).decode()
        if time.monotonic() > end_s:
            raise TimeoutError(f"{whom} has not joined within {store.timeout}: all ranks make the "
                               "first save together")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_MAX_S)


def _tell(store: Any, key: str, ranks: int) -> str:
    """Rank 0 makes the token up, and answers each rank's question."""
    token = secrets.token_hex(TOKEN_BYTES)
    for rank in range(1, ranks):
        store.delete_key(f"{key}/{rank}")  # that of an earlier life
    for rank in range(1, ranks):
        question = _await(store, f"{key}/{rank}", lambda: None, f"rank {rank}")
        store.set(f"{key}/{rank}/{question}", token)
    return token


def _ask(store: Any, key: str, rank: int) -> str:
    """Asks again and again: rank 0 may have taken the question for one of an earlier life."""
    question = secrets.token_hex(TOKEN_BYTES)
    return _await(store, f"{key}/{rank}/{question}",
                  lambda: store.set(f"{key}/{rank}", question), "rank 0")


def _from_store(run: str, rank: int, ranks: int) -> Optional[bytes]:
    """By the job's key-value store. torchrun's outlives its workers, and with it what those of
    earlier lives left: only what answers one's own question is of this life."""
    dist = process_group()
    if dist is None:
        return None
    store = dist.distributed_c10d._get_default_store()
    _opened[run] = _opened.get(run, 0) + 1
    key = f"weir/{run}/{_opened[run]}"
    return bytes.fromhex(_ask(store, key, rank) if rank else _tell(store, key, ranks))


def _from_environment(run: str) -> Optional[bytes]:
    """The ids of a start: they differ from one start to the next, and are the same for all."""
    env = os.environ
    _opened[run] = _opened.get(run, 0) + 1
    if env.get("TORCHELASTIC_RUN_ID", "none") != "none":
        return _digest(f"elastic {env['TORCHELASTIC_RUN_ID']} "
                       f"{env.get('TORCHELASTIC_RESTART_COUNT', '0')} {run} {_opened[run]}")
    if env.get("SLURM_JOB_ID") and env.get("SLURM_STEP_ID"):
        return _digest(f"slurm {env['SLURM_JOB_ID']} {env['SLURM_STEP_ID']} "
                       f"{env.get('SLURM_RESTART_COUNT', '0')} {run} {_opened[run]}")
    return None


def token_for(run: str, rank: int, ranks: int,
              token: Union[None, str, bytes] = None) -> Optional[bytes]:
    """The token of this life; None where the library may make one up, for a single rank."""
    if isinstance(token, bytes) and len(token) == TOKEN_BYTES:
        return token
    if token:
        return _digest(token if isinstance(token, str) else token.hex())
    if ranks == 1:
        return None
    found = _from_store(run, rank, ranks) or _from_environment(run)
    if found is None:
        raise ValueError(
            f"{ranks} ranks need a token that they share and that is new with each start of the "
            "job: init_process_group() first, or start with torchrun --rdzv-id or Slurm, or give "
            "token=. If only rank 0 saves, say ranks=1.")
    return found
