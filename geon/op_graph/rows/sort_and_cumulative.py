"""Running sums, products and extremes, sorting, argsort and top-k along one axis."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError
from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..building.constants import as_tensor, number
from ..building.resolve_axes import axis_of, has_axes
from ..building.weak import exact, in_dtype
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..syntax.operators import LATE_BOUND
from ..values.attribute_types import AlongAxis, Count, Flag, Name
from ..values.dtypes import BOOL, INT64, DType, accumulator, kind, named_dtype, sum_dtype
from .accumulation import round_total, widen
from .elementwise import (
    add,
    cast,
    equal,
    greater,
    infer_same,
    isnan,
    maximum,
    minimum,
    multiply,
    not_equal,
    subtract,
    where,
)
from .indexing import gather
from .leaves import iota, length_value
from .logic import logical_and, logical_not
from .movement import flip
from .reducers import highest, lowest

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]
INT8 = named_dtype("int8")


class RunningAttributes(NamedTuple):
    """The axis of a running combination; ``exclusive`` leaves each element itself out.

    ``reverse`` runs from the end of the axis.
    """

    axis: Name
    exclusive: Flag
    reverse: Flag


class TopKAttributes(NamedTuple):
    """The axis of a search for the ``k`` largest elements, or smallest if not ``largest``."""

    axis: Name
    k: Count
    largest: Flag


class PrefixOperation(NamedTuple):
    """The operation of a running row: an elementwise primitive and its identity.

    ``ufunc`` is the primitive's function in NumPy. ``identity(dtype)`` changes nothing when it is
    combined. ``reorders`` is true if floats may be combined in any order.
    """

    step: Primitive
    ufunc: np.ufunc
    identity: Callable[[DType], Any]
    reorders: bool = True


# By the name of the row. The targets read how to combine from here. Parts of sums are added in
# a wider dtype, so their order matters little; a part of a product may overflow alone.
RUNNING = {
    "cumsum": PrefixOperation(add, np.add, lambda dtype: 0),
    "cumprod": PrefixOperation(multiply, np.multiply, lambda dtype: 1, reorders=False),
    "cummax": PrefixOperation(maximum, np.maximum, lowest),
    "cummin": PrefixOperation(minimum, np.minimum, highest),
}


def _cumulative(name: str) -> Any:
    ufunc = RUNNING[name].ufunc

    def evaluate(op: Op, x: Array) -> Array:
        a: RunningAttributes = op.attrs
        position = op.axes.index(a.axis)
        arranged = np.moveaxis(x.astype(accumulator(op.dtype)), position, 0)
        arranged = arranged[::-1] if a.reverse else arranged
        total = ufunc.accumulate(arranged, axis=0)
        if a.exclusive:
            identity = np.full_like(arranged[:1], RUNNING[name].identity(op.dtype))
            total = np.concatenate([identity, total[:-1]])[: len(arranged)]
        return np.moveaxis(total[::-1] if a.reverse else total, 0, position)

    return evaluate


def _cumsum_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    a: RunningAttributes = op.attrs
    return cumsum(g, g.axes[a.axis], exclusive=a.exclusive, reverse=not a.reverse)


def _cumprod_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # The product rule as a loop without divisions, which is correct for factors of 0:
    # out[k + 1] = out[k] x[k], hence out'[k + 1] = out'[k] x[k] + out[k] t[k].
    a: RunningAttributes = op.attrs
    x: Any = op.args[0]
    axis = x.axes[a.axis]
    before = cumprod(widen(x), axis, exclusive=True, reverse=a.reverse)
    shift = multiply.apply(before, widen(t))
    result = LATE_BOUND["linear_recurrence"](
        widen(x), shift, axis, exclusive=a.exclusive, reverse=a.reverse
    )
    return round_total(result, op.dtype)


def _cumulative_extreme_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    a: RunningAttributes = op.attrs
    axis = op.axes[a.axis]
    tangent = gather(t, _extreme_positions(op.args[0], op.primitive, axis, a.reverse), axis)
    if not a.exclusive:
        return tangent
    # The derivative of the element before; that of the first, which has none before it, is 0.
    at, last = iota(axis), length_value(axis.expression) - 1
    before = add.apply(at, 1) if a.reverse else subtract.apply(at, 1)
    is_first = equal.apply(at, last if a.reverse else 0)
    shifted = gather(tangent, cast(where.apply(is_first, at, before), INT64), axis)
    return where.apply(is_first, number(0, t.dtype), shifted)


def _extreme_positions(x: Any, row: Primitive, axis: Axis, reverse: bool) -> Tensor:
    """Return the position of the running extreme of each element: of equal ones the first."""
    best = make(row, (x,), (axis.name, False, reverse))
    before = make(row, (x,), (axis.name, True, reverse))
    is_new = not_equal.apply(best, before)
    if kind(x.dtype) == "f":  # NaN stays the extreme from the first one on
        is_new = logical_and.apply(is_new, logical_not.apply(isnan.apply(before)))
    at = iota(axis)
    first = length_value(axis.expression) - 1 if reverse else 0
    positions = cast(where.apply(is_new, at, first), INT64)
    return make(CUMMIN if reverse else CUMMAX, (positions,), (axis.name, False, reverse))


def _sort_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    x: Any = op.args[0]
    axis = op.axes[op.attrs.axis]
    return gather(t, argsort(x, axis), axis)


def _top_k_reference(op: Op, x: Array) -> Array:
    a: TopKAttributes = op.attrs
    position = op.axes.index(a.axis)
    if not a.largest:
        order = np.argsort(x, axis=position, kind="stable")
        return np.take(order, np.arange(a.k), axis=position)
    # Stable and descending: sort the reversed array ascending, then reverse.
    backwards = np.argsort(np.flip(x, position), axis=position, kind="stable")
    order = x.shape[position] - 1 - np.flip(backwards, position)
    return np.take(order, np.arange(a.k), axis=position)


def _along(args: tuple[Any, ...], attrs: AlongAxis | RunningAttributes) -> Inferred:
    has_axes(args[0], (attrs.axis,), "ordered work")
    return infer_same(args, attrs)


def _extreme_infer(args: tuple[Any, ...], attrs: RunningAttributes) -> Inferred:
    require(args[0].dtype is not BOOL, "a running extreme of {}", args[0].dtype)
    return _along(args, attrs)


def _argsort_infer(args: tuple[Any, ...], attrs: AlongAxis) -> Inferred:
    return _along(args, attrs)[0], INT64, ()


def _top_k_infer(args: tuple[Any, ...], attrs: TopKAttributes) -> Inferred:
    x, k = args[0], attrs.k
    has_axes(x, (attrs.axis,), "top_k")
    along = x.axes[attrs.axis]
    meaning = (
        f"top_k: axis {along} of {x} (made at {x.line_info}) has fewer than k = {k} elements; "
        "give a k of at most its length"
    )
    guards: tuple[Guard, ...] = ()
    if isinstance(along.expression, Length):
        guards = (Guard("<=", k, along.expression, meaning),)
    elif k > along.expression:
        raise AxisError(meaning)
    axes = [a.with_length(k) if a is along else a for a in x.axes]
    return Axes(axes), INT64, guards


CUMSUM = Primitive(
    "cumsum",
    "ordered",
    "The running sum along an axis.",
    reference=_cumulative("cumsum"),
    transpose=_cumsum_transpose,
    attributes=RunningAttributes,
    arity=1,
    infer=_along,
    cost="kernel",
    takes_complex=True,
)
CUMPROD = Primitive(
    "cumprod",
    "ordered",
    "The running product along an axis; its derivative is right where factors are 0.",
    reference=_cumulative("cumprod"),
    linearise=_cumprod_linearise,
    attributes=RunningAttributes,
    arity=1,
    infer=_along,
    cost="kernel",
    takes_complex=True,
)
CUMMAX = Primitive(
    "cummax",
    "ordered",
    "The running maximum along an axis; NaN stays. Its derivative is that of the first of ties.",
    reference=_cumulative("cummax"),
    linearise=_cumulative_extreme_linearise,
    attributes=RunningAttributes,
    arity=1,
    infer=_extreme_infer,
    cost="kernel",
)
CUMMIN = Primitive(
    "cummin",
    "ordered",
    "The running minimum along an axis; NaN stays. Its derivative is that of the first of ties.",
    reference=_cumulative("cummin"),
    linearise=_cumulative_extreme_linearise,
    attributes=RunningAttributes,
    arity=1,
    infer=_extreme_infer,
    cost="kernel",
)
SORT = Primitive(
    "sort",
    "ordered",
    "x in ascending order along an axis, NaN last.",
    reference=lambda op, x: np.sort(x, axis=op.axes.index(op.attrs.axis), kind="stable"),
    linearise=_sort_linearise,
    attributes=AlongAxis,
    arity=1,
    infer=_along,
    cost="kernel",
    in_place=(0,),
)
ARGSORT = Primitive(
    "argsort",
    "ordered",
    "The positions that sort x in ascending order along an axis; equal elements keep their order.",
    reference=lambda op, x: np.argsort(x, axis=op.axes.index(op.attrs.axis), kind="stable"),
    attributes=AlongAxis,
    arity=1,
    infer=_argsort_infer,
    dtype_operands=(),
    cost="kernel",
)
TOP_K = Primitive(
    "top_k",
    "ordered",
    "The positions of the k largest elements along an axis, largest first, NaN above all; or of "
    "the k smallest ones, smallest first.",
    reference=_top_k_reference,
    attributes=TopKAttributes,
    arity=1,
    infer=_top_k_infer,
    dtype_operands=(),
    cost="kernel",
)


def _running(row: Primitive, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    x = as_tensor(x)
    along = axis_of(x, axis, row.name)
    x = in_dtype(x, sum_dtype(x.dtype))
    return make(row, (x,), (along.name, bool(exclusive), bool(reverse)))


@public
def cumsum(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the running sum of ``x`` along ``axis``: element i is the sum of those up to i.

    ``exclusive`` leaves element i itself out; ``reverse`` runs from the end. bool and small
    integers give int64.
    """
    return _running(CUMSUM, x, axis, exclusive, reverse)


