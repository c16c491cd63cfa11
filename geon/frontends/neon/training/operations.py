"""Operation counts of an expression, op by op, as written and before any fusion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ....op_graph.axes.axes import Axis
from ....op_graph.axes.lengths import product, substitute_names
from ....op_graph.core.traversal import post_order
from ....op_graph.op_graph import Leaf, Op, Tensor
from ..axis import N

if TYPE_CHECKING:
    from ....op_graph.axes.axes import Axes
    from ....op_graph.axes.lengths import Length

# One operation per element of the result, or per element of the argument.
OF_RESULT, OF_ARGUMENT = ("elementwise",), ("reduction", "ordered")


def operations(ops: Sequence[Op]) -> int | Length:
    """Return the operations of these ops for one example, that is with N of length 1.

    An elementwise op counts one per element, a reduction one per element of its argument, and a
    product two per multiplication. A loop counts its step times the number of steps, if that is
    known in advance, and a branch all its bodies. Movement, lookups and random draws count 0.
    """
    total: int | Length = 0
    for op in ops:
        total = total + _operations_of(op)
    return total


def ops_between(roots: Iterable[Op], given: Iterable[Op] = ()) -> list[Op]:
    """Return the ops needed to compute ``roots`` from ``given``, without constant subgraphs."""
    known = frozenset(given)
    order = post_order(roots, known)
    moving: set[Op] = set(known)
    for op in order:
        own = isinstance(op, Leaf) or op.primitive.name == "parameter"
        if own or any(arg in moving for arg in op.args):
            moving.add(op)
    return [op for op in order if op in moving]


def _operations_of(op: Op) -> int | Length:
    kind = op.primitive.kind
    if kind == "contraction":
        left, right = op.args
        return 2 * _size([*_axes(left), *_axes(right).without(_axes(left))])
    if kind in OF_RESULT and isinstance(op, Tensor):
        return 0 if op.primitive.is_selection and len(op.args) == 1 else _size(op.axes)
    if kind in OF_ARGUMENT:
        return _size(_axes(op.args[0]))
    inside: int | Length = 0
    for body in op.bodies:
        inside = inside + operations(ops_between(body.results))
    return _steps(op) * inside


def _steps(op: Op) -> int | Length:
    """Return how often a region runs its bodies; 1 if only a call can tell."""
    along = op.attrs.axis if op.primitive.name == "scan" else None
    return _size([along]) if isinstance(along, Axis) else 1


def _axes(op: Op) -> Axes:
    assert isinstance(op, Tensor)
    return op.axes


def _size(axes: Iterable[Axis]) -> int | Length:
    """Return the product of the lengths, with N of length 1."""
    one = {N.name: 1}
    return product(
        1 if axis.name == N.name else substitute_names(axis.expression, one) for axis in axes
    )
