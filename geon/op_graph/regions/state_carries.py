"""Assignments in loop steps and branches, turned into carries and results of the region.

In a loop it is one more carry, which begins as the variable is and is assigned to it after the
loop; of branches it is one more result. So a region itself has no effects, and derivatives, plans
and targets know nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..axes.axes import Axis
from ..building.tree import EFFECT, flat
from ..building.unused_effects import take
from ..op_graph import Leaf, Op, Tensor, VoidOp, post_order
from ..rows.effects import assign, beside, doall
from ..rows.movement import cast_axes
from ..transforms.batching import fresh_axes
from ..transforms.functionalize import run_once
from .carries import inside
from .closure import refuse_prints
from .parameters import substituted

Updates = dict[Leaf, Tensor]


def landed(what: str, returned: Any, where: str, own: Iterable[Op] = ()) -> tuple[Any, Updates]:
    """What a function ``returned`` without its effects, in whose places are marks; and the new
    value of each variable and placeholder that it assigns to, but of the ``own`` ones of its step.
    """
    found, structure = flat(returned, where)
    acting = [value for _, value in found if isinstance(value, Op) and value.effectful]
    if not acting:
        return returned, {}
    pure, updates, prints = run_once(acting)
    refuse_prints(what, prints)
    take(op for op in post_order(acting) if isinstance(op, VoidOp))
    known: dict[int, Any] = {
        id(op): EFFECT if isinstance(op, VoidOp) else value
        for op, value in zip(acting, pure, strict=True)
    }
    for stands in own:
        updates.pop(stands, None)  # type: ignore[call-overload]  # stand-ins are leaves
    return structure.filled(iter([known.get(id(value), value) for _, value in found])), updates


class Carried:
    """The carries that the ``updates`` of a step make: ``first``, ``leaves`` that stand for them
    in any step, and ``last``, their values after a step.

    What has the ``axis`` of the loop is carried with another one in its place.
    """

    def __init__(self, what: str, updates: Updates, axis: Axis | None = None) -> None:
        self.targets = list(updates)
        taken = () if axis is None else (axis.name,)
        axes = [fresh_axes(target.axes, taken) for target in self.targets]
        self.first = list(map(cast_axes, self.targets, axes))
        self.leaves = [inside(what, first.axes, first.dtype) for first in self.first]
        self.known: dict[Op, Op] = {
            target: cast_axes(leaf, target.axes)
            for target, leaf in zip(self.targets, self.leaves, strict=True)
        }
        self.last = list(map(cast_axes, self.read(updates.values()), axes))

    def read(self, results: Iterable[Tensor]) -> list[Tensor]:
        """Results of a step, which see what is assigned to as it is before the step."""
        return substituted(results, self.known)

    def assigned(self, final: Sequence[Tensor]) -> Updates:
        """The new values of the targets, of what the carries are ``final``."""
        pairs = zip(self.targets, final, strict=True)
        return {target: cast_axes(value, target.axes) for target, value in pairs}


def tied(results: Sequence[Tensor], updates: Updates) -> tuple[list[Tensor], Op]:
    """Results each of which does the ``updates`` where it is computed, and that effect alone."""
    effects = [assign(target, value) for target, value in updates.items()]
    effect = effects[0] if len(effects) == 1 else doall(effects)
    return [beside(result, effect) for result in results] if effects else list(results), effect
