"""Rows of elementwise primitives: functions of ``Expr`` operands that write their nodes.

A function without an ONNX operator, or without a kernel for float64, has a formula: those of
``expm1`` and ``log1p`` are W. Kahan's (the error of a rounded exponential or sum cancels in a
quotient), that of the arc tangent corrects a float32 value by one step of the addition theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, FLOAT32, FLOAT64
from ...positional.elementwise import ONNX_PRIMITIVES
from .expressions import Expr, is_float, is_integer, unsigned

Row = Callable[..., Expr]


def operator(name: str) -> Row:
    """Return the row of a primitive that is one ONNX operator."""
    return lambda x, *others: x.run(name, *others)


def _in_float32(name: str, formula: Callable[[Expr], Expr]) -> Row:
    """Return a row that is an operator for float32, and a formula for float64."""
    return lambda x: x.run(name) if x.dtype == FLOAT32 else formula(x)


def _always(x: Expr, value: bool = True) -> Expr:
    """Return a bool with the shape of an integer or bool value."""
    zero = x.cast(BOOL)
    return zero | ~zero if value else zero & ~zero


def _predicate(name: str, x: Expr) -> Expr:
    return x.run(name) if is_float(x.dtype) else _always(x, False)


def _rounded(name: str, x: Expr) -> Expr:
    return x.run(name) if is_float(x.dtype) else x


# Integers and remainders ------------------------------------------------------------------------


def _safe(y: Expr) -> tuple[Expr, Expr, Expr | None]:
    """Return a divisor that the processor takes, where y is 0, and where y is -1."""
    zero = y.equals(0)
    minus = y.equals(-1) if y.dtype.kind == "i" else None
    return (zero if minus is None else zero | minus).where(1, y), zero, minus


def _floordivide(x: Expr, y: Expr) -> Expr:
    if is_integer(x.dtype):
        divisor, zero, minus = _safe(y)
        quotient = x / divisor  # rounded towards 0
        if minus is not None:
            rest = x - quotient * divisor
            apart = ~rest.equals(0) & ((divisor < 0) ^ (rest < 0))
            quotient = minus.where(-x, apart.where(quotient - 1, quotient))
        return zero.where(0, quotient)
    rest = x.run("Mod", y, fmod=1)
    quotient = (x - rest) / y
    apart = ~rest.equals(0) & ((y < 0) ^ (rest < 0))
    quotient = apart.where(quotient - 1, quotient)
    whole = quotient.run("Floor")
    whole = (quotient - whole > 0.5).where(whole + 1, whole)
    whole = quotient.equals(0).where((x / y) * 0, whole)
    return y.equals(0).where(x / y, whole)


def _mod(x: Expr, y: Expr) -> Expr:
    if is_integer(x.dtype):
        divisor, zero, minus = _safe(y)
        special = zero if minus is None else zero | minus
        return special.where(0, x.run("Mod", divisor))
    rest = x.run("Mod", y, fmod=1)
    apart = ~rest.equals(0) & ((y < 0) ^ (rest < 0))
    return apart.where(rest + y, rest)


def _power(x: Expr, y: Expr) -> Expr:
    """Return x to the power y: of integers by repeated squaring, modulo their width."""
    if not is_integer(x.dtype):
        return x.run("Pow", y)
    bits = 8 * x.dtype.itemsize - (x.dtype.kind == "i")
    constant = x.graph.initializers.get(y.name)
    if constant is not None and constant.size == 1:
        bits = max(int(constant.item()).bit_length(), 1)
    made, square = x.number(1), x
    exponent = y.cast(unsigned(y.dtype))
    for bit in range(bits):
        chosen = ~(exponent & (1 << bit)).equals(0)
        made = chosen.where(made * square, made)
        square = square * square if bit + 1 < bits else square
    if y.dtype.kind == "u":
        return made
    odd = ~(exponent & 1).equals(0)
    inverse = x.equals(1).where(1, x.equals(-1).where(odd.where(x, x.number(1)), x.number(0)))
    return (y < 0).where(inverse, made)


def _shift(direction: str, x: Expr, y: Expr) -> Expr:
    """Return a shift; outside the width it gives 0, or the sign to the right."""
    wide = unsigned(x.dtype)
    width = 8 * x.dtype.itemsize
    count = y.cast(wide)
    outside = count >= width
    count = outside.where(0, count)
    if direction == "LEFT" or x.dtype.kind == "u":
        moved = x.cast(wide).shifted(count, direction)
        return outside.where(0, moved).cast(x.dtype)
    negative = x < 0  # x >> y of a negative x is ~(~x >> y)
    positive = negative.where(~x, x).cast(wide).shifted(count, direction)
    moved = outside.where(0, positive).cast(x.dtype)
    return negative.where(~moved, moved)


def _cast(op: Op, x: Expr) -> Expr:
    """Return a cast: floats are held at the ends of an integer dtype, NaN becomes 0."""
    target = op.dtype
    if not is_integer(target) or not is_float(x.dtype):
        return x.cast(target)
    info = np.iinfo(target)
    x = x.cast(FLOAT64)
    x = x.run("IsNaN").where(0.0, x)
    if target.itemsize < 8:
        return x.run("Max", float(info.min)).run("Min", float(info.max)).cast(target)
    top = x >= float(info.max)
    inside = top.where(0.0, x.run("Max", float(info.min))).cast(target)
    return top.where(inside.number(info.max), inside)


# Functions --------------------------------------------------------------------------------------


def _expm1(x: Expr) -> Expr:
    power = x.run("Exp")
    above = power - 1
    exact = above * x / power.run("Log")
    special = above.equals(-1) | (power.run("Abs").equals(np.inf))
    return power.equals(1).where(x, special.where(above, exact))


def _log1p(x: Expr) -> Expr:
    total = 1 + x
    above = total - 1
    exact = total.run("Log") * x / above
    special = above.equals(0) | total.equals(np.inf)
    return special.where(x, exact)


def _atan(x: Expr) -> Expr:
    """Return the arc tangent in float64."""
    near = x.cast(FLOAT32).run("Atan").cast(FLOAT64)
    sine, cosine = near.run("Sin"), near.run("Cos")
    made = near + (x * cosine - sine) / (cosine + x * sine)
    ends = x.run("Sign") * (math.pi / 2)
    return x.run("Abs").equals(np.inf).where(ends, x.equals(0).where(x, made))


def _atan2(y: Expr, x: Expr) -> Expr:
    """Return the angle of a point, from that in the first eighth of the plane."""
    across, along = y.run("Abs"), x.run("Abs")
    larger, smaller = across.run("Max", along), across.run("Min", along)
    share = larger.equals(0).where(0.0, smaller.equals(larger).where(1.0, smaller / larger))
    angle = ROWS["atan"](share)
    angle = (across > along).where(math.pi / 2 - angle, angle)
    angle = _is_negative(x).where(math.pi - angle, angle)
    angle = (y.run("IsNaN") | x.run("IsNaN")).where(math.nan, angle)
    return _is_negative(y).where(-angle, angle)


def _is_negative(x: Expr) -> Expr:
    """Return True for numbers with a sign, -0 included."""
    return (x < 0) | (x.equals(0) & (1 / x < 0))


def _sinh(x: Expr) -> Expr:
    """Return the hyperbolic sine; a product of two roots of exp(x) overflows later than it."""
    size = x.run("Abs")
    root, less = (size * 0.5).run("Exp"), _expm1(size)
    made = (size > 1).where(root * 0.5 * root - 0.5 / root / root, (less + less / (less + 1)) * 0.5)
    return x.run("Sign") * made


def _cosh(x: Expr) -> Expr:
    root = (x.run("Abs") * 0.5).run("Exp")
    return root * 0.5 * root + 0.5 / root / root


def _asinh(x: Expr) -> Expr:
    size = x.run("Abs")
    large = size > 1e8
    held = large.where(0.0, size)
    square = held * held
    small = _log1p(held + square / (1 + (1 + square).run("Sqrt")))
    return x.run("Sign") * large.where(size.run("Log") + math.log(2), small)


def _acosh(x: Expr) -> Expr:
    large = x > 1e8
    above = large.where(0.0, x - 1)
    small = _log1p(above + (2 * above + above * above).run("Sqrt"))
    return (x < 1).where(math.nan, large.where(x.run("Log") + math.log(2), small))


def _atanh(x: Expr) -> Expr:
    size = x.run("Abs")
    return x.run("Sign") * 0.5 * _log1p(2 * size / (1 - size))


def _sigmoid(x: Expr) -> Expr:
    """Return the logistic function; the kernel's polynomial is 0 where the value is small."""
    small = (-x.run("Abs")).run("Exp")
    return (x > 0).where(1.0, small) / (1 + small)


