"""Cumulative sums and products, sorting, argsort and top-k along one axis."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError
from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.resolve_axes import axis_of, has_axes
from ..building.weak import exact, in_dtype
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..syntax.operators import LATE_BOUND
from ..values.attribute_types import AlongAxis, Count, Flag, Name
from ..values.dtypes import INT64, accumulator, sum_dtype
from .accumulation import round_total, widen
from .elementwise import infer_same, multiply
from .indexing import gather
from .movement import flip

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class RunningAttributes(NamedTuple):
    """The axis of a running sum or product; ``exclusive`` leaves each element itself out.

    ``reverse`` runs from the end of the axis.
    """

    axis: Name
    exclusive: Flag
    reverse: Flag


class TopKAttributes(NamedTuple):
    """The axis of a search for the largest elements, and their number ``k``."""

    axis: Name
    k: Count


def _cumulative(ufunc: np.ufunc) -> Any:
    def evaluate(op: Op, x: Array) -> Array:
        a: RunningAttributes = op.attrs
        position = op.axes.index(a.axis)
        moved = np.moveaxis(x.astype(accumulator(op.dtype)), position, 0)
        moved = moved[::-1] if a.reverse else moved
        total = ufunc.accumulate(moved, axis=0)
        if a.exclusive:
            identity = np.full_like(moved[:1], ufunc.identity)
            total = np.concatenate([identity, total[:-1]])[: len(moved)]
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
    made = LATE_BOUND["linear_recurrence"](
        widen(x), shift, axis, exclusive=a.exclusive, reverse=a.reverse
    )
    return round_total(made, op.dtype)


def _sort_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    x: Any = op.args[0]
    axis = op.axes[op.attrs.axis]
    return gather(t, argsort(x, axis), axis)


def _top_k_reference(op: Op, x: Array) -> Array:
    a: TopKAttributes = op.attrs
    position = op.axes.index(a.axis)
    # Stable and descending: sort the reversed array ascending, then reverse.
    backwards = np.argsort(np.flip(x, position), axis=position, kind="stable")
    order = x.shape[position] - 1 - np.flip(backwards, position)
    return np.take(order, np.arange(a.k), axis=position)


def _along(args: tuple[Any, ...], attrs: AlongAxis | RunningAttributes) -> Inferred:
    has_axes(args[0], (attrs.axis,), "ordered work")
    return infer_same(args, attrs)


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
    reference=_cumulative(np.add),
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
    reference=_cumulative(np.multiply),
    linearise=_cumprod_linearise,
    attributes=RunningAttributes,
    arity=1,
    infer=_along,
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
    carriers=(),
    cost="kernel",
)
TOP_K = Primitive(
    "top_k",
    "ordered",
    "The positions of the k largest elements along an axis, largest first, NaN above all.",
    reference=_top_k_reference,
    attributes=TopKAttributes,
    arity=1,
    infer=_top_k_infer,
    carriers=(),
    cost="kernel",
)


def _running(row: Primitive, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    x = as_tensor(x)
    along = axis_of(x, axis, row.name)
    x = in_dtype(x, sum_dtype(x.dtype))
    made: Tensor = make(row, (x,), (along.name, bool(exclusive), bool(reverse)))
    return made


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
    made: Tensor = make(SORT, (x,), (along.name,))
    return flip(made, along) if descending else made


@public
def argsort(x: TensorLike, axis: AxisLike | None = None, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the int64 indices that sort ``x`` in ascending order along ``axis``; stable."""
    x = as_tensor(x)
    along = axis_of(x, axis, "argsort")
    made: Tensor = make(ARGSORT, (exact(x),), (along.name,))
    return made


def _count(x: Tensor, k: Any, along: Axis) -> int:
    """Return ``k`` as an integer; raise ``AxisError`` if it is no number of elements."""
    try:
        count = -1 if isinstance(k, (bool, np.bool_)) else index(k)
    except TypeError:
        count = -1
    if count < 0:
        raise AxisError(
            f"{user_call('top_k')}: axis {along} of {x} (made at {x.line_info}) has no {k} largest "
            "elements; give a k that is an integer of at least 0"
        )
    return count


@public
def top_k(x: TensorLike, k: int, axis: AxisLike | None = None) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest elements along ``axis``, largest first, and their int64 indices.

    NaN counts as larger than all numbers; equal elements keep their order. The axis keeps its name
    with length ``k``. Raises ``AxisError`` if there are fewer than ``k``.
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "top_k")
    k = _count(x, k, along)
    positions: Tensor = make(TOP_K, (exact(x),), (along.name, k))
    return gather(x, positions, along), positions
