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
Path = tuple[Any, ...]


class UnstorableError(TypeError):
    """Some values have no form without pickle. `values` are (path, type) pairs."""

    def __init__(self, values: list[tuple[str, str]]) -> None:
        self.values = values
        listed = "; ".join(f"{path} is a {kind}" for path, kind in values[:20])
        more = f"; and {len(values) - 20} more" if len(values) > 20 else ""
        super().__init__(f"cannot be stored without pickle: {listed}{more}. Leave them out, store "
                         "something simpler, or say unsafe=True")

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
    """The same for two views of the same bytes (tied weights): they are stored once."""
    if tensors.is_torch(value) and not tensors.is_dtensor(value) and value.numel():
        return (value.data_ptr(), value.dtype, value.shape, value.stride(), value.device)
    return id(value)


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
        try:
            tensors.dtype_of(value)
        except TypeError:
            return self._opaque(value, path)
        key = _identity(value)
        if key not in self._names:
            base = name = self.local(path_text(path) if path else "tensor")
            n = 1
            while name in self.tensors:
                n += 1
                name = f"{base}~{n}"
            self._names[key] = name
            self.tensors[name] = value
        tag = {"$": "tensor", "name": self._names[key]}
        if tensors.is_numpy(value):
            tag["as"] = "numpy"
        return tag

    def _opaque(self, value: Any, path: Path) -> Any:
        if self.unsafe:
            try:
                data = pickle.dumps(value)
            except Exception as error:
                self.unstorable.append((path_text(path), f"{type(value).__name__} ({error})"))
                return None
            return {"$": "pickle", "base64": base64.b64encode(data).decode()}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.unstorable.append((path_text(path), kind.removeprefix("builtins.")))
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
    wanted; anything else takes all. KeyError names what is missing."""
    if not isinstance(like, dict) or not isinstance(root, dict):
        return root
    if root.get("$") in ("dict", "ordered"):
        have = {decode(key, _no_tensor): (key, item) for key, item in root["items"]}
        _check_keys(like, have, path)
        pairs = [[have[key][0], select(have[key][1], item, path + (key,))]
                 for key, item in like.items()]
        return {"$": root["$"], "items": pairs}
    if "$" in root:
        return root
    _check_keys(like, root, path)
    return {key: select(root[key], item, path + (key,)) for key, item in like.items()}


def _check_keys(like: Any, have: Any, path: Path) -> None:
    missing = [path_text(path + (key,)) for key in like if key not in have]
    if missing:
        raise KeyError(f"the checkpoint has no {', '.join(missing[:10])}"
                       + (f" and {len(missing) - 10} more" if len(missing) > 10 else ""))


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
    """Gives the stateful objects of `like` what was loaded for them; the rest is as loaded."""
    if is_stateful(like):
        like.load_state_dict(loaded)
        return like
    if isinstance(like, dict) and isinstance(loaded, dict):
        for key, item in like.items():
            loaded[key] = put_back(item, loaded[key])
    elif isinstance(like, list) and isinstance(loaded, list) and len(like) == len(loaded):
        return [put_back(a, b) for a, b in zip(like, loaded)]
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
