"""Reductions over named axes: sum, prod, max, min, any, all, argmax, argmin.

All take ``reduction_axes`` (the axes to reduce) or ``out_axes`` (the axes to keep, in that order);
with neither, all axes are reduced. A reduction over length 0 gives its identity; those without one
(max, min, argmax, argmin) raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError, DTypeError
from ..axes.axes import Axis
from ..axes.lengths import Length, product
from ..building.constants import as_tensor, number
from ..building.resolve_axes import has_axes, named_axes, own_axis
from ..building.weak import exact, in_dtype
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, refuse_float8
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..values.attribute_types import Names
from ..values.dtypes import BOOL, INT32, INT64, DType, accumulator, kind, sum_dtype
from . import reducers
from .accumulation import round_total, widen
from .elementwise import add, cast, equal, multiply, where
from .leaves import iota, length_value
from .movement import broadcast, flatten, reorder
from .sort_and_cumulative import cumprod

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class ReducedAxes(NamedTuple):
    """The names of the axes that a reduction reduces."""

    reduced: Names


def positions(op: Op) -> tuple[int, ...]:
    """Return the positions of the reduced axes among the argument's axes."""
    axes = op.args[0].axes
    return tuple(axes.index(name) for name in op.attrs.reduced)


def _reference(reduce: Callable[..., Any]) -> Callable[..., Array]:
    def evaluate(op: Op, x: Array) -> Array:
        return np.asarray(reduce(x.astype(accumulator(op.dtype)), axis=positions(op)))

    return evaluate


def _index_reference(find: Callable[..., Any]) -> Callable[..., Array]:
    def evaluate(op: Op, x: Array) -> Array:
        reduced = positions(op)
        kept = [p for p in range(x.ndim) if p not in reduced]
        arranged = x.transpose(*kept, *reduced)
        shape = arranged.shape[: len(kept)]
        count = math.prod(arranged.shape[len(kept) :])
        return np.asarray(find(arranged.reshape(*shape, count), axis=-1))

    return evaluate


def _extreme_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    x, names = op.args[0], op.attrs.reduced
    largest: Any = op
    hit = cast(equal.apply(x, broadcast(largest, x.axes)), accumulator(op.dtype))
    count = _reduce(SUM, hit, names)
    share = hit / broadcast(count, x.axes)
    return round_total(_reduce(SUM, multiply.apply(widen(t), share), names), op.dtype)


def _inside_mask(x: Tensor) -> Tensor | None:
    """Return which elements of windows are inside of the axis; None if all are.

    The result is over the axes of the windows and of their positions only.
    """
    rows: list[Op] = []
    inner: Op = x
    while inner.primitive.name in ("window", "padded_windows"):
        rows.append(inner)
        inner = inner.args[0]
    if "padded_windows" not in [row.primitive.name for row in rows]:
        return None
    names = {row.attrs.axis for row in rows}
    ones = broadcast(number(True, BOOL), [axis for axis in inner.axes if axis.name in names])
    outside = (number(False, BOOL),)
    for row in reversed(rows):
        ones = make(row.primitive, (ones, *outside[: len(row.args) - 1]), row.attrs)
    return ones


def _first_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    """Return the tangent of ``first_max``: that of the first largest element, by its index."""
    x: Any = op.args[0]
    names = op.attrs.reduced
    flat_index: Any = 0
    for name in names:
        flat_index = add.apply(
            flat_index * length_value(x.axes[name].expression), iota(x.axes[name])
        )
    count = product(x.axes[name].expression for name in names)
    index_dtype = INT32 if isinstance(count, int) and count < np.iinfo(INT32).max else INT64
    place_found = cast(_reduce(ARGMAX, x, names), index_dtype)
    inside = _inside_mask(x)
    if inside is not None:
        # A window of only -inf ties with its padding; its first element inside gets the derivative.
        largest: Any = op
        first = cast(_reduce(ARGMAX, inside, names), index_dtype)
        place_found = where.apply(equal(largest, -math.inf), first, place_found)
    position = broadcast(place_found, x.axes)
    hit = equal.apply(position, cast(flat_index, index_dtype))
    return _reduce(SUM, where.apply(hit, t, number(0, t.dtype)), names)


