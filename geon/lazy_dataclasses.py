"""``dataclass``: the decorator of ``dataclasses``, whose methods are generated at first use.

The standard library compiles a text for each method when a class is defined, in 0.1 to 0.4 ms for
each class. A process that compiles a program defines two hundred classes and uses few of their
methods. Here a class is defined in 0.03 ms, and a method is generated when it is first read.

Classes are dataclasses for ``fields``, ``replace``, ``asdict``, ``is_dataclass`` and type checkers.
All classes of a hierarchy use this decorator, and fields are not keyword-only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import wraps
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        slots: bool = False,
        weakref_slot: bool = False,
    ) -> Any:
        """Make ``cls`` a dataclass; the options are those of ``dataclasses.dataclass``."""

        def decorated(cls: type) -> type:
            own = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot
            )
            return _with_methods(own(cls), init, repr, eq, frozen, slots)

        return decorated if cls is None else decorated(cls)


def _with_methods(cls: type, init: bool, repr: bool, eq: bool, frozen: bool, slots: bool) -> type:
    """Add the methods to a class that has its fields, except those that it defines itself."""
    methods: dict[str, Any] = {}
    if init:
        methods["__init__"] = _LaterMethod(cls, "__init__", _frozen_init if frozen else _init)
    if repr:
        methods["__repr__"] = _repr
        vars(cls)["__dataclass_params__"].repr = True  # which ``pprint`` reads
    if eq:
        methods["__eq__"] = _LaterMethod(cls, "__eq__", _eq)
        methods["__hash__"] = _LaterMethod(cls, "__hash__", _hash) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        if slots:  # copies and pickles restore the state, which assigns fields
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if vars(cls).get(name) is None:  # a class that defines `__eq__` has None as its `__hash__`
            setattr(cls, name, method)
    return cls


class _LaterMethod:
    """The method ``name`` of ``owner``, which ``generate(owner)`` replaces when it is read."""

    def __init__(self, owner: type, name: str, generate: Callable[[type], Any]) -> None:
        self.owner, self.name, self.generate = owner, name, generate

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self.generate(self.owner)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, owner)


class _Factory:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _function(
    cls: type, name: str, parameters: Iterable[str], body: Iterable[str], **known: Any
) -> Any:
    """Return the method of a text, which reads the ``known`` names.

    Its file is ``<string>`` and its module that of the class, as the standard library's are.
    """
    lines = "".join(f"\n    {line}" for line in body)
    space = {"__name__": cls.__module__, **known}
    exec(f"def {name}({', '.join(parameters)}):{lines}", space)
    made = space[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _init(cls: type, frozen: bool = False) -> Any:
    """Return ``__init__``, which stores a parameter or a default in each field, in their order."""
    parameters, body = ["self"], []
    known: dict[str, Any] = {"_FACTORY": _FACTORY, "_assign": object.__setattr__}
    for field in fields(cls):
        name, default = field.name, f"_{field.name}_default"
        parameter = value = name
        if field.default_factory is not MISSING:
            known[default] = field.default_factory
            parameter, made = f"{name}=_FACTORY", f"{default}()"
            value = f"{made} if {name} is _FACTORY else {name}" if field.init else made
        elif field.default is not MISSING:
            known[default] = field.default
            parameter, value = f"{name}={default}", name if field.init else default
        if field.init:
            parameters.append(parameter)
        if field.init or default in known:
            body.append(f"_assign(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    init = _function(cls, "__init__", parameters, body or ["pass"], **known)
    types = {each.name: each.type for each in fields(cls) if each.init}
    init.__annotations__ = {**types, "return": None}
    return init


def _frozen_init(cls: type) -> Any:
    """Return ``__init__`` of a class whose ``__setattr__`` refuses assignments."""
    return _init(cls, frozen=True)


def _values(cls: type, of: str, names: Iterable[str]) -> str:
    """Return the text of the tuple of these fields of an object."""
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _eq(cls: type) -> Any:
    """Return ``__eq__``, which compares the fields of objects of the same class."""
    names = [each.name for each in fields(cls) if each.compare]
    body = [
        "if other.__class__ is not self.__class__:",
        "    return NotImplemented",
        f"return {_values(cls, 'self', names)} == {_values(cls, 'other', names)}",
    ]
    return _function(cls, "__eq__", ("self", "other"), body)


def _hash(cls: type) -> Any:
    """Return ``__hash__``, of the compared fields or of those whose ``hash`` is set."""
    hashed = [
        each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)
    ]
    return _function(cls, "__hash__", ("self",), [f"return hash({_values(cls, 'self', hashed)})"])


def _shown(self: Any) -> str:
    """Return the name of the class and the fields with their values."""
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


_shown.__qualname__ = "__create_fn__.<locals>.__repr__"  # ``pprint`` knows generated ones by it
_repr = wraps(_shown)(recursive_repr()(_shown))


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """Return the values of all fields, for ``pickle`` and ``copy``."""
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    """Set all fields to the values of ``_state``."""
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
