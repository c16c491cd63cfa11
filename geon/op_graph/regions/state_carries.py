"""Convert assignments inside loop steps and branches into carries and results of the region.

A variable that a loop step assigns becomes one more carry: its first value is the variable, and its
last value is assigned to the variable after the loop. A variable that a branch assigns becomes one
more result. So regions have no effects, and derivatives, transformers and targets need no rules for
effects inside of regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..axes.axes import Axis
from ..building.unused_effects import take
from ..op_graph import Leaf, Op, Tensor, VoidOp, post_order
from ..rows.effects import assign, doall, with_effect
from ..rows.movement import cast_axes
from ..transforms.batching import fresh_axes
from ..transforms.functionalize import run_once
from ..values.tree import EFFECT, flat
from .carries import loop_placeholder
from .closure import refuse_prints
from .parameters import substitute_ops

Updates = dict[Leaf, Tensor]


def land_effects(
    what: str, returned: Any, where: str, own: Iterable[Op] = ()
) -> tuple[Any, Updates]:
    """Return ``returned`` with its effects replaced by marks, and the new value of each target.

    ``returned`` is the return value of a user's function, and ``where`` its name in messages.
    Targets are the variables and placeholders that it assigns. Those in ``own``, the placeholders
    of the step itself, are left out. Raises ``ArgumentError`` where the function prints.
    """
    leaves, structure = flat(returned, where)
    acting = [value for _, value in leaves if isinstance(value, Op) and value.effectful]
    if not acting:
        return returned, {}
    pure, updates, prints = run_once(acting)
    refuse_prints(what, prints)
    take(op for op in post_order(acting) if isinstance(op, VoidOp))
    known: dict[int, Any] = {
        id(op): EFFECT if isinstance(op, VoidOp) else value
        for op, value in zip(acting, pure, strict=True)
    }
    for leaf in own:
        updates.pop(leaf, None)  # type: ignore[call-overload]  # stand-ins are leaves
    return structure.filled(iter([known.get(id(value), value) for _, value in leaves])), updates


class StateCarries:
    """Extra carries of a loop, one for each target that the ``updates`` of its step assign.

    ``targets`` are the variables and placeholders that are assigned. ``first`` are the initial
    values of the carries. ``leaves`` are the placeholders of the carries inside of a step. ``last``
    are the values of the carries after a step. Where a target has the ``axis`` of the loop, its
    carry has a fresh axis instead.
    """

    def __init__(self, what: str, updates: Updates, axis: Axis | None = None) -> None:
        self.targets = list(updates)
        taken = () if axis is None else (axis.name,)
        axes = [fresh_axes(target.axes, taken) for target in self.targets]
        self.first = list(map(cast_axes, self.targets, axes))
        self.leaves = [loop_placeholder(what, first.axes, first.dtype) for first in self.first]
        self.known: dict[Op, Op] = {
            target: cast_axes(leaf, target.axes)
            for target, leaf in zip(self.targets, self.leaves, strict=True)
        }
        self.last = list(map(cast_axes, self.read(updates.values()), axes))

    def read(self, results: Iterable[Tensor]) -> list[Tensor]:
        """Return results of a step in which reads of the targets are replaced by the carries."""
        return substitute_ops(results, self.known)

    def assigned(self, final: Sequence[Tensor]) -> Updates:
        """Return the new value of each target from the ``final`` values of the carries."""
        pairs = zip(self.targets, final, strict=True)
        return {target: cast_axes(value, target.axes) for target, value in pairs}


def tie_updates(results: Sequence[Tensor], updates: Updates) -> tuple[list[Tensor], Op]:
    """Return ``results`` that also perform the ``updates``, and the effect of the updates."""
    effects = [assign(target, value) for target, value in updates.items()]
    effect = effects[0] if len(effects) == 1 else doall(effects)
    return [with_effect(result, effect) for result in results] if effects else list(results), effect
