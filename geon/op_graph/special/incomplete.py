"""The incomplete gamma and beta functions as rows; ``incomplete_formulas`` has their formulas.

Their derivatives in the shape parameters are composites of the same integrals, which can be
differentiated again.
"""

from __future__ import annotations

from typing import Any

from ..building.elementwise_build import elementwise
from ..op_graph import Tensor
from . import incomplete_formulas as formulas
from .formula_ops import GEON_OPS
from .special_functions import precise


def _tail_of_gamma(upper: bool) -> Any:
    """Return the reference of P or Q, of mpmath numbers."""

    def tail(a: Any, x: Any) -> Any:
        import mpmath

        if a < 0 or x < 0 or (a == x and (a == 0 or mpmath.isinf(a))):
            return mpmath.nan
        if a == 0 or x == 0 or mpmath.isinf(a) or mpmath.isinf(x):
            return mpmath.mpf((x > a) is not upper)
        if max(a, x) > 1e4:
            lower = _tail_of_large(a, x)
            return 1 - lower if upper else lower
        part = (x, mpmath.inf) if upper else (0, x)
        return mpmath.gammainc(a, *part, regularized=True)

    return tail


def _tail_of_large(a: Any, x: Any) -> Any:
    """Return P(a, x) by integration over t = x exp(-u), for which mpmath's series are too long.

    Beyond 50 standard deviations the tail is below the smallest float64.
    """
    import mpmath

    width = mpmath.sqrt(max(a, x))
    if abs(x - a) > 50 * width:
        return mpmath.mpf(x > a)
    if a == x and a > 1e40:  # by DLMF 8.11.12; below, the exponent has not enough digits
        return mpmath.mpf(0.5) + 1 / (3 * mpmath.sqrt(2 * mpmath.pi * a))
    lead = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
    steps = mpmath.linspace(0, 100 / width, 33)
    return lead * mpmath.quad(lambda u: mpmath.exp(-a * u - x * mpmath.expm1(-u)), steps)


def _beta(a: Any, b: Any, x: Any) -> Any:
    import mpmath

    infinite = mpmath.isinf(a) or mpmath.isinf(b)
    if a < 0 or b < 0 or x < 0 or x > 1 or (a == b and (a == 0 or infinite)):
        return mpmath.nan
    if x in (0, 1):
        return x
    if a == 0 or b == 0 or infinite:
        return mpmath.mpf(bool(a == 0 or mpmath.isinf(b)))
    if min(a, b) > 1e30:  # a step, which is narrower than the spacing of doubles
        return mpmath.mpf(0.5) if x * b == (1 - x) * a else mpmath.mpf(x * b > (1 - x) * a)
    if b > 1e30:  # the beta distribution of a large shape is a gamma distribution
        return _tail_of_gamma(upper=False)(a, -b * mpmath.log1p(-x))
    if a > 1e30:
        return _tail_of_gamma(upper=True)(b, -a * mpmath.log(x))
    if max(a, b) > 1e3:
        return _beta_of_large(a, b, x)
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _beta_of_large(a: Any, b: Any, x: Any) -> Any:
    """Return I_x(a, b) by the power series DLMF 8.17.20, for which mpmath's are too long.

    It is 1 if the upper tail, and 0 if the lower one, is below the smallest float64: both fall as
    those of gamma distributions do.
    """
    import mpmath

    if -b * mpmath.log1p(-x) > 1000 + 20 * a:
        return mpmath.mpf(1)
    if -a * mpmath.log(x) > 1000 + 20 * b:
        return mpmath.mpf(0)
    term = total = mpmath.exp(a * mpmath.log(x) + b * mpmath.log1p(-x)) / a / mpmath.beta(a, b)
    n = 0
    while term > total * mpmath.eps:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    return total


def _gamma_derivative(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = formulas.gamma_shape_derivative(a, x, GEON_OPS)
    return result


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = formulas.gamma_density(a, x, GEON_OPS)
    return result


def _beta_derivative(a: Tensor, b: Tensor, x: Tensor, which: int) -> Tensor:
    result: Tensor = formulas.beta_shape_derivatives(a, b, x, GEON_OPS)[which]
    return result


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    result: Tensor = formulas.beta_density(a, b, x, GEON_OPS)
    return result


gammainc = elementwise(
    "gammainc",
    "The regularised lower incomplete gamma function P(x, y), of shape x > 0 at y >= 0.",
    precise(_tail_of_gamma(upper=False)),
    (lambda out, a, x: _gamma_derivative(a, x), lambda out, a, x: _gamma_density(a, x)),
    arity=2,
    rule="float",
    sympy="lowergamma(x, y) / gamma(x)",
    domain=((0.3, 4.0), (0.2, 5.0)),
    cost="expensive",
)
gammaincc = elementwise(
    "gammaincc",
    "The regularised upper incomplete gamma function Q(x, y) = 1 - P(x, y).",
    precise(_tail_of_gamma(upper=True)),
    (lambda out, a, x: -_gamma_derivative(a, x), lambda out, a, x: -_gamma_density(a, x)),
    arity=2,
    rule="float",
    sympy="uppergamma(x, y) / gamma(x)",
    domain=((0.3, 4.0), (0.2, 5.0)),
    cost="expensive",
)
betainc = elementwise(
    "betainc",
    "The regularised incomplete beta function of shapes x and y at z between 0 and 1.",
    precise(_beta),
    (
        lambda out, a, b, x: _beta_derivative(a, b, x, 0),
        lambda out, a, b, x: _beta_derivative(a, b, x, 1),
        lambda out, a, b, x: _beta_density(a, b, x),
    ),
    arity=3,
    rule="float",
    domain=((0.3, 4.0), (0.3, 4.0), (0.1, 0.9)),
    cost="expensive",
)
