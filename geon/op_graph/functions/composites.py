"""Statistics, norms, the softmax family and activations, as composites of primitives.

A composite has no derivative rule and no code for any target. If the result is a float, integers
and bool are converted to float32 before they are added up; float16 and bfloat16 accumulate in
float32, and are rounded at the end.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes, Axis, new_axis
from ..building.constants import as_tensor, scalar_value
from ..building.elementwise_build import Elementwise
from ..building.resolve_axes import refuse_present
from ..building.weak import in_dtype
from ..core.argument_hints import public
from ..core.source_info import current, user_call
from ..op_graph import ComputationOp, Tensor, make
from ..rows import reductions
from ..rows.accumulation import floating, widen
from ..rows.complex_numbers import imag, real
from ..rows.elementwise import (
    absolute,
    add,
    cast,
    divide,
    equal,
    exp,
    expm1,
    greater,
    isfinite,
    log,
    maximum,
    minimum,
    multiply,
    power,
    sqrt,
    square,
    stop_gradient,
    subtract,
    weighted_product,
    where,
)
from ..rows.indexing import CHECKED, held_by_int64
from ..rows.leaves import iota
from ..rows.movement import reorder
from ..rows.reductions import SUM, reduce, reduced_names, tensor_size
from ..special import activations
from ..values.dtypes import FLOAT64, INT64, kind, real_dtype, sum_dtype

if TYPE_CHECKING:
    from ..building.typing import AxesLike, DTypeLike, Named, OpKeywords, TensorLike

F = TypeVar("F", bound=Callable[..., Any])


def composite(function: F) -> F:
    """Return a public function whose results messages call by its name, not by their last op's."""
    name = function.__name__
    build = public(function)

    @functools.wraps(build)
    def call(*args: Any, **keywords: Any) -> Any:
        result = build(*args, **keywords)
        if isinstance(result, ComputationOp) and current.own is None:
            if not any(result is each for each in (*args, *keywords.values())):
                result.notes().called = name
        return result

    return call  # type: ignore[return-value]  # the same signature


def weighted(weight: TensorLike, x: TensorLike) -> Tensor:
    """Return ``weight * x``, which is 0 where ``weight`` is 0, also for an infinite or NaN ``x``.

    The derivative in ``x`` is 0 there; that in ``weight`` is ``x``, and 0 where ``x`` is infinite.
    """
    x = as_tensor(x, near=weight)
    weight = as_tensor(weight, near=x)
    row = multiply if scalar_value(weight) else weighted_product
    return row.apply(weight, x)


# Statistics -------------------------------------------------------------------------------------


