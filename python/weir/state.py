"""State dicts without pickle: tensors apart, everything else as tagged JSON.

JSON values stand for themselves; what JSON lacks is an object {"$": kind, …}: tensors (by name),
tuples, dicts with other keys than strings, OrderedDicts, NaN and the infinities, bytes, sets,
complex numbers, enums (class and value), torch's Size, dtype and device, numpy's scalars. Anything
else is named in an UnstorableError, or pickled, if the caller said unsafe=True, into an opaque
value that loads only with unsafe=True.
"""
from __future__ import annotations

import base64
import enum
import json
import math
import pickle
import sys
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Iterator, Optional

from . import tensors

FORMAT = "state/1"
NAME_BYTES_MAX = 4096  # of a tensor, as the engine has it
Path = tuple[Any, ...]


class UnstorableError(TypeError):
    """Some values have no form without pickle. `values` are (path, type) pairs; where the type
    alone does not say why, the reason comes after it."""

    def __init__(self, values: list[tuple[str, str]]) -> None:
        self.values = values
        listed = "; ".join(f"{path} is a {kind}" for path, kind in values[:20])
        more = f"; and {len(values) - 20} more" if len(values) > 20 else ""
        super().__init__(f"cannot be stored without pickle: {listed}{more}. Leave them out, store "
                         "something simpler, or say unsafe=True where pickle can help")

    def __reduce__(self) -> Any:
        return UnstorableError, (self.values,)


def is_stateful(value: Any) -> bool:
    """A module, an optimizer, a scheduler: it gives and takes a state dict."""
    return callable(getattr(value, "state_dict", None)) and callable(
        getattr(value, "load_state_dict", None))


def path_text(path: Path) -> str:
    return ".".join(str(step) for step in path) or "the state"


def _is_tensor(value: Any) -> bool:
    return tensors.is_torch(value) or tensors.is_numpy(value)


def _identity(value: Any) -> Any:
    """The same for two views of the same bytes (tied weights): they are stored once. Views that
    conjugate or negate have other values in the same bytes; some tensors have no address."""
    if tensors.is_torch(value) and not tensors.is_dtensor(value) and value.numel():
        address = value.data_ptr()
        if address:
            return (address, value.dtype, value.shape, value.stride(), value.device,
                    value.is_conj(), value.is_neg())
    return id(value)


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def no_json(value: Any) -> Optional[str]:
    """Why it cannot be written as JSON; None if it can."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return f"{_type_name(value)} that is no JSON ({error})"
    return None


def _no_name(name: str) -> Optional[str]:
    """Why a tensor cannot be called so; None if it can."""
    if name == "__metadata__":
        return "whose name means something else in safetensors files"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "whose name is no Unicode text"
    if "\0" in name:
        return "whose name has a NUL in it"
    if size > NAME_BYTES_MAX:
        return f"whose name has {size} bytes; the limit is {NAME_BYTES_MAX}"
    return None


class Encoder:
    """Takes a state apart: `tensors` by name, and the JSON value that says where they were."""

    def __init__(self, unsafe: bool = False, local: Callable[[str], str] = str) -> None:
        """local: what a tensor of this name is called in the checkpoint."""
        self.unsafe = unsafe
        self.local = local
        self.tensors: dict[str, Any] = {}
        self.unstorable: list[tuple[str, str]] = []
        self._names: dict[Any, str] = {}
        self._above: set[int] = set()  # the containers we are in

    def _tensor(self, value: Any, path: Path) -> Any:
        why = tensors.has_no_data(value)
        if why is not None:
            self.refuse(path_text(path), f"{_type_name(value)} {why}")
            return None
        why = tensors.has_no_form(value)
        if why is not None:
            return self._opaque(value, path, why)
        key = _identity(value)
        if key not in self._names:
            base = name = self.local(path_text(path) if path else "tensor")
            n = 1
            while name in self.tensors:
                n += 1
                name = f"{base}~{n}"
            why = _no_name(name)
            if why is not None:
                self.refuse(name[:200].encode(errors="replace").decode(),
                            f"{_type_name(value)} {why}")
                return None
            self._names[key] = name
            self.tensors[name] = value
        tag = {"$": "tensor", "name": self._names[key]}
        if tensors.is_numpy(value):
            tag["as"] = "numpy"
        return tag

    def refuse(self, path: str, why: str) -> None:
        """For check(): `path` is a `why`."""
        self.unstorable.append((path, why))

    def _opaque(self, value: Any, path: Path, why: str = "") -> Any:
        if self.unsafe:
            try:
                data = pickle.dumps(value)
            except Exception as error:
                self.refuse(path_text(path), f"{_type_name(value)} ({error})")
                return None
            return {"$": "pickle", "base64": base64.b64encode(data).decode()}
        self.refuse(path_text(path), f"{_type_name(value)} {why}".rstrip())
        return None

    def _items(self, value: Any, path: Path) -> list[Any]:
        return [self.encode(item, path + (i,)) for i, item in enumerate(value)]

    def _dict(self, value: dict[Any, Any], path: Path) -> Any:
        plain = all(type(key) is str for key in value) and "$" not in value
        if plain and not isinstance(value, OrderedDict):
            return {key: self.encode(item, path + (key,)) for key, item in value.items()}
        pairs = [[self.encode(key, path + (key,)), self.encode(item, path + (key,))]
                 for key, item in value.items()]
        return {"$": "ordered" if isinstance(value, OrderedDict) else "dict", "items": pairs}

    def _container(self, value: Any, path: Path) -> Any:
        if id(value) in self._above:
            raise ValueError(f"{path_text(path)} contains itself")
        self._above.add(id(value))
        try:
            if isinstance(value, dict):
                return self._dict(value, path)
            if type(value) is list:
                return self._items(value, path)
            if type(value) in (set, frozenset):
                ordered = sorted(value, key=repr)  # the same state gives the same bytes
                return {"$": type(value).__name__, "items": self._items(ordered, path)}
            kind = "tuple" if type(value) is tuple else "size"
            return {"$": kind, "items": self._items(value, path)}
        finally:
            self._above.discard(id(value))

    def encode(self, value: Any, path: Path = ()) -> Any:
        """The JSON value for it."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "value": str(value)}
        if _is_tensor(value):
            return self._tensor(value, path)
        if kind in (dict, OrderedDict, defaultdict, list, tuple, set, frozenset):
            return self._container(value, path)
        if kind in (bytes, bytearray):
            return {"$": "bytes", "base64": base64.b64encode(value).decode()}
        if kind is complex:
            return {"$": "complex", "re": self.encode(value.real), "im": self.encode(value.imag)}
        if isinstance(value, enum.Enum):
            return {"$": "enum", "class": f"{kind.__module__}.{kind.__qualname__}",
                    "value": self.encode(value.value, path)}
        if is_stateful(value):
            return self.encode(value.state_dict(), path)
        return self._of_library(value, path)

    def check(self) -> None:
        """Raises what encode() met that cannot be stored."""
        if self.unstorable:
            raise UnstorableError(self.unstorable)

    def _of_library(self, value: Any, path: Path) -> Any:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None:
            if isinstance(value, torch.Size):
                return self._container(value, path)
            if isinstance(value, torch.dtype):
                return {"$": "dtype", "name": str(value)}
            if isinstance(value, torch.device):
                return {"$": "device", "name": str(value)}
        if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
            return {"$": "numpy", "dtype": value.dtype.str,
                    "base64": base64.b64encode(value.tobytes()).decode()}
        return self._opaque(value, path)


