"""Split loops into vectors: the number of lanes, and shorter vectors for the rest."""

from __future__ import annotations

from collections.abc import Callable

from ...op_graph.axes.affine import Size
from ...op_graph.axes.lengths import is_multiple
from . import transformations as shape
from .tree import Kind, Role, Tree, VectorWidth, find, require

# Vectors of a loop from which on whole registers and a rest are faster than half registers: a sum
# of 1,000 floats waits for 63 additions instead of 125. Sums of rows take 0.4 to 0.8 of the time.
MIN_WHOLE_VECTORS = 16


def lanes_of(size: Size | None, count: int, halves: bool = True) -> int:
    """Return the vector length for a loop, 0 if it fills not one vector of ``count`` elements.

    A half-length vector that fills a short loop is better than a full one with a remainder, but for
    functions of whole registers.
    """
    if size is None:
        return 0
    halves = halves and (not isinstance(size, int) or size < MIN_WHOLE_VECTORS * count)
    fitting = [n for n in (count, count // 2)[: 1 + halves] if n > 1 and is_multiple(size, n)]
    if fitting:
        return fitting[0]
    return count if not isinstance(size, int) or size >= count else 0


def in_vectors(
    tree: Tree, name: str, vectors: VectorWidth, change: Callable[[Tree, str, str], Tree]
) -> Tree:
    """Compute the elements of a loop by vectors, and the rest of a known length by shorter ones.

    ``change`` transforms the tree at the loop over vectors and the loop over the lanes of one,
    before that is a vector.
    """
    lanes = lanes_of(find(tree, name)[0].size, vectors.count, vectors.halves)
    require(lanes > 0, f"{name} fills no vector of {vectors.count}")
    reason = f"{lanes} elements of {vectors.itemsize} bytes fill a register"
    while lanes > 1:
        made = shape.split(tree, name, lanes, Kind.LANES)
        tree = change(shape.set_kind(made.tree, name, Kind.VECTORS), name, made.inner)
        tree = shape.set_role(tree, made.inner, Role.VECTOR, reason)
        if made.rest is None:
            break
        name, rest = made.rest, find(tree, made.rest)[0].size
        if not isinstance(rest, int):
            break
        while lanes > rest:
            lanes //= 2
        reason = f"{rest} elements fill no register of the main loop"
    return tree
