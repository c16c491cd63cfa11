"""The scan primitive: attributes, argument checks, NumPy reference, and its constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..axes.axes import Axes, Axis
from ..core.primitive import Inferred, Primitive, require
from ..core.region_body import Body
from ..op_graph import NO_AXES, VOID_DTYPE, Guard, Op, Tensor, make_region, post_order
from ..values.attribute_types import Count, Flag
from ..values.dtypes import INT64, DType
from .closure import close_body
from .parameters import outcome, results_of, substitute_ops

Array = np.ndarray[Any, Any]
NOTHING: dict[Op, Any] = {}


class ScanAttributes(NamedTuple):
    """The attributes of a scan by name, and the positions of its arguments.

    The arguments are the initial carries, the stacked inputs, the captures, and the number of steps
    if the scan is ``counted``. A counted scan runs only the first steps of its axis, as many as
    that number; its stacked results are zero at the indices of the other steps.
    """

    axis: Axis
    carries: Count
    xs: Count
    reverse: Flag
    counted: Flag
    body: Body

    @property
    def before_captures(self) -> int:
        """The number of arguments that are carries or stacked inputs."""
        return self.carries + self.xs

    @property
    def captures(self) -> slice:
        """The slice of the arguments that all steps read."""
        return slice(self.before_captures, len(self.body.parameters) - 1)

    def steps_given(self, args: Sequence[Op]) -> Tensor | None:
        """Return the number of steps among the arguments; None if the scan is not counted."""
        return args[-1] if self.counted else None  # type: ignore[return-value]  # a tensor


def scan_infer(args: tuple[Any, ...], a: ScanAttributes) -> Inferred:
    """Check the arguments of a scan against its body; the region itself has no value."""
    first, given = a.before_captures, a.body.parameters
    own = len(args) + (0 if a.counted else 1)  # the count takes the position of the step number
    require(own == len(given), "{} arguments for {} parameters", len(args), len(given))
    require(first < len(given), "{} carries and {} stacks among {} arguments", a.carries, a.xs, own)
    for k, (arg, parameter) in enumerate(zip(args, given, strict=False)):
        axes = Axes(a.axis, parameter.axes) if a.carries <= k < first else parameter.axes
        require(arg.axes is axes, "argument {} over {} for {}", k, arg.axes, axes)
        require(arg.dtype is parameter.dtype, "argument {} of {}", k, arg.dtype)
    require(given[-1].axes is NO_AXES and given[-1].dtype is INT64, "a step that is no int64")
    require(len(a.body.results) >= a.carries, "{} results of a body", len(a.body.results))
    for parameter, result in zip(given[: a.carries], a.body.results, strict=False):
        require(
            parameter.axes is result.axes, "a carry over {}, then {}", parameter.axes, result.axes
        )
        require(parameter.dtype is result.dtype, "a carry of {}", parameter.dtype)
    return NO_AXES, VOID_DTYPE, guards_of(a.body)


def guards_of(body: Body) -> tuple[Guard, ...]:
    """Return the guards on lengths of all ops of a body."""
    return tuple([guard for op in post_order(body.results) for guard in op.guards])


def scan_outcomes(a: ScanAttributes) -> list[tuple[Axes, DType]]:
    """Return axes and dtypes of the results: the last carries, then the stacked values."""
    last = [outcome(op) for op in a.body.results[: a.carries]]
    return last + [outcome(op, (a.axis,)) for op in a.body.results[a.carries :]]


def scan_reference(op: Any, run: Callable[..., list[Array]], *args: Array) -> list[Array]:
    """Run the loop step by step."""
    a: ScanAttributes = op.attrs
    count, first = int(a.axis.expression), a.before_captures
    if a.counted:
        count = min(max(int(args[-1]), 0), count)
    carries, captures = list(args[: a.carries]), args[a.captures]
    stacks = [np.zeros(axes.lengths, dtype) for axes, dtype in op.outcomes[a.carries :]]
    for step in range(count)[:: -1 if a.reverse else 1]:
        xs = [x[step] for x in args[a.carries : first]]
        results = run(a.body, [*carries, *xs, *captures, np.asarray(step, np.int64)])
        carries = results[: a.carries]
        for stack, value in zip(stacks, results[a.carries :], strict=True):
            stack[step] = value
    return [*carries, *stacks]


def make_scan(
    row: Primitive,
    axis: Axis,
    reverse: bool,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    leaves: Sequence[Tensor],
    results: Sequence[Tensor],
    named: Mapping[Op, Any] = NOTHING,
    count: Tensor | None = None,
) -> list[Tensor]:
    """Build a scan whose body computes ``results`` from ``leaves``, and return its results.

    ``leaves`` are placeholders for the carries, for the slice of each stacked input that a step
    reads, and for the step number. The keys of ``named`` are placeholders for values that all steps
    read. With ``count`` only so many steps run.
    """
    stands = dict(named)
    results = substitute_ops(results, stands)
    body, captures = close_body(leaves[:-1], results, leaves[-1:], set(named.values()))
    attrs = ScanAttributes(axis, len(init), len(xs), reverse, count is not None, body)
    last = () if count is None else (count,)
    region = make_region(row, (*init, *xs, *captures, *last), attrs)
    return results_of(region)
