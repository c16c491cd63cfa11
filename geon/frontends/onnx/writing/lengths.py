"""Lengths of axes as values of the ONNX graph: Shape of an input, and integer arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....op_graph.axes.lengths import FloorDiv, Length
from ....op_graph.values.dtypes import INT64
from .expressions import Expr
from .graph import NodeWriter

Sources = Mapping[str, tuple[str, int]]


class LengthWriter:
    """Writes length expressions, each once, in front of all other nodes of the main graph.

    ``sources`` has for open names the input and the dimension that has this length, ``defaults``
    the lengths of those that no input has.
    """

    def __init__(self, graph: NodeWriter, sources: Sources, defaults: Mapping[str, int]) -> None:
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
            with self._in_front("lengths"):
                parts = [self._vector(length).name for length in lengths]
                if len(parts) > 1:
                    parts = [self.graph.node("Concat", parts, axis=0)]
            (self._shaped[key],) = parts
        return self._shaped[key]

    def scalar(self, length: int | Length) -> str:
        """Return a length as an int64 scalar."""
        if isinstance(length, int):
            return self.graph.constant(length, np.int64)
        key = ("scalar", length)
        if key not in self._shaped:
            with self._in_front(f"length {length}"):
                self._shaped[key] = self.graph.node("Squeeze", [self._vector(length).name])
        return self._shaped[key]

    @contextmanager
    def _in_front(self, remark: str) -> Iterator[None]:
        graph = self.graph
        outer, graph.nodes, graph.remark = (graph.nodes, graph.remark), self.nodes, remark
        yield
        graph.nodes, graph.remark = outer

    def _vector(self, length: int | Length) -> Expr:
        """Return a length as a list of one int64."""
        if isinstance(length, int):
            return Expr(self.graph, self.graph.constant([length], np.int64), INT64)
        waiting = [] if length in self._known else [length]
        while waiting:
            missing = [inner for inner in waiting[-1].inside if inner not in self._known]
            waiting += missing
            if not missing:
                each = waiting.pop()
                self._known[each] = self._written(each)
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
