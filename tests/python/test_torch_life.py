"""The token of a life by torch's key-value store, which under torchrun outlives the workers: what
an earlier life left in it is never taken for this one's."""
import datetime
import threading

import pytest

pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from weir import life  # noqa: E402

RANKS = 3


@pytest.fixture(params=["hash", "file", "tcp"])
def store(request, tmp_path):
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), RANKS)
    if request.param == "tcp":
        return dist.PrefixStore("default_pg", dist.TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False))
    return dist.HashStore()


KEY = "weir/r/1"


def live(store, order):
    """One life: its ranks come in that order, mostly one after the other."""
    found, threads = {}, []
    for rank in order:
        def join(rank=rank):
            found[rank] = life._ask(store, KEY, rank) if rank else life._tell(store, KEY, RANKS)

        threads.append(threading.Thread(target=join))
        threads[-1].start()
        threads[-1].join(0.05)
    for thread in threads:
        thread.join()
    assert len(found) == RANKS and len(set(found.values())) == 1
    return found[0]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_lives_with_one_store(store, order):
    assert len({live(store, order) for _ in range(3)}) == 3


def test_what_a_killed_life_left(store):
    """Questions that nobody answered, by ranks that are there no more."""
    for rank in range(1, RANKS):
        store.set(f"{KEY}/{rank}", f"{rank:032x}")
    live(store, (0, 1, 2))


def test_a_rank_that_does_not_come(store):
    store.set_timeout(datetime.timedelta(seconds=0.1))
    with pytest.raises(TimeoutError, match="^rank 0 has not joined .*the first save together"):
        life._ask(store, KEY, 1)
    with pytest.raises(TimeoutError, match="^rank 1 has not joined"):
        life._tell(store, KEY, 2)
