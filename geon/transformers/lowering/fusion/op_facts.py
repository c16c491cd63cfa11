"""What fusion asks of one op: whether it reduces, multiplies, or is a view, and what it takes."""

from __future__ import annotations

from ....op_graph.axes.axes import Axis
from ....op_graph.axes.lengths import product
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op
from ...kernels.nests.nest_lowering import SHORT
from .layout import LaidOut

ELEMENTARY = 100  # statements that an elementary function counts as: five of them fill a loop
LONG = 64  # elements of a row from which a matrix-vector product streams several rows at once
MANY = 1 << 20  # elements of a matrix beside others from which on a product streams each of them
NORMED = 5  # ops from a softmax's values back to its sum, with a cast, a broadcast, and a mask


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
    one element makes no vector a matrix, where the depth is known. Of many matrices side by side
    each must be long, and not one of windows. A computed matrix and a vector are a reduction, too:
    a product would put all of the matrix into panels, for one line. A softmax is a matrix whatever
    it is multiplied with: attention has it for itself, and hands it on.
    """
    if op.dtype.name not in ("float32", "float64"):
        return False
    (first, second), names = op.args, op.attrs[0]
    x, y = first.axes, second.axes
    depth = product(x[n].expression for n in names)
    own = [[a for a in p if a.name not in q] for p, q in ((x, y), (y, x))]
    wide = [any(a.expression != 1 for a in axes) for axes in own]
    shared = any(n in y and n not in names for n in x.names)
    if all(wide) or (all(own) and not isinstance(depth, int)):
        return True
    matrix, vector = (first, second) if wide[0] else (second, first)
    computed = matrix.primitive.kind == "elementwise"
    if all(own) and shared and (_is_normed(matrix, names) if computed else _is_worth(vector)):
        return True
    if not any(wide) or not isinstance(depth, int) or computed:
        return False
    lines = product(a.expression for axes in own for a in axes)
    many = not isinstance(lines, int) or depth * lines >= MANY
    return depth >= LONG and (not shared or (many and not shows(matrix)))


def _is_worth(op: Op) -> bool:
    """Whether what is computed is worth memory, where a reduction would repeat it for each line."""
    row = op.primitive
    return row.kind == "elementwise" or (row.kind == "movement" and not row.view)


def _is_normed(op: Op, names: tuple[str, ...]) -> bool:
    """Whether elementwise ops lead to a reduction along axes of these names."""
    return any(name in found.attrs[0] for found in reductions_below(op) for name in names)


def reductions_below(op: Op, deep: int = NORMED) -> list[Op]:
    """The reductions that elementwise ops, so many at most, lead to."""
    if op.primitive.kind == "reduction":
        return [op]
    if deep == 0 or op.primitive.kind not in ("elementwise", "movement"):
        return []
    return [found for arg in op.args for found in reductions_below(arg, deep - 1)]


def statements(op: Op) -> int:
    """About how many statements of a processor one element of ``op`` takes."""
    return ELEMENTARY if op.primitive.cost == "expensive" else 1


def looped(op: Op) -> tuple[Op, ...]:
    """Whose elements the loops of an op go over: its own, or those that it reduces."""
    return op.args if reduces(op) or op.primitive.name == "dot" else (op,)


def loop_axes(op: Op) -> list[Axis]:
    """The axes that the loops of an op go over."""
    return [axis for each in looped(op) for axis in each.axes]


def innermost(op: Op, laid_out: LaidOut) -> str | None:
    """The axis along which the elements that these loops go over are neighbours in memory."""
    widest = max(looped(op), key=lambda each: len(each.axes))
    order = [n for n in laid_out.layouts[widest].order if widest.axes[n].expression != 1]
    return order[-1] if order else None


def repeats(op: Op) -> bool:
    """Whether the arithmetic of ``op`` is cheap, and what it takes no larger than what it gives.

    What is reduced and then narrowed is stored as it is narrowed.
    """
    row = op.primitive
    if row.name == "cast" and op.dtype.itemsize < op.args[0].dtype.itemsize and reduces(op.args[0]):
        return False
    heavy = row.cost in ("expensive", "kernel") or reduces(op) or row.acts
    return not (heavy or row.name == "dot" or isinstance(op, Leaf) or is_bound(op))
