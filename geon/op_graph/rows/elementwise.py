"""Elementwise primitives: NumPy reference, partial derivatives and SymPy form of each.

Partials are functions of (out, x, y, ...) over the op's full axes; a number is a constant partial
and None means zero everywhere. Conventions at special points, each tested:

- ``maximum`` and ``minimum`` share the derivative of a tie equally; ``absolute`` has 0 at 0;
- ``power`` has derivative 0 in x where y is 0, and 0 in y where x is 0;
- the derivatives of ``sigmoid`` and ``tanh`` are computed from their values, at no extra cost if
  these are available: they are as accurate as the rounded value, so 0 where it has reached its
  limit;
- ``floor``, ``ceil``, ``round``, ``trunc``, ``sign`` and comparisons have derivative zero.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import DTypeError
from ..building.constants import as_tensor, scalar_value
from ..building.elementwise_build import Elementwise, elementwise
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..core.source_info import Site, user_call
from ..op_graph import Op, Tensor, make
from ..syntax.operators import LATE_BOUND
from ..values.arrays import rounded
from ..values.attribute_types import Count, DTypeName, Flag, Layout
from ..values.dtypes import as_dtype, is_continuous, kind, named_dtype
from .logic import logical_and

if TYPE_CHECKING:
    from ..building.typing import DTypeLike, OpKeywords, TensorLike, Unary

Array = np.ndarray[Any, Any]
POSITIVE = ((0.2, 3.0),)


def _tie(wins: Elementwise) -> tuple[Any, Any]:
    def share(x: Tensor, y: Tensor) -> Tensor:
        return where.apply(equal.apply(x, y), 0.5, cast(wins.apply(x, y), x.dtype))

    return (lambda out, x, y: share(x, y), lambda out, x, y: share(y, x))


def _power_in_base(out: Tensor, x: Tensor, y: Tensor) -> Tensor | float:
    exponent = scalar_value(y)
    if exponent is not None:
        return y * x ** (y - 1) if exponent else 0.0
    # At x = y = 0, y * x ** (y - 1) would be 0 * inf = NaN; the exponent 1 gives 0.
    corner = multiply.apply(cast(equal.apply(x, 0), y.dtype), cast(equal.apply(y, 0), y.dtype))
    return y * power.apply(x, where.apply(equal.apply(corner, 1), 1, y - 1))


def _power_in_exponent(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
    zero = equal.apply(x, 0)
    return where.apply(zero, 0, out * log(where.apply(zero, 1, x)))


def _where_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    condition = op.args[0]
    if i == 0:
        return None
    return where.apply(condition, g, 0) if i == 1 else where.apply(condition, 0, g)


def _absolute_derivative(out: Tensor, x: Tensor) -> Tensor:
    if kind(x.dtype) != "c":
        return sign(x)
    result: Tensor = LATE_BOUND["conj"](x) / where.apply(equal.apply(out, 0), 1, out)
    return result


def _log1p(x: Array) -> Array:
    """Return log(1 + x); that of complex numbers with the digits that NumPy's loses near 0."""
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    wide = x.astype(np.clongdouble)
    a, b = wide.real, wide.imag
    size = np.hypot(1 + a, b)
    near = (size > 0.5) & (size < 2)
    result = np.empty_like(wide)
    result.real = np.where(
        near, 0.5 * np.log1p(np.where(near, a * (2 + a) + b * b, 0)), np.log(size)
    )
    result.imag = np.arctan2(b, 1 + a)
    return result.astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x > 0, 1, small) / (1 + small))


def _sigmoid_derivative(x: Array) -> Array:
    return _sigmoid(x) * _sigmoid(-x)


def _rounding(round_float: np.ufunc) -> Any:
    return lambda x: round_float(x) if kind(x.dtype) == "f" else x


def _integer_power(x: Array, y: Array) -> Array:
    if is_continuous(x.dtype) or y.dtype.kind == "u":
        return np.power(x, y)
    inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, 1, x), 0)
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


# Arithmetic -------------------------------------------------------------------------------------

