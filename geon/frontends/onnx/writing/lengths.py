"""Lengths of axes as values of the ONNX graph: Shape of an input, and integer arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....op_graph.axes.lengths import FloorDiv, Length
from ....op_graph.values.dtypes import INT64
from .expressions import Expr
from .graph import NodeWriter


class LengthWriter:
    """Writes length expressions, each once, in front of all other nodes of the main graph.

    ``sources`` has for open names the input and the dimension that has this length, ``defaults``
    the lengths of those that no input has.
    """

    def __init__(
        self,
        graph: NodeWriter,
        sources: Mapping[str, tuple[str, int]],
        defaults: Mapping[str, int],
    ) -> None:
        self.graph, self.sources, self.defaults = graph, sources, defaults
        self.nodes: list[Any] = []
        self._known: dict[int | Length | str, Expr] = {}
        self._shaped: dict[tuple[Any, ...], str] = {}

    def listed(self, lengths: Sequence[int | Length]) -> str:
        """Return lengths as a one-dimensional int64 value."""
        if all(isinstance(length, int) for length in lengths):
            return self.graph.constant(np.array(lengths, np.int64))
        key = tuple(lengths)
        if key not in self._shaped:
            parts = [self._vector(length).name for length in lengths]
            self._shaped[key] = parts[0] if len(parts) == 1 else self._in_front("Concat", parts)
        return self._shaped[key]

    def scalar(self, length: int | Length) -> str:
        """Return a length as an int64 scalar."""
        if isinstance(length, int):
            return self.graph.constant(length, np.int64)
        key = ("scalar", length)
        if key not in self._shaped:
            outer, self.graph.nodes = self.graph.nodes, self.nodes
            vector = self._vector(length).name
            self._shaped[key] = self.graph.node("Squeeze", [vector])
            self.graph.nodes = outer
        return self._shaped[key]

    def _in_front(self, operator: str, parts: list[str]) -> str:
        outer, self.graph.nodes = self.graph.nodes, self.nodes
        made = self.graph.node(operator, parts, axis=0)
        self.graph.nodes = outer
        return made

    def _vector(self, length: int | Length) -> Expr:
        """Return a length as a list of one int64."""
        if isinstance(length, int):
            return Expr(self.graph, self.graph.constant([length], np.int64), INT64)
        if length not in self._known:
            outer, self.graph.nodes = self.graph.nodes, self.nodes
            remark, self.graph.remark = self.graph.remark, f"length {length}"
            waiting = [length]
            while waiting:
                missing = [inner for inner in waiting[-1].inside if inner not in self._known]
                if missing:
                    waiting += missing
                else:
                    each = waiting.pop()
                    self._known[each] = self._written(each)
            self.graph.nodes, self.graph.remark = outer, remark
        return self._known[length]

    def _written(self, length: Length) -> Expr:
        """Write a polynomial, after the lengths in its divisions."""
        total: Any = 0
        for monomial, coefficient in length.terms:
            product: Any = coefficient
            for atom, power in monomial:
                base = self._name(atom) if isinstance(atom, str) else self._divided(atom)
                for _ in range(power):
                    product = base if product == 1 else base * product
            total = product if total == 0 else product + total
        made: Expr = total if isinstance(total, Expr) else self._vector(total)
        return made

    def _divided(self, atom: FloorDiv) -> Expr:
        """Write a division, rounded down; ONNX's Div rounds towards 0, its Mod down."""
        top, bottom = (self._vector(half) for half in atom)
        return (top - top.run("Mod", bottom)) / bottom

    def _name(self, name: str) -> Expr:
        if name not in self.sources:
            return self._vector(self.defaults[name])
        if name not in self._known:
            source, position = self.sources[name]
            made = self.graph.node("Shape", [source], start=position, end=position + 1)
            self._known[name] = Expr(self.graph, made, INT64)
        return self._known[name]
