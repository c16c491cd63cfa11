"""Canonical text of a pure graph, without names, tags, lines and fed values: a cache key.

Graphs of equal text compute the same from the same leaves and large constants, so the text is the
key of compiled programs. It is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..axes.axes import Axes
from ..building.constants import CONSTANT
from ..core.region_body import Body
from ..op_graph import Leaf, Op
from ..values.attribute_types import Frozen
from ..values.dtypes import DType
from .encoding import PLAIN, write_axes, write_length, write_value

HEADER = "geon graph 2"


class GraphWriter:
    """The lines so far of a graph, in which each op follows those that it uses, and its number."""

    def __init__(self, header: str) -> None:
        self.lines = [header]
        self.number: dict[Op, int] = {}

    def write(self, roots: Iterable[Op]) -> None:
        """Write the lines of all ops below ``roots``."""
        number, below, write_op = self.number, self.below, self.write_op
        stack: list[Any] = [*roots][::-1]
        while stack:
            op = stack.pop()
            if op is None:  # all below the op before it is written
                write_op(stack.pop())
            elif op not in number:
                needed = below(op)
                for each in needed:
                    if each not in number:
                        stack += (op, None)
                        stack += needed[::-1]
                        break
                else:
                    write_op(op)

    def below(self, op: Op) -> tuple[Op, ...]:
        """Return the ops whose numbers are in the line of an op."""
        needed = op.args
        for body in op.bodies:
            needed += (*body.parameters, *body.results)
        return needed

    def write_op(self, op: Op) -> None:
        """Write the line of an op after those of all ops below it."""
        raise NotImplementedError

    def attribute(self, value: Any) -> Any:
        """Return the JSON form of an attribute; bodies are the numbers of their ops."""
        if type(value) is Body:
            return self.body(value)
        if type(value) is tuple and value and type(value[0]) is Body:
            return ["bodies", *[self.body(part) for part in value]]
        return write_value(value)

    def body(self, body: Body) -> list[Any]:
        """Return ``["body", [numbers of parameters], [numbers of results]]``."""
        both = (body.parameters, body.results)
        return ["body", *[[self.number[op] for op in ops] for ops in both]]


def canonical(results: Iterable[Op | None]) -> tuple[str, list[Leaf], list[Frozen]]:
    """Return the text of ``results``, the leaves that it numbers, and the large constants.

    Leaves are numbered by first use and described by kind, axes and dtype; large constants by axes
    and dtype; other constants by their bits. A None result is written as "-". A call of a function
    with a ``custom_deriv`` rule is replaced by its value. It takes about 2 microseconds per op.
    """
    writer, roots = _CanonicalWriter(), list(results)
    writer.write([root for root in roots if root is not None])
    shown = ["-" if root is None else str(writer.number[root]) for root in roots]
    writer.lines.append(" ".join(["results", *shown, ""]))
    return "\n".join(writer.lines), writer.leaves, writer.arrays


class _CanonicalWriter(GraphWriter):
    """Writer of lines with short names of axes, which lines before their first use define."""

    def __init__(self) -> None:
        super().__init__(HEADER)
        self.leaves: list[Leaf] = []
        self.arrays: list[Frozen] = []
        self._axes: dict[Axes, str] = {}
        self._dtypes: dict[DType, str] = {}

    def below(self, op: Op) -> tuple[Op, ...]:
        row = op.primitive
        if row.kind == "region":
            return super().below(op)
        return op.args[:1] if row.name == "custom" else op.args

    def write_op(self, op: Op) -> None:
        """Write the line of an op; axes and dtype only if the first argument has others."""
        number, args = self.number, op.args
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
            axes = self._axes.get(op.axes) or self._new_axes(op.axes)
            line = f"{line} {axes} {self._dtypes.get(op.dtype) or self._new_dtype(op.dtype)}"
        for guard in op.guards:
            left, right = write_length(guard.left), write_length(guard.right)
            line += f" {guard.relation} {left!a} {right!a}"
        self.lines.append(line)
        number[op] = len(self.lines)

    def _with_attributes(self, op: Op, name: str) -> str:
        if isinstance(op, Leaf):
            self.leaves.append(op)
            return f"{name} stored" if op.info.stored else name
        if op.primitive is CONSTANT:
            content, weak = op.attrs.value, op.attrs.weak
            if isinstance(content, Frozen):
                self.arrays.append(content)
                return "constant array"
            return f"constant {content!r} weak" if weak else f"constant {content!r}"
        return f"{name}{[x if type(x) in PLAIN else self.attribute(x) for x in op.attrs]!a}"

    def _new_axes(self, axes: Axes) -> str:
        name = self._axes[axes] = f"A{len(self._axes)}"
        self.lines.append(f"{name} = {write_axes(axes)!a}")
        return name

    def _new_dtype(self, dtype: DType) -> str:
        name = self._dtypes[dtype] = dtype.name
        return name
