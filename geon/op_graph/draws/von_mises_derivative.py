"""The derivative of von Mises draws by their concentration, by implicit differentiation.

F(x; k) = u holds the draw x at the probability u, so dx/dk = -(dF/dk) / (dF/dx). M. Figurnov,
S. Mohamed and A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..axes.axes import Axes, Axis
from ..building.constants import constant
from ..op_graph import Tensor
from ..rows.elementwise import (
    absolute,
    exp,
    greater,
    less,
    maximum,
    sign,
    sqrt,
    square,
    stop_gradient,
    where,
)
from ..rows.movement import broadcast
from ..rows.reductions import sum as total
from ..rows.trigonometry import acos, cos, sin

MAX_QUADRATURE = 30.0  # concentrations up to which 32 nodes are exact to rounding
NODES = 32
MAX_FALL = 40.0  # exponent beyond which a density counts as 0


def mean_cosine_parts(k: Tensor) -> tuple[Tensor, Tensor]:
    """Return exp(-k) I0(k) and exp(-k) (I0(k) - I1(k)).

    The difference of ``geon.i0e`` and ``geon.i1e`` would lose its digits for large k. Up to 30 they
    are the midpoint rule for the mean over angles of exp(k (cos t - 1)), which converges
    geometrically; above, the asymptotic series (DLMF 10.40.1).
    """
    is_large = greater(k, MAX_QUADRATURE)
    small = where(is_large, 1.0, k)
    scaled: Any = 0.0
    rest: Any = 0.0
    for node in range(NODES):
        below = 2.0 * math.sin(0.5 * math.pi * (node + 0.5) / NODES) ** 2  # 1 - cos t
        part = exp(-below * small) * (1 / NODES)
        scaled, rest = scaled + part, rest + below * part
    w = 1.0 / where(is_large, k, MAX_QUADRATURE)
    large: Any = 1.0
    difference: Any = 0.0
    first = second = 1.0
    for n in range(1, 13):
        first = first * (2 * n - 1) ** 2 / (8 * n)
        second = second * ((2 * n - 1) ** 2 - 4) / (8 * n)
        large = large + first * w**n
        difference = difference + (first - second) * w**n
    root = sqrt(w / (2 * math.pi))
    return where(is_large, root * large, scaled), where(is_large, root * difference, rest)


def von_mises_derivative(k: Tensor, x: Tensor) -> Tensor:
    """Return dx/dk of an angle x from -pi to pi at a fixed probability, in float64.

    With the mean cosine A(k) and x above 0 it is the integral of
    (A - cos t) exp(k (cos t - cos x)) over t from 0 to x, and the negative one from x to pi. The
    first is taken where cos x > A, the second elsewhere, so that the integrand has one sign. Both
    are Gauss-Legendre rules, right to 1e-12 of the result.
    """
    scaled, rest = mean_cosine_parts(k)
    above = rest / scaled  # 1 - A
    size = absolute(x)
    is_inner = less(2.0 * square(sin(0.5 * size)), above)
    inner_end = where(is_inner, size, 0.0)
    # The density has fallen by exp(-40) at the end, if it is not pi.
    end = stop_gradient(acos(maximum(cos(size) - MAX_FALL / k, -1.0)))
    inner = _integral(k, above, inner_end, 0.0 * size, inner_end)
    outer = _integral(k, above, size, size, end)
    return sign(x) * where(is_inner, inner, -outer)


def _integral(k: Tensor, above: Tensor, x: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the integral of (A - cos t) exp(k (cos t - cos x)) over t, where A is 1 - above."""
    points, factors = np.polynomial.legendre.leggauss(NODES)
    axis = Axis("node", NODES)
    while axis.name in x.axes:
        axis = axis.prime
    every = Axes(*x.axes, axis)
    node, factor = (
        broadcast(constant(each, [axis], x.dtype), every) for each in (0.5 * (points + 1), factors)
    )
    t = start + (end - start) * node
    fall = -2.0 * sin(0.5 * (t + x)) * sin(0.5 * (t - x))
    terms = (2.0 * square(sin(0.5 * t)) - above) * exp(k * fall)
    return 0.5 * (end - start) * total(factor * terms, out_axes=x.axes)
