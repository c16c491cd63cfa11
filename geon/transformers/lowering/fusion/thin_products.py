"""Thin products: products over a few summed indices, rewritten as elementwise sums of terms.

A product packs its operands and stores its sums; for two or three terms that is most of its time.
As sums of terms it reads operands in place and fuses with other elementwise ops.
"""

from __future__ import annotations

from itertools import product as every
from typing import Any

from ....op_graph.axes.affine import Size
from ....op_graph.axes.axes import Axis
from ....op_graph.axes.lengths import is_below, product
from ....op_graph.op_graph import Op
from ....op_graph.rewriting.driver import Rules
from ....op_graph.rows.elementwise import add, multiply
from ....op_graph.rows.movement import broadcast
from ....op_graph.rows.slicing import take
from ...sizes.limits import AVX512_BYTES, LONG_LOOP_TURNS, MIN_TASK_WORK, SHORT_LOOP_TURNS
from .op_facts import is_product

MAX_PRODUCT_TERMS = 4  # maximum terms of a sum
MIN_PRODUCT_ELEMENTS = MIN_TASK_WORK // 2  # minimum elements of the result, of two operations each
# Minimum contiguous elements of the result for vector lanes.
MIN_VECTOR_RUN_ELEMENTS = 2 * AVX512_BYTES // 4
MAX_GATHER_REPEATS = SHORT_LOOP_TURNS  # maximum times that strided elements are gathered
# Maximum terms of all elements of a run shorter than ``MIN_VECTOR_RUN_ELEMENTS``.
MAX_SHORT_RUN_TERMS = 10
MAX_SMALL_PRODUCT_TERMS = 24  # the same for batches of small products,
MAX_SMALL_PRODUCT_ELEMENTS = LONG_LOOP_TURNS  # which have at most so many elements each

short = Rules("short sums")


@short.on("dot")
def sum_of_terms(op: Op) -> Op | None:
    """Rewrite a product over a few indices as the sum of the products at each index."""
    names: tuple[str, ...] = op.attrs.over
    x: Any
    y: Any
    x, y = op.args
    lengths = [x.axes[name].expression for name in names]
    depth = product(lengths)
    if not (isinstance(depth, int) and 1 <= depth <= MAX_PRODUCT_TERMS and _pays(op, depth)):
        return None
    found: Any = None
    for index in every(*(range(n) for n in lengths if isinstance(n, int))):
        at = dict(zip(names, index, strict=True))
        parts = [take(arg, {arg.axes[n]: k for n, k in at.items()}) for arg in (x, y)]
        term = multiply.apply(*(broadcast(part, op.axes) for part in parts))
        found = term if found is None else add.apply(found, term)
    return found


def _pays(op: Op, depth: int) -> bool:
    """Return True if loops over the result are faster than register tiles, as measured."""
    x, y = op.args
    kept = [axis for axis in op.axes if axis.expression != 1]
    if not is_product(op) or is_below(
        product(axis.expression for axis in kept), MIN_PRODUCT_ELEMENTS
    ):
        return False
    run = _adjoining(kept, x, y)
    inside = {axis.name for axis in run}
    having = [arg for arg in (x, y) if run[0] in arg.axes]
    count = product(axis.expression for axis in run)
    if is_below(count, MIN_VECTOR_RUN_ELEMENTS):
        return len(having) == 1 and _few_terms(op, having[0], depth * count)
    if all(arg.axes.names[-1] in inside for arg in having):
        return True
    return is_below(
        product(axis.expression for axis in kept if axis.name not in inside), MAX_GATHER_REPEATS + 1
    )


def _few_terms(op: Op, having: Op, terms: Size) -> bool:
    """Return True if short runs of ``terms`` terms pay, given the overhead per run."""
    x, y = op.args
    other = x if having is y else y
    if other.axes.names[-1] not in op.attrs.over:
        return False
    own = [axis.expression for axis in op.axes if axis not in x.axes or axis not in y.axes]
    small = len(own) < len(op.axes) and is_below(product(own), MAX_SMALL_PRODUCT_ELEMENTS + 1)
    return is_below(terms, 1 + (MAX_SMALL_PRODUCT_TERMS if small else MAX_SHORT_RUN_TERMS))


def _adjoining(kept: list[Axis], x: Op, y: Op) -> list[Axis]:
    """Return the last axes of a result that are in the same operands."""
    found: list[Axis] = []
    for axis in reversed(kept):
        if found and [axis in arg.axes for arg in (x, y)] != [found[0] in a.axes for a in (x, y)]:
            break
        found.append(axis)
    return found


SHORT_SUMS = short.done()
