"""``scan``: a loop over an axis that carries values; the number of its checkpointed segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis
from ..building.constants import as_tensor
from ..building.tree import flat
from ..core.argument_hints import explained
from ..core.primitive import Primitive
from ..core.region_body import Body
from ..core.source_info import describe, user_site
from ..op_graph import NO_AXES, Tensor
from ..rows.movement import broadcast
from ..rows.remat_annotations import segmented
from ..values.attribute_types import is_axis, is_count, is_flag
from ..values.dtypes import INT64
from .carries import Carries, inside, needs_function, shown, stepping, strong
from .loop_batching import scan_spread
from .scan_deriv import scan_jvp, scan_vjp
from .scan_op import make_scan, scan_infer, scan_outcomes, scan_reference
from .state_carries import Carried, landed, tied

if TYPE_CHECKING:
    from ..building.typing import AxisLike


from collections.abc import Mapping
from math import isqrt

from ..axes.lengths import evaluate
from ..op_graph import RegionOp
from ..values.attribute_types import as_int, is_parts
from .scan_op import ScanAttributes
from .segments import MARKED, Numbers

Step = Callable[[Any, Any], Any]


def is_body(value: Any) -> bool:
    """Whether ``value`` is a body."""
    return isinstance(value, Body)


SCAN = Primitive(
    "scan",
    "region",
    "A loop along an axis: carries after the last step, and values of all steps stacked.",
    reference=scan_reference,
    attributes=("axis", "carries", "xs", "reverse", "counted", "body"),
    fits=(is_axis, is_count, is_count, is_flag, is_flag, is_body),
    infer=scan_infer,
    outcomes=scan_outcomes,
    carriers=(),
    vjp=scan_vjp,
    jvp=scan_jvp,
    spread=scan_spread,
    cost="kernel",
)


@explained
def scan(
    step: Step,
    init: Any,
    xs: Any = (),
    *,
    over: AxisLike | None = None,
    reverse: bool = False,
    segments: int | Sequence[int] | str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """A loop along the axis ``over``: the last carries, and the values of all steps.

    ``step(carries, x)`` is called once, with tensors that stand for those of any step: ``x`` is the
    part of ``xs`` at the step, without the axis. It returns the new carries, of the structure, axes
    and dtypes of ``init``, and values, None for none. Carries, ``xs`` and values are tensors or any
    dictionaries, lists, tuples and dataclasses of them. The values have ``over`` first. The steps
    go from the first place of the axis to the last, or with ``reverse`` the other way. The axis may
    be left out where ``xs`` is one tensor with one axis. What the step reads from outside it may
    just name. ``name`` is that of the loop.

    What a step assigns is seen by the steps after it, and once the loop is computed the variable is
    as the last step left it: any of the loop's results runs its assignments. An assignment may be
    among the values, which have that effect in its place.

    Reverse derivatives need the carries of each step. With ``segments`` they keep those that so
    many segments begin with, and compute the steps of one segment at a time again: "sqrt" is as
    many as a segment has steps, 64 where the axis is open; an integer of at least 2 is a number of
    segments; of several ones each is that of the segments in one of those before. Memory is then
    that of so many carries and of the steps of one of the last segments, time that of one more loop
    forward for each number. Values are the same, and where nothing reads the steps the loop is as
    it is without. Loops over the same axis that read what this one stacks are in segments too.

    Raises ``AxisError`` where ``xs`` lack the axis or have
    it in two lengths, or a carry comes back over other axes, ``DTypeError`` where it comes back in
    another dtype, and ``ArgumentError`` for another structure, for prints inside of the step, and
    for other ``segments``.
    """
    what = f"scan at {describe(user_site())}"
    parts = ("the carries", "the part of xs at the step")
    needs_function(what, "step", step, "lambda carry, x: (carry + x, carry)", *parts)
    walked = _Walked(what, xs, over)
    begun = Carries(what, "init", init)
    numbers = numbers_of(what, segments, walked.axis)
    with stepping(walked.at, walked.axis.expression):
        returned = step(begun.given(), walked.given())
    returned, updates = landed(what, returned, "", [*begun.leaves, *walked.parts])
    carries, values = both(what, "step", returned)
    found, structure = flat(values, "values")
    results = begun.after(carries, "carries", "step")
    results += [strong(as_tensor(value)) for _, value in found]
    refuse_axis(what, "step", walked.axis, results)
    more, own = Carried(what, updates, walked.axis), len(begun.first)
    results = more.read(results)
    results[own:own] = more.last
    stacks = walked.stacks
    leaves = [*begun.leaves, *more.leaves, *stacks, walked.at]
    xs, init = list(stacks.values()), [*begun.first, *more.first]
    if numbers:
        init = [segmented(first, numbers) for first in init]
    made = make_scan(SCAN, walked.axis, bool(reverse), init, xs, leaves, results)
    if name is not None and made:
        made[0].args[0].name = name
    behind = own + len(more.last)
    made, effect = tied(made[:own] + made[behind:], more.assigned(made[own:behind]))
    every = iter(made)
    return begun.structure.filled(every), structure.filled(every, effect)


class _Walked:
    """What a loop walks: ``tensors`` along one ``axis``, and in ``parts`` what stands for each at
    the step ``at``, which is the part of what counts steps.
    """

    def __init__(self, what: str, xs: Any, over: Any) -> None:
        found, self.structure = flat(xs, "xs")
        self.tensors = [strong(as_tensor(x)) for _, x in found]
        along = along_axis(what, over, self.tensors, [where for where, _ in found])
        self.axis = axis = one_length(what, along, self.tensors)
        self.at = inside(what, NO_AXES, INT64)
        self.parts = [
            self.at if _counts(x) else inside(what, x.axes.without([axis.name]), x.dtype)
            for x in self.tensors
        ]

    def given(self) -> Any:
        """What the function of a step is given, of the structure of ``xs``."""
        return self.structure.filled(iter(self.parts))

    @property
    def stacks(self) -> dict[Tensor, Tensor]:
        """The tensors by what stands for their parts, the axis of the loop first."""
        return {
            part: broadcast(x, Axes(self.axis, part.axes))
            for part, x in zip(self.parts, self.tensors, strict=True)
            if part is not self.at
        }


def both(what: str, who: str, returned: Any) -> tuple[Any, Any]:
    """The carries and the values that the function ``who`` of a step returned."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ArgumentError(
            f"{what}: {who} returned {shown(returned)}; it returns a pair, the new carries and the "
            "values of the step, which are None where there are none"
        )
    return returned


