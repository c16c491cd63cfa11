"""Lazy loading of modules and targets.

A process that recalls a program from the disk cache loads neither the stages nor the reports.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class LaterModule:
    """Proxy of the module ``name``, relative to ``package``, which is imported at its first use.

    Type checkers see the module itself::

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
    """The attributes of a target that a call of a compiled program needs."""

    @property
    def name(self) -> str:
        """Return the name of the target."""

    @property
    def alignment(self) -> int:
        """Return the alignment of the arena and its buffers, in bytes."""


class LaterTarget:
    """Lazy ``target`` of a transformer class: the value of ``attribute`` in a module.

    The module is imported when ``target`` is read, from the class or from an instance. ``name`` and
    ``alignment`` are those of the target, known in advance.
    """

    def __init__(self, module: str, attribute: str, name: str, alignment: int) -> None:
        self.module, self.attribute = module, attribute
        self.name, self.alignment = name, alignment

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = getattr(importlib.import_module(self.module), self.attribute)
        assert (made.name, made.alignment) == (self.name, self.alignment)
        return made


def later_target(module: str, name: str, alignment: int, attribute: str = "TARGET") -> Any:
    """Return a ``LaterTarget``, which type checkers see as the target itself."""
    return LaterTarget(module, attribute, name, alignment)


def has_target(transformer: object) -> bool:
    """Return True if a transformer or its class defines ``target``, without loading it."""
    return any("target" in vars(each) for each in (transformer, *type(transformer).__mro__))


def outline_of(transformer: Any) -> Outline:
    """Return the name and the alignment of a transformer's target, without loading it.

    It works for any object with a ``target``.
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
