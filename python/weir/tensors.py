"""Tensors of numpy and torch as the engine sees them: a type, a shape, an address.

Neither library is imported here: what a caller has is in sys.modules already.
"""
from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Optional

from . import _weir

Sizes = tuple[int, ...]

# As safetensors names them.
TORCH_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
NAMES_TORCH = {name: dtype for dtype, name in TORCH_NAMES.items()}


def _torch() -> Any:
    return sys.modules.get("torch")


def _numpy() -> Any:
    return sys.modules.get("numpy")


def is_torch(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy(value: Any) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_dtensor(value: Any) -> bool:
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


@dataclass
class Piece:
    """What this rank has of a tensor. `memory` keeps the bytes at `address` alive."""
    name: str
    dtype: str
    shape: Sizes
    address: int
    bytes: int
    memory: Any
    global_shape: Optional[Sizes] = None
    offset: Optional[Sizes] = None
    replica: int = 0
    replicas: int = 0

    def row(self) -> _weir.Tensor:
        return (self.name, self.dtype, self.shape, self.address, self.global_shape, self.offset,
                self.replica, self.replicas)

    def nonfinite(self) -> int:
        return _weir.count_nonfinite(self.dtype, self.address, self.bytes)


_dtypes: dict[Any, str] = {}  # those seen: a state has ten thousand tensors, but few types


def _dtype_word(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.") if is_torch(value) else str(value.dtype.name)


def dtype_of(value: Any) -> str:
    """Its name, or a TypeError."""
    name = _dtypes.get(value.dtype)
    if name is None:
        name = TORCH_NAMES.get(_dtype_word(value))
        if name is None:
            raise TypeError(f"tensors of type {value.dtype} cannot be stored in safetensors files")
        _dtypes[value.dtype] = name
    return name


def has_no_data(value: Any) -> Optional[str]:
    """Why there is nothing in a tensor that could be stored in any way; None if there is."""
    if not is_torch(value):
        return None
    if value.device.type == "meta":
        return "on the meta device, without data"
    if is_dtensor(value) and any(p.is_partial() for p in value.placements):
        return "with partial values, which has no contents yet: redistribute it first"
    return None


def has_no_form(value: Any) -> Optional[str]:
    """Why a tensor has no form in a safetensors file, as in "a torch.Tensor …"; None if it has."""
    why = has_no_data(value)
    if why is not None:
        return why
    if is_torch(value):
        if value.is_nested:
            return "that is nested"
        if value.is_quantized:
            return "that is quantized"
        if value.layout is not _torch().strided:
            return "that is sparse"
    elif isinstance(value, _numpy().ma.MaskedArray):
        return "whose mask would be lost"
    if value.dtype not in _dtypes and _dtype_word(value) not in TORCH_NAMES:
        return f"of {_dtype_word(value)}, which safetensors has no type for"
    return None


def _plain_torch(name: str, value: Any) -> Piece:
    device = value.device.type
    if value.is_nested or value.is_quantized or value.layout is not _torch().strided:
        raise TypeError(f"tensor '{name}' is sparse, nested or quantized")
    if device == "meta":
        raise TypeError(f"tensor '{name}' is on the meta device, without data")
    dtype = dtype_of(value)
    memory = value
    if device != "cpu" or not value.is_contiguous() or value.is_conj() or value.is_neg():
        memory = value.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
    return Piece(name, dtype, tuple(memory.shape), memory.data_ptr(), memory.nbytes, memory)


def _native(array: Any) -> Any:
    """Row-major, in this machine's byte order."""
    numpy = _numpy()
    return numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)


def _plain_numpy(name: str, value: Any) -> Piece:
    dtype = dtype_of(value)
    memory = _native(value)
    return Piece(name, dtype, tuple(memory.shape), memory.ctypes.data, memory.nbytes, memory)


def dtensor_box(value: Any) -> tuple[Sizes, Sizes, int, int]:
    """Of a DTensor: local shape, offset, which replica this rank has, and of how many."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    mesh, placements = value.device_mesh, value.placements
    if any(p.is_partial() for p in placements):
        raise TypeError("a DTensor with partial values has no contents yet: redistribute it first")
    shape, offset = compute_local_shape_and_global_offset(value.shape, mesh, placements)
    replica, replicas = 0, 1
    coordinate = mesh.get_coordinate()
    for dim, placement in enumerate(placements):
        if placement.is_replicate():
            replica = replica * mesh.size(dim) + coordinate[dim]
            replicas *= mesh.size(dim)
    return tuple(shape), tuple(offset), replica, replicas


def pieces_of(name: str, value: Any, rank: int = 0, ranks: int = 1) -> list[Piece]:
    """What this rank has to save of a tensor. A plain tensor is the same on all ranks."""
    if is_dtensor(value):
        if value.device_mesh.get_coordinate() is None:
            return []  # this rank is not on its mesh
        shape, offset, replica, replicas = dtensor_box(value)
        piece = _plain_torch(name, value.to_local())
        if tuple(piece.shape) != shape:
            raise TypeError(f"tensor '{name}': its local part is {piece.shape}, not {shape}")
        piece.global_shape, piece.offset = tuple(value.shape), offset
        piece.replica, piece.replicas = replica, replicas
        return [piece]
    piece = _plain_torch(name, value) if is_torch(value) else _plain_numpy(name, value)
    if ranks > 1:
        piece.replica, piece.replicas = rank, ranks
    return [piece]


@dataclass
class Target:
    """Where (a box of) a tensor is to be read to; `finish` brings it to its place if it was read
    next to it. `value` is what the caller gets."""
    address: int
    memory: Any
    value: Any
    offset: Optional[Sizes] = None
    shape: Optional[Sizes] = None
    into: Any = None

    def finish(self) -> None:
        if self.into is not None:
            if is_torch(self.memory):
                self.into.copy_(self.memory)
            else:
                self.into[...] = self.memory


def _target_torch(local: Any, value: Any) -> Target:
    local = local.detach()
    if (local.device.type == "cpu" and local.is_contiguous() and not local.is_conj()
            and not local.is_neg()):
        return Target(local.data_ptr(), local, value)
    memory = _torch().empty(local.shape, dtype=local.dtype)
    return Target(memory.data_ptr(), memory, value, into=local)


def target_of(value: Any, name: str, dtype: str, shape: Sizes) -> Optional[Target]:
    """For reading a stored tensor into a caller's; None if this rank has nothing of it."""
    if is_torch(value) and value.device.type == "meta":
        raise ValueError(f"tensor '{name}' is on the meta device, where nothing can be read to: "
                         "to_empty(device=…) gives a module memory")
    why = has_no_form(value)
    if why is not None:
        raise ValueError(f"tensor '{name}' cannot be read into a tensor {why}")
    if dtype_of(value) != dtype or tuple(value.shape) != shape:
        raise ValueError(f"tensor '{name}' is {dtype} {list(shape)} in the checkpoint and "
                         f"{dtype_of(value)} {list(value.shape)} here")
    if is_dtensor(value):
        if value.device_mesh.get_coordinate() is None:
            return None
        target = _target_torch(value.to_local(), value)
        target.shape, target.offset = dtensor_box(value)[:2]
        return target
    if is_torch(value):
        return _target_torch(value, value)
    if value.flags.c_contiguous and value.flags.writeable and value.dtype.isnative:
        return Target(value.ctypes.data, value, value)
    memory = _numpy().empty(value.shape, value.dtype.newbyteorder("="))
    return Target(memory.ctypes.data, memory, value, into=value)


def new_sharded(dtype: str, like: Any, name: str) -> Optional[Target]:
    """Memory for what belongs to a DTensor and has its shape, sharded as it is."""
    torch = _torch()
    kind = getattr(torch, NAMES_TORCH.get(dtype, ""), None)
    if kind is None:
        raise TypeError(f"there is no tensor type for {dtype} here")
    value = torch.empty_like(like, dtype=kind, requires_grad=False)
    return target_of(value, name, dtype, tuple(like.shape))


def new_tensor(dtype: str, shape: Sizes, library: str) -> Target:
    """Memory for a whole tensor. A numpy array of a type that numpy lacks needs ml_dtypes."""
    word = NAMES_TORCH.get(dtype)
    if word is None:
        raise TypeError(f"there is no tensor type for {dtype} here")
    if library == "torch":
        import torch
        memory: Any = torch.empty(shape, dtype=getattr(torch, word))
        return Target(memory.data_ptr(), memory, memory)
    import numpy
    try:
        kind = numpy.dtype(word)
    except TypeError:
        try:
            import ml_dtypes  # type: ignore[import-not-found]
            kind = numpy.dtype(getattr(ml_dtypes, word))
        except ImportError:
            raise TypeError(f"numpy has no {word}: install ml_dtypes, or give torch tensors to "
                            "read into, with like=") from None
    memory = numpy.empty(shape, kind)
    return Target(memory.ctypes.data, memory, memory)