def _sigmoid_derivative(x: Expr) -> Expr:
    small = (-x.run("Abs")).run("Exp")
    total = 1 + small
    return small / total / total


def _silu(x: Expr) -> Expr:
    share = _sigmoid(x)
    return share.equals(0).where(0.0, x * share)


def _gelu(x: Expr, form: str = "none") -> Expr:
    """Return ONNX's Gelu; below -64 the value is 0, and the operator's is NaN at -inf."""
    return x.run("Max", -64.0).run("Gelu", approximate=form)


ROWS: dict[str, Row] = {
    **{f.__name__: operator(name) for name, f in ONNX_PRIMITIVES.items()},
    "acos": _in_float32("Acos", lambda x: 2 * _atan(((1 - x) / (1 + x)).run("Sqrt"))),
    "acosh": _acosh,
    "asin": _in_float32("Asin", lambda x: _atan(x / ((1 - x) * (1 + x)).run("Sqrt"))),
    "asinh": _asinh,
    "atan": _in_float32("Atan", _atan),
    "atan2": _atan2,
    "atanh": _atanh,
    **dict.fromkeys(("bitwise_and", "logical_and"), lambda x, y: x & y),
    **dict.fromkeys(("bitwise_not", "logical_not"), lambda x: ~x),
    **dict.fromkeys(("bitwise_or", "logical_or"), lambda x, y: x | y),
    **dict.fromkeys(("bitwise_xor", "logical_xor"), lambda x, y: x ^ y),
    "ceil": partial(_rounded, "Ceil"),
    "cosh": _cosh,
    "expm1": _expm1,
    "floor": partial(_rounded, "Floor"),
    "floordivide": _floordivide,
    "gelu": _gelu,
    "gelu_tanh": partial(_gelu, form="tanh"),
    "isfinite": lambda x: (x.run("Abs") < np.inf) if is_float(x.dtype) else _always(x),
    "isinf": partial(_predicate, "IsInf"),
    "isnan": partial(_predicate, "IsNaN"),
    "left_shift": partial(_shift, "LEFT"),
    "log1p": _log1p,
    "mod": _mod,
    "negative": lambda x: -x,
    "not_equal": lambda x, y: ~x.equals(y),
    "power": _power,
    "right_shift": partial(_shift, "RIGHT"),
    "round": partial(_rounded, "Round"),
    "rsqrt": lambda x: x.run("Sqrt").run("Reciprocal"),
    "sigmoid": _sigmoid,
    "sigmoid_derivative": _sigmoid_derivative,
    "silu": _silu,
    "sinh": _sinh,
    "softplus": lambda x: x.run("Max", 0.0) + _log1p((-x.run("Abs")).run("Exp")),
    "square": lambda x: x * x,
    "tan": _in_float32("Tan", lambda x: x.run("Sin") / x.run("Cos")),
    "trunc": lambda x: x.run("Sign") * x.run("Abs").run("Floor") if is_float(x.dtype) else x,
    "where": lambda condition, x, y: condition.where(x, y),
}
# Rows that also take the op, for its attributes or dtype.
ROWS_WITH_OP: dict[str, Callable[..., Expr]] = {
    "cast": _cast,
    "copy": lambda op, x: x,
}
FLOAT32_OPERATORS = frozenset({"erf", "gelu", "gelu_tanh"})  # with kernels for float32 alone

# Rows that are used in place of the formulas of the lowering rules.
WITHOUT_FORMULA = frozenset({"sigmoid_derivative", "silu"})
