"""Arithmetic and elementary functions of complex numbers, in terms of real and imaginary parts.

A rule takes an op and the (real, imaginary) parts of its arguments, of which None is zero, and
returns those of the result; a real result has None as its imaginary part. Rows without a rule apply
to each part alone. Products and running products are loops that carry both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import as_tensor, number, scalar_value
from ....op_graph.op_graph import Op, Tensor
from ....op_graph.regions.scan import scan
from ....op_graph.rows.contraction import contract_two
from ....op_graph.rows.elementwise import (
    absolute,
    add,
    cast,
    divide,
    equal,
    exp,
    expm1,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    sqrt,
    square,
    subtract,
    where,
)
from ....op_graph.rows.leaves import iota
from ....op_graph.rows.logic import logical_and, logical_or
from ....op_graph.rows.movement import broadcast, flatten, reorder
from ....op_graph.rows.trigonometry import atan2, cos, cosh, sin, sinh, tan
from ....op_graph.values.dtypes import DType, real_dtype

Part = Any  # a tensor, or None for zero
Parts = tuple[Part, Part]
Rule = Callable[[Op, Sequence[Parts]], Parts]
DenseRule = Callable[[Tensor, Tensor], Parts]

MAX_MULTIPLIED_POWER = 64
"""Largest integer exponent that becomes products: at most ten, as exact as exp and log."""
MAX_TANH_ARGUMENT = 20.0
"""From this real part on, tanh is 1 to the precision of float64; its square fits float32."""

PARTS: dict[str, Rule] = {}

# Weak, so they take the dtype of what they meet.
ZERO, ONE = as_tensor(0.0), as_tensor(1.0)


def on(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule for primitives."""

    def register(rule: Rule) -> Rule:
        PARTS.update(dict.fromkeys(names, rule))
        return rule

    return register


def on_tensors(*names: str) -> Callable[[DenseRule], DenseRule]:
    """Register the decorated rule, which takes both parts of the only argument as tensors."""

    def register(rule: DenseRule) -> DenseRule:
        on(*names)(lambda op, args: rule(*dense(op, args[0])))
        return rule

    return register


# Parts that may be zero ---------------------------------------------------------------------------


def _sum(x: Part, y: Part) -> Part:
    return y if x is None else x if y is None else add.apply(x, y)


def _difference(x: Part, y: Part) -> Part:
    return x if y is None else negative.apply(y) if x is None else subtract.apply(x, y)


def _product(x: Part, y: Part) -> Part:
    return None if x is None or y is None else multiply.apply(x, y)


def _ratio(x: Part, y: Tensor) -> Part:
    return None if x is None else divide.apply(x, y)


def dense(op: Op, x: Parts) -> tuple[Tensor, Tensor]:
    """Return both parts of an argument of ``op`` as tensors."""
    zero = number(0, real_dtype(op.args[0].dtype))
    return tuple([zero if part is None else part for part in x])  # type: ignore[return-value]  # 2


def multiplied(x: Parts, y: Parts) -> Parts:
    """Return the parts of a product."""
    (a, b), (c, d) = x, y
    return (
        _difference(_product(a, c), _product(b, d)),
        _sum(_product(a, d), _product(b, c)),
    )


# Arithmetic ---------------------------------------------------------------------------------------


@on("add")
def _add(op: Op, args: Sequence[Parts]) -> Parts:
    (a, b), (c, d) = args
    return _sum(a, c), _sum(b, d)


@on("subtract")
def _subtract(op: Op, args: Sequence[Parts]) -> Parts:
    (a, b), (c, d) = args
    return _difference(a, c), _difference(b, d)


@on("negative")
def _negative(op: Op, args: Sequence[Parts]) -> Parts:
    return _difference(None, args[0][0]), _difference(None, args[0][1])


@on("square")
def _square(op: Op, args: Sequence[Parts]) -> Parts:
    a, b = args[0]
    if a is None or b is None:
        return multiplied((a, b), (a, b))
    return multiply.apply(subtract.apply(a, b), add.apply(a, b)), 2 * multiply.apply(a, b)


