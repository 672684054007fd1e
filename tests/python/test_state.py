"""State dicts as tagged JSON: what goes in comes out, and what cannot go in is named."""
import collections
import enum
import json
import math
import random

import pytest
from weir import UnstorableError
from weir import state as states

numpy = pytest.importorskip("numpy")


class Colour(enum.Enum):
    RED = "r"
    BLUE = 7


class Level(enum.IntEnum):
    LOW = 1


def round_trip(value, unsafe=False):
    encoder = states.Encoder(unsafe)
    root = encoder.encode(value)
    encoder.check()
    document = states.from_text(states.to_text(root))
    return states.decode(document["root"], lambda tag: encoder.tensors[tag["name"]], unsafe)


def same(a, b):
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return (type(a) is type(b) and list(a) == list(b) and [type(k) for k in a] ==
                [type(k) for k in b] and all(same(a[k], b[k]) for k in a))
    if isinstance(a, complex):
        return repr(a) == repr(b)
    if isinstance(a, numpy.ndarray):
        return a is b
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("value", [
    None, True, False, 0, -1, 2**200, 0.1, 1e300, -0.0, 5e-324, "", "ü\u0000\U0001f600", "\ud800",
    math.nan, math.inf, -math.inf, b"", b"\x00\xff", 1 + 2j, complex(math.nan, math.inf),
    [], (), {}, set(), frozenset(), [1, (2, [3, ()])], {1: 2}, {1: "a", "1": "b"}, {"$": 1},
    {"$": "tensor", "name": "x"}, {(1, "a"): None, None: 3, True: 4, 2.5: 5}, {1, 2, 3},
    frozenset({"a"}), collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.OrderedDict([(3, 1)]), Colour.RED, Colour.BLUE, {Colour.RED: 1}, Level.LOW,
    {"a": {"b": [{"c": (1, None)}]}}, random.Random(3).getstate(),
], ids=repr)
def test_round_trip(value):
    assert same(value, round_trip(value))


def test_zero_keeps_its_sign():
    assert math.copysign(1, round_trip(-0.0)) == -1


def test_numpy_values():
    assert same(numpy.float32(1) / 3, round_trip(numpy.float32(1) / 3))
    assert same(numpy.int8(-3), round_trip(numpy.int8(-3)))
    value = {"a": [numpy.arange(3), (numpy.zeros(2, "f4"),)]}
    assert same(value, round_trip(value))


def test_text_is_json_that_others_read():
    encoder = states.Encoder()
    text = states.to_text(encoder.encode({"x": math.nan, "t": (1,), 2: "b"}))
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_names_are_paths():
    encoder = states.Encoder()
    encoder.encode({"model": {"w": numpy.zeros(1)}, "optimizer": {"state": {0: numpy.ones(1)}},
                    "list": [numpy.ones(2)]})
    assert list(encoder.tensors) == ["model.w", "optimizer.state.0", "list.0"]


def test_names_are_unique():
    encoder = states.Encoder()
    root = encoder.encode({"a.b": numpy.zeros(1), "a": {"b": numpy.ones(1)}})
    assert list(encoder.tensors) == ["a.b", "a.b~2"]
    back = states.decode(root, lambda tag: encoder.tensors[tag["name"]])
    assert back["a"]["b"][0] == 1 and back["a.b"][0] == 0


def test_one_tensor_in_two_places_is_stored_once():
    encoder = states.Encoder()
    w = numpy.zeros(3)
    root = encoder.encode({"a": w, "b": w})
    assert list(encoder.tensors) == ["a"] and root["b"]["name"] == "a"


class Thing:
    pass


def test_what_cannot_be_stored_is_named_all_of_it():
    encoder = states.Encoder()
    encoder.encode({"ok": 1, "opt": {"hook": print, "list": [Thing()]}})
    with pytest.raises(UnstorableError) as error:
        encoder.check()
    assert [path for path, _ in error.value.values] == ["opt.hook", "opt.list.0"]
    assert "test_state.Thing" in str(error.value)


def test_named_tuples_do_not_silently_become_tuples():
    encoder = states.Encoder()
    encoder.encode({"p": collections.namedtuple("P", "x")(1)})
    with pytest.raises(UnstorableError, match="p is a .*P"):
        encoder.check()


def test_opaque_values_need_unsafe_both_ways():
    encoder = states.Encoder(unsafe=True)
    root = encoder.encode({"f": collections.Counter("aab")})
    encoder.check()
    with pytest.raises(ValueError, match="unsafe=True"):
        states.decode(root, None)
    assert states.decode(root, None, unsafe=True) == {"f": collections.Counter("aab")}


def test_a_loop_is_refused():
    value = {"a": []}
    value["a"].append(value)
    with pytest.raises(ValueError, match="a.0 contains itself"):
        states.Encoder().encode(value)


def test_enums_of_modules_not_imported_become_their_values():
    assert states.decode({"$": "enum", "class": "not.imported.Kind", "value": 3}, None) == 3
    assert states.decode({"$": "enum", "class": "os.system", "value": "true"}, None) == "true"


def test_a_newer_format_is_refused():
    with pytest.raises(ValueError, match="newer Weir"):
        states.from_text('{"weir": "state/2", "root": 1}')
    with pytest.raises(ValueError, match="unknown kind 'blob'"):
        states.decode({"$": "blob"}, None)


def test_select_takes_what_is_wanted_and_names_what_is_missing():
    encoder = states.Encoder()
    root = encoder.encode({"a": {"x": 1, "y": 2}, "b": {1: 3, 2: 4}})
    assert states.select(root, {"a": {"y": 0}}) == {"a": {"y": 2}}
    assert states.decode(states.select(root, {"b": {2: 0}}), None) == {"b": {2: 4}}
    with pytest.raises(KeyError, match="a.z"):
        states.select(root, {"a": {"z": 0}})
