"""Quantised numbers: to them, from them, and products of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ....op_graph.values.dtypes import DType
from ...positional.elementwise import elementwise
from ...positional.indexing import gather
from ...positional.picking import numbers
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import reshape, unsqueeze
from ...positional.small_dtypes import (
    FORMATS,
    FloatFormat,
    IntegerFormat,
    cast_small,
    held_dtype,
    is_small,
    labelled,
    wide,
)
from ...positional.values import Value, position
from ..table import row
from .elementwise import cast_value
from .images.convolution import convolution

UINT8: DType = np.dtype(np.uint8)


def spread(value: Any, x: Any, axis: int, block_size: int = 0) -> Value:
    """Return scales or zero points so that they align with ``x``.

    They are one for all, one for each index along ``axis``, or one for each block along it.
    """
    value = wide(value)
    if np.prod([n if isinstance(n, int) else 2 for n in value.shape]) == 1:
        return reshape(value, [])
    rank = len(x.shape)
    at = position(axis, rank)
    if not block_size:
        if len(value.shape) != 1:
            raise ArgumentError(f"scales {value} along dimension {at} of {x}; give one dimension")
        return unsqueeze(value, range(1, rank - at))
    if len(value.shape) != rank:
        raise ArgumentError(f"scales {value} of blocks of {x}; both need the same dimensions")
    blocks = elementwise(lambda i: geon.floordivide(i, block_size), numbers(x.shape[at]))
    return gather(value, blocks, at)


def saturated(x: Value, zero: Any, dtype: DType) -> Any:
    """Return ``x`` rounded, ties to even, with a zero point added, in the bounds of an integer."""
    form = FORMATS.get(dtype.name)
    bounds = np.iinfo(dtype) if form is None else None
    least, most = (bounds.min, bounds.max) if bounds else form.bounds  # type: ignore[union-attr]
    number = cast(x, "float32")
    moved = elementwise(geon.round, number)
    if zero is not None:
        moved = elementwise(geon.add, moved, cast(wide(zero), "float32"))
    clipped = elementwise(lambda t: geon.clip(t, int(least), int(most)), moved)
    result = cast(clipped, held_dtype(dtype))
    return labelled(result, dtype) if isinstance(form, IntegerFormat) else result


def quantize(
    x: Value,
    scale: Value,
    zero: Any = None,
    /,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: DType | None = None,
    precision: DType | None = None,
    saturate: int = 1,
) -> Any:
    """Return ``x / scale``, rounded and moved by a zero point, in an integer or a small float."""
    target = output_dtype or (UINT8 if zero is None else zero.dtype)
    if zero is not None and zero.dtype != target:
        raise ArgumentError(f"output_dtype is {target}, and the zero point is {zero}")
    working = precision or held_dtype(scale.dtype)
    divisor = spread(cast(wide(scale), working), x, axis, block_size)
    quotient = elementwise(geon.divide, cast(x, working), divisor)
    offset = None if zero is None else spread(zero, x, axis, block_size)
    if isinstance(FORMATS.get(target.name), FloatFormat):
        if offset is not None:
            quotient = elementwise(geon.add, quotient, cast(offset, working))
        return cast_small(quotient, target, bool(saturate))
    return saturated(quotient, offset, target)


def dequantize(
    x: Any,
    scale: Value,
    zero: Any = None,
    /,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: DType | None = None,
) -> Any:
    """Return ``(x - zero) * scale`` in the dtype of ``scale``, or another one."""
    number = cast(wide(x), "float32")
    if zero is not None:
        offset = cast(spread(zero, x, axis, block_size), "float32")
        number = elementwise(geon.subtract, number, offset)
    factor = spread(cast(wide(scale), "float32"), x, axis, block_size)
    return cast_value(elementwise(geon.multiply, number, factor), output_dtype or scale.dtype)


def dynamic_quantize(x: Value, /) -> tuple[Value, ...]:
    """Return ``x`` in uint8 with the scale and the zero point of its smallest and largest number.

    Both bounds include 0.
    """
    every = range(len(x.shape))

    def scale_of(low: geon.Tensor, high: geon.Tensor) -> geon.Tensor:
        return geon.where(geon.equal(low, high), 1, high - low) / 255

    least = elementwise(lambda t: geon.minimum(t, 0), reduce(geon.min, x, every, keep=False))
    most = elementwise(lambda t: geon.maximum(t, 0), reduce(geon.max, x, every, keep=False))
    scale = elementwise(scale_of, least, most)
    zero = saturated(elementwise(lambda low, s: -low / s, least, scale), None, UINT8)
    return quantize(x, scale, zero), scale, zero


def centred(x: Any, zero: Any, position_of_zero: int | None = None) -> Value:
    """Return ``x - zero`` in int32, or in float32 for small floats.

    A vector of zero points goes along a position of ``x``, by default along the last.
    """
    kind = "float32" if isinstance(FORMATS.get(x.dtype.name), FloatFormat) else "int32"
    number = cast(wide(x), kind)
    if zero is None:
        return number
    offset = cast(wide(zero), kind)
    if position_of_zero is not None and len(zero.shape) == 1:
        offset = spread(offset, x, position_of_zero)
    return elementwise(geon.subtract, number, offset)


def integer_product(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None, /) -> Value:
    """Return the product of matrices of integers less their zero points, in int32."""
    rows = len(a.shape) - 2
    return matmul(centred(a, a_zero, rows if rows >= 0 else None), centred(b, b_zero))


def quantized_product(
    a: Any,
    a_scale: Value,
    a_zero: Any,
    b: Any,
    b_scale: Value,
    b_zero: Any,
    scale: Value,
    zero: Any,
    /,
) -> Any:
    """Return the product of quantised matrices, quantised itself."""
    product = integer_product(a, b, a_zero, b_zero)
    rows = max(len(product.shape) - 2, 0)
    scales = [spread(s, product, rows) if len(s.shape) == 1 else s for s in (a_scale, scale)]
    scales.insert(1, b_scale)
    return _rescaled(product, scales, zero)


def _rescaled(product: Value, scales: list[Value], zero: Any) -> Any:
    """Return an accumulated product, times the scales of operands over that of the result."""
    factors = [cast(scale, "float32") for scale in scales]
    number = elementwise(lambda t, a, b, y: t * (a * b / y), cast(product, "float32"), *factors)
    if is_small(zero.dtype):
        return cast_small(number, zero.dtype)
    return saturated(number, zero, zero.dtype)


def integer_convolution(
    x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, /, **attributes: Any
) -> Value:
    """Return the convolution of integers less their zero points, in int32."""
    return cast(convolution(centred(x, x_zero), centred(w, w_zero, 0), **attributes), "int32")


def quantized_convolution(
    x: Any,
    x_scale: Value,
    x_zero: Any,
    w: Any,
    w_scale: Value,
    w_zero: Any,
    scale: Value,
    zero: Any,
    bias: Value | None = None,
    /,
    **attributes: Any,
) -> Any:
    """Return the convolution of quantised images and filters, quantised itself.

    ``bias`` has the scale of the accumulated products.
    """
    product = convolution(centred(x, x_zero), centred(w, w_zero, 0), bias, **attributes)
    scales = [spread(x_scale, x, 1), spread(w_scale, product, 1), spread(scale, product, 1)]
    return _rescaled(product, scales, zero)


ROWS = [
    row("QuantizeLinear", quantize),
    row("DequantizeLinear", dequantize),
    row("DynamicQuantizeLinear", dynamic_quantize),
    row("MatMulInteger", integer_product),
    row("QLinearMatMul", quantized_product),
    row("ConvInteger", integer_convolution),
    row("QLinearConv", quantized_convolution),
]
