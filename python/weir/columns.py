"""What a batch is in Python: a dict of columns, which are views of the batch's own memory."""
from __future__ import annotations

import functools
import json
import operator
import warnings
from typing import Any, Iterator

from . import _weir

BYTES, TEXT, JSON, ARRAY, NONE = range(5)  # weir_field_kind
MIXED = "its values have different kinds or dtypes: take them one by one"


@functools.cache
def _numpy() -> Any:
    try:
        import numpy
    except ModuleNotFoundError as error:
        raise ImportError("arrays of a dataset need numpy") from error
    return numpy


def _tensor(array: Any) -> Any:
    import torch
    return torch.from_numpy(array)


@functools.cache
def _torch_dtype(dtype: str) -> Any:
    return _tensor(_numpy().empty(0, dtype)).dtype


def _tensor_at(owner: Any, at: int, size: int, dtype: str) -> Any:
    """A view of the memory that a batch is made in, which is a tensor of bytes."""
    return owner[at:at + size].view(_torch_dtype(dtype))


def value_of(kind: int, dtype: str, shape: tuple[int, ...], data: Any, as_torch: bool) -> Any:
    """A value in Python: bytes, str, what the JSON says, an array, or None."""
    if kind == BYTES:
        return data
    if kind == TEXT:
        return str(data, "utf-8")
    if kind == JSON:
        return json.loads(bytes(data))
    if kind == NONE:
        return None
    np = _numpy()
    array = np.frombuffer(data, dtype).reshape(shape)
    return _tensor(array) if as_torch else array


def is_none(column: Any) -> bool:
    """No sample has a value."""
    return all(value is None for value in column)


class Batch(dict[str, Any]):
    """The columns by name; numbers, epochs: of each sample, which it is and when it was drawn;
    position: where the global batch begins; parts: of a mixture, the number of its dataset."""
    position: int
    _place: tuple[Any, int, int, int, int]  # the memory, samples, and where the arrays below are

    @functools.cached_property
    def numbers(self) -> Any:
        batch, samples, at, _, _ = self._place
        return _numpy().frombuffer(batch, "u8", samples, at).view("i8")

    @functools.cached_property
    def epochs(self) -> Any:
        batch, samples, _, at, _ = self._place
        return _numpy().frombuffer(batch, "u8", samples, at).view("i8")

    @functools.cached_property
    def parts(self) -> Any:
        batch, samples, _, _, at = self._place
        return None if at < 0 else _numpy().frombuffer(batch, "u4", samples, at)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, and for copies: arrays, not the memory that they are views of."""
        state = dict(self.__dict__)
        if state.pop("_place", None) is not None:
            state.update(numbers=self.numbers, epochs=self.epochs, parts=self.parts)
        return state


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


class Ragged:
    """Values of different sizes: a list of them, made when asked for.

    Bytes are memoryviews, text is str. `data` and `offsets` are all values in one array (offsets
    count its elements), where they have one kind and dtype.
    """

    def __init__(self, batch: Any, column: int, row: tuple[Any, ...], length: int,
                 as_torch: bool, pins: bool = False) -> None:
        self._batch, self._column, self._row = batch, column, row
        self._length, self._as_torch, self._pins = length, as_torch, pins

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(self._length))]
        i = operator.index(i)
        if i < 0:
            i += self._length
        if not 0 <= i < self._length:
            raise IndexError(i)
        kind, at, size, dtype, shape = self._batch.value(self._column, i)
        return value_of(kind, dtype, shape, memoryview(self._batch)[at:at + size], self._as_torch)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._length))

    def tolist(self) -> list[Any]:
        """All of them; bytes as bytes, arrays as arrays."""
        kind = self._row[1]
        if not self._length:
            return []
        values: list[Any] = self._batch.values(self._column)
        if kind in (BYTES, TEXT):
            return values
        return [_plain(self[i]) if kind != JSON and isinstance(value, tuple) or kind == NONE
                else value if value is None else json.loads(value)
                for i, value in enumerate(values)]

    def _dtype(self) -> Any:
        """Of all values."""
        if self._row[6] < 0:
            raise ValueError(MIXED)
        return _numpy().dtype(self._row[2] if self._row[1] == ARRAY else "u1")

    def _view(self) -> Any:
        dtype, at, size = self._dtype(), self._row[4], self._row[5]
        return _numpy().frombuffer(self._batch, dtype, size // dtype.itemsize, at)

    @functools.cached_property
    def _pinned(self) -> Any:
        """A copy: the batch was made before there was such memory for it."""
        return _tensor(self._view()).pin_memory()

    @property
    def data(self) -> Any:
        owner = self._batch.owner() if self._as_torch and self._length else None
        if owner is not None:
            return _tensor_at(owner, self._row[4], self._row[5], self._dtype().str)
        if self._pins and self._row[5]:
            return self._pinned
        return _tensor(self._view()) if self._as_torch else self._view()

    @property
    def offsets(self) -> Any:
        width = self._dtype().itemsize
        found = _numpy().frombuffer(self._batch, "u8", self._length + 1, self._row[6])
        found = found.astype("i8") // width
        return _tensor(found) if self._as_torch else found

    def __reduce__(self) -> Any:
        """For another process: without the batch's memory."""
        if self._row[6] < 0 or self._row[1] == ARRAY:
            return Copied, (self.tolist(),)
        np = _numpy()
        ends = np.asarray(self.offsets)
        empty = (ends[1:] == ends[:-1]).nonzero()[0].tolist()  # as no value looks, too
        return copied, (self._row[1], np.asarray(self.data), ends, self._as_torch,
                        [i for i in empty if self[i] is None])

    def __repr__(self) -> str:
        return f"<Ragged: {self._length} values>"


