"""Forward-mode derivative and batching of loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NoReturn

from ...errors import DerivativeError
from ..axes.axes import Axes
from ..building.elementwise_build import broadcast_over
from ..op_graph import Op, Tensor
from ..rows.leaves import placeholder
from ..rows.movement import broadcast
from ..transforms.derivative_sweeps import forward_mode, zeros
from .closure import like
from .loop import close, loop_of, step_results
from .parameters import tensors

Images = Callable[[Sequence[Op], Mapping[Op, Tensor]], Mapping[Op, Op]]


def loop_jvp(op: Op, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the tangents of a loop's results from those of its arguments.

    One loop carries both the values and their tangents.
    """
    loop = loop_of(op)
    assert loop is not None
    count, outcomes = loop.carries, [None] * (len(loop.body.results) + loop.extra)
    opened = loop.opened()
    leaves, results = opened.leaves, opened.results[: len(loop.body.results)]
    along = [like(leaf) for leaf in leaves]

    def reach(moving: Set[int]) -> Mapping[Op, Tensor]:
        return forward_mode(results, {leaves[k]: along[k] for k in sorted(moving)})

    given = {k: tangent for k, tangent in enumerate(tangents) if tangent is not None}
    moving, found = close(given, results[:count], reach)
    carried = sorted(k for k in moving if k < count)
    values = [k for k in range(count, len(results)) if results[k] in found]
    if not carried and not values:
        return [*outcomes]
    pushed = [
        broadcast(found[results[k]], results[k].axes) if results[k] in found else zeros(results[k])
        for k in (*carried, *values)
    ]
    inputs = sorted(k for k in moving if k in loop.inputs)
    before = loop.inputs.stop
    init = [*op.args[:count], *(given[k] if k in given else zeros(leaves[k]) for k in carried)]
    xs = [*op.args[count:before], *(given[k] for k in inputs)]
    named = loop.named_captures(leaves, op.args)
    named.update({along[k]: given[k] for k in moving if k >= before})
    made = loop.rebuilt(
        tensors(init),
        tensors(xs),
        [*leaves[:count], *(along[k] for k in carried), *leaves[count:before],
         *(along[k] for k in inputs), *leaves[-1:]],
        [*results[:count], *pushed],
        opened.results[len(results) :],
        named,
        op.args[len(op.args) - loop.options :],
    )  # fmt: skip
    places = dict(zip(map(loop.result, (*carried, *values)), step_results(made[0].args[0])[count:],
                      strict=True))  # fmt: skip
    return [places.get(k) for k in range(len(outcomes))]


def loop_spread(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """Return the results of a loop on arguments some of which have the further ``axes``.

    A carry that depends on such an argument gets the axes too, from the first step on. Raises
    ``DerivativeError`` where the number of steps depends on one.
    """
    loop = loop_of(op)
    assert loop is not None
    opened, own = loop.opened(), len(op.args) - loop.options
    leaves, results = opened.leaves, opened.results[: len(loop.body.results)]
    conditions = opened.results[len(results) :]
    wide = [placeholder(both_axes(leaf.axes, axes), leaf.dtype) for leaf in leaves]
    options: list[Any] = list(args[own:])
    if any(arg.axes is not old.axes for arg, old in zip(options, op.args[own:], strict=True)):
        refuse_counts(op, axes)

    def reach(moving: Set[int]) -> Mapping[Op, Op]:
        found = images(opened.results, {leaves[k]: wide[k] for k in sorted(moving)})
        if any(condition in found for condition in conditions):
            refuse_counts(op, axes)
        return found

    seeds = {k for k in range(own) if args[k] is not op.args[k]}
    moving, found = close(seeds, results[: loop.carries], reach)
    given: list[Any] = list(args[:own])
    for k in moving:
        given[k] = broadcast_over(given[k], both_axes(op.args[k].axes, axes))
    inner = [wide[k] if k in moving else leaf for k, leaf in enumerate(leaves)]
    made: list[Any] = [found.get(result, result) for result in results]
    for k, old in enumerate(results):
        if (k in moving and k < loop.carries) or made[k].axes is not old.axes:
            made[k] = broadcast_over(made[k], both_axes(old.axes, axes))
    before = loop.inputs.stop
    return loop.rebuilt(
        given[: loop.carries],
        given[loop.carries : before],
        [*inner[:before], *(inner[-1:] if loop.numbered else ())],
        made,
        conditions,
        loop.named_captures(inner, given),
        options,
    )


def both_axes(own: Axes, axes: Axes) -> Axes:
    """Return ``own`` followed by the axes of ``axes`` that it lacks."""
    return Axes(own, [axis for axis in axes if axis not in own])


def refuse_counts(op: Op, axes: Axes) -> NoReturn:
    """Raise ``DerivativeError`` for a loop whose number of steps would differ along ``axes``."""
    raise DerivativeError(
        f"{op} (made at {op.line_info}) would end after another number of steps for each place "
        f"along {', '.join(axes.names)}; take derivatives one after another, with seeds"
    )
