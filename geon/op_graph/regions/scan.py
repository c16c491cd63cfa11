"""``scan``: a loop over an axis that carries values; and the choice of its checkpoint segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis
from ..axes.lengths import evaluate
from ..building.constants import as_tensor
from ..core.argument_hints import public
from ..core.primitive import Primitive
from ..core.source_info import user_call
from ..op_graph import NO_AXES, RegionOp, Tensor
from ..rows.elementwise import cast
from ..rows.movement import broadcast
from ..rows.remat_annotations import mark_segments
from ..syntax.operators import late
from ..values.attribute_types import as_int, is_parts
from ..values.dtypes import INT64
from ..values.tree import flat
from .carries import (
    Carries,
    as_scalar,
    describe_returned,
    loop_placeholder,
    needs_function,
    stepping,
    strong,
)
from .loop import loop_batch
from .scan_op import ScanAttributes, make_scan, scan_infer, scan_outcomes, scan_reference
from .segments import MARKED, Numbers
from .state_carries import StateCarries, land_effects, tie_updates

if TYPE_CHECKING:
    from ..building.typing import AxisLike, TensorLike

Step = Callable[[Any, Any], Any]


SCAN = Primitive(
    "scan",
    "region",
    "A loop along an axis: carries after the last step, and values of all steps stacked.",
    reference=scan_reference,
    attributes=ScanAttributes,
    infer=scan_infer,
    outcomes=scan_outcomes,
    dtype_operands=(),
    vjp=late("scan_vjp"),
    jvp=late("loop_jvp"),
    batch=loop_batch,
    cost="kernel",
)


@public
def scan(
    step: Step,
    init: Any,
    xs: Any = (),
    *,
    over: AxisLike | None = None,
    reverse: bool = False,
    segments: int | Sequence[int] | str | None = None,
    steps: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Loop along the axis ``over``; return the last carries and the stacked values of all steps.

    ``step(carries, x)`` is called once, with placeholders for the values of any step. ``x`` is the
    slice of ``xs`` at the step, without the axis. It returns a pair: the new carries, with the
    structure, axes and dtypes of ``init``, and values to stack, or None for none. Carries, ``xs``
    and values are tensors, or dictionaries, lists, tuples and dataclasses of tensors. The stacked
    values have ``over`` as their first axis. The steps run from the first index of the axis to the
    last, or with ``reverse`` from the last to the first. ``over`` may be left out if ``xs`` is one
    tensor with one axis. The step can use tensors from outside directly. ``name`` is the name of
    the loop.

    ``steps``, an integer scalar that a call may compute, limits the loop to the first so many
    indices of the axis: below 0 none run, and beyond the length all. The stacked values are 0 at
    the other indices.

    An assignment in a step is visible to the following steps. After the loop the variable has the
    value of the last step; computing any result of the loop runs its assignments. An assignment may
    be among the values; the result holds the effect at that position.

    Reverse derivatives need the carries of each step. With ``segments`` the loop is checkpointed:
    it stores only the carries at the start of each segment, and recomputes the steps of one segment
    at a time. "sqrt" takes about the square root of the number of steps, 64 if the axis is open. An
    integer of at least 2 is the number of segments. A sequence nests: (8, 4) is 8 segments of 4
    sub-segments each. Memory is then that of the stored carries and of the steps of one innermost
    segment. Time grows by one more forward loop for each number. The values are the same, and if
    nothing reads the stacks the loop is not divided. Loops over the same axis that read the stacks
    of this loop are divided in the same way.

    Raises ``AxisError`` if ``xs`` lack the axis or have it in two lengths, or if a carry comes back
    over other axes; ``DTypeError`` if it comes back in another dtype, or if ``steps`` is no integer
    scalar; and ``ArgumentError`` for another structure, for prints inside of the step, for invalid
    ``segments``, and for ``segments`` beside ``steps``.
    """
    what = user_call("scan")
    parts = ("the carries", "the part of xs at the step")
    needs_function(what, "step", step, "lambda carry, x: (carry + x, carry)", *parts)
    walked = _Walked(what, xs, over)
    carried = Carries(what, "init", init)
    numbers, limit = numbers_of(what, segments, walked.axis), _limit(what, steps)
    if numbers and limit is not None:
        raise ArgumentError(
            f"{what}: segments={segments!r} beside steps={limit} (made at {limit.line_info}); only "
            "a loop over all of its axis is divided, so leave one of them out"
        )
    with stepping(walked.at, walked.axis.expression):
        returned = step(carried.given(), walked.given())
    returned, updates = land_effects(what, returned, "", [*carried.leaves, *walked.parts])
    carries, values = both(what, "step", returned)
    stacked, structure = flat(values, "values")
    results = carried.after(carries, "carries", "step")
    results += [strong(as_tensor(value)) for _, value in stacked]
    refuse_axis(what, "step", walked.axis, results)
    more, own = StateCarries(what, updates, walked.axis), len(carried.first)
    results = more.read(results)
    results[own:own] = more.last
    stacks = walked.stacks
    leaves = [*carried.leaves, *more.leaves, *stacks, walked.at]
    xs, init = list(stacks.values()), [*carried.first, *more.first]
    if numbers:
        init = [mark_segments(first, numbers) for first in init]
    result = make_scan(SCAN, walked.axis, bool(reverse), init, xs, leaves, results, count=limit)
    if name is not None and result:
        result[0].args[0].name = name
    behind = own + len(more.last)
    result, effect = tie_updates(result[:own] + result[behind:], more.assigned(result[own:behind]))
    every = iter(result)
    return carried.structure.filled(every), structure.filled(every, effect)


