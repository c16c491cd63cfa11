"""Derivatives of loops: forward mode for all of them, and both modes of fixed points.

Fixed points follow the implicit function theorem. Where x = f(x, c), the differentials fulfil
dx = f_x dx + f_c dc, however x was computed. So the tangent of x is itself a fixed point, of
t = f_x t + f_c dc. With the cotangent v of x, the cotangent of c is f_c^T u, where u is the fixed
point of u = f_x^T u + v: B. Christianson, Reverse accumulation and attractive fixed points,
Optimization Methods and Software 3 (1994). Both loops converge at the rate at which x converges
near the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ..op_graph import Op, Tensor
from ..rows.accumulation import accumulate, total_of, widen
from ..rows.elementwise import absolute, cast, maximum
from ..rows.movement import broadcast
from ..rows.reductions import max as largest_of
from ..transforms.derivative_sweeps import cotangents, forward_mode, zeros
from ..transforms.functionalize import substitute
from .closure import Opened, like
from .fixed_point import FixedPointAttributes, bordered, certain, make_fixed_point
from .loop import close, loop_of, step_results
from .parameters import results_of, substitute_ops, tensors

Given = Sequence[Tensor | None]


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
    moving, tangent_of = close(given, results[:count], reach)
    carried = sorted(k for k in moving if k < count)
    values = [k for k in range(count, len(results)) if results[k] in tangent_of]
    if not carried and not values:
        return [*outcomes]
    pushed = [
        broadcast(tangent_of[r], r.axes) if r in tangent_of else zeros(r)
        for r in (results[k] for k in (*carried, *values))
    ]
    inputs = sorted(k for k in moving if k in loop.inputs)
    before = loop.inputs.stop
    init = [*op.args[:count], *(given[k] if k in given else zeros(leaves[k]) for k in carried)]
    xs = [*op.args[count:before], *(given[k] for k in inputs)]
    named = loop.named_captures(leaves, op.args)
    named.update({along[k]: given[k] for k in moving if k >= before})
    result = loop.rebuilt(
        tensors(init),
        tensors(xs),
        [*leaves[:count], *(along[k] for k in carried), *leaves[count:before],
         *(along[k] for k in inputs), *leaves[-1:]],
        [*results[:count], *pushed],
        opened.results[len(results) :],
        named,
        op.args[len(op.args) - loop.options :],
    )  # fmt: skip
    added = step_results(result[0].args[0])[count:]
    places = dict(zip(map(loop.result, (*carried, *values)), added, strict=True))
    return [places.get(k) for k in range(len(outcomes))]


def fixed_point_vjp(given: Given, op: Op, wanted: Sequence[bool]) -> list[Tensor | None]:
    """Return the cotangents of the captures; those of the initial values are None."""
    a: FixedPointAttributes = op.attrs
    opened = Opened(a.body)
    here, read = opened.leaves[: a.carries], opened.leaves[a.carries :]
    sought = [leaf for leaf, is_wanted in zip(read, wanted[a.captures], strict=True) if is_wanted]
    if not sought or all(v is None for v in given):
        return [None] * len(op.args)
    bars, turning = [total_of(leaf) for leaf in here], [total_of(leaf) for leaf in here]
    seeds: dict[Op, Tensor] = {}
    for result, u in zip(opened.results, turning, strict=True):
        seeds[result] = accumulate(seeds.get(result), u)
    adjoints = cotangents(seeds, [*here, *sought])
    results = [
        accumulate(broadcast(adjoints[leaf], leaf.axes), v) if leaf in adjoints else v
        for leaf, v in zip(here, bars, strict=True)
    ]
    initial = [widen(_or_zeros(v, leaf)) for v, leaf in zip(given[: a.carries], here, strict=True)]
    named = _values(op, a, opened)
    named.update(zip(bars, initial, strict=True))
    made = _made_again(op, a, initial, turning, results, named)
    named.update(zip(turning, made, strict=True))
    totals: dict[Op, Any] = {
        leaf: substitute(broadcast(adjoints[leaf], leaf.axes), dict(named))
        for leaf in sought
        if leaf in adjoints
    }
    return [*[None] * a.carries, *(totals.get(leaf) for leaf in read), None]


def fixed_point_jvp(op: Op, tangents: Given) -> list[Tensor | None]:
    """Return the tangents of the values from the tangents of the captures."""
    a: FixedPointAttributes = op.attrs
    opened = Opened(a.body)
    here, read = opened.leaves[: a.carries], opened.leaves[a.carries :]
    given = [(leaf, t) for leaf, t in zip(read, tangents[a.captures], strict=True) if t is not None]
    along: dict[Op, Tensor] = {leaf: like(leaf) for leaf, _ in given}
    named = _values(op, a, opened)
    named.update(zip(along.values(), [t for _, t in given], strict=True))
    first = forward_mode(opened.results, along)
    if not first:
        return [None] * (a.carries + 1)
    turning = [like(leaf) for leaf in here]
    known: dict[Op, Tensor] = dict(zip(here, turning, strict=True))
    known.update(along)
    pushed = forward_mode(opened.results, known)
    results = [_or_zeros(pushed.get(op), op) for op in opened.results]
    initial: list[Any] = [
        substitute(_or_zeros(first.get(op), op), dict(named)) for op in opened.results
    ]
    return [*_made_again(op, a, initial, turning, results, named), None]


def _made_again(
    op: Op,
    a: FixedPointAttributes,
    initial: Sequence[Tensor],
    leaves: Sequence[Tensor],
    results: Sequence[Tensor],
    named: Mapping[Op, Any],
) -> list[Tensor]:
    """Return the fixed point of a derivative of ``op``; its body is linear in ``leaves``."""
    tolerance = _scaled(op, initial)
    result = make_fixed_point(
        op.primitive, a.limit, a.raises, initial, leaves, results, tolerance, named
    )
    initial = substitute_ops(initial, dict(named))
    return certain(result, initial, a.limit) if a.raises else result[:-1]


def _values(op: Op, a: FixedPointAttributes, opened: Opened) -> dict[Op, Any]:
    """Map the placeholders of an opened body to the values at the fixed point."""
    values = [*results_of(op)[: a.carries], *op.args[a.captures]]
    return dict(zip(opened.leaves, values, strict=True))


def _or_zeros(value: Tensor | None, of: Op) -> Tensor:
    return zeros(of) if value is None else broadcast(value, of.axes)


def _scaled(op: Op, values: Sequence[Tensor]) -> Tensor:
    """Return the absolute tolerance of a loop linear in ``values``: tolerance * max|values|."""
    tolerance: Any = op.args[-1]
    largest: Any = None
    for value in values:
        each = cast(largest_of(bordered(absolute(value), 0.0)), tolerance.dtype)
        largest = each if largest is None else maximum.apply(largest, each)
    return tolerance * largest  # type: ignore[no-any-return]  # a tensor
