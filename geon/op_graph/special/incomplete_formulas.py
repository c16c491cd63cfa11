"""Formulas of the incomplete gamma and beta functions, and of their derivatives.

Each is written once against a namespace ``ops``, as those of ``gamma_formulas``, and is
a fixed number of operations: no iteration whose length depends on the data.

The smaller tail is an integral of a log-concave function. With t = x exp(w) the incomplete gamma
function is

    gamma(a, x) = x^a exp(-x) / Gamma(a) times the integral of exp(a w - x (exp(w) - 1)),

over w < 0 for the lower tail and w > 0 for the upper one; with the odds t / (1 - t) for t, the
incomplete beta function has the same form. The integrand has its maximum at w = 0 if x is on the
tail's side of the mean. It is integrated by Gauss's rule from there to where it has decayed by
exp(-``decay``). All terms are positive, so nothing cancels. Small shape parameters are raised by
eight before, with eight terms of the power series (DLMF 8.8.5 and 8.17.20), because the integrand
of a small one has two scales.

Exponents and prefactors are written in ``_log_excess`` and ``_exp_excess``, which do not cancel for
large parameters. float32 is computed in float64, with half of the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..axes.axes import Axis
from ..building.constants import constant, number
from ..rows.movement import broadcast
from ..syntax.operators import LATE_BOUND
from ..values.dtypes import FLOAT64
from .gamma_formulas import (
    digamma_asymptotic,
    horner,
    lgamma,
    lgamma1p,
    stirling_correction,
)

__all__ = ["betainc", "gammainc", "gammaincc"]

SHIFT = 8  # by which small shape parameters are raised
LARGE = 4.0  # from here on Stirling's series holds
HUGE = 1e150  # shape parameters and arguments are clamped to it: their squares are finite
# The largest shape of a beta distribution in its integral. With a larger one and another of at most
# STEEP it is a gamma distribution, whose scale is the reciprocal of the shape, to double precision.
MAX_BETA_SHAPE = 1e100
# If both shapes are larger, the distribution function is a step: its standard deviation is below
# the spacing of doubles at the mean, and at the distance of the mean from 1.
STEEP = 1e40


class Rule(NamedTuple):
    """Gauss's rule on (0, 1): ``halves`` are nodes below 1/2 with their weights."""

    decay: float
    halves: tuple[tuple[float, float], ...]
    series: int  # terms of the power series of Q for x < 1

    @property
    def nodes(self) -> list[tuple[float, float]]:
        """Return all pairs of a node and its weight."""
        return [*self.halves, *[(1.0 - node, weight) for node, weight in self.halves[::-1]]]


RULES = {
    "float64": Rule(
        37.0,
        (
            (0.00240639000148932, 0.0061706148999936),
            (0.012635722014345251, 0.014265694314466832),
            (0.030862723998633622, 0.022138719408709904),
            (0.056792236497799485, 0.02964929245771839),
            (0.08999900701304854, 0.03667324070554015),
            (0.12993790421072282, 0.04309508076597664),
            (0.17595317403151223, 0.04880932605205694),
            (0.22728926430558022, 0.05372213505798282),
            (0.2831032461869774, 0.0577528340268628),
            (0.3424786601519183, 0.060835236463901696),
            (0.40444056626319186, 0.06291872817341415),
            (0.4679715535686972, 0.06396909767337608),
        ),
        18,
    ),
    "float32": Rule(
        18.0,
        (
            (0.009219682876640375, 0.023587668193255914),
            (0.04794137181476257, 0.05346966299765921),
            (0.11504866290284765, 0.08003916427167311),
            (0.2063410228566913, 0.10158371336153296),
            (0.3160842505009099, 0.1167462682691774),
            (0.43738329574426554, 0.12457352290670139),
        ),
        11,
    ),
}


def _rule(x: Any, ops: Any) -> tuple[Rule, Any]:
    """Return the rule for the dtype of ``x``, and a function that casts a result to it."""
    dtype = str(x.dtype)
    if dtype == "float64":
        return RULES[dtype], lambda value: value
    return RULES["float32"], lambda value: ops.cast(value, dtype)


def _in_double(*values: Any, ops: Any) -> list[Any]:
    return [ops.cast(value, "float64") for value in values]


