"""``while_loop``: runs a step while a condition on its carries holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axis
from ..building.constants import as_tensor
from ..building.tree import flat
from ..core.argument_hints import explained
from ..core.primitive import Primitive
from ..core.source_info import describe, user_site
from ..op_graph import NO_AXES, Tensor
from ..values.attribute_types import is_axis, is_count
from ..values.dtypes import INT64, kind
from .carries import Carries, inside, needs_function, shown, stepping, strong
from .closure import refuse_effects
from .loop_batching import while_spread
from .scan import both, is_body, refuse_axis
from .state_carries import Carried, landed, tied
from .while_deriv import while_jvp, while_vjp
from .while_op import make_while, while_infer, while_outcomes, while_reference

if TYPE_CHECKING:
    from ..building.typing import AxisLike

# What to do in place of an assignment where a condition is looked at.
IN_BODY = "a condition only looks at what is carried; assign {target} in the body"
# Draws of a loop inside of a step of another one count by so many steps where there is no limit.
STEPS_OF_DRAWS = 1 << 16


def is_axis_or_none(value: Any) -> bool:
    """Whether ``value`` is an axis, or None."""
    return value is None or is_axis(value)


def is_limit(value: Any) -> bool:
    """Whether ``value`` is an integer of at least 0, or None."""
    return value is None or is_count(value)


WHILE = Primitive(
    "while",
    "region",
    "A loop that ends where a condition is false: its last carries, and the number of its steps.",
    reference=while_reference,
    attributes=("axis", "limit", "carries", "condition", "body"),
    fits=(is_axis_or_none, is_limit, is_count, is_body, is_body),
    infer=while_infer,
    outcomes=while_outcomes,
    carriers=(),
    vjp=while_vjp,
    jvp=while_jvp,
    spread=while_spread,
    cost="kernel",
)


@explained
def while_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: int | None = None,
    *,
    over: AxisLike | None = None,
    count: bool = False,
    name: str | None = None,
) -> Any:
    """What the carries are when ``condition`` of them is false for the first time.

    ``condition(carries)`` gives a bool scalar, ``body(carries)`` the next carries, of the
    structure, axes and dtypes of ``init``: a tensor, or any dictionary, list, tuple or dataclass of
    them. Both are called once, with tensors that stand for those of any step, and may just name
    what they read besides. The body is not run at all where the condition is false at first, and
    no more than ``max_steps`` times, an integer of at least 0. With ``count`` the result is a pair:
    the carries, and the number of the steps as an int64 scalar. ``name`` is that of the loop.
    What the body assigns is as in ``scan``.

    With ``over``, an axis of the length ``max_steps`` or its name, the body returns a pair as in
    ``scan``: the next carries, and values, None for none. The result is then ``(carries, values)``,
    with ``count`` ``(carries, values, count)``. The values have ``over`` first, and are 0 at places
    from the number of steps on. ``max_steps`` may be left out where ``over`` has a length.

    Reverse derivatives need the carries of each step. Up to 512 ``max_steps`` keep them all, which
    takes memory for as many. Otherwise 256 of them are kept, equally far apart, and between two of
    these 256 at a time are computed again: the memory is that of 512 carries whatever the number
    of steps, the time that of three loops forward up to 65,536 steps, and of one more for each
    further 131,072. A derivative that goes through values ``over`` an axis keeps the carries of all
    ``max_steps``.

    Raises ``AxisError`` where a carry comes back over other axes, ``DTypeError`` where it comes
    back in another dtype and where the condition is no bool scalar, and ``ArgumentError`` for
    another structure, for an assignment in the condition, for prints inside of either function,
    for other ``max_steps``, and for an ``over`` of another length or of none.
    """
    what = f"while_loop at {describe(user_site())}"
    axis = None if over is None else _stacking(what, over, max_steps)
    if axis is not None and max_steps is None:
        max_steps = axis.expression  # type: ignore[assignment]  # an integer
    if max_steps is not None and not is_count(max_steps):
        raise ArgumentError(
            f"{what}: max_steps={max_steps!r} is no integer of at least 0; None is no limit"
        )
    needs_function(what, "condition", condition, "lambda carry: carry < 10", "the carries")
    needs_function(what, "body", body, "lambda carry: 2 * carry", "the carries")
    begun, at = Carries(what, "init", init), inside(what, NO_AXES, INT64)
    with stepping(at, STEPS_OF_DRAWS if max_steps is None else max_steps):
        tested = condition(begun.given())
        refuse_effects(what, [tested], IN_BODY)
        truth = _truth(what, tested)
        returned = body(begun.given())
    returned, updates = landed(what, returned, "carries" if axis is None else "", begun.leaves)
    carries, values = (returned, None) if axis is None else both(what, "body", returned)
    found, structure = flat(values, "values")
    results = begun.after(carries, "carries", "body")
    stacked = [strong(as_tensor(value)) for _, value in found]
    if axis is not None:
        refuse_axis(what, "body", axis, [*results, *stacked])
    more, own = Carried(what, updates, axis), len(begun.first)
    first, leaves = [*begun.first, *more.first], [*begun.leaves, *more.leaves, at]
    [truth], results = more.read([truth]), [*more.read(results), *more.last, *more.read(stacked)]
    made = make_while(WHILE, axis, max_steps, first, leaves, truth, results)
    if name is not None:
        made[0].args[0].name = name
    made, effect = tied(made[:own] + made[len(first) :], more.assigned(made[own : len(first)]))
    last = begun.structure.filled(iter(made[:own]))
    steps, stacks = made[own], made[own + 1 :]
    every = [last] if axis is None else [last, structure.filled(iter(stacks), effect)]
    every += [steps] if count else []
    return tuple(every) if len(every) > 1 else last


def _stacking(what: str, over: Any, max_steps: int | None) -> Axis:
    """The axis of the values of all steps, from what was given as ``over``."""
    if isinstance(over, str) and max_steps is not None and is_count(max_steps):
        return Axis(over, max_steps)
    if not isinstance(over, Axis):
        raise AxisError(
            f"{what}: over={over!r} is no axis; give a geon.Axis of the length max_steps, or its "
            "name beside max_steps="
        )
    if not isinstance(over.expression, int) or max_steps not in (None, over.expression):
        length = "open" if not isinstance(over.expression, int) else f"of length {over.expression}"
        raise AxisError(
            f"{what}: the axis {over.name!r} of the values is {length}, and max_steps={max_steps}; "
            f"it has a place for each step there may be: give over=geon.Axis({over.name!r}, "
            "max_steps)"
        )
    return over


def _truth(what: str, value: Any) -> Tensor:
    """What the condition returned, a bool scalar."""
    if value is None or isinstance(value, (list, tuple, dict)):
        raise DTypeError(f"{what}: condition returned {shown(value)}; it returns a bool scalar")
    truth = as_tensor(value)
    if truth.axes is not NO_AXES or kind(truth.dtype) != "b":
        raise DTypeError(
            f"{what}: the condition {truth} {truth.dtype.name} (made at {truth.line_info}) is no "
            "bool scalar; geon.any and geon.all make one of many"
        )
    return truth
