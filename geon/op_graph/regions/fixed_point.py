"""``fixed_point``: solves x = f(x); its derivatives are in ``loop_deriv``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, ConvergenceError, DTypeError
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.primitive import PRIMITIVES, Inferred, Primitive, require
from ..core.region_body import Body
from ..core.source_info import user_call
from ..op_graph import NO_AXES, Op, Tensor, make
from ..rows.concatenation import pad
from ..rows.elementwise import absolute, cast, greater, infer_same, isfinite, subtract
from ..rows.leaves import placeholder
from ..rows.logic import logical_and, logical_not, logical_or
from ..rows.movement import align_dimensions
from ..rows.reductions import all as all_of
from ..rows.reductions import any as any_of
from ..rows.reductions import min as smallest_of
from ..syntax.operators import late
from ..values.attribute_types import Count, Flag, is_count
from ..values.dtypes import BOOL, FLOAT32, DType, kind
from ..values.tree import flat
from .carries import Carries, as_scalar, needs_function
from .closure import Opened, like, refuse_effects
from .loop import NO_BODY, Images, check_loop, loop_batch, loop_from
from .parameters import NOTHING, outcome, tensors
from .while_op import make_while

Array = np.ndarray[Any, Any]
# The advice of messages about an assignment inside of the repeated function.
ASSIGN_IT = "f is run as often as it takes; give what comes out to geon.assign({target}, ...)"


# The primitive ------------------------------------------------------------------------------------


class FixedPointAttributes(NamedTuple):
    """The attributes of a fixed point by name.

    The arguments of the op are the initial values, the captures, and the tolerance. ``limit`` is
    the maximum number of steps, ``carries`` the number of values, and ``body`` computes one step.
    ``raises`` is true if the loops of its derivatives must converge.
    """

    limit: Count
    carries: Count
    body: Body
    raises: Flag

    @property
    def captures(self) -> slice:
        """The slice of the arguments that all steps read."""
        return slice(self.carries, -1)


def _infer(args: tuple[Any, ...], a: FixedPointAttributes) -> Inferred:
    tolerance, results = args[-1], a.body.results
    require(len(results) == a.carries, "{} results of {} values", len(results), a.carries)
    inferred = check_loop(args, loop_from(PRIMITIVES["fixed_point"], a))
    require(
        tolerance.axes is NO_AXES and kind(tolerance.dtype) == "f", "a tolerance that is no float"
    )
    for result in results:
        require(kind(result.dtype) == "f", "a value of {}", result.dtype)
    return inferred


def _outcomes(a: FixedPointAttributes) -> list[tuple[Axes, DType]]:
    return [*(outcome(op) for op in a.body.results), (NO_AXES, BOOL)]


def _reference(op: Any, run: Callable[..., list[Array]], *args: Array) -> list[Array]:
    """Return the last values, and a bool: whether an element changed by more than the tolerance."""
    a: FixedPointAttributes = op.attrs
    values, captures, tolerance = list(args[: a.carries]), args[a.captures], args[-1]
    moving = True
    for _ in range(a.limit):
        new = run(a.body, [*values, *captures])
        with np.errstate(all="ignore"):
            changes = [
                one.astype(tolerance.dtype) - other.astype(tolerance.dtype)
                for one, other in zip(new, values, strict=True)
            ]
            moves = [abs(change) > tolerance for change in changes]
        values, moving = new, any(bool(np.any(each)) for each in moves)
        if not moving:
            break
    return [*values, np.asarray(moving)]


def _batch(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """Return the batched values, on arguments some of which have the further ``axes``.

    The loop runs until the values have converged at all indices of the batch axes.
    """
    tolerance: Any = args[-1]
    if tolerance.axes is not NO_AXES:
        tolerance = smallest_of(bordered(tolerance, math.inf))
    return loop_batch(op, (*args[:-1], tolerance), axes, images)


FIXED_POINT = Primitive(
    "fixed_point",
    "region",
    "Values x with x = f(x) up to a tolerance, and True if they still changed in the last step.",
    reference=_reference,
    attributes=FixedPointAttributes,
    infer=_infer,
    outcomes=_outcomes,
    dtype_operands=(),
    vjp=late("fixed_point_vjp"),
    jvp=late("fixed_point_jvp"),
    batch=_batch,
    cost="kernel",
)


def _settled(moves: Tensor, values: Sequence[Tensor], initial: Sequence[Tensor]) -> Tensor:
    """Return a bool scalar that is true if a loop converged.

    It converged if no element moved in the last step (``moves``), and every element that was finite
    in ``initial`` is finite in ``values``. The second condition is needed because a diverging value
    ends at an infinity or NaN, which compares as unchanged.
    """
    settled: Any = all_of(logical_not(moves))
    for value, first in zip(values, initial, strict=True):
        kept = logical_or(isfinite(value), logical_not(isfinite(first)))
        settled = logical_and(settled, all_of(kept))
    return settled  # type: ignore[no-any-return]  # a tensor


class ConvergedAttributes(NamedTuple):
    """The maximum number of steps of the loop."""

    limit: Count


def _converged_reference(op: Op, x: Array, moves: Array, *more: Array) -> Array:
    count = len(more) // 2
    lost = False
    for k in range(count):
        # Batched derivatives give the last values axes that the initial values lack.
        over = op.args[2 + k].axes
        first = align_dimensions(more[count + k], op.args[2 + count + k].axes, over)
        lost = lost or bool(np.any(np.isfinite(first) & ~np.isfinite(more[k])))
    if np.any(moves) or lost:
        raise ConvergenceError(
            f"fixed_point at {op.line_info}: the loop did not converge in {op.attrs.limit} steps"
        )
    return x


# One primitive instead of a composition, so that rules see that the result has the elements of x.
CONVERGED = Primitive(
    "converged",
    "indexing",
    "x, after a check that a loop of at most so many steps converged, by its flag of movement, its "
    "last values and its first ones.",
    reference=_converged_reference,
    transpose=lambda g, op, i: g if i == 0 else None,
    attributes=ConvergedAttributes,
    infer=infer_same,
    dtype_operands=(0,),
    batched_together=None,
    has_side_effect=True,
    raises=True,
)


def converged_of(op: Op) -> Tensor:
    """Return a bool scalar: whether the loop that a ``converged`` op checks has converged."""
    moves, *more = op.args[1:]
    return _settled(moves, more[: len(more) // 2], more[len(more) // 2 :])  # type: ignore[arg-type]  # tensors


def certain(made: Sequence[Tensor], initial: Sequence[Tensor], limit: int) -> list[Tensor]:
    """Return the values of a loop wrapped so that they raise where the loop did not converge."""
    *values, moves = made
    looked_at = (moves, *values, *initial)
    attrs = ConvergedAttributes(limit)
    return tensors([make(CONVERGED, (value, *looked_at), attrs) for value in values])


def make_fixed_point(
    row: Primitive,
    limit: int,
    raises: bool,
    initial: Sequence[Tensor],
    leaves: Sequence[Tensor],
    results: Sequence[Tensor],
    tolerance: Tensor,
    named: Mapping[Op, Any] = NOTHING,
) -> list[Tensor]:
    """Build a fixed-point op; return its values and a bool that is true if they still moved.

    The body computes ``results`` from ``leaves``. Keys of ``named`` are placeholders for values
    outside.
    """
    loop = loop_from(row, FixedPointAttributes(limit, 0, NO_BODY, raises))
    return loop.rebuilt(initial, (), leaves, results, (), named, (tolerance,))


def bordered(x: Tensor, value: float) -> Tensor:
    """Pad ``x`` with ``value`` by one element along each axis, so that it is not empty."""
    return pad(x, dict.fromkeys(x.axes, (0, 1)), value=value) if len(x.axes) else x


# Lowering to a while loop -------------------------------------------------------------------------


def as_while(op: Op) -> Op:
    """Return the while loop whose first results are those of the fixed point ``op``.

    The loop has one more carry: whether an element changed by more than the tolerance. NaN counts
    as unchanged.
    """
    a: FixedPointAttributes = op.attrs
    opened = Opened(a.body)
    here, read = opened.leaves[: a.carries], opened.leaves[a.carries :]
    moves, at, tolerance = placeholder((), "bool"), placeholder((), "int64"), like(op.args[-1])
    still: Any = None
    for new, old in zip(opened.results, here, strict=True):
        change = subtract.apply(cast(new, tolerance.dtype), cast(old, tolerance.dtype))
        each = any_of(greater.apply(absolute(change), tolerance))
        still = each if still is None else logical_or(still, each)
    named: dict[Op, Any] = dict(zip(read, op.args[a.captures], strict=True))
    named[tolerance] = op.args[-1]
    initial: Any = [*op.args[: a.carries], strengthen(as_tensor(True), moves.dtype)]
    leaves = [*here, moves, at]
    results = [*opened.results, still]
    result = make_while(PRIMITIVES["while"], None, a.limit, initial, leaves, moves, results, named)
    return result[0].args[0]


# Public function ----------------------------------------------------------------------------------


@public
def fixed_point(
    f: Callable[[Any], Any],
    x0: Any,
    tolerance: Any = 1e-6,
    max_steps: int = 1000,
    *,
    converged: bool = False,
    name: str | None = None,
) -> Any:
    """Return x with x = f(x), by repeating ``f`` from ``x0`` until the values stay the same.

    ``x0`` is a tensor of a float dtype, or a dictionary, list, tuple or dataclass of such tensors.
    ``f`` returns the same structure, axes and dtypes. It is called once, with placeholders for x;
    values from outside can be used inside it directly. The loop ends when no element changes by
    more than ``tolerance``, a number or a float scalar, and after ``max_steps`` steps at the
    latest. ``name`` is the name of the loop.

    The loop has converged if it ended by the tolerance and every element that is finite in ``x0``
    is finite at the end. If it has not converged, computing x raises ``ConvergenceError`` and
    leaves variables unchanged. With ``converged=True`` it does not raise: the result is a pair of
    the last x and a bool scalar that is true if the loop converged.

    The derivative follows from the equation by the implicit function theorem and stores no steps. A
    second loop computes it, in at most ``max_steps`` steps, to within ``tolerance`` times the
    largest absolute value of its right-hand side. If that loop does not converge, it raises as x
    does, except with ``converged=True``. The derivative with respect to ``x0`` is zero. ``f`` must
    be a contraction near x, as it is where the loop itself converges.

    Raises ``AxisError`` if ``f`` returns other axes, ``DTypeError`` if x has no float dtype or
    ``f`` returns another dtype, and ``ArgumentError`` for another structure, for effects inside of
    ``f``, and if ``max_steps`` is no integer of at least 0.
    """
    what = user_call("fixed_point")
    if not is_count(max_steps):
        raise ArgumentError(f"{what}: max_steps={max_steps!r} is no integer of at least 0")
    needs_function(what, "f", f, "geon.cos", "x")
    carries = Carries(what, "x0", x0)
    if not carries.first:
        raise ArgumentError(f"{what}: x0 is {carries.structure}, which has no tensor")
    for where, value in zip(carries.names, carries.first, strict=True):
        if kind(value.dtype) != "f":
            raise DTypeError(
                f"{what}: {where} is {value} {value.dtype.name} (made at {value.line_info}), of no "
                "float dtype; geon.cast it"
            )
    values = f(carries.given())
    refuse_effects(what, [value for _, value in flat(values, "values")[0]], ASSIGN_IT)
    results = carries.after(values, "values", "f")
    within = _tolerance(what, tolerance, carries.first)
    first, raises = carries.first, not converged
    result = make_fixed_point(
        FIXED_POINT, max_steps, raises, first, carries.leaves, results, within
    )
    if name is not None:
        result[0].args[0].name = name
    if converged:
        return carries.structure.filled(iter(result[:-1])), _settled(result[-1], result[:-1], first)
    return carries.structure.filled(iter(certain(result, first, max_steps)))


def _tolerance(what: str, tolerance: Any, initial: Sequence[Tensor]) -> Tensor:
    """Return the tolerance as a scalar in the widest dtype of the values, at least float32."""
    tensor = as_scalar(what, "tolerance ", tolerance, "fi", "")
    widest = max((x.dtype for x in initial), key=lambda dtype: dtype.itemsize)
    return cast(tensor, FLOAT32 if widest.itemsize < FLOAT32.itemsize else widest)
