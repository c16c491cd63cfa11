"""A watch over all tests: ``==`` or ``!=`` of ops that geon itself asks for fails.

Inside geon ops are compared with ``is``. What asks is found out by the frame that asks, whether it
wrote ``==`` or searched or compared something that holds ops. Where Python finds the same op first
it does not ask: what compares ops only sometimes is found by types, in ``compared``.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import geon
from geon.op_graph.syntax import operators

ROOT = os.path.dirname(os.path.abspath(geon.__file__)) + os.sep
# Files that compare on behalf of whoever called them, such as `dataclasses` and `weakref`.
LIBRARY = (*{os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib")},)


class ComparedError(AssertionError):
    """geon compared ops by ``==`` or ``!=``."""


def asking(depth: int) -> str | None:
    """Where geon asks for the comparison that runs ``depth`` frames up; None where a user does."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(ROOT):
            return f"{name}:{frame.f_lineno}"
        if not (name.startswith(("<", *LIBRARY))):
            return None
        frame = frame.f_back
    return None


def watched(compare: Callable[[Any, object], Any], sign: str) -> Callable[[Any, object], Any]:
    """``compare`` that raises ``ComparedError`` where geon asks for it."""

    def method(left: Any, right: object) -> Any:
        place = asking(2)
        if place is not None:
            raise ComparedError(f"{place}: {left!r} {sign} {right!r}: compare ops with `is`")
        return compare(left, right)

    # A frame of geon's own, so that the op's line is that of whoever called it.
    method.__code__ = method.__code__.replace(co_filename=operators.__file__)
    return method


def start() -> None:
    """Watch every comparison from here on."""
    for cls in (operators.TensorOperators, geon.VoidOp):
        owner: Any = cls
        owner.__eq__ = watched(owner.__eq__, "==")
        owner.__ne__ = watched(owner.__ne__, "!=")
