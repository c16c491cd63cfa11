"""``while_loop``: repeats a step while a condition on its carries holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axis
from ..building.constants import as_tensor
from ..core.argument_hints import public
from ..core.primitive import Primitive
from ..core.source_info import user_call
from ..op_graph import NO_AXES, Tensor
from ..syntax.operators import late
from ..values.attribute_types import is_count
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
from .closure import refuse_effects
from .loop import loop_batch
from .scan import both, refuse_axis
from .state_carries import StateCarries, land_effects, tie_updates
from .while_op import WhileAttributes, make_while, while_infer, while_outcomes, while_reference

if TYPE_CHECKING:
    from ..building.typing import AxisLike

# The advice of messages about an assignment inside of a condition.
IN_BODY = "a condition only looks at what is carried; assign {target} in the body"
# Steps that the numbering of random draws reserves for a nested loop without a limit.
OPEN_LOOP_DRAW_STEPS = 1 << 16


WHILE = Primitive(
    "while",
    "region",
    "A loop that ends where a condition is false: its last carries, and the number of its steps.",
    reference=while_reference,
    attributes=WhileAttributes,
    infer=while_infer,
    outcomes=while_outcomes,
    dtype_operands=(),
    vjp=late("while_vjp"),
    jvp=late("loop_jvp"),
    batch=loop_batch,
    cost="kernel",
)


@public
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
    """Repeat ``body`` while ``condition`` is true; return the last carries.

    ``condition(carries)`` returns a bool scalar. ``body(carries)`` returns the next carries, with
    the structure, axes and dtypes of ``init``: a tensor, or a dictionary, list, tuple or dataclass
    of tensors. Both are called once, with placeholders for the values of any step, and can use
    tensors from outside directly. The body does not run if the condition is false at first. It runs
    at most ``max_steps`` times, an integer of at least 0. With ``count`` the result is a pair: the
    carries, and the number of steps as an int64 scalar. ``name`` is the name of the loop.
    Assignments in the body work as in ``scan``.

    With ``over``, an axis of the length ``max_steps`` or its name, the body returns a pair as in
    ``scan``: the next carries, and values to stack, or None for none. The result is then
    ``(carries, values)``, or with ``count`` ``(carries, values, count)``. The values have ``over``
    as their first axis, and are 0 at indices from the number of steps on. ``max_steps`` may be left
    out if ``over`` has a length.

    Reverse derivatives need the carries of each step. If ``max_steps`` is at most 512, all of them
    are stored. Otherwise 256 of them are stored, equally far apart, and those between two of these
    are recomputed, 256 at a time. The memory is then that of 512 carries whatever the number of
    steps. The time is that of three forward loops up to 65,536 steps, and of one more for each
    further 131,072. A derivative through values ``over`` an axis stores the carries of all
    ``max_steps``.

    Raises ``AxisError`` if a carry comes back over other axes; ``DTypeError`` if it comes back in
    another dtype or the condition is no bool scalar; and ``ArgumentError`` for another structure,
    for an assignment in the condition, for prints inside of either function, for invalid
    ``max_steps``, and for an ``over`` of another length or of none.
    """
    what = user_call("while_loop")
    axis = None if over is None else _stacking(what, over, max_steps)
    if axis is not None and max_steps is None:
        max_steps = axis.expression  # type: ignore[assignment]  # an integer
    if max_steps is not None and not is_count(max_steps):
        raise ArgumentError(
            f"{what}: max_steps={max_steps!r} is no integer of at least 0; None is no limit"
        )
    needs_function(what, "condition", condition, "lambda carry: carry < 10", "the carries")
    needs_function(what, "body", body, "lambda carry: 2 * carry", "the carries")
    carried, at = Carries(what, "init", init), loop_placeholder(what, NO_AXES, INT64)
    with stepping(at, OPEN_LOOP_DRAW_STEPS if max_steps is None else max_steps):
        tested = condition(carried.given())
        refuse_effects(what, [tested], IN_BODY)
        truth = _truth(what, tested)
        returned = body(carried.given())
    returned, updates = land_effects(
        what, returned, "carries" if axis is None else "", carried.leaves
    )
    carries, values = (returned, None) if axis is None else both(what, "body", returned)
    every_step, structure = flat(values, "values")
    results = carried.after(carries, "carries", "body")
    stacked = [strong(as_tensor(value)) for _, value in every_step]
    if axis is not None:
        refuse_axis(what, "body", axis, [*results, *stacked])
    more, own = StateCarries(what, updates, axis), len(carried.first)
    first, leaves = [*carried.first, *more.first], [*carried.leaves, *more.leaves, at]
    [truth], results = more.read([truth]), [*more.read(results), *more.last, *more.read(stacked)]
    result = make_while(WHILE, axis, max_steps, first, leaves, truth, results)
    if name is not None:
        result[0].args[0].name = name
    result, effect = tie_updates(
        result[:own] + result[len(first) :], more.assigned(result[own : len(first)])
    )
    last = carried.structure.filled(iter(result[:own]))
    steps, stacks = result[own], result[own + 1 :]
    every = [last] if axis is None else [last, structure.filled(iter(stacks), effect)]
    every += [steps] if count else []
    return tuple(every) if len(every) > 1 else last


def _stacking(what: str, over: Any, max_steps: int | None) -> Axis:
    """Return the axis of the stacked values from the argument ``over``."""
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
    """Return the result of the condition; raise ``DTypeError`` if it is no bool scalar."""
    if value is None or isinstance(value, (list, tuple, dict)):
        raise DTypeError(
            f"{what}: condition returned {describe_returned(value)}; it returns a bool scalar"
        )
    cure = "; geon.any and geon.all make one of many"
    return as_scalar(what, "the condition ", value, "b", cure)
