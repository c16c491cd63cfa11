"""Functions with a limit, and composites that subtract one, with their exact values: a table.

A line says how geon builds it, its value and slope in mpmath numbers, both far out (``FAR`` and
beyond, infinities included) where every exponential has vanished from float64, and which terms of
the slope cancel at a root of it. No slope is given where it is not a float function of x alone
(elu's is chosen, NaN and all) or underflows on the way (atan's square). ``test_limits`` makes its
tests from the table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath

import geon

FAR = 2000
CONTEXT = mpmath.mp.clone()
CONTEXT.prec = 240
erfc, exp, log, log1p, sqrt = (getattr(CONTEXT, n) for n in "erfc exp log log1p sqrt".split())
PI = CONTEXT.pi


@dataclass(frozen=True)
class Line:
    """A function of one tensor, its value and slope, both far out, and the slope's larger term."""

    build: Callable
    value: Callable
    slope: Callable | None
    far: Callable
    far_slope: Callable | None
    term: Callable | None = None


def logistic(x):
    return 1 / (1 + exp(-x))


def normal(x):
    return erfc(-x / sqrt(2)) / 2


def density(x):
    return exp(-x * x / 2) / sqrt(2 * PI)


def bell(x):
    return 2 / sqrt(PI) * exp(-x * x)


def erfcx(x):
    return exp(x * x) * erfc(x)


def erfcx_far(x):
    return 1 / (x * sqrt(PI)) * (1 - 1 / (2 * x * x)) if x > 0 else CONTEXT.inf


def cubic(x):
    """The sigmoid's argument in gelu's tanh form, and x times its derivative."""
    scale, cube = sqrt(8 / PI), CONTEXT.mpf("0.044715")
    return scale * (x + cube * x**3), scale * (x + 3 * cube * x**3)


def gated_slope(u, w):
    return logistic(u) * (1 + w * logistic(-u))


def gated_term(u, w):
    return max(logistic(u), abs(w) * logistic(u) * logistic(-u))


def hinge(x):
    return max(x, CONTEXT.mpf(0))


def step(x):
    return CONTEXT.mpf(x > 0)


def nothing(x):
    return CONTEXT.mpf(0)


def sign(x):
    return CONTEXT.sign(x)


def log_normal_far(x):
    return nothing(x) if x > 0 else -x * x / 2 - log(-x) - log(2 * PI) / 2 - 1 / x**2


LINES = {
    "exp": Line(geon.exp, exp, exp, lambda x: CONTEXT.inf if x > 0 else nothing(x),
                lambda x: CONTEXT.inf if x > 0 else nothing(x)),
    "expm1": Line(geon.expm1, CONTEXT.expm1, exp, lambda x: CONTEXT.inf if x > 0 else sign(x),
                  lambda x: CONTEXT.inf if x > 0 else nothing(x)),
    "elu": Line(geon.elu, lambda x: x if x > 0 else CONTEXT.expm1(x),
                None, lambda x: x if x > 0 else sign(x), None),
    "atan": Line(geon.atan, CONTEXT.atan, None, CONTEXT.atan, None),
    # Their slopes are made of their values, right to the rounding of those; see
    # docs/design/41-special-functions.md.
    "tanh": Line(geon.tanh, CONTEXT.tanh, None, sign, None),
    "sigmoid": Line(geon.sigmoid, logistic, None, step, None),
    "softplus": Line(geon.softplus, lambda x: log1p(exp(x)), logistic, hinge, step),
    "log sigmoid": Line(lambda x: geon.log(geon.sigmoid(x)), lambda x: -log1p(exp(-x)),
                        lambda x: logistic(-x), lambda x: -hinge(-x), lambda x: step(-x)),
    "log of 1 - sigmoid": Line(lambda x: geon.log(1 - geon.sigmoid(x)), lambda x: -log1p(exp(x)),
                               lambda x: -logistic(x), lambda x: -hinge(x), lambda x: -step(x)),
    "erf": Line(geon.erf, CONTEXT.erf, bell, sign, nothing),
    "1 - erf": Line(lambda x: 1 - geon.erf(x), erfc, lambda x: -bell(x), lambda x: 1 - sign(x),
                    nothing),
    "erfc": Line(geon.erfc, erfc, lambda x: -bell(x), lambda x: 1 - sign(x), nothing),
    "erfcx": Line(geon.erfcx, erfcx, lambda x: 2 * x * erfcx(x) - 2 / sqrt(PI), erfcx_far,
                  lambda x: -erfcx_far(x) / x * (1 - 1 / x**2) if x > 0 else -CONTEXT.inf),
    "ndtr": Line(geon.ndtr, normal, density, step, nothing),
    "log_ndtr": Line(geon.log_ndtr, lambda x: log1p(-normal(-x)) if x > 0 else log(normal(x)),
                     lambda x: density(x) / normal(x), log_normal_far,
                     lambda x: nothing(x) if x > 0 else -x - 1 / x),
    "silu": Line(geon.silu, lambda x: x * logistic(x), lambda x: gated_slope(x, x), hinge, step,
                 lambda x: gated_term(x, x)),
    "gelu": Line(geon.gelu, lambda x: x * normal(x), lambda x: normal(x) + x * density(x), hinge,
                 step, lambda x: max(normal(x), abs(x) * density(x))),
    "gelu, tanh": Line(lambda x: geon.gelu(x, approximate="tanh"),
                       lambda x: x * logistic(cubic(x)[0]), lambda x: gated_slope(*cubic(x)),
                       hinge, step, lambda x: gated_term(*cubic(x))),
}  # fmt: skip