def _prod_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # The product of all other factors without dividing by x: prefix times suffix products.
    x: Any = op.args[0]
    names = op.attrs.reduced
    group = x.axes.only(names)
    axis = Axis("_".join(names), group.size)
    while axis in x.axes.without(names):
        axis = axis.prime
    flat, tangent = flatten(widen(x), group, axis), flatten(widen(t), group, axis)
    others = cumprod(flat, axis, exclusive=True) * cumprod(flat, axis, exclusive=True, reverse=True)
    return round_total(_reduce(SUM, multiply.apply(tangent, others), (axis.name,)), op.dtype)


def reducing(what: str, dtype: Callable[[Op], DType], empty: bool = True) -> Any:
    """Return the inference of a reduction; ``dtype`` maps its argument to the result dtype.

    If not ``empty``, the reduction has no value over no elements: it gets a guard, or raises.
    """

    def infer(args: tuple[Any, ...], attrs: ReducedAxes) -> Inferred:
        x, names = args[0], attrs.reduced
        has_axes(x, names, what)
        guards = () if empty else _non_empty(what, x, names)
        return x.axes.without(names), dtype(x), guards

    return infer


def _non_empty(what: str, x: Op, names: tuple[str, ...]) -> tuple[Guard, ...]:
    size: int | Length = product(x.axes[name].expression for name in names)
    if isinstance(size, int) and size:
        return ()
    meaning = (
        f"{what} over {', '.join(names)} of {x} (made at {x.line_info}) has no value for 0 "
        "elements; give the axis at least one element"
    )
    if isinstance(size, Length):
        return (Guard("<=", 1, size, meaning),)
    raise AxisError(meaning)


def own_dtype(x: Op) -> DType:
    """Return the dtype of the argument."""
    return x.dtype


def summed_dtype(x: Op) -> DType:
    """Return the dtype of sums of the argument."""
    return sum_dtype(x.dtype)


def truth_dtype(x: Op) -> DType:
    """Return bool."""
    return BOOL


def place_dtype(x: Op) -> DType:
    """Return the dtype of indices."""
    return INT64


SUM = Primitive(
    "sum",
    "reduction",
    "The sum over axes; bool and small integers accumulate in int64, halves in float32.",
    reference=_reference(np.sum),
    transpose=lambda g, op, i: broadcast(g, op.args[0].axes),
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("sum", summed_dtype),
    reducer=reducers.SUM,
    takes_complex=True,
)
PROD = Primitive(
    "prod",
    "reduction",
    "The product over axes; its derivative is right where factors are 0.",
    reference=_reference(np.prod),
    linearise=_prod_linearise,
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("prod", summed_dtype),
    reducer=reducers.PROD,
    takes_complex=True,
)
MAX = Primitive(
    "max",
    "reduction",
    "The largest element over axes; elements that tie share the derivative equally.",
    reference=lambda op, x: np.max(x, axis=positions(op)),
    linearise=_extreme_linearise,
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("max", own_dtype, empty=False),
    reducer=reducers.MAX,
)
FIRST_MAX = Primitive(
    "first_max",
    "reduction",
    "The largest element over axes; the first of those that tie has the derivative.",
    reference=lambda op, x: np.max(x, axis=positions(op)),
    linearise=_first_linearise,
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("first_max", own_dtype, empty=False),
    reducer=reducers.FIRST_MAX,
)
MIN = Primitive(
    "min",
    "reduction",
    "The smallest element over axes; elements that tie share the derivative equally.",
    reference=lambda op, x: np.min(x, axis=positions(op)),
    linearise=_extreme_linearise,
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("min", own_dtype, empty=False),
    reducer=reducers.MIN,
)
ANY = Primitive(
    "any",
    "reduction",
    "True if any element is true.",
    reference=lambda op, x: np.any(x, axis=positions(op)),
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("any", truth_dtype),
    dtype_operands=(),
    reducer=reducers.ANY,
)
ALL = Primitive(
    "all",
    "reduction",
    "True if all elements are true.",
    reference=lambda op, x: np.all(x, axis=positions(op)),
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("all", truth_dtype),
    dtype_operands=(),
    reducer=reducers.ALL,
)
ARGMAX = Primitive(
    "argmax",
    "reduction",
    "The position of the first largest element, row-major over the reduced axes.",
    reference=_index_reference(np.argmax),
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("argmax", place_dtype, empty=False),
    dtype_operands=(),
    cost="kernel",
    reducer=reducers.ARGMAX,
)
ARGMIN = Primitive(
    "argmin",
    "reduction",
    "The position of the first smallest element, row-major over the reduced axes.",
    reference=_index_reference(np.argmin),
    attributes=ReducedAxes,
    arity=1,
    infer=reducing("argmin", place_dtype, empty=False),
    dtype_operands=(),
    cost="kernel",
    reducer=reducers.ARGMIN,
)


