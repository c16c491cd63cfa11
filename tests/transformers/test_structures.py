"""Results in any structure: lists, tuples, dictionaries, dataclasses, and these in each other."""

import collections
import dataclasses
import enum
import importlib.util

import numpy as np
import pytest

import geon

C = geon.Axis("C", 3)
DATA = np.array([1, 2, 3], np.float32)
Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Outcome:
    """Plain, with a method and a field that is a structure itself."""

    loss: object
    parts: object = dataclasses.field(default_factory=dict)

    def twice(self):
        return 2 * self.loss


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """One that nobody may change, and whose fields are not arguments."""

    y: object
    z: object = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "z", self.y * 2)


class Keys(enum.Enum):
    A = 1


@pytest.fixture
def x():
    return geon.placeholder(C, name="x")


def structures(x, effect):
    """Structures of results, and what a call with DATA returns."""
    one, two = x + 1, x * 2
    a, b = DATA + 1, DATA * 2
    return {
        "dict": ({"a": one, "b": two}, {"a": a, "b": b}),
        "keys": ({1: one, (2, "x"): two, None: x}, {1: a, (2, "x"): b, None: DATA}),
        "ordered": (collections.OrderedDict(b=two, a=one), {"b": b, "a": a}),
        "nested": ([{"a": [one, two]}, (x,)], ({"a": (a, b)}, (DATA,))),
        "dict of dicts": ({"p": {"q": {"r": one}}}, {"p": {"q": {"r": a}}}),
        "effect": ({"a": one, "step": effect}, {"a": a, "step": None}),
        "effects alone": ({"step": effect, "rest": [effect]}, {"step": None, "rest": (None,)}),
        "named tuple": (Pair(one, [two]), Pair(a, (b,))),
        "flat named tuple": (Pair(one, two), Pair(a, b)),
        "dataclass": (Outcome(one, {"two": two}), Outcome(a, {"two": b})),
        "same twice": ({"a": one, "b": [one, one]}, {"a": a, "b": (a, a)}),
        "numbers": ({"a": one, "n": 5}, {"a": a, "n": np.int64(5)}),
        "empty": ({}, {}),
        "empty parts": ({"a": [], "b": {}, "c": one}, {"a": (), "b": {}, "c": a}),
        "tuple": ((one, two), (a, b)),
        "list": ([one, two], (a, b)),
        "single": (one, a),
        "one in a list": ([one], (a,)),
    }


NAMES = list(structures(1, 1))


def check(found, wanted):
    assert type(found) is type(wanted) or np.isscalar(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            check(found[key], wanted[key])
    elif isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check(one, other)
    elif dataclasses.is_dataclass(wanted):
        for field in dataclasses.fields(wanted):
            check(getattr(found, field.name), getattr(wanted, field.name))
    elif wanted is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, wanted)


def counted():
    count = geon.Variable(initial_value=0, dtype="int64")
    return count, geon.assign(count, count + 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keeping", [False, True])
def test_a_call_returns_the_structure_of_the_results(name, keeping, x, transformer):
    count, effect = counted()
    results, wanted = structures(x, effect)[name]
    kept = x - 1
    f = transformer.computation(results, x, keep=[kept] if keeping else ())
    for calls in range(1, 5):  # the later ones take a shorter way in
        check(f(DATA), wanted)
        if "effect" in name:
            assert transformer.get(count) == calls
    check(f(x=DATA), wanted)
    if keeping:
        np.testing.assert_array_equal(f.value(kept), DATA - 1)


def test_objects_are_copies_with_all_they_had(x, transformer):
    outcome = Outcome(geon.sum(x), [x * 2])
    f = transformer.computation(outcome, x)
    found = f(DATA)
    assert found is not outcome and isinstance(outcome.loss, geon.Tensor)
    assert found.twice() == 12
    frozen = transformer.computation([Frozen(x + 1)], x)(DATA)[0]
    assert type(frozen) is Frozen
    np.testing.assert_array_equal(frozen.y, DATA + 1)
    np.testing.assert_array_equal(frozen.z, 2 * (DATA + 1))


def test_axes_of_results_are_told_in_their_structure(x, transformer):
    w = geon.Variable(geon.Axis("H", 2), initial_value=0)
    _, effect = counted()
    outer = geon.outer(geon.multiply, w, x)
    f = transformer.computation({"a": [outer, geon.sum(x)], "e": effect}, x)
    assert f.axes == {"a": (outer.axes, geon.Axes()), "e": None}
    assert transformer.computation(outer, x).axes is outer.axes
    assert transformer.computation([outer, x], x).axes == (outer.axes, x.axes)


def test_out_has_the_structure_of_the_results(x, transformer):
    _, effect = counted()
    results = {"a": x + 1, "rest": [x * 2, effect], "o": Outcome(x - 1, geon.sum(x))}
    f = transformer.computation(results, x)
    a, b, c = (np.empty(3, np.float32) for _ in range(3))
    for _ in range(3):
        found = f(DATA, out={"a": a, "rest": [b, None], "o": Outcome(c, None)})
        assert found["a"] is a and found["rest"][0] is b and found["o"].loss is c
        assert found["o"].parts == 6
        np.testing.assert_array_equal([a, b, c], [DATA + 1, 2 * DATA, DATA - 1])
    found = f(DATA, out={"rest": None})
    assert found["rest"][0] is not b
    for wrong, words in {
        "out= was given a dictionary with the keys 'b' for results with the keys 'a', 'rest'": {
            "b": a
        },
        r"out=\['rest'\] was given 1 values for 2 results": {"rest": [b]},
        r"out=\['o'\] was given ndarray for results with the fields loss, parts": {"o": c},
        "out= was given ndarray for results with the keys": a,
    }.items():
        with pytest.raises(geon.ArgumentError, match=wrong):
            f(DATA, out=words)


def test_what_is_no_result_is_named_by_its_place(x, transformer):
    for results, place in [
        ({"a": [x, "text"]}, r"results\['a'\]\[1\]: 'text'"),
        (Outcome(x, None), r"results\.parts: None"),
        ([x, object()], r"results\[1\]: <object"),
    ]:
        with pytest.raises(geon.DTypeError, match=place):
            transformer.computation(results, x)
    endless = {"a": x}
    endless["b"] = [endless]
    with pytest.raises(geon.ArgumentError, match=r"results\['b'\]\[0\] contains itself"):
        transformer.computation(endless, x)


def test_a_written_module_returns_the_structures(x, tmp_path):
    count, effect = counted()
    with geon.NumPyTransformer() as transformer:
        wanted = {}
        for name, (results, values) in structures(x, effect).items():
            transformer.computation(results, x, name=f"f_{NAMES.index(name)}")
            wanted[name] = values
        transformer.write(tmp_path / "written.py")
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, values in wanted.items():
        found = getattr(module, f"f_{NAMES.index(name)}")(DATA)
        if name in ("dataclass", "named tuple", "flat named tuple"):
            continue
        check(found, values)
    found = module.f_9(DATA)
    np.testing.assert_array_equal(found.loss, DATA + 1)
    np.testing.assert_array_equal(found.parts["two"], DATA * 2)
    np.testing.assert_array_equal(module.f_8(DATA).second, DATA * 2)


def test_keys_that_no_text_has_cannot_be_written(x, tmp_path):
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation({Keys.A: x + 1}, x)
        np.testing.assert_array_equal(f(DATA)[Keys.A], DATA + 1)
        with pytest.raises(geon.ArgumentError, match="cannot be written to a file"):
            transformer.write(tmp_path / "written.py")
