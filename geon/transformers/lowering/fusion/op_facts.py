"""Facts about single ops for fusion: reductions, products, views, cost and loop axes."""

from __future__ import annotations

from ....op_graph.axes.axes import Axis
from ....op_graph.axes.lengths import product
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op
from ...kernels.analysis.op_counts import ELEMENTARY_STATEMENTS
from ...kernels.nests.nest_lowering import MAX_SHORT_ROW_ELEMENTS
from ...sizes.blocks import L2_BYTES
from ...sizes.limits import LONG_LOOP_TURNS, OP_LATENCY_CYCLES
from .layout import LaidOut

# Statements of the vectors of a function that are computed side by side. Loops of more than five
# functions take 1.1 to 1.4 of the time in caches.
FUNCTION_STATEMENTS = OP_LATENCY_CYCLES * ELEMENTARY_STATEMENTS
# Minimum elements of a row for a matrix-vector product that streams several rows.
MIN_STREAMED_ROW_ELEMENTS = LONG_LOOP_TURNS
# Minimum elements of each matrix of a batch for a product that streams it: it leaves the cache.
MIN_STREAMED_MATRIX_ELEMENTS = L2_BYTES
# Ops from a softmax's values back to its sum, with a cast, a broadcast and a mask.
MAX_SOFTMAX_DEPTH_OPS = 5


def is_view(laid_out: LaidOut, op: Op) -> bool:
    """Return True if ``op`` is a view of its argument's memory."""
    return op.primitive.view and laid_out.base[op] is not op


def shows(op: Op) -> bool:
    """Return True if ``op`` may show elements of its argument several times or not at all.

    Windows do, for example. Such an op is never stored: it would be several times its argument's
    size.
    """
    row = op.primitive
    if row.kind != "movement" or row.cost != "cheap" or row.index_map is None:
        return False
    return not row.view or row.name == "window"


def reduces(op: Op) -> bool:
    """Return True if ``op`` is a reduction that a nest computes.

    Reductions along the innermost axis for which libraries have a special algorithm are left to
    them: they find the position of an extreme in vectors, while a state of value and position
    branches. Short rows are an exception: there the vector lanes hold neighbouring rows.
    """
    if op.primitive.kind != "reduction":
        return False
    innermost = op.args[0].axes.names[-1:]
    if op.primitive.cost != "kernel" or op.attrs.reduced == () or op.attrs.reduced != innermost:
        return True
    length = op.args[0].axes[innermost[0]].expression
    return isinstance(length, int) and length <= MAX_SHORT_ROW_ELEMENTS and len(op.axes) > 0


def is_product(op: Op) -> bool:
    """Return True if a contraction of floats is worth register tiles, or streaming a long matrix.

    Others are reductions: of integers, of vectors, of a narrow matrix and a vector. An axis of one
    element makes no vector a matrix if the depth is known. In a batch, each matrix must be long and
    not be a window. A computed matrix times a vector is a reduction, too: a product would pack the
    whole matrix for one line. A softmax counts as a matrix in any case, since attention fuses it.
    """
    if op.dtype.name not in ("float32", "float64"):
        return False
    (first, second), names = op.args, op.attrs.over
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
    many = not isinstance(lines, int) or depth * lines >= MIN_STREAMED_MATRIX_ELEMENTS
    return depth >= MIN_STREAMED_ROW_ELEMENTS and (not shared or (many and not shows(matrix)))


def _is_worth(op: Op) -> bool:
    """Return True if a computed value is worth storing, as a reduction would repeat it per line."""
    row = op.primitive
    return row.kind == "elementwise" or (row.kind == "movement" and not row.view)


def _is_normed(op: Op, names: tuple[str, ...]) -> bool:
    """Return True if elementwise ops lead to a reduction along axes of these names."""
    return any(name in found.attrs.reduced for found in reductions_below(op) for name in names)


def reductions_below(op: Op, deep: int = MAX_SOFTMAX_DEPTH_OPS) -> list[Op]:
    """Return the reductions below ``op`` through at most ``deep`` elementwise ops or views."""
    if op.primitive.kind == "reduction":
        return [op]
    if deep == 0 or op.primitive.kind not in ("elementwise", "movement"):
        return []
    return [found for arg in op.args for found in reductions_below(arg, deep - 1)]


def statements(op: Op) -> int:
    """Return the approximate number of machine operations per element of ``op``."""
    return FUNCTION_STATEMENTS if op.primitive.cost == "expensive" else 1


def loop_values(op: Op) -> tuple[Op, ...]:
    """Return the values whose elements an op's loops cover: ``op``, or operands if it reduces."""
    return op.args if reduces(op) or op.primitive.name == "dot" else (op,)


def loop_axes(op: Op) -> list[Axis]:
    """Return the axes of an op's loops."""
    return [axis for each in loop_values(op) for axis in each.axes]


def innermost(op: Op, laid_out: LaidOut) -> str | None:
    """Return the axis along which the elements of these loops are contiguous in memory."""
    widest = max(loop_values(op), key=lambda each: len(each.axes))
    order = [n for n in laid_out.layouts[widest].order if widest.axes[n].expression != 1]
    return order[-1] if order else None


def repeats(op: Op) -> bool:
    """Return True if recomputing ``op`` is cheap.

    A cast of a reduction to a narrower dtype is not: it is stored in the narrow dtype.
    """
    row = op.primitive
    if row.name == "cast" and op.dtype.itemsize < op.args[0].dtype.itemsize and reduces(op.args[0]):
        return False
    heavy = row.cost in ("expensive", "kernel") or reduces(op) or row.has_side_effect
    return not (heavy or row.name == "dot" or isinstance(op, Leaf) or is_bound(op))
