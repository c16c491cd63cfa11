"""Completeness checks: the table entries that a C target needs to compute a primitive."""

from __future__ import annotations

from collections.abc import Callable, Container

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.nests.inlining import is_same
from . import c_expressions

# Primitives that the printers handle in branches of their own.
BRANCHES = frozenset({"iota", "dot", "print", "checked", "random_bits"})
# Regions, their results and the parameters of their bodies; used by targets that run bodies.
REGIONS = frozenset({"scan", "while", "case", "region_result", "parameter"})


def lacks(op: Op, library: Container[str], where: str) -> list[str]:
    """Return the table entries that an op of a lowered program needs and that are missing.

    ``library`` has the names of the library's functions; ``where`` names the library in messages.
    """
    name = op.primitive.name
    if is_bound(op) or name in BRANCHES:
        return []
    if op.primitive.cost == "kernel":
        return _library(op, library, where)
    known = KINDS.get(op.primitive.kind)
    return _library(op, library, where) if known is None else known(op)


def _elementwise(op: Op) -> list[str]:
    name, dtype = op.primitive.name, name_of(op.args[-1].dtype)
    if is_same(op) or c_expressions.accepts(name, dtype):
        return []
    return [
        f"an expression of {name!r} for {dtype} in transformers/printing/scalars/c_expressions.py"
    ]


def _reduction(op: Op) -> list[str]:
    return [] if op.primitive.reducer is not None else ["a reducer of the row"]


def _movement(op: Op) -> list[str]:
    return [] if op.primitive.index_map is not None else ["an index_map of the row"]


def _library(op: Op, library: Container[str], where: str) -> list[str]:
    name = op.primitive.name
    if name == "update":
        return []  # printed as a store of the part
    text = f"{name}_{op.attrs.mode}" if name == "scatter" else name
    return [] if text in library else [f"{text!r} in {where}"]


KINDS: dict[str, Callable[[Op], list[str]]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "movement": _movement,
    "indexing": _movement,
}