def reduced_names(x: Tensor, what: str, reduction_axes: Any, out_axes: Any) -> tuple[str, ...]:
    """Return the names of the axes to reduce, in the order of ``x.axes``."""
    if reduction_axes is not None and out_axes is not None:
        raise AxisError(f"{what}: give reduction_axes or out_axes, not both")
    given = reduction_axes if reduction_axes is not None else out_axes
    if given is None:
        return x.axes.names
    axes = named_axes(given, what, x)
    for axis in axes:
        own_axis(x, axis, what)
    if out_axes is not None:
        return tuple(name for name in x.axes.names if name not in axes)
    return tuple(name for name in x.axes.names if name in axes)


def _reduce(row: Primitive, x: Tensor, names: tuple[str, ...]) -> Tensor:
    if row in (ARGMAX, ARGMIN):
        x = exact(x)
    elif not names:
        assert row.infer is not None
        return in_dtype(x, row.infer((x,), ReducedAxes(names))[1])
    return make(row, (x,), (names,))


def reduce(
    row: Primitive,
    x: Any,
    reduction_axes: Any = None,
    out_axes: Any = None,
    what: str | None = None,
) -> Tensor:
    """Apply the reduction ``row`` over ``reduction_axes``, or all but ``out_axes``, or all axes.

    ``what`` is the function's name in messages, if it is not that of the primitive.
    """
    x = as_tensor(x)
    if row in (ANY, ALL):
        refuse_float8((x,), what or row.name)
        x = cast(x, BOOL)
    elif row in (MAX, MIN, FIRST_MAX) and kind(x.dtype) == "b":
        raise DTypeError(
            f"{user_call(what or row.name)}: {x} (made at {x.line_info}) is bool; use geon.any or "
            "geon.all"
        )
    result = _reduce(row, x, reduced_names(x, what or row.name, reduction_axes, out_axes))
    if out_axes is not None:
        result = reorder(result, out_axes)
    return result


@public
def sum(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """The sum over ``reduction_axes``, or over all axes but ``out_axes``, or over all.

    bool and small integers give int64; float16 and bfloat16 accumulate in float32. The sum of no
    elements is 0.
    """
    return reduce(SUM, x, reduction_axes, out_axes)


@public
def prod(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the product over ``reduction_axes``, or over all but ``out_axes``; 1 if empty."""
    return reduce(PROD, x, reduction_axes, out_axes)


@public
def max(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the largest element over ``reduction_axes``; NaN if there is one."""
    return reduce(MAX, x, reduction_axes, out_axes)


@public
def min(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the smallest element over ``reduction_axes``; NaN if there is one."""
    return reduce(MIN, x, reduction_axes, out_axes)


@public
def any(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return true where any element is true (not 0); false for no elements."""
    return reduce(ANY, x, reduction_axes, out_axes)


@public
def all(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return true where all elements are true (not 0); true for no elements."""
    return reduce(ALL, x, reduction_axes, out_axes)


@public
def argmax(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the int64 index of the first largest element, row-major over the reduced axes."""
    return reduce(ARGMAX, x, reduction_axes, out_axes)


@public
def argmin(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the int64 index of the first smallest element, row-major over the reduced axes."""
    return reduce(ARGMIN, x, reduction_axes, out_axes)


@public
def tensor_size(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the number of elements of ``x`` over ``reduction_axes``, or all, as a weak integer."""
    x = as_tensor(x)
    names = reduced_names(x, "tensor_size", reduction_axes, out_axes)
    return length_value(product(x.axes[n].expression for n in names))
