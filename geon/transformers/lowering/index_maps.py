"""The index maps of the rows that move elements, by name."""

from __future__ import annotations

from collections.abc import Callable

from ...op_graph.affine import Affine, Quotient, Remainder, Size, split, strides, variable
from ...op_graph.index_map import Guard, Index, Piece, Position
from ...op_graph.op_graph import Op


def _same(op: Op, index: Index) -> tuple[Piece, ...]:
    return (Piece((), 0, {n: index[n] for n in op.args[0].axes.names}),)


def _renamed(op: Op, index: Index) -> tuple[Piece, ...]:
    pairs = zip(op.args[0].axes.names, op.axes.names, strict=True)
    return (Piece((), 0, {old: index[new] for old, new in pairs}),)


def _flipped(op: Op, index: Index) -> tuple[Piece, ...]:
    found = {
        a.name: index[a.name] * -1 + (a.expression - 1) if a.name in op.attrs[0] else index[a.name]
        for a in op.args[0].axes
    }
    return (Piece((), 0, found),)


def _flattened(op: Op, index: Index) -> tuple[Piece, ...]:
    names, axis = op.attrs
    have = op.args[0].axes
    parts = split(index[axis.name], [have[n].expression for n in names])
    merged = dict(zip(names, parts, strict=True))
    return (Piece((), 0, {n: merged[n] if n in merged else index[n] for n in have.names}),)


def _unflattened(op: Op, index: Index) -> tuple[Piece, ...]:
    old, axes = op.attrs
    whole = Affine()
    for step, axis in zip(strides(axes.lengths), axes, strict=True):
        whole = whole + index[axis.name] * step
    return (Piece((), 0, {n: whole if n == old else index[n] for n in op.args[0].axes.names}),)


def _sliced(op: Op, index: Index) -> tuple[Piece, ...]:
    return (Piece((), 0, taken(op, index)),)


def taken(op: Op, index: Index) -> dict[str, Affine]:
    """The indices that a slice reads, or an update writes, in its first argument."""
    found: dict[str, Affine] = {}
    for axis, item in zip(op.args[0].axes, op.attrs[0], strict=True):
        if item is None:
            found[axis.name] = index[axis.name]
        elif item[0] == "range":
            found[axis.name] = index[axis.name] * item[3] + item[1]
        else:
            found[axis.name] = _at(item, axis.expression)
    return found


def _at(item: tuple[object, ...], length: Size) -> Affine:
    if item[0] == "at":
        return Affine((), item[1])  # type: ignore[arg-type]  # items are (word, length)
    return variable(Position(item[1], (), length))  # type: ignore[arg-type]


def _concatenated(op: Op, index: Index) -> tuple[Piece, ...]:
    along = op.attrs[0]
    found: list[Piece] = []
    start: Size = 0
    for k, arg in enumerate(op.args):
        end = start + arg.axes[along].expression
        guards = (Guard(index[along], start, end),)
        found.append(Piece(guards, k, {**index, along: index[along] + (0 - start)}))
        start = end
    return tuple(found)


def _padded(op: Op, index: Index) -> tuple[Piece, ...]:
    x = op.args[0]
    guards: list[Guard] = []
    found: dict[str, Affine] = {}
    for axis, width in zip(x.axes, op.attrs[0], strict=True):
        here = index[axis.name]
        found[axis.name] = here if width is None else here + (-width[0])
        if width is not None:
            guards.append(Guard(here, width[0], axis.expression + width[0]))
    return Piece(tuple(guards), 0, found), Piece((), 1, {})


def _updated(op: Op, index: Index) -> tuple[Piece, ...]:
    guards: list[Guard] = []
    found: dict[str, Affine] = {}
    for axis, item in zip(op.args[0].axes, op.attrs[0], strict=True):
        here = index[axis.name]
        if item is None:
            found[axis.name] = here
        elif item[0] == "range":
            _, start, stop, step = item
            guards.append(Guard(here, start, stop))
            found[axis.name] = from_start = here + (0 - start)
            if step != 1:
                guards.append(Guard(variable(Remainder(from_start, step)), 0, 1))
                found[axis.name] = variable(Quotient(from_start, step))
        else:
            at = _at(item, axis.expression)
            guards.append(Guard(here - at, 0, 1))
    return Piece(tuple(guards), 1, found), Piece((), 0, index)


def _gathered(op: Op, index: Index) -> tuple[Piece, ...]:
    x, places = op.args
    along = op.attrs[0]
    where = tuple((n, index[n]) for n in places.axes.names)
    at = variable(Position(1, where, x.axes[along].expression))
    return (Piece((), 0, {n: at if n == along else index[n] for n in x.axes.names}),)


INDEX_MAPS: dict[str, Callable[[Op, Index], tuple[Piece, ...]]] = {
    "broadcast": _same,
    "reorder": _same,
    "rename": _renamed,
    "flip": _flipped,
    "flatten": _flattened,
    "unflatten": _unflattened,
    "slice": _sliced,
    "concat": _concatenated,
    "pad": _padded,
    "update": _updated,
    "gather": _gathered,
}
