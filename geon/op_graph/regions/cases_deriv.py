"""Derivatives of cases: a case with the same index computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.region_body import Body
from ..op_graph import Op, Tensor
from ..rows.accumulation import accumulate, widen
from ..rows.movement import broadcast
from ..transforms.derivative_sweeps import cotangents, forward_mode, zeros
from .cases import make_case
from .closure import Opened, like

Given = Sequence[Tensor | None]


def case_vjp(given: Given, op: Op, wanted: Sequence[bool]) -> list[Tensor | None]:
    """Return the cotangents of a case's arguments, computed by a case with the same index."""
    bodies: tuple[Body, ...] = op.attrs.bodies
    seeds = {k: like(g) for k, g in enumerate(given) if g is not None}
    shared = Opened(bodies[0]).leaves
    targets = [shared[k] for k, is_wanted in enumerate(wanted) if is_wanted]
    adjoints = []
    for body in bodies:
        results = Opened(body, shared).results
        starts: dict[Op, Tensor] = {}
        for k, seed in seeds.items():
            starts[results[k]] = accumulate(starts.get(results[k]), seed)
        adjoints.append(cotangents(starts, targets))
    reached = [k for k, leaf in enumerate(shared) if any(leaf in each for each in adjoints)]
    if not reached:
        return [None] * len(op.args)
    roots = [
        [widen(_or_zeros(each.get(shared[k]), shared[k])) for k in reached] for each in adjoints
    ]
    named: dict[Op, Any] = dict(zip(shared, op.args, strict=True))
    named.update({seed: given[k] for k, seed in seeds.items()})
    result = dict(zip(reached, make_case(op.args[0], roots, op.attrs.certain, named), strict=True))
    return [result.get(k) for k in range(len(op.args))]


def case_jvp(op: Op, tangents: Given) -> list[Tensor | None]:
    """Return the tangents of a case's results, computed by a case with the same index."""
    bodies: tuple[Body, ...] = op.attrs.bodies
    shared = Opened(bodies[0]).leaves
    along: dict[Op, Tensor] = {shared[k]: like(t) for k, t in enumerate(tangents) if t is not None}
    opened = [Opened(body, shared).results for body in bodies]
    derived = [forward_mode(results, along) for results in opened]
    both = list(zip(opened, derived, strict=True))
    moving = [k for k in range(len(opened[0])) if any(results[k] in each for results, each in both)]
    if not moving:
        return [None] * len(opened[0])
    roots = [[_or_zeros(each.get(results[k]), results[k]) for k in moving]
             for results, each in both]  # fmt: skip
    named: dict[Op, Any] = dict(zip(shared, op.args, strict=True))
    given = [t for t in tangents if t is not None]
    named.update(dict(zip(along.values(), given, strict=True)))
    result = dict(zip(moving, make_case(op.args[0], roots, op.attrs.certain, named), strict=True))
    return [result.get(k) for k in range(len(opened[0]))]


def _or_zeros(value: Tensor | None, of: Tensor) -> Tensor:
    return zeros(of) if value is None else broadcast(value, of.axes)
