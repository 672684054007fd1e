"""Datasets: batches in an order that is computed, the same for any number of ranks and workers."""
from __future__ import annotations

import copy
import errno
import functools
import math
import operator
import os
import sys
import threading
import warnings
from multiprocessing.context import get_spawning_popen
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

from . import _weir
from .columns import Batch, Maker, Ragged, is_none, value_of
from .passed import Passed
from .place import data_parallel
from .position import FULL, Position, Tally, merge_states, worker_states

Url = Union[str, "os.PathLike[str]"]
THREADS_MAX, PREFETCH_MAX = 256, 4096  # of a loader
WEIGHT_ONE = 1 << 40  # weights are whole numbers to the library: shares of this
BUFFERED, DIRECT, RAW = 2, 4, 16  # WEIR_LOADER_… of weir.h
U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1


def _whole(name: str, value: Any, least: int, most: int = U32_MAX, other: str = "") -> int:
    """A whole number, numpy's too, within what the library takes."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not least <= number <= most:
        bounds = f"from {least}" + (f" to {most}" if number > most else "")
        raise ValueError(f"{name} is a whole number {bounds}{other}, not {value!r}")
    return number


def _yes(name: str, value: Any) -> bool:
    """A yes or no, numpy's too; a string is neither."""
    try:
        if not isinstance(value, (str, bytes)) and value in (True, False):
            return bool(value)
    except ValueError:  # an array
        pass
    raise ValueError(f"{name} is True or False, not {value!r}")


def _urls(given: Any) -> list[str]:
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(several, (list, tuple)) or not several or \
            not all(isinstance(url, (str, os.PathLike)) for url in several):
        raise TypeError(f"url is where a dataset is, or a list of such, not {given!r}")
    found = [os.fspath(url) for url in several]
    if not all(isinstance(url, str) for url in found):
        raise TypeError(f"url is text, not {given!r}")
    return found


def _named(urls: list[str]) -> list[str]:
    """A name for each: its URL, with a number if it is there before."""
    return [url if url not in urls[:i] else f"{url} #{urls[:i].count(url) + 1}"
            for i, url in enumerate(urls)]


def _options(given: Optional[dict[str, Any]], **more: Any) -> Optional[str]:
    """As the library takes them."""
    if given is not None and not isinstance(given, dict):
        raise TypeError(f"options is a dict, as in options={{'seq_len': 1024}}, not {given!r}")
    found = {key: value for key, value in more.items() if value is not None}
    for key, value in (given or {}).items():
        if found.setdefault(key, value) != value:
            raise ValueError(f"{key} is given twice: {found[key]!r}, and {value!r} in options")
    return "&".join(f"{key}={int(value) if isinstance(value, bool) else value}"
                    for key, value in found.items() if value is not None) or None


def _order(seed: Any, shuffle: Any, lanes: Any, window: Any) -> dict[str, Any]:
    auto = ", or None"
    return {"seed": _whole("seed", seed, 0, U64_MAX), "shuffle": _yes("shuffle", shuffle),
            "lanes": 0 if lanes is None else _whole("lanes", lanes, 0, other=auto),
            "window": FULL if isinstance(window, str) and window == "full" else 0 if window is None
            else _whole("window", window, 0, U64_MAX, ", 'full' or None")}


def _fields(given: Iterable[str]) -> list[str]:
    if isinstance(given, (str, bytes)):
        raise TypeError(f"fields is a list of names: give [{given!r}], not {given!r}")
    names = list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise ValueError(f"fields are names, each once, not {names!r}; without fields= it is all")
    return names


