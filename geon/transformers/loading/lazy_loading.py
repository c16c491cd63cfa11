"""Modules and targets that are loaded when they are first used.

A process that recalls a program from the disk cache loads neither the stages nor the reports.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class LaterModule:
    """Stand for the module ``name``, relative to ``package``, and import it when it is first used.

    Type checkers are told of the module itself::

        if TYPE_CHECKING:
            from . import pipeline
        else:
            pipeline = LaterModule(".pipeline", __package__)
    """

    def __init__(self, name: str, package: str) -> None:
        self._name, self._package = name, package

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name, self._package), attribute)


class Outline(Protocol):
    """The facts of a target that a call of a compiled program needs."""

    @property
    def name(self) -> str:
        """The name of the target."""

    @property
    def alignment(self) -> int:
        """The alignment of the arena and its buffers, in bytes."""


class LaterTarget:
    """``target`` of a class of transformers: the value of ``attribute`` in a module.

    The module is imported when ``target`` is read, of the class or of an instance. ``name`` and
    ``alignment`` are those of the target, known before.
    """

    def __init__(self, module: str, attribute: str, name: str, alignment: int) -> None:
        self.module, self.attribute = module, attribute
        self.name, self.alignment = name, alignment

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = getattr(importlib.import_module(self.module), self.attribute)
        assert (made.name, made.alignment) == (self.name, self.alignment)
        return made


def later_target(module: str, name: str, alignment: int, attribute: str = "TARGET") -> Any:
    """Return a ``LaterTarget``, which type checkers take for the target itself."""
    return LaterTarget(module, attribute, name, alignment)


def has_target(transformer: object) -> bool:
    """Whether a transformer or its class states ``target``, which is not loaded for this."""
    return any("target" in vars(each) for each in (transformer, *type(transformer).__mro__))


def outline_of(transformer: Any) -> Outline:
    """Return the name and the alignment of a transformer's target, which is not loaded for these.

    Any object with a ``target`` will do.
    """
    if "target" not in vars(transformer):
        for each in type(transformer).__mro__:
            held = vars(each).get("target")
            if isinstance(held, LaterTarget):
                return held
            if held is not None:
                break
    made: Outline = transformer.target
    return made