def to_text(root: Any, **more: Any) -> str:
    return json.dumps({"weir": FORMAT, "root": root, **more}, allow_nan=False)


def from_text(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("weir") != FORMAT:
        raise ValueError(f"the state is not of the format {FORMAT}: a newer Weir wrote it")
    return document


def references(root: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tensors in a JSON value, with where they belong."""
    if isinstance(root, list):
        for i, item in enumerate(root):
            yield from references(item, path + (i,))
    elif isinstance(root, dict) and root.get("$") == "tensor":
        yield path, root
    elif isinstance(root, dict) and root.get("$") in ("dict", "ordered"):
        for key, item in root["items"]:
            yield from references(item, path + (decode(key, _no_tensor),))
    elif isinstance(root, dict) and "$" in root:
        yield from references(root.get("items", []), path)
    elif isinstance(root, dict):
        for key, item in root.items():
            yield from references(item, path + (key,))


def _no_tensor(tag: dict[str, Any]) -> Any:
    raise ValueError(f"tensor '{tag.get('name')}' where none can be")


def select(root: Any, like: Any, path: Path = ()) -> Any:
    """The part of a JSON value that has a place in `like`: a dict there says which keys are
    wanted; anything else takes all. KeyError names what is missing, ValueError what is of another
    kind or length where objects in `like` wait for their state."""
    if not isinstance(like, dict):
        return _select_items(root, like, path) if _has_stateful_items(like) else root
    if not isinstance(root, dict) or root.get("$") not in (None, "dict", "ordered"):
        if has_stateful(like):
            raise _does_not_fit(root, like, path)
        return root
    if root.get("$") in ("dict", "ordered"):
        have = {decode(key, _no_tensor): (key, item) for key, item in root["items"]}
        _check_keys(like, have, path)
        pairs = [[have[key][0], select(have[key][1], item, path + (key,))]
                 for key, item in like.items()]
        return {"$": root["$"], "items": pairs}
    _check_keys(like, root, path)
    return {key: select(root[key], item, path + (key,)) for key, item in like.items()}


def _has_stateful_items(like: Any) -> bool:
    return isinstance(like, (list, tuple)) and has_stateful(like)


def _select_items(root: Any, like: Any, path: Path) -> Any:
    """Of a list or a tuple with stateful objects below."""
    is_tuple = isinstance(root, dict) and root.get("$") == "tuple"
    items = root["items"] if is_tuple else root
    if is_tuple != isinstance(like, tuple) or not isinstance(items, list) or (
            len(items) != len(like)):
        raise _does_not_fit(root, like, path)
    found = [select(item, like[i], path + (i,)) for i, item in enumerate(items)]
    return {**root, "items": found} if is_tuple else found


def _does_not_fit(root: Any, like: Any, path: Path) -> ValueError:
    kind, items = "list", root
    if isinstance(root, dict):
        kind, items = root.get("$", "dict"), root.get("items", root)
    elif not isinstance(root, list):
        kind, items = "plain value", [root]
    return ValueError(f"{path_text(path)} is a {type(like).__name__} of {len(like)} with objects "
                      f"to restore, and a {kind} of {len(items)} in the checkpoint")


def _check_keys(like: Any, have: Any, path: Path) -> None:
    missing = [path_text(path + (key,)) for key in like if key not in have]
    if missing:
        raise KeyError(f"the checkpoint has no {', '.join(missing[:10])}"
                       + (f" and {len(missing) - 10} more" if len(missing) > 10 else ""))


def stateful_in(like: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The stateful objects, with where they are."""
    if is_stateful(like):
        yield path, like
    elif isinstance(like, dict):
        for key, item in like.items():
            yield from stateful_in(item, path + (key,))
    elif isinstance(like, (list, tuple)):
        for i, item in enumerate(like):
            yield from stateful_in(item, path + (i,))


def has_stateful(like: Any) -> bool:
    return any(True for _ in stateful_in(like))


def open_up(like: Any) -> Any:
    """A state with the stateful objects in it replaced by their state dicts."""
    if is_stateful(like):
        return open_up(like.state_dict())
    if isinstance(like, dict):
        return {key: open_up(item) for key, item in like.items()}
    if isinstance(like, (list, tuple)):
        return [open_up(item) for item in like]
    return like


def put_back(like: Any, loaded: Any) -> Any:
    """Gives the stateful objects of `like` what was loaded for them; the rest is as loaded. What
    was loaded is what select() let through: it fits."""
    if is_stateful(like):
        like.load_state_dict(loaded)
        return like
    if isinstance(like, dict) and isinstance(loaded, dict):
        for key, item in like.items():
            loaded[key] = put_back(item, loaded[key])
    elif _has_stateful_items(like):
        return type(loaded)(put_back(a, b) for a, b in zip(like, loaded))
    return loaded


def at(state: Any, path: Path) -> Any:
    """What is there in an opened-up state; None if nothing is."""
    for step in path:
        try:
            state = state[step]
        except (KeyError, IndexError, TypeError):
            return None
    return state


def decode(root: Any, tensor: Callable[[dict[str, Any]], Any], unsafe: bool = False) -> Any:
    """The state again; tensor(tag) gives the tensors."""
    def each(items: list[Any]) -> list[Any]:
        return [decode(item, tensor, unsafe) for item in items]

    if isinstance(root, list):
        return each(root)
    if not isinstance(root, dict):
        return root
    kind = root.get("$")
    if kind is None:
        return {key: decode(item, tensor, unsafe) for key, item in root.items()}
    if kind == "tensor":
        return tensor(root)
    if kind in ("dict", "ordered"):
        pairs = [(decode(key, tensor, unsafe), decode(item, tensor, unsafe))
                 for key, item in root["items"]]
        return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
    if kind in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](each(root["items"]))
    if kind == "complex":
        return complex(decode(root["re"], tensor), decode(root["im"], tensor))
    if kind == "float":
        return float(root["value"])
    if kind == "bytes":
        return base64.b64decode(root["base64"])
    if kind == "enum":
        return _enum(root["class"], decode(root["value"], tensor, unsafe))
    if kind == "pickle":
        if not unsafe:
            raise ValueError("the state has a pickled value, which can run any code when it is "
                             "loaded: say unsafe=True if you trust who wrote it")
        return pickle.loads(base64.b64decode(root["base64"]))
    return _library_value(kind, root, each)


def _enum(name: str, value: Any) -> Any:
    """The member, if its class is in a module that is imported already; else the bare value."""
    module, _, rest = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, head = module.rpartition(".")
        rest = f"{head}.{rest}"
    found: Optional[Any] = sys.modules.get(module)
    for part in rest.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, enum.Enum):
        return found(value)
    return value


def _library_value(kind: str, root: dict[str, Any], each: Callable[[list[Any]], list[Any]]) -> Any:
    if kind == "numpy":
        import numpy
        return numpy.frombuffer(base64.b64decode(root["base64"]), root["dtype"])[0]
    if kind not in ("size", "dtype", "device"):
        raise ValueError(f"the state has a value of the unknown kind '{kind}': a newer Weir wrote "
                         "it")
    import torch
    if kind == "size":
        return torch.Size(each(root["items"]))
    if kind == "device":
        return torch.device(root["name"])
    found = getattr(torch, root["name"].removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"there is no {root['name']} here")
    return found