def _integrals(
    integrands: Callable[[Any], tuple[Any, ...]], count: int, end: Any, rule: Rule
) -> list[Any]:
    """Return the integrals from 0 to ``end`` of ``count`` functions, of which u gives the values.

    The sum is a scan over the nodes, which targets compile to one loop over rows of elements:
    straight-line code takes six times as long, and ten times as long to compile.
    """
    axis = Axis("node", len(rule.nodes))
    while axis in end.axes:
        axis = axis.prime
    points = [constant(np.array(column), [axis]) for column in zip(*rule.nodes, strict=True)]
    zero = broadcast(number(0.0, FLOAT64), end.axes)

    def add(sums: Any, point: Any) -> tuple[list[Any], list[Any]]:
        node, weight = point
        values = integrands(end * node)
        return [s + weight * v for s, v in zip(sums, values, strict=True)], []

    sums, _ = LATE_BOUND["scan"](add, [zero] * count, points, over=axis)
    return [end * s for s in sums]


# Functions that do not cancel --------------------------------------------------------------------

# (exp(w) - 1 - w) / w^2 = 1/2 + w/6 + ..., highest power first, for |w| < 1/2
_EXP_EXCESS = [1.0 / math.factorial(k) for k in range(16, 1, -1)]
# (artanh(r) / r - 1) / r^2 = 1/3 + r^2/5 + ..., in r^2 <= 1/9
_ARTANH = [1.0 / k for k in range(37, 1, -2)]


def _exp_excess(w: Any, ops: Any) -> Any:
    """Return exp(w) - 1 - w >= 0."""
    near = ops.absolute(w) < 0.5
    small = ops.where(near, w, 0.0)
    return ops.where(near, small * small * horner(small, _EXP_EXCESS), ops.exp(w) - (1.0 + w))


def _log_excess(y: Any, ratio: Any, ops: Any) -> Any:
    """Return y - log(1 + y) >= 0, for y >= -1 and ``ratio`` = 1 + y.

    Near 0 it is y r - 2 (artanh(r) - r) for r = y / (2 + y), of which the first term is the larger.
    """
    near = ops.absolute(y) < 0.5
    small = ops.where(near, y, 0.0)
    r = small / (2.0 + small)
    s = r * r
    close = r * (small - 2.0 * s * horner(s, _ARTANH))
    return ops.where(near, close, y - ops.log(ops.where(near, 1.0, ratio)))


def _log_ratio(y: Any, ratio: Any, ops: Any) -> Any:
    """Return log(1 + y) for y >= -1 and ``ratio`` = 1 + y."""
    near = ops.absolute(y) < 0.5
    return ops.where(near, ops.log1p(ops.where(near, y, 0.0)), ops.log(ops.where(near, 1.0, ratio)))


# Gamma -------------------------------------------------------------------------------------------


def _log_rise(a: Any, ops: Any) -> Any:
    """Return log Gamma(1 + a) - (a log a - a) for a > 0, which is small beside its terms."""
    small = a < LARGE
    low, high = ops.where(small, a, 1.0), ops.where(small, LARGE, a)
    direct = lgamma(1.0 + low, ops) - low * (ops.log(low) - 1.0)
    return ops.where(small, direct, 0.5 * ops.log(2.0 * math.pi * high) + stirling_correction(high))


def _gamma_lead(a: Any, x: Any, ops: Any) -> Any:
    """Return x^a exp(-x) / Gamma(1 + a)."""
    small = a < LARGE
    low, high = ops.where(small, a, 1.0), ops.where(small, LARGE, a)
    direct = ops.exp(low * ops.log(x) - x - lgamma(1.0 + low, ops))
    exponent = high * _log_excess((x - high) / high, x / high, ops) + stirling_correction(high)
    return ops.where(small, direct, ops.exp(-exponent) / ops.sqrt(2.0 * math.pi * high))


class _GammaTail(NamedTuple):
    """The smaller tail: ``low`` where it is the lower one.

    ``integral`` is that of the integrand, ``moment`` that of its product with |w|, which
    derivatives need. ``terms`` are those of the power series, without the ``lead``.
    """

    low: Any
    lead: Any
    integral: Any
    moment: Any
    terms: list[Any]
    total: Any


