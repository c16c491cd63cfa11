"""The while primitive: attributes, argument checks, NumPy reference, and its constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..axes.axes import Axis
from ..core.primitive import PRIMITIVES, Inferred, Primitive, require
from ..core.region_body import Body
from ..op_graph import NO_AXES, Op, Tensor
from ..values.attribute_types import Count, is_count
from ..values.dtypes import BOOL, INT64, DType
from .loop import NO_BODY, check_loop, loop_from, require_scalar
from .parameters import NOTHING, guards_of, outcome

Array = np.ndarray[Any, Any]


def is_limit(value: Any) -> bool:
    """Return True if ``value`` is an integer of at least 0, or None."""
    return value is None or is_count(value)


Limit = Annotated[int | None, is_limit]


class WhileAttributes(NamedTuple):
    """The attributes of a while loop by name.

    The arguments are the initial values of ``carries`` carries, then the captures. Both bodies take
    these and the step number. The loop ends when ``condition`` is false, or after ``limit`` steps
    if that is not None. ``body`` computes the next carries, and values that are stacked along
    ``axis``, whose length is the limit. There are no such values if ``axis`` is None.
    """

    axis: Axis | None
    limit: Limit
    carries: Count
    condition: Body
    body: Body


def while_infer(args: tuple[Any, ...], a: WhileAttributes) -> Inferred:
    """Check the arguments of a loop against its bodies; the region itself has no value."""
    axes, dtype, guards = check_loop(args, loop_from(PRIMITIVES["while"], a))
    require(len(a.condition.results) == 1, "{} results of a condition", len(a.condition.results))
    require_scalar(a.condition.results[0], BOOL, "a condition")
    own, given = a.condition.parameters, a.body.parameters
    require(len(own) == len(given), "{} parameters of a condition, for {}", len(own), len(given))
    for one, other in zip(own, given, strict=True):
        require(one is other, "parameters of a condition that are not those of the body")
    stacks = len(a.body.results) - a.carries
    require(stacks == 0 or a.axis is not None, "{} stacks along no axis", stacks)
    require(a.axis is None or a.axis.expression == a.limit, "an axis that is not of the limit")
    return axes, dtype, (*guards_of(a.condition), *guards)


def while_outcomes(a: WhileAttributes) -> list[tuple[Any, DType]]:
    """Return axes and dtypes of the last carries, the number of steps, then the stacked values."""
    last = [outcome(op) for op in a.body.results[: a.carries]]
    first = () if a.axis is None else (a.axis,)
    stacks = [outcome(op, first) for op in a.body.results[a.carries :]]
    return [*last, (NO_AXES, INT64), *stacks]


def while_reference(op: Any, run: Callable[..., list[Array]], *args: Array) -> list[Array]:
    """Run the loop step by step; stacks are zero at indices after the last step."""
    a: WhileAttributes = op.attrs
    carries, captures = list(args[: a.carries]), args[a.carries :]
    stacks = [np.zeros(axes.lengths, dtype) for axes, dtype in op.outcomes[a.carries + 1 :]]
    step = 0
    while a.limit is None or step < a.limit:
        given = [*carries, *captures, np.asarray(step, np.int64)]
        if not run(a.condition, given)[0]:
            break
        results = run(a.body, given)
        carries = results[: a.carries]
        for stack, value in zip(stacks, results[a.carries :], strict=True):
            stack[step] = value
        step += 1
    return [*carries, np.asarray(step, np.int64), *stacks]


def make_while(
    row: Primitive,
    axis: Axis | None,
    limit: int | None,
    init: Sequence[Tensor],
    leaves: Sequence[Tensor],
    condition: Tensor,
    results: Sequence[Tensor],
    named: Mapping[Op, Any] = NOTHING,
) -> list[Tensor]:
    """Build a loop whose bodies compute ``condition`` and ``results``, and return its results.

    ``leaves`` are placeholders for the carries and the step number. The keys of ``named`` are
    placeholders for values that all steps read.
    """
    loop = loop_from(row, WhileAttributes(axis, limit, 0, NO_BODY, NO_BODY))
    return loop.rebuilt(init, (), leaves, results, [condition], named)
