"""Checks of arguments by their annotations, and the parts of a program that messages name."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from ...errors import ArgumentError, GeonError
from ...op_graph.core.source_info import ROOT, describe, user_site

T = TypeVar("T", bound=Callable[..., Any])
Kind = tuple[Callable[[Any], bool], str]  # a test, and what passes it

ANY: Kind = (lambda x: True, "anything")
KINDS: dict[str, Kind] = {
    "Any": ANY,
    "float": (lambda x: isinstance(x, Real) and not isinstance(x, bool), "a number"),
    "int": (lambda x: isinstance(x, Integral) and not isinstance(x, bool), "an integer"),
    "bool": (lambda x: isinstance(x, (bool, np.bool)), "True or False"),
    "str": (lambda x: isinstance(x, str), "a text"),
}
"""Tests of arguments by annotation."""
_getframe = sys._getframe


class NamedErrors:
    """Context that begins the message of an error of geon with the part of the program that failed.

    ``name`` returns that text. Of contexts of one ``kind`` inside each other, the innermost names.
    """

    def __init__(self, kind: str, name: Callable[[], str]) -> None:
        self.kind, self.name = kind, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        kinds = getattr(error, "named", ())
        if isinstance(error, GeonError) and self.kind not in kinds:
            error.args = (f"{self.name()}: {error}",)
            error.named = (*kinds, self.kind)  # type: ignore[attr-defined]  # marks it as named


class ArgumentChecks:
    """A decorator of functions, and of classes with their public methods, that checks arguments.

    An argument must be what the annotation says: a type of ``KINDS``, a class by its name, a list
    (``Sequence``) of these, a dictionary (``Mapping``) or a function (``Callable``), each also
    ``| None``. Others are not checked. ``classes`` has what to give for each class by name.

    Errors of geon get the name of the function, and the place of the call. Calls of geon's own are
    not checked.
    """

    def __init__(self, classes: Mapping[str, str]) -> None:
        self.classes = classes
        self.kind_of = functools.cache(self._kind_of)

    def _kind_of(self, annotation: str) -> Kind | None:
        """Return the test of an argument of an annotation; None if there is none."""
        inner = annotation.removesuffix(" | None")
        if inner != annotation:
            found = self.kind_of(inner)
            return found and (lambda x: x is None or found[0](x), f"{found[1]}, or None")
        if annotation.startswith("Mapping["):
            return lambda x: isinstance(x, Mapping), "a dictionary"
        if annotation.startswith("Sequence["):
            each = self.kind_of(annotation[len("Sequence[") : -1])
            if each is None or each is ANY:
                return is_list, "a list"
            return lambda x: is_list(x) and all(map(each[0], x)), f"a list, each {each[1]}"
        if annotation.startswith("Callable["):
            return callable, "a function"
        if annotation in self.classes:
            name = annotation.rpartition(".")[2]
            return lambda x: has_class(type(x), name), self.classes[annotation]  # type: ignore[arg-type]  # a class hashes
        return KINDS.get(annotation)

    def check(self, parameter: inspect.Parameter, value: Any) -> None:
        """Raise ``ArgumentError`` for an argument of another type than its parameter says.

        That is the annotation, or without one the type of the default.
        """
        p = parameter
        stated = type(p.default).__name__ if p.annotation is p.empty else str(p.annotation)
        kind = self.kind_of(stated)
        if kind is not None and not kind[0](value):
            raise ArgumentError(f"{p.name}={value!r:.80}; give {kind[1]}")

    def __call__(self, made: T, what: str = "") -> T:
        """Return a function or class with checks; ``what`` names the function in messages.

        A text that begins with a dot is a method: its class is put before it.
        """
        if isinstance(made, type):
            for name, method in list(vars(made).items()):
                if name[0] != "_" or name in ("__init__", "__call__"):
                    shown = "." if name[0] == "_" else f".{name}"
                    if inspect.isfunction(method):
                        setattr(made, name, self(method, shown))
                    elif isinstance(method, classmethod):
                        setattr(made, name, classmethod(self(method.__func__, shown)))
            return made
        parameters = inspect.signature(made).parameters.values()
        kinds = {p.name: self.kind_of(str(p.annotation)) or ANY for p in parameters}
        tested = {p.name: (p, kinds[p.name][0]) for p in parameters if kinds[p.name] is not ANY}
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        more = [p for p in parameters if p.kind is p.VAR_POSITIONAL and p.name in tested]
        places = [(k, *tested[name]) for k, name in enumerate(names) if name in tested]

        @functools.wraps(made)
        def call(*arguments: Any, **options: Any) -> Any:
            if _getframe(1).f_code.co_filename.startswith(ROOT):  # a call of geon's own
                return made(*arguments, **options)
            try:
                count = len(arguments)
                for k, parameter, test in places:
                    if k < count and not test(arguments[k]):
                        self.check(parameter, arguments[k])
                for parameter in more:
                    for value in arguments[len(names) :]:
                        self.check(parameter, value)
                for name in options:
                    if name in tested and not tested[name][1](options[name]):
                        self.check(tested[name][0], options[name])
                return made(*arguments, **options)
            except GeonError as error:
                place = describe(user_site())
                if place not in str(error):
                    shown = what or made.__name__
                    if what[:1] == ".":
                        owner = arguments[0]
                        kind = owner if isinstance(owner, type) else type(owner)
                        shown = kind.__name__ + what.rstrip(".")
                    error.args = (f"{shown} at {place}: {error}",)
                raise

        return call  # type: ignore[return-value]  # of the same signature


def is_list(x: Any) -> bool:
    """Return True for a sequence that is no text."""
    return isinstance(x, (list, tuple)) or (isinstance(x, Sequence) and not isinstance(x, str))


@functools.cache
def has_class(kind: Any, name: str) -> bool:
    """Return True for the class of a name, and those derived from it."""
    return any(each.__name__ == name for each in kind.__mro__)


# Inputs of functions of values --------------------------------------------------------------------


def name_of(parameter: inspect.Parameter) -> str:
    """Return the name of a parameter, with a star if it takes any number of arguments."""
    return str(parameter).split(":")[0].split("=")[0]


def takes_inputs(parameters: Sequence[inspect.Parameter], number: int) -> bool:
    """Return True if a function of these positional parameters takes so many arguments."""
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return len(_needed(parameters)) <= number and (is_open or number <= len(parameters))


def _needed(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    return [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]


def check_inputs(parameters: Sequence[inspect.Parameter], values: Sequence[Any]) -> None:
    """Raise ``ArgumentError`` unless a function of these positional parameters takes the values.

    One may be None if its annotation says so.
    """
    needed = _needed(parameters)
    if not takes_inputs(parameters, len(values)):
        names = ", ".join(map(name_of, parameters))
        raise ArgumentError(
            f"it takes the inputs ({names}), of which the first {len(needed)} are needed, and was "
            f"given {len(values)}; give one for each"
        )
    for p, value in zip(needed, values, strict=False):
        if value is None and "None" not in str(p.annotation):
            raise ArgumentError(f"the input {p.name} is None; give a tensor")
