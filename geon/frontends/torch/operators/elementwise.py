"""Arithmetic, comparisons, logic, activation functions and casts, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional.elementwise import elementwise
from ...positional.programs import backward, cast
from ...positional.values import Value
from .common import category, promoted, unary, value_of

Builder = Callable[..., Value]


def arithmetic(f: Callable[..., Any]) -> Builder:
    """Return the builder of a function of two operands in the dtype of its result."""

    def build(x: Any, y: Any, *, alpha: Any = 1, result: Any) -> Value:
        dtype = np.dtype("uint8") if result.dtype.kind == "b" else result.dtype
        left, right = value_of(x, dtype), value_of(y, dtype)
        if alpha != 1:
            right = elementwise(geon.multiply, right, value_of(alpha, dtype))
        return elementwise(f, left, right)

    return build


def comparison(f: Callable[..., Any]) -> Builder:
    """Return the builder of a comparison, in the dtype that operands are promoted to."""

    def build(x: Any, y: Any) -> Value:
        dtype = promoted([x, y])
        return elementwise(f, value_of(x, dtype), value_of(y, dtype))

    return build


def logic(f: Callable[..., Any]) -> Builder:
    """Return the builder of a function of truth values: of elements that are not 0."""

    def build(*operands: Value) -> Value:
        return elementwise(f, *[cast(each, "bool") for each in operands])

    return build


def bitwise(f: Callable[..., Any]) -> Builder:
    """Return the builder of a function of bits, or of truth values."""

    def build(*operands: Any, result: Any) -> Value:
        return elementwise(f, *[value_of(each, result.dtype) for each in operands])

    return build


def truncated(x: geon.Tensor, y: geon.Tensor) -> geon.Tensor:
    """Return the quotient without its fraction."""
    if x.dtype.kind not in "iu":
        return geon.trunc(x / y)
    quotient = geon.floordivide(x, y)
    inexact = geon.not_equal(quotient * y, x)
    return geon.where(
        geon.logical_and(inexact, geon.not_equal(x < 0, y < 0)), quotient + 1, quotient
    )


def remainder_truncated(x: geon.Tensor, y: geon.Tensor) -> geon.Tensor:
    """Return the remainder of the truncated quotient, with the sign of ``x``."""
    rest = geon.mod(geon.absolute(x), geon.absolute(y))
    return geon.where(x < 0, -rest, rest)


def divide_rounded(x: Any, y: Any, *, rounding_mode: str | None = None, result: Any) -> Value:
    """Return the quotient, truncated or rounded down on request."""
    f = {None: geon.divide, "trunc": truncated, "floor": geon.floordivide}[rounding_mode]
    return elementwise(f, value_of(x, result.dtype), value_of(y, result.dtype))


def where(condition: Value, x: Any, y: Any, *, result: Any) -> Value:
    """Return ``x`` where the condition is true, else ``y``."""
    return elementwise(
        geon.where, cast(condition, "bool"), value_of(x, result.dtype), value_of(y, result.dtype)
    )


def clamp(x: Value, low: Any = None, high: Any = None, *, result: Any) -> Value:
    """Return elements from ``low`` to ``high``, which wins if it is smaller."""
    x = cast(x, result.dtype)
    for f, bound in ((geon.maximum, low), (geon.minimum, high)):
        x = x if bound is None else elementwise(f, x, value_of(bound, result.dtype))
    return x


def convert(x: Value, *, dtype: Any = None) -> Value:
    """Return elements in another dtype; floats become integers without their fraction."""
    if dtype is None or np.dtype(dtype) == x.dtype:
        return x
    return cast(x, dtype)


def same(x: Value) -> Value:
    """Return the tensor: values of geon are never changed in place."""
    return x


def rounded(x: Value, *, decimals: int = 0) -> Value:
    """Return the nearest numbers with so many decimals, halves to even."""
    if category(x.dtype) != 2:
        return x
    scale = 10.0**decimals
    return elementwise(lambda t: geon.round(t * scale) / scale if decimals else geon.round(t), x)


def gelu(x: Value, *, approximate: str = "none") -> Value:
    """Return x * Phi(x), exactly or by tanh."""
    return elementwise(lambda t: geon.gelu(t, approximate=approximate), x)


def elu(x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    """Return ``scale * x``, of negative elements ``scale * alpha * expm1(input_scale * x)``."""

    def build(t: geon.Tensor) -> geon.Tensor:
        low = alpha * geon.expm1(geon.minimum(input_scale * t, 0))
        return scale * geon.where(t > 0, t, low)

    return elementwise(build, x)


def leaky_relu(x: Value, slope: float = 0.01) -> Value:
    """Return ``x``, of negative elements ``slope * x``."""
    return elementwise(lambda t: geon.where(t > 0, t, slope * t), x)


def relu(t: geon.Tensor) -> geon.Tensor:
    """Return the larger of ``t`` and 0, with the derivative 0 at 0."""
    return geon.where(t > 0, t, 0 * t)


def hardtanh(x: Value, low: float = -1, high: float = 1, *, result: Any) -> Value:
    """Return elements from ``low`` to ``high``."""
    return clamp(x, low, high, result=result)


def softplus(x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """Return ``log(1 + exp(beta * x)) / beta``, and ``x`` beyond the threshold."""
    return elementwise(
        lambda t: geon.where(beta * t > threshold, t, geon.softplus(beta * t) / beta), x
    )


def fill(x: Value, number: Any) -> Value:
    """Return a number in the shape and dtype of ``x``."""
    from .common import filled

    return filled(number, x.shape, x.dtype)


def copied(x: Value, source: Value, non_blocking: bool = False) -> Value:
    """Return ``source`` in the shape and dtype of ``x``."""
    from ...positional.elementwise import expand

    return expand(cast(source, x.dtype), x.shape)


def number(value: Value) -> Any:
    """Return the tensor without dimensions that stands for a number of the program."""
    if value.shape not in ((), (1,)):
        raise ArgumentError(f"{value} is no single number")
    return value


def derivative_of(f: Callable[..., Any]) -> Builder:
    """Return the builder of the derivative of an activation: of a gradient and its argument."""

    def build(gradient: Value, x: Value, *options: Any, **named: Any) -> Value:
        return backward(lambda t: f(t, *options, **named), [x], gradient)[0]

    return build


UNARY: dict[str, Callable[..., Any]] = {
    "abs": geon.absolute, "acos": geon.acos, "acosh": geon.acosh, "asin": geon.asin,
    "asinh": geon.asinh, "atan": geon.atan, "atanh": geon.atanh, "ceil": geon.ceil,
    "cos": geon.cos, "cosh": geon.cosh, "digamma": geon.digamma, "erf": geon.erf,
    "erfc": geon.erfc, "erfinv": geon.erfinv, "exp": geon.exp, "expm1": geon.expm1,
    "exp2": lambda t: geon.exp(t * math.log(2)), "floor": geon.floor, "isfinite": geon.isfinite,
    "isinf": geon.isinf, "isnan": geon.isnan, "lgamma": geon.lgamma, "log": geon.log,
    "log10": lambda t: geon.log(t) / math.log(10), "log1p": geon.log1p,
    "log2": lambda t: geon.log(t) / math.log(2), "neg": geon.negative,
    "reciprocal": geon.reciprocal, "relu": relu, "rsqrt": geon.rsqrt, "sigmoid": geon.sigmoid,
    "sign": geon.sign, "silu": geon.silu, "sin": geon.sin, "sinh": geon.sinh, "sqrt": geon.sqrt,
    "square": geon.square, "tan": geon.tan, "tanh": geon.tanh, "trunc": geon.trunc,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": geon.add, "sub": geon.subtract, "mul": geon.multiply, "div": geon.divide,
    "remainder": geon.mod, "fmod": remainder_truncated, "pow": geon.power,
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": geon.equal, "ne": geon.not_equal, "lt": geon.less, "le": geon.less_equal,
    "gt": geon.greater, "ge": geon.greater_equal,
}  # fmt: skip
BITWISE: dict[str, Callable[..., Any]] = {
    "bitwise_and": geon.bitwise_and, "bitwise_or": geon.bitwise_or, "bitwise_xor": geon.bitwise_xor,
}  # fmt: skip
LOGIC: dict[str, Callable[..., Any]] = {
    "logical_and": geon.logical_and, "logical_or": geon.logical_or,
    "logical_xor": geon.logical_xor, "logical_not": geon.logical_not,
}  # fmt: skip

ROWS: dict[str, Callable[..., Any]] = {
    **{name: unary(f) for name, f in UNARY.items()},
    **{
        f"{n}.{kind}": arithmetic(f) for n, f in ARITHMETIC.items() for kind in ("Tensor", "Scalar")
    },
    **{f"{n}.{k}": comparison(f) for n, f in COMPARISONS.items() for k in ("Tensor", "Scalar")},
    **{f"{n}.{k}": bitwise(f) for n, f in BITWISE.items() for k in ("Tensor", "Scalar")},
    **{name: logic(f) for name, f in LOGIC.items()},
    "bitwise_not": bitwise(geon.bitwise_not),
    "pow.Tensor_Scalar": arithmetic(geon.power),
    "pow.Tensor_Tensor": arithmetic(geon.power),
    "atan2": arithmetic(geon.atan2),
    "maximum": arithmetic(geon.maximum),
    "minimum": arithmetic(geon.minimum),
    "div.Tensor_mode": divide_rounded,
    "div.Scalar_mode": divide_rounded,
    "where.self": where,
    "clamp": clamp,
    "clamp.Tensor": clamp,
    "_to_copy": convert,
    "clone": same,
    "alias": same,
    "detach": lambda x: elementwise(geon.stop_gradient, x),
    "lift_fresh_copy": same,
    "round": rounded,
    "round.decimals": rounded,
    "gelu": gelu,
    "elu": elu,
    "leaky_relu": leaky_relu,
    "hardtanh": hardtanh,
    "softplus": softplus,
    "fill.Scalar": fill,
    "fill.Tensor": fill,
    "copy": copied,
    "_local_scalar_dense": number,
    "gelu_backward": derivative_of(gelu),
    "elu_backward": derivative_of(elu),
    "leaky_relu_backward": lambda g, x, slope, self_is_result: derivative_of(leaky_relu)(
        g, x, slope
    ),
}