@composite
def mean(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the mean over ``reduction_axes``, or over all but ``out_axes``, or over all.

    Integers and bool give float32. The mean of no elements is NaN.
    """
    x = floating(as_tensor(x))
    total = reduce(SUM, widen(x), reduction_axes, out_axes, what="mean")
    result = total / tensor_size(x, reduction_axes, out_axes=out_axes)
    return in_dtype(result, x.dtype)


@composite
def variance(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    correction: int = 0,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the variance over ``reduction_axes``, or over all but ``out_axes``, or over all.

    It is the mean of squared differences from the mean, in two passes. The sum is divided by the
    number of elements less ``correction`` (0: of a population, 1: estimated from a sample); the
    result is NaN or infinite if that is 0 or less. Integers and bool give float32. For complex
    numbers it is the mean of squared distances from the mean, which is real.
    """
    x = floating(as_tensor(x))
    result = _variance(x, "variance", reduction_axes, out_axes, correction)
    return in_dtype(result, real_dtype(x.dtype))


@composite
def std(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    correction: int = 0,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the standard deviation: the square root of ``variance``, with the same arguments.

    Its derivative is 0 where all elements are equal.
    """
    x = floating(as_tensor(x))
    result = _root(_variance(x, "std", reduction_axes, out_axes, correction))
    return in_dtype(result, real_dtype(x.dtype))


def _variance(x: Tensor, what: str, reduction_axes: Any, out_axes: Any, correction: int) -> Tensor:
    axes = x.axes.only(reduced_names(x, what, reduction_axes, out_axes))
    wide = widen(x)
    distance = subtract.apply(wide, mean(wide, axes))
    total = reductions.sum(_squared(distance), reduction_axes, out_axes=out_axes)
    size = tensor_size(x, axes)
    return total / (maximum(size - correction, 0) if correction else size)


def _squared(x: Tensor) -> Tensor:
    """Return the squares of real numbers, or of the moduli of complex ones."""
    return square(real(x)) + square(imag(x)) if kind(x.dtype) == "c" else square(x)


def _root(squares: Tensor) -> Tensor:
    """Return the square root of a sum of squares, with derivative 0 where that is 0."""
    zero = equal(squares, 0)
    return where(zero, 0, sqrt(where(zero, 1, squares)))


@composite
def squared_L2(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the sum of squares over ``reduction_axes``, all but ``out_axes``, or all axes.

    bool and small integers give int64. As in ``sum``, integers wrap around and floats become
    infinite if the result does not fit; ``L2_norm`` avoids both.
    """
    x = as_tensor(x)
    result = reduce(SUM, _squared(widen(x)), reduction_axes, out_axes, what="squared_L2")
    return in_dtype(result, sum_dtype(real_dtype(x.dtype)))


@composite
def L2_norm(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the square root of ``squared_L2``, with the same arguments.

    Elements are scaled before they are squared, so that no square overflows or vanishes. Integers
    and bool give float32. Its derivative is 0 where all elements are 0.
    """
    x = floating(as_tensor(x))
    parts = [real(x), imag(x)] if kind(x.dtype) == "c" else [x]
    result = wide_norm(parts, "L2_norm", reduction_axes, out_axes)
    return in_dtype(result, real_dtype(x.dtype))


# Exponents of two for float64. If the sum of absolute values is below 2**MEDIUM_LIMITS[0], elements
# are multiplied by 2**SCALE before they are squared; if it is above 2**MEDIUM_LIMITS[1], by
# 2**-SCALE. Then squares of normal numbers do not vanish, their sum is in range if the norm is, and
# so are the factors of the derivative, for up to 2**27 elements.
UNSCALED_EXPONENTS = (-200, 500)
SCALE_EXPONENT = 560


def wide_norm(
    xs: Sequence[Tensor], what: str, reduction_axes: Any = None, out_axes: Any = None
) -> Tensor:
    """Return the joint L2 norm of tensors of float dtypes, in float64.

    float64 holds the squares of all other dtypes. Its own elements are scaled by powers of two,
    which are exact, as in nrm2 of E. Anderson, "Algorithm 978: safe scaling in the level 1 BLAS",
    2017, with one scale for all.
    """
    wide = [in_dtype(x, FLOAT64) for x in xs]

    def total(terms: Iterable[Tensor]) -> Tensor:
        return functools.reduce(
            add, [reduce(SUM, x, reduction_axes, out_axes, what=what) for x in terms]
        )

    if all(x.dtype is not FLOAT64 for x in xs):
        return _root(total(square(x) for x in wide))
    low, high = UNSCALED_EXPONENTS
    down, up = 2.0**-SCALE_EXPONENT, 2.0**SCALE_EXPONENT
    size = stop_gradient(total(absolute(x) * down for x in wide))
    scale = where(size > down * 2.0**high, down, where(size < down * 2.0**low, up, 1))
    return _root(total(square(x * scale) for x in wide)) / scale


@composite
def renorm(
    x: TensorLike,
    axes: AxesLike,
    limit: TensorLike,
    *,
    order: float = 2,
    **notes: Unpack[Named],
) -> Tensor:
    """Return ``x`` with each part over ``axes`` scaled down to a norm of at most ``limit``.

    The norm is the sum of the absolute values to the power ``order``, at least 1, to its inverse;
    ``math.inf`` is the largest absolute value. Parts of a smaller norm stay as they are. Integers
    and bool give float32. Raises ``ArgumentError`` for an ``order`` below 1.
    """
    x = floating(as_tensor(x))
    if not (isinstance(order, Real) and order >= 1):
        raise ArgumentError(
            f"{user_call('renorm')}: order={order!r} is below 1 or no number, and has no norm; "
            "give 1, 2, or math.inf"
        )
    wide = widen(x)
    if order == 2:
        size = in_dtype(wide_norm([wide], "renorm", axes), wide.dtype)
    elif order == math.inf:
        size = reductions.max(absolute(wide), axes)
    else:
        # Without the inner `where` the derivative of the root at 0 would be infinite.
        total = reductions.sum(power(absolute(wide), order), axes)
        none = equal(total, 0)
        size = where(none, 0, power(where(none, 1, total), 1 / order))
    is_larger = greater(size, limit)
    scale = where(is_larger, divide(limit, where(is_larger, size, 1)), 1)
    return in_dtype(multiply(wide, scale), x.dtype)


# The softmax family -----------------------------------------------------------------------------


@composite
def logsumexp(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return log(sum(exp(x))) over ``reduction_axes``, or all but ``out_axes``, without overflow.

    It is -inf where all elements are -inf, and the derivative is 0 there: a fully masked row needs
    no guard. Integers and bool give float32. Raises ``AxisError`` for axes of length 0.
    """
    x = floating(as_tensor(x))
    axes = _some_elements(x, "logsumexp", reduced_names(x, "logsumexp", reduction_axes, out_axes))
    wide = widen(x)
    largest = stop_gradient(reductions.max(wide, axes))
    shift = where(isfinite(largest), largest, 0)
    total = reductions.sum(exp(subtract.apply(wide, shift)), axes)
    # Without the inner `where` the derivative for a row of -inf would be 0 times an infinity.
    none = equal(total, 0)
    result = where(none, -math.inf, log(where(none, 1, total)) + shift)
    if out_axes is not None:
        result = reorder(result, out_axes)
    return in_dtype(result, x.dtype)


@composite
def softmax(
    x: TensorLike, normalization_axes: AxesLike | None = None, **notes: Unpack[Named]
) -> Tensor:
    """Return exp(x) / sum(exp(x)), summed over ``normalization_axes``, without overflow.

    The axes may be left out if ``x`` has one axis. The result has the axes of ``x``; integers and
    bool give float32. ``log`` of the result is exact for all arguments. Where all elements over
    ``normalization_axes`` are -inf, the result and its derivative are NaN. Raises ``AxisError`` if
    the axes are left out and ``x`` has not exactly one.
    """
    x = floating(as_tensor(x))
    axes = _normalized(x, "softmax", normalization_axes)
    # In this form the rewrite rule for log(exp(z) / s) makes its logarithm stable.
    powers = exp(_shifted(widen(x), axes))
    return in_dtype(powers / reductions.sum(powers, axes), x.dtype)


@composite
def log_softmax(
    x: TensorLike, normalization_axes: AxesLike | None = None, **notes: Unpack[Named]
) -> Tensor:
    """Return the logarithm of ``softmax``, with the same arguments."""
    x = floating(as_tensor(x))
    axes = _normalized(x, "log_softmax", normalization_axes)
    shifted = _shifted(widen(x), axes)
    return in_dtype(shifted - log(reductions.sum(exp(shifted), axes)), x.dtype)


def _shifted(x: Tensor, axes: Axes) -> Tensor:
    # The result does not depend on the subtracted value, so no derivative passes through it.
    return subtract.apply(x, stop_gradient(reductions.max(x, axes)))


def _normalized(x: Tensor, what: str, normalization_axes: Any) -> Axes:
    if normalization_axes is None and len(x.axes) != 1:
        example = x.axes.names[-1] if len(x.axes) else "..."
        raise AxisError(
            f"{what} of {x} (made at {x.line_info}), which has {len(x.axes)} axes: say what to "
            f"normalise over, for example geon.{what}(x, normalization_axes={example})"
        )
    return _some_elements(x, what, reduced_names(x, what, normalization_axes, None))


def _some_elements(x: Tensor, what: str, names: tuple[str, ...]) -> Axes:
    """Return the axes of these names; raise ``AxisError`` if one is empty.

    ``what`` is the function's name in the message.
    """
    axes = x.axes.only(names)
    if any(axis.expression == 0 for axis in axes):
        raise AxisError(
            f"{what} over {', '.join(names)} of {x} (made at {x.line_info}) has no value for 0 "
            "elements; give the axis at least one element"
        )
    return axes


# Activations ------------------------------------------------------------------------------------


@public
def clip(
    x: TensorLike,
    low: TensorLike | None = None,
    high: TensorLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return ``x`` clamped to ``low`` and ``high``, numbers or tensors; None means no bound.

    ``high`` wins where the bounds cross; NaN stays. At a bound the derivative is shared equally
    between ``x`` and the bound, as for ``maximum``.
    """
    result = as_tensor(x)
    if low is not None:
        result = maximum(result, low)
    if high is not None:
        result = minimum(result, high)
    return result


@public
def relu(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return 0 where x <= 0, else x; its derivative at 0 is 0, and NaN stays."""
    x = as_tensor(x)
    return where(x <= 0, 0, x)


@composite
def leaky_relu(x: TensorLike, slope: TensorLike = 0.01, **notes: Unpack[Named]) -> Tensor:
    """Return slope * x where x <= 0, else x; its derivative at 0 is ``slope``."""
    x = as_tensor(x)
    return where(x <= 0, slope * x, x)


@composite
def elu(x: TensorLike, alpha: TensorLike = 1.0, **notes: Unpack[Named]) -> Tensor:
    """Return alpha * (exp(x) - 1) where x <= 0, else x; its derivative at 0 is ``alpha``.

    D.-A. Clevert, T. Unterthiner and S. Hochreiter, "Fast and accurate deep network learning by
    exponential linear units (ELUs)", ICLR 2016.
    """
    x = as_tensor(x)
    low = x <= 0
    # Without the inner `where` the derivative for a large x would be 0 times an infinity.
    return where(low, alpha * expm1(where(low, x, 0)), x)


@public
def gelu(x: TensorLike, *, approximate: str = "none", **notes: Unpack[OpKeywords]) -> Tensor:
    """Return x times the standard normal distribution function of x.

    ``approximate="tanh"`` is x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2. Both forms are from
    D. Hendrycks and K. Gimpel, "Gaussian error linear units (GELUs)", 2016. Raises
    ``ArgumentError`` for another ``approximate``.
    """
    if approximate == "none":
        result = activations.gelu(x)
    elif approximate == "tanh":
        result = activations.gelu_tanh(x)
    else:
        x = as_tensor(x)
        raise ArgumentError(
            f"gelu of {x} (made at {x.line_info}): there is no approximate={approximate!r}; "
            "give 'none', the exact form, or 'tanh'"
        )
    return result


@public
def silu(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return x * sigmoid(x)."""
    return activations.silu(x)


# Combinations -----------------------------------------------------------------------------------


@public
def onehot(
    x: TensorLike,
    axis: Axis,
    dtype: DTypeLike = "float32",
    *,
    checked: bool = False,
    **notes: Unpack[Named],
) -> Tensor:
    """Return 1 along a new ``axis`` at the index given by the integers ``x``, and 0 elsewhere.

    The result has the axes of ``x``, then ``axis``. An index out of range, also a negative one,
    gives only zeros; with ``checked`` it raises ``IndexRangeError`` when it is computed. Raises
    ``DTypeError`` for a float ``x`` and ``AxisError`` if ``x`` already has ``axis``.
    """
    x, axis = as_tensor(x), new_axis(axis, "onehot")
    if kind(x.dtype) == "f":
        raise DTypeError(
            f"onehot: {x} (made at {x.line_info}) is {x.dtype.name}, not an integer dtype; "
            "geon.cast it"
        )
    refuse_present(x, axis, "onehot", "geon.rename it")
    places = (
        make(CHECKED, (held_by_int64(x),), (axis.expression, False, None, "")) if checked else x
    )
    return cast(equal.apply(cast(places, INT64), iota(axis)), dtype)


@public
def outer(op: Elementwise, *operands: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Apply an elementwise ``op`` to every combination of elements of the operands.

    ``geon.outer(geon.multiply, x, y)`` has x's axes, then y's further ones; shared axes are
    matched, as always. Unlike ``op`` itself it takes tensors that share no axis. Raises
    ``ArgumentError`` for an ``op`` that is not elementwise or takes another number of operands.
    """
    if not isinstance(op, Elementwise):
        raise ArgumentError(
            f"outer: {getattr(op, '__name__', repr(op))} is no elementwise op; write "
            "geon.outer(geon.multiply, x, y)"
        )
    if len(operands) != op.arity:
        raise ArgumentError(f"outer: {op.name} takes {op.arity} operands, not {len(operands)}")
    return op.apply(*operands)


@public
def interpolation(
    x: TensorLike, y: TensorLike, weight: TensorLike, **notes: Unpack[Named]
) -> Tensor:
    """Return the linear interpolation (1 - weight) * x + weight * y.

    It is x where ``weight`` is 0 and y where it is 1, even if the other one is infinite. Outside of
    0 to 1 it extrapolates. ``weight`` is a number or a tensor, for example one over the batch axis.
    """
    weight = as_tensor(weight, near=x)
    return weighted(1 - weight, x) + weighted(weight, y)
