"""Lazy dataclasses do what those of the standard library do, and generate what is used alone."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import pprint
import weakref
from dataclasses import FrozenInstanceError, field
from typing import ClassVar

import pytest

from geon.lazy_dataclasses import dataclass
from geon.testing.cases import for_each


def made():
    return [1, 2]


class Fields:
    """Fields of all sorts."""

    shared: ClassVar[int] = 3
    a: int
    b: "list[int]"
    c: float = 2.5
    d: list = field(default_factory=made)
    e: int = field(default=4, repr=False, compare=False)
    f: int = field(default=5, hash=False)
    g: int = field(default=6, init=False)
    h: list = field(default_factory=made, init=False, compare=False)
    i: int = field(default=7, compare=False, hash=True)


class Changed:
    """A field that is changed after all are set."""

    a: int
    b: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "b", (*self.b, self.a))


class Own:
    """Methods of its own."""

    a: int

    def __init__(self, a):
        object.__setattr__(self, "a", a + 1)

    def __repr__(self):
        return "own"

    def __eq__(self, other):
        return False

    def __hash__(self):
        return 11


class AllEqual:
    """An equality of its own, and no hash."""

    a: int

    def __eq__(self, other):
        return True


class Empty:
    """No fields."""


NAMES = ("eq", "repr", "frozen", "slots")
OPTIONS = [dict(zip(NAMES, on, strict=True)) for on in itertools.product((True, False), repeat=4)]
CALLS = [
    lambda cls: cls(),
    lambda cls: cls(1),
    lambda cls: cls(1, (2,)),
    lambda cls: cls(1, [2]),
    lambda cls: cls(a=1, b=(3,)),
    lambda cls: cls(*range(10)),
    lambda cls: cls(1, (), z=3),
    lambda cls: cls(1, (), d=[9], e=1, f=2),
    lambda cls: dataclasses.replace(cls(1, (2,)), a=5),
    lambda cls: copy.copy(cls(1, (2,))),
    lambda cls: copy.deepcopy(cls(1, (2,))),
]
ARGUMENTS = [(), (1,), (2,), (1, (2,)), (1, (3,)), (1, (2,), 3.5), (1, (2,), 2.5, (), 9, 9)]


def both(body, **options):
    """The class of a body, decorated by the standard library and by geon."""
    space = {name: vars(body)[name] for name in vars(body).keys() - {"__dict__", "__weakref__"}}
    for decorator in (dataclasses.dataclass, dataclass):
        yield decorator(**options)(type(body.__name__, (), dict(space)))


def outcome(function, *args):
    """The value of a call, or the kind and the text of what it raises."""
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


def seen(value):
    """What can be seen of an object, and what happens when it is changed."""
    if isinstance(value, tuple):
        return value
    cls = type(value)
    found = {
        "fields": [outcome(getattr, value, each.name) for each in dataclasses.fields(value)],
        "dictionary": outcome(dataclasses.asdict, value),
        "hash": outcome(hash, value) if cls.__hash__ is not object.__hash__ else None,
        "repr": repr(value) if cls.__repr__ is not object.__repr__ else None,
        "lines": pprint.pformat(value, width=20) if cls.__repr__ is not object.__repr__ else None,
        "takes others": outcome(setattr, value, "other", 8) is None,
    }
    for each in dataclasses.fields(value):
        found[f"set {each.name}"] = outcome(setattr, value, each.name, 8)
        found[f"{each.name} then"] = outcome(getattr, value, each.name)
        found[f"delete {each.name}"] = outcome(delattr, value, each.name)
    return found


@for_each("options", OPTIONS, ids=str)
def test_classes_are_those_of_the_standard_library(options):
    for body in (Fields, Changed, Own, AllEqual, Empty):
        expected, found = both(body, **options)
        assert str(inspect.signature(found)) == str(inspect.signature(expected))
        assert found.__init__.__qualname__ == expected.__init__.__qualname__
        assert (found.__hash__ is None) == (expected.__hash__ is None)
        assert found.__match_args__ == expected.__match_args__
        for call in CALLS:
            assert seen(outcome(call, found)) == seen(outcome(call, expected))
        for first, second in itertools.product(ARGUMENTS, ARGUMENTS):
            one, other = (
                outcome(lambda: (cls(*first) == cls(*second), cls(*first) != 3))  # noqa: B023
                for cls in (expected, found)
            )
            assert other == one


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Point:
    """A point of a plane."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Place(Point):
    """A point with a name."""

    name: str = ""


def test_methods_are_generated_when_they_are_first_used():
    @dataclass(frozen=True)
    class Pair:
        """Two values."""

        first: int
        second: int

    def generated():
        return [n for n in ("__init__", "__eq__", "__hash__") if inspect.isfunction(vars(Pair)[n])]

    assert generated() == []
    pair = Pair(1, 2)
    assert generated() == ["__init__"]
    assert pair == Pair(1, 2)
    assert generated() == ["__init__", "__eq__"]
    assert {pair: 3}[Pair(1, 2)] == 3
    assert generated() == ["__init__", "__eq__", "__hash__"]


def test_methods_of_a_class_are_no_others_for_its_subclasses():
    assert (Place(1, 2, "a"), Point(1, 2)) == (Place(1, 2, "a"), Point(1, 2))
    assert Place(1, 2) != Point(1, 2)
    assert repr(Place(1)) == "Place(x=1, y=0, name='')"
    assert weakref.ref(place := Place(3))() is place
    assert pickle.loads(pickle.dumps(Place(1, 2, "a"))) == Place(1, 2, "a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        Place(1).name = "b"
