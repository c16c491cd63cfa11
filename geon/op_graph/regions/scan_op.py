"""The scan primitive: attributes, argument checks, NumPy reference, and its constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..axes.axes import Axes, Axis
from ..core.primitive import PRIMITIVES, Inferred, Primitive
from ..core.region_body import Body
from ..op_graph import Op, Tensor
from ..values.attribute_types import Count, Flag
from ..values.dtypes import INT64, DType
from .loop import NO_BODY, check_loop, loop_from, require_scalar
from .parameters import NOTHING, outcome

Array = np.ndarray[Any, Any]


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
    if a.counted:
        require_scalar(args[-1], INT64, "a number of steps")
    return check_loop(args, loop_from(PRIMITIVES["scan"], a))


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
    loop = loop_from(row, ScanAttributes(axis, 0, 0, reverse, count is not None, NO_BODY))
    return loop.rebuilt(init, xs, leaves, results, (), named, () if count is None else (count,))
