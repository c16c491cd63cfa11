"""Namespaces of the operations in formulas of special functions, as geon's ops or as NumPy's.

The formulas of ``normal`` and ``gamma_formulas`` use ``GEON_OPS``, geon's functions: with them they
build ops, with NumPy's they compute. Those of ``erf_formulas`` use ``FLOAT64_OPS`` and
``FLOAT32_OPS``, which add compositions of what processors have and ops lack.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from ..rows import elementwise, logic, trigonometry
from . import special_functions

NAMES = (
    "absolute cast cos digamma equal erf erfc erfcx erfinv exp expm1 floor isnan log log1p"
    " log_ndtr logical_and logical_not logical_or logical_xor maximum minimum power right_shift"
    " round sign sin sqrt square stop_gradient tan trunc where"
).split()

_FUNCTIONS = {
    name: next(
        getattr(module, name)
        for module in (logic, trigonometry, special_functions, elementwise)
        if hasattr(module, name)
    )
    for name in NAMES
}
GEON_OPS = SimpleNamespace(**_FUNCTIONS)
RAISED = 2.0**80  # factor of exponentials that keeps them normal where results are subnormal
LN2_LOW = 2.3190468138462996e-17  # log(2) - math.log(2)


class SpecialOps(SimpleNamespace):
    """The namespace of ``erf_formulas``: for float64, or ``wide`` for float32 computed in float64.

    A correction of a wide formula is the number 0.0, with which no op is made.
    """

    def __init__(self, wide: bool) -> None:
        super().__init__(**_FUNCTIONS, wide=wide, precision="float32" if wide else "float64")

    def polynomial(self, x: Any, coefficients: tuple[float, ...]) -> Any:
        """Return c0 + c1 x + c2 x^2 + ..."""
        total: Any = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            total = total * x + coefficient
        return total

    def fused(self, x: Any, y: Any, z: Any) -> Any:
        """Return x y + z."""
        return z if _is_zero(x) or _is_zero(y) else x * y if _is_zero(z) else x * y + z

    def product_error(self, x: Any, y: Any, product: Any) -> Any:
        """Return x y - product, exactly, for float64 of less than 1e290."""
        return 0.0 if self.wide else product_error(x, y, product)

    def fused_error(self, x: Any, y: Any, z: Any, total: Any) -> Any:
        """Return x y + z - total, of which z is the largest."""
        product = x * y
        return 0.0 if self.wide else (product + (z - total)) + product_error(x, y, product)

    def exp_parts(self, a: Any, low: Any) -> tuple[Any, Any, Any]:
        """Return p, f and g of exp(a + low) = (1 + p) f g, for a small ``low``."""
        if self.wide:
            return 0.0, self.exp(a if _is_zero(low) else a + low), 1.0
        near = self.maximum(self.minimum(a, 690.0), -690.0)
        return low, self.exp(near), self.exp(a - near)

    def exp_raised(self, a: Any) -> tuple[Any, float]:
        """Return exp(a) times a factor that keeps it normal, and the factor."""
        if self.wide:
            return self.exp(a), 1.0
        half = self.exp(0.5 * a)
        return (half * RAISED) * half, RAISED

    def exp2_raised(self, a: Any, w: Any, low: Any) -> tuple[Any, float]:
        """Return 2^(a (w + low)) times a factor that keeps it normal, and the factor."""
        if self.wide:
            return self.exp((math.log(2) * a) * (w + low)), 1.0
        power = a * w
        u = math.log(2) * power
        rest = product_error(a, w, power) + a * low
        rest = product_error(math.log(2), power, u) + (LN2_LOW * power + math.log(2) * rest)
        half = self.exp(0.5 * u)
        return (half * RAISED) * (half + half * rest), RAISED

    def at_least(self, x: Any, end: float) -> Any:
        """Return the larger of x and ``end``; for NaN, any number."""
        return self.maximum(x, end)

    def signed(self, size: Any, x: Any) -> Any:
        """Return ``size`` with the sign of x."""
        return self.where(x > 0.0, size, self.where(x < 0.0, -size, x))


def product_error(x: Any, y: Any, product: Any) -> Any:
    """Return x y - product, exactly, for float64 of less than 1e290 (Dekker, 1971)."""
    a, b = _upper(x), _upper(y)
    c, d = x - a, y - b
    return ((a * b - product) + (a * d + c * b)) + c * d


def _upper(x: Any) -> Any:
    """Return the upper 26 bits of x (Veltkamp's split)."""
    c = 134217729.0 * x
    return c - (c - x)


def _is_zero(x: Any) -> bool:
    """Return True for a correction that a wide formula does without."""
    return isinstance(x, float) and x == 0.0


FLOAT64_OPS = SpecialOps(wide=False)
FLOAT32_OPS = SpecialOps(wide=True)
