"""Scratch memory of native kernels: sorts, prefix sums, scatters, products and row arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate, product
from ....op_graph.op_graph import Op
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Call, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import Blocked, whole_sizes
from ...lowering.planning.kernel_forms import KernelForm, trees_in
from ...lowering.planning.schedule import Schedule
from ...sizes.scratch import Largest, PerThread, Scratch, largest, lines
from ..library.matrices import matrix_scratch
from ..library.prefixes import prefix_scratch
from ..library.scattering import scatter_scratch
from ..library.sorting import SORTS
from ..products.product_form import ProductForm
from ..sizes.kernel_scratch import BlockedScratch, SortScratch
from ..sizes.products import ProductScratch
from ..trees.row_arrays import scratch_each


def scratch_of(schedule: Schedule, forms: Mapping[Op, KernelForm]) -> dict[Op, Scratch]:
    """Return the scratch memory of a schedule's kernels, whose ``forms`` are given, by op.

    The plans of a region's bodies have that of the body's kernels.
    """
    of_forms = {form: _of_form(form) for form in dict.fromkeys(forms.values())}
    found = {}
    for kernel in schedule.kernels:
        form = forms.get(kernel.op)
        if form is not None:
            found[kernel.op] = of_forms[form]
        elif isinstance(kernel.work, Call):
            found[kernel.op] = _of_call(kernel.work.op)
    return {op: scratch for op, scratch in found.items() if scratch is not None}


def _of_form(form: KernelForm) -> Scratch | None:
    """Return the scratch memory of the kernels of a form, None without any."""
    work = form.work
    if isinstance(work, Contraction):
        return product_scratch(work, form.parts)
    if isinstance(work, Blocked):
        return blocked_scratch(work, form)
    return _of_rows(work, form) if isinstance(work, Nest) else None


def _of_call(op: Op) -> Scratch | None:
    """Return the scratch memory of a library call, None without any."""
    name = op.primitive.name
    if name in RUNNING:
        return prefix_scratch(op)
    if name == "scatter":
        return scatter_scratch(op)
    if op.primitive.kind == "matrix":
        return matrix_scratch(op)
    return _of_sort(op) if name in SORTS else None


def _of_sort(op: Op) -> SortScratch:
    """Return the scratch memory of a sort, argsort or top_k."""
    x = op.args[0]
    at = x.axes.index(op.attrs.axis)
    lengths = x.axes.lengths
    k = op.attrs.k if op.primitive.name == "top_k" else lengths[at]
    sizes = (product(lengths[:at]), lengths[at], product(lengths[at + 1 :]))
    return SortScratch(op.primitive.name, name_of(x.dtype), sizes, k)


# Rows ---------------------------------------------------------------------------------------------


def _of_rows(nest: Nest, form: KernelForm) -> Scratch | None:
    """Return the memory of row arrays that are too large for the stack, or None."""
    rows = product(loop.extent for loop in nest.rows)
    sizes = [scratch_each(each.tree) for each in trees_in(form.parts)]
    return largest([PerThread(each, rows) for each in sizes if each != 0])


# Products and chains ------------------------------------------------------------------------------


def product_scratch(
    work: Contraction, forms: Sequence[ProductForm], whole: tuple[Size, ...] = ()
) -> Scratch:
    """Return the scratch memory of a contraction whose pieces, or which itself, has these forms.

    ``whole`` are the sizes of the full contraction of which ``work`` is a block.
    """
    found = []
    for piece, form in zip(work.pieces or (work,), forms, strict=True):
        loops = (piece.batch, piece.rows, piece.columns, piece.summed)
        batches, rows, columns, depth = (product(loop.extent for loop in each) for each in loops)
        found.append(ProductScratch(batches, rows, columns, depth, form.planned, whole))
    return Largest(tuple(found), lasting=True) if work.pieces else found[0]


def blocked_scratch(work: Blocked, form: KernelForm) -> BlockedScratch:
    """Return the scratch memory of a chain."""
    packed = 0
    arrays: Size = 0
    for step, whole, parts in zip(work.steps, work.whole, form.parts, strict=True):
        if isinstance(step, Contraction):
            most = _bytes_of_blocks(work, product_scratch(step, parts, whole_sizes(whole)))
            packed = max(packed, evaluate(lines(most), {}))
        elif isinstance(step, Nest):
            for tree in trees_in(parts):
                arrays = arrays + scratch_each(tree.tree)
    return BlockedScratch(work.cut, packed, arrays)


def _bytes_of_blocks(work: Blocked, scratch: Scratch) -> Size:
    """Return the bytes that a step of a chain takes for any block, a bound if lengths are open.

    Blocks differ by at most one row: the first one has fewest rows, the last one most.
    """
    try:
        count = work.cut.blocks({})
        last = work.cut.parts({}) - 1
        ends = {0, last} if count else set()
        return max([scratch.bytes(work.bindings(block, {}), 1) for block in ends], default=0)
    except KeyError:
        return scratch.most(1)
