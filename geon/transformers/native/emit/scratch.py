"""Scratch memory of native kernels: sorts, prefix sums, scatters, products and row arrays."""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Nest, Region
from ...kernels.kernel_lowering import Work
from ...kernels.products.contraction import Contraction, padded_access, unit_of
from ...kernels.products.row_blocking import Blocked
from ...kernels.scans.sequential_scan import OrderedLoop
from ...lowering.planning.kernel_forms import KernelForm, trees_in
from ...lowering.planning.schedule import Schedule
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.product_blocks import Shape, all_shapes
from ...sizes.scratch import Largest, PerThread, Scratch, largest, lines
from ..library.matrices import matrix_scratch
from ..library.prefixes import prefix_scratch
from ..library.scattering import scatter_scratch
from ..library.sorting import SORTS
from ..products.implicit_im2col import find_band
from ..products.multi_index import last
from ..products.product_form import ProductForm
from ..sizes.kernel_scratch import BlockedScratch, SortScratch
from ..sizes.products import ProductScratch, unknown
from ..trees.row_arrays import scratch_each


def scratch_of(schedule: Schedule, forms: Mapping[Op, KernelForm]) -> dict[Op, Scratch]:
    """Return the scratch memory of a schedule's kernels, whose ``forms`` are given, by op."""
    found = {kernel.op: _of(kernel.work, forms.get(kernel.op)) for kernel in schedule.kernels}
    return {op: scratch for op, scratch in found.items() if scratch is not None}


def _of(work: Work, form: KernelForm | None) -> Scratch | None:
    if isinstance(work, Contraction):
        assert form is not None
        pieces = zip(work.pieces or (work,), form.parts, strict=True)
        parts = tuple([product_scratch(piece, each) for piece, each in pieces])
        return Largest(parts, lasting=True) if work.pieces else parts[0]
    if isinstance(work, Blocked):
        assert form is not None
        return blocked_scratch(work, form)
    if isinstance(work, Nest):
        assert form is not None
        return _of_rows(work, form)
    if isinstance(work, Region | OrderedLoop):
        return None  # the plans of their bodies have the scratch memory of the body's kernels
    name = work.op.primitive.name
    if name in RUNNING:
        return prefix_scratch(work.op)
    if name == "scatter":
        return scatter_scratch(work.op)
    if work.op.primitive.kind == "matrix":
        return matrix_scratch(work.op)
    return _of_sort(work.op) if name in SORTS else None


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


# Chains -------------------------------------------------------------------------------------------


def blocked_scratch(work: Blocked, form: KernelForm) -> BlockedScratch:
    """Return the scratch memory of a chain."""
    packed = 0
    arrays: Size = 0
    for step, parts in zip(work.steps, form.parts, strict=True):
        if isinstance(step, Contraction):
            most = lines(step_scratch(step).most(1))
            assert isinstance(most, int)  # blocks of a product have a largest size
            packed = max(packed, most)
        elif isinstance(step, Nest):
            for tree in trees_in(parts):
                arrays = arrays + scratch_each(tree.tree)
    return BlockedScratch(work.cut, packed, arrays)


# Products -----------------------------------------------------------------------------------------


def product_scratch(work: Contraction, form: ProductForm) -> ProductScratch:
    """Return the scratch memory of a contraction of this form."""
    return ProductScratch(*_sizes(work), (form.sides,))


def step_scratch(work: Contraction) -> ProductScratch:
    """Return the scratch memory of a contraction that is a step of a chain."""
    type = C_TYPES[name_of(work.dtype)]
    found = unknown(type, _band(work, all_shapes(type)[0]))
    return ProductScratch(*_sizes(work), found, alone=False)


def _sizes(work: Contraction) -> tuple[Size, Size, Size, Size]:
    """Return the numbers of batches, rows, columns and summed indices."""
    parts = (work.batch, work.rows, work.columns, work.summed)
    batches, rows, columns, depth = (product(loop.extent for loop in each) for each in parts)
    return batches, rows, columns, depth


def _band(work: Contraction, of: Shape) -> int | None:
    """Return the largest number of elements in a band of either operand, or None without bands."""
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    most = None
    for value, own in ((work.left, work.rows), (work.right, work.columns)):
        found = padded_access(value, loops)
        if found is None or not found.guards:
            continue
        rows = last(own, unit_of(value, loops))
        band = find_band(found.strides, found.guards, rows, work.summed, of)
        if band is not None:
            most = max(most or 0, band.elements)
    return most
