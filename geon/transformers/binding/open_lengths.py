"""Lengths of open axes given by users: ``lengths=`` and ``specialize=``."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.axes import Axis
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.axes.lengths import names_of
from ...op_graph.nodes import made_at
from ...op_graph.op_graph import Leaf, Op, RegionOp, post_order
from ...op_graph.values.tree import is_mapping
from ..runtime.dims import implied_sizes, open_sizes, ungiven
from .call_values import dims_of


def open_names(ops: Iterable[Op]) -> tuple[str, ...]:
    """Return the sorted open names in axes and lengths of these ops, including region bodies."""
    found: set[str] = set()
    for op in ops:
        for length in [*op.axes.lengths, *(op.attrs if op.primitive.name == "length" else ())]:
            found |= names_of(length)
        for guard in op.guards:
            found |= names_of(guard.left) | names_of(guard.right)
        if isinstance(op, RegionOp):
            for axis in [value for value in op.attrs if isinstance(value, Axis)]:
                found |= names_of(axis.expression)
            found.update(open_names(post_order([r for body in op.bodies for r in body.results])))
    return tuple(sorted(found))


def refuse_ungiven(ops: Iterable[Op], leaves: Iterable[Leaf], lengths: Collection[str]) -> None:
    """Raise ``AxisError`` if ``ops`` have an open length that no call can determine.

    Data of placeholders determine open names of which a length is a linear function; variables keep
    theirs; the others must be among ``lengths`` or the defaults.
    """
    found = {*lengths, *default_lengths()}
    for leaf in leaves:
        if leaf.info.stored:
            found.update(*[names_of(axis.expression) for axis in leaf.axes])
        else:
            dims, sizes = dims_of(leaf.axes), [0] * len(leaf.axes)
            for name, _ in (*open_sizes(dims, sizes), *implied_sizes(dims, sizes)):
                found.add(name)
    for op in ops:
        missing = sorted({*open_names([op])} - found)
        if missing:
            raise AxisError(f"{ungiven(missing[0])}\n  {op} made at {made_at(op)}")


def named_lengths(lengths: Any, known: Collection[str] | None, option: str) -> dict[str, int]:
    """Return a user's lengths of open axes, by open name.

    Keys are open axes or their names. Raises ``ArgumentError`` for anything else, for a name that
    is not in ``known`` (None: any name), and for an invalid length.
    """
    if lengths is None:
        return {}
    if not is_mapping(lengths):
        raise ArgumentError(
            f"{option}={lengths!r} is no mapping; give a dict from open axes to integers"
        )
    named: dict[str, int] = {}
    for axis, length in lengths.items():
        name = axis.open_name if isinstance(axis, Axis) else axis
        if not isinstance(name, str):
            raise ArgumentError(
                f"{option}: {axis!r} is not an open axis, whose length can be given; its length is "
                "part of it: make another axis"
            )
        if known is not None and name not in known:
            raise ArgumentError(
                f"{option}: nothing has the open length {name!r}; there are "
                f"{', '.join(map(repr, sorted(known))) or 'none'}"
            )
        size = _length(length, name, option)
        if named.setdefault(name, size) != size:
            raise ArgumentError(f"{option}: {name} is {named[name]} and {size}; give it once")
    return named


def _length(length: Any, name: str, option: str) -> int:
    try:
        size = -1 if isinstance(length, bool | np.bool_) else operator.index(length)
    except TypeError:
        size = -1
    if size < 0:
        raise ArgumentError(f"{option}: {name} is {length!r}; give an integer, 0 or more")
    return size
