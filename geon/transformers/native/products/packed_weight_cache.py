"""Choose the right operands of products whose packed copies are cached across calls or iterations.

Packing weights takes 5 to 20 % of a product of 40 to 128 rows. An operand that depends only on
constants and on variables that the program does not write is packed once, and again after a
variable of the transformer was written. An operand that is invariant in a loop is packed by its
first iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op
from ...kernels.nests.inlining import element_arguments
from ...kernels.products.contraction import Contraction
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.kernel_forms import KernelForm
from ...lowering.planning.schedule import Schedule
from ...sizes.product_blocks import MAX_PACK_CACHE_ROWS, MIN_PACK_CACHE_ROWS
from ..sizes.products import PackedCopy
from .product_form import ProductForm


def pays_text(rows: str) -> str:
    """Return the condition of ``pays`` as C."""
    return f"({rows}) >= {MIN_PACK_CACHE_ROWS} && ({rows}) <= {MAX_PACK_CACHE_ROWS}"


def packed_copies(
    schedule: Schedule, forms: Mapping[Op, KernelForm], steady: Collection[Op] = ()
) -> dict[Op, PackedCopy]:
    """Return the cached packed operands of a schedule's kernels, whose forms are given, by op.

    ``steady`` are the parameters of a loop's body that are the same in all iterations.
    """
    stays, found = _Stays(schedule, set(steady)), {}
    for kernel in schedule.kernels:
        # Each of several pieces would read a different part of the operand.
        if isinstance(kernel.work, Contraction) and not kernel.work.pieces:
            (form,) = forms[kernel.op].parts
            copy = _copy(schedule, kernel, form, stays) if form.keeps else None
            if copy is not None:
                found[kernel.op] = copy
    return found


def _copy(
    schedule: Schedule, kernel: Kernel, form: ProductForm, stays: _Stays
) -> PackedCopy | None:
    """Return the packed operand that a product of this form caches, None if calls change it."""
    fused = kernel.fused
    if fused is None or fused.dot is None:
        return None
    x, y = fused.dot.args
    named = {new: old for old, new in fused.names}
    order = schedule.layouts[kernel.results[0]].order
    if not order:
        return None
    unit = named.get(order[-1], order[-1])
    if (unit in x.axes) == (unit in y.axes):
        return None
    left, right = (x, y) if unit in y.axes else (y, x)
    rows = left.axes.without(right.axes.names).size
    columns = right.axes.without(left.axes.names).size
    constant = stays.constant(right)
    if constant is None:
        return None
    outer = right.axes.only([n for n in right.axes.names if n in left.axes])
    panels = (columns + form.of.panel - 1) // form.of.panel
    return PackedCopy(panels * form.of.panel * outer.size * form.of.bytes, rows, constant)


class _Stays:
    """Finds the values that stay the same until a variable is written."""

    def __init__(self, schedule: Schedule, steady: Set[Op]) -> None:
        self.steady = steady
        self.written = {leaf for leaf, _ in schedule.program.updates}
        self.computed = {made for kernel in schedule.kernels for made in kernel.results}

    def constant(self, op: Op) -> bool | None:
        """Return True for a constant, False if ``op`` depends on variables, None if calls may
        change it.
        """
        constant, stack, seen = True, [op], set()
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            seen.add(op)
            if op in self.steady:
                continue
            if isinstance(op, Leaf):
                if not op.info.stored or op in self.written:
                    return None
                constant = False
            elif op in self.computed:
                return None
            elif not is_bound(op):
                stack += element_arguments(op)
        return constant
