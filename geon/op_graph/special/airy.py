"""Airy functions and their derivatives as rows; ``airy_formulas`` has their formulas.

Derivatives are those of the equation y'' = x y (DLMF 9.2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..building.elementwise_build import elementwise
from .airy_formulas import LEAST
from .special_functions import precise

if TYPE_CHECKING:
    from ..building.typing import Unary


def _function(kind: str, derivative: int) -> Any:
    """Return the reference of Ai or Bi, or of its derivative, of mpmath numbers."""

    def one(x: Any) -> Any:
        import mpmath

        if x < LEAST:
            return mpmath.nan
        if x > 1000:  # beyond the range of floats
            return mpmath.inf if kind == "b" else mpmath.mpf(0)
        return getattr(mpmath, f"airy{kind}i")(x, derivative=derivative)

    return precise(one)


def _airy(name: str, doc: str, kind: str, derivative: int, slope: Any, symbol: str) -> Any:
    return elementwise(
        name,
        doc,
        _function(kind, derivative),
        (slope,),
        rule="float",
        sympy=f"airy{symbol}(x)",
        domain=((-8.0, 5.0),),
        cost="expensive",
    )


airy_ai: Unary = _airy(
    "airy_ai",
    "The Airy function Ai; NaN below -1e8.",
    "a",
    0,
    lambda out, x: airy_aip(x),
    "ai",
)
airy_aip: Unary = _airy(
    "airy_aip",
    "The derivative of the Airy function Ai; NaN below -1e8.",
    "a",
    1,
    lambda out, x: x * airy_ai(x),
    "aiprime",
)
airy_bi: Unary = _airy(
    "airy_bi",
    "The Airy function Bi; NaN below -1e8.",
    "b",
    0,
    lambda out, x: airy_bip(x),
    "bi",
)
airy_bip: Unary = _airy(
    "airy_bip",
    "The derivative of the Airy function Bi; NaN below -1e8.",
    "b",
    1,
    lambda out, x: x * airy_bi(x),
    "biprime",
)