def _gamma_tail(a: Any, x: Any, rule: Rule, ops: Any, moments: bool = False) -> _GammaTail:
    low = x < ops.maximum(a, 1.0)
    slope = ops.absolute(ops.where(low, a + SHIFT, a) - x)
    end = _gamma_end(slope, x, low, rule.decay, ops)
    sign = ops.where(low, -1.0, 1.0)

    def integrands(u: Any) -> tuple[Any, ...]:
        value = ops.exp(-(slope * u + x * _exp_excess(sign * u, ops)))
        return (value, u * value) if moments else (value,)

    integral, *moment = _integrals(integrands, 2 if moments else 1, end, rule)
    terms = [1.0]
    inside = ops.where(low, x, 0.0)
    for k in range(1, SHIFT):
        terms.append(terms[-1] * (inside / (a + k)))
    total = sum(terms[::-1]) + terms[-1] * inside * integral
    lead = _gamma_lead(a, x, ops)
    return _GammaTail(low, lead, integral, moment[0] if moments else None, terms, total)


def _gamma_end(slope: Any, x: Any, low: Any, decay: float, ops: Any) -> Any:
    """Return w where slope |w| + x (exp(w) - 1 - w) is about ``decay``, or somewhat beyond.

    Below 0 the second term is at least x w^2 / (2 + 2 |w| / 3) and w the root of a quadratic
    equation. It is constant for derivatives, which do not depend on it.
    """
    below = _quadratic_end(slope, x, decay, ops)
    ratio = decay / ops.maximum(x, 1e-300)
    above = ops.log1p(ratio + ops.sqrt(2.0 * ratio))
    above = ops.minimum(above, decay / ops.maximum(slope, 1e-300))
    return ops.stop_gradient(ops.where(low, below, above))


def _quadratic_end(slope: Any, curvature: Any, decay: float, ops: Any) -> Any:
    """Return the positive u with slope u + curvature u^2 / (2 + 2 u / 3) = decay."""
    linear = 2.0 * slope - 2.0 * decay / 3.0
    square = 2.0 * slope / 3.0 + curvature
    return 4.0 * decay / (linear + ops.sqrt(linear * linear + 8.0 * decay * square))


def _gamma_tails(a: Any, x: Any, ops: Any, upper: bool) -> Any:
    rule, rounded = _rule(x, ops)
    a, x = _in_double(a, x, ops=ops)
    near_a, near_x = ops.minimum(a, HUGE), ops.minimum(x, HUGE)
    tail = _gamma_tail(near_a, near_x, rule, ops)
    small = tail.lead * ops.where(tail.low, tail.total, near_a * tail.integral)
    small = ops.minimum(small, 1.0)
    value = ops.where(ops.logical_xor(tail.low, upper), small, 1.0 - small)
    if upper:
        series = _upper_of_small(near_a, near_x, rule.series, ops)
        value = ops.where(ops.logical_and(a < 1.0, x < 1.0), series, value)
    # Beyond HUGE the distribution is a step at x = a, where both tails are 1/2.
    step = ops.where(ops.logical_xor(x < a, upper), 0.0, 1.0)
    step = ops.where(ops.equal(x, a), ops.where(a < math.inf, 0.5, math.nan), step)
    value = ops.where(a > HUGE, step, value)
    undefined = ops.logical_or(ops.logical_or(a < 0.0, x < 0.0), ops.isnan(a + x))
    value = ops.where(ops.logical_or(undefined, ops.equal(a + x, 0.0)), math.nan, value)
    return rounded(value)


def _upper_of_small(a: Any, x: Any, terms: int, ops: Any) -> Any:
    """Return Q(a, x) for a < 1 and x < 1, also where it is nearly 0.

    1 - Q is x^a / Gamma(1 + a) (1 + a sum (-x)^n / ((a + n) n!)) (DLMF 8.7.1), of which
    the first factor is near 1.
    """
    inside = ops.logical_and(a < 1.0, x < 1.0)
    a, x = ops.where(inside, a, 0.5), ops.where(inside, x, 0.5)
    exponent = a * ops.log(x) - lgamma1p(a)
    total = 0.0
    for n in range(terms, 0, -1):
        total = total + (-x) ** n / ((a + n) * math.factorial(n))
    return -ops.expm1(exponent) - ops.exp(exponent) * a * total


def gammainc(a: Any, x: Any, ops: Any) -> Any:
    """Return the regularised lower incomplete gamma function P(a, x)."""
    return _gamma_tails(a, x, ops, upper=False)