add = elementwise("add", "x + y.", np.add, (1.0, 1.0), arity=2, sympy="x + y", takes_complex=True)
subtract = elementwise(
    "subtract", "x - y.", np.subtract, (1.0, -1.0), arity=2, sympy="x - y", takes_complex=True
)
multiply = elementwise(
    "multiply",
    "x * y.",
    np.multiply,
    (lambda out, x, y: y, lambda out, x, y: x),
    arity=2,
    sympy="x * y",
    takes_complex=True,
)
divide = elementwise(
    "divide",
    "x / y; integers are divided as float32.",
    np.true_divide,
    (lambda out, x, y: 1 / y, lambda out, x, y: -out / y),
    arity=2,
    rule="float",
    sympy="x / y",
    domain=((-2.0, 2.0), (0.3, 2.0)),
    cost="slow",
    takes_complex=True,
)
floordivide = elementwise(
    "floordivide",
    "The largest integer not above x / y; an integer divided by 0 gives 0.",
    np.floor_divide,
    (None, None),
    arity=2,
    domain=((-5.0, 5.0), (0.7, 2.0)),
    cost="expensive",
)
mod = elementwise(
    "mod",
    "x - y * floor(x / y), with the sign of y; an integer modulo 0 gives 0.",
    np.remainder,
    (1.0, lambda out, x, y: -floor(x / y)),
    arity=2,
    domain=((-3.0, 3.0), (0.7, 2.0)),
    cost="expensive",
)
power = elementwise(
    "power",
    "x to the power y; an integer to a negative power is 0 unless x is 1 or -1.",
    _integer_power,
    (_power_in_base, _power_in_exponent),
    arity=2,
    sympy="x ** y",
    domain=((0.3, 2.0), (-2.0, 2.0)),
    cost="expensive",
    ufunc="power",
    takes_complex=True,
)
negative = elementwise("negative", "-x.", np.negative, (-1.0,), sympy="-x", takes_complex=True)
absolute = elementwise(
    "absolute",
    "|x|, the modulus of a complex x; its derivative at 0 is 0.",
    np.abs,
    (_absolute_derivative,),
    rule="magnitude",
    sympy="Abs(x)",
    domain=POSITIVE,
    takes_complex=True,
)
sign: Unary = elementwise("sign", "-1, 0 or 1 by the sign of x.", np.sign, (None,), domain=POSITIVE)
reciprocal = elementwise(
    "reciprocal",
    "1 / x.",
    lambda x: 1 / x,
    (lambda out, x: -square(out),),
    rule="float",
    sympy="1 / x",
    domain=POSITIVE,
    cost="slow",
    ufunc="reciprocal",
    takes_complex=True,
)
square: Unary = elementwise(
    "square", "x * x.", np.square, (lambda out, x: 2 * x,), sympy="x ** 2", takes_complex=True
)
sqrt = elementwise(
    "sqrt",
    "The square root; its derivative at 0 is infinite.",
    np.sqrt,
    (lambda out, x: 0.5 / out,),
    rule="float",
    sympy="sqrt(x)",
    domain=POSITIVE,
    cost="slow",
    takes_complex=True,
)
rsqrt = elementwise(
    "rsqrt",
    "1 / sqrt(x).",
    lambda x: 1 / np.sqrt(x),
    (lambda out, x: -0.5 * out / x,),
    rule="float",
    sympy="1 / sqrt(x)",
    domain=POSITIVE,
    cost="slow",
)

# Exponentials -----------------------------------------------------------------------------------

exp = elementwise(
    "exp",
    "e to the x.",
    np.exp,
    (lambda out, x: out,),
    rule="float",
    sympy="exp(x)",
    cost="expensive",
    takes_complex=True,
)
expm1 = elementwise(
    "expm1",
    "exp(x) - 1, exact near 0.",
    np.expm1,
    (lambda out, x: exp(x),),
    rule="float",
    sympy="exp(x) - 1",
    cost="expensive",
    takes_complex=True,
)
log = elementwise(
    "log",
    "The natural logarithm.",
    np.log,
    (lambda out, x: 1 / x,),
    rule="float",
    sympy="log(x)",
    domain=POSITIVE,
    cost="expensive",
    takes_complex=True,
)
log1p = elementwise(
    "log1p",
    "log(1 + x), exact near 0.",
    _log1p,
    (lambda out, x: 1 / (1 + x),),
    rule="float",
    sympy="log(1 + x)",
    domain=((-0.5, 2.0),),
    cost="expensive",
    ufunc="log1p",
    takes_complex=True,
)
sigmoid = elementwise(
    "sigmoid",
    "1 / (1 + exp(-x)).",
    _sigmoid,
    (lambda out, x: out * (1 - out),),
    rule="float",
    sympy="1 / (1 + exp(-x))",
    cost="expensive",
)
sigmoid_derivative: Unary = elementwise(
    "sigmoid_derivative",
    "The derivative of ``geon.sigmoid``, sigmoid(x) sigmoid(-x).",
    _sigmoid_derivative,
    (lambda out, x: out * (sigmoid(-x) - sigmoid(x)),),
    rule="float",
    sympy="exp(-x) / (1 + exp(-x)) ** 2",
    cost="expensive",
)
softplus = elementwise(
    "softplus",
    "log(1 + exp(x)), without overflow.",
    lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    (lambda out, x: sigmoid(x),),
    rule="float",
    sympy="log(1 + exp(x))",
    cost="expensive",
)

