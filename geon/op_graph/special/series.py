"""Composites: the Hurwitz zeta function and orthogonal polynomials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ...errors import ArgumentError
from ..building.constants import as_tensor
from ..core.argument_hints import check_choice, public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.accumulation import floating
from ..rows.elementwise import equal, floor, greater, isnan, power, where
from ..rows.logic import logical_and, logical_or
from ..values.attribute_types import as_int
from .gamma_formulas import BERNOULLI

if TYPE_CHECKING:
    from ..building.typing import Named, TensorLike

SUMMED_TERMS = 10  # of the zeta series; the Euler-Maclaurin terms of the rest are below 1e-17 of it


@public
def zeta(s: TensorLike, q: TensorLike = 1.0, **notes: Unpack[Named]) -> Tensor:
    """Return the Hurwitz zeta function, the sum of (k + q)^-s over k >= 0; Riemann's for q = 1.

    It is infinite for s = 1, and for s > 1 at q = 0, -1, -2, ...; NaN for s < 1 and other q < 0.
    It has derivatives in both. Ten terms and the Euler-Maclaurin series of the rest, Abramowitz and
    Stegun 23.1.30.
    """
    s, q = floating(as_tensor(s)), floating(as_tensor(q))
    inside = logical_and(greater(s, 1), greater(q, 0))
    pole = logical_and(greater(s, 1), logical_and(q <= 0, equal(floor(q), q)))
    pole = logical_or(pole, equal(s, 1))
    outside = where(pole, math.inf, math.nan)
    s, q = where(inside, s, 2), where(inside, q, 1)
    end = q + SUMMED_TERMS
    far = power(end, -s)
    total = far * (end / (s - 1) + 0.5)
    factor, inverse = s / end, 1 / (end * end)
    for k, (numerator, denominator) in enumerate(BERNOULLI, start=1):
        total = total + far * factor * (numerator / denominator / math.factorial(2 * k))
        factor = factor * (s + (2 * k - 1)) * (s + 2 * k) * inverse
    for k in range(SUMMED_TERMS - 1, -1, -1):
        total = total + power(q + k, -s)
    nan = logical_or(isnan(s), isnan(q))
    return where(inside, total, where(nan, math.nan, outside))


class PolynomialRecurrence(NamedTuple):
    """A family of polynomials: p0 = 1, p1 = a x + b, p[k + 1] = (a_k x + b_k) p[k] - c_k p[k - 1].

    ``step(k)`` returns (a_k, b_k, c_k).
    """

    first: tuple[float, float]
    step: Any


def _chebyshev(a: float, b: float) -> PolynomialRecurrence:
    return PolynomialRecurrence((a, b), lambda k: (2.0, 0.0, 1.0))


# DLMF 18.9, table 18.9.1.
FAMILIES = {
    "chebyshev_t": _chebyshev(1.0, 0.0),
    "chebyshev_u": _chebyshev(2.0, 0.0),
    "chebyshev_v": _chebyshev(2.0, -1.0),
    "chebyshev_w": _chebyshev(2.0, 1.0),
    "hermite_h": PolynomialRecurrence((2.0, 0.0), lambda k: (2.0, 0.0, 2.0 * k)),
    "hermite_he": PolynomialRecurrence((1.0, 0.0), lambda k: (1.0, 0.0, float(k))),
    "laguerre": PolynomialRecurrence(
        (-1.0, 1.0), lambda k: (-1.0 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))
    ),
    "legendre": PolynomialRecurrence(
        (1.0, 0.0), lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))
    ),
}


@public
def orthogonal_polynomial(family: str, n: int, x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the polynomial of degree ``n`` >= 0 of a family at ``x``, by its recurrence.

    ``family`` is ``chebyshev_t``, ``chebyshev_u``, ``chebyshev_v``, ``chebyshev_w``, ``hermite_h``,
    ``hermite_he``, ``laguerre`` or ``legendre``. Integers and bool give float32. Raises
    ``ArgumentError`` for another family or degree.
    """
    x, n = floating(as_tensor(x)), as_int(n)
    check_choice("orthogonal_polynomial", "family", family, FAMILIES)
    if type(n) is not int or n < 0:
        raise ArgumentError(
            f"{user_call('orthogonal_polynomial')}: the degree must be an integer of at least 0, "
            f"not {n!r}"
        )
    before, value = x * 0 + 1, x * FAMILIES[family].first[0] + FAMILIES[family].first[1]
    if n == 0:
        return before
    for k in range(1, n):
        a, b, c = FAMILIES[family].step(k)
        line = x * a + b if b else x * a
        before, value = value, line * value - before * c
    return value