def _weights(given: Any, count: int) -> Optional[list[int]]:
    """Of a mixture; of one dataset they say nothing."""
    try:
        weights = [] if isinstance(given, (str, bytes)) else [float(weight) for weight in given]
    except (TypeError, ValueError):
        weights = []
    if not weights or not all(0 < weight < math.inf for weight in weights):
        raise ValueError(f"weights are numbers above 0, not {given!r}")
    if len(weights) != count:
        raise ValueError(f"{count} dataset{'s' if count > 1 else ''} and {len(weights)} weights")
    if count == 1:
        return None
    return [round(weight / sum(weights) * WEIGHT_ONE) for weight in weights]


def _open(url: str, **options: Any) -> _weir.Data:
    """Opens a dataset on a thread of its own: Ctrl-C stops the making of an index."""
    box: dict[str, Any] = {}
    stop = threading.Event()
    tell = options.pop("progress", None)

    def progress(more: int, total: int) -> None:
        if stop.is_set():
            raise InterruptedError
        if tell is not None:
            try:
                tell(more, total)
            except BaseException as error:  # the library says only that it was stopped
                box["error"] = error
                raise

    def run() -> None:
        try:
            box["data"] = _weir.Data(url, progress=progress, **options)
        except BaseException as error:  # is raised where it was asked for
            box.setdefault("error", error)

    thread = threading.Thread(target=run, name="weir-open", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        stop.set()
        thread.join()
        raise
    if "error" in box:
        raise box["error"]
    data: _weir.Data = box["data"]
    if not data.info()["samples"]:
        data.close()
        raise ValueError(f"'{url}' has no samples")
    return data


def _worker_info() -> Any:
    """Of torch, if this process is a worker of a DataLoader; else None."""
    loaded = sys.modules.get("torch.utils.data")
    return loaded.get_worker_info() if loaded is not None else None


def _worker() -> tuple[int, int]:
    """Which worker of a torch DataLoader this process is, and of how many; 0 of 1 if none."""
    info = _worker_info()
    return (info.id, info.num_workers) if info is not None else (0, 1)


@functools.cache
def _tell(iterable: Any) -> None:
    """torch's IterableDataset is an abstract base class: it takes ours for one of its own."""
    iterable.register(Dataset)


class Dataset:
    """A dataset, iterable by batches and indexable by samples.

        ds = weir.Dataset("/data/imagenet", batch_size=256, seed=1)
        for batch in ds:                # one epoch; the next loop is the next epoch
            train(batch["image"], batch["label"])
        checkpointer.save(step, state, loader=ds.state_dict())

    url: a directory of MDS, WebDataset, TFRecord, JSONL, LitData or token files, or any files; or
    several of them, mixed by `weights`. batch_size: samples for each rank. seed, lanes, window: the
    order; window="full" shuffles everything with everything. dp_rank, dp_size, mesh: who we are
    among those that get different samples; found out from torch.distributed, torchrun or Slurm if
    not given. fields: only these. raw=True: samples as they are stored (a tf.Example, a line of
    JSON, a tar's members), in the one field "raw", for who decodes them himself. seq_len, eot,
    options: of token files, and of formats in general.

    A loop runs to the end of the epoch, and on from where the last one stopped; batches are always
    full and run over the ends of epochs. epochs=n: a loop is exactly n epochs, and the last batch
    of it may be smaller, for some ranks one of no samples: for evaluation.

    A batch is a dict: fields that are arrays of one shape in all samples are stacked into one
    array, any others are Ragged. collate="list": lists of values instead. as_torch: tensors;
    pin_memory: batches are made in pinned memory, from which copies to a GPU can go on while the
    loop does. Arrays are views of the batch's memory, which is used again when the last is gone.

    verify_key: the file of a public Ed25519 key (PEM): nothing is read but what its owner signed
    (weir data sign), and anything else raises; proof: where manifest and signature are, if not in
    the dataset.

    threads, prefetch (batches), memory (bytes): bounds of what is done ahead. buffered: read
    through the kernel's cache, so that the next epoch comes from there; if not given, where the
    data takes at most half of the memory (the machine's, or the container's); stats() tells. Works
    as it is, and in torch's DataLoader(ds, batch_size=None) and torchdata's StatefulDataLoader;
    with workers, only the latter knows where it is: see state_dict(). What is pickled, and what a
    child process has, begins where the next loop would, or the one that is under way began.
    """

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What isinstance() asks for. torch's DataLoader takes for samples by number what is no
        IterableDataset, and torch may come later than this dataset: then it is told here."""
        iterable = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
        if iterable is not None:
            _tell(iterable)
        return type(self)

    def __init__(self, url: Union[Url, Sequence[Url]], *, batch_size: int = 1,
                 shuffle: bool = True, seed: int = 0, dp_rank: Optional[int] = None,
                 dp_size: Optional[int] = None, mesh: Any = None,
                 fields: Optional[Iterable[str]] = None, raw: bool = False,
                 weights: Optional[Sequence[float]] = None,
                 lanes: Optional[int] = None, window: Union[None, int, str] = None,
                 seq_len: Optional[int] = None, eot: Optional[int] = None,
                 format: Optional[str] = None, options: Optional[dict[str, Any]] = None,
                 epochs: Optional[int] = None, threads: Optional[int] = None, prefetch: int = 8,
                 memory: int = 512 << 20, buffered: Optional[bool] = None,
                 collate: str = "stack", as_torch: bool = False, pin_memory: bool = False,
                 cache: Optional[Url] = None, verify_key: Optional[Url] = None,
                 proof: Optional[Url] = None,
                 progress: Optional[Callable[[int, int], Any]] = None) -> None:
        self.urls = urls = _urls(url)
        self.names = _named(urls)
        self._weights = _weights([1.0] * len(urls) if weights is None else weights, len(urls))
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is a function of (more, total), not {progress!r}")
        if epochs is not None:
            epochs = _whole("epochs", epochs, 1, other=", or None")
        batch_size = _whole("batch_size", batch_size, 1, U64_MAX)
        order = _order(seed, shuffle, lanes, window)
        self.dp_rank, self.dp_size = data_parallel(dp_rank, dp_size, mesh)
        self.batch_size, self.epochs = batch_size, epochs
        self._open_options: dict[str, Any] = dict(
            format=format, options=_options(options, seq_len=seq_len, eot=eot),
            cache=None if cache is None else os.fspath(cache))
        memory = _whole("memory", memory, 0, U64_MAX)
        self._open_options["sample_bytes_max"] = memory
        if verify_key is not None:
            with open(os.fspath(verify_key), encoding="ascii", errors="replace") as pem:
                self._open_options["verify_key"] = pem.read()
            self._open_options["proof"] = None if proof is None else os.fspath(proof)
        elif proof is not None:
            raise ValueError("proof= is checked with a key: give verify_key=, too")
        through = 0 if buffered is None else BUFFERED if _yes("buffered", buffered) else DIRECT
        self._how: dict[str, Any] = dict(
            batch_size=batch_size, rank=self.dp_rank, ranks=self.dp_size,
            threads=0 if threads is None else _whole("threads", threads, 0, THREADS_MAX),
            prefetch=_whole("prefetch", prefetch, 0, PREFETCH_MAX), memory=memory,
            flags=through | (RAW if _yes("raw", raw) else 0))
        self._wanted = None if fields is None else _fields(fields)
        if raw and fields is not None:
            raise ValueError("raw samples are not taken apart: give fields=, or raw=True")
        self._is_checked = False
        self._maker = Maker(collate, _yes("as_torch", as_torch), _yes("pin_memory", pin_memory),
                            bool(raw))
        self._pid = os.getpid()
        self._parts: list[_weir.Data] = []
        self._loader: Optional[_weir.Loader] = None
        self._open_parts(progress)
        self._position = Position(order, [part.info() for part in self._parts],
                                  self._weights, batch_size, self.dp_rank, self.dp_size)
        self._end = FULL  # of the open loader
        self._loop: Optional[tuple[int, int]] = None  # that is under way: its begin and end
        self._begun = self._position.start, self._position.tallies  # see _mark()
        self._passed = Passed()
        self._turn = 0         # of a worker: how many loops it has begun
        self._goes_on = False  # of a worker: with the loop that a state is of

    # ---- its life ----

    def _adopt(self) -> None:
        """In a process that has it from another one: nothing is open here, and it is where the
        next loop of the other begins, or the one under way began."""
        if self._pid == os.getpid():
            return
        if self._loader is not None:  # a parent's: it is not ours to close
            self._position.start, self._position.tallies = self._begun
        worker = _worker_info()
        if worker is None:
            if self._passed.used:
                self._position.start = self._passed.position
            self._passed = Passed(self._position.start, self._passed.used)
        elif worker.id:  # what was delivered before is told by one of them
            self._position.tallies = [Tally() for _ in self._position.tallies]
        self._loader, self._loop, self._parts = None, None, []
        self._pid = os.getpid()

    def _open_parts(self, progress: Optional[Callable[[int, int], Any]] = None) -> None:
        self._adopt()
        if not self._parts:
            self._parts = [_open(url, progress=progress, **self._open_options)
                           for url in self.urls]

    def _open_loader(self, end: int) -> _weir.Loader:
        """A loader from where we are, if its order is the one that we have."""
        self._open_parts()
        worker, workers = _worker()
        fields = None if self._wanted is None else [
            name.encode("utf-8", "surrogateescape") for name in self._wanted]
        loader = _weir.Loader(self._parts, self._weights, fields, **self._how,
                              **self._position.order, worker=worker, workers=workers,
                              position=self._position.start, end=end)
        self._position.opened(loader.state())
        return loader

    def _start(self, end: int) -> _weir.Loader:
        """A loader from where we are, or the one that is there."""
        if self._loader is not None and self._end != end:
            self._stop()
        if self._loader is None:
            self._loader, self._end = self._open_loader(end), end
        return self._loader

    def _stop(self) -> None:
        """Ends the loader; what it delivered stays counted."""
        loader, position = self._loader, self._position
        if loader is None or self._pid != os.getpid():
            self._loader = None
            return
        if loader.busy:
            raise ValueError("the loader is in use: a thread waits for its next batch")
        found = position.closed(loader.position(), loader.state(), _worker()[0])
        # Together, with no call between: a signal's handler may ask where it is.
        position.start, position.tallies, self._loader = *found, None
        loader.close()

    def close(self) -> None:
        self._stop()
        if self._pid == os.getpid():
            for part in self._parts:
                part.close()

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _reduce(self)

    # ---- what it is ----

    def __repr__(self) -> str:
        return (f"<weir.{type(self).__name__} of {', '.join(self.names)}: {self.samples} samples, "
                f"batches of {self.batch_size}, rank {self.dp_rank} of {self.dp_size}>")

    def info(self) -> dict[str, Any]:
        """Format, number of samples and shards, bytes, digest; of several, of each."""
        self._open_parts()
        found = [part.info() for part in self._parts]
        return found[0] if len(found) == 1 else dict(zip(self.names, found))

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return self._position.samples

    def __len__(self) -> int:
        """The batches of the loop that is under way, or would begin now."""
        self._adopt()
        begin = self._passed.position
        begin, end = self._loop or (begin, self._position.loop_end(self.epochs, begin))
        return -((begin - end) // self._position.step)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One sample by its number, as a dict; not shuffled."""
        if len(self.urls) > 1:
            raise TypeError("a mixture has no sample numbers: index its datasets")
        try:
            number = operator.index(number)
        except TypeError:
            raise TypeError(f"a sample has a number, which {number!r} is not") from None
        self._open_parts()
        if number < 0:
            number += self.samples
        if not 0 <= number < self.samples:
            raise IndexError(f"there is no sample {number}: there are {self.samples}")
        found = {row[0]: row[1:] for row in self._parts[0].sample(number, self._maker.raw)}
        names = found if self._wanted is None else self._wanted
        return {name: value_of(*found[name], self._maker.as_torch) if name in found else None
                for name in names}

    # ---- batches ----

    def _own_loader(self) -> Optional[_weir.Loader]:
        return self._loader if self._pid == os.getpid() else None

    def _mark(self) -> None:
        """A loop begins or ends here. Copies, child processes and workers begin here, too."""
        position = self._position
        self._begun = position.start, position.tallies
        if self._loader is not None:
            self._begun = position.closed(self._loader.position(), self._loader.state(),
                                          _worker()[0])
        self._passed.move(self._begun[0])

    def _begin(self) -> tuple[int, int]:
        """Begins a loop; returns its begin and end."""
        self._open_parts()
        if self._passed.position != self._begun[0]:  # workers have gone on
            self._stop()
            self._position.start = self._passed.position
        self._mark()
        begin = self._begun[0]
        self._loop = begin, self._position.loop_end(self.epochs, begin)
        return self._loop

    def _begin_worker(self, workers: int) -> tuple[int, int]:
        """The same in a worker. What it had open is of a loop that was left: all workers begin
        that again together, wherever each was."""
        self._open_parts()
        position, self._loader = self._position, None
        self._turn += 1
        if self._goes_on:
            self._goes_on = False
        else:
            position.start, position.end = self._passed.begin(workers), None
        self._loop = position.start, position.loop_end(self.epochs)
        return self._loop

    def __iter__(self) -> Iterator[Batch]:
        info = _worker_info()
        # torchdata asks a worker for its state before it asks for a batch.
        return self._batches(info, info and self._begin_worker(info.num_workers))

    def _batches(self, info: Any, begun: Optional[tuple[int, int]]) -> Iterator[Batch]:
        """info: of the worker that has begun the loop."""
        pid, worker, position = os.getpid(), _worker()[0], self._position
        loop = begun or self._begin()
        end = loop[1] - worker * position.step  # where we are counts without that
        try:
            self._maker.begin(info is not None)
            while position.now(self._loader, worker) < end:
                if os.getpid() != pid:
                    raise ChildProcessError(errno.ECHILD, "the loop was begun before fork(): begin "
                                            "one in the child")
                loader = self._start(FULL if self.epochs is None else loop[1])
                handed = False
                try:
                    self._maker.lend(loader)
                    batch = loader.next()
                    if batch is None:
                        break
                    made = self._maker.make(batch, self._parts)
                    del batch
                    self._check_fields(made)
                    end_of_it = made.position + 1
                    # No call from here to the yield, so no signal's handler runs between: it finds
                    # that nobody has the batch, or that the caller does.
                    handed = True
                    loader.reached = end_of_it
                    yield made
                    del made
                except BaseException:
                    if not handed:
                        self._stop()  # the next loop begins with what nobody got
                    raise
            if info is not None:
                self._end_worker(info, loop)
        finally:
            if info is None and os.getpid() == pid:
                self._loop = None if self._loop is loop else self._loop
                self._mark()

    def _end_worker(self, info: Any, loop: tuple[int, int]) -> None:
        self._stop()
        position, self._loop = self._position, None
        position.start, position.end = position.after(*loop, self.epochs), None
        self._passed.end(info.id, info.seed - info.id + self._turn, position.start)

    def _check_fields(self, batch: Batch) -> None:
        """Once: wanted fields that are in no sample of the first batch may be misspelt."""
        if self._is_checked:
            return
        self._is_checked = True
        missing = [name for name in self._wanted or () if name in batch and len(batch[name])
                   and isinstance(batch[name], (Ragged, list)) and is_none(batch[name])]
        if missing:
            warnings.warn(f"no sample of the first batch has the field {', '.join(missing)}: it is "
                          f"None there. See weir data stats {self.urls[0]} for what there is",
                          stacklevel=3)

    # ---- where it is ----

    def _state(self) -> dict[str, Any]:
        self._adopt()
        if _worker_info() is None and self._passed.used:
            raise RuntimeError("the dataset is read by workers of a DataLoader: only they know "
                               "where they are. Use torchdata's StatefulDataLoader and its "
                               "state_dict(), or num_workers=0: a weir.Dataset reads ahead in "
                               "threads of its own")
        return self._position.state(self._own_loader(), *_worker(), self._loop and self._loop[1])

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in a few numbers: what was delivered to the caller, not what is ready.

        Workers of a DataLoader have each their own, which the process that began them cannot see:
        there it raises, as soon as they have begun. torchdata's StatefulDataLoader asks them: take
        its state_dict(). Or take num_workers=0: the threads that read ahead are the library's."""
        self._adopt()
        if not self._position.is_known:  # nothing was read yet: what would be the order?
            self._open_loader(FULL).close()
        return self._state()

    def load_state_dict(self, state: Union[dict[str, Any], Sequence[dict[str, Any]]]) -> None:
        """Goes on from there, with any number of ranks. A list: the states of all ranks, or of all
        workers (see worker_states()); digests of epochs then stay complete when their number has
        changed. Before workers are begun: those that run already hear of it with their next loop,
        and their digests go on."""
        self._adopt()
        self._stop()
        info, (worker, workers) = _worker_info(), _worker()
        next_begins = self._position.load(state, worker, workers)
        self._loop = None
        if info is None:
            self._passed.load(self._position.start)
            self._mark()
        else:
            self._passed.resume(worker, workers, next_begins)
            self._goes_on = True

    def digests(self) -> Any:
        """What was delivered here of the last epochs: {epoch: (samples, digest)}; of several
        datasets, for each. Digests of ranks add up: see merge_states()."""
        found = self._state()["parts"]
        out = [{epoch: (count, digest) for epoch, count, digest in part["epochs"]}
               for part in found]
        return out[0] if len(out) == 1 else dict(zip(self.names, out))

    def stats(self) -> dict[str, Any]:
        """Rates, memory, and how long callers waited, and for what; since the loader was opened."""
        loader = self._own_loader()
        return loader.stats() if loader is not None else {}


def _reduce(self: Dataset) -> Any:
    self._adopt()
    position = copy.deepcopy(self._position)
    (position.start, position.tallies), passed = self._begun, self._passed
    if passed.position != self._begun[0]:  # workers have gone on
        position.start = passed.position
    state = dict(self.__dict__, _loader=None, _loop=None, _parts=[], _pid=0, _position=position,
                 _begun=(position.start, position.tallies))
    if get_spawning_popen() is None:  # shared with workers only
        state["_passed"] = passed.used
    return _rebuild, (type(self), state)


def _rebuild(cls: type[Dataset], state: dict[str, Any]) -> Dataset:
    self = cls.__new__(cls)
    self.__dict__.update(state)
    if isinstance(self._passed, bool):
        self._passed = Passed(self._begun[0], self._passed)
    return self


class Mixture(Dataset):
    """Several datasets by weight: {name: (url, weight)}; otherwise as Dataset.

        weir.Mixture({"web": ("/data/web", 0.8), "code": ("/data/code", 0.2)}, batch_size=8)
    """

    def __init__(self, parts: dict[str, tuple[Url, float]], **options: Any) -> None:
        if not isinstance(parts, dict) or not parts or not all(
                isinstance(name, str) and isinstance(part, (list, tuple)) and len(part) == 2
                for name, part in parts.items()):
            raise TypeError(f"a Mixture is of {{name: (url, weight)}}, not {parts!r}")
        super().__init__([url for url, _ in parts.values()],
                         weights=[weight for _, weight in parts.values()], **options)
        self.names = list(parts)


__all__ = ["Dataset", "Mixture", "merge_states", "worker_states"]