# Selection and comparison -----------------------------------------------------------------------

less = elementwise("less", "x < y.", np.less, (None, None), arity=2, rule="compare")
less_equal = elementwise("less_equal", "x <= y.", np.less_equal, (None, None), arity=2,
                         rule="compare")  # fmt: skip
greater = elementwise("greater", "x > y.", np.greater, (None, None), arity=2, rule="compare")
greater_equal = elementwise("greater_equal", "x >= y.", np.greater_equal, (None, None), arity=2,
                            rule="compare")  # fmt: skip
equal = elementwise("equal", "x == y, which builds the same op; NaN equals nothing.", np.equal,
                    (None, None), arity=2, rule="compare", takes_complex=True)  # fmt: skip
not_equal = elementwise("not_equal", "x != y, which builds the same op.", np.not_equal,
                        (None, None), arity=2, rule="compare", takes_complex=True)  # fmt: skip
maximum = elementwise(
    "maximum",
    "The larger of x and y; a tie shares its derivative equally.",
    np.maximum,
    _tie(greater),
    arity=2,
    rule="any",
    sympy="Max(x, y)",
)
minimum = elementwise(
    "minimum",
    "The smaller of x and y; a tie shares its derivative equally.",
    np.minimum,
    _tie(less),
    arity=2,
    rule="any",
    sympy="Min(x, y)",
)
where = elementwise(
    "where",
    "y where x is true, else z.",
    np.where,
    transpose=_where_transpose,
    arity=3,
    rule="select",
    dtype_operands=(1, 2),
    is_selection=True,
    takes_complex=True,
    takes_float8=True,
)
isnan = elementwise(
    "isnan",
    "True where x is not a number.",
    np.isnan,
    (None,),
    rule="predicate",
    takes_complex=True,
)
isinf = elementwise(
    "isinf", "True where x is infinite.", np.isinf, (None,), rule="predicate", takes_complex=True
)
isfinite = elementwise("isfinite", "True where x is finite.", np.isfinite,
                       (None,), rule="predicate", takes_complex=True)  # fmt: skip


def _weight_derivative(out: Any, x: Any, y: Any) -> Tensor:
    """Return y, and 0 where y is infinite and its weight x is 0."""
    return where.apply(logical_and.apply(equal.apply(x, 0), isinf.apply(y)), 0, y)


# A primitive, because its derivative in y is just the weight; that of a `where` would read y.
weighted_product = elementwise(
    "weighted_product",
    "x * y, and 0 where x is 0 and y infinite or NaN.",
    lambda x, y: np.where(x == 0, np.zeros_like(x), x * y),
    (_weight_derivative, lambda out, x, y: x),
    arity=2,
    rule="float",
    sympy="x * y",
)

# Rounding ---------------------------------------------------------------------------------------

floor: Unary = elementwise(
    "floor",
    "The largest integer not above x.",
    _rounding(np.floor),
    (None,),
    ufunc="floor",
)
ceil = elementwise(
    "ceil", "The smallest integer not below x.", _rounding(np.ceil), (None,), ufunc="ceil"
)
round = elementwise(
    "round", "The nearest integer, halves to even.", _rounding(np.rint), (None,), ufunc="rint"
)
trunc = elementwise("trunc", "The integer part of x.", _rounding(np.trunc), (None,), ufunc="trunc")

# Primitives with attributes ---------------------------------------------------------------------


