"""Contractions that libraries compute: plain matrix products, and convolutions.

A library computes sums of products and adds a bias along columns. All other operations on the sums
run as a pass over the result, so that they round as in every other kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import HALVES, name_of
from ...kernels.ir.nest import Loop, Store
from ...kernels.ir.scalar_code import Apply, Contracted, Load
from ...kernels.products.contraction import Contraction, is_negative
from ...kernels.products.convolution_matching import convolution_of
from ...kernels.products.factors import MATRICES, Steps, factor_access, merge_strides
from ..launches.library_requests import ConvolutionCall, ProductCall


def product_of(work: Contraction, writes: bool) -> ProductCall[Size] | None:
    """Return a contraction as a matrix product, or None; ``writes`` if it writes a variable."""
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    left, right = factor_access(work.left, loops), factor_access(work.right, loops)
    if left is None or right is None or left.dtype != right.dtype:
        return None
    if not (left.is_plain and right.is_plain):
        return None
    store = work.stores[0]
    if not all(isinstance(atom, str) for atom in store.offset.terms) or store.offset.constant != 0:
        return None
    out = {str(atom): step for atom, step in store.offset.terms.items()}
    parts = (work.batch, work.rows, work.columns, work.summed)
    all_strides = (left.steps, right.steps, out)
    found = [each for part in parts if (each := merge_strides(part, all_strides)) is not None]
    if len(found) < len(parts):
        return None
    (batch, of_batch), (rows, down), (columns, across), (deep, along) = found
    left_strides = of_batch[0], down[0], along[0]
    right_strides = of_batch[1], along[1], across[1]
    out_strides = of_batch[2], down[2], across[2]
    bias, ends = None, False
    if len(work.stores) == 1:
        bias, ends = ending(store, work.columns, name_of(work.dtype))
    apart = not ends and (writes or store.dtype != work.dtype)
    result = name_of(work.dtype if apart else store.dtype)
    if apart:  # scratch memory is row-major
        out_strides = rows * columns, columns, 1
    if not (_is_matrix(left_strides) and _is_matrix(right_strides) and out_strides[2] == 1):
        return None
    if out_strides[1] == 0 or result not in MATRICES:
        return None
    return ProductCall(
        batch, rows, columns, deep, left.operand, right.operand, store.operand, bias,
        left_strides, right_strides, out_strides, left.dtype, result, ends, apart,
    )  # fmt: skip


def convolution_call(work: Contraction, writes: bool) -> ConvolutionCall | None:
    """Return a contraction as a convolution, or None; ``writes`` if it writes a variable."""
    store = work.stores[0]
    value = store.value
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(store.dtype) in HALVES:
        (value,) = value.args
    ends = len(work.stores) == 1 and isinstance(value, Contracted)
    apart = not ends and (writes or store.dtype != work.dtype)
    steps = _stored(work, apart)
    found = None if steps is None else convolution_of(work, steps)
    if found is None:
        return None
    own = {field.name: getattr(found, field.name) for field in fields(found)}
    result = name_of(work.dtype if apart else store.dtype)
    return ConvolutionCall(**own, result=result, ends=ends, apart=apart)


def _stored(work: Contraction, apart: bool) -> Steps | None:
    """Return the result's strides by loop; for sums in scratch memory, contiguous ones."""
    if apart:
        kept = (*work.batch, *work.rows, *work.columns)
        return {
            loop.name: product(inner.extent for inner in kept[k + 1 :])
            for k, loop in enumerate(kept)
        }
    offset = work.stores[0].offset
    steps = {str(atom): step for atom, step in offset.terms.items()}
    simple = all(isinstance(atom, str) for atom in offset.terms) and offset.constant == 0
    return steps if simple and not any(map(is_negative, steps.values())) else None


def _is_matrix(strides: tuple[Size, Size, Size]) -> bool:
    """Return True if elements are contiguous along rows or along columns."""
    _, down, across = strides
    return down != 0 if across == 1 else down == 1 and across != 0


def ending(store: Store, columns: Sequence[Loop], dtype: str) -> tuple[int | None, bool]:
    """Return the bias operand, and True if nothing else is done with the sums."""
    value = store.value
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(store.dtype) in HALVES:
        return None, isinstance(value.args[0], Contracted)
    if isinstance(value, Contracted):
        return None, True
    if isinstance(value, Apply) and value.row.name == "add":
        loads = [arg for arg in value.args if isinstance(arg, Load)]
        if len(loads) == 1 and any(isinstance(arg, Contracted) for arg in value.args):
            (load,) = loads
            if name_of(load.dtype) == dtype and _is_line(load.offset, columns):
                return load.operand, True
    return None, False


def _is_line(offset: AffineIndex, columns: Sequence[Loop]) -> bool:
    """Return True if an offset is contiguous over all columns."""
    terms = {str(atom): step for atom, step in offset.terms.items()}
    named = {loop.name for loop in columns if loop.extent != 1}
    found = merge_strides(columns, [terms])
    return offset.constant == 0 and set(terms) == named and found is not None and found[1] == [1]