def along_axis(what: str, over: Any, tensors: Sequence[Tensor], names: Sequence[str]) -> Axis:
    """The axis of the loop."""
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
    """The axis with the length that all agree on: an integer where one has it, else the first's.

    An open axis that is given is but a name: the tensor may be a part of what is over it.
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
    """Whether ``x`` is the number of the step."""
    return x.primitive.name == "iota" and x.dtype is INT64


def refuse_axis(what: str, who: str, axis: Axis, results: Sequence[Tensor]) -> None:
    """Raise ``AxisError`` where the value of one step has the axis of the loop."""
    for op in results:
        if axis in op.axes:
            raise AxisError(
                f"{what}: {who} returns {op} (made at {op.line_info}), which has the axis "
                f"{axis.name!r} of the loop already; geon.rename it, for example to "
                f"{axis.name}.prime"
            )


OPEN = 64  # segments of a loop along an axis whose length is not known
UNEVEN = 1.25  # how many more carries and steps than least may be kept for segments that come out


def numbers_of(what: str, segments: Any, axis: Axis) -> Numbers:
    """The number of segments, of those in each of these, and so on; none for None.

    Raises ``ArgumentError`` for what is no such number.
    """
    if segments is None:
        return ()
    if segments == "sqrt":
        length = axis.expression
        number = root_segments(length) if isinstance(length, int) else OPEN
        return (number,) if number > 1 else ()
    several = isinstance(segments, Sequence) and not isinstance(segments, str)
    found = tuple(map(as_int, segments if several else (segments,)))
    if not is_parts(found):
        raise ArgumentError(
            f"{what}: segments={segments!r} is no number of segments; give 'sqrt', an integer of "
            "at least 2, or several ones for segments of segments; without, what "
            "each step begins with is kept"
        )
    return found


def root_segments(length: int) -> int:
    """In how many segments so many steps take least memory, a segment and its start the same.

    One that divides the length, so that no steps are left, is taken where it is near the least.
    """
    least = isqrt(max(length - 1, 0)) + 1 if length > 1 else 1
    most = UNEVEN * 2 * least
    for away in range(least):
        for number in (least - away, least + away):
            if length % number == 0 and number + length // number <= most:
                return number
        if least - away + length // max(least - away, 1) > most:
            break
    return least


class ForBytes:
    """The division of all scans whose stacks take at least so many bytes, of these lengths.

    There are so many ``levels`` of segments, all of about as many parts; marks have it their way.
    """

    def __init__(self, levels: int, least: int, lengths: Mapping[str, int]) -> None:
        self.levels, self.least, self.lengths = levels, least, lengths

    def of(self, scan: RegionOp) -> Numbers:
        """The numbers for a scan."""
        a = ScanAttributes(scan.attrs)
        length = evaluate(a.axis.expression, self.lengths)
        if self.levels == 1:
            numbers: Numbers = (root_segments(length),)
        else:
            numbers = (max(round(length ** (1 / (self.levels + 1))), 1),) * self.levels
        stacks = sum(
            length * evaluate(value.axes.size, self.lengths) * value.dtype.itemsize
            for value in (*a.body.parameters[: a.carries], *a.body.results[a.carries :])
        )
        fits = is_parts(numbers) and stacks >= self.least
        return MARKED.of(scan) or (numbers if fits else ())
