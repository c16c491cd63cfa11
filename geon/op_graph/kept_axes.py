"""Which axes of a result are still those of the inputs: position i is computed from position i."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from .affine import Affine, variable
from .index_map import Position, identity
from .op_graph import Op, Tensor

STATES = 20_000  # of the search along one axis; past them the axis counts as moved


def kept_axes(result: Tensor) -> frozenset[str]:
    """The names of the axes along which a position of ``result`` is one of the inputs'.

    Some way leads from there to a leaf, or to an op that gives the axis, on which the index along
    the axis is what it was: slices that are padded again keep it, a reversed or sorted axis does
    not. ``result`` has no effects below it.
    """
    return frozenset(name for name in result.axes.names if _is_kept(result, name))


def _is_kept(result: Tensor, name: str) -> bool:
    same = variable(name)
    waiting: list[tuple[Op, Affine]] = [(result, same)]
    seen: set[tuple[int, Hashable]] = set()
    while waiting and len(seen) < STATES:
        op, at = waiting.pop()
        if (id(op), at) in seen or not _plain(at, name):
            continue
        seen.add((id(op), at))
        for arg, index in _behind(op, name, at):
            if arg is not None:
                waiting.append((arg, index))
            elif index == same:
                return True
    return False


def _behind(op: Op, name: str, at: Affine) -> Iterator[tuple[Op | None, Affine]]:
    """What an element of ``op`` at ``at`` along the axis is made of; None where that begins."""
    if op.primitive.index_map is not None:
        index = {**identity(op.axes.names), name: at}
        pieces = op.primitive.index_map(op, index)
        for piece in pieces:
            arg = op.args[piece.arg]
            if name in arg.axes.names:
                yield arg, piece.index[name]
            elif len(pieces) == 1:  # of several, those without the axis fill gaps
                yield None, at
        return
    if op.primitive.kind == "ordered" and op.primitive.name not in RUNNING and name in op.attrs:
        return  # sorted along it
    having = [arg for arg in op.args if name in arg.axes.names]
    for arg in having:
        yield arg, at
    if not having:
        yield None, at


RUNNING = ("cumsum", "cumprod")


def _plain(at: Affine, name: str) -> bool:
    """Whether an index is one along the axis and a length: no position that data give."""
    return all(atom == name and not isinstance(atom, Position) for atom in at.terms)