def gammaincc(a: Any, x: Any, ops: Any) -> Any:
    """Return the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return _gamma_tails(a, x, ops, upper=True)


def gamma_density(a: Any, x: Any, ops: Any) -> Any:
    """Return dP/dx = x^(a - 1) exp(-x) / Gamma(a), with its limit at x = 0."""
    _, rounded = _rule(x, ops)
    a, x = _in_double(a, x, ops=ops)
    inside, small = x > 0.0, a < LARGE
    some = ops.where(inside, x, 1.0)
    low, high = ops.where(small, a, 1.0), ops.where(small, LARGE, a)
    direct = ops.exp((low - 1.0) * ops.log(some) - some - lgamma(low, ops))
    value = ops.where(small, direct, high * _gamma_lead(high, some, ops) / some)
    edge = ops.where(a < 1.0, math.inf, ops.where(a > 1.0, 0.0, 1.0))
    return rounded(ops.where(inside, value, edge))


def gamma_shape_derivative(a: Any, x: Any, ops: Any) -> Any:
    """Return dP/da, from the derivatives of the prefactor, the series and the integral."""
    rule, rounded = _rule(x, ops)
    a, x = _in_double(a, x, ops=ops)
    inside = x > 0.0
    x = ops.where(inside, x, 1.0)
    tail = _gamma_tail(a, x, rule, ops, moments=True)
    lead_derivative = _log_ratio((x - a) / a, x / a, ops) - 1.0 / a + _log_less_digamma(a, ops)
    falling, harmonic = 0.0, 0.0
    for k, term in enumerate(tail.terms):
        harmonic = harmonic + 1.0 / (a + k) if k else harmonic
        falling = falling + term * harmonic
    last = tail.terms[-1] * x
    falling = falling + last * (harmonic * tail.integral + tail.moment)
    below = tail.total * lead_derivative - falling
    above = -((a * lead_derivative + 1.0) * tail.integral + a * tail.moment)
    value = tail.lead * ops.where(tail.low, below, above)
    return rounded(ops.where(inside, value, 0.0))


def _log_less_digamma(a: Any, ops: Any) -> Any:
    """Return log(a) - digamma(a) for a > 0."""
    small = a < LARGE
    low, high = ops.where(small, a, 1.0), ops.where(small, LARGE, a)
    return ops.where(small, ops.log(low) - ops.digamma(low), digamma_asymptotic(high))


# Beta --------------------------------------------------------------------------------------------


class _BetaTail(NamedTuple):
    """The tail of shapes p and r below z (1 - z is ``rest``): ``flipped`` if it is the upper one.

    ``moments`` are the integrals of the integrand's derivatives in p and r, which derivatives need.
    """

    flipped: Any
    p: Any
    r: Any
    z: Any
    rest: Any
    lead: Any
    integral: Any
    moments: list[Any]
    terms: list[Any]
    total: Any


def _beta_tail(a: Any, b: Any, x: Any, rule: Rule, ops: Any, moments: bool = False) -> _BetaTail:
    # For b < 1 the lower tail is taken beyond the mean too, where the upper one is nearly 1, except
    # near x = 1, where its integrand has two scales and that of the upper tail falls. So it is for
    # a < 1 up to the mean of the raised shape, since the upper tail has two scales there.
    # Where it begins, 1 - I_x is far from 1: with b + 8 for b + 0.3, 8 digits of I_x are lost.
    beyond = ops.logical_and(x > SHIFT / (SHIFT + 1.0), (1.0 - x) * a <= (b + 0.3) * x)
    below = x * b <= ops.where(a < 1.0, a + SHIFT, a) * (1.0 - x)
    low = ops.where(b < 1.0, ops.logical_not(beyond), below)
    p, r = ops.where(low, a, b), ops.where(low, b, a)
    z, rest = ops.where(low, x, 1.0 - x), ops.where(low, 1.0 - x, x)
    raised = p + SHIFT
    both = raised + r
    slope = ops.maximum(raised * rest - r * z, 0.0)
    end = _beta_end(slope, both, raised, z, rest, rule.decay, ops)

    def integrands(u: Any) -> tuple[Any, ...]:
        bend = _bend(u, z, rest, ops)
        value = ops.exp(-(slope * u + both * bend))
        return (value, -(bend + rest * u) * value, (z * u - bend) * value)[: 3 if moments else 1]

    integral, *slopes = _integrals(integrands, 3 if moments else 1, end, rule)
    terms = [1.0]
    for k in range(1, SHIFT):
        terms.append(terms[-1] * (z * ((p + r + (k - 1)) / (p + k))))
    total = sum(terms[::-1]) + terms[-1] * z * (both - 1.0) * integral
    lead = _beta_lead(p, r, z, rest, ops)
    flipped = ops.logical_not(low)
    return _BetaTail(flipped, p, r, z, rest, lead, integral, slopes, terms, total)


def _bend(u: Any, z: Any, rest: Any, ops: Any) -> Any:
    """Return log(1 + z (exp(-u) - 1)) + z u >= 0 for u >= 0 and ``rest`` = 1 - z.

    It is symmetric in (u, z) and (-u, 1 - z), and written in the smaller of z and 1 - z.
    """
    near = z <= 0.5
    short, w = ops.where(near, z, rest), ops.where(near, -u, u)
    excess = _exp_excess(w, ops)
    y = short * (excess + w)
    return short * excess - _log_excess(y, 1.0 + y, ops)


def _beta_end(slope: Any, both: Any, raised: Any, z: Any, rest: Any, decay: float, ops: Any) -> Any:
    """Return u where slope u + both ``_bend(u)`` is about ``decay``, or somewhat beyond.

    It is the least of three upper bounds, which two steps of Newton's method lower: the function is
    convex. The first bound is exact for small u, the second for large u, the third where 1 - z is
    small.
    """
    curvature = both * z * rest
    end = _quadratic_end(slope, curvature, decay, ops)
    far = (decay - both * ops.log(ops.maximum(rest, 2.0**-1022))) / raised
    ratio = 4.0 * decay / ops.maximum(curvature, 1e-300)
    odds = ratio + ops.sqrt(2.0 * ratio)
    third = ops.where(rest * odds <= z, ops.log1p(odds), math.inf)
    end = ops.minimum(ops.minimum(end, far), third)
    for _ in range(2):
        falling = z * ops.exp(-end)
        rise = slope + curvature * (-ops.expm1(-end) / (rest + falling))
        excess = slope * end + both * _bend(end, z, rest, ops) - decay
        end = ops.where(excess > 0.0, end - excess / rise, end)
    return ops.stop_gradient(end)


def _beta_lead(p: Any, r: Any, z: Any, rest: Any, ops: Any) -> Any:
    """Return z^p (1 - z)^r / (p B(p, r)).

    Its logarithm is a Kullback-Leibler divergence, written in ``_log_excess``, and Stirling's
    corrections.
    """
    both = p + r
    lack = z * r - rest * p
    least = ops.maximum(both * 1e-280, 1e-280)  # so small that its terms do not count
    some_p, some_r = ops.maximum(p, least), ops.maximum(r, least)
    divergence = _beta_divergence(some_p, both, z, lack, ops)
    divergence = divergence + _beta_divergence(some_r, both, rest, -lack, ops)
    rise = _log_rise(some_p, ops) + _log_rise(some_r, ops) - _log_rise(some_p + some_r, ops)
    return (r / both) * ops.exp(-divergence - rise)


class _BetaShapes(NamedTuple):
    """Shapes and argument within the range of the integral, for which I_x(a, b) is the same.

    ``scale`` is the ratio of the second shape to its value here. If ``steep``, I_x is 0 below the
    mean and 1 above it.
    """

    a: Any
    b: Any
    x: Any
    scale: Any
    steep: Any


def _beta_shapes(a: Any, b: Any, x: Any, ops: Any) -> _BetaShapes:
    scale = ops.maximum(b / MAX_BETA_SHAPE, 1.0)
    # Beyond a half, I_x is 1 for such a b. For a large a it is 0 at any double below 1.
    share = ops.where(scale > 1.0, ops.minimum(x * scale, 0.5), x)
    least = ops.minimum(a, b)
    first, second = ops.minimum(a, MAX_BETA_SHAPE), ops.minimum(b, MAX_BETA_SHAPE)
    return _BetaShapes(first, second, share, scale, least > STEEP)


def _beta_divergence(p: Any, both: Any, z: Any, lack: Any, ops: Any) -> Any:
    """Return p times ``_log_excess`` of ``lack / p``, which is z both / p - 1.

    A subnormal ``z`` is scaled, so that the ratio keeps its digits.
    """
    tiny = z < 2.0**-900
    ratio = ops.where(tiny, z * 2.0**100, z) * (both / p)
    excess = _log_excess(lack / p, ratio, ops)
    return p * (excess + ops.where(tiny, 100.0 * math.log(2.0), 0.0))


def betainc(a: Any, b: Any, x: Any, ops: Any) -> Any:
    """Return the regularised incomplete beta function I_x(a, b)."""
    rule, rounded = _rule(x, ops)
    a, b, x = _in_double(a, b, x, ops=ops)
    outside = ops.logical_or(x < 0.0, x > 1.0)
    outside = ops.logical_or(outside, ops.logical_or(a < 0.0, b < 0.0))
    outside = ops.logical_or(outside, ops.isnan(a + b + x))
    outside = ops.logical_or(outside, ops.equal(a + b, 0.0))
    outside = ops.logical_or(outside, ops.equal(ops.minimum(a, b), math.inf))
    given = _beta_shapes(a, b, x, ops)
    tail = _beta_tail(given.a, given.b, given.x, rule, ops)
    small = ops.minimum(tail.lead * tail.total, 1.0)
    value = ops.where(tail.flipped, 1.0 - small, small)
    # Shapes are scaled, so that the products do not overflow.
    below, above = x * (b * 2.0**-600), (1.0 - x) * (a * 2.0**-600)
    step = ops.where(below < above, 0.0, ops.where(below > above, 1.0, 0.5))
    value = ops.where(given.steep, step, value)
    value = ops.where(ops.equal(b, 0.0), 0.0, ops.where(ops.equal(a, 0.0), 1.0, value))
    value = ops.where(ops.equal(x, 0.0), 0.0, ops.where(ops.equal(x, 1.0), 1.0, value))
    return rounded(ops.where(outside, math.nan, value))


def beta_density(a: Any, b: Any, x: Any, ops: Any) -> Any:
    """Return the derivative of I_x(a, b) in x, x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    _, rounded = _rule(x, ops)
    a, b, x = _in_double(a, b, x, ops=ops)
    inside = ops.logical_and(x > 0.0, x < 1.0)
    given = _beta_shapes(a, b, ops.where(inside, x, 0.5), ops)
    some, rest = given.x, 1.0 - given.x
    value = given.a * _beta_lead(given.a, given.b, some, rest, ops) / (some * rest)
    value = ops.where(given.steep, 0.0, given.scale * value)
    first = ops.where(a < 1.0, math.inf, ops.where(a > 1.0, 0.0, b))
    last = ops.where(b < 1.0, math.inf, ops.where(b > 1.0, 0.0, a))
    return rounded(ops.where(inside, value, ops.where(x < 0.5, first, last)))


