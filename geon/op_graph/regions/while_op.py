"""The while primitive: attributes, argument checks, NumPy reference, and its constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..axes.axes import Axis
from ..core.primitive import Inferred, Primitive, require
from ..core.region_body import Body
from ..op_graph import NO_AXES, VOID_DTYPE, Op, Tensor, make_region
from ..values.attribute_types import Count, is_count
from ..values.dtypes import INT64, DType, kind
from .closure import close_body
from .parameters import outcome, results_of, substitute_ops
from .scan_op import guards_of

Array = np.ndarray[Any, Any]
NOTHING: dict[Op, Any] = {}


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
    given = a.body.parameters
    require(len(args) + 1 == len(given), "{} arguments for {} parameters", len(args), len(given))
    for k, (arg, parameter) in enumerate(zip(args, given, strict=False)):
        require(arg.axes is parameter.axes, "argument {} over {}", k, arg.axes)
        require(arg.dtype is parameter.dtype, "argument {} of {}", k, arg.dtype)
    require(given[-1].axes is NO_AXES and given[-1].dtype is INT64, "a step that is no int64")
    require(len(a.condition.results) == 1, "{} results of a condition", len(a.condition.results))
    (truth,) = a.condition.results
    require(
        truth.axes is NO_AXES and kind(truth.dtype) == "b", "a condition that is no bool scalar"
    )
    own = a.condition.parameters
    require(len(own) == len(given), "{} parameters of a condition, for {}", len(own), len(given))
    for one, other in zip(own, given, strict=True):
        require(one is other, "parameters of a condition that are not those of the body")
    require(len(a.body.results) >= a.carries, "{} results of a body", len(a.body.results))
    require(a.carries <= len(args), "{} carries among {} arguments", a.carries, len(args))
    for parameter, result in zip(given[: a.carries], a.body.results, strict=False):
        require(
            parameter.axes is result.axes, "a carry over {}, then {}", parameter.axes, result.axes
        )
        require(parameter.dtype is result.dtype, "a carry of {}", parameter.dtype)
    stacks = len(a.body.results) - a.carries
    require(stacks == 0 or a.axis is not None, "{} stacks along no axis", stacks)
    require(a.axis is None or a.axis.expression == a.limit, "an axis that is not of the limit")
    return NO_AXES, VOID_DTYPE, (*guards_of(a.condition), *guards_of(a.body))


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
    stands = dict(named)
    roots = substitute_ops([*results, condition], stands)
    both, captures = close_body(leaves[:-1], roots, leaves[-1:], set(named.values()))
    body = Body(both.parameters, both.results[:-1])
    test = Body(both.parameters, both.results[-1:])
    attrs = WhileAttributes(axis, limit, len(init), test, body)
    region = make_region(row, (*init, *captures), attrs)
    return results_of(region)
