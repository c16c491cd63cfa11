"""The quantile function of the truncated normal distribution, by logarithms of tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from ..op_graph import Tensor
from ..rows.custom_calls import CustomDeriv
from ..rows.elementwise import (
    absolute,
    exp,
    less,
    log,
    log1p,
    maximum,
    minimum,
    negative,
    sqrt,
    square,
    where,
)
from ..special.special_functions import log_ndtr

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
NEWTON_STEPS = 3  # the first guess is right to 5e-4, and each step doubles the digits


def truncated_quantile(u: Tensor, v: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return standard normal values between ``low`` and ``high`` at the probability u = 1 - v.

    Both tails of the result are computed in logarithms, and the smaller one is inverted, so that
    no digits are lost far from 0.
    """
    below = _log_mix(log_ndtr(low), v, log_ndtr(high), u)
    above = _log_mix(log_ndtr(negative(low)), v, log_ndtr(negative(high)), u)
    size = log_ndtri(minimum(minimum(below, above), -math.log(2)))
    return where(less(below, above), size, negative(size))


def _log_mix(a: Tensor, v: Tensor, b: Tensor, u: Tensor) -> Tensor:
    """Return log(v exp(a) + u exp(b))."""
    x, y = a + log(v), b + log(u)
    return maximum(x, y) + log1p(exp(negative(absolute(x - y))))


def _rule(g: Tensor, out: Tensor, t: Tensor) -> Sequence[Tensor]:
    return [g * exp(t + 0.5 * square(out) + HALF_LOG_2PI)]


@partial(CustomDeriv, rule=_rule)
def log_ndtri(t: Tensor) -> Tensor:
    """Return the x of at most 0 with log(Phi(x)) = t, for t of at most log(1/2).

    The first guess is Hastings's (Abramowitz and Stegun, 26.2.23); Newton's method does the rest.
    """
    w = sqrt(-2.0 * t)
    above = 2.515517 + w * (0.802853 + w * 0.010328)
    below = 1.0 + w * (1.432788 + w * (0.189269 + w * 0.001308))
    x = above / below - w
    for _ in range(NEWTON_STEPS):
        reached = log_ndtr(x)
        x = x - (reached - t) * exp(reached + 0.5 * square(x) + HALF_LOG_2PI)
    return x