@on("reciprocal")
def _reciprocal(op: Op, args: Sequence[Parts]) -> Parts:
    return _quotient((number(1, real_dtype(op.dtype)), None), args[0])


def _quotient(x: Parts, y: Parts) -> Parts:
    """Return x / y by the method of R. L. Smith, Algorithm 116, 1962: nothing is squared."""
    (a, b), (c, d) = x, y
    if a is None and b is None:
        a = ZERO
    if d is None and c is None:
        return _ratio(a, ZERO), _ratio(b, ZERO)
    if d is None:
        return _ratio(a, c), _ratio(b, c)
    if c is None:  # (a + ib) / id = (b - ia) / d
        return _ratio(b, d), _ratio(_difference(None, a), d)
    flat = greater_equal.apply(absolute(c), absolute(d))
    large, small = where.apply(flat, c, d), where.apply(flat, d, c)
    ratio = divide.apply(small, large)
    total = add.apply(large, multiply.apply(small, ratio))
    first, second = _chosen(flat, a, b), _chosen(flat, b, a)
    across = _difference(second, _product(first, ratio))
    signed = where.apply(flat, across, negative.apply(across))
    return _ratio(_sum(first, _product(second, ratio)), total), divide.apply(signed, total)


def _chosen(condition: Tensor, x: Part, y: Part) -> Part:
    if x is None and y is None:
        return None
    return where.apply(condition, 0 if x is None else x, 0 if y is None else y)


@on("power")
def _power(op: Op, args: Sequence[Parts]) -> Parts:
    base, exponent = args
    value = scalar_value(op.args[1])
    if value is not None and abs(value) <= MAX_MULTIPLIED_POWER and value == int(value):
        times = int(value)
        one: Parts = (number(1, real_dtype(op.dtype)), None)
        made = _repeated(base, abs(times)) if times else one
        return _quotient(one, made) if times < 0 else made
    x, y = dense(op, base), dense(op, exponent)
    zero = logical_and.apply(equal.apply(x[0], 0), equal.apply(x[1], 0))
    safe = where.apply(zero, 1, x[0]), x[1]
    re, im = _exponential(*multiplied(exponent, _logarithm(*safe)))
    nothing = logical_and.apply(equal.apply(y[0], 0), equal.apply(y[1], 0))
    at_zero = where.apply(nothing, 1, where.apply(greater.apply(y[0], 0), 0, float("nan")))
    at_zero = cast(at_zero, real_dtype(op.dtype))
    return where.apply(zero, at_zero, re), None if im is None else where.apply(zero, 0, im)


def _repeated(x: Parts, times: int) -> Parts:
    """Return x to a positive integer power, by repeated squaring."""
    factors = []
    while times:
        if times % 2:
            factors.append(x)
        times //= 2
        if times:
            x = multiplied(x, x)
    return reduce(multiplied, factors)


@on("dot")
def _dot(op: Op, args: Sequence[Parts]) -> Parts:
    (a, b), (c, d) = args

    def product(x: Part, y: Part) -> Part:
        if x is None or y is None:
            return None
        left, right = broadcast(x, op.args[0].axes), broadcast(y, op.args[1].axes)
        return contract_two(left, right, op.attrs.over)

    return (
        _difference(product(a, c), product(b, d)),
        _sum(product(a, d), product(b, c)),
    )


# Parts and sizes ----------------------------------------------------------------------------------


@on("iota")
def _iota(op: Op, args: Sequence[Parts]) -> Parts:
    return iota(op.attrs.axis, real_dtype(op.dtype)), None


@on("cast")
def _cast(op: Op, args: Sequence[Parts]) -> Parts:
    dtype = real_dtype(op.dtype)
    re, im = (None if part is None else cast(part, dtype) for part in args[0])
    return re, im


@on("as_complex")
def _as_complex(op: Op, args: Sequence[Parts]) -> Parts:
    return args[0][0], args[1][0]


