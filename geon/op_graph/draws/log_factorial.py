"""Logarithms of factorials in two logarithms and no branch."""

from __future__ import annotations

import math

from ..op_graph import Tensor
from ..rows.elementwise import log

SHIFT = 8  # Stirling's series is used from here on, where four terms are right to 1e-13
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def log_factorial(k: Tensor) -> Tensor:
    """Return log(k!) of float64 whole numbers; NaN or infinite for k below 0.

    It is Stirling's series (DLMF 5.11.1) at k + 8, less the logarithm of a product of 8 factors.
    ``lgamma`` serves all real numbers and takes several times as long.
    """
    factors = k + 1.0
    for i in range(2, SHIFT + 1):
        factors = factors * (k + float(i))
    z = k + (SHIFT + 1.0)
    w = 1.0 / (z * z)
    series = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188))))) / z
    return (z - 0.5) * log(z) - z + HALF_LOG_2PI + series - log(factors)
