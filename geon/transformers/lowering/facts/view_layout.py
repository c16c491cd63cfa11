"""Layout of a view in the memory of its argument, derived from its index map."""

from __future__ import annotations

from ....op_graph.axes.affine import AffineIndex, Size, strides
from ....op_graph.axes.index_map import Index, Position, atoms, identity
from ....op_graph.op_graph import Op
from .target import Layout


def view_layout(op: Op, layout: Layout) -> Layout | None:
    """Return the layout of a view whose argument has layout ``layout``.

    Return None if the view needs a copy: its offsets are no sum of indices times strides, as for
    merged axes that are not contiguous, or depend on a run-time position.
    """
    assert op.primitive.index_map is not None
    (piece,) = op.primitive.index_map(op, identity(op.axes.names))
    index = piece.index
    walked: dict[str, None] = {}
    uses = 0
    for name in layout.order:
        names = _variables(op, index[name])
        if names is None:
            return None
        walked.update(dict.fromkeys(names))
        uses += len(names)
    added = tuple([name for name in op.axes.names if name not in walked])
    order = (*added, *walked)
    if op.axes.size == 0:
        return Layout(order, layout.mergeable, layout.unit)  # there are no elements
    divided = not all(map(_is_plain, index.values()))
    if divided and not layout.mergeable:
        return None
    if divided:
        offset = AffineIndex()
        for name, step in _strides(op.args[0], layout).items():
            offset = offset + index[name] * step
        if not _is_plain(offset):
            return None
    elif layout.order:
        offset = index[layout.order[-1]]
    if added or (uses > len(walked) and _is_repeated(index)):
        return Layout(order, False, False)
    mergeable = layout.mergeable and _is_whole(op, index)
    unit = layout.unit and bool(order) and offset.step(order[-1]) == 1
    return Layout(order, mergeable, unit)


def _is_repeated(index: Index) -> bool:
    """Return True if one variable indexes several axes of the argument, except by its digits."""
    plain = [atom for at in index.values() if _is_plain(at) for atom in at.terms]
    split = {atom for at in index.values() if not _is_plain(at) for atom in atoms(at)}
    return len({*plain}) < len(plain) or not split.isdisjoint(plain)


def _is_plain(index: AffineIndex) -> bool:
    """Return True if an index is a sum of variables only."""
    for atom in index.terms:
        if not isinstance(atom, str):
            return False
    return True


def _strides(x: Op, layout: Layout) -> dict[str, Size]:
    """Return the strides of ``x``, which is contiguous."""
    lengths = tuple([x.axes[name].expression for name in layout.order])
    return dict(zip(layout.order, strides(lengths), strict=True))


def _variables(op: Op, index: AffineIndex) -> list[str] | None:
    """Return the axes of ``op`` that an index depends on, in order; None if it depends on data."""
    if len(index.terms) == 1:
        (only,) = index.terms
        if isinstance(only, str):
            return [only]
    found = set(atoms(index))
    if any(isinstance(atom, Position) for atom in found):
        return None
    return [name for name in op.axes.names if name in found]


def _is_whole(op: Op, index: Index) -> bool:
    """Return True if a view has each element of its argument once, in order."""
    for name, at in index.items():
        if at.constant != 0:
            return False
        if not _is_plain(at):
            continue  # a digit of an axis whose digits are all present
        extent: Size = 1
        for variable in reversed(_variables(op, at) or []):
            if at.terms[variable] != extent:
                return False
            extent = extent * op.axes[variable].expression
        if not _equal(op, extent, op.args[0].axes[name].expression):
            return False
    return True


def _equal(op: Op, left: Size, right: Size) -> bool:
    """Return True if two lengths are equal, or a guard of ``op`` ensures it."""
    if left == right:
        return True
    pairs = [(guard.left, guard.right) for guard in op.guards if guard.relation == "=="]
    return (left, right) in pairs or (right, left) in pairs