@public
def cumprod(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the running product of ``x`` along ``axis``, as ``cumsum``.

    Its derivative does not divide, so it is correct where factors are 0. It is a loop along the
    axis with two operations for each element.
    """
    return _running(CUMPROD, x, axis, exclusive, reverse)


def _running_extreme(row: Primitive, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    x = as_tensor(x)
    along = axis_of(x, axis, row.name)
    wide = cast(x, INT8) if x.dtype is BOOL else x
    result = make(row, (wide,), (along.name, bool(exclusive), bool(reverse)))
    return (
        greater.apply(result, 0) if x.dtype is BOOL else result
    )  # as the identities are true or not


@public
def cummax(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the running maximum of ``x`` along ``axis``: element i is the largest one up to i.

    ``exclusive`` leaves element i itself out, so that the first one is the smallest number of the
    dtype, -inf for floats; ``reverse`` runs from the end. NaN is larger than all numbers. The
    derivative of each element goes to the one at its ``argcummax``.
    """
    return _running_extreme(CUMMAX, x, axis, exclusive, reverse)


@public
def cummin(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the running minimum of ``x`` along ``axis``, as ``cummax``; NaN stays here too."""
    return _running_extreme(CUMMIN, x, axis, exclusive, reverse)


@public
def argcummax(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the int64 position of each element of ``cummax`` along ``axis``.

    Of equal elements it is the first on the way, which with ``reverse`` begins at the end.
    """
    return _running_position(CUMMAX, x, axis, reverse)


@public
def argcummin(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    reverse: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the int64 position of each element of ``cummin`` along ``axis``, as ``argcummax``."""
    return _running_position(CUMMIN, x, axis, reverse)


def _running_position(row: Primitive, x: Any, axis: Any, reverse: bool) -> Tensor:
    x = as_tensor(x)
    along = axis_of(x, axis, f"arg{row.name}")
    wide = cast(x, INT8) if x.dtype is BOOL else x
    return _extreme_positions(wide, row, along, bool(reverse))


@public
def sort(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    descending: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` in ascending order along ``axis``, NaN last; reversed if ``descending``."""
    x = as_tensor(x)
    along = axis_of(x, axis, "sort")
    result = make(SORT, (x,), (along.name,))
    return flip(result, along) if descending else result


@public
def argsort(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    descending: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the int64 indices that sort ``x`` in ascending order along ``axis``, NaN last.

    ``descending`` sorts from the largest to the smallest, NaN first. Both are stable: equal
    elements keep their order.
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "argsort")
    given = exact(x)
    if not descending:
        return make(ARGSORT, (given,), (along.name,))
    # The stable order of the reversed elements, reversed.
    order = make(ARGSORT, (flip(given, along),), (along.name,))
    last = cast(length_value(along.expression) - 1, INT64)
    return subtract.apply(last, flip(order, along))


def _count(x: Tensor, k: Any, along: Axis, largest: bool) -> int:
    """Return ``k`` as an integer; raise ``AxisError`` if it is no number of elements."""
    try:
        count = -1 if isinstance(k, (bool, np.bool_)) else index(k)
    except TypeError:
        count = -1
    if count < 0:
        raise AxisError(
            f"{user_call('top_k')}: axis {along} of {x} (made at {x.line_info}) has no {k} "
            f"{'largest' if largest else 'smallest'} elements; "
            "give a k that is an integer of at least 0"
        )
    return count


@public
def top_k(
    x: TensorLike, k: int, axis: AxisLike | None = None, *, largest: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest elements along ``axis``, largest first, and their int64 indices.

    With ``largest=False`` they are the ``k`` smallest elements, smallest first. NaN counts as
    larger than all numbers; equal elements keep their order. The axis keeps its name with length
    ``k``. Raises ``AxisError`` if there are fewer than ``k``.
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "top_k")
    k = _count(x, k, along, bool(largest))
    positions = make(TOP_K, (exact(x),), (along.name, k, bool(largest)))
    return gather(x, positions, along), positions
