"""What fusion asks of one op: whether it reduces, multiplies, or is a view, and what it takes."""

from __future__ import annotations

from ....op_graph.axes import Axis
from ....op_graph.bound import is_bound
from ....op_graph.lengths import product
from ....op_graph.op_graph import Leaf, Op
from ...kernels.nests import SHORT
from ..layout import LaidOut

ELEMENTARY = 100  # statements that an elementary function counts as: five of them fill a loop
LONG = 64  # elements of a row from which a matrix-vector product streams several rows at once


def is_view(laid_out: LaidOut, op: Op) -> bool:
    """Whether ``op`` is another view of its argument's memory."""
    return op.primitive.view and laid_out.base[op] is not op


def shows(op: Op) -> bool:
    """Whether ``op`` shows elements of its argument at several places, or none: windows do.

    It is never worth memory of its own, which would be several times that of its argument.
    """
    row = op.primitive
    if row.kind != "movement" or row.cost != "cheap" or row.index_map is None:
        return False
    return not row.view or row.name == "window"


def reduces(op: Op) -> bool:
    """Whether ``op`` is a reduction that a nest computes.

    A row that libraries have a way of their own for is left to them along the innermost axis: they
    find the position of an extreme in vectors, while a state of a value and a position branches.
    Short rows are not: there the vectors are of neighbouring rows.
    """
    if op.primitive.kind != "reduction":
        return False
    innermost = op.args[0].axes.names[-1:]
    if op.primitive.cost != "kernel" or op.attrs[0] == () or op.attrs[0] != innermost:
        return True
    length = op.args[0].axes[innermost[0]].expression
    return isinstance(length, int) and length <= SHORT and len(op.axes) > 0


def is_product(op: Op) -> bool:
    """Whether a contraction of floats is worth a product's tiles, or a stream of a long matrix.

    Others (of integers, of vectors, of a narrow matrix and a vector) are reductions. An axis of
    one element makes no vector a matrix, where the depth is known and there is one product alone:
    a value of width 1 is still one that attention hands on to. A computed matrix and a vector are
    a reduction, too: a product would put all of the matrix into panels, for one line.
    """
    if op.dtype.name not in ("float32", "float64"):
        return False
    x, y = op.args[0].axes, op.args[1].axes
    depth = product(x[n].expression for n in op.attrs[0])
    shared = [n for n in x.names if n in y and n not in op.attrs[0]]
    single = not shared and isinstance(depth, int)
    skipped = 1 if single else None
    left, right = ([a for a in axes if a.expression != skipped] for axes in (x, y))
    own = [any(a.name not in y for a in left), any(a.name not in x for a in right)]
    if all(own):
        return True
    matrix = op.args[0 if own[0] else 1]
    streams = single and isinstance(depth, int) and depth >= LONG
    return any(own) and streams and matrix.primitive.kind != "elementwise"


def statements(op: Op) -> int:
    """About how many statements of a processor one element of ``op`` takes."""
    return ELEMENTARY if op.primitive.cost == "expensive" else 1


def loop_axes(op: Op) -> list[Axis]:
    """The axes that the loops of an op go over."""
    over = op.args if reduces(op) or op.primitive.name == "dot" else (op,)
    return [axis for each in over for axis in each.axes]


def repeats(op: Op) -> bool:
    """Whether the arithmetic of ``op`` is cheap, and what it takes no larger than what it gives.

    What is reduced and then narrowed is stored as it is narrowed.
    """
    row = op.primitive
    if row.name == "cast" and op.dtype.itemsize < op.args[0].dtype.itemsize and reduces(op.args[0]):
        return False
    heavy = row.cost in ("expensive", "kernel") or reduces(op) or row.acts
    return not (heavy or row.name == "dot" or isinstance(op, Leaf) or is_bound(op))