class _Walked:
    """The inputs of a loop: tensors that it slices along one axis.

    ``tensors`` are the inputs, ``structure`` is their structure, and ``axis`` is the axis of the
    loop. ``parts`` are the placeholders of their slices in a step. ``at`` is the step number; it is
    the slice of an input that is the int64 iota of the axis.
    """

    def __init__(self, what: str, xs: Any, over: Any) -> None:
        leaves, self.structure = flat(xs, "xs")
        self.tensors = [strong(as_tensor(x)) for _, x in leaves]
        along = along_axis(what, over, self.tensors, [where for where, _ in leaves])
        self.axis = axis = one_length(what, along, self.tensors)
        self.at = loop_placeholder(what, NO_AXES, INT64)
        self.parts = [
            self.at if _counts(x) else loop_placeholder(what, x.axes.without([axis.name]), x.dtype)
            for x in self.tensors
        ]

    def given(self) -> Any:
        """Return the second argument of the step function, with the structure of ``xs``."""
        return self.structure.filled(iter(self.parts))

    @property
    def stacks(self) -> dict[Tensor, Tensor]:
        """The inputs by the placeholders of their slices; the loop's axis comes first."""
        return {
            part: broadcast(x, Axes(self.axis, part.axes))
            for part, x in zip(self.parts, self.tensors, strict=True)
            if part is not self.at
        }


def _limit(what: str, steps: Any) -> Tensor | None:
    """Return the number of steps as int64; raise ``DTypeError`` if it is no integer scalar."""
    if steps is None:
        return None
    cure = "; give the number of indices of the axis to run"
    return cast(strong(as_scalar(what, "steps=", steps, "i", cure)), INT64)


