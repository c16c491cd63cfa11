"""Views that bodies of regions compute from captures, replaced by captures of their own.

A body computes views of a captured value itself (``closure.is_repeated``). A transformation that
replaces an op of the graph, such as the derivative with respect to it, has to reach these too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..building.rebuild import rebuild, with_args
from ..op_graph import Op, RegionOp, Tensor, same_ops
from ..transforms.functionalize import substitute
from .cases import make_case
from .closure import Opened, like
from .loop import RegionLoop, loop_of
from .parameters import tensors


def replace_everywhere(roots: Iterable[Op], wanted: Mapping[Tensor, Tensor]) -> list[Op]:
    """Return the roots with the keys of ``wanted`` replaced, in bodies of regions too.

    Where a body computes a key from its captures, it captures the value instead.
    """

    def replace(op: Op, args: tuple[Op, ...]) -> Op | None:
        return _with_captured(op, args, wanted) if isinstance(op, RegionOp) else None

    known: dict[Op, Op] = dict(wanted.items())
    return rebuild(roots, replace, known)


def _with_captured(
    region: RegionOp, args: tuple[Op, ...], wanted: Mapping[Tensor, Tensor]
) -> RegionOp:
    loop = loop_of(region)
    result = _case(region, args, wanted) if loop is None else _loop(loop, region, args, wanted)
    return with_args(region, args) if result is None else result


def _loop(
    loop: RegionLoop, region: RegionOp, args: tuple[Op, ...], wanted: Mapping[Tensor, Tensor]
) -> RegionOp | None:
    opened = loop.opened()
    leaves, count = opened.leaves, loop.inputs.stop
    inside = _views_in_body(wanted, loop.named_captures(leaves, region.args))
    results = tensors(replace_everywhere(opened.results, dict(inside.values())))
    if same_ops(tuple(results), tuple(opened.results)):
        return None
    named = loop.named_captures(leaves, args)
    named.update({leaf: wanted[key] for key, (_, leaf) in inside.items()})
    given: Any = args
    steps = len(loop.body.results)
    rebuilt = loop.rebuilt(
        given[: loop.carries],
        given[loop.carries : count],
        [*leaves[:count], *(leaves[-1:] if loop.numbered else ())],
        results[:steps],
        results[steps:],
        named,
        given[len(args) - loop.options :],
    )
    return _region(rebuilt)


def _case(
    region: RegionOp, args: tuple[Op, ...], wanted: Mapping[Tensor, Tensor]
) -> RegionOp | None:
    bodies = region.bodies
    shared = Opened(bodies[0]).leaves
    captured: dict[Op, Op] = dict(zip(shared[1:], region.args[1:], strict=True))
    inside = _views_in_body(wanted, captured)
    before = [Opened(body, shared).results for body in bodies]
    after = [tensors(replace_everywhere(results, dict(inside.values()))) for results in before]
    if all(same_ops(tuple(new), tuple(old)) for new, old in zip(after, before, strict=True)):
        return None
    named: dict[Op, Any] = dict(zip(shared, args, strict=True))
    named.update({leaf: wanted[key] for key, (_, leaf) in inside.items()})
    return _region(make_case(args[0], after, region.attrs.certain, named))


def _region(results: Sequence[Tensor]) -> RegionOp:
    region = results[0].args[0]
    assert isinstance(region, RegionOp)
    return region


def _views_in_body(
    wanted: Mapping[Tensor, Tensor], captured: Mapping[Op, Op]
) -> dict[Tensor, tuple[Tensor, Tensor]]:
    """Map each wanted view to the op that computes it from placeholders, and a placeholder for it.

    ``captured`` maps the placeholders of captures to the values outside.
    """
    views: dict[Tensor, tuple[Tensor, Tensor]] = {}
    for key in wanted:
        known = {value: leaf for leaf, value in captured.items()}
        local: Any = substitute(key, known)
        views[key] = local, like(key)
    return views
