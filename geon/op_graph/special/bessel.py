"""Bessel functions of orders 0 and 1, Airy functions, and the inverse of ``ndtr``, as rows.

``bessel_formulas`` and ``airy_formulas`` have their formulas. Derivatives are DLMF 10.6.2 and
10.29.2, and those of the Airy functions follow from y'' = x y (DLMF 9.2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..building.elementwise_build import elementwise
from ..op_graph import Tensor
from ..rows.elementwise import absolute, equal, minimum, sign, where
from .special_functions import erfcx, precise

if TYPE_CHECKING:
    from ..building.typing import Unary


def _function(kind: str, order: int, scale: int = 0) -> Any:
    """Return the reference of a Bessel function times exp(scale * |x|), of mpmath numbers."""

    def one(x: Any) -> Any:
        import mpmath

        if kind in "yk" and x <= 0:
            return mpmath.nan if x < 0 else mpmath.inf * (1 if kind == "k" else -1)
        size = abs(x)
        if size > 1e6 and kind == "i":
            return _far(size, order, scale) * (-1 if order and x < 0 else 1)
        if mpmath.isinf(x):
            return mpmath.mpf(0)
        if size > 1e6 and kind == "k":
            return mpmath.sqrt(mpmath.pi / (2 * size)) * mpmath.exp(min(scale - 1, 0) * size)
        value = getattr(mpmath, f"bessel{kind}")(order, x)
        return value * mpmath.exp(scale * size) if scale else value

    return precise(one)


def _far(size: Any, order: int, scale: int) -> Any:
    """Return exp(scale x) I(x) for x > 1e6, by three terms of DLMF 10.40.1."""
    import mpmath

    if not scale or mpmath.isinf(size):
        return mpmath.mpf(0) if scale else mpmath.inf
    m = 4 * order * order
    series = 1 - mpmath.mpf(m - 1) / (8 * size) + mpmath.mpf((m - 1) * (m - 9)) / (128 * size**2)
    return series / mpmath.sqrt(2 * mpmath.pi * size)


def _bessel(name: str, doc: str, reference: Any, partial: Callable[..., Any], **facts: Any) -> Any:
    return elementwise(name, doc, reference, (partial,), rule="float", cost="expensive", **facts)


def _over(value: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """Return value / x, and its limit at x = 0."""
    zero = equal.apply(x, 0)
    return where.apply(zero, at_zero, value / where.apply(zero, 1, x))


# Airy functions are NaN below it, where too few digits of the angle 2/3 |x|^1.5 are left.
MIN_AIRY_ARGUMENT = -1e8
POSITIVE = ((0.2, 12.0),)
BOTH = ((-12.0, 12.0),)

i0: Unary = _bessel(
    "i0",
    "The modified Bessel function of the first kind of order 0.",
    _function("i", 0),
    lambda out, x: i1(x),
    sympy="besseli(0, x)",
)
i0e: Unary = _bessel(
    "i0e",
    "exp(-|x|) times the modified Bessel function of the first kind of order 0.",
    _function("i", 0, -1),
    lambda out, x: i1e(x) - sign(x) * out,
    sympy="exp(-Abs(x)) * besseli(0, x)",
    domain=POSITIVE,
)
i1: Unary = _bessel(
    "i1",
    "The modified Bessel function of the first kind of order 1.",
    _function("i", 1),
    lambda out, x: i0(x) - _over(out, x, 0.5),
    sympy="besseli(1, x)",
)
i1e: Unary = _bessel(
    "i1e",
    "exp(-|x|) times the modified Bessel function of the first kind of order 1.",
    _function("i", 1, -1),
    lambda out, x: i0e(x) - _over(out, x, 0.5) - sign(x) * out,
    sympy="exp(-Abs(x)) * besseli(1, x)",
    domain=POSITIVE,
)
j0: Unary = _bessel(
    "j0",
    "The Bessel function of the first kind of order 0.",
    _function("j", 0),
    lambda out, x: -j1(x),
    sympy="besselj(0, x)",
    domain=BOTH,
)
j1: Unary = _bessel(
    "j1",
    "The Bessel function of the first kind of order 1.",
    _function("j", 1),
    lambda out, x: j0(x) - _over(out, x, 0.5),
    sympy="besselj(1, x)",
    domain=BOTH,
)
y0: Unary = _bessel(
    "y0",
    "The Bessel function of the second kind of order 0, for x > 0; -inf at 0.",
    _function("y", 0),
    lambda out, x: -y1(x),
    sympy="bessely(0, x)",
    domain=POSITIVE,
)
y1: Unary = _bessel(
    "y1",
    "The Bessel function of the second kind of order 1, for x > 0; -inf at 0.",
    _function("y", 1),
    lambda out, x: y0(x) - out / x,
    sympy="bessely(1, x)",
    domain=POSITIVE,
)
k0: Unary = _bessel(
    "k0",
    "The modified Bessel function of the second kind of order 0, for x > 0; infinite at 0.",
    _function("k", 0),
    lambda out, x: -k1(x),
    sympy="besselk(0, x)",
    domain=POSITIVE,
)
k0e: Unary = _bessel(
    "k0e",
    "exp(x) times the modified Bessel function of the second kind of order 0.",
    _function("k", 0, 1),
    lambda out, x: out - k1e(x),
    sympy="exp(x) * besselk(0, x)",
    domain=POSITIVE,
)
k1: Unary = _bessel(
    "k1",
    "The modified Bessel function of the second kind of order 1, for x > 0; infinite at 0.",
    _function("k", 1),
    lambda out, x: -k0(x) - out / x,
    sympy="besselk(1, x)",
    domain=POSITIVE,
)
k1e: Unary = _bessel(
    "k1e",
    "exp(x) times the modified Bessel function of the second kind of order 1.",
    _function("k", 1, 1),
    lambda out, x: out - k0e(x) - out / x,
    sympy="exp(x) * besselk(1, x)",
    domain=POSITIVE,
)


def _airy_function(kind: str, derivative: int) -> Any:
    """Return the reference of Ai or Bi, or of its derivative, of mpmath numbers."""

    def one(x: Any) -> Any:
        import mpmath

        if x < MIN_AIRY_ARGUMENT:
            return mpmath.nan
        if x > 1000:  # beyond the range of floats
            return mpmath.inf if kind == "b" else mpmath.mpf(0)
        return getattr(mpmath, f"airy{kind}i")(x, derivative=derivative)

    return precise(one)


def _airy(name: str, doc: str, kind: str, derivative: int, partial: Any, symbol: str) -> Any:
    return elementwise(
        name,
        doc,
        _airy_function(kind, derivative),
        (partial,),
        rule="float",
        sympy=f"airy{symbol}(x)",
        domain=((-8.0, 5.0),),
        cost="expensive",
    )


airy_ai: Unary = _airy(
    "airy_ai",
    "The Airy function Ai; NaN below -1e8.",
    "a",
    0,
    lambda out, x: airy_aip(x),
    "ai",
)
airy_aip: Unary = _airy(
    "airy_aip",
    "The derivative of the Airy function Ai; NaN below -1e8.",
    "a",
    1,
    lambda out, x: x * airy_ai(x),
    "aiprime",
)
airy_bi: Unary = _airy(
    "airy_bi",
    "The Airy function Bi; NaN below -1e8.",
    "b",
    0,
    lambda out, x: airy_bip(x),
    "bi",
)
airy_bip: Unary = _airy(
    "airy_bip",
    "The derivative of the Airy function Bi; NaN below -1e8.",
    "b",
    1,
    lambda out, x: x * airy_bi(x),
    "biprime",
)


def _ndtri(p: Any) -> Any:
    import mpmath

    if not 0 < p < 1:
        return mpmath.inf * (1 if p else -1) if p in (0, 1) else mpmath.nan
    if p == 0.5:
        return mpmath.mpf(0)
    q = min(p, 1 - p)
    start = mpmath.sqrt(-2 * mpmath.log(q))
    start = start - (mpmath.log(start) + 1) / start if start > 2 else mpmath.mpf(0.5)
    logarithm = mpmath.log(2 * q)
    root = mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2))) - logarithm, start)
    return root if p > 0.5 else -root


def _ndtri_derivative(out: Tensor, p: Tensor) -> Tensor:
    """Return the reciprocal of the density, from erfcx and the smaller tail."""
    tail = minimum(p, 1 - p)
    inside = tail > 0
    size = where(inside, absolute(out), 1)
    value = math.sqrt(math.pi / 2) * erfcx(math.sqrt(0.5) * size) / where(inside, tail, 1)
    return where(inside, value, math.inf)


ndtri = elementwise(
    "ndtri",
    "The inverse of ``geon.ndtr``; infinite at 0 and 1, NaN beyond.",
    precise(_ndtri),
    (_ndtri_derivative,),
    rule="float",
    sympy="sqrt(2) * erfinv(2 * x - 1)",
    domain=((0.02, 0.98),),
    cost="expensive",
)