def beta_shape_derivatives(a: Any, b: Any, x: Any, ops: Any) -> tuple[Any, Any]:
    """Return the derivatives of I_x(a, b) in a and b."""
    rule, rounded = _rule(x, ops)
    a, b, x = _in_double(a, b, x, ops=ops)
    inside = ops.logical_and(x > 0.0, x < 1.0)
    given = _beta_shapes(a, b, ops.where(inside, x, 0.5), ops)
    inside = ops.logical_and(inside, ops.logical_not(given.steep))
    tail = _beta_tail(given.a, given.b, given.x, rule, ops, moments=True)
    p, r, z = tail.p, tail.r, tail.z
    both = p + r
    lack = z * r - tail.rest * p
    common = _log_less_digamma(both, ops)
    in_p = _log_ratio(lack / p, z * (both / p), ops) - 1.0 / p + _log_less_digamma(p, ops) - common
    in_r = _log_ratio(-lack / r, tail.rest * (both / r), ops) + _log_less_digamma(r, ops) - common
    in_p, in_r = in_p * tail.total, in_r * tail.total
    rise, fall = 0.0, 0.0
    last = tail.terms[-1] * z
    for k, term in enumerate(tail.terms):
        if k:
            rise, fall = rise + 1.0 / (both + (k - 1)), fall + 1.0 / (p + k)
            in_p, in_r = in_p + term * (rise - fall), in_r + term * rise
    weight = both + (SHIFT - 1)
    for_p, for_r = tail.moments
    in_p = in_p + last * (tail.integral * (1.0 + weight * (rise - fall)) + weight * for_p)
    in_r = in_r + last * (tail.integral * (1.0 + weight * rise) + weight * for_r)
    in_p, in_r = tail.lead * in_p, tail.lead * in_r
    in_a, in_b = ops.where(tail.flipped, -in_r, in_p), ops.where(tail.flipped, -in_p, in_r)
    in_b = in_b / given.scale
    return rounded(ops.where(inside, in_a, 0.0)), rounded(ops.where(inside, in_b, 0.0))
