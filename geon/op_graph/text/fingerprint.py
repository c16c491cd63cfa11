"""Canonical text of a pure graph, without names, tags, lines and fed values: a cache key.

Graphs of equal text compute the same from the same leaves and large constants, so the text is the
key of compiled programs. It is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import DumpError
from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..building.constants import CONSTANT
from ..core.primitive import Primitive
from ..core.region_body import Body
from ..op_graph import Leaf, Op
from ..values.attribute_types import Frozen
from ..values.dtypes import DType
from .encoding import write_axes, write_axis, write_length

HEADER = "geon graph 1"
PLAIN = (str, int, bool, type(None), bytes, float)


def canonical(results: Iterable[Op | None]) -> tuple[str, list[Leaf], list[Frozen]]:
    """Return the text of ``results``, the leaves that it numbers, and the large constants.

    Leaves are numbered by first use and described by kind, axes and dtype; large constants by axes
    and dtype; other constants by their bits. A None result is written as "-". A call of a function
    with a ``custom_deriv`` rule is replaced by its value. It takes about 2 microseconds per op.
    """
    text = _Text()
    number, write = text.number, text.write
    roots = list(results)
    for root in roots:
        if root is None:
            continue
        stack = [root]
        while stack:
            op = stack.pop()
            if op in number:
                continue
            args = op.args
            if op.primitive.name == "custom":
                args = args[:1]
            below = args
            for body in op.bodies:
                below += (*body.parameters, *body.results)
            for arg in below:
                if arg not in number:
                    stack.append(op)
                    stack += below[::-1]
                    break
            else:
                write(op, args)
    shown = ["-" if root is None else str(number[root]) for root in roots]
    text.lines.append(" ".join(["results", *shown, ""]))
    return "\n".join(text.lines), text.leaves, text.arrays


def graph_hash(results: Iterable[Op | None]) -> str:
    """Return the SHA-256 of the canonical text, in hexadecimal."""
    import hashlib  # imported late: it loads OpenSSL, which would slow down `import geon`

    return hashlib.sha256(canonical(results)[0].encode("ascii")).hexdigest()


class _Text:
    """The lines so far, and the number of each op, axes and dtype in them."""

    __slots__ = ("_axes", "_count", "_dtypes", "_lengths", "arrays", "leaves", "lines", "number")

    def __init__(self) -> None:
        self.lines: list[str] = [HEADER]
        self.leaves: list[Leaf] = []
        self.arrays: list[Frozen] = []
        self.number: dict[Op, int] = {}
        self._count = 0
        self._axes: dict[Axes, str] = {}
        self._dtypes: dict[DType, str] = {}
        self._lengths: dict[Length, str] = {}

    def write(self, op: Op, args: tuple[Op, ...]) -> None:
        """Write the line of an op whose arguments are written."""
        number = self.number
        name = op.primitive.name
        if name == "custom":
            number[op] = number[args[0]]
            return
        line = self._with_attributes(op, name) if op.attrs or not args else name
        if len(args) == 2:
            line = f"{line} {number[args[0]]} {number[args[1]]}"
        elif len(args) == 1:
            line = f"{line} {number[args[0]]}"
        else:
            line = " ".join([line, *[str(number[arg]) for arg in args]])
        if not args or op.axes is not args[0].axes or op.dtype is not args[0].dtype:
            line = f"{line} {self.axes(op.axes)} {self._dtype(op.dtype)}"
        if op.guards:
            line += "".join(
                f" {g.relation} {self._value(g.left)} {self._value(g.right)}" for g in op.guards
            )
        self.lines.append(line)
        number[op] = self._count
        self._count += 1

    def _with_attributes(self, op: Op, name: str) -> str:
        if isinstance(op, Leaf):
            self.leaves.append(op)
            return f"{name} stored" if op.info.stored else name
        if op.primitive is CONSTANT:
            content, _, _, weak = op.attrs
            if isinstance(content, Frozen):
                self.arrays.append(content)
                return "constant array"
            return f"constant {content!r} weak" if weak else f"constant {content!r}"
        return f"{name}({','.join([self._value(value) for value in op.attrs])})"

    def axes(self, axes: Axes) -> str:
        """Return the short name of axes; a line before the first use defines it."""
        found = self._axes.get(axes)
        if found is None:
            found = self._axes[axes] = f"A{len(self._axes)}"
            self.lines.append(f"{found} = {ascii(write_axes(axes))}")
        return found

    def _dtype(self, dtype: DType) -> str:
        found = self._dtypes.get(dtype)
        if found is None:
            found = self._dtypes[dtype] = dtype.name
        return found

    def _value(self, value: Any) -> str:
        kind = type(value)
        if kind in PLAIN:
            return ascii(value)
        if kind is tuple:
            return f"({','.join([self._value(part) for part in value])})"
        if kind is Axes:
            return self.axes(value)
        if kind is Body:
            given, made = (
                " ".join([str(self.number[op]) for op in ops])
                for ops in (value.parameters, value.results)
            )
            return f"B({given};{made})"
        if kind is Length:
            found = self._lengths.get(value)
            if found is None:
                found = self._lengths[value] = f"L{write_length(value)!a}"
            return found
        if kind is Axis:
            return f"X{write_axis(value)!a}"
        if isinstance(value, np.dtype):
            return f"D{value.name}"
        if isinstance(value, Primitive):
            return f"P{value.name}"
        raise DumpError(f"an attribute of type {kind.__name__} has no canonical text: {value!r}")
