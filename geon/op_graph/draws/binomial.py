"""Binomial counts: inversion for small means, transformed rejection for others.

W. Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and
Simulation 46 (1993), algorithm BTRS.
"""

from __future__ import annotations

from ..op_graph import Tensor
from ..random.streams import BitStream
from ..rows.elementwise import (
    absolute,
    exp,
    floor,
    greater,
    less,
    log,
    log1p,
    negative,
    sqrt,
    where,
)
from ..rows.logic import logical_and, logical_not, logical_or
from .continuous import full
from .inversion import SMALL_MEAN, inverted
from .log_factorial import log_factorial
from .rejection import until_all


def binomial_counts(stream: BitStream, trials: Tensor, p: Tensor) -> Tensor:
    """Return counts of successes for float64 tensors over the same axes, as float64."""
    is_likely = less(0.5, p)
    p = where(is_likely, 1.0 - p, p)
    is_small = less(trials * p, SMALL_MEAN)
    n, odds = where(is_small, trials, 1.0), p / (1.0 - p)
    none = exp(n * log1p(negative(p)))
    small = inverted(stream, none, lambda k: (n - k + 1.0) / k * odds, is_small)
    result = where(is_small, small, _rejected(stream, trials, p, is_small))
    return where(is_likely, trials - result, result)


def _rejected(stream: BitStream, trials: Tensor, p: Tensor, is_small: Tensor) -> Tensor:
    """Return counts by rejection; elements that ``is_small`` says are arbitrary."""
    axes, dtype = p.axes, p.dtype
    n, p = where(is_small, 40.0, trials), where(is_small, 0.5, p)
    deviation = sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    alpha = (2.83 + 5.1 / b) * deviation
    sure = 0.92 - 4.2 / b
    log_odds = log(p) - log1p(negative(p))
    mode = floor((n + 1.0) * p)
    level = log_factorial(mode) + log_factorial(n - mode)

    def attempt() -> tuple[Tensor, Tensor]:
        u = stream.uniform(axes, dtype=dtype) - 0.5
        v = stream.uniform(axes, dtype=dtype)
        edge = 0.5 - absolute(u)
        k = floor((2.0 * a / edge + b) * u + centre)
        quick = logical_and(less(0.07, edge), less(v, sure))
        outside = logical_or(less(k, 0.0), less(n, k))
        height = log(v * alpha / (a / (edge * edge) + b))
        # NaN, which an invalid parameter gives, counts as accepted.
        density = level - log_factorial(k) - log_factorial(n - k) + (k - mode) * log_odds
        above = greater(height, density)
        accepted = logical_or(quick, logical_not(logical_or(outside, above)))
        return accepted, k

    return until_all(attempt, full(0.0, axes, dtype), is_small)
