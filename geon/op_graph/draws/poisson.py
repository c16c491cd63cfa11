"""Poisson counts: inversion for small means, transformed rejection for others.

W. Hörmann, "The transformed rejection method for generating Poisson random variables", Insurance:
Mathematics and Economics 12 (1993), algorithm PTRS.
"""

from __future__ import annotations

from ..op_graph import Tensor
from ..random.streams import BitStream
from ..rows.elementwise import absolute, exp, floor, greater, less, log, negative, sqrt, where
from ..rows.logic import logical_and, logical_not, logical_or
from .continuous import full
from .inversion import SMALL_MEAN, inverted
from .log_factorial import log_factorial
from .rejection import until_all


def poisson_counts(stream: BitStream, mean: Tensor) -> Tensor:
    """Return Poisson counts of the float64 tensor ``mean``, as float64."""
    is_small = less(mean, SMALL_MEAN)
    low = where(is_small, mean, 1.0)
    small = inverted(stream, exp(negative(low)), lambda k: low / k, is_small)
    return where(is_small, small, _rejected(stream, mean, is_small))


def _rejected(stream: BitStream, mean: Tensor, is_small: Tensor) -> Tensor:
    """Return counts by rejection; elements that ``is_small`` says are arbitrary."""
    axes, dtype = mean.axes, mean.dtype
    mean = where(is_small, SMALL_MEAN, mean)
    log_mean = log(mean)
    b = 0.931 + 2.53 * sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2.0)

    def attempt() -> tuple[Tensor, Tensor]:
        u = stream.uniform(axes, dtype=dtype) - 0.5
        v = stream.uniform(axes, dtype=dtype)
        edge = 0.5 - absolute(u)
        k = floor((2.0 * a / edge + b) * u + mean + 0.43)
        quick = logical_and(less(0.07, edge), less(v, sure))
        outside = logical_or(less(k, 0.0), logical_and(less(edge, 0.013), less(edge, v)))
        height = log(v * inverse_alpha / (a / (edge * edge) + b))
        # NaN, which an invalid mean gives, counts as accepted.
        above = greater(height, k * log_mean - mean - log_factorial(k))
        accepted = logical_or(quick, logical_not(logical_or(outside, above)))
        return accepted, k

    return until_all(attempt, full(0.0, axes, dtype), is_small)
