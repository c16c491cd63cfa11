"""Objects become JSON-able descriptions, and are created again from them."""

import inspect
import json
from typing import ClassVar

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError
from geon.frontends.brainstorm.describable import (
    Describable,
    create_from_description,
    described,
    get_description,
    hidden,
    option,
)
from geon.frontends.brainstorm.hooks import Hook


class Base(Describable):
    __undescribed__ = {"secret"}
    __default_values__ = {"a": 1}

    def __init__(self, a=1, b=None):
        self.a, self.b, self.secret, self.cache = a, b, object(), [1, 2]


class Derived(Base):
    __undescribed__ = {"cache": ["fresh"]}
    __default_values__ = {"b": "default"}

    def __init_from_description__(self, description):
        self.seen = description


def round_trip(value):
    return create_from_description(json.loads(json.dumps(get_description(value))))


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "text", [1, [2.0, "a"]], {"a": {"b": [1]}}])
def test_values_describe_themselves(value):
    assert get_description(value) == value
    assert round_trip(value) == value


def test_numbers_and_arrays_of_numpy_become_plain():
    found = get_description({"a": np.int64(3), "b": np.arange(4.0).reshape(2, 2), "c": (1, 2)})
    assert found == {"a": 3, "b": [[0.0, 1.0], [2.0, 3.0]], "c": [1, 2]}
    assert type(found["a"]) is int


def test_members_defaults_and_undescribed_are_inherited():
    thing = Derived(b="default")
    assert get_description(thing) == {"@type": "Derived"}
    assert get_description(Derived(2, [Base(3)])) == {
        "@type": "Derived",
        "a": 2,
        "b": [{"@type": "Base", "a": 3, "b": None, "cache": [1, 2]}],
    }


def test_creation_sets_defaults_and_undescribed_members():
    one, two = round_trip([Derived(2, "x"), Derived()])
    assert (one.a, one.b, one.secret, one.cache) == (2, "x", None, ["fresh"])
    assert one.seen == {"@type": "Derived", "a": 2, "b": "x"}
    assert (two.a, two.b) == (1, None)
    assert one.cache is not two.cache


def test_the_place_of_what_has_no_description_is_named():
    with pytest.raises(TypeError) as caught:
        get_description({"key": [0, Derived(b={"inner": [object()]})]})
    assert isinstance(caught.value, geon.GeonError)
    assert str(caught.value).startswith("[key][1][Derived.b][inner][0]: a object")


def test_unknown_and_invalid_descriptions_are_refused():
    with pytest.raises(TypeError, match="no describable class is called 'Nobody'.*Derived"):
        create_from_description({"@type": "Nobody"})
    with pytest.raises(TypeError, match="of type object is no description"):
        create_from_description([object()])
    with pytest.raises(TypeError, match="'Derived' was given to Base"):
        Base.__new_from_description__({"@type": "Derived"})


def test_a_name_of_two_classes_is_refused_and_that_of_a_redefined_one_is_the_newest():
    kept = [type("Twice", (Describable,), {"__module__": name}) for name in ("one", "two")]
    with pytest.raises(TypeError, match="several.*'Twice': one.Twice and two.Twice"):
        create_from_description({"@type": "Twice"})
    again = [type("Again", (Describable,), {"__module__": "one"}) for _ in range(2)]
    assert type(create_from_description({"@type": "Again"})) is again[1]
    assert len(kept) == 2


@described
class Named(Describable):
    __undescribed__ = {"label"}
    name: str = option(default="x", kw_only=True)
    seen: list[int] = hidden(default=[])
    kind: ClassVar[str] = "none"

    def __complete__(self):
        self.label = f"<{self.name}>"


@described
class Sized(Named):
    size: int
    factor: float = 1.0


def test_members_are_arguments():
    first, second = Sized(3, 2.0, "y"), Sized(size=3, name="y", factor=2.0)
    first.seen.append(1)
    assert vars(second) == {"size": 3, "factor": 2.0, "name": "y", "seen": [], "label": "<y>"}
    assert get_description(first) == {"@type": "Sized", "size": 3, "factor": 2.0, "name": "y"}
    assert get_description(Sized(1)) == {"@type": "Sized", "size": 1, "factor": 1.0}
    again = create_from_description(get_description(first))
    assert vars(again) == vars(second)
    assert str(inspect.signature(Sized)) == "(size, factor=1.0, name='x')"


def test_wrong_arguments_name_the_right_ones():
    for args, keywords, message in (
        ((), {}, "missing a required argument: 'size'"),
        ((1,), {"sise": 2}, "got an unexpected keyword argument 'sise'"),
        ((1,), {"seen": []}, "got an unexpected keyword argument 'seen'"),
    ):
        with pytest.raises(ArgumentError, match=rf"Sized\(size, factor=1.0, name='x'\): {message}"):
            Sized(*args, **keywords)


class Counter(Hook):
    def __init__(self, first=1, **common):
        super().__init__(**common)
        self.first = first

    def __init_from_description__(self, description):
        self.count = description["first"]


def test_a_hook_may_override_how_it_is_created_from_a_description():
    hook = Counter(3, name="counter", interval=2)
    assert (hook.__name__, hook.interval, hook.priority) == ("counter", 2, 0)
    assert not hasattr(hook, "count")
    again = create_from_description(get_description(hook))
    assert (again.__name__, again.interval, again.first, again.count) == ("Counter", 2, 3, 3)
