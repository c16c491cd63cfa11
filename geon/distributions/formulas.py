"""Functions that keep the digits of log-densities at large parameters and at edges of supports.

C. Loader, "Fast and accurate computation of binomial probabilities" (2000): a logarithm of a
probability is written as errors of Stirling's formula and as deviances, which are small where the
probability is large.
"""

from __future__ import annotations

import math
from typing import Any

import geon
from geon import Tensor

from ..op_graph.building.constants import as_tensor

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
LOG_2 = math.log(2)
EULER = 0.5772156649015329
STIRLING_FROM = 10.0  # five terms of the series are right to 2e-14 from here on
# Coefficients c_k of t^k / (k (k - 1)) alternate in sign: (1 + t) log(1 + t) - t.
_TERMS = tuple((-1.0) ** k / (k * (k - 1)) for k in range(2, 18))
_NEAR = 0.1


def stirling_error(x: Any) -> Tensor:
    """Return log(x!) - (x + 1/2) log(x) + x - log(2 pi) / 2, for x above 0."""
    x = as_tensor(x)
    is_large = x >= STIRLING_FROM
    z = geon.where(is_large, x, STIRLING_FROM)
    w = 1.0 / (z * z)
    series = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188))))) / z
    y = geon.where(is_large, 1.0, x)
    exact = geon.lgamma(y + 1.0) - (y + 0.5) * geon.log(y) + y - HALF_LOG_2PI
    return geon.where(is_large, series, exact)


def deviance(x: Any, mean: Any) -> Tensor:
    """Return x log(x / mean) + mean - x, for x above 0."""
    x, mean = as_tensor(x), as_tensor(mean)
    t = (x - mean) / mean
    is_near = geon.absolute(t) < _NEAR
    u = geon.where(is_near, t, 0.0)
    series: Any = 0.0
    for coefficient in _TERMS[::-1]:
        series = series * u + coefficient
    far = geon.where(is_near, 1.0, x / mean)
    return geon.where(is_near, mean * (u * u) * series, x * geon.log(far) + (mean - x))


def log_poisson(k: Any, mean: Any) -> Tensor:
    """Return the logarithm of mean^k exp(-mean) / k!, for k of at least 0, whole or not."""
    k = as_tensor(k)
    is_zero = geon.equal(k, 0.0)
    some = geon.where(is_zero, 1.0, k)
    made = -stirling_error(some) - deviance(some, mean) - HALF_LOG_2PI - 0.5 * geon.log(some)
    return geon.where(is_zero, -as_tensor(mean), made)


def log_binomial(k: Any, n: Any, p: Any, q: Any) -> Tensor:
    """Return the logarithm of n! / (k! (n - k)!) p^k q^(n - k) for q = 1 - p, whole k or not."""
    k, n = as_tensor(k), as_tensor(n)
    at_edge = geon.logical_or(geon.equal(k, 0.0), geon.equal(k, n))
    some, every = geon.where(at_edge, 1.0, k), geon.where(at_edge, 2.0, n)
    first, second = (geon.where(at_edge, 0.5, each) for each in (p, q))
    rest = every - some
    made = (
        stirling_error(every)
        - stirling_error(some)
        - stirling_error(rest)
        - deviance(some, every * first)
        - deviance(rest, every * second)
        - HALF_LOG_2PI
        - 0.5 * geon.log(some * (rest / every))
    )
    edge = geon.xlogy(k, p) + geon.xlogy(n - k, q)
    return geon.where(at_edge, edge, made)


def log_beta(a: Any, b: Any) -> Tensor:
    """Return the logarithm of the beta function, without cancellation of large terms.

    By Stirling's formula for a, b and a + b: a log(a / (a + b)) + b log(b / (a + b)) and errors.
    """
    a, b = as_tensor(a), as_tensor(b)
    total = a + b
    errors = stirling_error(a) + stirling_error(b) - stirling_error(total)
    small, large = geon.minimum(a, b), geon.maximum(a, b)
    powers = small * geon.log(small / total) - large * geon.log1p(small / large)
    return powers + errors + HALF_LOG_2PI + 0.5 * (geon.log(total / a) - geon.log(b))


def log_minus(x: Any, y: Any) -> Tensor:
    """Return log(exp(x) - exp(y)) for x of at least y."""
    x, y = as_tensor(x), as_tensor(y)
    gap = y - x
    is_near = gap > -LOG_2
    near = geon.log(-geon.expm1(geon.where(is_near, gap, -1.0)))
    return x + geon.where(is_near, near, geon.log1p(-geon.exp(geon.where(is_near, -1.0, gap))))
