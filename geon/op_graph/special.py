"""Special functions: erf, lgamma, and polygamma with its order as an attribute.

What a target lacks of them is lowered to the formulas of ``approximations``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DerivativeError
from .build import elementwise
from .constants import as_tensor
from .dtypes import kind
from .elementwise import cast, exp, square
from .op_graph import ComputationOp, Tensor, annotate, intern
from .registry import Primitive

Array = np.ndarray[Any, Any]


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _lgamma(x: Array) -> Array:
    def one(value: float) -> float:
        if math.isinf(value) or (value <= 0 and value == math.floor(value)):
            return math.inf
        try:
            return math.lgamma(value)
        except OverflowError:
            return math.inf

    return np.asarray(np.vectorize(one, otypes=[np.float64])(x))


erf = elementwise(
    "erf",
    "The error function 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    _erf,
    (lambda out, x: (2 / math.sqrt(math.pi)) * exp(-square(x)),),
    rule="float",
    sympy="erf(x)",
)
lgamma = elementwise(
    "lgamma",
    "log |gamma(x)|; infinite at 0 and the negative integers.",
    _lgamma,
    (lambda out, x: polygamma(0, x),),
    rule="float",
    sympy="loggamma(x)",
    domain=((0.5, 4.0),),
)
POLYGAMMA = Primitive(
    "polygamma",
    "elementwise",
    "The derivative of order n of digamma, itself the derivative of lgamma (n = 0).",
    reference=lambda op, x: _polygamma_reference(op.attrs[0], x),
    partials=(lambda out, x: polygamma(out.attrs[0] + 1, x),),
    attributes=("n",),
)


def polygamma(
    n: int, x: Any, *, name: str | None = None, tags: Any = (), follows: Any = ()
) -> Tensor:
    """The polygamma function of integer order ``n`` >= 0; order 0 is digamma.

    ``x`` is a float tensor. Raises ``DerivativeError`` for a negative order.
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise DerivativeError(f"polygamma needs an integer order of at least 0, not {n!r}")
    x = as_tensor(x)
    if kind(x.dtype) != "f" or x.weak:
        x = cast(x, "float32" if kind(x.dtype) != "f" else x.dtype)
    made = intern(ComputationOp, POLYGAMMA, (x,), (n,), x.axes, x.dtype)
    return annotate(made, name, tags, follows)


def digamma(x: Any, *, name: str | None = None, tags: Any = (), follows: Any = ()) -> Tensor:
    """The derivative of ``lgamma``."""
    return polygamma(0, x, name=name, tags=tags, follows=follows)


def _polygamma_pole(n: int, value: float) -> float:
    """The value at 0 and the negative integers: digamma has both signs there, the others one."""
    if n:
        return math.inf if n % 2 else -math.inf
    return math.nan if value else -math.copysign(math.inf, value)


WORKING_BITS = 256  # near a root the terms of the reflection cancel to 2**-53 of their size


def _polygamma_reference(n: int, x: Array) -> Array:
    """Polygamma of order n, rounded from 256 bits; as fast for large negative x as for positive.

    For x < 0 by the reflection, DLMF 5.15.6:
    polygamma(n, x) = (-1)^n polygamma(n, 1 - x) - pi d^n/dx^n cot(pi x).
    """
    from mpmath.ctx_mp import MPContext

    context = MPContext()  # the working precision of mpmath's own is shared by all threads
    context.prec = WORKING_BITS
    cotangent = _cotangent_derivative(n)

    def one(value: float) -> float:
        if math.isnan(value) or value == -math.inf:
            return math.nan
        if value <= 0 and value == math.floor(value):
            return _polygamma_pole(n, value)
        exact = context.mpf(float(value))
        if value > 0:
            return float(context.psi(n, exact))
        cosine, sine = context.cospi(exact), context.sinpi(exact)
        slope = context.polyval(cotangent[::-1], cosine / sine) * context.pi ** (n + 1)
        return float((-1) ** n * context.psi(n, 1 - exact) - slope)

    return np.asarray(np.vectorize(one, otypes=[np.float64])(x))


def _cotangent_derivative(n: int) -> list[int]:
    """The n-th derivative of cot t as a polynomial in c = cot t, lowest power first.

    By cot' = -(1 + cot^2) each derivative of a power is two others.
    """
    powers = [0, 1]
    for _ in range(n):
        slope = [-k * a for k, a in enumerate(powers)][1:]
        powers = [a + b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return powers
