"""Batching rules of scans and while loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ...errors import DerivativeError
from ..axes.axes import Axes
from ..building.elementwise_build import broadcast_over
from ..op_graph import Op, Tensor
from ..rows.leaves import placeholder
from .closure import Opened
from .scan_op import ScanAttributes, make_scan
from .while_op import WhileAttributes, make_while

Images = Callable[[Sequence[Op], Mapping[Op, Tensor]], Mapping[Op, Op]]


def scan_spread(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """Return the results of a scan on arguments some of which have the further ``axes``.

    A carry that depends on such an argument gets the axes too, from the first step on. Raises
    ``DerivativeError`` where the number of steps depends on them.
    """
    a: ScanAttributes = op.attrs
    opened = Opened(a.body)
    leaves, count = opened.leaves, a.carries
    moving = {k for k, arg in enumerate(args) if arg is not op.args[k]}
    if a.counted and args[-1] is not op.args[-1]:
        refuse_counts(op, axes)
    while True:
        wide = {k: placeholder(both_axes(leaves[k].axes, axes), leaves[k].dtype) for k in moving}
        found = images(opened.results, {leaves[k]: leaf for k, leaf in wide.items()})
        more = {k for k in range(count) if opened.results[k] in found} - moving
        if not more:
            break
        moving |= more
    given = [_wide(args[k], op.args[k], axes) if k in moving else args[k] for k in range(len(args))]
    inner = [wide.get(k, leaf) for k, leaf in enumerate(leaves)]
    results: list[Any] = [found.get(result, result) for result in opened.results]
    for k in moving:
        if k < count:
            results[k] = broadcast_over(results[k], inner[k].axes)
    results = [
        result if result.axes is old.axes else broadcast_over(result, both_axes(old.axes, axes))
        for result, old in zip(results, opened.results, strict=True)
    ]
    first = a.before_captures
    named: dict[Op, Any] = dict(zip(inner[a.captures], given[a.captures], strict=True))
    walked: list[Any] = given[:first]
    return make_scan(
        op.primitive, a.axis, a.reverse, walked[:count], walked[count:],
        [*inner[:first], inner[-1]], results, named, a.steps_given(args),
    )  # fmt: skip


def refuse_counts(op: Op, axes: Axes) -> NoReturn:
    """Raise ``DerivativeError`` for a loop whose number of steps would differ along ``axes``."""
    raise DerivativeError(
        f"{op} (made at {op.line_info}) would end after another number of steps for each place "
        f"along {', '.join(axes.names)}; take derivatives one after another, with seeds"
    )


def _wide(arg: Op, old: Op, axes: Axes) -> Tensor:
    """Broadcast ``arg`` over the axes of ``old`` and ``axes``."""
    made: Any = arg
    return broadcast_over(made, both_axes(old.axes, axes))


def both_axes(own: Axes, axes: Axes) -> Axes:
    """Return ``own`` followed by the axes of ``axes`` that it lacks."""
    return Axes(own, [axis for axis in axes if axis not in own])


def while_spread(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """Return the results of a loop on arguments some of which have the further ``axes``.

    A carry that depends on such an argument gets the axes too, from the first step on. Raises
    ``DerivativeError`` if the condition depends on one.
    """
    a: WhileAttributes = op.attrs
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
        given[k] = broadcast_over(given[k], both_axes(op.args[k].axes, axes))
    inner = [wide.get(k, leaf) for k, leaf in enumerate(leaves)]
    made: list[Any] = [found.get(result, result) for result in results]
    for k, old in enumerate(results):
        if k in moving and k < a.carries:
            made[k] = broadcast_over(made[k], inner[k].axes)
        elif made[k].axes is not old.axes:
            made[k] = broadcast_over(made[k], both_axes(old.axes, axes))
    named: dict[Op, Any] = dict(zip(inner[a.carries : -1], given[a.carries :], strict=True))
    return make_while(
        op.primitive, a.axis, a.limit, given[: a.carries], [*inner[: a.carries], inner[-1]],
        condition, made, named,
    )  # fmt: skip
