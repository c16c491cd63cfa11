"""Trigonometric and hyperbolic primitives and their inverses; angles are in radians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..building.elementwise_build import elementwise
from .elementwise import rsqrt, square

if TYPE_CHECKING:
    from ..building.typing import Unary

UNIT = ((-0.9, 0.9),)

sin = elementwise(
    "sin",
    "Sine of x in radians.",
    np.sin,
    (lambda out, x: cos(x),),
    rule="float",
    sympy="sin(x)",
    cost="expensive",
    takes_complex=True,
)
cos: Unary = elementwise(
    "cos",
    "Cosine of x in radians.",
    np.cos,
    (lambda out, x: -sin(x),),
    rule="float",
    sympy="cos(x)",
    cost="expensive",
    takes_complex=True,
)
tan = elementwise(
    "tan",
    "Tangent of x in radians.",
    np.tan,
    (lambda out, x: 1 + square(out),),
    rule="float",
    sympy="tan(x)",
    domain=((-1.2, 1.2),),
    cost="expensive",
    takes_complex=True,
)
asin = elementwise(
    "asin",
    "Arc sine in radians.",
    np.arcsin,
    (lambda out, x: rsqrt(1 - square(x)),),
    rule="float",
    sympy="asin(x)",
    domain=UNIT,
    cost="expensive",
)
acos = elementwise(
    "acos",
    "Arc cosine in radians.",
    np.arccos,
    (lambda out, x: -rsqrt(1 - square(x)),),
    rule="float",
    sympy="acos(x)",
    domain=UNIT,
    cost="expensive",
)
atan = elementwise(
    "atan",
    "Arc tangent in radians.",
    np.arctan,
    (lambda out, x: 1 / (1 + square(x)),),
    rule="float",
    sympy="atan(x)",
    cost="expensive",
)
sinh = elementwise(
    "sinh",
    "Hyperbolic sine.",
    np.sinh,
    (lambda out, x: cosh(x),),
    rule="float",
    sympy="sinh(x)",
    cost="expensive",
    takes_complex=True,
)
cosh: Unary = elementwise(
    "cosh",
    "Hyperbolic cosine.",
    np.cosh,
    (lambda out, x: sinh(x),),
    rule="float",
    sympy="cosh(x)",
    cost="expensive",
    takes_complex=True,
)
tanh = elementwise(
    "tanh",
    "Hyperbolic tangent.",
    np.tanh,
    (lambda out, x: 1 - square(out),),
    rule="float",
    sympy="tanh(x)",
    cost="expensive",
    takes_complex=True,
)
asinh = elementwise(
    "asinh",
    "Inverse hyperbolic sine.",
    np.arcsinh,
    (lambda out, x: rsqrt(1 + square(x)),),
    rule="float",
    sympy="asinh(x)",
    cost="expensive",
)
acosh = elementwise(
    "acosh",
    "Inverse hyperbolic cosine.",
    np.arccosh,
    (lambda out, x: rsqrt(square(x) - 1),),
    rule="float",
    sympy="acosh(x)",
    domain=((1.2, 3.0),),
    cost="expensive",
)
atanh = elementwise(
    "atanh",
    "Inverse hyperbolic tangent.",
    np.arctanh,
    (lambda out, x: 1 / (1 - square(x)),),
    rule="float",
    sympy="atanh(x)",
    domain=UNIT,
    cost="expensive",
)
atan2 = elementwise(
    "atan2",
    "The angle of the point (y, x) in radians: atan2(x, y) is the arc tangent of x / y.",
    np.arctan2,
    (
        lambda out, x, y: y / (square(x) + square(y)),
        lambda out, x, y: -x / (square(x) + square(y)),
    ),
    arity=2,
    rule="float",
    sympy="atan2(x, y)",
    domain=((0.3, 2.0), (0.3, 2.0)),
    cost="expensive",
)