class CastAttributes(NamedTuple):
    """The dtype of the result; it is ``weak`` if other operands may change it."""

    dtype: DTypeName
    weak: Flag


class StopGradientAttributes(NamedTuple):
    """True: the derivative stops at the value."""

    stopped: Flag


class CopyAttributes(NamedTuple):
    """The order of axes in memory, None for that of the argument; ``number`` tells copies apart."""

    layout: Layout
    number: Count


def _cast_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    source = op.args[0].dtype
    if not (is_continuous(source) and is_continuous(op.dtype)):
        return None
    if kind(source) == "f" and kind(g.dtype) == "c":
        g = LATE_BOUND["real"](g)  # the derivative in a real number is real
    return cast(g, source)


def _cast_reference(op: Op, x: Array) -> Array:
    if kind(op.dtype) == "i" and kind(x.dtype) == "f":
        # Out-of-range casts are undefined in C; every target clamps them, and maps NaN to 0.
        info = np.iinfo(op.dtype)
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
        inside = np.where((wide > info.min) & (wide < float(info.max)), wide, 0).astype(op.dtype)
        high = np.where(wide >= float(info.max), info.max, inside).astype(op.dtype)
        return np.where(wide <= info.min, info.min, high).astype(op.dtype)
    return rounded(x, op.dtype)


def _cast_infer(args: tuple[Any, ...], attrs: CastAttributes) -> Inferred:
    source, target = args[0], named_dtype(attrs.dtype)
    if kind(source.dtype) == "c" and kind(target) != "c":
        raise DTypeError(
            f"{source} {source.dtype.name} (made at {source.line_info}) is complex and cannot be "
            f"{target.name}; take its geon.real, geon.imag or geon.absolute"
        )
    return source.axes, target, ()


def infer_same(args: tuple[Any, ...], attrs: Any) -> Inferred:
    """Return the axes and dtype of the only argument, for primitives that change neither."""
    return args[0].axes, args[0].dtype, ()


CAST = Primitive(
    "cast",
    "elementwise",
    "x in another dtype; floats are truncated to integers, and held at the ends of the range.",
    reference=_cast_reference,
    transpose=_cast_transpose,
    attributes=CastAttributes,
    arity=1,
    infer=_cast_infer,
    takes_complex=True,
    takes_float8=True,
)
STOP_GRADIENT = Primitive(
    "stop_gradient",
    "elementwise",
    "x itself, whose derivative is zero.",
    reference=lambda op, x: x,
    partials=(None,),
    attributes=StopGradientAttributes,
    arity=1,
    infer=infer_same,
    is_selection=True,
    takes_complex=True,
    takes_float8=True,
)
COPY = Primitive(
    "copy",
    "elementwise",
    "x in memory of its own; the scheduler inserts it where a value must be materialised.",
    reference=lambda op, x: x.copy(),
    transpose=lambda g, op, i: g,
    attributes=CopyAttributes,
    arity=1,
    infer=infer_same,
    is_selection=True,
    takes_complex=True,
    takes_float8=True,
)


@public
def cast(x: TensorLike, dtype: DTypeLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` in ``dtype``.

    Floats become integers by truncation; values out of range become the nearest bound and NaN
    becomes 0. Axes are those of ``x``.
    """
    source, target = as_tensor(x), as_dtype(dtype)
    if source.dtype is target and not source.weak:
        return source
    if kind(source.dtype) == "c" and kind(target) != "c":
        raise DTypeError(
            f"{user_call('cast')}: {source} (made at {source.line_info}) is complex and cannot be "
            f"{target.name}; take its geon.real, geon.imag or geon.absolute"
        )
    if source.weak and kind(target) in "fc":
        with suppress(DTypeError):  # the number is too large; the cast below gives infinity
            return strengthen(source, target)
    return make(CAST, (source,), (target.name, False), weak=False)


@public
def stop_gradient(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` as a constant for derivatives."""
    x = as_tensor(x)
    return make(STOP_GRADIENT, (x,), (True,))


def copy(
    x: Op, layout: tuple[str, ...] | None = None, number: int = 0, site: Site | None = None
) -> Tensor:
    """Return a copy of ``x`` in its own memory, axes in the order ``layout``, outermost first."""
    return make(COPY, (x,), (layout, number), weak=False, site=site)
