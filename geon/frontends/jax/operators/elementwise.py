"""Arithmetic, comparisons, logic and conversions, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import ALIKE, ARITHMETIC, COMPARISONS, elementwise, mapped
from ...positional.fourier import several
from ...positional.functions import clip, remainder, truncated_divide
from ...positional.programs import cast
from ...positional.values import Value, host, known

Builder = Callable[..., Value]


def select(which: Value, *cases: Value) -> Value:
    """Return the elements of case number ``which``: of two by a bool, of several by an integer."""
    if which.dtype.kind == "b":
        return elementwise(geon.where, which, cases[1], cases[0])
    found = cases[0]
    for number, case in enumerate(cases[1:], 1):
        at_least = elementwise(geon.greater_equal, which, host(number, which.dtype))
        found = elementwise(geon.where, at_least, case, found)
    return found


def rounded(x: Value, *, rounding_method: Any) -> Value:
    """Return the nearest integers, halves away from 0 or to even."""
    if int(rounding_method) == 1:
        return elementwise(geon.round, x)
    return elementwise(lambda t: geon.sign(t) * geon.floor(geon.absolute(t) + 0.5), x)


def shift_logical(x: Value, y: Value) -> Value:
    """Return bits shifted to the right, with zeros from the left."""
    if x.dtype.kind == "u":
        return elementwise(geon.right_shift, x, y)
    wide = np.dtype(x.dtype.name.replace("int", "uint"))
    return cast(elementwise(geon.right_shift, cast(x, wide), cast(y, wide)), x.dtype)


def bits_of(x: Value) -> Value:
    """Return the number of bits that are 1."""
    width = 8 * x.dtype.itemsize

    def build(t: geon.Tensor) -> geon.Tensor:
        one = geon.cast(1, t.dtype)
        return sum([geon.bitwise_and(geon.right_shift(t, k), one) for k in range(width)], 0 * t)

    return elementwise(build, x)


def logic_or_bits(of_bool: Callable[..., Any], of_bits: Callable[..., Any]) -> Builder:
    """Return the builder of a function of truth values or of bits."""

    def build(*operands: Value) -> Value:
        return elementwise(of_bool if operands[0].dtype.kind == "b" else of_bits, *operands)

    return build


def polygamma(order: Value, x: Value) -> Value:
    """Return the derivative of digamma of a known order, the same for all elements."""
    (number,) = {float(n) for n in known(order, "the order of polygamma").reshape(-1)}
    return elementwise(lambda t: geon.polygamma(int(number), t), x)


UNARY: dict[str, Callable[..., Any]] = {
    **ALIKE, "erf_inv": geon.erfinv, "is_finite": geon.isfinite, "logistic": geon.sigmoid,
    "square": geon.square, "stop_gradient": geon.stop_gradient, "real": geon.real,
    "imag": geon.imag,
    "cbrt": lambda t: geon.sign(t) * geon.power(geon.absolute(t), 1 / 3),
    "exp2": lambda t: geon.exp(t * math.log(2)),
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    **ARITHMETIC, **COMPARISONS, "add_any": geon.add, "atan2": geon.atan2, "rem": remainder,
    "shift_left": geon.left_shift, "shift_right_arithmetic": geon.right_shift,
}  # fmt: skip
ROWS: dict[str, Callable[..., Any]] = {
    **{name: mapped(f) for name, f in (UNARY | BINARY).items()},
    "div": mapped(truncated_divide),
    "max": logic_or_bits(geon.logical_or, geon.maximum),
    "min": logic_or_bits(geon.logical_and, geon.minimum),
    "pow": lambda x, y: elementwise(geon.power, x, cast(y, x.dtype)),
    "integer_pow": lambda x, *, y: elementwise(
        lambda t: geon.power(t, y) if y >= 0 else 1 / geon.power(t, -y), x
    ),
    "select_n": select,
    "clamp": lambda low, x, high: clip(x, low, high),
    "complex": mapped(geon.as_complex),
    "conj": lambda x, *, input_dtype: elementwise(geon.conj, x),
    "fft": lambda x, *, fft_type, fft_lengths: several(x, int(fft_type), fft_lengths),
    "convert_element_type": lambda x, *, new_dtype: cast(x, new_dtype),
    "bitcast_convert_type": lambda x, *, new_dtype: elementwise(
        lambda t: geon.bitcast(t, new_dtype), x
    ),
    "round": rounded,
    "shift_right_logical": shift_logical,
    "and": logic_or_bits(geon.logical_and, geon.bitwise_and),
    "or": logic_or_bits(geon.logical_or, geon.bitwise_or),
    "xor": logic_or_bits(geon.logical_xor, geon.bitwise_xor),
    "not": logic_or_bits(geon.logical_not, geon.bitwise_not),
    "population_count": bits_of,
    "polygamma": polygamma,
    "dim_as_value": lambda *, dim: host(dim, "int32"),
    "device_put": lambda *operands: operands,
    **dict.fromkeys(("name", "copy", "copy_p"), lambda x: x),
}
