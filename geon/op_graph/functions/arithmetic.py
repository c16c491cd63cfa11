"""Elementwise composites: remainders, roots, logarithms of sums, limits at 0, comparisons.

Each has the derivative of its formula, and at a kink the one that its docstring states.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..building.constants import as_tensor, number
from ..building.weak import exact, in_dtype, like
from ..core.argument_hints import check_integer
from ..core.primitive import refuse_float8
from ..op_graph import Tensor
from ..rows import elementwise as rows
from ..rows.accumulation import floating
from ..rows.elementwise import (
    absolute,
    add,
    cast,
    divide,
    equal,
    floordivide,
    greater,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    power,
    softplus,
    sqrt,
    square,
    stop_gradient,
    subtract,
    trunc,
    where,
)
from ..rows.logic import gcd, logical_and, logical_not, logical_or
from ..rows.movement import broadcast
from ..rows.reductions import all as all_of
from ..rows.trigonometry import atanh, sin
from ..values.dtypes import FLOAT64, kind
from .bits import float_operands, signbit
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxesLike, Binary, Named, OpKeywords, TensorLike

LN2 = math.log(2)


# Division and rounding ---------------------------------------------------------------------------


@composite
def trunc_divide(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return x / y rounded to 0: the quotient that ``fmod`` leaves the remainder of.

    An integer divided by 0 gives 0. The derivative is zero.
    """
    quotient = floordivide(x, y)
    if kind(quotient.dtype) == "f":
        return trunc(divide(x, y))
    x, y = as_tensor(x, near=quotient), as_tensor(y, near=quotient)
    inexact = rows.not_equal.apply(multiply.apply(quotient, y), x)
    inexact = logical_and.apply(inexact, rows.not_equal.apply(y, 0))
    below = rows.not_equal.apply(less.apply(x, 0), less.apply(y, 0))
    return add.apply(quotient, where.apply(logical_and.apply(inexact, below), 1, 0))


