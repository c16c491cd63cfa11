"""What native code needs to compute a row, by kind: no row is half known."""

from __future__ import annotations

from collections.abc import Callable, Container

from ...op_graph.bound import is_bound
from ...op_graph.dtypes import name_of
from ...op_graph.op_graph import Op
from ..kernels.elements import is_same
from ..printing import c_expressions
from . import library

# What the text of kernels, of scalars or of constants has branches of its own for.
BRANCHES = frozenset({"iota", "dot", "print", "checked", "random_bits"})


def lacks(op: Op) -> list[str]:
    """The entries that an op of a lowered program needs and tables do not have."""
    name = op.primitive.name
    if is_bound(op) or name in BRANCHES:
        return []
    if op.primitive.cost == "kernel":
        return _library(op)
    return KINDS.get(op.primitive.kind, _library)(op)


def _absent(name: str, tables: dict[str, Container[str]]) -> list[str]:
    return [f"{name!r} in {where}" for where, table in tables.items() if name not in table]


def _elementwise(op: Op) -> list[str]:
    name, dtype = op.primitive.name, name_of(op.args[-1].dtype)
    if is_same(op) or c_expressions.accepts(name, dtype):
        return []
    return [f"an expression of {name!r} for {dtype} in transformers/printing/c_expressions.py"]


def _reduction(op: Op) -> list[str]:
    return [] if op.primitive.reducer is not None else ["a reducer of the row"]


def _movement(op: Op) -> list[str]:
    return [] if op.primitive.index_map is not None else ["an index_map of the row"]


def _library(op: Op) -> list[str]:
    name = op.primitive.name
    if name == "update":
        return []  # a store of the part
    text = f"{name}_{op.attrs[1]}" if name == "scatter" else name
    return _absent(text, {"LIBRARY of transformers/native/library.py": library.LIBRARY})


KINDS: dict[str, Callable[[Op], list[str]]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "movement": _movement,
    "indexing": _movement,
}