class Copied(list[Any]):
    """A Ragged that came from another process; where it is not of arrays, its values are views of
    all of them in one."""
    _data: Any = None
    _offsets: Any = None

    def tolist(self) -> list[Any]:
        return [_plain(value) for value in self]

    def _join(self) -> None:
        """Of arrays of one dtype: into one."""
        if self._data is not None:
            return
        np = _numpy()
        given = [value for value in self if value is not None]
        arrays = [np.asarray(value) for value in given]
        if len({array.dtype for array in arrays}) != 1:
            raise ValueError(MIXED)
        sizes = [0 if value is None else np.asarray(value).size for value in self]
        self._data = np.concatenate([array.ravel() for array in arrays])
        self._offsets = np.cumsum([0, *sizes]).astype("i8")
        if not isinstance(given[0], np.ndarray):
            self._data, self._offsets = _tensor(self._data), _tensor(self._offsets)

    @property
    def data(self) -> Any:
        self._join()
        return self._data

    @property
    def offsets(self) -> Any:
        self._join()
        return self._offsets

    def __reduce__(self) -> Any:
        return Copied, (self.tolist(),), {"_data": self._data, "_offsets": self._offsets}


def copied(kind: int, data: Any, offsets: Any, as_torch: bool, missing: list[int]) -> Copied:
    """Of bytes, texts or JSON: all in one, where each begins, and which have no value."""
    view, ends = memoryview(data), offsets.tolist()
    kinds = [kind] * (len(ends) - 1)
    for i in missing:
        kinds[i] = NONE
    values = Copied(value_of(kind, "", (), view[begin:end], False)
                    for kind, begin, end in zip(kinds, ends, ends[1:]))
    values._data = _tensor(data) if as_torch else data
    values._offsets = _tensor(offsets) if as_torch else offsets
    return values