@composite
def fmod(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the exact remainder of x / y rounded to 0, with the sign of ``x``, as C's fmod.

    ``mod`` has the sign of ``y``. An integer modulo 0 gives 0. The derivative in ``x`` is 1, that
    in ``y`` the negative quotient.
    """
    rest = mod(x, y)
    if kind(rest.dtype) != "f":
        x, y = as_tensor(x, near=rest), as_tensor(y, near=rest)
        other = rows.not_equal.apply(less.apply(x, 0), less.apply(y, 0))
        other = logical_and.apply(other, rows.not_equal.apply(rest, 0))
        return subtract.apply(rest, where.apply(other, y, 0))
    x, y = float_operands("fmod", x, y)
    mirrored = signbit(x)
    rest = mod.apply(where.apply(mirrored, negative.apply(x), x), absolute(y))
    return where.apply(mirrored, negative.apply(rest), rest)


@composite
def frac(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` less its integer part, with the sign of ``x``; the derivative is 1."""
    x = as_tensor(x)
    return subtract.apply(x, trunc(x))


@composite
def round(
    x: TensorLike,
    decimals: int = 0,
    *,
    axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` rounded to so many decimals, halves to even; the derivative is zero.

    The result has the ``axes``, those of ``x`` by default.
    A negative number of ``decimals`` rounds to tens, hundreds and so on. Integers stay, unless
    ``decimals`` is negative. As in NumPy, ``x`` is scaled by a power of ten, rounded to an integer
    and scaled back: large decimals lose digits.
    """
    x = as_tensor(x) if axes is None else broadcast(x, axes)
    check_integer("round", "decimals", decimals)
    if not decimals or (decimals > 0 and kind(x.dtype) != "f"):
        return rows.round(x)
    scale = 10.0 ** abs(decimals)
    if kind(x.dtype) == "f":
        up = decimals > 0
        scaled = multiply.apply(x, scale) if up else divide.apply(x, scale)
        whole = rows.round(scaled)
        return divide.apply(whole, scale) if up else multiply.apply(whole, scale)
    unit = 10**-decimals
    down = floordivide.apply(x, unit)
    rest = subtract.apply(x, multiply.apply(down, unit))
    odd = equal.apply(mod.apply(down, 2), 1)
    up_too = logical_and.apply(equal.apply(rest, unit // 2), odd)
    up_too = logical_or.apply(greater.apply(rest, unit // 2), up_too)
    return multiply.apply(add.apply(down, where.apply(up_too, 1, 0)), unit)


@composite
def lcm(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the least common multiple of the integers |x| and |y|; 0 if one is 0.

    Products that do not fit the dtype wrap around. Raises ``DTypeError`` for floats and bool.
    """
    divisor = gcd(x, y)
    x, y = as_tensor(x, near=divisor), as_tensor(y, near=divisor)
    part = floordivide.apply(absolute(x), maximum.apply(divisor, 1))
    return multiply.apply(part, absolute(y))


# Extremes and signs ------------------------------------------------------------------------------


def _beside_nan(x: Any, y: Any, row: Binary) -> Tensor:
    """Return an extreme of two, the other one where one is NaN."""
    result = row(x, y)
    if kind(result.dtype) != "f":
        return result
    x, y = as_tensor(x, near=result), as_tensor(y, near=result)
    return where.apply(isnan(x), y, where.apply(isnan(y), x, result))


@composite
def fmax(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the larger of ``x`` and ``y``, or the one that is not NaN.

    A tie shares its derivative equally, as in ``maximum``.
    """
    return _beside_nan(x, y, maximum)


@composite
def fmin(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the smaller of ``x`` and ``y``, or the one that is not NaN.

    A tie shares its derivative equally, as in ``minimum``.
    """
    return _beside_nan(x, y, minimum)


@composite
def heaviside(x: TensorLike, at_zero: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return 0 for x < 0, 1 for x > 0 and ``at_zero`` for x = 0; NaN stays.

    The derivative in ``x`` is zero, that in ``at_zero`` 1 where x is 0.
    """
    x, at_zero = float_operands("heaviside", x, at_zero)
    step = where.apply(greater.apply(x, 0), 1.0, where.apply(isnan(x), math.nan, 0.0))
    return where.apply(equal.apply(x, 0), at_zero, in_dtype(step, x.dtype))


@composite
def nan_to_num(
    x: TensorLike,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return ``x`` with other numbers for NaN and infinities; their derivative is 0.

    By default these are 0 and the largest and smallest finite number of the dtype. Integers and
    bool stay.
    """
    x = as_tensor(x)
    refuse_float8((x,), "nan_to_num")
    if kind(x.dtype) != "f":
        return x
    largest = _largest(x)
    x = where.apply(equal.apply(x, math.inf), largest if posinf is None else posinf, x)
    x = where.apply(equal.apply(x, -math.inf), -largest if neginf is None else neginf, x)
    return where.apply(isnan(x), nan, x)


def _largest(x: Tensor) -> float:
    if x.dtype.name == "bfloat16":
        return float(2.0**127 * (2 - 2.0**-7))
    return float(np.finfo(x.dtype).max)


@composite
def isclose(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike = 1e-5,
    atol: TensorLike = 1e-8,
    *,
    equal_nan: bool = False,
    **notes: Unpack[Named],
) -> Tensor:
    """Return true where abs(x - y) <= atol + rtol * abs(y), or both are equal infinities.

    With ``equal_nan`` two NaN are close.
    """
    x, y = float_operands("isclose", x, y)
    near = less_equal(absolute(x - y), add(atol, multiply(rtol, absolute(y))))
    near = logical_and(near, logical_not(isinf(y)))
    near = logical_or(near, equal(x, y))
    return logical_or(near, logical_and(isnan(x), isnan(y))) if equal_nan else near


@composite
def allclose(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike = 1e-5,
    atol: TensorLike = 1e-8,
    *,
    equal_nan: bool = False,
    reduction_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return true where ``isclose`` holds along all ``reduction_axes``, by default all axes."""
    return all_of(isclose(x, y, rtol, atol, equal_nan=equal_nan), reduction_axes)


# Powers, exponentials and logarithms -------------------------------------------------------------


@composite
def exp2(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return 2 to the power ``x``; integers and bool give float32."""
    return power(2.0, floating(as_tensor(x)))


@composite
def float_power(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` to the power ``y`` in float64, whatever their dtypes."""
    given = as_tensor(x, near=y), as_tensor(y, near=x)
    refuse_float8(given, "float_power")
    return power(*[in_dtype(cast(each, FLOAT64), FLOAT64) for each in given])


@composite
def cbrt(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the cube root, of negative numbers too; its derivative at 0 is infinite.

    A power is corrected by one step of Newton's method, which rounds it to an ulp or two.
    """
    x = floating(as_tensor(x))
    mirrored = signbit(x)
    size = where.apply(mirrored, negative.apply(x), x)
    root = power(size, 1.0 / 3.0)
    some = logical_and(greater(size, 0), logical_not(isinf(size)))
    safe = where(some, root, 1.0)
    error = (safe - where(some, size, 1.0) / square(safe)) / 3.0
    root = root - stop_gradient(where(some, error, 0.0))
    return where.apply(mirrored, negative.apply(root), root)


# Powers of two by which float64 sums of squares are kept in range, and where they are.
SCALES = ((2.0**500, 2.0**-600), (2.0**-450, 2.0**600))


@composite
def hypot(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return sqrt(x^2 + y^2) without overflow or underflow of the squares.

    It is infinite where one of them is, even beside NaN. The derivative at 0 is 0.
    """
    x, y = given = float_operands("hypot", x, y)
    infinite = logical_or.apply(isinf(x), isinf(y))
    x, y = (in_dtype(exact(where.apply(infinite, 0.0, each)), FLOAT64) for each in given)
    scale: Tensor | None = None
    if given[0].dtype == FLOAT64 or given[0].weak:
        size = stop_gradient(maximum.apply(absolute(x), absolute(y)))
        (high, down), (low, up) = SCALES
        small = where(less(size, low), number(up, FLOAT64), 1.0)
        scale = where(greater(size, high), number(down, FLOAT64), small)
        x, y = x * scale, y * scale
    squares = add.apply(square(x), square(y))
    zero = equal(squares, 0)
    root = where(zero, 0, sqrt(where(zero, 1, squares)))
    root = root if scale is None else root / scale
    result = where.apply(infinite, math.inf, root)
    return like(result, given[0]) if given[0].weak else in_dtype(result, given[0].dtype)


@composite
def logaddexp(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    The derivatives are exp(x) and exp(y) divided by their sum, 1/2 where both are equal, also equal
    infinities.
    """
    x, y = float_operands("logaddexp", x, y)
    far = where.apply(equal.apply(x, y), 0, subtract.apply(x, y))
    return add.apply(maximum.apply(x, y), softplus(negative.apply(absolute(far))))


@composite
def logaddexp2(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return log2(2^x + 2^y) without overflow; derivatives as in ``logaddexp``."""
    x, y = float_operands("logaddexp2", x, y)
    far = where.apply(equal.apply(x, y), 0, subtract.apply(x, y))
    return add.apply(maximum.apply(x, y), softplus(absolute(far) * -LN2) * (1 / LN2))


def _times_log(x: Any, y: Any, what: str, first: float, logarithm: Any) -> Tensor:
    """Return x * logarithm(y), 0 where x is 0 and the logarithm is infinite or undefined."""
    x, y = float_operands(what, x, y)
    inside = logical_and.apply(greater.apply(y, first), logical_not(isinf(y)))
    bad = logical_and.apply(equal.apply(x, 0), logical_not(inside))
    product = multiply.apply(x, logarithm(where.apply(bad, 1, y)))
    return where.apply(bad, where.apply(isnan(y), y, 0), product)


@composite
def xlogy(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return x * log(y), 0 where x is 0 and y is no positive finite number but not NaN.

    There the derivatives are 0 too.
    """
    return _times_log(x, y, "xlogy", 0.0, log)


@composite
def xlog1py(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return x * log(1 + y), 0 where x is 0 and 1 + y is no positive finite number but not NaN.

    There the derivatives are 0 too.
    """
    return _times_log(x, y, "xlog1py", -1.0, log1p)


@composite
def logit(x: TensorLike, eps: float | None = None, **notes: Unpack[Named]) -> Tensor:
    """Return log(x / (1 - x)), the inverse of ``sigmoid``; infinite at 0 and 1, NaN beyond.

    ``eps`` clamps ``x`` to eps and 1 - eps first. Around 1/2 it is 2 atanh(2 x - 1), which is
    exact there.
    """
    x = floating(as_tensor(x))
    if eps is not None:
        x = minimum(maximum(x, eps), 1 - eps)
    near = logical_and(greater(x, 0.25), less(x, 0.75))
    middle = 2 * atanh(2 * where(near, x, 0.5) - 1)
    outside = where(near, 0.1, x)
    return where(near, middle, log(outside) - log1p(-outside))


# Angles ------------------------------------------------------------------------------------------


@composite
def deg2rad(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return an angle in degrees in radians; integers and bool give float32."""
    return floating(as_tensor(x)) * (math.pi / 180)


@composite
def rad2deg(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return an angle in radians in degrees; integers and bool give float32."""
    return floating(as_tensor(x)) * (180 / math.pi)


def _sine_of_half_turns(x: Tensor) -> Tensor:
    """Return sin(pi x), exactly 0 for integers, by the distance from the nearest one."""
    nearest = stop_gradient(rows.round(x))
    odd = stop_gradient(nearest - 2 * rows.floor(nearest * 0.5))
    return (1 - 2 * odd) * sin(math.pi * (x - nearest))


# Terms of sin(t) / t = 1 - t^2 / 6 + ... in t^2, highest power first, for |t| < 1.
SINC_TERMS = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(9, -1, -1)]


def _sine_ratio(t: Tensor, near: Tensor) -> Tensor:
    """Return sin(t) / t where ``near``, from its series, so that derivatives are exact at 0."""
    s = square(where(near, t, 0))
    total: Any = SINC_TERMS[0]
    for term in SINC_TERMS[1:]:
        total = total * s + term
    return total  # type: ignore[no-any-return]  # a tensor from the first turn on


@composite
def sinc(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return sin(pi x) / (pi x), 1 at 0 and exactly 0 at the other integers; NaN at infinities."""
    x = floating(as_tensor(x))
    near = less(absolute(x), 1 / math.pi)
    far = where(near, 1, x)
    return where(near, _sine_ratio(math.pi * x, near), _sine_of_half_turns(far) / (math.pi * far))


@composite
def spherical_j0(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return sin(x) / x, the spherical Bessel function of the first kind of order 0.

    It is 1 at 0 and 0 at infinities.
    """
    x = floating(as_tensor(x))
    near, infinite = less(absolute(x), 1), isinf(x)
    far = where(logical_or(near, infinite), 1, x)
    return where(near, _sine_ratio(x, near), where(infinite, 0, sin(far) / far))