def both(what: str, who: str, returned: Any) -> tuple[Any, Any]:
    """Return the carries and the values that ``who`` returned.

    Raises ``ArgumentError`` if it returned no pair.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ArgumentError(
            f"{what}: {who} returned {describe_returned(returned)}; it returns a pair, the "
            "new carries and the "
            "values of the step, which are None where there are none"
        )
    return returned


def along_axis(what: str, over: Any, tensors: Sequence[Tensor], names: Sequence[str]) -> Axis:
    """Return the axis of the loop; raise ``AxisError`` if it is missing or an input lacks it."""
    if over is None and len(tensors) == 1 and len(tensors[0].axes) == 1:
        over = tensors[0].axes[0]
    if isinstance(over, str):
        over = next((x.axes[over] for x in tensors if over in x.axes), over)
    if not isinstance(over, Axis):
        have = list(dict.fromkeys(name for x in tensors for name in x.axes.names))
        cure = f"xs has the axes {', '.join(have)}: say which" if have else "xs has no axes"
        if isinstance(over, int):
            cure += f"; geon.Axis('step', {over}) is an axis of so many steps"
        raise AxisError(f"{what}: over={over!r} is no axis of xs; give a geon.Axis; {cure}")
    for where, x in zip(names, tensors, strict=True):
        if over not in x.axes:
            raise AxisError(
                f"{what}: {where} is {x} (made at {x.line_info}), which lacks the axis "
                f"{over.name!r} of the loop; it has {', '.join(x.axes.names) or 'none'}. What all "
                "steps read alike need not be in xs: step may just name it"
            )
    return over


def one_length(what: str, along: Axis, tensors: Sequence[Tensor]) -> Axis:
    """Return ``along`` with the length on which all inputs agree.

    The length is an integer if an input has one, otherwise that of the first input. An open
    ``along`` serves only as a name: an input may be a slice of a tensor over it. Raises
    ``AxisError`` if lengths differ.
    """
    named = along.open_name is not None
    for number, x in enumerate(tensors):
        own = x.axes[along.name]
        both = own.expression - along.expression
        if isinstance(both, int) and both != 0:
            raise AxisError(
                f"{what}: the axis {own.name!r} of the loop has length {along.expression} and, in "
                f"{x} (made at {x.line_info}), {own.expression}; give all the same length"
            )
        if isinstance(own.expression, int) or (named and number == 0):
            along = own
    return along


def _counts(x: Tensor) -> bool:
    """Return True if the slice of ``x`` in a step is the step number."""
    return x.primitive.name == "iota" and x.dtype is INT64


def refuse_axis(what: str, who: str, axis: Axis, results: Sequence[Tensor]) -> None:
    """Raise ``AxisError`` if a value of one step has the axis of the loop."""
    for op in results:
        if axis in op.axes:
            raise AxisError(
                f"{what}: {who} returns {op} (made at {op.line_info}), which has the axis "
                f"{axis.name!r} of the loop already; geon.rename it, for example to "
                f"{axis.name}.prime"
            )


OPEN_LENGTH_SEGMENTS = 64  # segments of a loop along an axis of open length
MAX_SEGMENT_COST_RATIO = (
    1.25  # factor on the least memory that is accepted for segments that divide evenly
)


def numbers_of(what: str, segments: Any, axis: Axis) -> Numbers:
    """Return the number of segments at each level of nesting; () for None.

    Raises ``ArgumentError`` for invalid ``segments``.
    """
    if segments is None:
        return ()
    if segments == "sqrt":
        length = axis.expression
        number = root_segments(length) if isinstance(length, int) else OPEN_LENGTH_SEGMENTS
        return (number,) if number > 1 else ()
    several = isinstance(segments, Sequence) and not isinstance(segments, str)
    numbers = tuple(map(as_int, segments if several else (segments,)))
    if not is_parts(numbers):
        raise ArgumentError(
            f"{what}: segments={segments!r} is no number of segments; give 'sqrt', an integer of "
            "at least 2, or several ones for segments of segments; without, what "
            "each step begins with is kept"
        )
    return numbers


def root_segments(length: int) -> int:
    """Return the number of segments of ``length`` steps that takes the least memory.

    The cost is the number of segments plus the number of steps of one. A number that divides the
    length is preferred if its cost is within the factor ``MAX_SEGMENT_COST_RATIO`` of the minimum.
    """
    least = isqrt(max(length - 1, 0)) + 1 if length > 1 else 1
    most = MAX_SEGMENT_COST_RATIO * 2 * least
    for away in range(least):
        for number in (least - away, least + away):
            if length % number == 0 and number + length // number <= most:
                return number
        if least - away + length // max(least - away, 1) > most:
            break
    return least


class ForBytes:
    """Divides all scans whose stacks take at least ``least`` bytes for the given ``lengths``.

    ``levels`` is the depth of nested segments, which have about the same number of parts at each
    level. Marks by the user take precedence.
    """

    def __init__(self, levels: int, least: int, lengths: Mapping[str, int]) -> None:
        self.levels, self.least, self.lengths = levels, least, lengths

    def of(self, scan: RegionOp) -> Numbers:
        """Return the numbers of segments for a scan; () if it is not divided."""
        a: ScanAttributes = scan.attrs
        length = evaluate(a.axis.expression, self.lengths)
        if self.levels == 1:
            numbers: Numbers = (root_segments(length),)
        else:
            numbers = (max(round(length ** (1 / (self.levels + 1))), 1),) * self.levels
        stacks = sum(
            length * evaluate(value.axes.size, self.lengths) * value.dtype.itemsize
            for value in (*a.body.parameters[: a.carries], *a.body.results[a.carries :])
        )
        is_divided = is_parts(numbers) and stacks >= self.least
        return MARKED.of(scan) or (numbers if is_divided else ())