class Maker:
    """Makes Batches out of the library's."""

    def __init__(self, collate: str, as_torch: bool, pin_memory: bool, raw: bool) -> None:
        if collate not in ("stack", "list"):
            raise ValueError(f"collate is 'stack' or 'list', not {collate!r}")
        self.collate = collate
        self.as_torch = as_torch or pin_memory
        self.pin_memory = pin_memory
        self.raw = raw
        self._pins = False
        self._columns: list[tuple[Any, ...]] = []  # of the last batch that had samples

    def begin(self, is_worker: bool) -> None:
        """Before a loop: can memory be pinned?"""
        if not self.pin_memory:
            return
        import torch
        self._pins = not is_worker and torch.cuda.is_available()
        if is_worker:
            warnings.warn("weir.Dataset(pin_memory=True) in a worker of a DataLoader pins nothing: "
                          "say DataLoader(pin_memory=True), or num_workers=0", stacklevel=3)
        elif not self._pins:
            warnings.warn("weir.Dataset(pin_memory=True): torch finds no GPU, so nothing is pinned",
                          stacklevel=3)

    def _memory(self, size: int) -> Any:
        """torch's own: it knows which copies to a GPU are under way, and gives no memory out again
        before they are done."""
        import torch
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def lend(self, loader: "_weir.Loader") -> None:
        """Memory that batches are made in, so that nobody copies them there; before each one."""
        while self._pins and (size := loader.wants()):
            memory = self._memory(size)
            loader.lend(memory.numpy(), memory)

    def _stacked(self, batch: Any, row: tuple[Any, ...], samples: int) -> Any:
        _, _, dtype, shape, at, size, _ = row
        owner = batch.owner() if self._pins else None
        if owner is not None:
            return _tensor_at(owner, at, size, dtype).view(samples, *shape)
        array = _numpy().ndarray((samples, *shape), dtype, batch, at)
        if not self.as_torch:
            return array
        tensor = _tensor(array)
        return tensor.pin_memory() if self._pins else tensor

    def _column(self, batch: Any, i: int, row: tuple[Any, ...], samples: int) -> Any:
        if row[3] is not None:
            stacked = self._stacked(batch, row, samples)
            return stacked if self.collate == "stack" else list(stacked)
        ragged = Ragged(batch, i, row, samples, self.as_torch, self._pins)
        return ragged if self.collate == "stack" else ragged.tolist()

    def _empty(self, row: tuple[Any, ...]) -> Any:
        name, kind, dtype, shape = row[:4]
        if self.collate == "list":
            return []
        if shape is None:
            none = name, kind, dtype, None, 0, 0, min(row[6], 0)
            return Ragged(bytearray(8), 0, none, 0, self.as_torch)
        array = _numpy().empty((0, *shape), dtype)
        return _tensor(array) if self.as_torch else array

    def _columns_of_none(self, wanted: list[tuple[Any, ...]],
                         datas: list["_weir.Data"]) -> dict[str, Any]:
        """A batch without samples has the columns of the one before, or of each first sample."""
        rows = {row[0]: row for row in self._columns}
        for data in datas if not rows else ():
            for name, kind, dtype, shape, _ in data.sample(0, self.raw):
                rows.setdefault(name, (name, kind, dtype, shape if kind == ARRAY else None, 0, 0,
                                       0))
        if wanted:
            rows = {row[0]: rows.get(row[0], row) for row in wanted}
        return {name: self._empty(row) for name, row in rows.items()}

    def make(self, batch: "_weir.Batch", datas: list["_weir.Data"]) -> Batch:
        """datas: what it is of."""
        position, samples, numbers, epochs, parts, columns = batch.layout()
        out = Batch()
        if samples:
            self._columns = columns
            for i, row in enumerate(columns):
                out[row[0]] = self._column(batch, i, row, samples)
        else:  # the last one of a loop of so many epochs, if other ranks got what was left
            out.update(self._columns_of_none(columns, datas))
        out.position = position
        out._place = batch, samples, numbers, epochs, parts
        return out


__all__ = ["Batch", "Maker", "Ragged", "value_of"]