@on("conj")
def _conj(op: Op, args: Sequence[Parts]) -> Parts:
    return args[0][0], _difference(None, args[0][1])


@on("absolute")
def _absolute(op: Op, args: Sequence[Parts]) -> Parts:
    a, b = args[0]
    if a is None or b is None:
        only = dense(op, args[0])[0] if b is None else b
        return absolute(only), None
    return _modulus(a, b), None


def _modulus(a: Tensor, b: Tensor) -> Tensor:
    """Return sqrt(a² + b²), scaled by the larger of both, so that no square overflows."""
    large, ratio = _scaled(a, b)
    return multiply.apply(large, sqrt(1 + square(ratio)))


def _scaled(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the larger of |a| and |b|, and their ratio of at most 1; 0 where that is undefined."""
    large, small = maximum.apply(absolute(a), absolute(b)), minimum.apply(absolute(a), absolute(b))
    extreme = logical_or.apply(equal.apply(large, 0), isinf.apply(large))
    return large, where.apply(extreme, 0, divide.apply(small, where.apply(extreme, 1, large)))


# Comparisons --------------------------------------------------------------------------------------


@on("equal")
def _equal(op: Op, args: Sequence[Parts]) -> Parts:
    (a, b), (c, d) = (dense(op, x) for x in args)
    return logical_and.apply(equal.apply(a, c), equal.apply(b, d)), None


@on("not_equal")
def _not_equal(op: Op, args: Sequence[Parts]) -> Parts:
    (a, b), (c, d) = (dense(op, x) for x in args)
    return logical_or.apply(not_equal.apply(a, c), not_equal.apply(b, d)), None


# Elementary functions -----------------------------------------------------------------------------


def _exponential(a: Part, b: Part) -> Parts:
    if a is None and b is None:
        return ONE, None
    if b is None:
        return exp(a), None
    if a is None:
        return cos(b), sin(b)
    size = exp(a)
    return multiply.apply(size, cos(b)), multiply.apply(size, sin(b))


@on_tensors("expm1")
def _expm1(a: Tensor, b: Tensor) -> Parts:
    # e^a cos b - 1 = (e^a - 1) cos b - 2 sin²(b / 2), which does not cancel near 0.
    turned = 2 * square(sin(0.5 * b))
    return (
        subtract.apply(multiply.apply(expm1(a), cos(b)), turned),
        multiply.apply(exp(a), sin(b)),
    )


@on_tensors("log1p")
def _log1p(a: Tensor, b: Tensor) -> Parts:
    return _logarithm(1 + a, b, a)


def _logarithm(a: Tensor, b: Tensor, above: Tensor | None = None) -> Parts:
    """Return log |z| and the angle of z; near |z| = 1 from |z|² - 1, which does not cancel.

    ``above`` is a - 1 where a is the rounded sum.
    """
    large, ratio = _scaled(a, b)
    small = multiply.apply(large, ratio)
    near = logical_and.apply(greater.apply(large, 0.5), less.apply(large, 2))
    held = where.apply(near, large, 1)
    beyond = (held - 1) * (held + 1)
    if above is not None:
        flat = logical_and.apply(near, greater_equal.apply(absolute(a), absolute(b)))
        beyond = where.apply(flat, multiply.apply(above, above + 2), beyond)
    close = 0.5 * log1p(add.apply(beyond, square(where.apply(near, small, 0))))
    far = log(large) + 0.5 * log1p(square(ratio))
    return where.apply(near, close, far), atan2.apply(b, a)


@on_tensors("sqrt")
def _sqrt(a: Tensor, b: Tensor) -> Parts:
    part = sqrt(0.5 * absolute(a) + 0.5 * _modulus(a, b))
    nothing = equal.apply(part, 0)
    other = where.apply(nothing, 0, divide.apply(b, 2 * where.apply(nothing, 1, part)))
    right = greater_equal.apply(a, 0)
    down = less.apply(b, 0)
    return (
        where.apply(right, part, absolute(other)),
        where.apply(right, other, where.apply(down, negative.apply(part), part)),
    )


@on_tensors("sin")
def _sin(a: Tensor, b: Tensor) -> Parts:
    return multiply.apply(sin(a), cosh(b)), multiply.apply(cos(a), sinh(b))


@on_tensors("cos")
def _cos(a: Tensor, b: Tensor) -> Parts:
    return multiply.apply(cos(a), cosh(b)), negative.apply(multiply.apply(sin(a), sinh(b)))


@on_tensors("sinh")
def _sinh(a: Tensor, b: Tensor) -> Parts:
    return multiply.apply(sinh(a), cos(b)), multiply.apply(cosh(a), sin(b))


@on_tensors("cosh")
def _cosh(a: Tensor, b: Tensor) -> Parts:
    return multiply.apply(cosh(a), cos(b)), multiply.apply(sinh(a), sin(b))


@on_tensors("tan")
def _tan(a: Tensor, b: Tensor) -> Parts:
    re, im = _hyperbolic_tangent(negative.apply(b), a)  # tan z = -i tanh(iz)
    return im, negative.apply(re)


@on_tensors("tanh")
def _hyperbolic_tangent(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return tanh by the formula of W. Kahan, "Branch cuts for complex elementary functions"."""
    held = maximum.apply(minimum.apply(a, MAX_TANH_ARGUMENT), -MAX_TANH_ARGUMENT)
    t, s = tan(b), sinh(held)
    beta = 1 + square(t)
    total = 1 + multiply.apply(beta, square(s))
    rho = sqrt(1 + square(s))
    return divide.apply(multiply.apply(beta, rho * s), total), divide.apply(t, total)


def _products(x: Parts, axis: Axis, dtype: DType, exclusive: bool, reverse: bool) -> Any:
    """Return the product along ``axis`` and the running products, as parts."""
    rest = x[0].axes.without((axis.name,))
    first = [broadcast(number(value, dtype), rest) for value in (1, 0)]

    def step(before: list[Tensor], factor: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        after = [*multiplied((before[0], before[1]), (factor[0], factor[1]))]
        return after, before if exclusive else after

    return scan(step, first, list(x), over=axis, reverse=reverse)


def _prod(op: Op, args: Sequence[Parts]) -> Parts:
    x: Any = op.args[0]
    group = x.axes.only(op.attrs.reduced)
    axis = Axis("_".join(op.attrs.reduced), group.size)
    while axis in x.axes.without(op.attrs.reduced):
        axis = axis.prime
    flat = [flatten(broadcast(part, x.axes), group, axis) for part in dense(op, args[0])]
    (re, im), _ = _products((flat[0], flat[1]), axis, real_dtype(op.dtype), False, False)
    return re, im


def _cumprod(op: Op, args: Sequence[Parts]) -> Parts:
    a: Any = op.attrs
    x = [broadcast(part, op.axes) for part in dense(op, args[0])]
    axis, dtype = op.axes[a.axis], real_dtype(op.dtype)
    _, (re, im) = _products((x[0], x[1]), axis, dtype, a.exclusive, a.reverse)
    return reorder(re, op.axes), reorder(im, op.axes)


PARTS |= {
    "multiply": lambda op, args: multiplied(*args),
    "divide": lambda op, args: _quotient(*args),
    "exp": lambda op, args: _exponential(*args[0]),
    "log": lambda op, args: _logarithm(*dense(op, args[0])),
    "real": lambda op, args: (dense(op, args[0])[0], None),
    "imag": lambda op, args: (dense(op, args[0])[1], None),
    "isnan": lambda op, args: (logical_or.apply(*map(isnan.apply, dense(op, args[0]))), None),
    "isinf": lambda op, args: (logical_or.apply(*map(isinf.apply, dense(op, args[0]))), None),
    "isfinite": lambda op, args: (
        logical_and.apply(*map(isfinite.apply, dense(op, args[0]))),
        None,
    ),
}
PRODUCTS: dict[str, Rule] = {"prod": _prod, "cumprod": _cumprod}
