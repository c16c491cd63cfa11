"""While loops over further axes: those of many seeds, or of each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..axes import Axes
from ..build import over
from ..leaves import placeholder
from ..op_graph import Op, Tensor
from .opened import Opened
from .scan_further import Images, both_axes, refuse_counts
from .while_facts import WhileAttributes, make_while


def while_spread(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """The results of a loop on arguments some of which have ``axes`` besides their own.

    A carry that meets one of these gets the axes too, from the first step on. Raises
    ``DerivativeError`` where the condition meets one.
    """
    a = WhileAttributes(op.attrs)
    opened = Opened(a.body)
    leaves, results = opened.leaves, opened.results
    (condition,) = Opened(a.condition, leaves).results
    moving = {k for k, arg in enumerate(args) if arg is not op.args[k]}
    while True:
        wide = {k: placeholder(both_axes(leaves[k].axes, axes), leaves[k].dtype) for k in moving}
        known: dict[Op, Tensor] = {leaves[k]: leaf for k, leaf in wide.items()}
        found = images([*results, condition], known)
        if condition in found:
            refuse_counts(op, axes)
        more = {k for k in range(a.carries) if results[k] in found} - moving
        if not more:
            break
        moving |= more
    given: list[Any] = list(args)
    for k in moving:
        given[k] = over(given[k], both_axes(op.args[k].axes, axes))
    inner = [wide.get(k, leaf) for k, leaf in enumerate(leaves)]
    made: list[Any] = [found.get(result, result) for result in results]
    for k, old in enumerate(results):
        if k in moving and k < a.carries:
            made[k] = over(made[k], inner[k].axes)
        elif made[k].axes is not old.axes:
            made[k] = over(made[k], both_axes(old.axes, axes))
    named: dict[Op, Any] = dict(zip(inner[a.carries : -1], given[a.carries :], strict=True))
    return make_while(
        op.primitive, a.axis, a.limit, given[: a.carries], [*inner[: a.carries], inner[-1]],
        condition, made, named,
    )  # fmt: skip
