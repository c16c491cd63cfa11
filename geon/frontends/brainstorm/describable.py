"""Descriptions: JSON-able data from which objects can be created again.

The description of a number, text, list or dictionary is itself. That of a ``Describable`` is a
dictionary with its class name under ``@type`` and its members. An object created from a description
is as if freshly made: a description holds no dynamic state.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_origin,
)

import numpy as np

from ...errors import ArgumentError, GeonError

Self = TypeVar("Self", bound="Describable")
Members: TypeAlias = set[str] | dict[str, Any]


class DescriptionError(GeonError, TypeError):
    """A value that has no description, or a description of nothing that is known.

    ``way`` leads to the value from the described object, such as ``[Trainer.hooks][best]``.
    """

    def __init__(self, message: str, way: str = "") -> None:
        super().__init__(message)
        self.way = way

    def __str__(self) -> str:
        return f"{self.way}: {self.args[0]}" if self.way else str(self.args[0])


class Describable:
    """Base of objects that have a description and can be created from it.

    ``__undescribed__`` names the members that are left out: a set, or a dictionary with the values
    that they get in an object created from a description. ``__default_values__`` maps members to
    values with which they are left out. Both are inherited.
    """

    __undescribed__: ClassVar[Members] = {}
    __default_values__: ClassVar[dict[str, Any]] = {}
    __members__: ClassVar[dict[str, Any]] = {}  # arguments of ``described`` classes, with defaults

    def __describe__(self) -> Any:
        """Return the description; override it for members that have none."""
        hidden, defaults = self.__get_all_undescribed__(), self.__get_all_default_values__()
        name = type(self).__name__
        described = {
            member: _describe(value, f"[{name}.{member}]")
            for member, value in vars(self).items()
            if member not in hidden
            and not (member in defaults and _is_equal(defaults[member], value))
        }
        return described | {"@type": name}

    @classmethod
    def __new_from_description__(cls: type[Self], description: dict[str, Any]) -> Self:
        """Return a new object with the described members, without calling ``__init__``."""
        if description["@type"] != cls.__name__:
            raise DescriptionError(
                f"a description of {description['@type']!r} was given to {cls.__name__}; use "
                "create_from_description, which finds the class"
            )
        instance = cls.__new__(cls)
        members = vars(instance)
        members.update(deepcopy(cls.__get_all_undescribed__()))
        members.update(deepcopy(cls.__get_all_default_values__()))
        for member, value in description.items():
            if member != "@type":
                members[member] = create_from_description(value)
        instance.__complete__()
        instance.__init_from_description__(description)
        return instance

    def __complete__(self) -> None:
        """Complete and check a new object that has its members, however it was created."""

    def __init_from_description__(self, description: dict[str, Any]) -> None:
        """Complete an object that has the described members; called once they are set."""

    @classmethod
    def __get_all_undescribed__(cls) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for names in _of_ancestors(cls, "__undescribed__"):
            found |= names if isinstance(names, dict) else dict.fromkeys(names)
        return found

    @classmethod
    def __get_all_default_values__(cls) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for values in _of_ancestors(cls, "__default_values__"):
            found |= values
        return found


def option(default: Any, kw_only: bool = False) -> Any:
    """Return a default with which ``described`` leaves a member out of descriptions.

    ``kw_only`` says to type checkers that the argument stands behind those of derived classes.
    """
    return _Default(default, True)


def hidden(default: Any, init: Literal[False] = False) -> Any:
    """Return the first value of a member of ``described`` that is no argument, nor described."""
    return _Default(default, False)


class _Default(NamedTuple):
    value: Any
    is_argument: bool


@dataclass_transform(eq_default=False, field_specifiers=(option, hidden))
def described(cls: type[Self]) -> type[Self]:
    """Give a class an ``__init__`` of its annotated members, then those of its base.

    It sets the members and calls ``__complete__``, which a description does, too.
    """
    empty = inspect.Parameter.empty
    own: dict[str, Any] = {}
    undescribed = vars(cls).get("__undescribed__", {})
    undescribed = dict(undescribed if isinstance(undescribed, dict) else dict.fromkeys(undescribed))
    defaults = dict(vars(cls).get("__default_values__", {}))
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        value = vars(cls).get(name, empty)
        if get_origin(annotation) is ClassVar or str(annotation).startswith("ClassVar"):
            continue
        if isinstance(value, _Default) and not value.is_argument:
            undescribed[name] = value.value
            delattr(cls, name)
            continue
        if isinstance(value, _Default):
            value = defaults[name] = value.value
            setattr(cls, name, value)
        own[name] = value
    inherited = {n: v for n, v in cls.__members__.items() if n not in {*own, *undescribed}}
    members = {**own, **inherited}
    cls.__members__, cls.__default_values__, cls.__undescribed__ = members, defaults, undescribed
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(n, kind, default=value) for n, value in members.items()]
    )

    def __init__(self: Self, *args: Any, **keywords: Any) -> None:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise ArgumentError(f"{cls.__name__}{signature}: {error}") from None
        bound.apply_defaults()
        vars(self).update(deepcopy(type(self).__get_all_undescribed__()))
        vars(self).update(bound.arguments)
        self.__complete__()

    shown = [inspect.Parameter("self", kind), *signature.parameters.values()]
    __init__.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign, assignment]
    return cls


def get_description(this: Any) -> Any:
    """Return the JSON-able description of a value.

    Tuples and arrays are described as lists. Raises ``DescriptionError``, a ``TypeError``, with the
    place of a value that has no description.
    """
    return _describe(this, "")


def _describe(this: Any, place: str) -> Any:
    """Return a description; ``place`` is the text of the way to the value, for errors."""
    if isinstance(this, np.generic):
        this = this.item()
    if this is None or isinstance(this, (bool, int, float, str)):
        return this
    try:
        if isinstance(this, Describable):
            return this.__describe__()
        if isinstance(this, (list, tuple)):
            return [_describe(value, f"[{i}]") for i, value in enumerate(this)]
        if isinstance(this, dict):
            return {key: _describe(value, f"[{key}]") for key, value in this.items()}
    except DescriptionError as error:
        error.way = place + error.way
        raise
    if isinstance(this, np.ndarray) and this.dtype != object:
        return this.tolist()
    raise DescriptionError(
        f"a {type(this).__name__} has no description; derive its class from Describable, or name "
        "the member in __undescribed__",
        place,
    )


def create_from_description(description: Any) -> Any:
    """Return a new object from its description.

    Raises ``DescriptionError``, a ``TypeError``, if no class or several have the described name.
    """
    if isinstance(description, dict):
        if "@type" in description:
            return find_describable(description["@type"]).__new_from_description__(description)
        return {key: create_from_description(value) for key, value in description.items()}
    if isinstance(description, list):
        return [create_from_description(value) for value in description]
    if description is None or isinstance(description, (bool, int, float, str)):
        return description
    raise DescriptionError(
        f"{description!r} of type {type(description).__name__} is no description; give what "
        "get_description or json.load returns"
    )


def find_describable(name: str) -> type[Describable]:
    """Return the subclass of ``Describable`` with a name; of one that was redefined, the newest."""
    known = {
        (cls.__module__, cls.__qualname__): cls for cls in _in_order_of_definition(Describable)
    }
    found = [cls for cls in known.values() if cls.__name__ == name]
    if len(found) == 1:
        return found[0]
    if found:
        places = " and ".join(sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in found))
        raise DescriptionError(
            f"several describable classes are called {name!r}: {places}; rename one of them"
        )
    names = ", ".join(sorted({c.__name__ for c in known.values() if c.__name__[0] != "_"}))
    raise DescriptionError(
        f"no describable class is called {name!r}; import the module that defines it; known are "
        f"{names}"
    )


def _in_order_of_definition(cls: type[Describable]) -> Iterator[type[Describable]]:
    for child in cls.__subclasses__():
        yield child
        yield from _in_order_of_definition(child)


def _of_ancestors(cls: type, attribute: str) -> Iterator[Any]:
    return (vars(c)[attribute] for c in reversed(cls.__mro__) if attribute in vars(c))


def _is_equal(default: Any, value: Any) -> bool:
    return type(default) is type(value) and bool(np.all(default == value))
