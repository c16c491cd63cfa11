"""Arithmetic, comparisons, logic, activation functions and casts, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import (
    ALIKE,
    ARITHMETIC,
    COMPARISONS,
    elementwise,
    expand,
    functions_of,
)
from ...positional.functions import clip, remainder, truncated_divide
from ...positional.programs import cast, value_of
from ...positional.values import Value
from .common import Builder, Rows, category, filled, promoted


def unary(f: Callable[..., Any]) -> Builder:
    """Return the builder of a function of one tensor, computed in the dtype of its result."""

    def build(x: Value, *, result: Any) -> Value:
        keeps = result.dtype.kind == "b" or x.dtype.kind == "c"
        return elementwise(f, cast(x, x.dtype if keeps else result.dtype))

    return build


def arithmetic(f: Callable[..., Any]) -> Builder:
    """Return the builder of a function of operands in the dtype of its result."""

    def build(*operands: Any, alpha: Any = 1, result: Any) -> Value:
        dtype = np.dtype("uint8") if result.dtype.kind == "b" else result.dtype
        values = [value_of(each, dtype) for each in operands]
        if alpha != 1:
            values[1] = elementwise(geon.multiply, values[1], value_of(alpha, dtype))
        return elementwise(f, *values)

    return build


def comparison(f: Callable[..., Any]) -> Builder:
    """Return the builder of a comparison, in the dtype that operands are promoted to."""

    def build(x: Any, y: Any) -> Value:
        dtype = promoted([x, y])
        return elementwise(f, value_of(x, dtype), value_of(y, dtype))

    return build


def in_dtype(f: Callable[..., Any], dtype: str | None = None) -> Builder:
    """Return the builder of a function of operands in a dtype, by default that of its result."""

    def build(*operands: Any, result: Any) -> Value:
        return elementwise(f, *[value_of(each, dtype or result.dtype) for each in operands])

    return build


def divide(x: Any, y: Any, *, rounding_mode: str | None = None, result: Any) -> Value:
    """Return the quotient, truncated or rounded down on request."""
    f: Any = {None: geon.divide, "trunc": truncated_divide, "floor": geon.floordivide}
    found = elementwise(f[rounding_mode], value_of(x, result.dtype), value_of(y, result.dtype))
    is_cut = rounding_mode == "trunc" and found.dtype.kind not in "iu"
    return elementwise(geon.trunc, found) if is_cut else found


def where(condition: Value, x: Any, y: Any, *, result: Any) -> Value:
    """Return ``x`` where the condition is true, else ``y``."""
    values = value_of(x, result.dtype), value_of(y, result.dtype)
    return elementwise(geon.where, cast(condition, "bool"), *values)


def clamp(x: Value, low: Any = None, high: Any = None, *, result: Any) -> Value:
    """Return elements from ``low`` to ``high``, which wins if it is smaller."""
    return clip(cast(x, result.dtype), low, high)


def rounded(x: Value, *, decimals: int = 0) -> Value:
    """Return the nearest numbers with so many decimals, halves to even."""
    scale = 10.0**decimals
    f = (lambda t: geon.round(t * scale) / scale) if decimals else geon.round
    return elementwise(f, x) if category(x.dtype) == 2 else x


UNARY: dict[str, Callable[..., Any]] = {
    **ALIKE, "detach": geon.stop_gradient, "erfinv": geon.erfinv, "isfinite": geon.isfinite,
    "exp2": lambda t: geon.exp(t * math.log(2)), "isinf": geon.isinf, "isnan": geon.isnan,
    "log10": lambda t: geon.log(t) / math.log(10), "log2": lambda t: geon.log(t) / math.log(2),
    "reciprocal": geon.reciprocal,
    "relu": lambda t: geon.where(t > 0, t, 0 * t),  # with the derivative 0 at 0
    "sigmoid": geon.sigmoid, "silu": geon.silu, "trunc": geon.trunc,
}  # fmt: skip
TWO: dict[str, Callable[..., Any]] = {
    **ARITHMETIC, "div": geon.divide, "remainder": geon.mod, "fmod": remainder,
}  # fmt: skip
BITWISE = functions_of("bitwise_and bitwise_or bitwise_xor")
LOGIC = functions_of("logical_and logical_or logical_xor logical_not")
KINDS = ("Tensor", "Scalar")

ROWS: Rows = {
    **{name: unary(f) for name, f in UNARY.items()},
    **{f"{n}.{kind}": arithmetic(f) for n, f in TWO.items() for kind in KINDS},
    **{f"{n}.{kind}": comparison(f) for n, f in COMPARISONS.items() for kind in KINDS},
    **{f"{n}.{kind}": in_dtype(f) for n, f in BITWISE.items() for kind in KINDS},
    **{name: in_dtype(f, "bool") for name, f in LOGIC.items()},
    **{f"pow.{kind}": arithmetic(geon.power) for kind in ("Tensor_Scalar", "Tensor_Tensor")},
    "pow.Scalar": arithmetic(geon.power),
    "bitwise_not": in_dtype(geon.bitwise_not),
    "atan2": arithmetic(geon.atan2),
    "maximum": arithmetic(geon.maximum),
    "minimum": arithmetic(geon.minimum),
    "div.Tensor_mode": divide,
    "div.Scalar_mode": divide,
    "where.self": where,
    "clamp": clamp,
    "clamp.Tensor": clamp,
    "hardtanh": lambda x, low=-1, high=1, *, result: clamp(x, low, high, result=result),
    "_to_copy": lambda x, *, dtype=None: x if dtype is None else cast(x, dtype),
    **dict.fromkeys(("clone", "alias", "lift_fresh_copy", "_local_scalar_dense"), lambda x: x),
    "round": rounded,
    "round.decimals": rounded,
    "gelu": lambda x, *, approximate="none": elementwise(
        lambda t: geon.gelu(t, approximate=approximate), x
    ),
    "leaky_relu": lambda x, slope=0.01: elementwise(lambda t: geon.where(t > 0, t, slope * t), x),
    "fill.Scalar": lambda x, number: filled(number, x.shape, x.dtype),
    "copy": lambda x, source: expand(cast(source, x.dtype), x.shape),
}
