"""``while_loop``: a loop that runs while a condition on what it carries holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, DTypeError
from ..attributes import is_axis, is_count
from ..constants import as_tensor
from ..dtypes import INT64, kind
from ..keywords import explained
from ..op_graph import NO_AXES, Tensor
from ..registry import Primitive
from ..sites import describe, user_site
from .assigned import Carried, landed, tied
from .carries import Carries, inside, needs_function, shown, stepping
from .closing import refuse_effects
from .scan import is_body
from .while_deriv import while_jvp, while_vjp
from .while_facts import make_while, while_infer, while_outcomes, while_reference
from .while_further import while_spread

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

    Reverse derivatives need the carries of each step. Up to 512 ``max_steps`` keep them all, which
    takes memory for as many. Otherwise 256 of them are kept, equally far apart, and between two of
    these 256 at a time are computed again: the memory is that of 512 carries whatever the number
    of steps, the time that of three loops forward up to 65,536 steps, and of one more for each
    further 131,072.

    Raises ``AxisError`` where a carry comes back over other axes, ``DTypeError`` where it comes
    back in another dtype and where the condition is no bool scalar, and ``ArgumentError`` for
    another structure, for an assignment in the condition, for prints inside of either function, and
    for other ``max_steps``.
    """
    what = f"while_loop at {describe(user_site())}"
    if max_steps is not None and not is_count(max_steps):
        raise ArgumentError(
            f"{what}: max_steps={max_steps!r} is no integer of at least 0; None is no limit"
        )
    needs_function(what, "condition", condition, "lambda carry: carry < 10")
    needs_function(what, "body", body, "lambda carry: 2 * carry")
    begun, at = Carries(what, "init", init), inside(what, NO_AXES, INT64)
    with stepping(at, STEPS_OF_DRAWS if max_steps is None else max_steps):
        tested = condition(begun.given())
        refuse_effects(what, [tested], IN_BODY)
        truth = _truth(what, tested)
        returned = body(begun.given())
    returned, updates = landed(what, returned, "carries", begun.leaves)
    results = begun.after(returned, "carries", "body")
    more, own = Carried(what, updates), len(begun.first)
    first, leaves = [*begun.first, *more.first], [*begun.leaves, *more.leaves, at]
    [truth], results = more.read([truth]), [*more.read(results), *more.last]
    made = make_while(WHILE, None, max_steps, first, leaves, truth, results)
    if name is not None:
        made[0].args[0].name = name
    made, _ = tied([*made[:own], made[-1]], more.assigned(made[own:-1]))
    last = begun.structure.filled(iter(made))
    return (last, made[-1]) if count else last


def _truth(what: str, value: Any) -> Tensor:
    """What the condition returned, a bool scalar."""
    if value is None or isinstance(value, (list, tuple, dict)):
        raise DTypeError(f"{what}: condition returned {shown(value)}; it returns a bool scalar")
    truth = as_tensor(value)
    if truth.axes is not NO_AXES or kind(truth.dtype) != "b":
        raise DTypeError(
            f"{what}: the condition {truth} {truth.dtype.name} (made at {truth.file_info}) is no "
            "bool scalar; geon.any and geon.all make one of many"
        )
    return truth
