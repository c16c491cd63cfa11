"""Activations with asymptotic limits: gelu in both forms, silu, and their derivatives.

They are primitives, not composites, because no combination of other ops is accurate on the whole
real line: the factor x is infinite or large where the other factor vanishes, a subnormal factor has
lost digits, and halves round after each op. Their derivatives are primitives for the same reasons;
second derivatives are composites. A primitive on halves computes in float32 and rounds once.
"""

from __future__ import annotations

import math
from typing import Any

from ..building.elementwise_build import elementwise
from ..op_graph import Tensor
from ..rows.elementwise import maximum, minimum, sigmoid, sigmoid_derivative, square
from .special_functions import density, normal_below, precise

SCALE = 2 * math.sqrt(2 / math.pi)  # gelu_tanh(x) = x sigmoid(SCALE (x + CUBE x^3))
CUBE = 0.044715


def _clamp(x: Tensor, end: float) -> Tensor:
    """Clamp x to -end and end, beyond which its cofactors have vanished."""
    return maximum(minimum(x, end), -end)


def _gelu_second(x: Tensor) -> Tensor:
    x = _clamp(x, 64)
    return density(x) * (2 - square(x))


def _silu_second(x: Tensor) -> Tensor:
    x = _clamp(x, 1100)
    return sigmoid_derivative(x) * (2 + x * (sigmoid(-x) - sigmoid(x)))


def _gelu_tanh_second(x: Tensor) -> Tensor:
    x = _clamp(x, 32)
    u = x * (SCALE + (CUBE * SCALE) * square(x))
    first, second = SCALE + (3 * CUBE * SCALE) * square(x), (6 * CUBE * SCALE) * x
    middle = square(first) * (sigmoid(-u) - sigmoid(u))
    return sigmoid_derivative(u) * (2 * first + x * (second + middle))


# References of the primitives on mpmath numbers; infinities are handled first.


def _bell(x: Any) -> Any:
    import mpmath

    return mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def _logistic(x: Any) -> Any:
    import mpmath

    return 1 / (1 + mpmath.exp(-x))


def _cubic(x: Any) -> tuple[Any, Any]:
    """The argument of the sigmoid in gelu's tanh form, and x times its derivative."""
    import mpmath

    scale, cube = mpmath.sqrt(8 / mpmath.pi), mpmath.mpf("0.044715")
    return scale * (x + cube * x**3), scale * (x + 3 * cube * x**3)


def _silu(x: Any) -> Any:
    return max(x, 0) if abs(x) > 2000 else x * _logistic(x)


def _silu_derivative(x: Any) -> Any:
    return x > 0 if abs(x) > 2000 else _logistic(x) * (1 + x * _logistic(-x))


def _gelu(x: Any) -> Any:
    return max(x, 0) if abs(x) > 2000 else x * normal_below(x)


def _gelu_derivative(x: Any) -> Any:
    return x > 0 if abs(x) > 2000 else normal_below(x) + x * _bell(x)


def _gelu_tanh(x: Any) -> Any:
    return max(x, 0) if abs(x) > 2000 else x * _logistic(_cubic(x)[0])


def _gelu_tanh_derivative(x: Any) -> Any:
    if abs(x) > 2000:
        return x > 0
    u, derivative = _cubic(x)
    return _logistic(u) * (1 + derivative * _logistic(-u))


gelu_derivative = elementwise(
    "gelu_derivative",
    "The derivative of ``geon.gelu``.",
    precise(_gelu_derivative),
    (lambda out, x: _gelu_second(x),),
    rule="float",
    sympy="erfc(-x / sqrt(2)) / 2 + x * exp(-x ** 2 / 2) / sqrt(2 * pi)",
    cost="expensive",
)
gelu = elementwise(
    "gelu",
    "x times the standard normal distribution function; see ``geon.gelu``.",
    precise(_gelu),
    (lambda out, x: gelu_derivative(x),),
    rule="float",
    sympy="x * erfc(-x / sqrt(2)) / 2",
    cost="expensive",
)
gelu_tanh_derivative = elementwise(
    "gelu_tanh_derivative",
    "The derivative of the tanh form of ``geon.gelu``.",
    precise(_gelu_tanh_derivative),
    (lambda out, x: _gelu_tanh_second(x),),
    rule="float",
    cost="expensive",
)
gelu_tanh = elementwise(
    "gelu_tanh",
    "The tanh form of ``geon.gelu``.",
    precise(_gelu_tanh),
    (lambda out, x: gelu_tanh_derivative(x),),
    rule="float",
    sympy="x * (1 + tanh(sqrt(2 / pi) * (x + 44715 * x ** 3 / 1000000))) / 2",
    cost="expensive",
)
silu_derivative = elementwise(
    "silu_derivative",
    "The derivative of ``geon.silu``.",
    precise(_silu_derivative),
    (lambda out, x: _silu_second(x),),
    rule="float",
    sympy="1 / (1 + exp(-x)) + x * exp(-x) / (1 + exp(-x)) ** 2",
    cost="expensive",
)
silu = elementwise(
    "silu",
    "x * sigmoid(x); see ``geon.silu``.",
    precise(_silu),
    (lambda out, x: silu_derivative(x),),
    rule="float",
    sympy="x / (1 + exp(-x))",
    cost="expensive",
)
